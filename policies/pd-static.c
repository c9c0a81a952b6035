/* pd-static: prefill on the NPU, decode on the iGPU, fixed (policies.md E.10; Splitwise, DistServe
 * on one SoC). What agent-xpu adds to plain disaggregation shows against it. */
#include "policies/common/disagg.h"

enum { PARAM_MARGIN, PARAM_MAX_BATCH };

static const char *const margins[] = {"npu", "igpu", NULL};
static const struct policy_param params[] = {
    [PARAM_MARGIN] = {"margin", PARAM_CHOICE, 1, 0, 1, margins,
                      "where the prompt's last, partial chunk runs: padded on the NPU, or on the "
                      "iGPU (E.10 [S]: the eager default mapping of agent-xpu-v1)"},
    [PARAM_MAX_BATCH] = {"max_batch", PARAM_INT, 1e6, 1, 1e6, NULL,
                         "sequences of a decode iteration (E.10: unlimited); 1: unbatched"},
    {.name = NULL},
};

static int pd_static_init(struct sched *s)
{
    return disagg_init(s, s->state, param_int(s, PARAM_MARGIN) == 0,
                       (uint32_t)param_int(s, PARAM_MAX_BATCH), UINT64_MAX, 0);
}

const struct policy_ops policy_pd_static_ops = {
    .name = "pd-static",
    .summary = "prefill on the NPU, decode on the iGPU, arrival order (Splitwise, DistServe)",
    .api_version = POLICY_API_VERSION,
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT | CAP_KV_EVICT,
    .state_size_bytes = sizeof(struct disagg),
    .params = params,
    .init = pd_static_init,
    DISAGG_HOOKS,
};
