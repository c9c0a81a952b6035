/* Steps of frequency (sim/engine/governor.c), by hand. The toy iGPU has one layer: QKV takes 4 s,
 * attention 6, FFN 8 and the head 2. So a prompt takes 20 s at full speed, at 30 W. There are three
 * steps: a quarter of the speed at a tenth of the power, half of it at four tenths, and all of it.
 * Nothing else draws power. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "sim/metrics/explain.h"
#include "tests/helpers/changedrun.h"

#include "tests/helpers/byhand.h"

#define S(t) units_ns_from_s(t)

static const struct sim_dvfs three = {
    .n = 3,
    .steps = {{0.25, 0.1}, {0.5, 0.4}, {1, 1}},
    .rule = SIM_DVFS_UTILISATION,
    .period_ns = 1000000000,
    .headroom = 1.25,
};

static void setup(void)
{
    byhand_setup();
    scenario_cost(&sc, IGPU, OP_QKV, 4000, 0, 0);
    scenario_cost(&sc, IGPU, OP_MHA, 6000, 0, 0);
    scenario_cost(&sc, IGPU, OP_FFN, 8000, 0, 0);
    scenario_cost(&sc, IGPU, OP_HEAD, 2000, 0, 0);
    scenario_cost(&sc, IGPU, OP_LAYER, 3000, 0, 0);
    sc.machine.idle_watts = 0;
    sc.machine.devices[IGPU].prefill_watts = 30;
    sc.machine.devices[IGPU].decode_watts = 10;
    sc.machine.compile_watts = 0;
    sc.setup.throttle = (struct sim_throttle){.exponent = 1, .min_speed = 0.1};
    sc.setup.dvfs[IGPU] = three;
    x.device = IGPU;
}

static void finishes(uint32_t request, double s)
{
    double at_s = (double)sc.records[request].finish_ns / 1e9;
    ck_assert_msg(fabs(at_s - s) < 1e-7, "request %u ends at %.9f s, not %.3f", request, at_s, s);
}

/* ---- by utilisation ---- */

static const struct scenario_request one[] = {{BE, 0, 256, 1, 0, 0}};

/* A device that works all the time rises step by step. It works for a second at 0.25, and then 1.25
 * x 0.25 are wanted. It works for a second at 0.5, and then 1.25 x 0.5 are wanted. The other 19.25
 * s of work run at full speed. The three steps draw 3, 12 and 30 W. */
START_TEST(a_busy_device_rises_step_by_step)
{
    byhand_run(script_serve, one, 1);
    finishes(0, 1 + 1 + 19.25);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 3 + 12 + 19.25 * 30, 1e-6);
    ck_assert_uint_eq(sc.result.dvfs.changes, 2);
    ck_assert_int_eq(sc.result.dvfs.busy_ns, S(21.25));
    ck_assert_double_eq_tol(sc.result.dvfs.speed_ns / 1e9, 0.25 + 0.5 + 19.25, 1e-6);
}
END_TEST

/* The prompt's kernels take 20 of the 21.25 s. Slow steps take the rest, and a slow DDR nothing. */
START_TEST(slow_steps_are_explained_as_such)
{
    struct explain *e = explain_new(&sc.machine, EXPLAIN_ALL);
    sc.setup.observers[sc.setup.n_observers++] = explain_observer(e);
    byhand_run(script_serve, one, 1);
    const struct explanation *x0 = explain_find(e, 0);
    ck_assert_ptr_nonnull(x0);
    ck_assert_int_eq(x0->ns[EXPLAIN_COMPUTE], S(20));
    ck_assert_int_eq(x0->ns[EXPLAIN_THROTTLING], S(1.25));
    ck_assert_int_eq(x0->ns[EXPLAIN_DDR_SLOWDOWN], 0);
    explain_free(e);
}
END_TEST

/* The first prompt ends at 21.25 s. The period until 22 had 0.25 s of work, so 1.25 x 0.25 x 1 are
 * wanted, and 0.5 is the lowest step with that. The period until 23 had no work, so the device
 * falls to the lowest step.
 *
 * The second prompt, at 40 s, begins in the lowest step, and with a period of its own. In the
 * second case it comes at 22.5 s and finds half speed. By 23 it has used half of the period (0.3125
 * are wanted, so the step stays), and by 24 all of it. It has then done 0.75 s of its 20. */
START_TEST(a_device_at_rest_falls_and_one_with_little_to_do_stays)
{
    const struct scenario_request q[] = {{BE, 0, 256, 1, 0, 0},
                                         {BE, _i == 0 ? 40 : 22.5, 256, 1, 0, 0}};
    byhand_run(script_serve, q, 2);
    finishes(0, 21.25);
    finishes(1, _i == 0 ? 40 + 21.25 : 24 + 19.25);
    ck_assert_uint_eq(sc.result.dvfs.changes, _i == 0 ? 6 : 4);
}
END_TEST

/* The steps are 0.8 and 1. Without headroom a busy device wants the 0.8 that it has, so it stays
 * there. */
START_TEST(headroom_is_what_makes_it_rise)
{
    sc.setup.dvfs[IGPU] = (struct sim_dvfs){
        .n = 2, .steps = {{0.8, 0.5}, {1, 1}}, .period_ns = S(1), .headroom = _i == 0 ? 1 : 1.25};
    byhand_run(script_serve, one, 1);
    finishes(0, _i == 0 ? 25 : 1 + 19.2);
}
END_TEST

/* A limit of 15 of 30 W from 7 s on halves the speed as well. By then 5.75 s of work are done. In
 * the second case it comes at 1.5 s. At half frequency the device draws 12 W until 2 s, so the
 * limit has no effect until then. */
START_TEST(power_limits_come_on_top)
{
    struct machine_event *v = &sc.events[sc.n_events++];
    *v = (struct machine_event){.at_ns = _i == 0 ? S(7) : S(1.5),
                                .until_ns = TRACE_LAST_NS,
                                .sets = MACHINE_SETS_POWER_LIMIT,
                                .power_limit_watts = 15};
    byhand_run(script_serve, one, 1);
    finishes(0, _i == 0 ? 7 + 2 * 14.25 : 2 + 2 * 19.25);
    double joules = _i == 0 ? 3 + 12 + 5 * 30 + 28.5 * 15 : 3 + 12 + 38.5 * 15;
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, joules, 1e-6);
}
END_TEST

/* Another device has the steps, so this one keeps its speed. The second run ends while it works. */
START_TEST(other_devices_keep_their_speed)
{
    sc.setup.dvfs[NPU] = three;
    sc.setup.dvfs[IGPU].n = 0;
    sc.setup.horizon_ns = _i == 0 ? S(50) : S(5);
    byhand_run(script_serve, one, 1);
    if (_i == 0) {
        finishes(0, 20);
    }
    ck_assert_uint_eq(sc.result.dvfs.changes, 0);
    ck_assert_int_eq(sc.result.dvfs.busy_ns, 0);
}
END_TEST

/* ---- by energy ---- */

/* A second of work costs (platform + 30 x power) / speed. With 5 W of platform the three steps cost
 * 32, 34 and 35 J, and with 10 W 52, 44 and 40. With half speed at 9 W and a platform of 6 W they
 * cost 36, 30 and 36. */
START_TEST(least_energy_is_a_slow_step_a_fast_one_or_one_between)
{
    static const double platform[] = {5, 10, 6}, power[] = {0.4, 0.4, 0.3};
    static const double speed[] = {0.25, 1, 0.5}, watts[] = {8, 40, 15};
    sc.machine.idle_watts = platform[_i];
    sc.setup.dvfs[IGPU].rule = SIM_DVFS_ENERGY;
    sc.setup.dvfs[IGPU].steps[1].power = power[_i];
    byhand_run(script_serve, one, 1);
    finishes(0, 20 / speed[_i]);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 20 / speed[_i] * watts[_i], 1e-6);
}
END_TEST

/* At rest the iGPU draws 6 of its 30 W, and the NPU 1 W. With 4 W of platform a second of work
 * costs (4 + 6 + 24 x power) / speed: 49.6, 39.2 and 34 J. With the NPU's watts at rest, or with
 * none, the slow step would be the cheapest. */
START_TEST(a_device_at_rest_is_part_of_the_cost)
{
    sc.machine.idle_watts = 4;
    sc.machine.devices[IGPU].idle_watts = 6;
    sc.machine.devices[NPU].idle_watts = 1;
    sc.setup.dvfs[IGPU].rule = SIM_DVFS_ENERGY;
    byhand_run(script_serve, one, 1);
    finishes(0, 20);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 20 * (34 + 1), 1e-6);
}
END_TEST

/* Decode draws 10 W. With 5 W of platform a second of it costs 24, 18 and 15 J in the three steps.
 * So the prompt is computed at a quarter of the speed, in 80 s, and the decode of 5 s at full
 * speed. */
START_TEST(each_phase_has_its_own_step)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 2, 0, 0}};
    sc.machine.idle_watts = 5;
    sc.setup.dvfs[IGPU].rule = SIM_DVFS_ENERGY;
    byhand_run(script_serve, q, 1);
    finishes(0, 80 + 5);
    ck_assert_double_eq_tol(sc.result.audit.energy_sum_j, 80 * 8 + 5 * 15, 1e-6);
    ck_assert_uint_eq(sc.result.dvfs.changes, 1);
}
END_TEST

/* ---- whole machines ---- */

struct how {
    struct soc_dvfs dvfs; /* of all devices */
    bool every_event;
};

static void change(struct config *c, const void *with)
{
    const struct how *h = with;
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        c->soc.devices[i].dvfs = h->dvfs;
    }
    c->sim.collapse = !h->every_event;
}

static const char *const policies[] = {"agent-xpu-v1", "agent-xpu-v2", "openvino-cb", "llm-npu"};

/* The one step is the highest, so no time changes. */
START_TEST(a_single_step_changes_nothing)
{
    static const struct how nothing = {.every_event = false};
    static const struct how top = {
        .dvfs = {.n = 1, .steps = {{1, 1}}, .period_ns = MS(20), .headroom = 1.25}};
    struct runner_result none, some;
    changed_run(policies[_i], change, &nothing, &none);
    changed_run(policies[_i], change, &top, &some);
    ck_assert_ptr_null(metric_list_find(&none.metrics, "dvfs.speed_frac"));
    ck_assert_double_eq(changed_metric(&some, "dvfs.speed_frac"), 1.0);
    ck_assert_double_eq(changed_metric(&some, "dvfs.changes"), 0.0);
    changed_same(&none, &some, NULL);
    runner_result_fini(&none);
    runner_result_fini(&some);
}
END_TEST

/* A run has the same results with and without events for the ends of kernels. */
START_TEST(kernels_need_not_be_events)
{
    struct how two = {
        .dvfs = {.n = 2, .steps = {{0.5, 0.3}, {1, 1}}, .period_ns = MS(20), .headroom = 1.25}};
    struct runner_result a, b;
    changed_run(policies[_i], change, &two, &a);
    two.every_event = true;
    changed_run(policies[_i], change, &two, &b);
    double speed = changed_metric(&a, "dvfs.speed_frac");
    ck_assert(speed > 0.5 && speed < 1.0);
    ck_assert_double_eq(changed_metric(&a, "dvfs.changes"), (double)a.sim.dvfs.changes);
    ck_assert_double_eq(speed, a.sim.dvfs.speed_ns / (double)a.sim.dvfs.busy_ns);
    changed_same(&a, &b, NULL);
    runner_result_fini(&a);
    runner_result_fini(&b);
}
END_TEST

/* ---- the file ---- */

static cJSON *quantity(double value)
{
    cJSON *q = cJSON_CreateObject();
    cJSON_AddNumberToObject(q, "value", value);
    cJSON_AddStringToObject(q, "unit", "1");
    cJSON_AddNumberToObject(q, "low", value);
    cJSON_AddNumberToObject(q, "high", value);
    cJSON_AddStringToObject(q, "source", "this test");
    cJSON_AddStringToObject(q, "kind", "assumed");
    return q;
}

static void add_step(cJSON *steps, double speed, double power)
{
    cJSON *s = cJSON_CreateObject();
    cJSON_AddItemToObject(s, "speed", quantity(speed));
    cJSON_AddItemToObject(s, "power", quantity(power));
    cJSON_AddItemToArray(steps, s);
}

/* The first file has two steps and is read. The others are refused: speeds that fall, a last step
 * that is not the highest, and a rule without a period. */
START_TEST(a_file_states_steps_that_rise_to_one)
{
    static const double speeds[4][2] = {{0.4, 1}, {1, 0.4}, {0.4, 0.9}, {0.4, 1}};
    static const char *const says[4] = {NULL, "steps[1].speed: must rise",
                                        "the highest has speed 1 and power 1", "period: the rule"};
    struct err e = ERR_INIT;
    struct soc soc;
    cJSON *root = json_read_file(soc_path("snapdragon-8gen3"), &e);
    cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 0);
    cJSON *dvfs = cJSON_AddObjectToObject(device, "dvfs");
    cJSON_AddStringToObject(dvfs, "governor", "utilisation");
    if (_i != 3) {
        cJSON *period = quantity(20);
        cJSON_ReplaceItemInObject(period, "unit", cJSON_CreateString("ms"));
        cJSON_AddItemToObject(dvfs, "period", period);
    }
    cJSON *steps = cJSON_AddArrayToObject(dvfs, "steps");
    add_step(steps, speeds[_i][0], 0.2);
    add_step(steps, speeds[_i][1], 1);
    int rc = soc_parse(root, "snapdragon-8gen3", &soc, &e);
    ck_assert_msg((rc == 0) == (_i == 0), "%s", e.n > 0 ? e.lines[0] : "");
    if (_i > 0) {
        ck_assert_msg(strstr(e.lines[0], says[_i]) != NULL, "%s", e.lines[0]);
    } else {
        const struct soc_dvfs *d = &soc.devices[0].dvfs;
        ck_assert_uint_eq(d->n, 2);
        ck_assert_double_eq(d->steps[0].speed, 0.4);
        ck_assert_double_eq(d->steps[0].power, 0.2);
        ck_assert_int_eq(d->period_ns, MS(20));
        ck_assert_double_eq(d->headroom, 1.25);
    }
    cJSON_Delete(root);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = byhand_teardown),
    TEST(a_busy_device_rises_step_by_step),
    TEST(slow_steps_are_explained_as_such),
    LOOP(a_device_at_rest_falls_and_one_with_little_to_do_stays, 2),
    LOOP(headroom_is_what_makes_it_rise, 2),
    LOOP(power_limits_come_on_top, 2),
    LOOP(other_devices_keep_their_speed, 2),
    LOOP(least_energy_is_a_slow_step_a_fast_one_or_one_between, 3),
    TEST(a_device_at_rest_is_part_of_the_cost),
    TEST(each_phase_has_its_own_step),
    CASE("whole machines", .timeout_s = 60),
    LOOP(a_single_step_changes_nothing, 4),
    LOOP(kernels_need_not_be_events, 4),
    CASE("files"),
    LOOP(a_file_states_steps_that_rise_to_one, 4),
};
SUITE_MAIN("steps of frequency", suite)
