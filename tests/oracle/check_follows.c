/* Requests that continue from one decode pass to the next, and the shape of every pass, counted
 * again. Three prompts of 16 tokens, one block each, have 2, 3 and 4 tokens of output. After the
 * prompts there are passes of 3, 2 and 1 requests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct script x;
static struct pass *running;
static uint32_t formed;
static bool backwards; /* segments in another order than before */
static uint32_t n_segments[4];

static void setup(void)
{
    scenario_init(&sc);
    memset(&x, 0, sizeof x);
    sc.machine.devices[NPU].static_attention = false;
}

static void teardown(void)
{
    scenario_fini(&sc);
}

/* Forms a pass of all requests that are still there, and launches it. */
static void step(struct sched *s, struct script *y)
{
    struct segment all[3];
    uint32_t n = 0;
    if ((formed == 0 && y->request[2] == NULL) ||
        (running != NULL && running->state == PASS_STATE_RUNNING)) {
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        const struct request *r = y->request[backwards && formed > 1 ? 2 - i : i];
        if (r == NULL) {
            continue;
        }
        if (r->state == REQUEST_STATE_QUEUED) {
            all[n++] = (struct segment){.request = r, .role = SEGMENT_PREFILL, .n_tokens = 16};
        } else if (r->state == REQUEST_STATE_DECODE) {
            all[n++] = (struct segment){.request = r, .role = SEGMENT_DECODE, .n_tokens = 1};
        }
    }
    if (n == 0) {
        return;
    }
    struct pass_spec spec = {.segments = all, .n_segments = n};
    ck_assert_int_eq(sched_pass_form(s, &spec, &running), 0);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(running->segments[i].request, all[i].request);
        ck_assert_uint_eq(running->segments[i].first_token, all[i].request->kv_tokens);
        ck_assert_ptr_eq(all[i].request->pass, running);
    }
    n_segments[formed++] = running->n_segments;
    ck_assert_int_eq(script_launch(s, running, IGPU, YIELD_PASS, NULL), 0);
}

/* The requests come in the order of the pass before, or in another one. Each pass must have the
 * segments that `step` asked for, and all tokens must come. */
START_TEST(requests_decode_on_in_any_order)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 2, 0, 0}, {BE, 0, 16, 3, 0, 0}, {BE, 0, 16, 4, 0, 0}};
    static const uint32_t expected[4] = {3, 3, 2, 1};
    formed = 0;
    running = NULL;
    backwards = _i == 1;
    sc.setup.kv_block_tokens = 16;
    x.step = step;
    ck_assert_msg(script_run(&sc, &x, q, 3) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_uint_eq(formed, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(n_segments[i], expected[i]);
    }
}
END_TEST

/* ---- shapes that are counted again ---- */

static uint32_t n_formed, n_done;

/* The shape of a pass must be the sum of its segments. The core may add it up when the pass is
 * formed, or take it from the pass before. */
static void shape_anew(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    (void)now_ns;
    struct work_shape w = {0};
    bool reactive = false;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *g = &p->segments[i];
        const struct request *r = g->request;
        ck_assert_ptr_eq(r->pass, p);
        ck_assert_uint_eq(g->first_token, r->kv_tokens);
        ck_assert_uint_eq(g->emitted_tokens, 0);
        w.rows += g->n_tokens;
        w.sequences++;
        for (uint32_t k = 1; k <= g->n_tokens; k++) {
            w.attn_pairs += g->first_token + k;
        }
        uint32_t end = g->first_token + g->n_tokens;
        w.kv_read_tokens += end;
        w.max_context_tokens = end > w.max_context_tokens ? end : w.max_context_tokens;
        bool prefill = g->role == SEGMENT_PREFILL;
        bool completes = prefill && g->n_tokens == request_prefill_left(r);
        w.prefill_rows += prefill ? g->n_tokens : 0;
        w.logit_rows += prefill ? completes : g->n_tokens;
        reactive = reactive || r->cls == REQUEST_CLASS_REACTIVE;
    }
    ck_assert_uint_eq(p->shape.rows, w.rows);
    ck_assert_uint_eq(p->shape.sequences, w.sequences);
    ck_assert_uint_eq(p->shape.prefill_rows, w.prefill_rows);
    ck_assert_uint_eq(p->shape.logit_rows, w.logit_rows);
    ck_assert_uint_eq(p->shape.attn_pairs, w.attn_pairs);
    ck_assert_uint_eq(p->shape.kv_read_tokens, w.kv_read_tokens);
    ck_assert_uint_eq(p->shape.max_context_tokens, w.max_context_tokens);
    ck_assert(p->has_reactive == reactive);
    n_formed++;
}

static void count_done(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        ck_assert(r->state != REQUEST_STATE_DECODE || r->last_token_ns == now_ns);
    }
    n_done++;
}

static void nothing(void *self, int64_t now_ns, const struct repeat_record *r)
{
    (void)self;
    (void)now_ns;
    (void)r;
}

/* One run reports every iteration, and in the other one iterations repeat without a report. The
 * shape is compared in both. */
START_TEST(shapes_and_those_who_go_on_are_as_counted_anew)
{
    static const char *const policies[] = {"openvino-cb", "vllm-v1", "sarathi", "orca"};
    uint64_t done[2] = {0};
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct scenario_request q[30];
        double at_s = 0.0;
        for (uint32_t i = 0; i < 30; i++) {
            uint64_t k = rng_mix64(seed * 100 + i);
            at_s += (double)(k % 40) * 1e-3;
            q[i] = (struct scenario_request){
                k % 3 == 0 ? RT : BE,         at_s, 1 + (uint32_t)(k >> 8) % 90,
                1 + (uint32_t)(k >> 20) % 50, 0,    0};
        }
        for (int repeats = 0; repeats < 2; repeats++) {
            scenario_fini(&sc);
            scenario_init(&sc);
            scenario_cost(&sc, IGPU, OP_QKV, 1.0, 0.01, 10.0);
            sc.attention_ms_per_pair[IGPU] = 1e-4;
            sc.setup.kv_block_tokens = 1 + (uint32_t)seed % 16;
            sc.setup.kv_capacity_tokens = 160 + 100 * (seed % 20);
            scenario_policy(&sc, policy_find(policies[seed % 4]), "");
            struct observer all = {.pass_formed = shape_anew, .pass_done = count_done};
            all.repeated = repeats == 1 ? nothing : NULL;
            scenario_trace(&sc, q, 30);
            sc.setup.observers[0] = &all;
            sc.setup.n_observers = 1; /* no other observer, which would watch every iteration */
            n_formed = n_done = 0;
            ck_assert_msg(sim_run(&sc.setup, &sc.result) == 0, "%s", sc.result.message);
            ck_assert(sc.result.audit.clean);
            ck_assert(n_formed >= n_done);
            done[repeats] += n_done;
        }
    }
    printf("%llu passes done, %llu where they repeat\n", (unsigned long long)done[0],
           (unsigned long long)done[1]);
    ck_assert_uint_lt(done[1], done[0] / 2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("counted anew", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(shapes_and_those_who_go_on_are_as_counted_anew),
    CASE("by hand", .setup = setup, .teardown = teardown),
    LOOP(requests_decode_on_in_any_order, 2),
};
SUITE_MAIN("follows", suite)
