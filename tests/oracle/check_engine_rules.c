/* Rules of the engine that plain runs never need, by hand:
 *
 *   queues     a queue whose last item is given up
 *   energy     a policy that polls
 *   noise      its mean, and equal noise for equal work
 *   sampling   a batch that is sampled
 *   KV         a prefix that is used in part, and drafts that were wrong
 *   actions    the edges of what an action may ask for
 *
 * Kernels of the toy iGPU take 1 ns where no cost is set. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/byhand.h"

#define RT REQUEST_CLASS_REACTIVE
#define BE REQUEST_CLASS_PROACTIVE
#define MS(t) ((int64_t)((t)*1e6 + 0.5))

/* Kernels of 1 ns are below the tolerance of 10 ns. */
static void at_ms(int64_t got_ns, double want_ms)
{
    ck_assert_msg(llabs(got_ns - MS(want_ms)) <= 10, "at %.6f ms, not %.3f",
                  units_ms_from_ns(got_ns), want_ms);
}

/* ---- queues of the loader and the compiler ---- */

static struct resident_key block(uint32_t number)
{
    return (struct resident_key){RESIDENT_GRAPH_BLOCK, number, 2};
}

static struct resident_key attention(uint32_t tokens)
{
    return (struct resident_key){RESIDENT_COMPILED_ATTENTION, tokens, 0};
}

/* Asks for three items. It gives up the last at 3 ms and the one before it at 4, and asks for
 * another at 5. */
static void give_up_the_last(struct sched *s, struct script *y)
{
    script_serve(s, y);
    bool loads = y->yield == 0;
    for (uint32_t i = 1; y->stage == 0 && i <= 3; i++) {
        y->rc[i] = loads ? sched_load(s, block(i), 10e6) : sched_compile(s, attention(i));
    }
    y->stage = y->stage == 0 ? 1 : y->stage;
    for (uint32_t i = 0; i < 2; i++) {
        if (script_at(s, y, 1 + i, 3.0 + i)) {
            y->rc[4 + i] = sched_resident_evict(s, loads ? block(3 - i) : attention(3 - i));
        }
    }
    if (script_at(s, y, 3, 5)) {
        y->rc[6] = loads ? sched_load(s, block(9), 10e6) : sched_compile(s, attention(9));
    }
}

/* Each item takes 10 ms. The first takes until 10, and the new one, which is next in the queue,
 * until 20. No other is ready. A queue that loses its end with the items that were given up never
 * serves the new one. */
START_TEST(what_comes_after_a_cancelled_last_item_takes_its_place)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    sc.machine.compile_fixed_ns = MS(10);
    scenario_cost(&sc, IGPU, OP_QKV, 40, 0, 0);
    x.yield = (uint32_t)_i;
    byhand_run(give_up_the_last, q, 1);
    for (int i = 1; i <= 6; i++) {
        ck_assert_int_eq(x.rc[i], 0);
    }
    ck_assert_uint_eq(x.n_ready, 2);
    ck_assert_uint_eq(x.ready[0].id, 1);
    at_ms(x.ready[0].at_ns, 10);
    ck_assert_uint_eq(x.ready[1].id, 9);
    at_ms(x.ready[1].at_ns, 20);
}
END_TEST

/* ---- energy of a coordinator that polls ---- */

/* Two prompts of 30 ms run on the iGPU from 10 ms on, and each is sampled for 2 ms. The device
 * works from 10 to 70 ms. The host samples from 40 to 42 and from 70 to 72.
 *
 *   platform   5 W for 72 ms    0.36 J
 *   iGPU       20 W for 60 ms   1.2 J
 *   sampling   12 W for 4 ms    0.048 J
 *   polling    3 W for 60 ms    0.18 J
 *
 * The host polls while a device works, also while it samples, and not while everything idles. */
START_TEST(polling_draws_power_while_a_device_works_and_only_then)
{
    static const struct scenario_request q[] = {{BE, 0.01, 16, 1, 0, 0}, {BE, 0.01, 16, 1, 0, 0}};
    static struct policy_ops ops;
    ops = script_ops;
    ops.flags = _i == 1 ? POLICY_F_BUSY_POLL : 0;
    scenario_cost(&sc, IGPU, OP_QKV, 30, 0, 0);
    sc.machine.sample_ns_per_token = MS(2);
    sc.machine.poll_watts = 3;
    x.step = script_serve;
    sc.setup.policy = &ops;
    sc.setup.policy_context = &x;
    ck_assert_int_eq(scenario_run(&sc, q, 2, false), 0);
    at_ms(sc.records[1].finish_ns, 72);
    double want = 0.36 + 1.2 + 0.048 + (_i == 1 ? 0.18 : 0.0);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, want, 1e-6);
    ck_assert_double_eq_tol(sc.result.audit.energy_integral_j, want, 1e-6);
}
END_TEST

/* ---- noise of kernel times ---- */

/* 60 requests decode 63 tokens of 1 ms each, one after another. That gives 3,780 independent
 * factors of mean 1 and sigma 1. Their mean has a standard error of sqrt(e - 1) / sqrt(3780) =
 * 0.021. Without the -sigma^2/2 in the exponent the mean would be 1.65. */
START_TEST(noise_changes_no_mean)
{
    static struct scenario_request q[60];
    for (uint32_t i = 0; i < 60; i++) {
        q[i] = (struct scenario_request){BE, 0, 1, 64, 0, 0};
    }
    scenario_cost(&sc, IGPU, OP_LAYER, 1, 0, 0);
    sc.setup.truth_sigma = 1.0;
    byhand_run(script_serve, q, 60);
    double mean = units_ms_from_ns(sc.result.end_ns) / (60 * 63);
    ck_assert_msg(fabs(mean - 1.0) < 0.1, "mean factor %.3f", mean);
}
END_TEST

static int64_t kernel_ns[2][8];
static uint32_t n_kernels[2];

static void on_kernel(void *self, const struct kernel_record *k)
{
    (void)self;
    uint32_t i = x.yield;
    if (k->launch->pass->segments[0].request->id == 0 && n_kernels[i] < 8) {
        kernel_ns[i][n_kernels[i]++] = k->end_ns - k->begin_ns;
    }
}

/* Serves request 1 first, if there is one. */
static void last_first(struct sched *s, struct script *y)
{
    const struct request *first = y->request[0];
    if (y->request[1] != NULL) {
        y->request[0] = NULL;
    }
    script_serve(s, y);
    y->request[0] = first;
}

/* A request runs alone, and then behind another one: later and under other numbers of launches. But
 * its work is the same on the same device, so its noise must be equal. Only then every policy meets
 * the same machine. */
START_TEST(the_same_work_meets_the_same_noise)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 4, 0, 0}, {BE, 0, 16, 7, 0, 0}};
    memset(n_kernels, 0, sizeof n_kernels);
    for (uint32_t i = 0; i < 2; i++) {
        byhand_igpu_setup();
        for (int op = 0; op < OP_KIND_COUNT; op++) {
            scenario_cost(&sc, IGPU, (enum op_kind)op, 10, 0, 0);
        }
        sc.setup.truth_sigma = 0.5;
        sc.observer.kernel = on_kernel;
        sc.observer.wants_kernels = true;
        x.yield = i;
        x.step = last_first;
        sc.setup.policy = &script_ops;
        sc.setup.policy_context = &x;
        ck_assert_int_eq(scenario_run(&sc, q, i + 1, true), 0);
        byhand_teardown();
    }
    ck_assert_uint_eq(n_kernels[0], 8);
    ck_assert_uint_eq(n_kernels[1], 8);
    for (int k = 0; k < 8; k++) {
        ck_assert_int_eq(kernel_ns[0][k], kernel_ns[1][k]);
    }
    ck_assert_int_ne(kernel_ns[0][0], kernel_ns[0][4]); /* prompt and decode differ */
}
END_TEST

/* ---- sampling ---- */

/* Forms one pass of the two prompts, and then one of their decodes. */
static void together(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL || y->request[0]->pass != NULL) {
        return;
    }
    struct segment seg[2];
    for (uint32_t i = 0; i < 2; i++) {
        const struct request *r = y->request[i];
        bool decode = r->state == REQUEST_STATE_DECODE;
        seg[i] = (struct segment){.request = r,
                                  .role = decode ? SEGMENT_DECODE : SEGMENT_PREFILL,
                                  .n_tokens = decode ? 1 : request_prefill_left(r)};
    }
    struct pass_spec spec = {.segments = seg, .n_segments = 2};
    ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), 0);
    ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]), 0);
}

/* QKV takes 10 ms and each of two rows of logits 3 ms: 16 ms. The decodes take 16 ms too. */
START_TEST(the_host_samples_row_by_row)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 2, 0, 0}, {BE, 0, 16, 2, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    sc.machine.sample_ns_per_token = MS(3);
    byhand_run(together, q, 2);
    at_ms(sc.records[1].token_ns[0], 16);
    at_ms(sc.records[1].token_ns[1], 32);
}
END_TEST

/* ---- KV in whole blocks of 16 tokens ---- */

static uint64_t free_tokens;

static void see_free(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (y->request[1] != NULL && y->request[1]->pass != NULL) {
        free_tokens = sched_kv_free_tokens(s);
    }
}

/* The first turn leaves 64 tokens of KV in 4 of 10 blocks. The second one's prompt of 30 tokens
 * begins with 20 of them. While it is computed it holds 2 blocks, so 8 are free. */
START_TEST(a_prefix_used_in_part_gives_back_its_other_blocks)
{
    static const struct scenario_request q[] = {{BE, 0, 64, 1, 7, 0}, {BE, 0.01, 30, 1, 7, 20}};
    sc.setup.kv_capacity_tokens = 160;
    free_tokens = 0;
    byhand_run(see_free, q, 2);
    ck_assert_uint_eq(free_tokens, 128);
}
END_TEST

static uint32_t accept_one(const void *params, uint64_t seed, const struct request *r,
                           const struct trace_text *text, uint64_t draw, uint32_t drafted)
{
    (void)text;
    (void)params;
    (void)seed;
    (void)r;
    (void)draw;
    return drafted < 1 ? drafted : 1;
}

static uint64_t free_after[3];

static void verify_once(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL || r->pass != NULL) {
        return;
    }
    if (r->state != REQUEST_STATE_DECODE || y->stage > 0) {
        free_after[2] = y->stage == 1 ? sched_kv_free_tokens(s) : free_after[2];
        y->stage += y->stage == 1;
        script_serve(s, y);
        return;
    }
    y->stage = 1;
    free_after[0] = sched_kv_free_tokens(s);
    struct segment seg = {.request = r, .role = SEGMENT_VERIFY, .n_tokens = 41};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), 0);
    free_after[1] = sched_kv_free_tokens(s);
    ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]), 0);
}

/* A prompt of 16 tokens holds one block of 10, so 144 tokens are free. Verifying 40 drafts adds 41
 * tokens: 57 are 4 blocks, and 96 tokens are free. One draft is right: 18 tokens are 2 blocks, and
 * 128 are free again. */
START_TEST(wrong_drafts_give_back_their_blocks)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 8, 0, 0}};
    sc.setup.kv_capacity_tokens = 160;
    sc.setup.accept = accept_one;
    byhand_run(verify_once, q, 1);
    ck_assert_uint_eq(free_after[0], 144);
    ck_assert_uint_eq(free_after[1], 96);
    ck_assert_uint_eq(free_after[2], 128);
}
END_TEST

/* ---- the edges of actions ---- */

static void set_timers(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 5)) {
        y->rc[0] = sched_set_timer(s, s->now_ns);
        y->rc[1] = sched_set_timer(s, s->now_ns - 1);
        y->rc[2] = sched_set_timer(s, s->now_ns + 1);
    }
}

/* A timer for now is set, and one for a nanosecond ago is refused. */
START_TEST(a_timer_for_now_is_a_timer)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    byhand_run(set_timers, q, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], -EINVAL);
    ck_assert_int_eq(x.rc[2], 0);
    ck_assert_uint_eq(sc.result.counters[COUNTER_TIMER_REFUSED], 1);
}
END_TEST

/* A policy needs these two hooks, and no other. */
START_TEST(a_policy_without_a_required_hook_is_refused)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    static struct policy_ops ops;
    ops = script_ops;
    if (_i == 0) {
        ops.request_arrived = NULL;
    } else {
        ops.schedule = NULL;
    }
    sc.setup.policy = &ops;
    sc.setup.policy_context = &x;
    x.step = script_serve;
    ck_assert_int_eq(scenario_run(&sc, q, 1, false), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "lacks a required hook"));
}
END_TEST

/* There is KV for 64 tokens. A prompt of 48 with 16 of output fits. With 17 it never will, though
 * its prompt does. */
START_TEST(a_request_must_fit_with_its_output)
{
    const struct scenario_request q[] = {{BE, 0, 48, 16 + (uint32_t)_i, 0, 0}};
    sc.setup.kv_capacity_tokens = 64;
    x.step = script_serve;
    int rc = script_run(&sc, &x, q, 1);
    ck_assert_int_eq(rc, _i == 0 ? 0 : -ENOMEM);
    if (_i == 1) {
        ck_assert_ptr_nonnull(strstr(sc.result.message, "needs 65 KV tokens"));
    }
}
END_TEST

/* Computes half of the prompt, and then forms the pass for the other half and cancels it. */
static void half_and_cancel(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL || r->pass != NULL) {
        return;
    }
    if (y->stage < 2) {
        struct segment seg = {.request = r, .role = SEGMENT_PREFILL, .n_tokens = 32};
        struct pass_spec spec = {.segments = &seg, .n_segments = 1};
        ck_assert_int_eq(sched_pass_form(s, &spec, &y->pass[0]), 0);
    }
    if (y->stage == 0) {
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
    } else if (y->stage == 1) {
        ck_assert_int_eq(sched_pass_cancel(s, y->pass[0]), 0);
        free_tokens = sched_kv_free_tokens(s);
        y->pass[0] = NULL;
        script_serve(s, y);
    }
    y->stage++;
}

/* KV that a request has computed is no cached prefix, and must not be dropped: it keeps 2 of 10
 * blocks. */
START_TEST(a_cancelled_pass_makes_no_cache_of_what_was_computed)
{
    static const struct scenario_request q[] = {{BE, 0, 64, 1, 0, 0}};
    sc.setup.kv_capacity_tokens = 160;
    byhand_run(half_and_cancel, q, 1);
    ck_assert_uint_eq(free_tokens, 128);
}
END_TEST

/* A prompt of one token draws the power of prefill: 20 W for 10 ms, next to 5 W of the platform. */
START_TEST(a_prompt_of_one_token_is_a_prompt)
{
    static const struct scenario_request q[] = {{BE, 0, 1, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    byhand_run(script_serve, q, 1);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 0.25, 1e-6);
}
END_TEST

/* ---- kernels as observers see them ---- */

static int64_t alone_ns, taken_ns;

static void on_record(void *self, const struct kernel_record *k)
{
    (void)self;
    alone_ns += k->isolated_ns;
    taken_ns += k->end_ns - k->begin_ns;
}

static void suspend_at_4(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r != NULL && y->pass[0] == NULL && r->pass == NULL) {
        y->pass[0] = script_form(s, r);
    }
    if (y->pass[0] != NULL && y->pass[0]->state == PASS_STATE_READY) {
        (void)script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]);
    }
    if (script_at(s, y, 0, 4)) {
        y->rc[0] = sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true});
    }
}

/* A kernel of 10 ms is suspended at 4 ms, and continues at once. The record that comes at 10 ms is
 * of its rest. That took 6 ms and takes 6 alone, so nothing was slow. */
START_TEST(the_rest_of_a_suspended_kernel_takes_its_rest)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    sc.machine.devices[IGPU].can_suspend = true;
    sc.observer.kernel = on_record;
    sc.observer.wants_kernels = true;
    sc.setup.policy = &script_ops;
    sc.setup.policy_context = &x;
    x.step = suspend_at_4;
    alone_ns = taken_ns = 0;
    ck_assert_int_eq(scenario_run(&sc, q, 1, true), 0);
    ck_assert_int_eq(x.rc[0], 0);
    at_ms(sc.records[0].finish_ns, 10);
    ck_assert_int_eq(alone_ns, taken_ns);
}
END_TEST

/* Serves each request only when a timer has ended, 1 ms after it came. So the clock has an event
 * before anything runs. */
static void serve_a_ms_late(struct sched *s, struct script *o)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct request *r = o->request[i];
        if (r != NULL && s->now_ns < r->arrival_ns + MS(1)) {
            (void)sched_set_timer(s, r->arrival_ns + MS(1));
            return;
        }
    }
    script_serve(s, o);
}

/* ---- launches that wait in a device's queue ---- */

/* Stops the second launch at 5 ms, when it waits behind the first. */
static void stop_who_waits(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 5)) {
        y->rc[0] = sched_preempt(s, y->launch[1], (struct preempt_spec){.drain = y->yield == 1});
    }
}

/* A device that takes work back does so when asked. It does not where the stop says that everything
 * handed over shall run first. */
START_TEST(what_is_to_drain_is_not_withdrawn)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    sc.machine.devices[IGPU].can_withdraw = true;
    sc.machine.devices[IGPU].inflight_depth = 2;
    x.yield = (uint32_t)_i;
    byhand_run(stop_who_waits, q, 2);
    ck_assert_int_eq(x.rc[0], _i == 1 ? -EPERM : 0);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_WITHDRAWN], _i == 1 ? 0 : 1);
}
END_TEST

/* ---- long pauses ---- */

/* There are three hours between two turns, and the watchdog waits for an hour without progress. No
 * request waits in the pause, so it must not end the run. */
START_TEST(a_pause_of_a_session_is_no_stall)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 2, 7, 0}, {BE, 10800, 16, 2, 7, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 0);
    byhand_run(_i == 0 ? script_serve : serve_a_ms_late, q, 2);
    at_ms(sc.records[1].arrival_ns, 10800e3 + 10 + _i);
    ck_assert_uint_eq(sc.records[1].generated, 2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = byhand_igpu_setup, .teardown = byhand_teardown),
    LOOP(what_comes_after_a_cancelled_last_item_takes_its_place, 2),
    LOOP(polling_draws_power_while_a_device_works_and_only_then, 2),
    TEST(noise_changes_no_mean),
    TEST(a_timer_for_now_is_a_timer),
    LOOP(a_policy_without_a_required_hook_is_refused, 2),
    LOOP(a_request_must_fit_with_its_output, 2),
    TEST(a_cancelled_pass_makes_no_cache_of_what_was_computed),
    TEST(a_prompt_of_one_token_is_a_prompt),
    TEST(the_rest_of_a_suspended_kernel_takes_its_rest),
    LOOP(what_is_to_drain_is_not_withdrawn, 2),
    LOOP(a_pause_of_a_session_is_no_stall, 2),
    TEST(the_host_samples_row_by_row),
    TEST(a_prefix_used_in_part_gives_back_its_other_blocks),
    TEST(wrong_drafts_give_back_their_blocks),
    CASE("several runs"),
    TEST(the_same_work_meets_the_same_noise),
};
SUITE_MAIN("engine rules", suite)
