/* prema: predictive multi-task scheduling of PREMA (clauses.md E.7). Waiting earns tokens: token +=
 * priority * idle / isolated time. Requests at or above a threshold are candidates; the candidate
 * with the shortest estimated remaining time runs. Tokens of a waiting request grow linearly, so
 * the instant at which they reach the next threshold is known. Keys change only then, or when the
 * candidates' threshold changes.
 *
 * Deviations: PREMA chooses at each preemption whether to checkpoint the running task or to let it
 * end (drain), whichever costs less. Here the axes `preempt` and `kv` decide it for the whole run;
 * the default is the end of the iteration. PREMA runs one task at a time (max_batch=1). A wait is
 * counted once; the Dysta artifact adds the whole wait since a task last ran at every decision, and
 * chooses the threshold without tasks that have just arrived. */
#include "policies/common/iter.h"

enum { PREMA_RT = ITER_PARAM_COUNT, PREMA_BE, PREMA_EXPECTED };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [PREMA_RT] = POLICY_NUMBER("reactive_priority", 9, 0, 1e3, "high of {1,3,9} (E.7)"),
    [PREMA_BE] = POLICY_NUMBER("proactive_priority", 1, 0, 1e3, "low of {1,3,9} (E.7)"),
    [PREMA_EXPECTED] =
        POLICY_INT("expected_output", 100, 1, 1e6,
                   "output tokens assumed in the remaining time (ours: datasets' mean)"),
    {.name = NULL},
};

static const double thresholds[] = {0.0, 1.0, 3.0, 9.0};
enum { PREMA_BANDS = 4 };

/* Added to the remaining time, ns, of requests that are no candidates. */
#define PREMA_BEHIND 1e14

struct prema {
    struct iter iter;
    struct order to_rise; /* waiting requests by the instant of their next threshold */
    uint32_t in_band[PREMA_BANDS];
    int threshold; /* lowest band of candidates, >= 1 */
};

struct prema_request {
    struct iter_request iter;
    struct order_node rise; /* key: ns */
    double token, isolated_ns;
    int64_t since_ns; /* instant of `token`; waiting since then */
    int band;         /* thresholds[band] is the largest not above its tokens */
    bool joined;
};

static struct prema_request *own(const struct request *r)
{
    return r->own;
}

static double priority(struct sched *s, const struct request *r)
{
    return param_number(s, r->cls == REQUEST_CLASS_REACTIVE ? PREMA_RT : PREMA_BE);
}

static double remaining_ns(struct sched *s, const struct request *r)
{
    const struct iter *it = s->state;
    /* PREMA knows how long a network runs. Here an expected mean replaces the unknown length of the
     * answer. An answer beyond the mean counts as one token from its end. */
    int64_t left = param_int(s, PREMA_EXPECTED) - r->generated_tokens;
    return (double)(iter_prefill_ns(s, r, it->it.device) +
                    iter_decode_ns(s, r, it->it.device, left > 1 ? (uint64_t)left : 1));
}

/* Adds the tokens of waiting until t. */
static void earn(struct sched *s, const struct request *r, int64_t t_ns)
{
    struct prema_request *p = own(r);
    if (t_ns > p->since_ns) {
        /* Relative to the isolated time, so that tokens measure slowdown. */
        p->token += priority(s, r) * (double)(t_ns - p->since_ns) / p->isolated_ns;
        p->since_ns = t_ns;
    }
}

static int band_of(double token)
{
    int band = 0;
    while (band + 1 < PREMA_BANDS && token >= thresholds[band + 1]) {
        band++;
    }
    return band;
}

static void settle(struct sched *s, const struct request *r, int band)
{
    struct prema *q = s->state;
    struct prema_request *p = own(r);
    q->in_band[p->band]--;
    p->band = band;
    q->in_band[band]++;
    order_remove(&q->to_rise, r);
    if (band + 1 < PREMA_BANDS && priority(s, r) > 0) {
        double wait = (thresholds[band + 1] - p->token) * p->isolated_ns / priority(s, r);
        order_add(&q->to_rise, r, (double)p->since_ns + wait);
    }
}

static double prema_key(struct sched *s, const struct request *r)
{
    struct prema *q = s->state;
    struct prema_request *p = own(r);
    double remaining = remaining_ns(s, r);
    if (!p->joined) {
        p->joined = true;
        /* Tokens start at the priority (E.7), so a reactive request is a candidate at once. */
        p->token = priority(s, r);
        p->isolated_ns = remaining;
        p->since_ns = r->arrival_ns;
        earn(s, r, s->now_ns); /* it may have waited for its model's weights */
        q->in_band[0]++;
        settle(s, r, band_of(p->token));
    } else if (!order_has(&q->to_rise, r)) {
        settle(s, r, p->band); /* it waits again */
    }
    return remaining + (p->band >= q->threshold ? 0.0 : PREMA_BEHIND);
}

static void prema_served(struct sched *s, const struct request *r, const struct segment *seg UNUSED,
                         int64_t elapsed_ns)
{
    earn(s, r, s->now_ns - elapsed_ns);
    own(r)->since_ns = s->now_ns;      /* it was in service */
    int band = band_of(own(r)->token); /* despite rounding, never a lower band */
    settle(s, r, band > own(r)->band ? band : own(r)->band);
}

static void prema_left(struct sched *s, const struct request *r)
{
    struct prema *q = s->state;
    q->in_band[own(r)->band]--;
    order_remove(&q->to_rise, r);
}

/* Decides at the end or stop of an iteration, when no request is in service. */
static void prema_refresh(struct sched *s)
{
    struct prema *q = s->state;
    const bool decides = q->iter.it.running.launch == NULL;
    const struct request *r;
    while (decides && (r = order_first(&q->to_rise)) != NULL &&
           order_node(&q->to_rise, r)->key <= (double)s->now_ns) {
        if (r->pass != NULL) { /* prema_served counts time paused, but not in service */
            order_remove(&q->to_rise, r);
            continue;
        }
        earn(s, r, s->now_ns);
        /* The event gives the band, because rounding may leave the tokens just below it. */
        settle(s, r, own(r)->band + 1);
        iter_rekey(s, r);
    }
    int top = PREMA_BANDS - 1;
    /* The largest threshold of 9, 3 and 1 that any request reaches. If none reaches 1, there is no
     * candidate, and the shortest request runs. */
    while (top > 1 && q->in_band[top] == 0) {
        top--;
    }
    if (decides && top != q->threshold) {
        q->threshold = top;
        iter_rekey_all(s);
    }
}

static const struct iter_order order = {.key = prema_key,
                                        .served = prema_served,
                                        .left = prema_left,
                                        .found = iter_rekey,
                                        .refresh = prema_refresh,
                                        .steady = true};

static int prema_init(struct sched *s)
{
    struct prema *q = s->state;
    q->to_rise.at = offsetof(struct prema_request, rise);
    q->threshold = 1;
    return iter_init(s, &order);
}

const struct policy_ops policy_prema_ops = {
    .name = "prema",
    .summary = "token-based predictive order of PREMA",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct prema),
    .request_state_size_bytes = sizeof(struct prema_request),
    .params = params,
    .init = prema_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = iter_exit,
};
