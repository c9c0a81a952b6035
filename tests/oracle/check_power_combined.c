/* Power limits, steps of frequency and batteries together with stopped launches, turns, compiling,
 * verifications and hangs, by hand. The toy iGPU has one layer: QKV takes 4 s, attention 6, FFN 8
 * and the head 2. So a prompt or a verification takes 20 s at full speed, at 30 or 12 W. Nothing
 * else draws power. The exponent is 1: half of the power is half of the speed. */
#include <math.h>

#include "sim/metrics/explain.h"
#include "tests/helpers/byhand.h"

#define S(t) units_ns_from_s(t)

static void setup(void)
{
    byhand_igpu_setup();
    sc.llm.n_layers = 1;
    scenario_cost(&sc, IGPU, OP_QKV, 4000, 0, 0);
    scenario_cost(&sc, IGPU, OP_MHA, 6000, 0, 0);
    scenario_cost(&sc, IGPU, OP_FFN, 8000, 0, 0);
    scenario_cost(&sc, IGPU, OP_HEAD, 2000, 0, 0);
    sc.machine.idle_watts = 0;
    sc.machine.compile_watts = 0;
    sc.machine.devices[IGPU].prefill_watts = 30;
    sc.machine.devices[IGPU].decode_watts = 12;
    sc.setup.throttle = (struct sim_throttle){.exponent = 1, .min_speed = 0.1};
}

static struct machine_event *event(double at_s, uint32_t sets)
{
    struct machine_event *v = &sc.events[sc.n_events++];
    *v = (struct machine_event){.at_ns = S(at_s), .until_ns = TRACE_LAST_NS, .sets = sets};
    return v;
}

static void battery(double charge_j)
{
    struct machine_event *v = event(0, MACHINE_SETS_BATTERY | MACHINE_SETS_SOURCE);
    v->battery_j = charge_j;
    v->battery_full_j = 2 * charge_j;
    v->on_battery = true;
}

static double finish_s(uint32_t request)
{
    return (double)sc.records[request].finish_ns / 1e9;
}

static double joules(void)
{
    return sc.result.audit.energy_sum_j;
}

/* ---- the average of a limit ---- */

/* The machine draws 6 W at rest and 36 at work, and the limit is 21 W with 10 s. The first turn
 * meets it after 10 ln 2 s, and runs at half speed from then on, so that the average stays at 21.
 * It falls for 5 s of rest, to x = 6 + 15 exp(-1/2). The second turn meets the limit after 10
 * ln((36 - x) / 15) s. A cached prefix changes nothing here, since kernels take their time for any
 * rows. */
START_TEST(the_average_falls_between_two_turns)
{
    static const struct scenario_request turns[] = {{BE, 0, 256, 1, 1, 0}, {BE, 5, 512, 1, 1, 256}};
    sc.machine.idle_watts = 6;
    sc.setup.throttle.limit_watts = 21;
    sc.setup.throttle.tau_s = 10;
    byhand_run(script_serve, turns, 2);
    double first = 10 * log(2);
    double ended = first + 2 * (20 - first);
    double left = 6 + 15 * exp(-0.5);
    double second = 10 * log((36 - left) / 15);
    double end = ended + 5 + second + 2 * (20 - second);
    ck_assert_double_eq_tol(finish_s(0), ended, 1e-6);
    ck_assert_double_eq_tol(finish_s(1), end, 1e-6);
    double slow_s = 2 * (40 - first - second);
    ck_assert_double_eq_tol(joules(), 36 * (first + second) + 21 * slow_s + 6 * 5, 1e-4);
}
END_TEST

static void compile_then_serve(struct sched *s, struct script *y)
{
    if (y->stage == 0) {
        y->stage = 1;
        (void)sched_compile(s, (struct resident_key){RESIDENT_COMPILED_ATTENTION, 256, 0});
    }
    if (y->n_ready > 0) {
        script_serve(s, y);
    }
}

/* The host compiles at 24 W, which no limit slows. The average of 10 s is then 24 (1 - exp(-3)) =
 * 22.8 W after 30 s, above the limit of 15. So the prompt has half its speed from the first
 * instant: the average falls towards 15 and never gets below. After 5 s of compiling it is x = 24
 * (1 - exp(-1/2)), and the prompt meets the limit 10 ln((30 - x) / 15) s later. */
START_TEST(compiling_uses_up_what_a_prompt_may_draw)
{
    static const struct scenario_request one[] = {{BE, 0, 256, 1, 0, 0}};
    double compiled = _i == 0 ? 30 : 5;
    double full = _i == 0 ? 0 : 10 * log((30 - 24 * (1 - exp(-0.5))) / 15);
    sc.machine.compile_watts = 24;
    sc.machine.compile_fixed_ns = S(compiled);
    sc.machine.compile_ns_per_token = 0;
    sc.machine.sample_ns_per_token = 0;
    sc.setup.throttle.limit_watts = 15;
    sc.setup.throttle.tau_s = 10;
    byhand_run(compile_then_serve, one, 1);
    double slow_s = 2 * (20 - full);
    ck_assert_double_eq_tol(finish_s(0), compiled + full + slow_s, 1e-6);
    ck_assert_double_eq_tol(joules(), 24 * compiled + 30 * full + 15 * slow_s, 1e-4);
}
END_TEST

/* ---- stopped launches ---- */

static const struct scenario_request urgent[] = {{BE, 0, 256, 1, 0, 0},
                                                 {REQUEST_CLASS_REACTIVE, 7, 256, 1, 0, 0}};

static void urgent_first(struct sched *s, struct script *y)
{
    const struct launch *running = y->launch[0];
    if (y->request[1] != NULL && y->stage == 0) {
        y->stage = 1;
        y->rc[0] = sched_preempt(s, running, (struct preempt_spec){0});
    }
    for (int i = 1; i >= 0; i--) {
        const struct request *r = y->request[i];
        if (r != NULL && y->pass[i] == NULL && r->pass == NULL) {
            y->pass[i] = script_form(s, r);
        }
        if (r != NULL && y->pass[i] != NULL && y->pass[i]->state == PASS_STATE_READY &&
            sched_device_free_slots(s, IGPU) > 0) {
            (void)script_launch(s, y->pass[i], IGPU, YIELD_KERNEL, &y->launch[i]);
        }
    }
}

/* Background attention ends at 10 s and yields. The urgent prompt does 2 s of its work until 12 s,
 * when a limit of 15 W halves the speed: the other 18 s take 36, until 48. FFN and head of the
 * first follow, 10 s of work in 20. The background request waits for 38 s. */
START_TEST(a_limit_slows_what_is_stopped_and_what_stops_it)
{
    event(12, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 15;
    struct explain *why = explain_new(&sc.machine, EXPLAIN_ALL);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(why);
    byhand_run(urgent_first, urgent, 2);
    ck_assert_int_eq(x.rc[0], 0);
    ck_assert_double_eq_tol(finish_s(1), 48, 1e-6);
    ck_assert_double_eq_tol(finish_s(0), 68, 1e-6);
    ck_assert_double_eq_tol(joules(), 12 * 30 + 56 * 15, 1e-4);
    static const double want[2][3] = {{20, 10, 38}, {20, 18, 3}};
    for (uint32_t i = 0; i < 2; i++) {
        const struct explanation *e = explain_find(why, i);
        double all = (double)(sc.records[i].finish_ns - sc.records[i].arrival_ns) / 1e9;
        double compute = (double)e->ns[EXPLAIN_COMPUTE] / 1e9;
        double slowed = (double)e->ns[EXPLAIN_THROTTLING] / 1e9;
        ck_assert_double_eq_tol(compute, want[i][0], 1e-6);
        ck_assert_double_eq_tol(slowed, want[i][1], 1e-6);
        ck_assert_double_eq_tol(all - compute - slowed, want[i][2], 1e-6);
    }
    explain_free(why);
}
END_TEST

/* Now a battery has 1,000 J. Until 12 s the machine draws 360 of them, and 15 W use the
 * rest up in 640 / 15 s. The urgent request has its token by then, and the other one does not. */
START_TEST(a_battery_ends_between_two_launches_of_a_pass)
{
    event(12, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 15;
    battery(1000);
    byhand_run(urgent_first, urgent, 2);
    ck_assert(sc.result.battery.empty);
    ck_assert_double_eq_tol((double)sc.result.end_ns / 1e9, 12 + 640.0 / 15, 1e-6);
    ck_assert_double_eq_tol(joules(), 1000, 1e-4);
    ck_assert_uint_eq(sc.result.audit.finished, 1);
    ck_assert_uint_eq(sc.result.audit.running, 1);
}
END_TEST

/* ---- verifications ---- */

static uint32_t three(const void *params UNUSED, uint64_t seed UNUSED,
                      const struct request *r UNUSED, const struct trace_text *text UNUSED,
                      uint64_t step UNUSED)
{
    return 3;
}

static uint32_t all_of_it(const void *params UNUSED, uint64_t seed UNUSED,
                          const struct request *r UNUSED, const struct trace_text *text UNUSED,
                          uint64_t step UNUSED, uint32_t drafted)
{
    return drafted;
}

static void verify(struct sched *s, struct script *y)
{
    const struct request *r = y->request[0];
    if (r == NULL || r->state != REQUEST_STATE_DECODE) {
        script_serve(s, y);
        return;
    }
    struct segment seg = {.request = r, .role = SEGMENT_VERIFY, .n_tokens = 4};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *p = NULL;
    if (r->pass == NULL && sched_pass_form(s, &spec, &p) == 0) {
        (void)script_launch(s, p, IGPU, YIELD_PASS, NULL);
    }
}

/* A limit of 6 W leaves a prompt a fifth of its speed: 100 s. A verification draws the power of a
 * decode, so it has half of its own, and its four tokens come after 40 s. 140 s at 6 W are 840 J.
 */
START_TEST(a_verification_draws_the_power_of_a_decode)
{
    static const struct scenario_request one[] = {{BE, 0, 256, 5, 0, 0}};
    sc.setup.draft = three;
    sc.setup.accept = all_of_it;
    event(0, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 6;
    byhand_run(verify, one, 1);
    ck_assert_double_eq_tol((double)sc.records[0].first_token_ns / 1e9, 100, 1e-6);
    ck_assert_double_eq_tol(finish_s(0), 140, 1e-6);
    ck_assert_double_eq_tol(joules(), 840, 1e-4);
}
END_TEST

/* ---- hangs ---- */

/* A launch that hangs takes three times as long. Under a limit of 15 W that is 120 s, at 15 W. By
 * steps, half of the speed costs a quarter of the power, so it is the cheapest: 120 s at 7.5 W. A
 * battery of 240 J that loses a quarter and feeds 2 W more gives 12 W, and lasts for 20 s. */
START_TEST(a_hang_is_slowed_like_any_kernel)
{
    static const struct scenario_request one[] = {{BE, 0, 256, 1, 0, 0}};
    sc.setup.hang_frac = 1;
    sc.setup.hang_factor = 3;
    if (_i == 0) {
        event(0, MACHINE_SETS_POWER_LIMIT)->power_limit_watts = 15;
    } else {
        sc.setup.dvfs[IGPU] =
            (struct sim_dvfs){.n = 2, .steps = {{0.5, 0.25}, {1, 1}}, .rule = SIM_DVFS_ENERGY};
    }
    if (_i == 2) {
        sc.setup.supply = (struct sim_supply){0.75, 2};
        battery(240);
    }
    byhand_run(script_serve, one, 1);
    double end_s = (double)sc.result.end_ns / 1e9;
    ck_assert_double_eq_tol(end_s, _i == 2 ? 20 : 120, 1e-6);
    ck_assert_double_eq_tol(joules(), _i == 0 ? 120 * 15 : end_s * 7.5, 1e-4);
    ck_assert_uint_eq(sc.result.audit.finished, _i < 2);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = byhand_teardown),
    TEST(the_average_falls_between_two_turns),
    LOOP(compiling_uses_up_what_a_prompt_may_draw, 2),
    TEST(a_limit_slows_what_is_stopped_and_what_stops_it),
    TEST(a_battery_ends_between_two_launches_of_a_pass),
    TEST(a_verification_draws_the_power_of_a_decode),
    LOOP(a_hang_is_slowed_like_any_kernel, 3),
};
SUITE_MAIN("power combined", suite)
