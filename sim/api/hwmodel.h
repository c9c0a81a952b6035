/* The cost of one kernel, implemented in hwmodels/. The executor takes it as the true cost. The
 * core adds the run's bias and noise (sim.annotation) to make estimates for policies. All functions
 * are pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/pass.h"

struct kernel_query {
    uint8_t device;
    uint8_t graph;
    enum op_kind op;
    uint32_t rows;                  /* rows of this kernel, before padding */
    uint32_t padded_rows;           /* rows computed: chunk_rows in a static kernel, else rows */
    const struct work_shape *shape; /* of the whole pass */
    uint32_t columns; /* share of its weights, in units of 1 / LAUNCH_COLUMNS; 0: all */
};

struct kernel_cost {
    int64_t t_ns;    /* isolated; >= 1 */
    int64_t load_ns; /* the time of its DDR traffic, at the start; then it computes; [1, t_ns] */
    double bytes;    /* DDR traffic */
    double flop;
    bool outside; /* the query is outside the calibrated range */
};

/* A floor that no kernel of an op on a device can beat. In isolation, before t_ns is rounded, n
 * rows over (query, key) pairs and keys take at least
 *   fixed_s + max(row_s max(n, rows_min) + pair_s pairs,
 *                 (bytes + row_bytes n + key_bytes keys) / bytes_per_s)
 * They move at least the bytes in that sum, at bytes_per_s at most. For a share of an op's rows,
 * pairs and keys are the same share of the pass's. experiments/compare/bound.h uses it. */
struct kernel_floor {
    double fixed_s, row_s, rows_min, pair_s;
    double bytes, row_bytes, key_bytes;
    double bytes_per_s; /* > 0; may be infinite */
};

struct hwmodel;

struct hwmodel_ops {
    const char *name;
    /* Cost of one kernel. Precondition: device index valid, rows >= 1. O(1). */
    void (*kernel)(const struct hwmodel *m, const struct kernel_query *q, struct kernel_cost *out);
    /* Ridge intensity I* = P_eff / B_eff of a device (agent-xpu-v2 App. B): below it a kernel is
     * memory-bound. */
    double (*ridge_flop_per_byte)(const struct hwmodel *m, uint8_t device);
    /* The longest context in the calibrated range. With this function, the model guarantees that
     * ops without attention cost the same for shapes with equal rows, prefill_rows and sequences on
     * the same side of this limit. So a frequent caller may cache costs. May be NULL. */
    uint32_t (*context_limit)(const struct hwmodel *m, uint8_t device);
    /* The floor of kernels of one row, or of more. NULL: the floor is 0. */
    void (*floor)(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                  struct kernel_floor *out);
};

struct hwmodel {
    const struct hwmodel_ops *ops;
    const struct machine *machine; /* borrowed */
    const struct llm *llm;         /* borrowed */
    const void *params;            /* private to the implementation */
};

static inline void hwmodel_kernel(const struct hwmodel *m, const struct kernel_query *q,
                                  struct kernel_cost *out)
{
    m->ops->kernel(m, q, out);
}
