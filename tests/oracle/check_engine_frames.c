/* The graphics user, by hand. The toy iGPU has dynamic shapes and two layers, and runs one prompt
 * with one kernel per operator. QKV takes 4 ms, attention 6, FFN 8 and the head 1. Alone the
 * kernels end at 4, 10, 18, 22, 28, 36 and 37 ms. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/metrics/explain.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/byhand.h"

static struct {
    int64_t at_ns[16], due_ns[16];
    enum frame_state to[16];
    uint32_t n;
} seen;

static void on_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                     int64_t due_ns)
{
    (void)self;
    ck_assert_uint_eq(device, IGPU);
    ck_assert_uint_lt(seen.n, 16);
    seen.at_ns[seen.n] = now_ns;
    seen.due_ns[seen.n] = due_ns;
    seen.to[seen.n++] = to;
}

static void setup(void)
{
    byhand_setup();
    memset(&seen, 0, sizeof seen);
    sc.observer.frame = on_frame;
    byhand_toy(0);
    x.step = script_serve;
    x.device = IGPU;
}

static void frames(double per_s, double device_ms, double bytes)
{
    sc.setup.frames = (struct sim_frames){
        .per_s = per_s, .device = IGPU, .device_ns = MS(device_ms), .bytes = bytes};
}

static const struct scenario_request one[] = {{REQUEST_CLASS_PROACTIVE, 0, 256, 1, 0, 0}};

static void run(bool collapse)
{
    sc.setup.collapse = collapse;
    byhand_run(x.step, one, 1);
}

static void frame(uint32_t i, enum frame_state to, double at_ms, double due_ms)
{
    ck_assert_uint_gt(seen.n, i);
    ck_assert_int_eq((int)seen.to[i], (int)to);
    ck_assert_msg(seen.at_ns[i] == MS(at_ms), "event %u at %.6f ms, not %.3f", i,
                  units_ms_from_ns(seen.at_ns[i]), at_ms);
    ck_assert_int_eq(seen.due_ns[i], MS(due_ms));
}

/* Every 10 ms a frame of 2 ms is due. The first begins at 0, when nothing runs yet. Each other one
 * begins after the kernel that runs when it is due.
 *
 *   frame      0..2
 *   QKV        2..6
 *   attention  6..12
 *   frame      12..14, due at 10
 *   FFN        14..22
 *   frame      22..24, due at 20
 *   QKV        24..28
 *   attention  28..34
 *   frame      34..36, due at 30
 *   FFN        36..44
 *   frame      44..46, due at 40
 *   head       46..47 */
START_TEST(a_frame_waits_for_the_running_kernel_and_the_launch_for_the_frame)
{
    frames(100, 2, 0);
    run(_i == 1);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(47));
    ck_assert_uint_eq(seen.n, 10);
    const double begin[] = {0, 12, 22, 34, 44};
    for (uint32_t i = 0; i < 5; i++) {
        frame(2 * i, FRAME_STARTED, begin[i], 10.0 * i);
        frame(2 * i + 1, FRAME_DONE, begin[i] + 2, 10.0 * i);
    }
    ck_assert_uint_eq(sc.result.kernels, 7); /* a paused launch computes nothing twice */
}
END_TEST

/* Every 5 ms a frame of 1 ms is due. A frame that is due while another one waits is missed.
 *
 *   frame      0..1
 *   QKV        1..5
 *   frame      5..6, due as the kernel ends
 *   attention  6..12
 *   frame      12..13, due at 10
 *   FFN        13..21; the frame of 15 waits, that of 20 is missed
 *   frame      21..22, due at 15
 *   QKV        22..26
 *   frame      26..27, due at 25
 *   attention  27..33
 *   frame      33..34, due at 30
 *   FFN        34..42; the frame of 35 waits, that of 40 is missed
 *   frame      42..43, due at 35
 *   head       43..44 */
START_TEST(a_frame_that_is_due_while_another_waits_is_missed)
{
    frames(200, 1, 0);
    run(_i == 1);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(44));
    ck_assert_uint_eq(seen.n, 7 * 2 + 2);
    frame(2, FRAME_STARTED, 5, 5);
    frame(6, FRAME_MISSED, 20, 15);
    frame(7, FRAME_STARTED, 21, 15);
    frame(13, FRAME_MISSED, 40, 35);
    frame(14, FRAME_STARTED, 42, 35);
}
END_TEST

/* On the NPU one layer runs: QKV 0..4 ms, attention 4..10, FFN 10..18 with 60 GB/s, and the head.
 * Frames on the idle iGPU come every 12 ms and take 2 ms at 80 GB/s. The second one, at 12, meets
 * the FFN, which has 6 ms left. Both get 50 of 100 GB/s. So the frame takes 2 * 80 / 50 = 3.2 ms,
 * in which the FFN does 3.2 * 50 / 60 = 2 2/3 ms. At 15.2 it has 3 1/3 left. It ends at 18.5333,
 * and the head at 19.5333. */
START_TEST(a_frames_traffic_slows_the_other_device)
{
    sc.llm.n_layers = 1;
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 60);
    sc.setup.contention = contention_find("max-min");
    frames(1000.0 / 12, 2, 0.16e9);
    x.device = NPU;
    run(_i == 1);
    frame(3, FRAME_DONE, 15.2, 12);
    ck_assert_int_le(llabs(sc.records[0].finish_ns - MS(19.533333)), 2);
}
END_TEST

static enum yield_point stop_yield;

static void stop_at_13(struct sched *s, struct script *y)
{
    if (y->request[0] == NULL) {
        return;
    }
    if (y->pass[0] == NULL && y->request[0]->pass == NULL) {
        y->pass[0] = script_form(s, y->request[0]);
    }
    if (y->pass[0] != NULL && y->pass[0]->state == PASS_STATE_READY) {
        ck_assert_int_eq(script_launch(s, y->pass[0], IGPU, stop_yield, &y->launch[0]), 0);
    }
    if (script_at(s, y, 0, 13)) {
        y->rc[0] = sched_preempt(s, y->launch[0], (struct preempt_spec){0});
    }
}

/* At 13 ms the frame of 12..14 has the device. A launch that may stop between kernels stops at
 * once. Launched again, it waits for the frame, so the end is at 47 ms all the same. A launch that
 * stops between layers runs its FFN 14..22 first. */
START_TEST(a_paused_launch_stops_at_once_where_it_may)
{
    stop_yield = _i == 0 ? YIELD_KERNEL : YIELD_LAYER;
    x.step = stop_at_13;
    frames(100, 2, 0);
    run(false);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_int_eq(x.ends[0].at_ns, _i == 0 ? MS(13) : MS(22));
    ck_assert_int_eq((int)x.ends[0].outcome, LAUNCH_OUTCOME_YIELDED);
    ck_assert_uint_eq(x.ends[0].op, _i == 0 ? 2 : 3);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(47));
}
END_TEST

/* In the first test, kernels take 37 of the 47 ms, and 5 frames of 2 ms the other 10. */
START_TEST(the_time_that_frames_take_is_a_cause_of_its_own)
{
    struct explain *why = explain_new(&sc.machine, EXPLAIN_ALL);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(why);
    frames(100, 2, 0);
    run(true);
    const struct explanation *e = explain_find(why, 0);
    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(e->ns[EXPLAIN_COMPUTE], MS(37));
    ck_assert_int_eq(e->ns[EXPLAIN_GRAPHICS], MS(10));
    explain_free(why);
}
END_TEST

static double metric(const struct metric_list *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->v[i].name, name) == 0) {
            return m->v[i].value;
        }
    }
    ck_abort_msg("no metric %s", name);
    return 0.0;
}

/* The test of missed frames, in metrics. It has 7 frames and 2 missed ones, and frames take 7 of 44
 * ms. The frames wait 0, 0, 2, 6, 1, 3 and 7 ms, of which the mean is 19 / 7. The last frame is
 * done 8 ms after it was due. */
START_TEST(frames_are_counted)
{
    struct metrics_options o = metrics_options_default();
    struct metrics *m = metrics_new(&o, &sc.machine);
    sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
    frames(200, 1, 0);
    run(true);
    struct metric_list list = {0};
    metrics_collect(m, &list);
    ck_assert_double_eq(metric(&list, "graphics.frames"), 7);
    ck_assert_double_eq(metric(&list, "graphics.missed"), 2);
    ck_assert_double_eq_tol(metric(&list, "graphics.missed_frac"), 2.0 / 9, 1e-12);
    ck_assert_double_eq_tol(metric(&list, "graphics.busy_frac"), 7.0 / 44, 1e-12);
    ck_assert_double_eq_tol(metric(&list, "graphics.wait_s.mean"), 0.019 / 7, 1e-12);
    ck_assert_double_eq_tol(metric(&list, "graphics.latency_s.max"), 0.008, 1e-12);
    metric_list_fini(&list);
    metrics_free(m);
}
END_TEST

/* The request works on the NPU for 36 ms, and the host samples for 1 ms. Frames of 8 ms begin at 0,
 * 10, 20 and 30. The run ends 7 ms into the last, so the device is busy for 3 * 8 + 7 = 31 ms. All
 * that time frames move 10 of 100 GB/s, and the request moves nothing. */
START_TEST(the_frame_that_the_run_ends_in_counts_up_to_there)
{
    struct metrics_options o = metrics_options_default();
    struct metrics *m = metrics_new(&o, &sc.machine);
    sc.setup.observers[sc.setup.n_observers++] = metrics_observer(m);
    x.device = NPU;
    scenario_cost(&sc, NPU, OP_HEAD, 0, 0, 0);
    sc.machine.sample_ns_per_token = MS(1) - 1;
    frames(100, 8, 0.08e9);
    run(_i == 1);
    struct metric_list list = {0};
    metrics_collect(m, &list);
    ck_assert_double_eq(metric(&list, "graphics.frames"), 4);
    ck_assert_double_eq_tol(metric(&list, "graphics.busy_frac"), 31.0 / 37, 1e-12);
    ck_assert_double_eq_tol(metric(&list, "ddr.util_frac"), 0.1 * 31.0 / 37, 1e-12);
    ck_assert_double_eq_tol(metric(&list, "ddr.tier_low_frac"), 1.0, 1e-12);
    metric_list_fini(&list);
    metrics_free(m);
}
END_TEST

/* Frames come for ever, so there is always an event to come. A policy that does nothing must stall
 * all the same. */
static void do_nothing(struct sched *s, struct script *y)
{
    (void)s;
    (void)y;
}

START_TEST(frames_do_not_hide_a_policy_that_stalls)
{
    frames(100, 2, 0);
    x.step = do_nothing;
    sc.setup.stall_ns = 5 * NS_PER_S;
    sc.observer.frame = NULL;
    ck_assert_int_eq(script_run(&sc, &x, one, 1), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "stalled"));
}
END_TEST

/* ---- rates that change ---- */

static int64_t frame_ns[512];
static uint32_t n_frames;

static void note_frame(void *self, int64_t now_ns, uint8_t device, enum frame_state to,
                       int64_t due_ns)
{
    (void)self;
    ck_assert_uint_eq(device, IGPU);
    ck_assert_int_ne((int)to, FRAME_MISSED);
    if (to == FRAME_STARTED) {
        ck_assert_uint_lt(n_frames, 512);
        ck_assert_int_eq(now_ns, due_ns);
        frame_ns[n_frames++] = now_ns;
    }
}

/* The device does nothing but frames of 1 us, up to 20 a second, at a rate that changes up to 6
 * times. The first frame is due when a rate is set, and each next one a period later. Frames of the
 * rate before have no part in that. */
START_TEST(each_rate_has_its_own_frames)
{
    struct rng r;
    uint32_t all = 0;
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 118, 0));
    uint32_t n = 1 + rng_below(&r, 6);
    double per_s[7] = {rng_below(&r, 3) == 0 ? 0.0 : 0.5 + 8 * rng_uniform(&r)};
    double at_s[8] = {0.0};
    n_frames = 0;
    sc.observer.frame = note_frame;
    frames(per_s[0], 0.001, 0);
    for (uint32_t i = 1; i <= n; i++) {
        at_s[i] = at_s[i - 1] + 0.002 + 5 * rng_uniform(&r);
        per_s[i] = rng_below(&r, 4) == 0 ? 0.0 : 0.5 + 19.5 * rng_uniform(&r);
        sc.events[sc.n_events++] = (struct machine_event){.at_ns = units_ns_from_s(at_s[i]),
                                                          .until_ns = TRACE_LAST_NS,
                                                          .sets = MACHINE_SETS_FRAMES,
                                                          .frames_per_s = per_s[i]};
    }
    scenario_cost(&sc, NPU, OP_FFN, 10000, 0, 0);
    x.device = NPU;
    run(_i % 2 == 1);
    ck_assert_int_gt(sc.result.end_ns, MS(20000));
    at_s[n + 1] = 1e6;
    for (uint32_t i = 0; i <= n; i++) {
        int64_t to_ns = units_ns_from_s(fmin(at_s[i + 1], units_s_from_ns(sc.result.end_ns)));
        for (int64_t k = 0; per_s[i] > 0.0; k++) {
            int64_t due_ns =
                units_ns_from_s(at_s[i]) + (int64_t)llround((double)k * 1e9 / per_s[i]);
            if (due_ns >= to_ns) {
                break;
            }
            ck_assert_uint_lt(all, n_frames);
            ck_assert_int_eq(frame_ns[all++], due_ns);
        }
    }
    ck_assert_uint_eq(n_frames, all);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("frames", .setup = setup, .teardown = byhand_teardown),
    LOOP(a_frame_waits_for_the_running_kernel_and_the_launch_for_the_frame, 2),
    LOOP(a_frame_that_is_due_while_another_waits_is_missed, 2),
    LOOP(a_frames_traffic_slows_the_other_device, 2),
    LOOP(a_paused_launch_stops_at_once_where_it_may, 2),
    TEST(the_time_that_frames_take_is_a_cause_of_its_own),
    TEST(frames_are_counted),
    LOOP(the_frame_that_the_run_ends_in_counts_up_to_there, 2),
    TEST(frames_do_not_hide_a_policy_that_stalls),
    LOOP(each_rate_has_its_own_frames, 30),
};
SUITE_MAIN("frames", suite)
