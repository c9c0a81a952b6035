/* mlfq: FastServe's skip-join multi-level feedback queue (clauses.md E.5). Level k has the quantum
 * q0 2^k. A request enters at the smallest level whose quantum holds its predicted prefill. It
 * drops one level when its time at a level exceeds the quantum, and returns to the top after
 * starving. Arrivals join the back of a level. A served or promoted request returns to the front,
 * so the last of a batch is first (LLMServe/FastServe, scheduler.py).
 *
 * Deviations: a scan promotes in order of waiting, gives a whole quantum, and leaves requests of
 * the top level where they are. FastServe promotes level by level, the top level included, and
 * keeps the used time. A request that was never served counts as starving there. It runs whole
 * prompts, and its budget is for prompts only; here the budget cuts prompts and includes decodes.
 *
 * FastServe swaps KV to the host's memory before it runs short. Here host and accelerators share
 * one memory, and KV that does not fit is dropped and computed again. policies/README.md says what
 * that costs in overload. */
#include "policies/common/iter.h"

enum { MLFQ_Q0 = ITER_PARAM_COUNT, MLFQ_SKIP_JOIN, MLFQ_STARVE, MLFQ_PROMOTE_EVERY, MLFQ_FRONT };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [MLFQ_Q0] = POLICY_NUMBER(
        "q0_ms", 100, 0.001, 1e6,
        "quantum of the top level, ms (E.5: one decode iteration, 50 to 120 ms on a SoC)"),
    [MLFQ_SKIP_JOIN] = POLICY_BOOL("skip_join", true, "enter by predicted prefill time"),
    [MLFQ_STARVE] = POLICY_NUMBER("starve_s", 3, 0, 1e9,
                                  "unserved time after which a request is promoted, s (E.5)"),
    [MLFQ_PROMOTE_EVERY] =
        POLICY_INT("promote_every", 1000, 1, 1e9, "iterations between promotion scans (E.5)"),
    [MLFQ_FRONT] = POLICY_BOOL(
        "to_front", true, "the served return to the front of their level (E.5); off: by arrival"),
    {.name = NULL},
};

struct mlfq {
    struct iter iter;
    uint64_t iterations;
    uint64_t returns;        /* number of returns to the front of a level */
    struct order to_promote; /* requests below the top, the longest unserved first */
    int64_t last_iteration_ns;
};

struct mlfq_request {
    struct iter_request iter;
    struct order_node promote; /* key: last_ns */
    bool joined;
    int32_t level;
    /* Within the level; 0: at the back, by arrival; negative: returned to the front. */
    double place;
    int64_t at_level_ns, last_ns;
};

/* Distance between levels, above any number of returns. Fifty levels are below ITER_CLASS_STEP. */
#define MLFQ_LEVEL_STEP 1e12

static struct mlfq_request *own(const struct request *r)
{
    return r->own;
}

static double mlfq_key(struct sched *s, const struct request *r)
{
    struct mlfq *q = s->state;
    struct mlfq_request *m = own(r);
    if (!m->joined) {
        m->joined = true;
        m->last_ns = r->arrival_ns;
        double prefill_ms = units_ms_from_ns(iter_prefill_ns(s, r, q->iter.it.device));
        double quantum = param_number(s, MLFQ_Q0);
        /* Skip levels that the prompt would exceed, and from which it would only be demoted. */
        while (param_bool(s, MLFQ_SKIP_JOIN) && quantum < prefill_ms) {
            quantum *= 2;
            m->level++;
        }
    }
    /* The key is computed when a request begins to wait, so it is added here. A request at the top
     * cannot be promoted. */
    if (m->level > 0 && !order_has(&q->to_promote, r)) {
        order_add(&q->to_promote, r, (double)m->last_ns);
    }
    return m->level * MLFQ_LEVEL_STEP + m->place;
}

static void to_front(struct sched *s, struct mlfq_request *m)
{
    struct mlfq *q = s->state;
    m->place = param_bool(s, MLFQ_FRONT) ? -(double)++q->returns : 0.0;
}

static void mlfq_served(struct sched *s, const struct request *r, const struct segment *seg UNUSED,
                        int64_t elapsed_ns)
{
    struct mlfq *q = s->state;
    struct mlfq_request *m = own(r);
    q->iterations += q->last_iteration_ns != s->now_ns; /* count passes, not members */
    q->last_iteration_ns = s->now_ns;
    m->at_level_ns += elapsed_ns;
    m->last_ns = s->now_ns;
    order_remove(&q->to_promote, r); /* until it waits again */
    if (units_ms_from_ns(m->at_level_ns) > ldexp(param_number(s, MLFQ_Q0), m->level)) {
        m->level++;
        m->at_level_ns = 0;
    }
    to_front(s, m);
}

/* Promotes starving requests to the top level, once every promote_every iterations. */
static void mlfq_refresh(struct sched *s)
{
    struct mlfq *q = s->state;
    if (q->iterations < (uint64_t)param_int(s, MLFQ_PROMOTE_EVERY)) {
        return;
    }
    /* Scans are rare, as in FastServe: a request that starves between two of them waits for the
     * next. */
    q->iterations = 0;
    double latest = (double)(s->now_ns - units_ns_from_s(param_number(s, MLFQ_STARVE)));
    const struct request *r;
    while ((r = order_first(&q->to_promote)) != NULL &&
           order_node(&q->to_promote, r)->key <= latest) {
        struct mlfq_request *m = own(r);
        order_remove(&q->to_promote, r);
        if (r->pass == NULL) { /* a request in service does not wait */
            m->level = 0;
            m->at_level_ns = 0;
            to_front(s, m);
            iter_rekey(s, r);
        }
    }
}

static void mlfq_left(struct sched *s, const struct request *r)
{
    struct mlfq *q = s->state;
    order_remove(&q->to_promote, r);
}

static const struct iter_order order = {
    .key = mlfq_key, .served = mlfq_served, .left = mlfq_left, .refresh = mlfq_refresh};

static int mlfq_init(struct sched *s)
{
    struct mlfq *q = s->state;
    q->to_promote.at = offsetof(struct mlfq_request, promote);
    return iter_init(s, &order);
}

static const char *const ablations[] = {"skip_join=false", NULL};

const struct policy_ops policy_mlfq_ops = {
    .name = "mlfq",
    .summary = "FastServe's skip-join multi-level feedback queue",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct mlfq),
    .request_state_size_bytes = sizeof(struct mlfq_request),
    .params = params,
    .ablations = ablations,
    .init = mlfq_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = iter_exit,
};
