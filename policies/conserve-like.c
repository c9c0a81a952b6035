/* conserve-like: ConServe's harvesting of offline work (clauses.md E.12, from the abstract, hence
 * -like). All online work comes first. Offline tokens join while the annotated time of the
 * iteration stays within the SLOs of its online members. For one that decodes, that is the time per
 * token; for one that prefills, the time left to its first token. Without online work an iteration
 * is as large as the token budget allows, and an online arrival aborts it at the end of the running
 * layer (a safepoint).
 *
 * Deviations: the source checkpoints KV to host memory as it grows, so that an aborted or evicted
 * request loses nothing. Here host and accelerators share one memory. An abort loses the work of
 * that iteration, and an evicted request is computed again. */
#include "policies/common/coserve.h"

enum { PARAM_TTFT_S = COSERVE_PARAM_COUNT, PARAM_TBT_S, PARAM_SAFEPOINT };

static const struct policy_param params[] = {
    COSERVE_PARAMS,
    [PARAM_TTFT_S] = POLICY_NUMBER("ttft_slo_s", 2, 0, 1e6,
                                   "online first-token SLO where the trace has none, s (ours)"),
    [PARAM_TBT_S] = POLICY_NUMBER("tbt_slo_s", 0.2, 0, 1e6,
                                  "online per-token SLO where the trace has none, s (ours)"),
    [PARAM_SAFEPOINT] = POLICY_BOOL("safepoint", true,
                                    "online arrivals abort an offline iteration at a layer (E.12)"),
    {.name = NULL},
};

/* The time that an online request allows its iteration. */
static int64_t allowance_ns(const struct sched *s, const struct request *r)
{
    if (r->first_token_ns != TIME_NEVER_NS) {
        return r->tbt_slo_ns != TIME_NEVER_NS ? r->tbt_slo_ns
                                              : units_ns_from_s(param_number(s, PARAM_TBT_S));
    }
    int64_t slo = r->ttft_slo_ns != TIME_NEVER_NS ? r->ttft_slo_ns
                                                  : units_ns_from_s(param_number(s, PARAM_TTFT_S));
    int64_t left = r->arrival_ns + slo - s->now_ns;
    /* 0 if it is late already. */
    return left > 0 ? left : 0;
}

static int64_t conserve_budget_ns(struct sched *s, const struct coserve *c)
{
    int64_t least = TIME_NEVER_NS;
    for (uint32_t i = 0; i < c->it.batch.n; i++) {
        int64_t own = allowance_ns(s, c->it.batch.segments[i].request);
        least = own < least ? own : least;
    }
    return least;
}

static int64_t conserve_predict_ns(struct sched *s, const struct work_shape *w)
{
    const struct coserve *c = s->state;
    return cost_iteration_ns(s, w, c->it.device);
}

static int conserve_init(struct sched *s)
{
    return coserve_init(s, (struct coserve_rules){.safepoint = param_bool(s, PARAM_SAFEPOINT),
                                                  .predict_ns = conserve_predict_ns,
                                                  .budget_ns = conserve_budget_ns});
}

static const char *const ablations[] = {"safepoint=false", NULL};

const struct policy_ops policy_conserve_like_ops = {
    .name = "conserve-like",
    .summary = "offline work in online iterations within their SLO, layer safepoints (ConServe)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct coserve),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = conserve_init,
    .exit = iteration_exit,
    ITERATION_HOOKS,
};
