/* The gate's measurements against runs that are made one by one, parameters as texts, and which
 * rows are asked for their first decision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/gate/gate.h"
#include "experiments/run/config.h"
#include "sim/base/hash.h"
#include "sim/base/portable.h"
#include "sim/base/rng.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "traces/traces.h"

static struct gate_baseline b;
static struct err err;
static const struct study_how how = {.parallel = 1, .cpu_limit_s = 60.0};

#define WORKLOAD "mixed:reactive_per_min=40,proactive_per_min=30,duration_s=12"

static void setup(void)
{
    err = (struct err)ERR_INIT;
    b = (struct gate_baseline){.n_groups = 2};
    b.groups[0] =
        (struct gate_group){.name = "exact",
                            .soc = "core-ultra-5-125h",
                            .llm = "llama-3.2-3b",
                            .workload = WORKLOAD,
                            .sets = {"sim.graphics.reserve_time_frac=0.1", "soc.host.schedule=50"},
                            .n_sets = 2,
                            .seed = 3,
                            .replications = 2,
                            .policies = {"fcfs", "no-such-policy", "edf"},
                            .n_policies = 3,
                            .metrics = {{"no.such.metric", METRIC_BETTER_LOWER, 0.01},
                                        {"reactive.e2e_s.mean", METRIC_BETTER_LOWER, 0.01},
                                        {"reactive.e2e_s.p37", METRIC_BETTER_LOWER, 0.01},
                                        {"nor.this", METRIC_BETTER_LOWER, 0.01},
                                        {"energy_j", METRIC_BETTER_LOWER, 0.01}},
                            .n_metrics = 5};
    b.groups[1] = b.groups[0];
    b.groups[1].name = "fresh";
    b.groups[1].fresh = true;
    b.groups[1].n_sets = 0;
    b.groups[1].seed = 9;
    b.groups[1].replications = 3;
    b.groups[1].policies[1] = "edf:max_batch=3";
    b.groups[1].n_policies = 2;
}

static void teardown(void)
{
    err_fini(&err);
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x;
    double c = *(const double *)y;
    return (a > c) - (a < c);
}

/* Mean and P90 (nearest rank) of n values; 0 of none. */
static void summary(double *v, int n, double *mean, double *p90)
{
    *mean = *p90 = 0;
    for (int i = 0; i < n; i++) {
        *mean += v[i] / n;
    }
    if (n > 0) {
        qsort(v, (size_t)n, sizeof *v, by_size);
        *p90 = v[(9 * n + 9) / 10 - 1];
    }
}

static void is_measured(const struct gate_cells *out, uint64_t fresh_seed)
{
    ck_assert_uint_eq(out->n, 5);
    for (uint32_t i = 0; i < 5; i++) {
        const struct gate_group *g = &b.groups[i / 3];
        const char *policy = g->policies[i % 3];
        const struct gate_cell *c = &out->v[i];
        struct config_options o = config_options_default();
        struct config config;
        struct config_policy p;
        o.soc = g->soc;
        o.llm = g->llm;
        o.workload = g->workload;
        o.seed = g->seed;
        for (uint32_t k = 0; k < g->n_sets; k++) {
            o.sets[o.n_sets++] = g->sets[k];
        }
        config_options_metric(&o, "reactive.e2e_s.p37");
        ck_assert_int_eq(config_load(&config, &o, &err), 0);
        ck_assert_str_eq(c->group, g->name);
        ck_assert_str_eq(c->policy, policy);
        ck_assert(c->present && c->replications == g->replications);
        /* those that a run on the machine has, in their order */
        static const char *const metrics[] = {"reactive.e2e_s.mean", "reactive.e2e_s.p37",
                                              "energy_j"};
        ck_assert_uint_eq(c->n_metrics, 3);
        uint64_t seed = g->fresh ? fresh_seed : g->seed;
        uint64_t hash = HASH_INIT;
        uint32_t verdicts[3] = {0};
        bool unknown = strcmp(policy, "no-such-policy") == 0;
        ck_assert(c->unknown_policy == unknown);
        ck_assert_uint_eq(c->failed, unknown ? 2 : 0);
        ck_assert((strstr(c->message, "no policy is called") != NULL) == unknown);
        ck_assert((c->covariates != NULL) == g->fresh);
        for (uint32_t k = 0; k < g->replications; k++) {
            struct trace t;
            ck_assert_int_eq(config_trace(&o, config_seed(seed, k), CONFIG_AS_WRITTEN, &t, &err),
                             0);
            hash = hash_u64(hash, t.hash);
            if (g->fresh) { /* requests; input and output; and what both take, by class */
                for (int cls = 0; cls < 2; cls++) {
                    double input[256];
                    double output[256];
                    double work[256];
                    int n = 0;
                    for (size_t row = 0; row < t.n; row++) {
                        if (t.rows[row].cls == cls) {
                            input[n] = t.rows[row].input_tokens;
                            output[n] = t.rows[row].output_tokens;
                            work[n] = input[n] + 25 * output[n];
                            n++;
                        }
                    }
                    double want[7] = {n};
                    double mean;
                    summary(input, n, &want[1], &want[2]);
                    summary(output, n, &want[3], &want[4]);
                    summary(work, n, &mean, &want[5]);
                    for (int x = 0; x < 6; x++) {
                        is_near(
                            c->covariates[k * GATE_COVARIATES + 6 * (uint32_t)cls + (uint32_t)x],
                            want[x]);
                    }
                }
            }
            trace_fini(&t);
            if (unknown) {
                for (uint32_t m = 0; m < 3; m++) {
                    ck_assert(isnan(c->values[m * g->replications + k]));
                }
                continue;
            }
            ck_assert_int_eq(config_policy_parse(&p, policy, &err), 0);
            struct study_cell one = {.config = &config,
                                     .options = &o,
                                     .policy = &p,
                                     .seed = config_seed(seed, k),
                                     .arrivals = CONFIG_AS_WRITTEN};
            struct study_outcomes r = study_run(&one, 1, &how);
            for (uint32_t m = 0; m < 3; m++) {
                ck_assert_str_eq(c->names[m], metrics[m]);
                ck_assert_double_eq(c->values[m * g->replications + k],
                                    portable_digits(study_value(r.v, metrics[m]), 15));
            }
            double v = study_value(r.v, "backlog.verdict");
            verdicts[v > 2 ? 2 : v < 0 ? 0 : (int)v]++;
            study_outcomes_fini(&r);
        }
        for (int v = 0; v < 3; v++) {
            ck_assert_uint_eq(c->verdicts[v], verdicts[v]);
        }
        if (g->fresh) { /* that of its own seed counts for all */
            uint64_t first = 0;
            ck_assert_int_eq(config_trace_check(&o, g->seed, CONFIG_AS_WRITTEN, &first, &err), 0);
            hash = first;
        }
        ck_assert(c->trace_hash == hash);
        config_fini(&config);
    }
    /* every policy that there is, once */
    ck_assert_uint_eq(out->n_parameters, 3);
    static const char *const policies[] = {"fcfs", "edf", "edf:max_batch=3"};
    for (uint32_t i = 0; i < 3; i++) {
        struct config_policy p;
        ck_assert_int_eq(config_policy_parse(&p, policies[i], &err), 0);
        ck_assert_str_eq(out->parameters[i].policy, policies[i]);
        ck_assert_str_eq(out->parameters[i].text, p.params_text);
        ck_assert_str_eq(gate_parameters_find(out, policies[i]), p.params_text);
    }
}

START_TEST(a_measurement_is_that_of_single_runs)
{
    for (int i = 0; i < 3; i++) { /* the group's seeds; others derived from them; one's own */
        struct gate_run r = {
            .baseline = &b, .how = how, .fresh_seeds = i > 0, .own_seed = i == 2, .seed = 77};
        struct gate_cells out;
        ck_assert_int_eq(gate_measure(&r, &out, &err), 0);
        is_measured(&out, i == 0 ? 9 : i == 1 ? rng_seed(rng_mix64(10)) : 77);
    }
}
END_TEST

/* Replications without requests are no failures: they have no value.
 */
START_TEST(replications_without_requests_count_for_nobody)
{
    static const char few[] = "mixed:reactive_per_min=6,proactive_per_min=0,duration_s=10";
    setup();
    b.n_groups = 1;
    b.groups[0].n_policies = 1;
    b.groups[0].workload = few;
    b.groups[0].n_sets = 0;
    b.groups[0].seed = 1;
    b.groups[0].replications = 12;
    b.groups[0].metrics[0].name = "reactive.e2e_s.mean";
    b.groups[0].n_metrics = 1;
    struct gate_run r = {.baseline = &b, .how = how};
    struct gate_cells out;
    ck_assert_int_eq(gate_measure(&r, &out, &err), 0);
    uint32_t empty = 0;
    for (uint32_t k = 0; k < 12; k++) {
        SCOPED(trace_fini) struct trace t = {0};
        SCOPED(err_fini) struct err e = ERR_INIT;
        bool none = trace_generate(few, config_seed(1, k), 1.0, &t, &e) != 0;
        empty += none;
        ck_assert_int_eq(isnan(out.v[0].values[k]), none);
    }
    ck_assert(empty > 0 && empty < 12);
    ck_assert(out.v[0].empty == empty && out.v[0].failed == 0);
    ck_assert_str_eq(out.v[0].message, "");
}
END_TEST

/* A group that cannot run is named, and nothing runs. */
START_TEST(a_group_that_cannot_run_is_named)
{
    static const struct {
        const char *set, *metric, *workload, *want;
    } all[] = {
        {"nothing", "energy_j", WORKLOAD, "group 'exact': set 'nothing': must be PATH=VALUE"},
        {"=3", "energy_j", WORKLOAD, "group 'exact': set '=3': must be PATH=VALUE"},
        {"soc.host.sync=1", "nothing", WORKLOAD, "group 'exact': a run has none of its metrics"},
        {"soc.host.sync=1", "energy_j", "weather:x=1", NULL},
    };
    for (int i = 0; i < 4; i++) {
        setup();
        b.n_groups = 1;
        b.groups[0].sets[0] = all[i].set;
        b.groups[0].n_sets = 1;
        b.groups[0].metrics[0].name = all[i].metric;
        b.groups[0].n_metrics = 1;
        b.groups[0].workload = all[i].workload;
        struct gate_run r = {.baseline = &b, .how = how};
        struct gate_cells out;
        ck_assert_int_eq(gate_measure(&r, &out, &err), -EINVAL);
        ck_assert(out.n == 0 && err.n >= 1);
        if (all[i].want != NULL) {
            ck_assert_str_eq(err.lines[0], all[i].want);
        }
        err_fini(&err);
    }
}
END_TEST

/* ---- parameters ---- */

START_TEST(parameters_are_kept_once_and_compared)
{
    struct gate_cells c = {.n = 0};
    ck_assert_ptr_null(gate_parameters_find(&c, "p0"));
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 9; i++) {
            OWNED char *policy = xformat("p%d", i);
            OWNED char *text = xformat("a=%d", i + 10 * turn);
            gate_parameters_add(&c, policy, text);
        }
    }
    ck_assert_uint_eq(c.n_parameters, 9);
    ck_assert_str_eq(gate_parameters_find(&c, "p0"), "a=0");
    ck_assert_str_eq(gate_parameters_find(&c, "p8"), "a=8");
    ck_assert_ptr_null(gate_parameters_find(&c, "p"));
    static const struct {
        const char *was, *now, *want;
    } all[] = {
        {"a=1,b=2", "a=1,b=2", ""},
        {"a=1,b=2", "a=3,b=2", "a=3, was 1"},
        {"a=1,b=2", "a=1,b=22", "b=22, was 2"},
        {"a=1,b=22", "a=1,b=2", "b=2, was 22"},
        {"a=1,b=2", "b=2,a=1", ""},
        {"a=1", "a=2,b=3,c=4", "a=2, was 1, b=3 is new, c=4 is new"},
        {"a=1,bb=2,c=", "a=1", "bb=2 is gone, c= is gone"},
        {"a=1,bb=2", "a=2", "a=2, was 1"},
        {"ab=1", "a=1", "a=1 is new"},
        {"a=1", "ab=1", "ab=1 is new"},
        {"", "", ""},
        {"", "a=1", "a=1 is new"},
        {"a=1", "", "a=1 is gone"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ck_assert_str_eq(gate_parameters_changes(all[i].was, all[i].now), all[i].want);
    }
}
END_TEST

/* ---- first decisions ---- */

/* Alarms come first, then other changes: one for each policy in a group, and five at most. */
START_TEST(changed_policies_are_listed_once)
{
    struct gate_row rows[] = {
        {.group = "g", .policy = "a", .metric = "x", .verdict = GATE_DRIFT},
        {.group = "g", .policy = "b", .metric = "x", .verdict = GATE_OK, .alarm = false},
        {.group = "g", .policy = "c", .metric = "x", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "g", .policy = "c", .metric = "y", .verdict = GATE_REGRESSION, .alarm = true},
        {.group = "h", .policy = "c", .metric = "x", .verdict = GATE_STATUS, .alarm = true},
        {.group = "g", .policy = "d", .metric = "x", .verdict = GATE_ADDED, .alarm = true},
        {.group = "g", .policy = "d", .metric = "y", .verdict = GATE_REMOVED, .alarm = true},
        {.group = "g", .policy = "e", .metric = GATE_PARAMETERS, .verdict = GATE_STATUS},
        {.group = "g", .policy = "f", .metric = "x", .verdict = GATE_GAIN, .quiet = true},
        {.group = "g", .policy = "c", .metric = "z", .verdict = GATE_DRIFT},
        {.group = "i", .policy = "a", .metric = "x", .verdict = GATE_GAIN},
        {.group = "i", .policy = "b", .metric = "x", .verdict = GATE_GAIN},
        {.group = "i", .policy = "c", .metric = "x", .verdict = GATE_GAIN},
    };
    struct gate_report r = {.rows = rows, .n = sizeof rows / sizeof rows[0]};
    struct gate_firsts f;
    memset(&f, 0x33, sizeof f);
    gate_first_find(&b, &r, NULL, &how, &f);
    static const int want[] = {2, 4, 0, 10, 11};
    ck_assert_uint_eq(f.n, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_eq(f.v[i].row, &rows[want[i]]);
        ck_assert(f.v[i].replications == 0 && !f.v[i].known && f.v[i].message[0] == '\0');
        ck_assert_ptr_null(gate_first_text(&f.v[i]));
    }
    r.n = 0;
    gate_first_find(&b, &r, NULL, &how, &f);
    ck_assert_uint_eq(f.n, 0);
}
END_TEST

/* A program that is not there: the first seed, and why. */
START_TEST(a_program_that_fails_says_why)
{
    struct gate_row rows[] = {
        {.group = "exact", .policy = "fcfs", .metric = "x", .verdict = GATE_DRIFT},
        {.group = "exact", .policy = "no-such-policy", .metric = "x", .verdict = GATE_DRIFT},
        {.group = "no such group", .policy = "fcfs", .metric = "x", .verdict = GATE_DRIFT},
    };
    struct gate_report r = {.rows = rows, .n = 3};
    struct gate_firsts f;
    gate_first_find(&b, &r, "/nowhere/xpusim", &how, &f);
    ck_assert_uint_eq(f.n, 3);
    for (int i = 0; i < 2; i++) {
        ck_assert(f.v[i].replications == 1 && f.v[i].seed == config_seed(3, 0));
        ck_assert(f.v[i].message[0] != '\0' && !f.v[i].known && !f.v[i].differs);
        ck_assert_str_eq(gate_first_text(&f.v[i]), f.v[i].message);
    }
    ck_assert(f.v[2].replications == 0 && f.v[2].message[0] == '\0');
}
END_TEST

START_TEST(first_decisions_are_told)
{
    static struct gate_row row[4] = {{.group = "g", .policy = "a"},
                                     {.group = "g", .policy = "b"},
                                     {.group = "h", .policy = "c"},
                                     {.group = "h", .policy = "d"}};
    static struct gate_firsts f = {.n = 6};
    f.v[0] = (struct gate_first){.row = &row[0],
                                 .replications = 2,
                                 .seed = 18446744073709551615u,
                                 .known = true,
                                 .differs = true,
                                 .decision = 12,
                                 .now_s = 1.5,
                                 .old_s = 0.25,
                                 .now = "form 1",
                                 .old = "form 2"};
    f.v[1] = f.v[0];
    f.v[1].row = &row[1];
    (void)snprintf(f.v[1].old, sizeof f.v[1].old, "form 1");
    f.v[2] = f.v[1];
    f.v[2].now_s = 0.125;
    f.v[3] = (struct gate_first){.row = &row[2], .replications = 4, .seed = 5, .known = true};
    f.v[4] = (struct gate_first){.row = &row[3], .replications = 1, .seed = 6, .message = "broke"};
    f.n = 5;
    struct document *d = document_new();
    gate_first_document(&f, d);
    shown_is(d,
             "g, a: decision 12 is another: `form 2` at 0.250000 s before, `form 1` at 1.500000 s "
             "now (seed 18446744073709551615)\n"
             "g, b: decision 12 comes later: `form 1`, at 0.250000 s before, at 1.500000 s now "
             "(seed 18446744073709551615)\n"
             "g, b: decision 12 comes sooner: `form 1`, at 0.250000 s before, at 0.125000 s now "
             "(seed 18446744073709551615)\n"
             "h, c: every decision is the same in 4 replications; only what they cost has changed\n"
             "h, d: broke\n",
             "{\"first_decisions\":["
             "{\"group\":\"g\",\"policy\":\"a\",\"seed\":\"18446744073709551615\",\"differs\":true,"
             "\"decision\":12,\"before_s\":0.25,\"before\":\"form 2\",\"now_s\":1.5,"
             "\"now\":\"form 1\",\"message\":\"\"},"
             "{\"group\":\"g\",\"policy\":\"b\",\"seed\":\"18446744073709551615\",\"differs\":true,"
             "\"decision\":12,\"before_s\":0.25,\"before\":\"form 1\",\"now_s\":1.5,"
             "\"now\":\"form 1\",\"message\":\"\"},"
             "{\"group\":\"g\",\"policy\":\"b\",\"seed\":\"18446744073709551615\",\"differs\":true,"
             "\"decision\":12,\"before_s\":0.25,\"before\":\"form 1\",\"now_s\":0.125,"
             "\"now\":\"form 1\",\"message\":\"\"},"
             "{\"group\":\"h\",\"policy\":\"c\",\"seed\":\"5\",\"differs\":false,\"decision\":0,"
             "\"before_s\":0,\"before\":\"\",\"now_s\":0,\"now\":\"\",\"message\":\"\"},"
             "{\"group\":\"h\",\"policy\":\"d\",\"seed\":\"6\",\"differs\":false,\"decision\":0,"
             "\"before_s\":0,\"before\":\"\",\"now_s\":0,\"now\":\"\",\"message\":\"broke\"}]}");
    f.v[0].replications = 0; /* nothing was compared: no row */
    f.n = 1;
    struct document *none = document_new();
    gate_first_document(&f, none);
    shown_is(none, "", "{\"first_decisions\":[]}");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("gate measured", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(a_measurement_is_that_of_single_runs),
    TEST(replications_without_requests_count_for_nobody),
    TEST(a_group_that_cannot_run_is_named),
    TEST(parameters_are_kept_once_and_compared),
    TEST(changed_policies_are_listed_once),
    TEST(a_program_that_fails_says_why),
    TEST(first_decisions_are_told),
};
SUITE_MAIN("gate measured", suite)
