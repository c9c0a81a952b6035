/* A run as people and programs see it: a made-up result, every line, number and warning by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "sim/base/json.h"
#include "sim/core/counters.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static struct config c;
static struct config_options options;
static struct runner_result r;
static struct trace t;
static const struct policy_ops ops = {.name = "own"};
static const struct config_policy policy = {
    .ops = &ops, .label = "own:a=1", .params_text = "a=1,b=2"};

static void setup(void)
{
    struct err e = ERR_INIT;
    options = config_options_default();
    options.workload = "w1";
    ck_assert_int_eq(config_load(&c, &options, &e), 0);
    memset(&r, 0, sizeof r);
    r.sim.audit.clean = true;
    t = (struct trace){.n = 9, .hash = 0xabc};
}

static void teardown(void)
{
    metric_list_fini(&r.metrics);
    config_fini(&c);
}

static void put(const char *name, double value)
{
    metric_list_put(&r.metrics, value, "%s", name);
}

static struct document *said(void)
{
    struct document *d = document_new();
    runner_document(&c, &policy, &t, 77, &r, d);
    return d;
}

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "%s\nin\n%s", part, text);
}

/* The warnings that are not what this machine always has. */
static void warns(const char *want)
{
    SCOPED(json_drop) cJSON *tree = document_json(said());
    const cJSON *one;
    bool found = want == NULL;
    cJSON_ArrayForEach (one, cJSON_GetObjectItem(tree, "warnings")) {
        bool usual = strncmp(one->valuestring, "the NPU numbers of ", 19) == 0;
        if (want != NULL && strcmp(one->valuestring, want) == 0) {
            found = true;
        } else {
            ck_assert_msg(usual, "%s", one->valuestring);
        }
    }
    ck_assert_msg(found, "no: %s", want);
}

/* ---- numbers ---- */

static const char *const groups[] = {"reactive", "proactive"};
static const struct {
    const char *label, *metric;
} rows_of[] = {{"TTFT s", "ttft_s"},
               {"TBT s", "tbt_s"},
               {"TPOT s", "tpot_s"},
               {"E2E s", "e2e_s"},
               {"E2E / (in + out) s", "norm_e2e_per_token_s"},
               {"prefill pending s", "prefill_pending_s"},
               {"decode pending s", "decode_pending_s"}};
static const char *const stats[] = {"mean", "p50", "p90", "p95", "p99", "max"};

/* Each cell has a number of its own: 1001 and up are whole, and shown so; the second group's have a
 * half, and four digits. */
START_TEST(latencies_stand_in_their_cells)
{
    for (int g = 0; g < 2; g++) {
        for (int i = 0; i < 7; i++) {
            for (int k = 0; k < 6; k++) {
                OWNED char *name = xformat("%s.%s.%s", groups[g], rows_of[i].metric, stats[k]);
                put(name, 1001 + 10 * i + k + 0.5 * g);
            }
        }
    }
    r.sim.audit.arrived = 9;
    put("reactive.arrived", 12);
    put("reactive.finished", 11);
    put("reactive.throughput_req_per_min", 1.2345);
    put("proactive.arrived", 6);
    put("proactive.finished", 5);
    put("proactive.throughput_req_per_min", 2);
    OWNED char *text = shown_text(said(), "text");
    SCOPED(text_fini) struct text want = {0};
    text_string(&want,
                "own:a=1 on core-ultra-5-125h, llama-3.2-3b\nw1: 9 requests, seed 77: STABLE\n"
                "\nreactive: 11 of 12 requests finished, 1.23 per minute\n"
                "mean p50 p90 p95 p99 max\n");
    for (int g = 0; g < 2; g++) {
        for (int i = 0; i < 7; i++) {
            text_string(&want, rows_of[i].label);
            for (int k = 0; k < 6; k++) {
                double x = 1001 + 10 * i + k + 0.5 * g;
                text_format(&want, g == 0 ? " %.0f" : " %.4g", x);
            }
            text_string(&want, "\n");
        }
        text_string(&want, g == 0 ? "\nproactive: 5 of 6 requests finished, 2 per minute\n"
                                    "mean p50 p90 p95 p99 max\n"
                                  : "\nmachine over ");
    }
    ck_assert_msg(strncmp(text, text_end(&want), want.n) == 0, "%s\nnot\n%s", text,
                  text_end(&want));
}
END_TEST

/* A group in which nobody arrived is not shown, and a value that is not defined is a dash. */
START_TEST(what_is_not_there_is_not_shown)
{
    put("reactive.arrived", 0);
    put("proactive.arrived", 1);
    put("proactive.ttft_s.mean", 0.25);
    put("proactive.ttft_s.p50", 1e9);
    put("proactive.ttft_s.p90", METRIC_UNDEFINED);
    OWNED char *text = shown_text(said(), "text");
    has_not(text, "reactive: 0");
    has(text, "\nproactive: nan of 1 request finished\n");
    has(text, "\nTTFT s 0.25 1e+09 - - - -\n");
}
END_TEST

START_TEST(a_machine_has_its_shares)
{
    static const char *const devices[] = {"npu", "igpu", "cpu"};
    static const char *const shares[] = {"busy_frac", "prefill_frac", "decode_frac"};
    ck_assert_uint_eq(c.soc.machine.n_devices, 3);
    for (int d = 0; d < 3; d++) {
        ck_assert_str_eq(c.soc.machine.devices[d].name, devices[d]);
        for (int k = 0; k < 3; k++) {
            OWNED char *name = xformat("%s.%s", devices[d], shares[k]);
            put(name, 0.1 * (d + 1) + 0.01 * (k + 1));
        }
        OWNED char *joules = xformat("%s.energy_j", devices[d]);
        put(joules, 31.25 + d);
        c.soc.devices[d].meter = SOC_METER_PACKAGE;
    }
    put("duration_s", 123.4);
    put("energy_j", 45.6);
    put("energy_idle_j", 5.5);
    put("energy_j_per_token", 0.75);
    put("peak_power_watts", 21.5);
    put("ddr.util_frac", 0.345);
    put("ddr.tier_high_frac", 0.123);
    OWNED char *text = shown_text(said(), "text");
    has(text, "\nmachine over 123.4 s\nbusy prefill decode J\nnpu 11.0 % 12.0 % 13.0 % 31.25\n"
              "igpu 21.0 % 22.0 % 23.0 % 32.25\ncpu 31.0 % 32.0 % 33.0 % 33.25\n");
    has(text,
        "\nenergy 45.6 J, meter package (5.5 idle), 0.75 J per token, peak 21.5 W; DDR 34.5 % "
        "used, 12.3 % of time at high pressure\n");
    has_not(text, "frames");
    SCOPED(json_drop) cJSON *tree = document_json(said());
    ck_assert_str_eq(json_string(tree, "energy_meter"), "package");
}
END_TEST

/* Without powers the share of the DDR is still printed, and without a meter no meter. */
START_TEST(energy_may_be_unknown)
{
    put("ddr.util_frac", 0.345);
    put("ddr.tier_high_frac", 0.123);
    OWNED char *text = shown_text(said(), "text");
    has(text, "\nenergy unknown: the machine's file states no power; DDR 34.5 % used, 12.3 % of "
              "time at high pressure\n");
    has_not(text, "meter would read");
    metric_list_fini(&r.metrics);
    r.metrics = (struct metric_list){0};
    OWNED char *none = shown_text(said(), "text");
    has_not(none, "energy unknown");
    for (uint32_t i = 0; i < c.soc.machine.n_devices; i++) {
        c.soc.machine.devices[i].decode_watts = c.soc.machine.devices[i].prefill_watts = 0.0;
    }
    put("energy_j", 2);
    OWNED char *unstated = shown_text(said(), "text");
    has(unstated, "\nenergy 2 J (nan idle), peak nan W; DDR nan % used, nan % of time at high "
                  "pressure\n"); /* and no token came out */
}
END_TEST

START_TEST(a_meter_has_its_readings)
{
    c.soc.metered.meter = SOC_METER_WALL;
    c.soc.metered.spread_factor = 1.25;
    put("metered.energy_j", 50);
    put("metered.energy_j_per_token", 0.5);
    put("metered.watts", 12.25);
    OWNED char *text = shown_text(said(), "text");
    has(text, "\na wall meter would read 50 J (40 to 62.5), 0.5 J per token, 12.2 W in the mean\n");
    SCOPED(json_drop) cJSON *tree = document_json(said());
    ck_assert_str_eq(json_string(tree, "metered_meter"), "wall");
    ck_assert_double_eq(json_number(tree, "metered_spread"), 1.25);
    metric_list_fini(&r.metrics);
    r.metrics = (struct metric_list){0};
    put("metered.energy_j", METRIC_UNDEFINED);
    OWNED char *none = shown_text(said(), "text");
    has_not(none, "meter");
    put("energy_j", 1);
    OWNED char *nobody = shown_text(said(), "text");
    has(nobody, "\na wall meter: no published reading of a device that worked\n");
}
END_TEST

/* The model of meters knows no power limits, so it says whose reading it is. */
START_TEST(power_limits_are_said)
{
    put("energy_j", 45.6);
    c.soc.metered.meter = SOC_METER_PACKAGE;
    c.soc.metered.spread_factor = 2;
    put("metered.energy_j", 50);
    put("metered.energy_j_per_token", 0.5);
    put("metered.watts", 12.25);
    put("throttle.lost_frac", 0);
    put("throttle.speed_min", 1);
    OWNED char *full = shown_text(said(), "text");
    has_not(full, "power limit");
    metric_list_fini(&r.metrics);
    r.metrics = (struct metric_list){0};
    put("energy_j", 45.6);
    put("metered.energy_j", 50);
    put("metered.energy_j_per_token", 0.5);
    put("metered.watts", 12.25);
    put("throttle.lost_frac", 0.0503);
    put("throttle.speed_min", 0.794);
    OWNED char *text = shown_text(said(), "text");
    has(text, "\npower limits took 5.03 % of the speed; lowest 79.4 %\n");
    has(text, " 12.2 W in the mean, as if no power limit held\n");
}
END_TEST

/* The screen may have been switched on by an event of the machine alone. */
START_TEST(frames_are_counted_where_there_are_some)
{
    c.sim.graphics.frames_per_s = 0;
    put("graphics.frames", 600);
    put("graphics.missed_frac", 0.0123);
    put("graphics.wait_s.mean", 0.0015);
    put("graphics.latency_s.max", 0.025);
    OWNED char *text = shown_text(said(), "text");
    has(text, "\nframes 600, missed 1.23 %, wait 1.5 ms in the mean, latest 25 ms after it was "
              "due\n");
}
END_TEST

START_TEST(a_battery_is_shown_where_there_is_one)
{
    OWNED char *without = shown_text(said(), "text");
    ck_assert_ptr_null(strstr(without, "battery"));
    put("battery.drawn_j", _i == 0 ? 64.8031 : 0); /* 0: it was plugged in */
    put("battery.end_frac", _i == 0 ? 0.35197 : 1);
    OWNED char *text = shown_text(said(), "text");
    has(text, _i == 0 ? "\nbattery 64.8 J drawn, 35.2 % of its charge at the end\n"
                      : "\nbattery 0 J drawn, 100.0 % of its charge at the end\n");
}
END_TEST

/* ---- data ---- */

START_TEST(data_have_all_of_a_run)
{
    put("a.s", 1.5);
    put("b", METRIC_UNDEFINED);
    r.sim.audit = (struct sim_audit){.arrived = 1,
                                     .finished = 2,
                                     .shed = 3,
                                     .running = 4,
                                     .queued = 5,
                                     .future = 6,
                                     .tokens_expected = 7,
                                     .tokens_produced = 8,
                                     .energy_integral_j = 9,
                                     .energy_sum_j = 10,
                                     .littles_law_residual_frac = 11,
                                     .ddr_max_over_capacity = 12,
                                     .double_bookings = 13};
    for (int i = 0; i < COUNTER_COUNT; i++) {
        r.sim.counters[i] = 100u + (uint32_t)i;
    }
    r.sim.n_policy_counters = 2;
    (void)snprintf(r.sim.policy_counter_names[0], 32, "x");
    (void)snprintf(r.sim.policy_counter_names[1], 32, "y.z");
    r.sim.policy_counters[0] = 31;
    r.sim.policy_counters[1] = 32;
    r.verdict = METRICS_UNDECIDED;
    r.sketch = true;
    SCOPED(json_drop) cJSON *tree = document_json(said());
    OWNED char *audit = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "audit"));
    ck_assert_str_eq(audit,
                     "{\"clean\":false,\"arrived\":1,\"finished\":2,\"shed\":3,\"running\":4,"
                     "\"queued\":5,\"future\":6,\"tokens_expected\":7,\"tokens_produced\":8,"
                     "\"energy_integral_j\":9,\"energy_sum_j\":10,\"littles_law_residual_frac\":11,"
                     "\"ddr_max_over_capacity\":12,\"double_bookings\":13}");
    OWNED char *metrics = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "metrics"));
    ck_assert_str_eq(metrics, "{\"a.s\":1.5,\"b\":null}");
    SCOPED(text_fini) struct text counters = {0};
    for (int i = 0; i < COUNTER_COUNT; i++) {
        text_format(&counters, "%s\"%s\":%d", i > 0 ? "," : "{", counter_names[i], 100 + i);
    }
    text_string(&counters, ",\"policy.x\":31,\"policy.y.z\":32}");
    OWNED char *counted = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "counters"));
    ck_assert_str_eq(counted, text_end(&counters));
    ck_assert_str_eq(json_string(tree, "verdict"), "UNDECIDED");
    ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(tree, "sketch")));
    OWNED char *print = config_fingerprint(&c, &policy, &t, 77);
    ck_assert_str_eq(json_string(tree, "fingerprint"), print);
    has(print, " trace=0000000000000abc policy=own:a=1,b=2 seed=77");
    const cJSON *config = cJSON_GetObjectItem(tree, "config");
    ck_assert_str_eq(json_string(config, "workload"), "w1");
    ck_assert_str_eq(json_string(config, "policy"), "own");
    ck_assert_str_eq(json_string(config, "params"), "a=1,b=2");
    ck_assert_double_eq(json_number(config, "seed"), 77);
    const cJSON *part;
    cJSON_ArrayForEach (part, c.tree) {
        ck_assert(cJSON_Compare(cJSON_GetObjectItem(config, part->string), part, true));
    }
    OWNED char *text = shown_text(said(), "text");
    OWNED char *end = xformat("\n\n%s\n", print);
    ck_assert_str_eq(text + strlen(text) - strlen(end), end);
}
END_TEST

/* ---- warnings ---- */

START_TEST(requests_left_are_warned_of)
{
    warns(NULL);
    c.sim.horizon_s = 12.5;
    warns(NULL);
    r.sim.audit.future = 3;
    warns("the horizon of 12.5 s left 0 requests unfinished and 3 that never arrived: latencies "
          "are censored, they cover finished requests only");
    r.sim.audit.running = 2;
    r.sim.audit.queued = 5;
    warns("the horizon of 12.5 s left 7 requests unfinished and 3 that never arrived: latencies "
          "are censored, they cover finished requests only");
    r.sim.battery.empty = true;
    r.sim.end_ns = 3500000000;
    warns("BATTERY_EMPTY: the battery was empty after 3.5 s, with 7 requests unfinished and 3 that "
          "never "
          "arrived; latencies cover finished requests only");
}
END_TEST

START_TEST(sessions_that_end_early_are_no_horizon)
{
    r.sim.audit.future = 3; /* and no horizon */
    r.sim.audit.arrived = 6;
    warns(NULL);
    OWNED char *text = shown_text(said(), "text");
    has(text, "\nw1: 6 of 9 requests arrived, seed 77: ");
    r.sim.audit.shed = 4;
    warns("latencies leave out 4 shed requests (cancelled by users or agents, or dropped)");
    r.sim.counters[COUNTER_MEMORY_SHED] = 3;
    warns("latencies leave out 4 shed requests (cancelled by users or agents, or dropped; 3 had no "
          "room next to other programs' memory)");
}
END_TEST

START_TEST(loads_that_do_not_settle_are_warned_of)
{
    put("backlog.drain_frac", 0.625);
    r.verdict = METRICS_OVERLOADED;
    warns("OVERLOADED: the backlog grew with time. The work left after the last arrival took "
          "another 62 % of the arrival window, so latencies grow with the length of the trace; "
          "truncated.* shows what finished by the last arrival");
    r.verdict = METRICS_UNDECIDED;
    warns("UNDECIDED: too short to tell a stable load from an overload; the work left after the "
          "last arrival took another 62 % of the arrival window");
    metric_list_fini(&r.metrics);
    r.metrics = (struct metric_list){0};
    put("backlog.drain_frac", 0.0049);
    warns("UNDECIDED: too short to tell a stable load from an overload; the work left after the "
          "last arrival took another 0 % of the arrival window. Where clients wait for answers, "
          "slow answers make the run longer and leave no work: compare jobs (job_s)");
    metric_list_fini(&r.metrics);
    r.metrics = (struct metric_list){0};
    warns("UNDECIDED: no request arrived");
    put("all.arrived", 1);
    warns("UNDECIDED: all requests arrived at one instant, where a stable load and an overload "
          "look the same");
}
END_TEST

START_TEST(what_a_policy_did_wrong_is_warned_of)
{
    r.printed_bytes = 17;
    warns("the policy printed 17 bytes to standard output, which is for results: they went to "
          "standard error");
    r.printed_bytes = 0;
    r.sketch = true;
    warns("quantiles are from a sketch, within 0.5 % (--exact keeps every sample)");
    r.sketch = false;
    r.sim.audit.clean = false;
    warns("the audit found a violation");
}
END_TEST

/* Refusals that are a mistake are printed. A request for KV that was not there is none. */
START_TEST(refused_actions_are_told)
{
    int mistake = 0;
    int none = 0;
    while (!counter_is_refusal((enum counter)mistake)) {
        mistake++;
    }
    while (counter_is_refusal((enum counter)none)) {
        none++;
    }
    r.sim.n_refusals = 3;
    r.sim.refusals[0] = (struct sim_refusal){.action = "launch",
                                             .hook = "schedule",
                                             .why = "w1",
                                             .counter = (enum counter)mistake,
                                             .status = -EBUSY,
                                             .n = 1,
                                             .first_ns = 1500000000};
    r.sim.refusals[1] = (struct sim_refusal){.action = "form",
                                             .hook = "pass_done",
                                             .why = "w2",
                                             .counter = (enum counter)none,
                                             .status = -ENOMEM,
                                             .n = 2};
    r.sim.refusals[2] = (struct sim_refusal){.action = "shed",
                                             .hook = "pass_done",
                                             .why = "w3",
                                             .counter = (enum counter)mistake,
                                             .status = -ENOSYS,
                                             .n = 4,
                                             .first_ns = 2};
    SCOPED(json_drop) cJSON *tree = document_json(said());
    OWNED char *refused = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "refused"));
    ck_assert_str_eq(refused,
                     "[{\"action\":\"launch\",\"hook\":\"schedule\",\"reason\":\"w1\","
                     "\"error\":\"EBUSY\",\"count\":1,\"first_s\":1.5},{\"action\":\"shed\","
                     "\"hook\":\"pass_done\",\"reason\":\"w3\",\"error\":\"error\",\"count\":4,"
                     "\"first_s\":2e-09}]");
    OWNED char *text = shown_text(said(), "text");
    has(text, "\nwarning: actions of the policy were refused: launch 1 time, first at 1.5 s: w1 "
              "(EBUSY)\n");
    has(text, "\nwarning: actions of the policy were refused: shed 4 times in pass_done, first at "
              "2e-09 s: w3 (error)\n");
    has_not(text, "w2");
    static const struct {
        int status;
        const char *name;
    } names[] = {{EBUSY, "EBUSY"},   {EINVAL, "EINVAL"},     {ENOMEM, "ENOMEM"},
                 {ENOENT, "ENOENT"}, {EALREADY, "EALREADY"}, {EPERM, "EPERM"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[RUNNER_REFUSAL_BYTES];
        r.sim.refusals[0].status = -names[i].status;
        OWNED char *want = xformat("launch 1 time, first at 1.5 s: w1 (%s)", names[i].name);
        ck_assert_str_eq(runner_refusal_text(&r.sim.refusals[0], line), want);
    }
}
END_TEST

/* A name in memory behind the list is not offered. Where what was asked is as near to a name as its
 * mean is to another, the first of both is offered. */
START_TEST(a_hint_is_a_name_of_the_list)
{
    static const char *const hints[] = {"all)", "did you mean energy_k?", "did you mean energy_j?"};
    struct err e = ERR_INIT;
    struct metric v[] = {{.name = "energy_k"}, {.name = "energy_j"}, {.name = "energy_j.meen"}};
    struct metric near[] = {v[2], v[0]};
    for (size_t n = 0; n < 3; n++) {
        (void)runner_no_metric("metric", "Energy_j", &(struct metric_list){v, n}, &e);
        const char *line = e.lines[n];
        ck_assert_str_eq(line + strlen(line) - strlen(hints[n]), hints[n]);
    }
    (void)runner_no_metric("metric", "energy_j", &(struct metric_list){near, 2}, &e);
    ck_assert_ptr_nonnull(strstr(e.lines[3], "did you mean energy_k?"));
    err_fini(&e);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("a run", .setup = setup, .teardown = teardown),
    TEST(latencies_stand_in_their_cells),
    TEST(what_is_not_there_is_not_shown),
    TEST(a_machine_has_its_shares),
    TEST(energy_may_be_unknown),
    TEST(a_meter_has_its_readings),
    TEST(power_limits_are_said),
    TEST(frames_are_counted_where_there_are_some),
    LOOP(a_battery_is_shown_where_there_is_one, 2),
    TEST(data_have_all_of_a_run),
    TEST(requests_left_are_warned_of),
    TEST(sessions_that_end_early_are_no_horizon),
    TEST(loads_that_do_not_settle_are_warned_of),
    TEST(what_a_policy_did_wrong_is_warned_of),
    TEST(refused_actions_are_told),
    TEST(a_hint_is_a_name_of_the_list),
};
SUITE_MAIN("a run as it is printed", rows)
