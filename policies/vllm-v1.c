/* vllm-v1: vLLM's present scheduler (clauses.md E.1 [code]: vllm-project/vllm). No phases: a token
 * budget goes to running requests in list order, then, if nothing was preempted, to waiting ones.
 * If KV is short, the last running request is recomputed; it waits at the front. Parameters: the
 * table below. Deviations: policies/common/vllm.h. */
#include "policies/common/vllm.h"

enum {
    PARAM_THRESHOLD = VLLM_PARAM_COUNT,
    PARAM_CHUNKED,
    PARAM_ADMIT,
    PARAM_ASYNC,
    PARAM_FULL_ISL
};

static const struct policy_param params[] = {
    VLLM_PARAMS(512),
    [PARAM_THRESHOLD] =
        POLICY_INT("long_prefill_token_threshold", 0, 0, 1e6,
                   "most tokens of one prompt in an iteration while others are there; 0: no limit "
                   "(vLLM)"),
    [PARAM_CHUNKED] =
        POLICY_BOOL("chunked_prefill", true,
                    "cut prompts at the budget (vLLM: on); off: a prompt waits until it fits"),
    [PARAM_ADMIT] = POLICY_BOOL("admit_after_preemption", false,
                                "admit in an iteration that preempted (ablation; vLLM: never)"),
    [PARAM_ASYNC] =
        POLICY_BOOL("async_scheduling", false,
                    "compose an iteration when the one before it starts (newer vLLM: on)"),
    [PARAM_FULL_ISL] =
        POLICY_BOOL("reserve_full_isl", true,
                    "admit a request only if all of its prompt fits in free KV now "
                    "(scheduler_reserve_full_isl: vLLM from 0.19 on); off: its first chunk"),
    {.name = NULL},
};

static int v1_init(struct sched *s)
{
    return vllm_init(s, (struct vllm_rules){
                            .order = VLLM_RUNNING_FIRST,
                            .threshold = (uint32_t)param_int(s, PARAM_THRESHOLD),
                            .chunked = param_bool(s, PARAM_CHUNKED),
                            .admit_after_preempt = param_bool(s, PARAM_ADMIT),
                            .async = param_bool(s, PARAM_ASYNC),
                            .prompt_fits = param_bool(s, PARAM_FULL_ISL),
                        });
}

static const char *const ablations[] = {"chunked_prefill=false", NULL};

const struct policy_ops policy_vllm_v1_ops = {
    .name = "vllm-v1",
    .summary = "token budget: running, then waiting; recompute preemption (vLLM V1)",
    .contract = POLICY_CONTRACT,
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = v1_init,
    VLLM_HOOKS,
};
