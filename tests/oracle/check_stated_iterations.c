/* Schedulers of vLLM and Sarathi-Serve keep the rules that their authors state, pass by pass. The
 * loads are random, on the toy machine (tests/helpers/rules.h): one device, no contention, no host
 * costs. The observer keeps its own lists, apart from the policy's queues. With the rule switched
 * off, or under another policy, these loads break it. The test asserts that too, so it can fail. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

enum { REQUESTS = 24 };

static struct rng rng;

enum place { AWAY, WAITING, RUNNING, PREEMPTED, OVER };

/* Counts of breaches, by rule. */
static struct seen {
    enum place place[REQUESTS];
    uint32_t passed_over; /* admitted before an earlier one */
    uint32_t wrong_victim, kept_progress, preemptions;
    uint32_t over_budget, stalled, chunks, mixed;
    int64_t longest_gap_ns;
    uint32_t budget;
} seen;

static bool decodes(const struct request *r)
{
    return r->state == REQUEST_STATE_DECODE;
}

static void arrived(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    (void)now_ns;
    seen.place[r->id] = WAITING;
}

static void finished(void *self, int64_t now_ns, const struct request *r)
{
    (void)self;
    (void)now_ns;
    seen.place[r->id] = OVER;
}

/* Ids are in order of arrival, so a running request with a higher id came later. */
static void lost(void *self, int64_t now_ns, const struct request *r, uint64_t tokens)
{
    (void)self;
    (void)now_ns;
    (void)tokens;
    for (uint32_t i = r->id + 1; i < REQUESTS; i++) {
        seen.wrong_victim += seen.place[i] == RUNNING;
    }
    seen.preemptions++;
    seen.place[r->id] = PREEMPTED;
}

static void formed(void *self, int64_t now_ns, const struct pass *p)
{
    bool in[REQUESTS] = {false};
    bool prompts = false;
    bool tokens = false;
    (void)self;
    (void)now_ns;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *g = &p->segments[i];
        enum place *at = &seen.place[g->request->id];
        in[g->request->id] = true;
        seen.kept_progress += *at == PREEMPTED && g->first_token != 0;
        seen.chunks += g->role == SEGMENT_PREFILL && g->n_tokens < request_prefill_left(g->request);
        prompts = prompts || g->role == SEGMENT_PREFILL;
        tokens = tokens || decodes(g->request);
    }
    for (uint32_t i = 0; i < p->n_segments; i++) {
        uint32_t id = p->segments[i].request->id;
        bool admitted = seen.place[id] != RUNNING;
        for (uint32_t j = 0; admitted && j < id; j++) {
            seen.passed_over += (seen.place[j] == WAITING || seen.place[j] == PREEMPTED) && !in[j];
        }
    }
    for (uint32_t i = 0; i < REQUESTS; i++) {
        bool has_token = sc.records[i].tokens_n > 0;
        seen.stalled += seen.place[i] == RUNNING && has_token && !in[i];
        seen.place[i] = in[i] ? RUNNING : seen.place[i];
    }
    seen.mixed += prompts && tokens;
    seen.over_budget += p->shape.rows > seen.budget;
}

static void got_tokens(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    (void)now_ns;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        bool first = s->request->generated_tokens <= 1;
        seen.longest_gap_ns =
            !first && s->gap_ns > seen.longest_gap_ns ? s->gap_ns : seen.longest_gap_ns;
    }
}

static struct observer watch = {.request_arrived = arrived,
                                .request_finished = finished,
                                .request_shed = finished,
                                .kv_lost = lost,
                                .pass_formed = formed,
                                .tokens = got_tokens};

/* Runs 24 requests of up to 150 + 12 tokens, of both classes, 4 ms apart in the mean. */
static void watched(const char *policy, const char *params, uint32_t budget, uint32_t kv_tokens,
                    uint64_t seed)
{
    struct scenario_request q[REQUESTS];
    double at = 0;
    rules_machine(1);
    scenario_cost(&sc, -1, OP_LAYER, 1, 0.03, 5); /* a row's cost in unfused layers */
    sc.setup.kv_capacity_tokens = kv_tokens;
    sc.setup.observers[1] = &watch;
    sc.setup.n_observers = 2;
    rng_init(&rng, seed);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        q[i] = (struct scenario_request){rng_below(&rng, 2) ? RT : BE, at, 1 + rng_below(&rng, 150),
                                         1 + rng_below(&rng, 12),      0,  0};
        at += rng_exponential(&rng, 0.004);
    }
    memset(&seen, 0, sizeof seen);
    seen.budget = budget;
    rules_run(policy, params, "", q, REQUESTS);
    scenario_fini(&sc);
}

/* vLLM's scheduler (V0 and V1). Waiting requests are admitted in order of arrival. Short of KV,
 * the running request that came last loses all its KV and is computed again from its first
 * token. It is admitted again before any request that never ran. KV has 18 blocks, and a request
 * has up to 11. */
START_TEST(vllm_admits_in_order_and_recomputes_the_last_arrived)
{
    static const char *const policies[] = {"vllm-v0", "vllm-v1"};
    uint32_t back = 0;
    uint32_t priority = 0;
    for (int p = 0; p < 2; p++) {
        uint32_t preemptions = 0;
        for (uint64_t seed = 1; seed <= 30; seed++) {
            watched(policies[p], "", 512, 288, seed);
            ck_assert_uint_eq(seen.passed_over, 0);
            ck_assert_uint_eq(seen.wrong_victim, 0);
            ck_assert_uint_eq(seen.kept_progress, 0);
            ck_assert_uint_eq(seen.over_budget, 0);
            preemptions += seen.preemptions;
            watched(policies[p], "requeue=back", 512, 288, seed);
            back += seen.passed_over > 0;
        }
        printf("%s: %u preemptions in 30 runs\n", policies[p], preemptions);
        ck_assert_uint_gt(preemptions, 0);
    }
    for (uint64_t seed = 1; seed <= 30; seed++) {
        watched("vllm-priority", "", 512, 288, seed);
        priority += seen.passed_over > 0 && seen.wrong_victim > 0;
    }
    printf("out of order: requeue=back in %u of 60 runs, vllm-priority in %u of 30\n", back,
           priority);
    ck_assert_uint_gt(back, 0);
    ck_assert_uint_gt(priority, 0);
}
END_TEST

/* Sarathi-Serve's stall-free batching. No iteration has more tokens than the budget, and every
 * request that decodes has a token in every iteration. So no gap between tokens is longer than an
 * iteration at the budget, 0.03 C + 2 ms, for prompts of any length.
 *
 * The rule assumes KV for all, since a recomputed request stalls by design, and a batch below the
 * budget. Prompts first, and V0, stall decodes; V0's gaps exceed the bound. */
START_TEST(sarathi_never_stalls_a_decode_beyond_the_budgets_time)
{
    uint32_t chunks = 0;
    uint32_t prompts_first = 0;
    uint32_t v0_stalls = 0;
    uint32_t v0_gaps = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        for (uint32_t budget = 32; budget <= 128; budget *= 2) {
            char params[64];
            (void)snprintf(params, sizeof params, "max_num_batched_tokens=%u", budget);
            int64_t most_ns = MS(0.03 * budget + 2);
            watched("sarathi", params, budget, 0, seed);
            ck_assert_uint_eq(seen.over_budget, 0);
            ck_assert_uint_eq(seen.stalled, 0);
            ck_assert_int_le(seen.longest_gap_ns, most_ns);
            ck_assert_uint_gt(seen.mixed, 0);
            chunks += seen.chunks;
            (void)strcat(params, ",stall_free=false");
            watched("sarathi", params, budget, 0, seed);
            prompts_first += seen.stalled > 0;
        }
        watched("vllm-v0", "max_num_batched_tokens=128", 128, 0, seed);
        v0_stalls += seen.stalled > 0;
        v0_gaps += seen.longest_gap_ns > MS(0.03 * 128 + 2);
    }
    printf("sarathi: 0 stalls in 90 runs, %u chunks; stalls: prompts first in %u of 90, vllm-v0 in "
           "%u of 30, of these %u beyond the budget's time\n",
           chunks, prompts_first, v0_stalls, v0_gaps);
    ck_assert_uint_gt(chunks, 0);
    ck_assert_uint_gt(prompts_first, 45);
    ck_assert_uint_gt(v0_stalls, 15);
    ck_assert_uint_gt(v0_gaps, 0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(vllm_admits_in_order_and_recomputes_the_last_arrived),
    TEST(sarathi_never_stalls_a_decode_beyond_the_budgets_time),
};
SUITE_MAIN("stated behaviours of iterations", suite)
