/* Where launches start and stop on the virtual devices, by hand.
 *
 * On the toy NPU a chunk of 256 rows takes 4 ms for QKV and 8 ms for FFN. Attention takes 6 ms and
 * the head 1 ms. Two layers and 512 rows are these kernels (ms):
 *
 *   layer 0   QKV 0-4, 4-8, MHA 8-14, FFN 14-22, 22-30
 *   layer 1   QKV 30-34, 34-38, MHA 38-44, FFN 44-52, 52-60
 *   head      60-61
 *
 * Ops 0 to 6 begin at 0, 8, 14, 30, 38, 44 and 60. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/byhand.h"

static int64_t lost_ns, isolated_sum_ns, lead_ns[SCRIPT_MAX], start_ns[SCRIPT_MAX];

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    (void)now_ns;
    (void)l;
    lost_ns += lost;
    isolated_sum_ns += isolated;
}

static void on_started(void *self, int64_t now_ns, const struct launch *l, int64_t lead)
{
    (void)self;
    start_ns[l->id] = now_ns;
    lead_ns[l->id] = lead;
}

static void setup(void)
{
    byhand_setup();
    lost_ns = 0;
    isolated_sum_ns = 0;
    sc.observer.launch_ended = on_ended;
    sc.observer.launch_started = on_started;
    byhand_toy(5);
}

static void ended(uint32_t i, double ms, enum launch_outcome outcome, uint32_t op,
                  uint32_t rows_todo)
{
    ck_assert_uint_gt(x.n_ends, i);
    ck_assert_msg(x.ends[i].at_ns == MS(ms), "launch ended at %.6f ms, not %.3f",
                  units_ms_from_ns(x.ends[i].at_ns), ms);
    ck_assert_int_eq((int)x.ends[i].outcome, (int)outcome);
    ck_assert_uint_eq(x.ends[i].op, op);
    ck_assert_uint_eq(x.ends[i].rows_todo, rows_todo);
}

/* ---- one launch, one stop ---- */

static const struct scenario_request one[] = {{BE, 0, 512, 1, 0, 0}};
static double stop_ms;
static uint32_t inflight = 1;
static struct preempt_spec how;

/* Launches all of request 0 on the NPU, and asks it to stop at stop_ms. When it has stopped, the
 * policy launches its rest in the same way. */
static void stop_once(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL) {
        return;
    }
    if (y->pass[0] == NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
    }
    if (y->pass[0] != NULL && y->pass[0]->state == PASS_STATE_READY) {
        struct launch_spec l = sched_launch_rest(s, y->pass[0], NPU, (enum yield_point)y->yield);
        l.inflight = inflight;
        ck_assert_int_eq(sched_launch(s, &l, &y->launch[0]), 0);
    }
    if (script_at(s, y, 0, stop_ms)) {
        y->rc[0] = sched_preempt(s, y->launch[0], how);
        y->rc[1] = sched_preempt(s, y->launch[0], (struct preempt_spec){0});
    }
}

struct stop {
    enum yield_point yield;
    double at_ms, ends_ms;
    uint32_t op, rows_todo;
};

/* The stop is asked for inside the first kernel, at a boundary, inside attention, and in the second
 * layer. */
static const struct stop stops[] = {
    {YIELD_KERNEL, 1, 4, 0, 256}, /* after its first chunk of two */
    {YIELD_KERNEL, 5, 8, 1, 512},  {YIELD_KERNEL, 9, 14, 2, 512},  {YIELD_KERNEL, 45, 52, 5, 256},
    {YIELD_KERNEL, 4, 4, 0, 256}, /* exactly at a boundary: it stops there */
    {YIELD_KERNEL, 8, 8, 1, 512},  {YIELD_KERNEL, 30, 30, 3, 512}, {YIELD_OP, 1, 8, 1, 512},
    {YIELD_OP, 4, 8, 1, 512}, /* the end of a kernel inside an op is no yield point */
    {YIELD_OP, 8, 8, 1, 512},      {YIELD_OP, 15, 30, 3, 512},     {YIELD_LAYER, 1, 30, 3, 512},
    {YIELD_LAYER, 8, 30, 3, 512}, /* the end of an op inside a layer is no yield point */
    {YIELD_LAYER, 30, 30, 3, 512}, {YIELD_LAYER, 31, 60, 6, 1}, /* the head has one row */
    {YIELD_KERNEL, 0, 0, 0, 512},
};

START_TEST(a_launch_stops_at_its_next_yield_point_and_nothing_is_lost)
{
    for (int collapse = 0; collapse < 2; collapse++) {
        setup();
        sc.setup.collapse = collapse == 1;
        stop_ms = stops[_i].at_ms;
        x.yield = stops[_i].yield;
        byhand_run(stop_once, one, 1);
        ck_assert_int_eq(x.rc[0], 0);
        ck_assert_int_eq(x.rc[1], -EALREADY);
        ended(0, stops[_i].ends_ms, LAUNCH_OUTCOME_YIELDED, stops[_i].op, stops[_i].rows_todo);
        ended(1, 61, LAUNCH_OUTCOME_DONE, 7, 0); /* 61 ms of work in all */
        ck_assert_int_eq(sc.records[0].finish_ns, MS(61));
        ck_assert_uint_eq(sc.result.kernels, 11);
        ck_assert_uint_eq(sc.result.counters[COUNTER_PREEMPT_REFUSED], 1);
        ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_YIELDED], 1);
        ck_assert_int_eq(lost_ns, 0);
        byhand_teardown();
    }
}
END_TEST

START_TEST(a_launch_that_yields_at_its_end_only_does_not_stop_before)
{
    stop_ms = 1;
    x.yield = YIELD_PASS;
    byhand_run(stop_once, one, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ended(0, 61, LAUNCH_OUTCOME_DONE, 7, 0);
}
END_TEST

/* Kernels that were handed over cannot be taken back. Asked at 1 ms with two in flight, the kernels
 * of 0-4 and 4-8 run. With three in flight attention 8-14 runs too. */
START_TEST(kernels_in_flight_run_before_a_stop)
{
    stop_ms = 1;
    inflight = 2;
    x.yield = YIELD_KERNEL;
    byhand_run(stop_once, one, 1);
    ended(0, 8, LAUNCH_OUTCOME_YIELDED, 1, 512);
    byhand_teardown();
    setup();
    inflight = 3;
    x.yield = YIELD_KERNEL;
    byhand_run(stop_once, one, 1);
    ended(0, 14, LAUNCH_OUTCOME_YIELDED, 2, 512);
    inflight = 1;
}
END_TEST

/* A device that can take kernels back stops after the running one. */
START_TEST(a_device_that_withdraws_takes_kernels_in_flight_back)
{
    stop_ms = 1;
    inflight = 3;
    x.yield = YIELD_KERNEL;
    sc.machine.devices[NPU].can_withdraw = true;
    byhand_run(stop_once, one, 1);
    ended(0, 4, LAUNCH_OUTCOME_YIELDED, 0, 256);
    inflight = 1;
}
END_TEST

/* The stop says that kernels in flight shall run, so such a device runs them too: 0-4, 4-8, and
 * attention 8-14. */
START_TEST(a_device_that_withdraws_can_be_asked_not_to)
{
    stop_ms = 1;
    inflight = 3;
    how.drain = true;
    x.yield = YIELD_KERNEL;
    sc.machine.devices[NPU].can_withdraw = true;
    byhand_run(stop_once, one, 1);
    ended(0, 14, LAUNCH_OUTCOME_YIELDED, 2, 512);
    inflight = 1;
    how.drain = false;
}
END_TEST

/* Host work of 1 + 2 + 3 = 6 ms precedes the kernels. Stopped at 2 ms, nothing has run. Launched
 * again at once, the request has the 6 ms again: 2 + 6 + 61 = 69 ms. Its first kernel starts at 8
 * ms, and with it its service. */
START_TEST(a_stop_during_host_work_ends_the_launch_at_once)
{
    stop_ms = 2;
    x.yield = YIELD_KERNEL;
    sc.machine.schedule_ns = MS(1);
    sc.machine.devices[NPU].submit_ns = MS(2);
    sc.machine.devices[NPU].completion_ns = MS(3);
    byhand_run(stop_once, one, 1);
    ended(0, 2, LAUNCH_OUTCOME_YIELDED, 0, 512);
    ended(1, 69, LAUNCH_OUTCOME_DONE, 7, 0);
    ck_assert_int_eq(sc.records[0].start_ns, MS(8));
}
END_TEST

/* Tries launches with a member of 0, and stops that contradict themselves. Neither means a
 * default. */
static void malformed(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL || y->stage > 0) {
        return;
    }
    y->stage = 1;
    y->pass[0] = script_form(s, y->request[0]);
    struct launch_spec l = sched_launch_rest(s, y->pass[0], NPU, YIELD_KERNEL);
    for (uint32_t *member = NULL, i = 0; i < 3; i++) {
        member = (uint32_t *[]){&l.n_ops, &l.rows, &l.inflight}[i];
        uint32_t was = *member;
        *member = 0;
        ck_assert_int_eq(sched_launch(s, &l, NULL), -EINVAL);
        *member = was;
    }
    ck_assert_int_eq(sched_launch(s, &l, &y->launch[0]), 0);
    y->rc[0] = sched_preempt(s, y->launch[0], (struct preempt_spec){.discard = true});
    y->rc[1] = sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true, .drain = true});
}

START_TEST(a_launch_of_nothing_and_a_stop_that_contradicts_itself_are_refused)
{
    sc.machine.devices[NPU].can_reset = true;
    sc.machine.devices[NPU].can_suspend = true;
    byhand_run(malformed, one, 1);
    ck_assert_int_eq(x.rc[0], -EINVAL);
    ck_assert_int_eq(x.rc[1], -EINVAL);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_BAD_SPAN], 3);
    ck_assert_uint_eq(sc.result.counters[COUNTER_PREEMPT_REFUSED], 2);
    ended(0, 61, LAUNCH_OUTCOME_DONE, 7, 0); /* as if nothing had been asked */
}
END_TEST

/* ---- reset ---- */

static void reset_once(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 5)) {
        y->rc[0] =
            sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true, .discard = true});
    }
}

/* At 5 ms the second chunk has run for 1 ms, which is lost. The reset takes 0.5 ms, so the launch
 * ends at 5.5 with 256 rows of QKV to do. The rest takes 61 - 4 = 57 ms: 62.5. */
START_TEST(reset_kills_the_running_kernel_and_loses_its_work)
{
    for (int collapse = 0; collapse < 2; collapse++) {
        setup();
        sc.setup.collapse = collapse == 1;
        sc.machine.devices[NPU].can_reset = true;
        sc.machine.devices[NPU].reset_ns = MS(0.5);
        byhand_run(reset_once, one, 1);
        ck_assert_int_eq(x.rc[0], 0);
        ended(0, 5.5, LAUNCH_OUTCOME_RESET, 0, 256);
        ended(1, 62.5, LAUNCH_OUTCOME_DONE, 7, 0);
        ck_assert_int_eq(lost_ns, MS(1));
        ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_RESET], 1);
        byhand_teardown();
    }
}
END_TEST

START_TEST(a_device_without_reset_refuses_it)
{
    byhand_run(reset_once, one, 1);
    ck_assert_int_eq(x.rc[0], -EPERM);
    ck_assert_uint_eq(sc.result.counters[COUNTER_PREEMPT_REFUSED], 1);
    ended(0, 61, LAUNCH_OUTCOME_DONE, 7, 0);
}
END_TEST

/* ---- suspension ---- */

static uint8_t goes_on_with;
static double suspend_ms[2];

/* Suspends the running kernel at the given instants. It launches the rest at once, from the second
 * launch on on `goes_on_with`. */
static void suspend(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL) {
        return;
    }
    if (y->pass[0] == NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
    }
    if (y->pass[0] != NULL && y->pass[0]->state == PASS_STATE_READY) {
        uint8_t d = y->n_ends == 0 ? (uint8_t)NPU : goes_on_with;
        y->rc[2] = script_launch(s, y->pass[0], d, YIELD_PASS, &y->launch[0]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (suspend_ms[i] > 0 && script_at(s, y, i, suspend_ms[i])) {
            y->rc[i] = sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true});
        }
    }
}

/* At 5 ms the second chunk has run for 1 of 4 ms. 0.5 ms later the device is free, and the chunk
 * continues with its last 3 ms: 61.5 in all, 11 kernels, and nothing lost. In two of the four runs
 * it is suspended again at 7.5, 2 ms into the rest, which costs another 0.5. It makes no difference
 * whether its bytes move all the time, in the first 2.5 ms, or in the first 0.5. */
START_TEST(a_suspended_kernel_goes_on_where_it_stopped)
{
    static const double compute_only[] = {0.0, 0.375, 0.875};
    for (int k = 0; k < 4; k++) {
        setup();
        sc.compute_only_frac = compute_only[_i];
        sc.setup.collapse = k % 2 == 1;
        sc.machine.devices[NPU].can_suspend = true;
        sc.machine.devices[NPU].reset_ns = MS(0.5);
        goes_on_with = NPU;
        suspend_ms[0] = 5;
        suspend_ms[1] = k / 2 == 1 ? 7.5 : 0;
        byhand_run(suspend, one, 1);
        ck_assert_int_eq(x.rc[0], 0);
        ended(0, 5.5, LAUNCH_OUTCOME_YIELDED, 0, 256);
        if (k / 2 == 1) {
            ended(1, 8, LAUNCH_OUTCOME_YIELDED, 0, 256);
            ended(2, 62, LAUNCH_OUTCOME_DONE, 7, 0);
        } else {
            ended(1, 61.5, LAUNCH_OUTCOME_DONE, 7, 0);
        }
        ck_assert_int_eq(lost_ns, 0);
        ck_assert_int_eq(isolated_sum_ns, MS(61));
        ck_assert_uint_eq(sc.result.kernels, 11);
        byhand_teardown();
    }
}
END_TEST

/* The iGPU has run nothing of that chunk: 5.5 + 4 + 6 + 8 + 4 + 6 + 8 + 1 = 42.5. */
START_TEST(a_suspended_kernel_starts_over_on_another_device)
{
    sc.machine.devices[NPU].can_suspend = true;
    sc.machine.devices[NPU].reset_ns = MS(0.5);
    goes_on_with = IGPU;
    suspend_ms[0] = 5;
    suspend_ms[1] = 0;
    byhand_run(suspend, one, 1);
    ended(0, 5.5, LAUNCH_OUTCOME_YIELDED, 0, 256);
    ended(1, 42.5, LAUNCH_OUTCOME_DONE, 7, 0);
}
END_TEST

START_TEST(a_device_that_cannot_suspend_refuses_it)
{
    goes_on_with = NPU;
    suspend_ms[0] = 5;
    suspend_ms[1] = 0;
    byhand_run(suspend, one, 1);
    ck_assert_int_eq(x.rc[0], -EPERM);
    ended(0, 61, LAUNCH_OUTCOME_DONE, 7, 0);
}
END_TEST

/* ---- the queue of a device ---- */

static const struct scenario_request three[] = {
    {BE, 0, 512, 1, 0, 0}, {BE, 0, 512, 1, 0, 0}, {BE, 0, 512, 1, 0, 0}};

/* Two launches may be in flight. The second request queues behind the first on the NPU. The third
 * is refused, and launched again when the first has ended. */
static void queue_two(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (y->pass[i] == NULL && y->request[i] != NULL && y->request[i]->pass == NULL) {
            y->pass[i] = script_form(s, y->request[i]);
        }
    }
    if (y->stage == 0) {
        y->stage = 1;
        for (uint32_t i = 0; i < 3; i++) {
            y->rc[i] = script_launch(s, y->pass[i], NPU, YIELD_PASS, &y->launch[i]);
        }
    } else if (y->n_ends == 1 && y->stage == 1) {
        y->stage = 2;
        y->rc[3] = script_launch(s, y->pass[2], NPU, YIELD_PASS, NULL);
    }
}

/* Each takes 61 ms. The host's work of 2 ms is on the clock once, before the first launch: 63, 124
 * and 185. The others are submitted while the device works. */
START_TEST(a_queued_launch_starts_when_the_one_before_ends)
{
    sc.machine.devices[NPU].inflight_depth = 2;
    sc.machine.devices[NPU].submit_ns = MS(2);
    byhand_run(queue_two, three, 3);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(x.rc[2], -EBUSY);
    ck_assert_int_eq(x.rc[3], 0);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_DEVICE_BUSY], 1);
    ck_assert_int_eq(start_ns[2], MS(63));
    ck_assert_int_eq(lead_ns[1], MS(2));
    ck_assert_int_eq(lead_ns[2], 0);
    ended(0, 63, LAUNCH_OUTCOME_DONE, 7, 0);
    ended(1, 124, LAUNCH_OUTCOME_DONE, 7, 0);
    ended(2, 185, LAUNCH_OUTCOME_DONE, 7, 0);
}
END_TEST

/* At 10 ms the queued second launch is taken back, and launched on the iGPU. */
static void withdraw(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (y->pass[i] == NULL && y->request[i] != NULL && y->request[i]->pass == NULL) {
            y->pass[i] = script_form(s, y->request[i]);
            y->rc[i] = script_launch(s, y->pass[i], NPU, YIELD_PASS, &y->launch[i]);
        }
    }
    if (script_at(s, y, 0, 10)) {
        y->rc[2] = sched_preempt(s, y->launch[1], (struct preempt_spec){0});
    }
    bool back = y->pass[1] != NULL && y->pass[1]->state == PASS_STATE_READY;
    if (y->stage >= 1 && back) { /* its first op, and then the rest */
        struct launch_spec l = sched_launch_rest(s, y->pass[1], IGPU, YIELD_KERNEL);
        l.n_ops = y->stage++ == 1 ? 1 : l.n_ops;
        ck_assert_int_eq(sched_launch(s, &l, NULL), 0);
    }
}

/* The iGPU runs one dynamic kernel an op, (4 + 6 + 8) * 2 + 1 = 37 ms, until 10 + 37 = 47. The
 * launch never ran on the NPU, so there is no barrier, which would take 5 ms. */
START_TEST(a_withdrawn_launch_ends_at_once_and_leaves_no_trace_on_the_device)
{
    sc.machine.devices[NPU].inflight_depth = 2;
    sc.machine.devices[NPU].can_withdraw = true;
    sc.machine.sync_ns = MS(5);
    byhand_run(withdraw, three, 2);
    ck_assert_int_eq(x.rc[2], 0);
    ended(0, 10, LAUNCH_OUTCOME_WITHDRAWN, 0, 512);
    ended(1, 14, LAUNCH_OUTCOME_DONE, 1, 512);
    ended(2, 47, LAUNCH_OUTCOME_DONE, 7, 0);
    ended(3, 61, LAUNCH_OUTCOME_DONE, 7, 0);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_WITHDRAWN], 1);
    ck_assert_int_eq(sc.records[1].start_ns, MS(10));
}
END_TEST

START_TEST(a_queue_that_takes_nothing_back_refuses_to_withdraw)
{
    sc.machine.devices[NPU].inflight_depth = 2;
    byhand_run(withdraw, three, 2);
    ck_assert_int_eq(x.rc[2], -EPERM);
    ended(0, 61, LAUNCH_OUTCOME_DONE, 7, 0);
    ended(1, 122, LAUNCH_OUTCOME_DONE, 7, 0);
}
END_TEST

/* ---- shares of one op, barriers ---- */

static void shares(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL) {
        return;
    }
    if (y->stage == 0) {
        y->stage = 1;
        y->pass[0] = script_form(s, y->request[0]);
        struct launch_spec l = sched_launch_rest(s, y->pass[0], NPU, YIELD_KERNEL);
        l.n_ops = 1;
        l.rows = 256;
        y->rc[0] = sched_launch(s, &l, NULL);
        l.device = IGPU;
        l.n_ops = 2;
        y->rc[1] = sched_launch(s, &l, NULL); /* a share is of one op */
        l.n_ops = 1;
        y->rc[2] = sched_launch(s, &l, NULL);
        l.device = CPU;
        l.rows = y->pass[0]->rows_todo;
        y->rc[3] = sched_launch(s, &l, NULL); /* no rows left */
    } else if (y->n_ends >= 2 && y->pass[0]->state == PASS_STATE_READY) {
        (void)script_launch(s, y->pass[0], y->n_ends == 2 ? IGPU : NPU, YIELD_PASS, NULL);
    }
}

/* In QKV of layer 0 the NPU computes 256 rows from 0 to 4 ms, and the iGPU the other 256 from 0 to
 * 6 (its kernel is set to 6 ms). The op ends at 6. Attention and everything after it run on the
 * iGPU. They follow an op that also ran on the NPU, so they wait for the barrier of 3 ms, until 9.
 * Then come 6 + 8 + 6 + 6 + 8 + 1 = 35: 44. */
START_TEST(an_op_ends_with_its_last_share_and_a_change_of_device_costs_the_barrier)
{
    scenario_cost(&sc, IGPU, OP_QKV, 6, 0, 5);
    sc.machine.sync_ns = MS(3);
    byhand_run(shares, one, 1);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], -EINVAL);
    ck_assert_int_eq(x.rc[2], 0);
    ck_assert_int_eq(x.rc[3], -EBUSY);
    ck_assert_uint_eq(sc.result.counters[COUNTER_LAUNCH_BAD_SPAN], 2);
    ended(0, 4, LAUNCH_OUTCOME_DONE, 0, 0);
    ended(1, 6, LAUNCH_OUTCOME_DONE, 1, 512);
    ended(2, 44, LAUNCH_OUTCOME_DONE, 7, 0);
    ck_assert_int_eq(lead_ns[3], MS(3));
}
END_TEST

/* Sampling of 2 ms a token follows the head, so the first token is out at 61 + 2. A decode step on
 * the iGPU has two fused layers of 7 ms, a head of 1 and 2 of sampling: 80. */
static void then_decode(struct sched *s, struct script *y)
{
    y->device = y->request[0] != NULL && y->request[0]->generated_tokens > 0 ? IGPU : NPU;
    script_serve(s, y);
}

START_TEST(tokens_are_out_when_the_host_has_sampled_them)
{
    static const struct scenario_request two_tokens[] = {{BE, 0, 512, 2, 0, 0}};
    sc.machine.sample_ns_per_token = MS(2);
    scenario_cost(&sc, IGPU, OP_LAYER, 7, 0, 5);
    byhand_run(then_decode, two_tokens, 1);
    ck_assert_int_eq(sc.records[0].token_ns[0], MS(63));
    ck_assert_int_eq(sc.records[0].token_ns[1], MS(80));
}
END_TEST

/* At 4 ms the first chunk has ended and the second begins. Nothing has run of that, so there is
 * nothing to interrupt, and the launch leaves the device at once. It does so at 8 ms too, between
 * two ops. 1 ms later an interruption takes its 0.5 ms. */
START_TEST(suspending_exactly_between_two_kernels_interrupts_nothing)
{
    for (int k = 0; k < 4; k++) {
        setup();
        sc.setup.collapse = k % 2 == 1;
        sc.machine.devices[NPU].can_suspend = true;
        sc.machine.devices[NPU].reset_ns = MS(0.5);
        goes_on_with = NPU;
        suspend_ms[0] = 4;
        suspend_ms[1] = k / 2 == 1 ? 8 : 9;
        byhand_run(suspend, one, 1);
        ended(0, 4, LAUNCH_OUTCOME_YIELDED, 0, 256);
        if (k / 2 == 1) {
            ended(1, 8, LAUNCH_OUTCOME_YIELDED, 1, 512);
            ended(2, 61, LAUNCH_OUTCOME_DONE, 7, 0);
        } else {
            ended(1, 9.5, LAUNCH_OUTCOME_YIELDED, 1, 512);
            ended(2, 61.5, LAUNCH_OUTCOME_DONE, 7, 0);
        }
        byhand_teardown();
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("yields"),
    LOOP(a_launch_stops_at_its_next_yield_point_and_nothing_is_lost,
         (sizeof stops / sizeof stops[0])),
    TEST(reset_kills_the_running_kernel_and_loses_its_work),
    LOOP(a_suspended_kernel_goes_on_where_it_stopped, 3),
    TEST(suspending_exactly_between_two_kernels_interrupts_nothing),
    CASE("by hand", .setup = setup, .teardown = byhand_teardown),
    TEST(a_launch_that_yields_at_its_end_only_does_not_stop_before),
    TEST(kernels_in_flight_run_before_a_stop),
    TEST(a_device_that_withdraws_takes_kernels_in_flight_back),
    TEST(a_device_that_withdraws_can_be_asked_not_to),
    TEST(a_stop_during_host_work_ends_the_launch_at_once),
    TEST(a_launch_of_nothing_and_a_stop_that_contradicts_itself_are_refused),
    TEST(a_device_without_reset_refuses_it),
    TEST(a_suspended_kernel_starts_over_on_another_device),
    TEST(a_device_that_cannot_suspend_refuses_it),
    TEST(a_queued_launch_starts_when_the_one_before_ends),
    TEST(a_withdrawn_launch_ends_at_once_and_leaves_no_trace_on_the_device),
    TEST(a_queue_that_takes_nothing_back_refuses_to_withdraw),
    TEST(an_op_ends_with_its_last_share_and_a_change_of_device_costs_the_barrier),
    TEST(tokens_are_out_when_the_host_has_sampled_them),
};
SUITE_MAIN("engine stops", suite)
