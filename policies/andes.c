/* andes: token delivery against reading speed (clauses.md E.23; Andes, arXiv 2404.16283). A user
 * expects the first token after ttft_s, and then reads at a constant speed, but no more tokens than
 * have arrived. Quality of experience (QoE) is the area under the curve of tokens read over the
 * area under the expected one.
 *
 *   gain   QoE after the horizon if the request is served from now on, less QoE if it waits
 *          (0 while the user has enough unread tokens)
 *   order  gain per token of context, largest first: the greedy packing of the paper's knapsack
 *
 * A request that is not taken keeps its KV until memory is short, so a preemption costs nothing
 * while the user has tokens to read.
 *
 * Deviations: the paper searches the batch size; here max_batch and token_budget are given, and the
 * speed of a request is that of its own decodes. It limits preemptions per request, because KV is
 * swapped or computed again; here it stays. It acts only if memory is nearly full; here the order
 * matters only if not all requests fit. Classes are not in the paper (`class`). */
#include "policies/common/iter.h"

enum { ANDES_TTFT = ITER_PARAM_COUNT, ANDES_SPEED, ANDES_HORIZON, ANDES_PER_TOKEN };

static const struct policy_param params[] = {
    ITER_PARAMS,
    [ANDES_TTFT] = POLICY_NUMBER("ttft_s", 1, 0, 1e6, "expected time to the first token, s"),
    [ANDES_SPEED] = POLICY_NUMBER("read_tokens_per_s", 4.8, 1e-3, 1e6, "speed of reading"),
    [ANDES_HORIZON] = POLICY_NUMBER("horizon_s", 1, 1e-6, 1e6,
                                    "how far ahead serving and waiting differ, s (ours)"),
    [ANDES_PER_TOKEN] =
        POLICY_BOOL("per_token", true, "gain per token of context; off: the gain alone"),
    {.name = NULL},
};

struct andes_request {
    struct iter_request iter;
    double read_tokens;
    uint32_t arrived_tokens;
    int64_t at_ns;              /* instant of the two members above */
    double token_s, lead_s;     /* isolated time of its next token, and of the rest of its prompt */
    uint32_t length, kv_tokens; /* length and KV for which they were computed; 0: not yet */
};

/* Tokens read in `s` seconds from a buffer that gets `per_s` tokens a second. *area: the area under
 * their curve. */
static double read_in(double buffer, double per_s, double speed, double s, double *area)
{
    double empty_s = per_s < speed ? buffer / (speed - per_s) : s;
    double full_s = empty_s < s ? empty_s : s; /* reading speed first, then arrival rate */
    double rest_s = s - full_s;
    *area = speed * full_s * full_s / 2.0 + speed * full_s * rest_s + per_s * rest_s * rest_s / 2.0;
    return speed * full_s + per_s * rest_s;
}

/* The user begins to read when the first token is expected. */
static int64_t begins_ns(struct sched *s, const struct request *r)
{
    return r->arrival_ns + units_ns_from_s(param_number(s, ANDES_TTFT));
}

/* Updates read_tokens to now. */
static void read_on(struct sched *s, const struct request *r)
{
    struct andes_request *x = r->own;
    int64_t from_ns = begins_ns(s, r);
    from_ns = from_ns > x->at_ns ? from_ns : x->at_ns;
    if (from_ns < s->now_ns) {
        double area = 0.0;
        x->read_tokens +=
            read_in(x->arrived_tokens - x->read_tokens, 0.0, param_number(s, ANDES_SPEED),
                    units_s_from_ns(s->now_ns - from_ns), &area);
        x->at_ns = s->now_ns;
    }
}

/* Tokens read before the horizon, or in it in either case, are in both areas. */
static double gain(struct sched *s, const struct request *r)
{
    const struct iter *it = s->state;
    struct andes_request *x = r->own;
    double speed = param_number(s, ANDES_SPEED);
    if (x->length != request_length(r) || x->kv_tokens != r->kv_tokens) {
        x->length = request_length(r);
        x->kv_tokens = r->kv_tokens;
        x->token_s = units_s_from_ns(iter_decode_ns(s, r, it->it.device, 1));
        x->lead_s = units_s_from_ns(iter_prefill_ns(s, r, it->it.device));
    }
    double token_s = x->token_s;
    double lead_s = x->lead_s;
    double to_begin_s = units_s_from_ns(begins_ns(s, r) - s->now_ns);
    double reads_s = param_number(s, ANDES_HORIZON);
    double expected_s = reads_s - to_begin_s;
    double buffer = x->arrived_tokens - x->read_tokens;
    double served_buffer = buffer;
    if (to_begin_s > 0.0) { /* until then tokens only arrive */
        reads_s -= to_begin_s;
        served_buffer += lead_s < to_begin_s ? (to_begin_s - lead_s) / token_s : 0.0;
        lead_s = lead_s > to_begin_s ? lead_s - to_begin_s : 0.0;
    }
    if (reads_s <= 0.0) {
        return 0.0; /* no token is expected in the horizon */
    }
    double before_s = lead_s < reads_s ? lead_s : reads_s;
    double waits = 0.0;
    double first = 0.0;
    double then = 0.0;
    (void)read_in(buffer, 0.0, speed, reads_s, &waits);
    double read = read_in(served_buffer, 0.0, speed, before_s, &first);
    (void)read_in(served_buffer - read, 1.0 / token_s, speed, reads_s - before_s, &then);
    double served = first + read * (reads_s - before_s) + then;
    return served > waits ? (served - waits) / (speed * expected_s * expected_s / 2.0) : 0.0;
}

static double andes_key(struct sched *s, const struct request *r)
{
    read_on(s, r);
    double tokens = param_bool(s, ANDES_PER_TOKEN) ? (double)request_length(r) : 1.0;
    /* Rounded to a billionth, so that arrival decides between gains that differ by rounding only.
     */
    return -1e3 * nearbyint(1e9 * gain(s, r)) / tokens;
}

static void andes_served(struct sched *s, const struct request *r, const struct segment *seg UNUSED,
                         int64_t elapsed_ns UNUSED)
{
    struct andes_request *x = r->own;
    read_on(s, r);
    x->arrived_tokens = r->generated_tokens;
}

/* All gains change with time. */
static void andes_refresh(struct sched *s)
{
    const struct iter *it = s->state;
    if (it->it.running.pass == NULL || param_int(s, ITER_PREEMPT) != ITER_PREEMPT_ITERATION) {
        iter_rekey_all(s);
    }
}

static const struct iter_order order = {
    .key = andes_key, .served = andes_served, .refresh = andes_refresh};

static int andes_init(struct sched *s)
{
    return iter_init(s, &order);
}

static const char *const ablations[] = {"per_token=false", NULL};

const struct policy_ops policy_andes_ops = {
    .name = "andes",
    .summary = "token delivery against reading speed: largest gain in QoE first (Andes)",
    .contract = POLICY_CONTRACT,
    .state_size_bytes = sizeof(struct iter),
    .request_state_size_bytes = sizeof(struct andes_request),
    .params = params,
    .ablations = ablations,
    .init = andes_init,
    ITER_HOOKS_BUT_EXIT,
    .exit = iter_exit,
};
