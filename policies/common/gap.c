#include "policies/common/gap.h"

#include <math.h>

#include "policies/common/blocks.h"

const char *const gap_kv_choices[] = {"cache",     "preserve", "discard",  "swap",
                                      "infercept", "ttl",      "reactive", NULL};

void gap_init(struct sched *s, struct gap *g, uint32_t kv, uint32_t expected_s)
{
    g->rule = (enum gap_kv)param_int(s, kv);
    g->expected_ns = units_ns_from_s(param_number(s, expected_s));
    SIM_ASSERT(g->n == 0 && g->n_fresh == 0 && gap_ok(g)); /* zeroed state */
}

/* A session is kept, done, or undecided. Its call began when its answer ended. */
static bool session_ok(const struct sched *s, const struct gap_session *x)
{
    return !(x->kept && x->done) && x->since_ns <= s->now_ns && x->next_ns >= x->since_ns &&
           x->tokens > 0 && x->model < s->n_models;
}

/* Index of a session, or `n`. */
static uint32_t place_of(const struct gap *g, uint32_t session_id)
{
    uint32_t i = 0;
    while (i < g->n && g->at[i].session_id != session_id) {
        i++;
    }
    return i;
}

void gap_fini(struct gap *g)
{
    free(g->at);
    free(g->fresh);
    g->at = NULL;
    g->fresh = NULL;
}

void gap_finished(struct sched *s, struct gap *g, const struct request *r)
{
    if (g->rule == GAP_CACHE || g->rule == GAP_REACTIVE || !r->calls_tool) {
        return;
    }
    SIM_ASSERT(r->state == REQUEST_STATE_FINISHED); /* calls_tool is valid then */
    SIM_ASSERT(place_of(g, r->session_id) == g->n); /* one turn at a time */
    /* Rule `cache` is the core's default and needs no list. */
    LIST_ADD(g->at, g->n,
             (struct gap_session){.session_id = r->session_id,
                                  .tokens = r->kv_tokens,
                                  .model = r->model,
                                  .since_ns = s->now_ns,
                                  .next_ns = s->now_ns});
    SIM_ASSERT(session_ok(s, &g->at[g->n - 1]) && gap_ok(g));
}

void gap_arrived(struct sched *s, struct gap *g, const struct request *r)
{
    SIM_ASSERT(r->arrival_ns <= s->now_ns && gap_ok(g));
    if (g->rule == GAP_REACTIVE && r->cls == REQUEST_CLASS_REACTIVE) {
        LIST_ADD(g->fresh, g->n_fresh, r);
    }
    for (uint32_t i = 0; r->turn > 0 && i < g->n; i++) {
        if (g->at[i].session_id == r->session_id) {
            /* The gap that a scheduler sees, from answer to next turn. Only the last 64 count, so
             * that a time to live adapts to changes.
             */
            SIM_ASSERT(session_ok(s, &g->at[i]));
            g->history_ns[g->n_history++ % GAP_HISTORY] = s->now_ns - g->at[i].since_ns;
            g->at[i] = g->at[--g->n];
            SIM_ASSERT(place_of(g, r->session_id) == g->n);
            return;
        }
    }
}

bool gap_holds(struct gap *g, const struct request *r)
{
    if (r->kv_swapped) {
        SIM_ASSERT(r->turn > 0 && r->generated_tokens == 0); /* KV of the previous turn */
        reqq_push(&g->back, r);
    }
    return r->kv_swapped;
}

/* ---- actions ---- */

static void keep(struct sched *s, struct gap_session *x)
{
    SIM_ASSERT(!x->done && session_ok(s, x));
    if (!x->kept) {
        x->kept = sched_kv_move(s, kv_of_session(x->session_id), KV_MEMORY) == 0;
        x->done = !x->kept; /* it was dropped before it could be pinned */
        (void)sched_note(s, "gap_kept", x->kept);
    }
    SIM_ASSERT(x->kept != x->done); /* decided */
}

static void discard(struct sched *s, struct gap_session *x)
{
    SIM_ASSERT(!x->done && session_ok(s, x));
    (void)sched_note(s, "gap_discarded",
                     sched_kv_move(s, kv_of_session(x->session_id), KV_NOWHERE) == 0);
    x->done = true;
    x->kept = false;
    SIM_ASSERT(session_ok(s, x));
}

int64_t gap_transfer_ns(const struct sched *s, uint32_t model, uint32_t tokens)
{
    double bytes = (double)tokens * sched_kv_token_bytes(s, model) + sched_kv_state_bytes(s, model);
    SIM_ASSERT(bytes > 0.0 && s->machine->swap_bytes_per_s > 0.0);
    return s->machine->swap_fixed_ns + (int64_t)(bytes / s->machine->swap_bytes_per_s * 1e9);
}

static void swap_out(struct sched *s, struct gap *g, struct gap_session *x)
{
    SIM_ASSERT(!x->done && session_ok(s, x));
    bool ok = sched_kv_move(s, kv_of_session(x->session_id), KV_FLASH) == 0;
    (void)sched_note(s, "gap_swapped", ok);
    if (ok) {
        /* transfers are sequential */
        int64_t from_ns = g->swap_until_ns > s->now_ns ? g->swap_until_ns : s->now_ns;
        g->swap_until_ns = from_ns + gap_transfer_ns(s, x->model, x->tokens);
        x->out_ns = g->swap_until_ns;
    }
    x->done = true;
    x->kept = false;
    SIM_ASSERT(session_ok(s, x) && gap_ok(g));
}

/* ---- infercept ---- */

/* KV bytes of all but sessions with a running tool. sched_kv_free_tokens counts tokens of the model
 * with most bytes a token. */
static double others_bytes(struct sched *s, const struct gap *g)
{
    uint64_t capacity = sched_kv_capacity_tokens(s), free = sched_kv_free_tokens(s);
    double most = 0.0;
    SIM_ASSERT(free <= capacity);
    for (uint32_t i = 0; i < s->n_models; i++) {
        most = fmax(most, sched_kv_token_bytes(s, i));
    }
    double held = (double)(capacity - free) * most;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct gap_session *x = &g->at[i];
        bool here = x->kept || x->out_ns > s->now_ns;
        uint64_t blocks = here ? blocks_of(s, x->tokens + sched_kv_state_tokens(s, x->model)) : 0;
        held -= (double)(blocks * s->kv_block_tokens) * sched_kv_token_bytes(s, x->model);
    }
    return held < 0.0 ? 0.0 : held;
}

struct waste {
    double preserve, discard, swap; /* token-ns, in tokens of the session's model */
};

/* Tokens of memory that a session takes, including recurrent states. */
static double held_tokens(const struct sched *s, const struct gap_session *x)
{
    return (double)(x->tokens + sched_kv_state_tokens(s, x->model));
}

static struct waste waste_of(struct sched *s, const struct gap *g, const struct gap_session *x,
                             double others, gap_prefill_ns *prefill)
{
    int64_t elapsed = s->now_ns - x->since_ns;
    double token_bytes = sched_kv_token_bytes(s, x->model);
    SIM_ASSERT(session_ok(s, x) && others >= 0.0);
    /* Without an estimate, or after its end, the remaining time is expected to equal the elapsed
     * time (E.16: InferCept). */
    int64_t left = g->expected_ns > elapsed ? g->expected_ns - elapsed : elapsed;
    double again = (double)prefill(s, x->model, x->tokens);
    double both_ways = 2.0 * (double)gap_transfer_ns(s, x->model, x->tokens);
    SIM_ASSERT(left >= 0 && again > 0.0); /* wastes are finite and >= 0 */
    double held = held_tokens(s, x);
    return (struct waste){.preserve = (double)left * held,
                          .discard = again * (held - 0.5 * x->tokens + others / token_bytes),
                          .swap = both_ways * held};
}

/* The instant at which the elapsed time has wasted as much as the cheapest alternative. */
static int64_t break_even_ns(const struct sched *s, const struct gap *g,
                             const struct gap_session *x, const struct waste *w)
{
    double out = w->discard < w->swap ? w->discard : w->swap;
    int64_t elapsed = (int64_t)(out / held_tokens(s, x)) + 1;
    /* Before the expected end the remaining time only shrinks, so a new decision would be the same.
     */
    elapsed = elapsed > g->expected_ns ? elapsed : g->expected_ns + 1;
    SIM_ASSERT(out >= 0.0 && elapsed > 0); /* after the begin of the call */
    return x->since_ns + elapsed;
}

/* The due session that wastes most without a swap. It gets the swap budget. */
static struct gap_session *most_wasteful(struct sched *s, struct gap *g, double others,
                                         gap_prefill_ns *prefill, struct waste *out)
{
    struct gap_session *most = NULL;
    double worst = -1.0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->at[i].due) {
            struct waste w = waste_of(s, g, &g->at[i], others, prefill);
            /* Without a swap it wastes the lesser of these. Compare bytes, because tokens of two
             * models differ. */
            double least = fmin(w.preserve, w.discard) * sched_kv_token_bytes(s, g->at[i].model);
            most = least > worst ? &g->at[i] : most;
            *out = least > worst ? w : *out;
            worst = least > worst ? least : worst;
        }
    }
    SIM_ASSERT((most == NULL) == (worst < 0.0)); /* NULL if none is due */
    return most;
}

static void infercept(struct sched *s, struct gap *g, gap_prefill_ns *prefill)
{
    bool any = false;
    for (uint32_t i = 0; i < g->n; i++) {
        g->at[i].due = !g->at[i].done && s->now_ns >= g->at[i].next_ns;
        any = any || g->at[i].due;
    }
    /* Computed once, so that decisions of one instant do not depend on their order. */
    double others = any ? others_bytes(s, g) : 0.0;
    struct waste w = {0};
    struct gap_session *x;
    while (any && (x = most_wasteful(s, g, others, prefill, &w)) != NULL) {
        x->due = false;
        bool budget = s->now_ns >= g->swap_until_ns;
        if (budget && w.swap < w.preserve && w.swap < w.discard) {
            swap_out(s, g, x);
        } else if (w.discard < w.preserve) {
            discard(s, x);
        } else {
            keep(s, x);
            x->next_ns = break_even_ns(s, g, x, &w);
            /* A swap would be cheapest, but another transfer has the budget. Decide again when that
             * ends, not at every call of schedule. */
            if (x->next_ns <= s->now_ns) {
                x->next_ns = g->swap_until_ns; /* only the budget is lacking */
            }
            SIM_ASSERT(x->done || x->next_ns > s->now_ns); /* not due again at once */
        }
        SIM_ASSERT(session_ok(s, x));
    }
}

/* ---- ttl ---- */

/* Returns the time to live t with the least mean cost over the observed gaps d. A gap costs min(d,
 * t), for which memory is held, plus `again` if d > t, because the prompt is then recomputed.
 * Without observations t is `again`, which costs at most twice the best t.
 */
static int64_t time_to_live_ns(const struct gap *g, int64_t again)
{
    uint32_t n = g->n_history < GAP_HISTORY ? (uint32_t)g->n_history : GAP_HISTORY;
    if (g->expected_ns > 0 || n == 0) {
        return g->expected_ns > 0 ? g->expected_ns : again;
    }
    /* The minimum is at an observed gap or at zero: between two gaps only the holding time grows.
     */
    SIM_ASSERT(again > 0 && n <= GAP_HISTORY);
    int64_t best = 0;
    double least = (double)again * n;
    for (uint32_t i = 0; i < n; i++) {
        int64_t t = g->history_ns[i];
        double cost = 0.0;
        for (uint32_t j = 0; j < n; j++) {
            int64_t d = g->history_ns[j];
            cost += d > t ? (double)(t + again) : (double)d;
        }
        if (cost < least || (cost == least && t < best)) {
            least = cost;
            best = t;
        }
    }
    SIM_ASSERT(best >= 0 && least <= (double)again * n); /* at most the cost of t = 0 */
    return best;
}

static void live(struct sched *s, struct gap *g, struct gap_session *x, gap_prefill_ns *prefill)
{
    SIM_ASSERT(!x->done && session_ok(s, x));
    if (!x->kept) {
        /* one more ns: a tool that takes exactly this long is in time */
        x->next_ns = x->since_ns + time_to_live_ns(g, prefill(s, x->model, x->tokens)) + 1;
        keep(s, x);
    } else if (s->now_ns >= x->next_ns) {
        discard(s, x);
    }
}

/* ---- */

/* Sets a timer, unless it is set already. */
static void wake_at(struct sched *s, struct gap *g, int64_t at_ns)
{
    if (at_ns != TIME_NEVER_NS && at_ns > s->now_ns && at_ns != g->timer_ns) {
        g->timer_ns = at_ns;
        (void)sched_set_timer(s, at_ns);
    }
}

void gap_schedule(struct sched *s, struct gap *g, gap_prefill_ns *prefill)
{
    SIM_ASSERT(gap_ok(g));
    /* If memory is short the first request waits, and the others behind it. */
    while (!reqq_empty(&g->back) && sched_kv_move(s, kv_of(g->back.head), KV_MEMORY) == 0) {
        (void)reqq_pop(&g->back);
    }
    while (g->n_fresh > 0) {
        const struct request *r = g->fresh[--g->n_fresh];
        if (r->state != REQUEST_STATE_SHED) { /* it may leave in the instant in which it arrives */
            (void)sched_kv_rank(s, r, 1);
        }
    }
    if (g->rule == GAP_INFERCEPT) {
        infercept(s, g, prefill);
    }
    int64_t next = TIME_NEVER_NS;
    for (uint32_t i = 0; i < g->n; i++) {
        struct gap_session *x = &g->at[i];
        if (!x->done) {
            switch (g->rule) {
            case GAP_PRESERVE:
                keep(s, x);
                x->next_ns = TIME_NEVER_NS;
                break;
            case GAP_DISCARD:
                discard(s, x);
                break;
            case GAP_SWAP:
                swap_out(s, g, x);
                break;
            case GAP_TTL:
                live(s, g, x, prefill);
                break;
            case GAP_INFERCEPT:
            case GAP_CACHE:
            case GAP_REACTIVE:
                break;
            }
        }
        SIM_ASSERT(x->kept != x->done && session_ok(s, x)); /* all are decided */
        next = !x->done && x->next_ns < next ? x->next_ns : next;
    }
    wake_at(s, g, next);
}

/* Whether a transfer to flash will free memory. A turn that arrives earlier cancels the transfer
 * without notice.
 */
static bool awaits_transfer(struct sched *s, struct gap *g)
{
    wake_at(s, g, g->swap_until_ns);
    return s->now_ns < g->swap_until_ns;
}

bool gap_yield(struct sched *s, struct gap *g)
{
    struct gap_session *oldest = NULL;
    if (awaits_transfer(s, g)) {
        return false;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct gap_session *x = &g->at[i];
        if (x->kept && (oldest == NULL || x->since_ns < oldest->since_ns)) {
            oldest = x;
        }
    }
    if (oldest == NULL) {
        return false;
    }
    oldest->kept = false;
    oldest->done = true;
    SIM_ASSERT(session_ok(s, oldest)); /* done, so no rule pins it again */
    return sched_kv_move(s, kv_of_session(oldest->session_id), KV_CACHE) == 0;
}

bool gap_evict_last(struct sched *s, struct gap *g, const struct reqq *prompts)
{
    const struct request *r = prompts->tail;
    if (awaits_transfer(s, g)) {
        return false;
    }
    while (r != NULL && blocks_held(s, r) == 0) {
        r = reqq_prev(r);
    }
    return r != NULL && sched_kv_move(s, kv_of(r), KV_NOWHERE) == 0;
}
