/* The kernels of a launch: their number, and their cost without contention. */
#pragma once

#include "sim/api/hwmodel.h"
#include "sim/base/base.h"

/* The kernels of a launch's share of one op, and what each costs in isolation. */
struct kernel_run {
    uint32_t n;                        /* kernels, >= 1; the first n-1 are full */
    bool outside;                      /* any kernel is outside the calibrated range */
    struct kernel_cost full, last;     /* a full kernel (zero if there is none), and the last one */
    uint64_t booked_full, booked_last; /* kernels that the engine has booked and not counted yet */
};

/* Fills *out for `rows` rows of one op in kernels of chunk_rows rows (0: one dynamic kernel), with
 * some of its columns (0: all). O(1). */
void kernel_run_fill(const struct hwmodel *m, const struct work_shape *shape, enum op_kind op,
                     uint8_t device, uint8_t graph, uint32_t rows, uint32_t chunk_rows,
                     uint32_t columns, struct kernel_run *out);
static inline int64_t kernel_run_total_ns(const struct kernel_run *k)
{
    return (int64_t)(k->n - 1) * k->full.t_ns + k->last.t_ns;
}

static inline double kernel_run_total_bytes(const struct kernel_run *k)
{
    return k->full.bytes * (double)(k->n - 1) + k->last.bytes;
}

static inline double kernel_run_total_flop(const struct kernel_run *k)
{
    return k->full.flop * (double)(k->n - 1) + k->last.flop;
}
