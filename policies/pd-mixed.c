/* pd-mixed: disaggregation whose decode instance helps out (clauses.md E.10; Splitwise's mixed
 * pool). Like pd-static, but prompts that arrive while too many tokens wait for the NPU are
 * prefilled on the iGPU, together with its decodes. */
#include "policies/common/disagg.h"

enum { PARAM_LIMIT = DISAGG_PARAM_COUNT, PARAM_MIXED };

static const struct policy_param params[] = {
    DISAGG_PARAMS,
    [PARAM_LIMIT] =
        POLICY_INT("limit_tokens", 2048, 0, 1e9,
                   "prompt tokens waiting for the NPU above which a new prompt goes to the iGPU "
                   "(E.10 gives none; ours: a few seconds of NPU prefill)"),
    [PARAM_MIXED] = POLICY_INT("mixed_tokens", 512, 1, 1e6,
                               "prompt tokens of one iteration of the mixed iGPU (clauses.md E.2)"),
    {.name = NULL},
};

static int pd_mixed_init(struct sched *s)
{
    return disagg_init(s, (uint64_t)param_int(s, PARAM_LIMIT), (uint32_t)param_int(s, PARAM_MIXED));
}

const struct policy_ops policy_pd_mixed_ops = {
    .name = "pd-mixed",
    .summary = "as pd-static, but the iGPU prefills too when the NPU falls behind (Splitwise)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_NPU | CAP_IGPU | CAP_SPANS | CAP_ROW_SPLIT | CAP_YIELD_KERNEL | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct disagg),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = pd_mixed_init,
    DISAGG_HOOKS,
};
