/* Divides rows of an op into kernels: static chunks of an NPU, or one dynamic kernel. */
#include "sim/core/kernels.h"
#include "sim/core/core.h"

void kernel_run_fill(const struct hwmodel *m, const struct work_shape *shape, enum op_kind op,
                     uint8_t device, uint8_t graph, uint32_t rows, uint32_t chunk_rows,
                     uint32_t columns, struct kernel_run *out)
{
    struct kernel_query q = {.device = device,
                             .graph = graph,
                             .op = op,
                             .rows = rows,
                             .padded_rows = rows,
                             .shape = shape,
                             .columns = columns};
    SIM_ASSERT(rows > 0 && rows <= (op == OP_HEAD ? shape->logit_rows : shape->rows));
    *out = (struct kernel_run){.n = 1};
    /* MHA is sequence-level: never cut into chunks (agent-xpu-v2 4.2). One row is a GEMV with its
     * own kernel, also on devices with static shapes; but
     * a numbered graph has only the one it was built with (sd.npu 3.2). */
    bool chunked = chunk_rows > 0 && op != OP_MHA && (rows > 1 || graph > 0);
    if (chunked) {
        out->n = (rows + chunk_rows - 1) / chunk_rows;
        q.padded_rows = chunk_rows;
        if (out->n > 1) {
            q.rows = chunk_rows;
            hwmodel_kernel(m, &q, &out->full);
        }
        q.rows = rows - (out->n - 1) * chunk_rows;
    }
    hwmodel_kernel(m, &q, &out->last);
    out->outside = out->full.outside || out->last.outside;
    SIM_ASSERT(out->n == 1 || out->full.t_ns >= 1);
    SIM_ASSERT(out->last.t_ns >= 1 && out->last.bytes >= 0.0 && out->last.flop >= 0.0);
    SIM_ASSERT(!chunked || (uint64_t)(out->n - 1) * chunk_rows + q.rows == rows);
}
