/* pd-static: prefill on the NPU, decode on the iGPU, fixed (clauses.md E.10; Splitwise, DistServe
 * on one SoC). A comparison with it shows the gain of agent-xpu over plain disaggregation. */
#include "policies/common/disagg.h"

static const struct policy_param params[] = {
    DISAGG_PARAMS,
    {.name = NULL},
};

static int pd_static_init(struct sched *s)
{
    return disagg_init(s, UINT64_MAX, 0);
}

const struct policy_ops policy_pd_static_ops = {
    .name = "pd-static",
    .summary = "prefill on the NPU, decode on the iGPU, arrival order (Splitwise, DistServe)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct disagg),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = pd_static_init,
    DISAGG_HOOKS,
};
