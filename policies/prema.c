/* prema: predictive multi-task scheduling of PREMA (policies.md E.7). Waiting earns tokens:
 * token += priority * idle / isolated time. Those at or above a threshold are candidates; the
 * candidate with the shortest estimated remaining time runs. Keys of all who wait move with time,
 * so a decision costs O(waiting), unlike every other order here. */
#include "policies/common/iter.h"
#include "sim/base/units.h"

enum { PREMA_RT = ITER_PARAM_COUNT, PREMA_BE, PREMA_EXPECTED };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [PREMA_RT] = {"reactive_priority", PARAM_NUMBER, 9, 0, 1e3, NULL, "high of {1,3,9} (E.7)"},
    [PREMA_BE] = {"proactive_priority", PARAM_NUMBER, 1, 0, 1e3, NULL, "low of {1,3,9} (E.7)"},
    [PREMA_EXPECTED] = {"expected_output", PARAM_INT, 100, 1, 1e6, NULL,
                        "output tokens assumed in the remaining time (ours: datasets' mean)"},
    {.name = NULL},
};

struct prema_request {
    struct iter_request iter;
    double token, isolated_ns, key;
    int64_t since_ns;
    bool joined;
};

static struct prema_request *own(const struct request *r)
{
    return r->slot->data;
}

static double priority(struct sched *s, const struct request *r)
{
    return param_number(s, r->cls == REQUEST_CLASS_REACTIVE ? PREMA_RT : PREMA_BE);
}

static double remaining_ns(struct sched *s, const struct request *r)
{
    const struct iter *it = s->state;
    int64_t left = param_int(s, PREMA_EXPECTED) - r->generated_tokens;
    return (double)(iter_prefill_ns(s, r, it->device) +
                    iter_decode_ns(s, r, it->device, left > 1 ? (uint64_t)left : 1));
}

static double prema_key(struct sched *s, const struct request *r)
{
    struct prema_request *p = own(r);
    if (!p->joined) {
        p->joined = true;
        p->token = priority(s, r);
        p->isolated_ns = remaining_ns(s, r);
        p->key = p->isolated_ns;
        p->since_ns = s->now_ns;
    }
    return p->key;
}

static void prema_served(struct sched *s, const struct request *r, const struct segment *seg,
                         int64_t elapsed_ns)
{
    (void)seg;
    (void)elapsed_ns;
    own(r)->since_ns = s->now_ns; /* it was not idle */
}

/* Threshold: the largest of {9, 3, 1} not above the largest token. */
static double threshold(double most)
{
    return most >= 9.0 ? 9.0 : most >= 3.0 ? 3.0 : 1.0;
}

static void prema_refresh(struct sched *s)
{
    struct iter *it = s->state;
    if (it->running.pass != NULL) {
        return; /* a decision point is the end of an iteration */
    }
    double most = 0.0;
    for (uint32_t i = 0; i < it->ready.n; i++) {
        const struct request *r = it->ready.a[i];
        struct prema_request *p = own(r);
        p->token += priority(s, r) * (double)(s->now_ns - p->since_ns) / p->isolated_ns;
        p->since_ns = s->now_ns;
        most = p->token > most ? p->token : most;
    }
    for (uint32_t i = 0; i < it->ready.n; i++) {
        struct prema_request *p = own(it->ready.a[i]);
        p->key = remaining_ns(s, it->ready.a[i]) + (p->token >= threshold(most) ? 0.0 : 1e14);
    }
    /* Rebuild the heap: every key may have moved either way. */
    struct heap old = it->ready;
    it->ready = (struct heap){0};
    for (uint32_t i = 0; i < old.n; i++) {
        heap_node(old.a[i])->index = 0;
        iter_request_arrived(s, old.a[i]);
    }
    heap_fini(&old);
}

static const struct iter_order order = {
    .key = prema_key, .served = prema_served, .refresh = prema_refresh};

static int prema_init(struct sched *s)
{
    return iter_init(s, &order);
}

const struct policy_ops policy_prema_ops = {
    .name = "prema",
    .summary = "token-based predictive order of PREMA (policies.md E.7)",
    .api_version = POLICY_API_VERSION,
    .needs = CAP_SPANS | CAP_KV_EVICT,
    .state_size_bytes = sizeof(struct iter),
    .request_state_size_bytes = sizeof(struct prema_request),
    .params = params,
    .init = prema_init,
    ITER_HOOKS,
};
