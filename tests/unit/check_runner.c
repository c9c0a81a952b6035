/* A run: power limits of its events, refusals in its message, drafts by class, and the parts of its
 * key. */
#include <stdlib.h>
#include <string.h>

#include "experiments/run/runner.h"
#include "experiments/run/study.h"
#include "policies/registry.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

#define TEN "mixed:reactive_per_min=60,proactive_per_min=60,duration_s=10"

static struct err err;
static struct config_options options;
static struct config config;
static struct config_policy policy;
static struct trace trace;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    memset(&config, 0, sizeof config);
    trace = (struct trace){0};
    options = config_options_default();
    options.workload = TEN;
    options.no_notes = true;
}

static void teardown(void)
{
    trace_fini(&trace);
    config_fini(&config);
    err_fini(&err);
}

static void load(const char *named)
{
    ck_assert_msg(config_load(&config, &options, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_int_eq(config_policy_parse(&policy, named, &err), 0);
    ck_assert_int_eq(config_trace(&options, 1, CONFIG_AS_WRITTEN, &trace, &err), 0);
}

/* An event caps the power at more than the machine draws. Nothing is slowed, and the run has the
 * metrics of limits all the same. Without an event it has none. */
START_TEST(a_cap_of_an_event_is_a_limit)
{
    static struct machine_event cap = {
        .until_ns = TRACE_LAST_NS, .sets = MACHINE_SETS_POWER_LIMIT, .power_limit_watts = 1e4};
    load("fcfs");
    for (uint32_t n = 0; n < 2; n++) {
        struct runner_options opt = {0};
        SCOPED(runner_result_fini) struct runner_result r;
        trace.machine = &cap;
        trace.n_machine = n;
        int rc = runner_run(&config, &policy, &trace, 1, &opt, &r, &err);
        trace.machine = NULL; /* it is not the trace's */
        trace.n_machine = 0;
        ck_assert_int_eq(rc, 0);
        const struct metric *m = metric_list_find(&r.metrics, "throttle.speed_min");
        ck_assert((m != NULL) == (n == 1));
        ck_assert(m == NULL || m->value == 1.0);
    }
}
END_TEST

static void ignore(struct sched *s, const struct request *r)
{
    (void)s;
    (void)r;
}

static void refused_twice(struct sched *s)
{
    const struct resident_key none = {RESIDENT_COMPILED_ATTENTION, 0, 0};
    (void)sched_compile(s, none);
    (void)sched_kv_move(s, kv_of_session(7), KV_MEMORY);
}

/* Two actions are refused equally often, and the run stalls. Its message has the first. */
START_TEST(of_equally_frequent_refusals_the_first_is_in_the_message)
{
    static const struct policy_ops idle = {.name = "idle",
                                           .summary = "for a test",
                                           .contract = POLICY_CONTRACT,
                                           .needs = CAP_COMPILE | CAP_KV_MOVE,
                                           .request_arrived = ignore,
                                           .schedule = refused_twice};
    struct runner_options opt = {0};
    SCOPED(runner_result_fini) struct runner_result r;
    load("fcfs");
    policy.ops = &idle;
    policy.params = (struct policy_params){0};
    ck_assert_int_ne(runner_run(&config, &policy, &trace, 1, &opt, &r, &err), 0);
    const char *at = strstr(r.sim.message, "; refused before: ");
    ck_assert_msg(at != NULL && strstr(at, "compile") != NULL && strstr(at, "kv") == NULL, "%s",
                  r.sim.message);
}
END_TEST

/* Drafts are for both classes only where that is said. Drafters on texts have the longest drafts of
 * their methods; the calibrated one continues the automaton's. */
START_TEST(drafts_are_of_the_classes_and_lengths_that_are_said)
{
    static struct config_speculation is;
    load("fcfs");
    const struct speculation_constants *k = &speculation_data_shipped(&err)->constants;
    const double longest[TRACE_DRAFTERS] = {[TRACE_LOOKUP] = k->pld_draft_tokens.value,
                                            [TRACE_SUFFIX] = k->sam_draft_tokens.value,
                                            [TRACE_CALIBRATED] = k->sam_draft_tokens.value};
    ck_assert_double_ne(k->pld_draft_tokens.value, k->sam_draft_tokens.value);
    for (int both = 0; both < 2; both++) {
        struct config_drafts drafts = config.sim.drafts;
        drafts.method = 1;
        drafts.proactive = both > 0;
        ck_assert_int_eq(config_speculation_fit(&drafts, &is, &err), 0);
        for (int i = 0; i < CONFIG_DRAFTERS; i++) {
            const struct speculation_run *run = &is.run[i];
            ck_assert((run->by_class[REQUEST_CLASS_PROACTIVE] != NULL) ==
                      (both > 0 && run->by_class[REQUEST_CLASS_REACTIVE] != NULL));
        }
        ck_assert_ptr_nonnull(is.run[CONFIG_DRAFTER_RUN].by_class[REQUEST_CLASS_REACTIVE]);
        for (int i = 0; i < TRACE_DRAFTERS; i++) {
            ck_assert_uint_eq(is.texts[i].max_draft_tokens, (uint32_t)longest[i]);
            ck_assert(is.texts[i].proactive == (both > 0));
        }
    }
}
END_TEST

/* ---- keys ---- */

/* Cells that differ in one part are runs of their own, also where a store has the others: with a
 * warm-up fewer requests are measured, and the first request alone is one. */
START_TEST(cells_of_a_store_differ_in_each_part)
{
    folder_enter();
    struct store *s = store_open("s.db", STORE_USE_CREATE, &err);
    load("fcfs");
    struct study_cell cells[4];
    for (int i = 0; i < 4; i++) {
        cells[i] = (struct study_cell){
            .config = &config, .options = &options, .policy = &policy, .seed = 1};
    }
    cells[1].warmup_s = 5.0;
    cells[2].only_first = true;
    cells[3].arrivals.rate_scale = 2.0;
    const struct study_how how = {.parallel = 1, .cpu_limit_s = 60.0, .store = s};
    double n[4];
    double arrived[4];
    for (int i = 0; i < 4; i++) { /* one after the other: a later one might be found */
        SCOPED(study_outcomes_fini) struct study_outcomes o = study_run(&cells[i], 1, &how);
        ck_assert_msg(o.v[0].status == 0, "%s", o.v[0].message);
        n[i] = study_value(&o.v[0], "all.e2e_s.n");
        arrived[i] = study_value(&o.v[0], "all.arrived");
    }
    uint32_t late = 0;
    for (uint32_t i = 0; i < trace.n; i++) {
        late += trace.rows[i].arrival_ns >= 5 * NS_PER_S;
    }
    ck_assert(late > 0 && late < trace.n);
    ck_assert_double_eq(n[0], (double)trace.n);
    ck_assert_double_eq(n[1], late);
    ck_assert_double_eq(arrived[2], 1.0);
    ck_assert_double_gt(arrived[3], arrived[0]);
    ck_assert_uint_eq(store_added(s), 4);
    (void)store_close(s, &err);
    folder_leave();
}
END_TEST

/* Two of five that were shed ended with their job. Three are unfinished. An empty battery leaves
 * one more, because what would have come never arrived. */
START_TEST(what_a_run_left_is_counted_by_hand)
{
    const char *named[] = {"counters.ended_with", "all.shed", "all.unfinished", "backlog.verdict"};
    double values[] = {2.0, 5.0, 3.0, (double)METRICS_STABLE};
    struct study_names names = {.v = named, .n = 4};
    struct study_outcome o = {.names = &names, .values = values};
    ck_assert_double_eq(study_left(&o), 6.0);
    values[3] = (double)METRICS_BATTERY_EMPTY;
    ck_assert_double_eq(study_left(&o), 7.0);
    values[3] = (double)METRICS_OVERLOADED;
    values[0] = METRIC_UNDEFINED; /* no graph, so nothing ends with another */
    ck_assert_double_eq(study_left(&o), 8.0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("runner", .setup = setup, .teardown = teardown),
    TEST(a_cap_of_an_event_is_a_limit),
    TEST(of_equally_frequent_refusals_the_first_is_in_the_message),
    TEST(drafts_are_of_the_classes_and_lengths_that_are_said),
    TEST(cells_of_a_store_differ_in_each_part),
    TEST(what_a_run_left_is_counted_by_hand),
};
SUITE_MAIN("runner", suite)
