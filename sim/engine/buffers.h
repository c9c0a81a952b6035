/* Memory of kernels besides weights, and its collector (agent-xpu-v1 6.5). */
#pragma once

#include "sim/engine/engine.h"

/* A kernel that a device has in memory: one op of a model, for launches of up to so many rows. The
 * layers share it, because weights are its argument. */
struct kernel_buffer {
    struct kernel_buffer *newer, *older; /* by last use; or `older` of those that are free */
    uint32_t model, rows;
    enum op_kind op;
    uint32_t uses; /* launches that hold it */
    double bytes;
};

struct device_buffers {
    struct kernel_buffer *newest, *oldest;
    double bytes; /* of these kernels */
    /* Bytes of compiled attention, which is a resident. Policies give it up, and nobody else. */
    double compiled_bytes;
    uint32_t n_compiled;
};

void buffers_init(struct engine *e);
/* Loads what the launch needs and the device lacks. Returns how much longer the host works for it.
 * The kernels stay until buffers_release. O(kernels of the device). */
int64_t buffers_take(struct engine *e, struct vexec *v);
void buffers_release(struct engine *e, struct vexec *v);
/* Attention is compiled from now on, or it is given up. */
void buffers_compiled(struct engine *e, struct resident_key key, bool there);
/* For assertions: sums and order. */
bool buffers_consistent(const struct engine *e);
