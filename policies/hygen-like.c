/* hygen-like: HyGen's co-location (clauses.md E.12, from the abstract, hence -like). Every
 * iteration has a latency budget: all online work joins first, even beyond the budget, and then
 * offline work within it. A predictor gives the time of an iteration. It is linear in prefill
 * tokens P, decode tokens D and their squares, and fitted at the start to five profiled iterations
 * of each model. Offline requests are admitted by the length of their cached prefix. A share of
 * admissions is by age, so that none starves.
 *
 * Deviations: the source orders offline prompts by the prefixes that they share with each other;
 * here the cached prefix counts. The source profiles a load to find the budget; here it is a
 * parameter. */
#include "policies/common/coserve.h"

enum { PARAM_BUDGET_MS = COSERVE_PARAM_COUNT, PARAM_CONTEXT, PARAM_UTILITY };

static const struct policy_param params[] = {
    COSERVE_PARAMS,
    [PARAM_BUDGET_MS] =
        POLICY_NUMBER("latency_budget_ms", 200, 0, 1e6,
                      "longest predicted iteration that offline work may join, ms (ours: a "
                      "reactive time per token)"),
    [PARAM_CONTEXT] =
        POLICY_INT("context_tokens", 512, 0, 1e6, "context of the profiled decodes, tokens (ours)"),
    [PARAM_UTILITY] =
        POLICY_NUMBER("utility", 0.5, 0, 1,
                      "share of offline admissions by cached prefix, the others by age (ours)"),
    {.name = NULL},
};

struct fit {
    double a0, p1, p2, d1, d2;
};

struct hygen {
    struct coserve co;
    struct fit *fits; /* one for each model */
};

/* ---- predictor ---- */

static double profile_ns(struct sched *s, uint8_t model, uint32_t prompt, uint32_t decodes)
{
    const struct hygen *h = s->state;
    struct work_shape w = {.model = model};
    struct request r = {.state = REQUEST_STATE_QUEUED, .input_tokens = prompt, .model = model};
    if (prompt > 0) {
        cost_shape_add(s, &w, &r, prompt);
    }
    r = (struct request){.state = REQUEST_STATE_DECODE,
                         .kv_tokens = (uint32_t)param_int(s, PARAM_CONTEXT),
                         .model = model};
    for (uint32_t i = 0; i < decodes; i++) {
        cost_shape_add(s, &w, &r, 1);
    }
    return (double)cost_iteration_ns(s, &w, h->co.it.device);
}

/* The quadratic through three prompts, and the two decode terms through two decode batches. */
static void fit(struct sched *s, uint8_t model, struct fit *f)
{
    static const double x[] = {64, 256, 512}; /* prompt tokens, within one iteration's budget */
    double y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = profile_ns(s, model, (uint32_t)x[i], 0);
    }
    double slope = (y[1] - y[0]) / (x[1] - x[0]);
    f->p2 = ((y[2] - y[0]) / (x[2] - x[0]) - slope) / (x[2] - x[1]);
    f->p1 = slope - f->p2 * (x[0] + x[1]);
    f->a0 = y[0] - f->p1 * x[0] - f->p2 * x[0] * x[0];
    /* Time per decode, without the constant, is linear in their number with slope d2. 16 is the
     * default limit of sequences. */
    double few = (profile_ns(s, model, 0, 4) - f->a0) / 4;
    double many = (profile_ns(s, model, 0, 16) - f->a0) / 16;
    f->d2 = (many - few) / (16 - 4);
    f->d1 = few - 4 * f->d2;
}

static int64_t hygen_predict_ns(struct sched *s, const struct work_shape *w)
{
    const struct hygen *h = s->state;
    const struct fit *f = &h->fits[w->model];
    double p = w->prefill_rows;
    double d = w->rows - w->prefill_rows;
    double t = f->a0 + f->p1 * p + f->p2 * p * p + f->d1 * d + f->d2 * d * d;
    return t > 0.0 ? (int64_t)llround(t) : 0;
}

static int64_t hygen_budget_ns(struct sched *s, const struct coserve *c UNUSED)
{
    return units_ns_from_ms(param_number(s, PARAM_BUDGET_MS));
}

/* ---- order of offline work ---- */

/* The waiting request with the largest part of its prompt in the cache now. Every admission looks
 * at all requests, because changes of the cache are not reported. */
static const struct request *longest_prefix(const struct coserve *c)
{
    const struct request *best = c->waiting[REQUEST_CLASS_PROACTIVE].head;
    for (const struct request *r = best; r != NULL; r = reqq_next(r)) {
        bool first = r->kv_tokens == best->kv_tokens && request_before(r, best);
        best = r->kv_tokens > best->kv_tokens || first ? r : best;
    }
    return best;
}

static const struct request *hygen_next_offline(struct sched *s, struct coserve *c)
{
    double share = param_number(s, PARAM_UTILITY);
    double n = (double)c->admissions[REQUEST_CLASS_PROACTIVE];
    /* Spreads admissions by prefix evenly, without a random draw: n * share of any n. */
    bool prefix = floor((n + 1) * share) > floor(n * share);
    return prefix ? longest_prefix(c) : c->waiting[REQUEST_CLASS_PROACTIVE].head;
}

/* ---- hooks ---- */

static int hygen_init(struct sched *s)
{
    int rc = coserve_init(s, (struct coserve_rules){.predict_ns = hygen_predict_ns,
                                                    .budget_ns = hygen_budget_ns,
                                                    .next_offline = hygen_next_offline});
    struct hygen *h = s->state;
    h->fits = xcalloc(s->n_models, sizeof *h->fits);
    for (uint8_t model = 0; rc == 0 && model < s->n_models; model++) {
        fit(s, model, &h->fits[model]);
    }
    return rc;
}

static void hygen_exit(struct sched *s)
{
    struct hygen *h = s->state;
    free(h->fits);
    iteration_exit(s);
}

static const char *const ablations[] = {"offline=always", NULL};

const struct policy_ops policy_hygen_like_ops = {
    .name = "hygen-like",
    .summary = "a latency budget for every iteration, offline work fills it (HyGen)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct hygen),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = hygen_init,
    .exit = hygen_exit,
    ITERATION_HOOKS,
};
