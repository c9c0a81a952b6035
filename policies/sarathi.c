/* sarathi: stall-free batching on one device (clauses.md E.2 [code]: microsoft/sarathi-serve).
 * Every iteration first has a token of each decoding request. Prompts in progress, then waiting
 * ones, get the rest of the budget. A prompt is admitted if KV for all of it and the watermark is
 * free. If KV is short, the last running request is recomputed. Parameters: the table below.
 * Deviations: policies/common/vllm.h. */
#include "policies/common/vllm.h"

enum {
    PARAM_STALL_FREE = VLLM_PARAM_COUNT,
    PARAM_DYNAMIC,
    PARAM_HIGH,
    PARAM_LOW,
    PARAM_STAGES,
    PARAM_SPAN,
    PARAM_WATERMARK
};

static const struct policy_param params[] = {
    VLLM_PARAMS(512),
    [PARAM_STALL_FREE] = POLICY_BOOL("stall_free", true,
                                     "decodes before prompts (E.2); off: prompts first (ablation)"),
    [PARAM_DYNAMIC] = POLICY_BOOL("dynamic_chunk", false,
                                  "the budget falls as a prompt proceeds (E.2: optional)"),
    [PARAM_HIGH] = POLICY_INT("high_chunk", 512, 1, 1e6, "first budget, tokens (ours)"),
    [PARAM_LOW] = POLICY_INT("low_chunk", 128, 1, 1e6, "last budget, tokens (ours)"),
    [PARAM_STAGES] = POLICY_INT("chunk_stages", 4, 2, 1000, "steps between them (ours)"),
    [PARAM_SPAN] =
        POLICY_INT("chunk_span", 2048, 1, 1e6, "prompt tokens over which it falls (ours)"),
    [PARAM_WATERMARK] = POLICY_NUMBER("watermark_frac", 0.01, 0, 0.5,
                                      "share of KV that admissions leave free (Sarathi: 0.01)"),
    {.name = NULL},
};

static int sarathi_init(struct sched *s)
{
    struct vllm_rules rules = {
        .order = param_bool(s, PARAM_STALL_FREE) ? VLLM_DECODES_FIRST : VLLM_PROMPTS_FIRST,
        .chunked = true,
        .watermark_frac = param_number(s, PARAM_WATERMARK),
    };
    if (param_bool(s, PARAM_DYNAMIC)) {
        rules.chunk_high = (uint32_t)param_int(s, PARAM_HIGH);
        rules.chunk_low = (uint32_t)param_int(s, PARAM_LOW);
        rules.chunk_stages = (uint32_t)param_int(s, PARAM_STAGES);
        rules.chunk_span = (uint32_t)param_int(s, PARAM_SPAN);
    }
    int rc = vllm_init(s, rules);
    return rules.chunk_low > rules.chunk_high ? -EINVAL : rc;
}

static const char *const ablations[] = {"stall_free=false", NULL};

const struct policy_ops policy_sarathi_ops = {
    .name = "sarathi",
    .summary =
        "stall-free chunked prefill: decodes, then prompts in a token budget (Sarathi-Serve)",
    .contract = POLICY_CONTRACT,
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = sarathi_init,
    VLLM_HOOKS,
};
