/* KV is neither lost nor made. Each policy runs random loads. At every call of `schedule`, the KV
 * that its requests hold and the KV that is free must add up to the capacity. Where models share
 * memory, or prompts their beginnings, that is counted when all requests have left. Meanwhile other
 * programs take memory and give it back. */
#include <string.h>

#include "experiments/conformance/randomload.h"
#include "policies/registry.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

enum { LOADS = 40, MOST = 24 };

static struct scenario sc;
static struct two_models two;
static struct scenario_request q[MOST];
static const struct request *live[MOST];
static uint32_t n_arrived, n_asked, n_live;
static bool adds_up; /* single requests are counted too */
static uint64_t counted, counted_at_end;
static void (*schedule)(struct sched *s);
static char what[96];

static uint64_t whole_blocks(const struct sched *s, uint64_t tokens)
{
    return (tokens + s->kv_block_tokens - 1) / s->kv_block_tokens * s->kv_block_tokens;
}

/* Returns the tokens of the blocks that the request holds, those of its pass and its states
 * included. It returns false where its KV is swapped or its pass overlaps another, since the number
 * is not known then. */
static bool held_by(struct sched *s, const struct request *r, uint64_t *tokens)
{
    uint64_t of_pass = 0;
    for (uint32_t i = 0; r->pass != NULL && i < r->pass->n_segments; i++) {
        const struct segment *g = &r->pass->segments[i];
        of_pass += g->request == r ? g->n_tokens : 0;
    }
    bool is_cache = sched_kv_cached_tokens(s, r) > 0;
    double bytes = sched_model(s, r->model)->kv_state_bytes;
    double token = sched_model(s, r->model)->kv_bytes_per_token;
    uint64_t states = whole_blocks(s, (uint64_t)ceil(bytes / token));
    ck_assert(r->kv_state_tokens == 0 || (r->kv_state_tokens == states && r->pass == NULL));
    ck_assert(r->kv_state_tokens > 0 || r->kv_tokens > 0 || r->pass != NULL || states == 0);
    *tokens = is_cache ? 0 : whole_blocks(s, r->kv_tokens + of_pass) + states - r->kv_state_tokens;
    return !r->kv_swapped && (r->pass == NULL || !r->pass->overlaps);
}

static void count(struct sched *s)
{
    uint64_t held = 0;
    bool known = adds_up || (n_live == 0 && n_arrived == n_asked);
    for (uint32_t i = 0; i < n_asked; i++) { /* a request's part of a cached prefix is its own KV */
        ck_assert(live[i] == NULL || sched_kv_cached_tokens(s, live[i]) <= live[i]->kv_tokens);
    }
    for (uint32_t i = 0; i < n_asked && n_live > 0 && known; i++) {
        uint64_t tokens = 0;
        known = live[i] == NULL || held_by(s, live[i], &tokens);
        held += tokens;
    }
    if (known) {
        uint64_t all = sched_kv_capacity_tokens(s), free = sched_kv_free_tokens(s);
        uint64_t want = all > held ? all - held : 0;
        ck_assert_msg(free == want, "%s, %.6f ms: %llu tokens free, not %llu - %llu", what,
                      units_ms_from_ns(s->now_ns), (unsigned long long)free,
                      (unsigned long long)all, (unsigned long long)held);
        counted++;
        counted_at_end += n_live == 0;
    }
}

static void count_around(struct sched *s)
{
    count(s);
    schedule(s);
    count(s);
}

static void on_arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    (void)now_ns;
    live[r->id] = r;
    n_arrived++;
    n_live++;
}

static void on_left(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    (void)now_ns;
    live[r->id] = NULL;
    n_live--;
}

/* All memory is KV but for the weights, and up to 0.6 of it is taken for a while. Memory that the
 * last event takes is not given back. */
static void take_memory(uint64_t load)
{
    double weights = sc.llm.weight_bytes + (sc.setup.n_more > 0 ? two.other.llm.weight_bytes : 0.0);
    double token = sc.llm.kv_bytes_per_token;
    if (sc.setup.n_more > 0 && two.other.llm.kv_bytes_per_token > token) {
        token = two.other.llm.kv_bytes_per_token;
    }
    double kv =
        token * (sc.setup.kv_capacity_tokens > 0 ? (double)sc.setup.kv_capacity_tokens : 6000.0);
    sc.machine.memory_bytes = weights + kv;
    sc.machine.memory_usable_frac = 1.0;
    for (uint32_t i = 0; i < 6 && load % 2 > 0; i++) {
        sc.events[sc.n_events++] =
            (struct machine_event){.at_ns = MS(20) + MS(60) * (int64_t)i,
                                   .until_ns = TRACE_LAST_NS,
                                   .sets = MACHINE_SETS_MEMORY,
                                   .memory_bytes = kv * (double)((i * 5 + load) % 7) / 10.0};
    }
}

static uint32_t make(uint64_t load, const struct policy_ops *ops)
{
    static struct policy_ops counts;
    static struct observer o = {
        .request_arrived = on_arrived, .request_finished = on_left, .request_shed = on_left};
    uint32_t n = randomload_make(&sc, q, MOST, 7000 + load);
    sc.llm.kv_bytes_per_token = 1e5;
    /* Every third load has states, of at most 700 tokens. Where memory is short, there are states
     * for one request to three. */
    uint64_t states = load % 3 == 1 ? 1 + load * 97 % 700 : 0;
    sc.llm.kv_state_bytes = 1e5 * ((double)states - 0.5 * (states > 0));
    if (sc.setup.kv_capacity_tokens > 0) {
        sc.setup.kv_capacity_tokens += (states + 15) / 16 * 16 * (1 + load / 3 % 3);
    }
    scenario_policy(&sc, ops, "");
    counts = *ops;
    schedule = ops->schedule;
    counts.schedule = count_around;
    sc.setup.policy = &counts;
    sc.setup.observers[sc.setup.n_observers++] = &o;
    n_arrived = n_live = 0;
    n_asked = n;
    memset(live, 0, sizeof live);
    (void)snprintf(what, sizeof what, "%s, load %llu", ops->name, (unsigned long long)load);
    return n;
}

static const struct policy_ops *policy_of(int i)
{
    size_t n = 0;
    return policy_list(&n)[i];
}

/* Graphs take memory that is not counted here, so policies with graphs are left out. */
static bool has_graphs(const struct policy_ops *ops)
{
    return (ops->needs & CAP_LOAD) != 0;
}

/* Requests are single turns here, so that no session keeps KV between two. */
START_TEST(what_requests_hold_and_what_is_free_is_all_there_is)
{
    const struct policy_ops *ops = policy_of(_i);
    counted = counted_at_end = 0;
    adds_up = true;
    for (uint64_t load = 0; load < LOADS && !has_graphs(ops); load++) {
        uint32_t n = make(load, ops);
        for (uint32_t i = 0; i < n; i++) {
            q[i].session_id = q[i].prefix_tokens = 0;
            q[i].arrival_s = 0.02 * i;
        }
        take_memory(load);
        int rc = scenario_run(&sc, q, n, false); /* some machines refuse a policy */
        ck_assert_msg(rc != -ETIMEDOUT, "%s: %s", what, sc.result.message);
        scenario_fini(&sc);
    }
    ck_assert(has_graphs(ops) || (counted > 1000 && counted_at_end > 0));
}
END_TEST

/* The loads have two models, shared beginnings of prompts, and sessions. */
START_TEST(when_everybody_has_left_all_is_free)
{
    const struct policy_ops *ops = policy_of(_i);
    static uint8_t model[MOST];
    static uint32_t group[MOST];
    counted = counted_at_end = 0;
    adds_up = false;
    for (uint64_t load = 0; load < LOADS && !has_graphs(ops); load++) {
        uint32_t n = make(load, ops);
        struct rng r;
        rng_init(&r, rng_key(load, RNG_TEST, 5, 0));
        two_models_init(&sc, &two);
        two.other.llm.kv_bytes_per_token = 1e5 * (1 + rng_below(&r, 6));
        two.other.llm.weight_bytes = 2e8;
        two.other.llm.kv_state_bytes = load % 4 == 3 ? 3e7 : 0.0;
        for (uint32_t i = 0; i < n; i++) {
            model[i] = (uint8_t)rng_below(&r, 2);
            group[i] = 0;
            for (uint32_t k = 0; k < i; k++) {
                bool same = q[i].session_id != 0 && q[k].session_id == q[i].session_id;
                model[i] = same ? model[k] : model[i];
            }
            if (q[i].session_id == 0 && load % 3 > 0) {
                group[i] = 1 + rng_below(&r, 2);
                q[i].prefix_tokens = rng_below(&r, q[i].input_tokens);
            }
        }
        take_memory(load);
        int rc = two_models_run(&sc, q, model, group, n, false);
        ck_assert_msg(rc != -ETIMEDOUT, "%s: %s", what, sc.result.message);
        two_models_fini(&sc);
    }
    ck_assert(has_graphs(ops) || counted_at_end > 10);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("KV", .timeout_s = 60),
    LOOP_OVER(what_requests_hold_and_what_is_free_is_all_there_is, suite_policies),
    LOOP_OVER(when_everybody_has_left_all_is_free, suite_policies),
};
SUITE_MAIN("kv_conserved", suite)
