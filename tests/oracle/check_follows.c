/* A pass that follows another one (pass_spec.follows) is that of a segment for each of its requests
 * that decode. Three prompts of 16 tokens, one block each, with 1, 2 and 3 tokens of output: passes
 * of 3, 2 and 1 requests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/base/rng.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

static struct scenario sc;
static struct script x;
static uint32_t formed;
static struct pass *running, *earlier;
static int refused[4]; /* of a running pass, fused with two, of an earlier instant, of nobody */

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

static void launch(struct sched *s, struct pass *p)
{
    running = p;
    ck_assert_int_eq(script_launch(s, p, IGPU, YIELD_PASS, NULL), 0);
    formed++;
}

static void begin(struct sched *s, const struct script *y)
{
    struct segment all[3];
    for (uint32_t i = 0; i < 3; i++) {
        all[i] =
            (struct segment){.request = y->request[i], .role = SEGMENT_PREFILL, .n_tokens = 16};
    }
    struct pass_spec spec = {.segments = all, .n_segments = 3};
    struct pass *p;
    ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
    ck_assert_uint_eq(p->n_followed, 0);
    launch(s, p);
    spec = (struct pass_spec){.follows = p};
    refused[0] = sched_pass_form(s, &spec, &p);
}

/* Those of the last pass that decode now, and no others. */
static void check_segments(const struct pass *p, uint32_t first, const struct script *y)
{
    ck_assert_uint_eq(p->n_segments, 3 - first);
    ck_assert_uint_eq(p->n_followed, 3 - first);
    ck_assert_uint_eq(p->shape.rows, 3 - first);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *g = &p->segments[i];
        ck_assert_ptr_eq(g->request, y->request[first + i]);
        ck_assert_int_eq(g->role, SEGMENT_DECODE);
        ck_assert_uint_eq(g->n_tokens, 1);
        ck_assert_uint_eq(g->first_token, 15 + first);
        ck_assert_ptr_eq(g->request->pass, p);
    }
    ck_assert_uint_eq(p->shape.kv_read_tokens, (uint64_t)(3 - first) * (16 + first));
}

static void go_on(struct sched *s, const struct script *y)
{
    struct pass *last = running;
    struct pass_spec spec = {.follows = last, .fused_layers = true};
    uint32_t first = formed; /* each pass ends one of them */
    ck_assert_uint_eq(last->n_left, 1);
    ck_assert_uint_eq(last->n_decoding, 3 - first);
    ck_assert_uint_eq(last->kv_blocks_next, first == 1 ? 2 : 0);
    struct pass *p = NULL;
    int rc = sched_pass_form(s, &spec, &p);
    if (first == 1) {
        refused[1] = rc;
        spec.fused_layers = false;
        rc = sched_pass_form(s, &spec, &p);
    }
    if (first == 3) {
        refused[3] = rc;
        running = NULL;
        return;
    }
    ck_assert_int_eq(rc, 0);
    check_segments(p, first, y);
    earlier = last;
    launch(s, p);
}

static void step(struct sched *s, struct script *y)
{
    if (formed == 0 && y->request[2] != NULL) {
        begin(s, y);
    } else if (running != NULL && running->state == PASS_STATE_DONE) {
        if (earlier != NULL) {
            struct pass *p;
            struct pass_spec spec = {.follows = earlier};
            refused[2] = sched_pass_form(s, &spec, &p);
            earlier = NULL;
        }
        go_on(s, y);
    }
}

START_TEST(those_who_decode_go_on)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 2, 0, 0}, {BE, 0, 16, 3, 0, 0}};
    formed = 0;
    running = earlier = NULL;
    sc.setup.kv_block_tokens = 16;
    x.step = step;
    ck_assert_msg(script_run(&sc, &x, q, 3) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_uint_eq(formed, 3);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(refused[i], -EINVAL);
    }
}
END_TEST

/* At the same instant, but after the call that was told of it: a timer brings the next one. */
static void too_late(struct sched *s, struct script *y)
{
    static uint32_t calls;
    if (formed == 0) {
        calls = 0;
        if (y->request[2] != NULL) {
            begin(s, y);
        }
    } else if (running != NULL && running->state == PASS_STATE_DONE) {
        struct pass *p;
        struct pass_spec spec = {.follows = running};
        calls++;
        if (calls == 1) { /* one goes on alone, so that the machine is at work */
            struct segment alone = {
                .request = y->request[1], .role = SEGMENT_DECODE, .n_tokens = 1};
            spec = (struct pass_spec){.segments = &alone, .n_segments = 1};
            ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
            ck_assert_int_eq(script_launch(s, p, IGPU, YIELD_PASS, NULL), 0);
            (void)sched_set_timer(s, s->now_ns);
        } else if (calls == 3) {
            refused[2] = sched_pass_form(s, &spec, &p);
            running = NULL;
        }
    }
}

START_TEST(nobody_follows_a_pass_whose_call_is_over)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 2, 0, 0}, {BE, 0, 16, 3, 0, 0}};
    formed = 0;
    running = NULL;
    refused[2] = 0;
    x.step = too_late;
    (void)script_run(&sc, &x, q, 3); /* two requests are left behind */
    ck_assert_int_eq(refused[2], -EINVAL);
    const struct sim_refusal *last = &sc.result.refusals[sc.result.n_refusals - 1];
    ck_assert_str_eq(last->why, "the tokens of the pass that it follows did not come out just now");
}
END_TEST

/* ---- counted anew ---- */

static uint32_t n_formed, n_done;

/* The shape of a pass is the sum of its segments, whoever summed it when. */
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
        ck_assert(i >= p->n_followed || g->role == SEGMENT_DECODE);
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

/* What it says of those who go on is what they say themselves. */
static void rest_anew(void *self, int64_t now_ns, const struct pass *p)
{
    (void)self;
    uint32_t left = 0;
    uint32_t decoding = 0;
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        bool decodes = r->state == REQUEST_STATE_DECODE;
        left += r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED;
        decoding += decodes;
        blocks += decodes && r->kv_tokens % sc.setup.kv_block_tokens == 0;
        ck_assert(!decodes || r->last_token_ns == now_ns);
    }
    ck_assert_uint_eq(p->n_left, left);
    ck_assert_uint_eq(p->n_decoding, decoding);
    ck_assert_uint_eq(p->kv_blocks_next, blocks);
    n_done++;
}

static void nothing(void *self, int64_t now_ns, const struct repeat_record *r)
{
    (void)self;
    (void)now_ns;
    (void)r;
}

/* One run with every iteration reported, one in which they repeat. */
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
            struct observer all = {.pass_formed = shape_anew, .pass_done = rest_anew};
            all.repeated = repeats == 1 ? nothing : NULL;
            scenario_trace(&sc, q, 30);
            sc.setup.observers[0] = &all;
            sc.setup.n_observers = 1; /* nobody else, who would watch every iteration */
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
    TEST(those_who_decode_go_on),
    TEST(nobody_follows_a_pass_whose_call_is_over),
};
SUITE_MAIN("follows", suite)
