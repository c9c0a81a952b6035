/* vllm-priority: vLLM's priority scheduling (clauses.md E.3 [code]: vllm-project/vllm). Key (class,
 * priority, arrival), lower first. It orders admission; if KV is short, the running request with
 * the largest key is recomputed. v0 also preempts the worst running request while a better one
 * waits and cannot be admitted. Neither interrupts an iteration; `interrupt` adds the kernel-level
 * preemption of XSched and Agent.xpu to vLLM's queue. Parameters: the table below. Deviations: the
 * class comes before the trace's priority (RT 0, BE 1). Its V0 sorts waiting requests only in a
 * step without admissions, so an urgent one may wait behind others until then. In that step it
 * frees places, and the request enters in the next step; here the order always holds, and the
 * request enters in the same step. Others: policies/common/vllm.h. */
#include "policies/common/vllm.h"

enum {
    PARAM_MODE = VLLM_PARAM_COUNT,
    PARAM_FORCE,
    PARAM_PRIORITY,
    PARAM_CHUNKED,
    PARAM_WATERMARK,
    PARAM_FULL_ISL,
    PARAM_INTERRUPT
};
enum { MODE_V0, MODE_V1 };

static const char *const modes[] = {"v0", "v1", NULL};
static const struct policy_param params[] = {
    VLLM_PARAMS(512),
    [PARAM_MODE] = POLICY_CHOICE("mode", MODE_V1, modes, "scheduler underneath (E.3)"),
    [PARAM_FORCE] =
        POLICY_BOOL("force_preempt", true,
                    "v0: a waiting head replaces a worse running request (E.3; off: ablation)"),
    [PARAM_PRIORITY] =
        POLICY_BOOL("by_priority", true, "use the key; off: arrival order (ablation)"),
    [PARAM_CHUNKED] =
        POLICY_BOOL("chunked_prefill", true, "v1: cut prompts at the budget (vLLM: on)"),
    [PARAM_WATERMARK] = POLICY_NUMBER("watermark_frac", 0.01, 0, 0.5,
                                      "v0: share of KV that admissions leave free (vLLM: 0.01)"),
    [PARAM_FULL_ISL] =
        POLICY_BOOL("reserve_full_isl", true,
                    "v1: admit a request only if all of its prompt fits in free KV now "
                    "(scheduler_reserve_full_isl: vLLM from 0.19 on); off: its first chunk"),
    [PARAM_INTERRUPT] =
        POLICY_BOOL("interrupt", false,
                    "a waiting request of a better class stops an iteration that has none of it at "
                    "the next kernel, and goes first; the iteration starts over (ours)"),
    {.name = NULL},
};

static int priority_init(struct sched *s)
{
    bool by_priority = param_bool(s, PARAM_PRIORITY);
    struct vllm_rules v1 = {.order = VLLM_RUNNING_FIRST,
                            .chunked = param_bool(s, PARAM_CHUNKED),
                            .prompt_fits = param_bool(s, PARAM_FULL_ISL),
                            .by_priority = by_priority,
                            .interrupt = by_priority && param_bool(s, PARAM_INTERRUPT)};
    struct vllm_rules v0 = {.order = VLLM_PROMPTS_ONLY,
                            .watermark_frac = param_number(s, PARAM_WATERMARK),
                            .by_priority = by_priority,
                            .force_preempt = by_priority && param_bool(s, PARAM_FORCE),
                            .interrupt = by_priority && param_bool(s, PARAM_INTERRUPT)};
    return vllm_init(s, param_int(s, PARAM_MODE) == MODE_V0 ? v0 : v1);
}

static const char *const ablations[] = {"force_preempt=false", "by_priority=false",
                                        "chunked_prefill=false", NULL};

const struct policy_ops policy_vllm_priority_ops = {
    .name = "vllm-priority",
    .summary = "vLLM with priorities: admission order and victims; v0 preempts by force (vLLM)",
    .contract = POLICY_CONTRACT,
    .request_state_size_bytes = sizeof(struct order_node),
    .params = params,
    .ablations = ablations,
    .init = priority_init,
    VLLM_HOOKS,
};
