/* Energy at the battery is computed from that at the devices' meter (struct soc_supply). */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/base/units.h"
#include "tests/helpers/randomrun.h"
#include "tests/helpers/suite.h"

static double energy_j, battery_j, end_s;

static void run(const char *soc, const char *policy, struct soc_supply supply)
{
    static struct randomrun how;
    static struct config c;
    static struct config_policy p;
    struct trace t;
    struct runner_result r;
    struct runner_options opt = {0};
    struct err e = ERR_INIT;
    how = (struct randomrun){.soc = soc, .llm = "llama-3.2-1b", .seed = 1};
    (void)snprintf(how.policy, sizeof how.policy, "%s", policy);
    (void)snprintf(how.workload, sizeof how.workload, "summary:n=2,gap_s=5");
    ck_assert(randomrun_load(&how, &c, &p, &t));
    c.soc.supply = supply;
    ck_assert_int_eq(runner_run(&c, &p, &t, how.seed, &opt, &r, &e), 0);
    energy_j = metric_list_find(&r.metrics, "energy_j")->value;
    battery_j = metric_list_find(&r.metrics, "battery.energy_j")->value;
    end_s = units_s_from_ns(r.sim.end_ns);
    runner_result_fini(&r);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
}

/* The supply has an efficiency of 0.8, and the display draws 5 W. */
START_TEST(losses_and_the_rest_come_on_top)
{
    run("core-ultra-7-258v", "openvino-cb", (struct soc_supply){0.8, 5.0});
    ck_assert_double_gt(energy_j, 0.0);
    ck_assert_double_eq_tol(battery_j, energy_j * 1.25 + 5.0 * end_s, 1e-9 * battery_j);
}
END_TEST

/* The phones' powers were read there; of the laptop nothing is known. */
START_TEST(what_was_read_at_the_battery_is_the_battery_s)
{
    run("snapdragon-8gen3", "fcfs", (struct soc_supply){0.0, 0.0});
    ck_assert_double_gt(energy_j, 0.0);
    ck_assert_double_eq(battery_j, energy_j);
    run("core-ultra-7-258v", "openvino-cb", (struct soc_supply){0.0, 0.0});
    ck_assert_double_nan(battery_j);
}
END_TEST

static cJSON *quantity(double value, const char *unit)
{
    cJSON *q = cJSON_CreateObject();
    cJSON_AddNumberToObject(q, "value", value);
    cJSON_AddStringToObject(q, "unit", unit);
    cJSON_AddNumberToObject(q, "low", value);
    cJSON_AddNumberToObject(q, "high", value);
    cJSON_AddStringToObject(q, "source", "this test");
    cJSON_AddStringToObject(q, "kind", "assumed");
    return q;
}

/* Powers at the battery have the supply in them already. */
START_TEST(a_file_states_no_supply_twice)
{
    static const char *const socs[] = {"core-ultra-7-258v", "snapdragon-8gen3"};
    for (int i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct soc soc;
        cJSON *root = json_read_file(soc_path(socs[i]), &e);
        cJSON *supply = cJSON_AddObjectToObject(root, "supply");
        cJSON_AddItemToObject(supply, "efficiency", quantity(0.8, "1"));
        cJSON_AddItemToObject(supply, "rest", quantity(5.0, "W"));
        int rc = soc_parse(root, socs[i], &soc, &e);
        ck_assert_msg((rc == 0) == (i == 0), "%s: %s", socs[i], e.n > 0 ? e.lines[0] : "");
        if (i == 1) {
            ck_assert_ptr_nonnull(strstr(e.lines[0], "devices[0].meter: \"battery\" is behind"));
        } else {
            ck_assert_double_eq(soc.supply.efficiency_frac, 0.8);
            ck_assert_double_eq(soc.supply.rest_watts, 5.0);
        }
        cJSON_Delete(root);
        err_fini(&e);
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(losses_and_the_rest_come_on_top),
    TEST(what_was_read_at_the_battery_is_the_battery_s),
    TEST(a_file_states_no_supply_twice),
};
SUITE_MAIN("energy at the battery", suite)
