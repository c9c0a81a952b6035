/* Each cause is compared with the one that it precedes (sim/metrics/explain.h), by hand. In each
 * test two causes hold, and only the first is counted. On the toy devices QKV takes 1 ms, attention
 * 2, FFN 3 and the head 4, so a prompt takes 10 ms. A fused decode layer takes 6, so a decode step
 * takes 10 too. */
#include <string.h>

#include "sim/metrics/explain.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

#define RT REQUEST_CLASS_REACTIVE
#define BE REQUEST_CLASS_PROACTIVE

static struct scenario sc;
static struct script x;
static struct explain *why;

static void setup(void)
{
    scenario_init(&sc);
    memset(&x, 0, sizeof x);
    x.device = IGPU;
    sc.machine.devices[NPU].static_attention = false;
    scenario_cost(&sc, -1, OP_QKV, 1, 0, 0);
    scenario_cost(&sc, -1, OP_MHA, 2, 0, 0);
    scenario_cost(&sc, -1, OP_FFN, 3, 0, 0);
    scenario_cost(&sc, -1, OP_HEAD, 4, 0, 0);
    scenario_cost(&sc, -1, OP_LAYER, 6, 0, 0);
    why = explain_new(&sc.machine, EXPLAIN_ALL);
    explain_price(why, &sc.model);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(why);
}

static void teardown(void)
{
    explain_free(why);
    scenario_fini(&sc);
}

static void run(void (*step)(struct sched *, struct script *), const struct scenario_request *q,
                uint32_t n)
{
    x.step = step;
    int rc = script_run(&sc, &x, q, n);
    ck_assert_msg(rc == 0, "%s", sc.result.message);
}

/* The causes of a request in ms. Those that are not named are 0. EXPLAIN_CAUSE_COUNT is the
 * last. */
struct part {
    enum explain_cause cause;
    double ms;
};

#define PARTS(...) ((const struct part[]){__VA_ARGS__, {EXPLAIN_CAUSE_COUNT, 0}})

static void took(uint32_t request, const struct part *parts)
{
    const struct explanation *e = explain_find(why, request);
    ck_assert_ptr_nonnull(e);
    for (int c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        double want = 0.0;
        for (const struct part *p = parts; p->cause != EXPLAIN_CAUSE_COUNT; p++) {
            want += (int)p->cause == c ? p->ms : 0.0;
        }
        double got = units_ms_from_ns(e->ns[c]);
        ck_assert_msg(got > want - 1e-3 && got < want + 1e-3, "request %u: %s %.6f ms, not %.3f",
                      request, explain_cause_names[c], got, want);
    }
}

static struct pass *pass_of(struct sched *s, const struct request *a, const struct request *b)
{
    struct segment seg[2] = {
        {.request = a, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(a)}};
    if (b != NULL) {
        seg[1] = (struct segment){
            .request = b, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(b)};
    }
    struct pass_spec spec = {.segments = seg, .n_segments = b != NULL ? 2 : 1};
    struct pass *p = NULL;
    ck_assert_int_eq(sched_pass_form(s, &spec, &p), 0);
    return p;
}

/* ---- queues behind a batch of both classes ---- */

static void both_classes(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        y->pass[0] = pass_of(s, y->request[0], y->request[1]);
        y->pass[1] = y->pass[0];
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
    }
    if (sched_device_free_slots(s, IGPU) > 0) {
        script_serve(s, y);
    }
}

/* A pass of a reactive and a proactive request runs 0-10. Both requests that come at 1 ms wait for
 * their own class, as the pass has both. Request 3 also waits for request 2, which is first. */
START_TEST(a_batch_of_both_classes_is_a_queue_of_each)
{
    static const struct scenario_request q[] = {
        {RT, 0, 8, 1, 0, 0}, {BE, 0, 8, 1, 0, 0}, {BE, 0.001, 8, 1, 0, 0}, {RT, 0.001, 8, 1, 0, 0}};
    run(both_classes, q, 4);
    took(2, PARTS({EXPLAIN_QUEUE_SAME, 9}, {EXPLAIN_COMPUTE, 10}));
    took(3, PARTS({EXPLAIN_QUEUE_SAME, 9}, {EXPLAIN_QUEUE_OTHER, 10}, {EXPLAIN_COMPUTE, 10}));
    const struct explanation *e = explain_find(why, 3);
    ck_assert_uint_eq(e->n_blockers, 2); /* longest first; the batch by its first member */
    ck_assert_uint_eq(e->blockers[0].request_id, 2);
    ck_assert_int_eq(e->blockers[0].queue_ns, 10 * NS_PER_MS);
    ck_assert_uint_eq(e->blockers[1].request_id, 0);
    ck_assert_int_eq(e->blockers[1].queue_ns, 9 * NS_PER_MS);
}
END_TEST

/* ---- passes that several requests share ---- */

/* Forms one pass of all three prompts, and serves the rest one by one. */
static void together(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        struct segment seg[3];
        for (uint32_t i = 0; i < 3; i++) {
            seg[i] = (struct segment){.request = y->request[i],
                                      .role = SEGMENT_PREFILL,
                                      .n_tokens = request_prefill_left(y->request[i])};
        }
        struct pass_spec spec = {.segments = seg, .n_segments = 3};
        ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), 0);
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
    } else if (sched_device_free_slots(s, IGPU) > 0) {
        script_serve(s, y);
    }
}

/* A row more costs 0.1 ms in QKV and in FFN, and a row of logits 1 ms in the head. Prompts of 8, 16
 * and 8 tokens together take (1 + 3.2) + 2 + (3 + 3.2) + (4 + 3) = 19.4 ms. Alone those of 8 take
 * (1 + 0.8) + 2 + (3 + 0.8) + (4 + 1) = 12.6 ms, and that of 16 takes 2.6 + 2 + 4.6 + 5 = 14.2.
 *
 * So 6.8 ms of request 0 are the price of sharing. Request 1 caused 14.2 of 26.8 parts of them, and
 * request 2 caused 12.6. Request 1 pays 5.2 ms, and each of the others caused a half. */
START_TEST(a_shared_pass_is_charged_to_those_who_share_it)
{
    static const struct scenario_request q[] = {
        {RT, 0, 8, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}, {BE, 0, 8, 1, 0, 0}};
    scenario_cost(&sc, -1, OP_QKV, 1, 0.1, 0);
    scenario_cost(&sc, -1, OP_FFN, 3, 0.1, 0);
    scenario_cost(&sc, -1, OP_HEAD, 4, 1, 0);
    run(together, q, 3);
    took(0, PARTS({EXPLAIN_COMPUTE, 12.6}, {EXPLAIN_SHARED_PASS, 6.8}));
    took(1, PARTS({EXPLAIN_COMPUTE, 14.2}, {EXPLAIN_SHARED_PASS, 5.2}));
    took(2, PARTS({EXPLAIN_COMPUTE, 12.6}, {EXPLAIN_SHARED_PASS, 6.8}));
    const struct explanation *e = explain_find(why, 0);
    ck_assert_int_eq(e->end_ns, 19400000);
    ck_assert_int_eq(e->ns[EXPLAIN_COMPUTE] + e->ns[EXPLAIN_SHARED_PASS], 19400000);
    ck_assert_uint_eq(e->n_blockers, 2);
    ck_assert_uint_eq(e->blockers[0].request_id, 1);
    ck_assert_int_eq(e->blockers[0].shared_ns, 3602985); /* 6.8 * 14.2 / 26.8 ms */
    ck_assert_uint_eq(e->blockers[1].request_id, 2);
    ck_assert_int_eq(e->blockers[1].shared_ns, 6800000 - 3602985);
    ck_assert_int_eq(explain_find(why, 1)->blockers[0].shared_ns, 2600000);
    ck_assert_int_eq(explain_find(why, 1)->blockers[1].shared_ns, 2600000);
}
END_TEST

/* Request 0 decodes after the shared pass, which gives its first token. Nothing after that may
 * count. */
START_TEST(an_explanation_can_end_with_the_first_token)
{
    static const struct scenario_request q[] = {
        {RT, 0, 8, 3, 0, 0}, {BE, 0, 16, 1, 0, 0}, {BE, 0, 8, 1, 0, 0}};
    scenario_cost(&sc, -1, OP_QKV, 1, 0.1, 0);
    scenario_cost(&sc, -1, OP_FFN, 3, 0.1, 0);
    scenario_cost(&sc, -1, OP_HEAD, 4, 1, 0);
    explain_until_first_token(why);
    run(together, q, 3);
    ck_assert_int_gt(sc.records[0].finish_ns, MS(19.4));
    took(0, PARTS({EXPLAIN_COMPUTE, 12.6}, {EXPLAIN_SHARED_PASS, 6.8}));
    ck_assert_int_eq(explain_find(why, 0)->end_ns, MS(19.4));
    ck_assert(explain_find(why, 0)->finished);
}
END_TEST

/* ---- slow kernels ---- */

/* Runs request 1's first kernel next to request 0's whole prompt, and the rest of it later. */
static void beside(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        for (uint32_t i = 0; i < 2; i++) {
            y->pass[i] = script_form(s, y->request[i]);
            struct launch_spec l = sched_launch_rest(s, y->pass[i], IGPU, YIELD_KERNEL);
            l.n_ops = i == 1 ? 1 : l.n_ops;
            ck_assert_int_eq(sched_launch(s, &l, &y->launch[i]), 0);
        }
    } else if (y->request[0] == NULL) {
        script_serve(s, y);
    }
}

/* A time-shared device runs at half speed by a power limit: 5 W idle and 10 of 20 W above, exponent
 * 1. Request 1's QKV of 0.5 ms runs at a quarter, 0-2. Request 0's of 1 ms does too, and then at a
 * half, 0-3.
 *
 * The 1.5 and 2 ms more are sharing, which is named before throttling. The other kernels of request
 * 0, of 2, 3 and 4 ms, take 9 ms longer: throttling. Request 1 continues at 21, after 19 ms behind
 * its own class, and is throttled for 9 ms as well. */
START_TEST(sharing_is_named_before_throttling_and_ends_with_the_kernel)
{
    static const struct scenario_request q[] = {{BE, 0, 8, 1, 0, 0}, {BE, 0, 4, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 0, 0.125, 0);
    sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    sc.setup.throttle = (struct sim_throttle){15, 15, 1000, 1, 0.1};
    run(beside, q, 2);
    took(0, PARTS({EXPLAIN_DEVICE_SHARING, 2}, {EXPLAIN_THROTTLING, 9}, {EXPLAIN_COMPUTE, 10}));
    took(1, PARTS({EXPLAIN_DEVICE_SHARING, 1.5}, {EXPLAIN_QUEUE_SAME, 19}, {EXPLAIN_THROTTLING, 9},
                  {EXPLAIN_COMPUTE, 9.5}));
}
END_TEST

/* Both QKV take 1 ms here, each at a quarter, so both end at 4. Request 0's next kernel does not
 * run next to the launch that ended when it began. So 3 ms of both are sharing, and at a half all 9
 * ms more of its 2 + 3 + 4 ms are throttling. It ends at 22, and request 1 waits 18 ms. */
START_TEST(a_launch_that_ends_when_a_kernel_begins_does_not_share_with_it)
{
    static const struct scenario_request q[] = {{BE, 0, 8, 1, 0, 0}, {BE, 0, 4, 1, 0, 0}};
    sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    sc.setup.throttle = (struct sim_throttle){15, 15, 1000, 1, 0.1};
    run(beside, q, 2);
    took(0, PARTS({EXPLAIN_DEVICE_SHARING, 3}, {EXPLAIN_THROTTLING, 9}, {EXPLAIN_COMPUTE, 10}));
    took(1, PARTS({EXPLAIN_DEVICE_SHARING, 3}, {EXPLAIN_QUEUE_SAME, 18}, {EXPLAIN_THROTTLING, 9},
                  {EXPLAIN_COMPUTE, 10}));
}
END_TEST

/* ---- residents that are loaded or compiled ---- */

static struct resident_key attention(uint32_t tokens)
{
    return (struct resident_key){RESIDENT_COMPILED_ATTENTION, tokens, 0};
}

static struct resident_key block(void)
{
    return (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 2};
}

/* After its first token, at 10 ms, the request's KV is dropped, and a kernel of its new length is
 * compiled for 5 ms. At 20 it continues. */
static void evict_and_compile(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (y->stage == 0 && r->generated_tokens == 1) {
        y->stage = 1;
        ck_assert_int_eq(sched_kv_move(s, kv_of(r), KV_NOWHERE), 0);
        ck_assert_int_eq(sched_compile(s, attention(request_prefill_target(r))), 0);
    }
    if (y->stage != 1 || script_at(s, y, 1, 20)) {
        script_serve(s, y);
    }
}

START_TEST(an_eviction_is_named_before_compiling)
{
    static const struct scenario_request q[] = {{BE, 0, 8, 2, 0, 0}};
    sc.machine.compile_fixed_ns = 5 * NS_PER_MS;
    run(evict_and_compile, q, 1);
    took(0, PARTS({EXPLAIN_EVICTION, 10}, {EXPLAIN_COMPUTE, 10}, {EXPLAIN_RECOMPUTE, 10}));
}
END_TEST

/* Request 1 waits for request 0. For 4 ms of that a kernel of its length is compiled. */
static void compile_for_one(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        ck_assert_int_eq(sched_compile(s, attention(8)), 0);
    }
    script_serve(s, y);
}

START_TEST(compiling_is_named_before_queues_for_prompts_of_that_length)
{
    static const struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {RT, 0, 8, 1, 0, 0}, {RT, 0, 9, 1, 0, 0}};
    sc.machine.compile_fixed_ns = 4 * NS_PER_MS;
    run(compile_for_one, q, 3);
    took(0, PARTS({EXPLAIN_COMPUTE, 10}));
    took(1, PARTS({EXPLAIN_COMPILE, 4}, {EXPLAIN_QUEUE_OTHER, 6}, {EXPLAIN_COMPUTE, 10}));
    took(2, PARTS({EXPLAIN_QUEUE_OTHER, 10}, {EXPLAIN_QUEUE_SAME, 10}, {EXPLAIN_COMPUTE, 10}));
}
END_TEST

/* A block is loaded 0-13 ms, while request 0 runs 0-10. Request 1's pass is formed at once, and
 * request 2's when it can run. From 10 to 13 the device is idle. */
static void load_for_one(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        ck_assert_int_eq(sched_load(s, block(), 13e6), 0);
        y->pass[0] = script_form(s, y->request[0]);
        y->pass[1] = script_form(s, y->request[1]);
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
    }
    if (sched_resident_state(s, block()) == RESIDENT_READY) {
        script_serve(s, y);
    }
}

START_TEST(loading_is_named_for_formed_passes_and_idle_devices)
{
    static const struct scenario_request q[] = {
        {BE, 0, 8, 1, 0, 0}, {RT, 0, 8, 1, 0, 0}, {RT, 0, 8, 1, 0, 0}};
    run(load_for_one, q, 3);
    took(1, PARTS({EXPLAIN_GRAPH_LOAD, 13}, {EXPLAIN_COMPUTE, 10}));
    took(2, PARTS({EXPLAIN_QUEUE_OTHER, 10}, {EXPLAIN_GRAPH_LOAD, 3}, {EXPLAIN_QUEUE_SAME, 10},
                  {EXPLAIN_COMPUTE, 10}));
}
END_TEST

/* ---- decodes ---- */

/* Request 0 runs on the iGPU to its end. Request 1's prompt runs on the NPU, and its decode when
 * request 0 has ended. */
static void leave_one_out(struct sched *s, struct script *y)
{
    const struct request *r = y->request[1];
    if (r != NULL && r->state == REQUEST_STATE_QUEUED && r->pass == NULL) {
        y->pass[1] = script_form(s, r);
        (void)script_launch(s, y->pass[1], NPU, YIELD_PASS, &y->launch[1]);
    }
    if (y->request[0] != NULL) {
        y->request[1] = NULL;
    }
    script_serve(s, y);
    y->request[1] = r;
}

/* Request 0 has its prompt 0-10, and decodes 10-20 and 20-30. Request 1 has its first token at 15
 * ms. That is too late for the batch of 10, so 5 ms are batching. It is left out of the one formed
 * at 20, so 10 ms are held back. */
START_TEST(who_comes_too_late_for_a_batch_is_not_held_back)
{
    static const struct scenario_request q[] = {{RT, 0, 8, 3, 0, 0}, {RT, 0.005, 8, 2, 0, 0}};
    run(leave_one_out, q, 2);
    took(1, PARTS({EXPLAIN_BATCHING, 5}, {EXPLAIN_HELD_BACK, 10}, {EXPLAIN_COMPUTE, 20}));
}
END_TEST

/* Requests 0 and 1 have their first tokens at 10 and 20. At 20 request 0's next pass is launched,
 * and request 1's is formed. So request 1 waits behind it with a pass of its own. */
static void formed_and_waiting(struct sched *s, struct script *y)
{
    const struct request *b = y->request[1];
    if (b != NULL && b->generated_tokens == 1 && y->stage == 0) {
        y->stage = 1;
        y->pass[0] = script_form(s, y->request[0]);
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
        y->pass[1] = script_form(s, b); /* the last action of this instant */
    }
    if (y->stage == 1 || b == NULL || b->generated_tokens == 0) {
        const struct request *a = y->request[0];
        y->request[0] = a != NULL && a->generated_tokens == 1 && y->stage == 0 ? NULL : a;
        script_serve(s, y);
        y->request[0] = a;
    }
}

/* From 20 to 30 request 1 waits in a queue, and is not held back. */
START_TEST(who_has_a_pass_is_not_left_out)
{
    static const struct scenario_request q[] = {{RT, 0, 8, 2, 0, 0}, {RT, 0, 8, 2, 0, 0}};
    run(formed_and_waiting, q, 2);
    took(1, PARTS({EXPLAIN_QUEUE_SAME, 10 + 10}, {EXPLAIN_COMPUTE, 20}));
}
END_TEST

/* Request 0 decodes and request 2 prefills in one pass, 20-30. Request 1 decodes too and is left
 * out, so it is held back. */
static void mixed_without_one(struct sched *s, struct script *y)
{
    const struct request *b = y->request[1];
    const struct request *c = y->request[2];
    if (y->stage == 0 && b != NULL && b->generated_tokens == 1 && c != NULL) {
        y->stage = 1;
        struct segment seg[2] = {
            {.request = y->request[0], .role = SEGMENT_DECODE, .n_tokens = 1},
            {.request = c, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(c)}};
        struct pass_spec spec = {.segments = seg, .n_segments = 2};
        ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), 0);
        y->pass[2] = y->pass[0];
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
        return;
    }
    if (sched_device_free_slots(s, IGPU) == 0) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct request *r = y->request[i];
        bool waits = y->stage == 0 && (r == NULL || r->generated_tokens > 0);
        if (!waits && r != NULL && r->pass == NULL && sched_device_free_slots(s, IGPU) > 0) {
            y->pass[i] = script_form(s, r);
            (void)script_launch(s, y->pass[i], IGPU, YIELD_PASS, &y->launch[i]);
        }
    }
}

START_TEST(who_is_left_out_of_a_mixed_pass_is_held_back)
{
    static const struct scenario_request q[] = {
        {RT, 0, 8, 2, 0, 0}, {RT, 0, 8, 2, 0, 0}, {RT, 0.020, 8, 1, 0, 0}};
    run(mixed_without_one, q, 3);
    took(1, PARTS({EXPLAIN_QUEUE_SAME, 10}, {EXPLAIN_HELD_BACK, 10}, {EXPLAIN_COMPUTE, 20}));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("causes", .setup = setup, .teardown = teardown),
    TEST(a_shared_pass_is_charged_to_those_who_share_it),
    TEST(an_explanation_can_end_with_the_first_token),
    TEST(a_batch_of_both_classes_is_a_queue_of_each),
    TEST(sharing_is_named_before_throttling_and_ends_with_the_kernel),
    TEST(a_launch_that_ends_when_a_kernel_begins_does_not_share_with_it),
    TEST(an_eviction_is_named_before_compiling),
    TEST(compiling_is_named_before_queues_for_prompts_of_that_length),
    TEST(loading_is_named_for_formed_passes_and_idle_devices),
    TEST(who_comes_too_late_for_a_batch_is_not_held_back),
    TEST(who_has_a_pass_is_not_left_out),
    TEST(who_is_left_out_of_a_mixed_pass_is_held_back),
};
SUITE_MAIN("causes", suite)
