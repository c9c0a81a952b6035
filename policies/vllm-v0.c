/* vllm-v0: vLLM's first scheduler (clauses.md E.1 [code]: vllm-project/vllm). A step is either the
 * whole prompts of all requests that can be admitted, in arrival order up to the first that cannot,
 * or one token for every running request. If KV is short, the latest arrival is recomputed; it
 * waits at the front. Parameters: the table below. Deviations: policies/common/vllm.h. */
#include "policies/common/vllm.h"

enum { PARAM_WATERMARK = VLLM_PARAM_COUNT, PARAM_MIXED };

static const struct policy_param params[] = {
    VLLM_PARAMS(512),
    [PARAM_WATERMARK] = POLICY_NUMBER("watermark_frac", 0.01, 0, 0.5,
                                      "share of KV that admissions leave free (vLLM: 0.01)"),
    [PARAM_MIXED] =
        POLICY_BOOL("mixed_steps", false, "decodes join the step of prompts (ablation)"),
    {.name = NULL},
};

static int v0_init(struct sched *s)
{
    return vllm_init(
        s, (struct vllm_rules){
               .order = param_bool(s, PARAM_MIXED) ? VLLM_PROMPTS_FIRST : VLLM_PROMPTS_ONLY,
               .watermark_frac = param_number(s, PARAM_WATERMARK),
           });
}

const struct policy_ops policy_vllm_v0_ops = {
    .name = "vllm-v0",
    .summary = "prompts-only or decodes-only steps, recompute preemption (vLLM V0)",
    .contract = POLICY_CONTRACT,
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = v0_init,
    VLLM_HOOKS,
};
