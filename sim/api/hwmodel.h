/* The cost of one kernel. Implemented in hwmodels/. The executor uses it as the truth. The core
 * uses it for the estimates of policies (annotations), and adds the run's bias and noise to them
 * (sim.annotation). Pure functions of their arguments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/api/device.h"
#include "sim/api/pass.h"

struct kernel_query {
    uint8_t device;
    uint8_t graph;
    enum op_kind op;
    uint32_t rows;        /* rows of this kernel, before padding */
    uint32_t padded_rows; /* rows the device pays: chunk_rows for a static kernel, else rows */
    const struct work_shape *shape; /* of the whole pass */
    uint32_t columns;               /* of LAUNCH_COLUMNS of its weights; 0: all */
};

struct kernel_cost {
    int64_t t_ns;    /* isolated; >= 1 */
    int64_t load_ns; /* its bytes move in the first so many, then it computes; [1, t_ns] */
    double bytes;    /* DDR traffic */
    double flop;
    bool outside; /* outside the validity envelope of the calibration */
};

/* A floor that no kernel of an op on a device can beat. In isolation, before t_ns is rounded, n
 * rows over (query, key) pairs and keys take at least
 *   fixed_s + max(row_s max(n, rows_min) + pair_s pairs,
 *                 (bytes + row_bytes n + key_bytes keys) / bytes_per_s)
 * They move at least those bytes, at bytes_per_s at most. A share of an op's rows counts its share
 * of the pass's pairs and keys. Bounds rest on it (experiments/compare/bound.h). */
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
    /* The longest context inside the envelope. A model that has this function guarantees a property
     * of ops without attention. Their kernels depend on the shape only by its rows, prefill rows
     * and sequences, and on whether its context is longer than this limit. So a frequent caller may
     * keep their costs. May be NULL. */
    uint32_t (*context_limit)(const struct hwmodel *m, uint8_t device);
    /* The floor of kernels that pay one row, or more than one. NULL: the model has no floor but 0.
     */
    void (*floor)(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                  struct kernel_floor *out);
};

struct hwmodel {
    const struct hwmodel_ops *ops;
    const struct machine *machine; /* borrowed */
    const struct llm *llm;         /* borrowed */
    const void *params;            /* the form's own */
};

static inline void hwmodel_kernel(const struct hwmodel *m, const struct kernel_query *q,
                                  struct kernel_cost *out)
{
    m->ops->kernel(m, q, out);
}
