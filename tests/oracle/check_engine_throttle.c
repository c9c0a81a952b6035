/* Power limits against the closed form. The toy iGPU has one layer: QKV takes 4 s, attention 6, FFN
 * 8 and the head 2. So a prefill takes 20 s alone, at 30 W. Nothing else draws power. A limit works
 * on an average of the power, which follows P with the time constant tau: at a constant P it is P
 * (1 - exp(-t/tau)). */
#include <math.h>
#include <string.h>

#include "sim/metrics/explain.h"
#include "tests/helpers/byhand.h"

static double speeds[16], at_s[16];
static uint32_t n_speeds;

static void on_speed(void *self, int64_t now_ns, double speed)
{
    (void)self;
    ck_assert_uint_lt(n_speeds, 16);
    at_s[n_speeds] = (double)now_ns / 1e9;
    speeds[n_speeds++] = speed;
}

static void setup(void)
{
    byhand_setup();
    n_speeds = 0;
    sc.observer.speed = on_speed;
    sc.llm.n_layers = 1;
    scenario_cost(&sc, IGPU, OP_QKV, 4000, 0, 0);
    scenario_cost(&sc, IGPU, OP_MHA, 6000, 0, 0);
    scenario_cost(&sc, IGPU, OP_FFN, 8000, 0, 0);
    scenario_cost(&sc, IGPU, OP_HEAD, 2000, 0, 0);
    sc.machine.idle_watts = 0;
    for (int d = NPU; d <= CPU; d++) {
        sc.machine.devices[d].idle_watts = 0;
    }
    sc.machine.devices[IGPU].prefill_watts = 30;
    sc.machine.poll_watts = 0;
    sc.machine.compile_watts = 0;
    x.step = script_serve;
    x.device = IGPU;
}

static double finish_s(double limit, double burst, double tau, double exponent, double least)
{
    static const struct scenario_request one[] = {{REQUEST_CLASS_PROACTIVE, 0, 256, 1, 0, 0}};
    sc.setup.throttle = (struct sim_throttle){limit, burst, tau, exponent, least};
    byhand_run(x.step, one, 1);
    return (double)sc.records[0].finish_ns / 1e9;
}

START_TEST(no_limit_slows_nothing)
{
    ck_assert_double_eq_tol(finish_s(0, 0, 1, 3, 0.1), 20.0, 1e-6);
    byhand_teardown();
    setup();
    ck_assert_double_eq_tol(finish_s(30, 0, 5, 3, 0.1), 20.0, 1e-6); /* P is never above it */
    ck_assert_uint_eq(n_speeds, 0);
}
END_TEST

/* A drawn machine may have a device that draws 5 W at rest and 3 W at work. No speed brings it to a
 * limit of 4 W, or 2 W at any instant, so it keeps its own. */
START_TEST(a_device_that_draws_less_at_work_is_not_slowed)
{
    sc.machine.devices[IGPU].idle_watts = 5;
    sc.machine.devices[IGPU].prefill_watts = 3;
    ck_assert_double_eq_tol(finish_s(4, 2, 1, 3, 0.1), 20.0, 1e-6);
    ck_assert_uint_eq(n_speeds, 0);
}
END_TEST

/* From 0 W the average follows 30 (1 - exp(-t/10)), and meets 15 W at 10 ln 2 = 6.9315 s. From then
 * on P stays at 15 of 30 W. With exponent 3 that is a speed of (1/2)^(1/3) = 0.7937. 13.0685 s of
 * work are left and take 16.4653 s: 23.3968 s in all. */
START_TEST(the_average_meets_the_limit_when_the_closed_form_says)
{
    double t = 10.0 * log(2.0);
    double speed = pow(0.5, 1.0 / 3.0);
    ck_assert_double_eq_tol(finish_s(15, 0, 10, 3, 0.1), t + (20.0 - t) / speed, 1e-6);
    ck_assert_double_eq_tol(at_s[0], t, 1e-6);
    ck_assert_double_eq_tol(speeds[0], speed, 1e-6);
    /* The energy is that of 30 W until then, and of 15 W after it. */
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 30.0 * t + 15.0 * (20.0 - t) / speed,
                            1e-4);
}
END_TEST

/* The machine draws 6 W at rest, and the average waits there, whether work comes at once or after
 * 100 s. With work it draws 36 W. So the average follows 36 - 30 exp(-t/10), with t from the
 * arrival, and meets 21 W at 10 ln 2. Then 15 of the 30 W above rest are left, as in the test
 * above. */
START_TEST(the_average_waits_at_what_the_machine_draws_at_rest)
{
    double t = 10.0 * log(2.0);
    double speed = pow(0.5, 1.0 / 3.0);
    double after_s = 100.0 * _i;
    const struct scenario_request one = {REQUEST_CLASS_PROACTIVE, after_s, 256, 1, 0, 0};
    sc.machine.idle_watts = 6;
    sc.setup.throttle = (struct sim_throttle){21, 0, 10, 3, 0.1};
    byhand_run(x.step, &one, 1);
    ck_assert_double_eq_tol(at_s[0] - after_s, t, 1e-6);
    ck_assert_double_eq_tol(speeds[0], speed, 1e-6);
    ck_assert_double_eq_tol((double)sc.records[0].finish_ns / 1e9 - after_s, t + (20.0 - t) / speed,
                            1e-6);
}
END_TEST

/* A burst limit of 20 W counts from the first instant, so the speed is (2/3)^(1/1) with the
 * exponent 1. The average then follows 20 (1 - exp(-t/10)), and meets 15 W at 10 ln 4 = 13.863 s.
 * By then 9.242 s of work are done. The other 10.758 s run at half speed: 13.863 + 21.516 = 35.379
 * s. */
START_TEST(bursts_are_limited_at_once_and_the_average_later)
{
    double t = 10.0 * log(4.0);
    double done = t * 2.0 / 3.0;
    ck_assert_double_eq_tol(finish_s(15, 20, 10, 1, 0.1), t + (20.0 - done) / 0.5, 1e-6);
    ck_assert_double_eq_tol(speeds[0], 2.0 / 3.0, 1e-9);
    ck_assert_double_eq_tol(speeds[1], 0.5, 1e-6);
}
END_TEST

/* 1 W would need a speed of 1/30, and nothing runs below 0.25, so the limit is exceeded. As tau is
 * short, the speed falls almost at once, after 0.01 ln(30/29) s. The prompt takes 20 / 0.25 = 80 s,
 * less the work of that moment. */
START_TEST(nothing_runs_below_the_least_speed)
{
    ck_assert_double_eq_tol(finish_s(1, 0, 0.01, 1, 0.25), 80.0, 0.01);
    ck_assert_double_eq(speeds[n_speeds > 1 ? 0 : n_speeds - 1], 0.25);
}
END_TEST

/* An RC model has 2 K/W and 5 J/K over an ambient of 25 degrees, with a limit of 55. That is (55 -
 * 25) / 2 = 15 W with tau = 2 * 5 = 10 s, as above. */
START_TEST(an_rc_model_is_the_same_equation)
{
    double limit = (55.0 - 25.0) / 2.0;
    double t = 10.0 * log(2.0);
    ck_assert_double_eq_tol(finish_s(limit, 0, 2.0 * 5.0, 3, 0.1),
                            t + (20.0 - t) / pow(0.5, 1.0 / 3.0), 1e-6);
}
END_TEST

static int64_t alone_ns;

static void on_ended(void *self, int64_t now_ns, const struct launch *l, int64_t isolated,
                     int64_t lost)
{
    (void)self;
    (void)now_ns;
    (void)l;
    (void)lost;
    alone_ns += isolated;
}

/* One launch runs alone, 23.3968 s under the limit. That is its isolated time there, so nothing of
 * it counts as contention (actual - isolated). So it is where its kernels load for 30 % of their
 * time first. */
START_TEST(throttling_is_not_contention)
{
    sc.compute_only_frac = _i == 1 ? 0.7 : 0.0;
    sc.observer.launch_ended = on_ended;
    alone_ns = 0;
    double t = finish_s(15, 0, 10, 3, 0.1);
    ck_assert_double_eq_tol(t, 23.3968, 1e-4);
    ck_assert_double_eq_tol((double)alone_ns / 1e9, t, 1e-6);
}
END_TEST

static double stop_s;

/* Launches what is left of the prompt, and suspends it once. */
static void suspend(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL) {
        return;
    }
    if (y->pass[0] == NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
    }
    if (y->pass[0] != NULL && y->pass[0]->state == PASS_STATE_READY) {
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, YIELD_PASS, &y->launch[0]), 0);
    }
    if (script_at(s, y, 0, 1e3 * stop_s)) {
        struct preempt_spec now = {.now = true};
        ck_assert_int_eq(sched_preempt(s, y->launch[0], now), 0);
    }
}

/* Two launches share the prompt: the first is suspended, inside a kernel or between two. A limit of
 * 15 W, also for bursts, halves the speed all the time, so the prompt takes 40 s. Both launches
 * together report that as their own time, whether a kernel moves its bytes or computes. */
START_TEST(a_suspended_kernel_keeps_what_it_was_slowed)
{
    static const double stops[] = {0.5, 3.0, 7.9, 8.0, 11.0, 25.0, 39.0};
    sc.machine.devices[IGPU].can_suspend = true;
    sc.machine.devices[IGPU].reset_ns = 0;
    sc.observer.launch_ended = on_ended;
    sc.compute_only_frac = _i % 2 == 1 ? 0.7 : 0.0;
    x.step = suspend;
    stop_s = stops[_i / 2];
    alone_ns = 0;
    ck_assert_double_eq_tol(finish_s(15, 15, 10, 1, 0.1), 40.0, 1e-6);
    ck_assert_uint_eq(x.n_ends, 2);
    ck_assert_int_eq(x.ends[0].outcome, LAUNCH_OUTCOME_YIELDED);
    ck_assert_double_eq_tol((double)alone_ns / 1e9, 40.0, 1e-6);
}
END_TEST

/* Throttling is a cause of its own, with 23.3968 - 20 s. */
START_TEST(throttling_is_explained)
{
    struct explain *why = explain_new(&sc.machine, EXPLAIN_ALL);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(why);
    double end = finish_s(15, 0, 10, 3, 0.1);
    const struct explanation *e = explain_find(why, 0);
    ck_assert_ptr_nonnull(e);
    ck_assert_double_eq_tol((double)e->ns[EXPLAIN_THROTTLING] / 1e9, end - 20.0, 1e-5);
    ck_assert_double_eq_tol((double)e->ns[EXPLAIN_COMPUTE] / 1e9, 20.0, 1e-5);
    explain_free(why);
}
END_TEST

/* The platform idles at 5 W, the NPU at 2 and the iGPU at 3. Nothing of these 10 W can be slowed,
 * and the average begins with them. At full speed the iGPU draws 30, so the machine draws 37. The
 * average follows 37 - 27 exp(-t/10), and meets 22 W at 10 ln(27/15) = 5.878 s. From then on 22 =
 * 10 + 27 s^3, so s = (12/27)^(1/3) = 0.7631. */
START_TEST(what_idles_draws_its_power_at_any_speed)
{
    sc.machine.idle_watts = 5;
    sc.machine.devices[NPU].idle_watts = 2;
    sc.machine.devices[IGPU].idle_watts = 3;
    double t = 10.0 * log(27.0 / 15.0);
    double speed = pow(12.0 / 27.0, 1.0 / 3.0);
    double end = t + (20.0 - t) / speed;
    ck_assert_double_eq_tol(finish_s(22, 0, 10, 3, 0.1), end, 1e-6);
    ck_assert_uint_eq(n_speeds, 2); /* slower, and back at the end */
    ck_assert_double_eq_tol(at_s[0], t, 1e-6);
    ck_assert_double_eq_tol(speeds[0], speed, 1e-6);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 37.0 * t + 22.0 * (end - t), 1e-4);
}
END_TEST

static void serve_and_load(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        (void)sched_load(s, (struct resident_key){RESIDENT_GRAPH_BLOCK, 1, 2}, 10e9);
    }
    script_serve(s, y);
}

/* A burst limit of 15 of 30 W halves the speed from the first instant, so the prompt takes 40 s.
 * The loader is no device, so its 10 GB at 1 GB/s take 10 s at any speed. */
START_TEST(the_loader_keeps_its_speed)
{
    x.step = serve_and_load;
    ck_assert_double_eq_tol(finish_s(15, 15, 1000, 1, 0.1), 40.0, 1e-6);
    ck_assert_uint_eq(x.n_ready, 1);
    ck_assert_int_eq(x.ready[0].at_ns, 10 * NS_PER_S);
}
END_TEST

static int64_t frame_done_ns;

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                     int64_t due_ns)
{
    (void)self;
    (void)device;
    (void)due_ns;
    if (to == FRAME_DONE && frame_done_ns == 0) {
        frame_done_ns = now_ns;
    }
}

/* The prompt is on the NPU at half speed. A frame of 2 s on the iGPU keeps its time: a governor of
 * inference does not slow the display. */
START_TEST(frames_keep_their_speed)
{
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        sc.cost[NPU][op] = sc.cost[IGPU][op];
    }
    sc.machine.devices[NPU].static_attention = false;
    sc.machine.devices[NPU].prefill_watts = 30;
    sc.machine.devices[IGPU].prefill_watts = sc.machine.devices[IGPU].decode_watts = 0;
    sc.setup.frames =
        (struct sim_frames){.per_s = 0.01, .device = IGPU, .device_ns = 2 * NS_PER_S, .bytes = 0};
    sc.observer.frame = on_frame;
    frame_done_ns = 0;
    x.device = NPU;
    ck_assert_double_eq_tol(finish_s(15, 15, 1000, 1, 0.1), 40.0, 1e-6);
    ck_assert_int_eq(frame_done_ns, 2 * NS_PER_S);
}
END_TEST

/* Kills the first kernel at 1 s. Another device is occupied without a pass meanwhile, from 1.5 to
 * 2.5 s. */
static void reset_at_1_s(struct sched *s, struct script *y)
{
    script_serve(s, y);
    if (script_at(s, y, 0, 1000)) {
        y->rc[0] =
            sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true, .discard = true});
    }
    if (script_at(s, y, 1, 1500)) {
        y->rc[1] = sched_occupy(s, CPU, units_ns_from_ms(2500));
    }
}

/* The iGPU works from 0 to 1 s, is being reset until 3 s, and then runs the prompt until 23 s. It
 * draws 30 W all the time, 690 J, and the host polls for 10 W as long, 230 J. The second prompt, at
 * 100 s, takes 20 s: 600 and 200 J.
 *
 * A limit of 1000 W is never met, so it must change nothing. That holds for the device's power
 * while it is reset, also at an instant at which another device makes the engine compute speeds. It
 * holds for the time in which the host polls. */
START_TEST(a_limit_that_is_not_met_changes_no_power)
{
    static const struct scenario_request two[] = {{REQUEST_CLASS_PROACTIVE, 0, 256, 1, 0, 0},
                                                  {REQUEST_CLASS_PROACTIVE, 100, 256, 1, 0, 0}};
    static struct policy_ops ops;
    ops = script_ops;
    ops.flags = POLICY_F_BUSY_POLL;
    sc.setup.policy = &ops;
    sc.setup.policy_context = &x;
    sc.machine.devices[IGPU].can_reset = true;
    sc.machine.devices[IGPU].reset_ns = 2 * NS_PER_S;
    sc.machine.devices[CPU].decode_watts = 0;
    sc.machine.poll_watts = 10;
    sc.setup.throttle = (struct sim_throttle){_i == 1 ? 1000 : 0, 0, 10, 3, 0.1};
    x.step = reset_at_1_s;
    ck_assert_int_eq(scenario_run(&sc, two, 2, false), 0);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.rc[1], 0);
    ck_assert_int_eq(sc.records[0].finish_ns, 23 * NS_PER_S);
    ck_assert_int_eq(sc.records[1].finish_ns, 120 * NS_PER_S);
    ck_assert_uint_eq(n_speeds, 0);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 690 + 230 + 600 + 200, 1e-6);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("throttle", .setup = setup, .teardown = byhand_teardown),
    TEST(no_limit_slows_nothing),
    TEST(a_device_that_draws_less_at_work_is_not_slowed),
    TEST(the_average_meets_the_limit_when_the_closed_form_says),
    LOOP(the_average_waits_at_what_the_machine_draws_at_rest, 2),
    TEST(bursts_are_limited_at_once_and_the_average_later),
    TEST(nothing_runs_below_the_least_speed),
    TEST(an_rc_model_is_the_same_equation),
    LOOP(throttling_is_not_contention, 2),
    LOOP(a_suspended_kernel_keeps_what_it_was_slowed, 14),
    TEST(throttling_is_explained),
    TEST(what_idles_draws_its_power_at_any_speed),
    TEST(the_loader_keeps_its_speed),
    TEST(frames_keep_their_speed),
    LOOP(a_limit_that_is_not_met_changes_no_power, 2),
};
SUITE_MAIN("throttle", suite)
