/* Instants: at which of them a policy is called, two events of one instant, and runs that would
 * never end.
 *
 * In these tests QKV takes 4 ms, attention 6, FFN 8 and the head 1 a kernel. The NPU cuts rows into
 * chunks of 256, and the iGPU runs whole operators. So two layers and 512 rows take 61 ms on the
 * NPU and 37 ms on the iGPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/byhand.h"

static int64_t isolated_sum_ns;
static const struct scenario_request one[] = {{RT, 0, 512, 1, 0, 0}};
static const struct scenario_request two[] = {{RT, 0, 512, 1, 0, 0}, {RT, 0, 512, 1, 0, 0}};

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    (void)now_ns;
    (void)l;
    (void)lost;
    isolated_sum_ns += isolated;
}

static void setup(void)
{
    byhand_setup();
    isolated_sum_ns = 0;
    sc.observer.launch_ended = on_ended;
    byhand_toy(5);
}

static uint64_t last_epoch;

static void on_both_devices(struct sched *s, struct script *y)
{
    last_epoch = s->epoch;
    if (y->request[0] != NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
        (void)script_launch(s, y->pass[0], IGPU, YIELD_KERNEL, NULL);
    }
    if (script_at(s, y, 0, 30)) {
        y->pass[1] = script_form(s, y->request[1]);
        (void)script_launch(s, y->pass[1], NPU, YIELD_KERNEL, NULL);
    }
}

/* The iGPU takes 2 (4 + 6 + 8) + 1 = 37 ms. The NPU's launch comes at 30 ms and has 7 ms of host
 * work. So it begins at the very instant at which the iGPU's last kernel ends, and the NPU's events
 * come first. It takes its own 61 ms, so it ends at 98. */
START_TEST(a_launch_ends_when_another_begins_at_its_end)
{
    for (int collapse = 0; collapse < 2; collapse++) {
        setup();
        sc.setup.collapse = collapse == 1;
        sc.machine.devices[NPU].submit_ns = MS(7);
        byhand_run(on_both_devices, two, 2);
        ck_assert_int_eq(x.ends[0].at_ns, MS(37));
        ck_assert_int_eq(x.ends[1].at_ns, MS(98));
        ck_assert_int_eq(isolated_sum_ns, MS(98));
        byhand_teardown();
    }
}
END_TEST

/* Four instants have news: the arrivals at 0, the timer at 30, and the ends at 37 and 98. The 17
 * kernels between them are no business of the policy, and neither is a graphics user's frame. */
START_TEST(a_policy_is_asked_only_when_it_can_see_something_new)
{
    for (int k = 0; k < 4; k++) {
        setup();
        sc.setup.collapse = k % 2 == 1;
        sc.machine.devices[NPU].submit_ns = MS(7);
        if (k / 2 == 1) {
            sc.setup.frames = (struct sim_frames){.per_s = 20, .device = CPU, .device_ns = MS(1)};
        }
        byhand_run(on_both_devices, two, 2);
        ck_assert_uint_eq(last_epoch, 4);
        byhand_teardown();
    }
}
END_TEST

static void on_the_npu(struct sched *s, struct script *y)
{
    if (y->request[0] != NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
        (void)script_launch(s, y->pass[0], NPU, YIELD_PASS, NULL);
    }
}

/* The second prompt is longer than the memory, so its arrival at 30 ms ends the run. By then five
 * kernels of the first have ended: two of QKV (4 and 8 ms), two of attention (14 and 20) and one of
 * FFN (28). */
START_TEST(an_error_leaves_what_ran_before_it_counted)
{
    static const struct scenario_request second_too_long[] = {{RT, 0, 512, 1, 0, 0},
                                                              {RT, 0.030, 2048, 1, 0, 0}};
    for (int collapse = 0; collapse < 2; collapse++) {
        setup();
        sc.setup.collapse = collapse == 1;
        sc.setup.kv_capacity_tokens = 1024;
        x.step = on_the_npu;
        ck_assert_int_ne(script_run(&sc, &x, second_too_long, 2), 0);
        ck_assert_ptr_nonnull(strstr(sc.result.message, "request 1 needs"));
        ck_assert_uint_eq(sc.result.kernels, 5);
        byhand_teardown();
    }
}
END_TEST

/* ---- nothing gets done ---- */

static void stops_in_the_lead(struct sched *s, struct script *y)
{
    if (y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
    }
    const struct launch *l = y->launch[0];
    if (y->pass[0]->state == PASS_STATE_RUNNING && s->now_ns > l->submit_ns) {
        (void)sched_preempt(s, l, (struct preempt_spec){0});
    } else if (y->pass[0]->state == PASS_STATE_READY) {
        (void)script_launch(s, y->pass[0], NPU, YIELD_KERNEL, &y->launch[0]);
        (void)sched_set_timer(s, s->now_ns + MS(1));
    }
}

/* Every launch is stopped 1 ms into its 2 ms of host work, and put back, for ever. More than 1,000
 * of them take over a second without any work done, and this run waits for one second. */
START_TEST(launches_that_never_get_to_work_are_a_livelock)
{
    sc.machine.devices[NPU].submit_ns = MS(2);
    sc.setup.stall_ns = NS_PER_S;
    x.step = stops_in_the_lead;
    ck_assert_int_eq(script_run(&sc, &x, one, 1), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "livelock"));
    ck_assert_int_le(sc.result.end_ns, 2 * NS_PER_S);
}
END_TEST

static void far_timer(struct sched *s, struct script *y)
{
    (void)y;
    (void)sched_set_timer(s, TIME_NEVER_NS - 1);
}

START_TEST(a_run_ends_before_its_clock_does)
{
    x.step = far_timer;
    ck_assert_int_eq(script_run(&sc, &x, one, 1), -ERANGE);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "146 years"));
}
END_TEST

/* The request takes 37 ms on the iGPU. An event at the horizon itself still happens. One that is a
 * ns behind it does not. */
START_TEST(a_horizon_is_the_last_instant)
{
    sc.setup.horizon_ns = MS(37) - _i;
    x.step = script_serve;
    x.device = IGPU;
    ck_assert_int_eq(script_run(&sc, &x, one, 1), 0);
    ck_assert_uint_eq(sc.result.audit.finished, _i == 0 ? 1 : 0);
    ck_assert_int_eq(sc.result.end_ns, MS(37) - _i);
}
END_TEST

/* Each request runs on a device of its own: 0 and 1 at once, 2 and 3 when both have ended. */
static void in_pairs(struct sched *s, struct script *y)
{
    static const uint8_t device[] = {NPU, IGPU, NPU, CPU};
    bool first_over = y->n_ends == 2;
    for (uint32_t i = first_over ? 2 : 0; i < (first_over ? 4u : 2u); i++) {
        if (y->request[i] != NULL && y->pass[i] == NULL) {
            y->pass[i] = script_form(s, y->request[i]);
            (void)script_launch(s, y->pass[i], device[i], YIELD_PASS, NULL);
        }
    }
}

/* Each request takes 37 ms, and the whole DDR for that. NPU and iGPU have equal weights, so both
 * end at 74.
 *
 * The CPU has three times the weight of the NPU. It ends 37 / 0.75 later, when the NPU has done 37
 * / 3. The NPU has the rest alone, so it ends at 74 + 37 + 37. Kernels of both pairs draw the same
 * and differ only in their device. An engine that remembers the shares of equal kernels without
 * their devices gives 74 and 74 again. */
START_TEST(equal_kernels_share_by_the_weights_of_their_devices)
{
    static const struct scenario_request four[] = {
        {RT, 0, 256, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}, {RT, 0, 256, 1, 0, 0}};
    for (int collapse = 0; collapse < 2; collapse++) {
        setup();
        byhand_toy(100);
        memcpy(sc.cost[CPU], sc.cost[IGPU], sizeof sc.cost[CPU]);
        sc.setup.collapse = collapse == 1;
        sc.observer.kernel = NULL; /* nobody looks, so boundaries pass without events */
        sc.setup.contention = contention_find("weighted");
        sc.machine.devices[CPU].ddr_weight = 3.0;
        byhand_run(in_pairs, four, 4);
        ck_assert_int_eq(sc.records[0].finish_ns, MS(74));
        ck_assert_int_eq(sc.records[1].finish_ns, MS(74));
        ck_assert_int_le(llabs(sc.records[3].finish_ns - MS(74 + 37 / 0.75)), 20);
        ck_assert_int_le(llabs(sc.records[2].finish_ns - MS(148)), 20);
        byhand_teardown();
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("with and without collapsing"),
    TEST(equal_kernels_share_by_the_weights_of_their_devices),
    TEST(a_launch_ends_when_another_begins_at_its_end),
    TEST(a_policy_is_asked_only_when_it_can_see_something_new),
    TEST(an_error_leaves_what_ran_before_it_counted),
    CASE("without end", .setup = setup, .teardown = byhand_teardown),
    TEST(launches_that_never_get_to_work_are_a_livelock),
    TEST(a_run_ends_before_its_clock_does),
    LOOP(a_horizon_is_the_last_instant, 2),
};
SUITE_MAIN("instants", suite)
