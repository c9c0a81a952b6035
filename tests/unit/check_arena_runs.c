/* The arena on two small runs: a certificate, a choice, and the words of a judgement, each held
 * against what its parts say alone. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/arena/judge.h"
#include "experiments/compare/regret.h"
#include "experiments/diff/two_runs.h"
#include "experiments/falsify/runs.h"
#include "sim/base/json.h"
#include "sim/core/counters.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

#define E2E "reactive.e2e_s.mean"

static const char small_suite[] =
    "{\"name\": \"small\", \"suite\": {\"about\": \"a test\", \"references\": [\"fcfs\", \"edf\"]},"
    "\"base\": {\"seed\": 11},"
    "\"rows\": [{\"point\": \"p\", \"workload\": "
    "\"mixed:reactive_per_min=60,proactive_per_min=60,duration_s=6\"},"
    "{\"point\": \"q\", \"seed\": 3, \"workload\": "
    "\"mixed:reactive_per_min=60,proactive_per_min=70,duration_s=6\"}],"
    "\"replications\": 2, \"metrics\": [\"reactive.e2e_s.mean\", \"all.throughput_req_per_min\", "
    "\"energy_j\"]}";

static const struct study_how how = {.parallel = 1, .cpu_limit_s = 60.0};
static struct suite small;
static struct config_policy two[2];
static struct err errors;

static void setup_runs(void)
{
    errors = (struct err)ERR_INIT;
    const char *path = tempfile_make(".json");
    tempfile_put(small_suite);
    ck_assert_int_eq(suite_load(&small, path, &errors), 0);
    tempfile_remove();
    ck_assert_int_eq(config_policy_parse(&two[0], "fcfs", &errors), 0);
    ck_assert_int_eq(config_policy_parse(&two[1], "edf", &errors), 0);
}

/* Replication by replication the best of both references and of the schedule in hindsight, where
 * one is known; the bound is the regret's. */
START_TEST(a_certificate_holds_the_best_of_each_run)
{
    static struct certificate c;
    ck_assert_int_eq(certificate_make(&small, 2, &how, &c, &errors), 0);
    struct judge_runs runs[2];
    for (int i = 0; i < 2; i++) {
        judge_run(&small, &two[i], 2, &how, &runs[i]);
    }
    for (uint32_t point = 0; point < 2; point++) {
        const struct suite_point *p = &small.points[point];
        struct compare_plan plan = {.config = &p->config,
                                    .options = &p->settings.options,
                                    .policies = two,
                                    .n_policies = 2,
                                    .replications = 2,
                                    .how = how,
                                    .arrivals = p->settings.arrivals};
        struct regret g;
        regret_run(&g, &plan);
        for (uint32_t m = 0; m < 3; m++) {
            const char *metric = small.spec.patterns[m];
            const struct certificate_row *row = &c.rows[3 * point + m];
            double v[2][2];
            double best = 0.0;
            for (int i = 0; i < 2; i++) {
                judge_values(&runs[i], point, metric, v[i]);
                is_near(row->reference[i], (v[i][0] + v[i][1]) / 2.0);
            }
            uint32_t c_of = 0;
            while (c_of < CLAIRVOYANT_METRICS && strcmp(clairvoyant_metrics[c_of], metric) != 0) {
                c_of++;
            }
            ck_assert((c_of == CLAIRVOYANT_METRICS) == (m == 2));
            if (m == 2) { /* no schedule is known by its energy */
                ck_assert(isnan(row->hindsight) && isnan(row->bound));
                is_near(row->best, (fmin(v[0][0], v[1][0]) + fmin(v[0][1], v[1][1])) / 2.0);
                continue;
            }
            const double *x = &g.best[2 * c_of];
            for (int k = 0; k < 2; k++) {
                best += (m == 1 ? fmax(fmax(v[0][k], v[1][k]), x[k])
                                : fmin(fmin(v[0][k], v[1][k]), x[k])) /
                        2.0;
            }
            is_near(row->best, best);
            is_near(row->hindsight, (x[0] + x[1]) / 2.0);
            is_near(row->bound, (g.bound[2 * c_of] + g.bound[2 * c_of + 1]) / 2.0);
        }
    }
    /* from the second replication on is the second replication */
    struct judge_runs later;
    judge_run_from(&small, &two[1], 1, 1, &how, &later);
    for (uint32_t point = 0; point < 2; point++) {
        double all[2];
        double one;
        judge_values(&runs[1], point, E2E, all);
        judge_values(&later, point, E2E, &one);
        ck_assert(one == all[1] && one != all[0]);
    }
    judge_runs_fini(&later);
    judge_runs_fini(&runs[0]);
    judge_runs_fini(&runs[1]);
    small.references[1] = "nobody";
    ck_assert_int_eq(certificate_make(&small, 2, &how, &c, &errors), -EINVAL);
    err_fini(&errors);
}
END_TEST

/* Runs end after 10 s, and leave requests that wait then. A run of a reference that leaves more
 * than the first one's is no run to learn from: it is in no mean, and never the best. */
START_TEST(a_reference_that_leaves_more_is_not_the_best)
{
    static const char text[] =
        "{\"name\": \"short\", \"suite\": {\"about\": \"a test\", \"references\": "
        "[\"fcfs\", \"agent-xpu-v2\", \"edf\"]},"
        "\"base\": {\"seed\": 11, \"sim.horizon_s\": 10},"
        "\"rows\": [{\"point\": \"p\", \"workload\": "
        "\"mixed:reactive_per_min=60,proactive_per_min=60,duration_s=5\"}],"
        "\"replications\": 6, \"metrics\": [\"energy_j\"]}";
    static struct suite s;
    static struct certificate c;
    struct judge_runs runs[3];
    double v[3][6];
    uint32_t more = 0;
    uint32_t fewer = 0;
    const char *path = tempfile_make(".json");
    tempfile_put(text);
    ck_assert_int_eq(suite_load(&s, path, &errors), 0);
    tempfile_remove();
    ck_assert_int_eq(certificate_make(&s, 6, &how, &c, &errors), 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct config_policy p;
        ck_assert_int_eq(config_policy_parse(&p, s.references[i], &errors), 0);
        judge_run(&s, &p, 6, &how, &runs[i]);
        judge_values(&runs[i], 0, "energy_j", v[i]);
    }
    double best = 0.0;
    for (uint32_t k = 0; k < 6; k++) {
        double least = v[0][k];
        for (uint32_t i = 1; i < 3; i++) {
            double first = study_left(&runs[0].outcomes.v[k]);
            double mine = study_left(&runs[i].outcomes.v[k]);
            more += mine > first;
            fewer += mine < first;
            v[i][k] = mine > first ? (double)NAN : v[i][k];
            least = fmin(least, v[i][k]);
        }
        best += least / 6.0;
    }
    ck_assert(more > 0 && fewer > 0);
    is_near(c.rows[0].best, best);
    for (uint32_t i = 0; i < 3; i++) {
        double mean = stats_mean(v[i], 6, STATS_LEVEL_FRAC).mean;
        ck_assert((isnan(mean) && isnan(c.rows[0].reference[i])) ||
                  fabs(mean - c.rows[0].reference[i]) < 1e-9 * mean);
        judge_runs_fini(&runs[i]);
    }
}
END_TEST

/* Gains of the mean over points and metrics, replication by replication, as a selection asks for
 * them: the second candidate is the reference, and so gains nothing anywhere. */
static void gains(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    const struct config_policy *candidates = ctx;
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = from; left[i] && k < to; k++) {
            struct judge_runs mine;
            struct judge_runs other;
            judge_run_from(&small, &candidates[i], k, 1, &how, &mine);
            judge_run_from(&small, &two[0], k, 1, &how, &other);
            values[i][k] = 0.0;
            for (uint32_t pair = 0; pair < 6; pair++) {
                double x;
                double y;
                judge_values(&mine, pair / 3, small.spec.patterns[pair % 3], &x);
                judge_values(&other, pair / 3, small.spec.patterns[pair % 3], &y);
                double g = pair % 3 == 1 ? log(x / y) : log(y / x);
                values[i][k] += fmax(-log(2.0), fmin(log(2.0), g)) / 6.0;
            }
            judge_runs_fini(&mine);
            judge_runs_fini(&other);
        }
    }
}

START_TEST(the_best_is_chosen_by_mean_gains)
{
    struct config_policy of[3];
    static const char *const names_of[] = {"edf", "fcfs", "srpt"};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(config_policy_parse(&of[i], names_of[i], &errors), 0);
    }
    struct select_asked asked = {.confidence_frac = 0.95, .indifference_percent = 0.1, .most = 12};
    struct select_result r;
    choose_best(&small, of, 3, &two[0], &asked, &how, &r);
    uint32_t most = 0;
    struct select_options o = {.confidence_frac = 0.95,
                               .delta = log(1.001),
                               .first = SELECT_FIRST_MIN,
                               .most = 12,
                               .gain = true};
    struct select_result again;
    select_by(&o, 3, gains, of, &again);
    ck_assert(r.best == again.best && r.decided == again.decided && r.runs == again.runs);
    is_near(r.delta, again.delta);
    ck_assert(r.k == 3 && r.gain);
    for (uint32_t i = 0; i < 3; i++) {
        is_near(select_mean(&r, i), select_mean(&again, i));
        ck_assert(r.of[i].n == again.of[i].n && r.of[i].left == again.of[i].left);
        most = r.of[i].n > most ? r.of[i].n : most;
    }
    ck_assert_uint_gt(most, SELECT_FIRST_MIN); /* later replications are of later requests */
}
END_TEST

static void put_causes(struct text *t, const struct explanation *x)
{
    int64_t ns[EXPLAIN_CAUSE_COUNT];
    memcpy(ns, x->ns, sizeof ns);
    for (int k = 0; k < 3; k++) {
        int most = 0;
        for (int i = 1; i < EXPLAIN_CAUSE_COUNT; i++) {
            most = ns[i] > ns[most] ? i : most;
        }
        if (ns[most] > 0) {
            text_format(t, "%s%.2f s %s", k > 0 ? ", " : "", (double)ns[most] / 1e9,
                        explain_cause_names[most]);
        }
        ns[most] = 0;
    }
}

/* Where more is better, the reference has the most in the worst replication. */
static void gain_is_worst_where_the_reference_has_most(const struct words_of *of)
{
    struct judge_result r = {.worst = 4}; /* throughput at the second point */
    struct words_of w = *of;
    double mine[2];
    double other[2];
    w.result = &r;
    w.falsify = 0;
    judge_values(w.runs, 1, small.spec.patterns[1], mine);
    judge_values(w.reference_runs, 1, small.spec.patterns[1], other);
    ck_assert_double_ne(other[1] / mine[1], other[0] / mine[0]);
    uint32_t worst = other[1] / mine[1] > other[0] / mine[0];
    uint64_t base = small.points[1].settings.options.seed;
    struct document *d = document_new();
    words_document(&w, d);
    SCOPED(json_drop) cJSON *tree = document_json(d);
    OWNED char *where =
        xformat("q, seed %llu, decision ", (unsigned long long)config_seed(base, worst));
    const char *parts = json_string(json_member(tree, "artefacts"), "first_difference");
    ck_assert_msg(strncmp(parts, where, strlen(where)) == 0, "%s, not %s", parts, where);
}

/* The texts of a judgement in which edf lost most at the second point: each part is asked for of
 * its own, and put into words once more. */
START_TEST(words_say_what_each_part_finds)
{
    struct judge_runs runs[2];
    for (int i = 0; i < 2; i++) {
        judge_run(&small, &two[1 - i], 2, &how, &runs[i]); /* edf, fcfs */
    }
    /* This is edf's worst replication there. */
    double mine[2];
    double other[2];
    judge_values(&runs[0], 1, E2E, mine);
    judge_values(&runs[1], 1, E2E, other);
    uint32_t worst = mine[1] / other[1] > mine[0] / other[0];
    struct study_outcome *second = &runs[0].outcomes.v[1];
    struct judge_result r = {.worst = 3,
                             .n_failed = 3,
                             .failed = second,
                             .failed_cell = 3}; /* the second run of the second point */
    (void)snprintf(second->message, sizeof second->message, "a reason");
    struct words_of w = {.suite = &small,
                         .policy = &two[1],
                         .reference = &two[0],
                         .runs = &runs[0],
                         .reference_runs = &runs[1],
                         .result = &r,
                         .how = how,
                         .falsify = 2};
    struct document *d = document_new();
    words_document(&w, d);
    cJSON *tree = document_json(d);
    const cJSON *in = cJSON_GetObjectItem(tree, "artefacts");
    uint64_t base = small.points[1].settings.options.seed;
    OWNED char *failed = xformat("3 runs failed; the first at q, seed %llu: a reason",
                                 (unsigned long long)config_seed(base, 1));
    ck_assert_str_eq(cJSON_GetObjectItem(in, "failure")->valuestring, failed);
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(in, "refused")));
    /* the request */
    struct study_cell sides[2] = {suite_cell(&small, 1, &two[1], worst),
                                  suite_cell(&small, 1, &two[0], worst)};
    struct falsify_reason why;
    falsify_explain(sides, E2E, &how, &why);
    ck_assert(why.found && why.seed == config_seed(base, worst));
    const struct explanation *a = &why.request[0].x;
    const struct explanation *b = &why.request[1].x;
    SCOPED(text_fini) struct text t = {0};
    text_format(&t,
                "q, seed %llu: request %u (reactive, %u prompt and %u output tokens) took %.2f s "
                "under edf: ",
                (unsigned long long)why.seed, a->request_id, a->input_tokens, a->output_tokens,
                (double)(a->end_ns - a->arrival_ns) / 1e9);
    put_causes(&t, a);
    text_format(&t, "; %.2f s under fcfs: ", (double)(b->end_ns - b->arrival_ns) / 1e9);
    put_causes(&t, b);
    ck_assert_uint_gt(a->n_blockers, 0);
    for (size_t i = 0; i < a->n_blockers; i++) {
        const struct explain_blocker *x = &why.request[0].first[i];
        text_format(&t, "%s%u (%s, %.2f s)", i == 0 ? "; in its way: " : ", ", x->request_id,
                    x->cls == REQUEST_CLASS_REACTIVE ? "reactive" : "proactive",
                    (double)(x->tail_ns + x->queue_ns + x->shared_ns) / 1e9);
    }
    ck_assert_str_eq(cJSON_GetObjectItem(in, "worst_request")->valuestring, text_end(&t));
    /* the first decision that differs: two logs of the same trace */
    static struct two_runs both; /* kept, as its configurations are */
    struct two_runs *logs = &both;
    struct two_runs_options o = {.both = small.points[1].settings.options,
                                 .policy = "edf",
                                 .b_policy = "fcfs",
                                 .work = {.how = how}};
    o.both.seed = why.seed;
    ck_assert_int_eq(two_runs_load(logs, &o, &errors), 0);
    struct trace trace;
    ck_assert_int_eq(config_trace(&small.points[1].settings.options, why.seed,
                                  small.points[1].settings.arrivals, &trace, &errors),
                     0);
    struct two_runs_log l[2];
    two_runs_run(logs, 0, &trace, NULL, &l[0]);
    two_runs_run(logs, 1, &trace, NULL, &l[1]);
    struct divergence v;
    diverge_find(l[0].log, l[1].log, &v);
    ck_assert(v.differs);
    OWNED char *parted =
        xformat("q, seed %llu, decision %llu: edf: %s; fcfs: %s", (unsigned long long)why.seed,
                (unsigned long long)v.line, v.a, v.b);
    ck_assert_str_eq(cJSON_GetObjectItem(in, "first_difference")->valuestring, parted);
    two_runs_log_fini(&l[0]);
    two_runs_log_fini(&l[1]);
    trace_fini(&trace);
    /* The worst scenario must be that of the same search by hand. */
    struct space *space = xcalloc(1, sizeof *space);
    ck_assert_int_eq(space_init(space, &small.points[1].settings.options, &small.points[1].config,
                                "workload,machine", &errors),
                     0);
    struct falsify_runs search = {
        .space = space, .policy = {&two[1], &two[0]}, .metric = E2E, .how = how};
    struct falsify_options asked = {.metric = E2E,
                                    .budget = 2,
                                    .replications = 2,
                                    .confirm = 8,
                                    .relevance_frac = 0.01,
                                    .seed = base};
    struct falsify_result *f = xcalloc(1, sizeof *f);
    falsify_run(&search, &asked, f);
    OWNED char *command = f->found ? space_command(space, &f->least) : NULL;
    OWNED char *scenario = f->found
                               ? xformat(E2E " is %.3g times [%.3g, %.3g] the reference's with %s",
                                         exp(f->least_confirmed.mean), exp(f->least_confirmed.low),
                                         exp(f->least_confirmed.high), command)
                               : xstrdup("none found");
    ck_assert_str_eq(cJSON_GetObjectItem(in, "worst_scenario")->valuestring, scenario);
    free(space);
    free(f);
    /* People get equal findings, by name. */
    OWNED char *said = said_text(d);
    OWNED char *all = xformat("\nwhat to look at\nfailure: %s\nworst_request: %s\n"
                              "first_difference: %s\nworst_scenario: %s\n",
                              failed, text_end(&t), parted, scenario);
    ck_assert_str_eq(said, all);
    cJSON_Delete(tree);
    gain_is_worst_where_the_reference_has_most(&w);
    judge_runs_fini(&runs[0]);
    judge_runs_fini(&runs[1]);
}
END_TEST

/* Each refusal with its number over all runs, and nothing that is none. */
START_TEST(refused_actions_are_summed_over_runs)
{
    struct judge_runs runs;
    struct judge_runs base;
    judge_run(&small, &two[0], 2, &how, &base);
    judge_run(&small, &two[0], 2, &how, &runs);
    SCOPED(text_fini) struct text want = {0};
    for (int i = 0; i < COUNTER_COUNT; i++) {
        OWNED char *name = xformat("counters.%s", counter_names[i]);
        for (uint32_t k = 0; k < runs.outcomes.n; k++) {
            struct study_outcome *o = &runs.outcomes.v[k];
            for (size_t j = 0; j < o->names->n; j++) {
                if (strcmp(o->names->v[j], name) == 0) {
                    o->values[j] = i % 3 == 1 ? 0.0 : i + 100.0 * k;
                }
            }
        }
        if (i % 3 != 1 && i <= COUNTER_OUTSIDE_SCHEDULE && i != COUNTER_PASS_NO_MEMORY &&
            i != COUNTER_PASS_CANCELLED) {
            text_format(&want, "%s%s %d times",
                        want.n > 0 ? ", " : "actions refused as wrong: ", counter_names[i],
                        4 * i + 600); /* of four runs */
        }
    }
    struct judge_result r = {.worst = 0};
    struct words_of w = {.suite = &small,
                         .policy = &two[0],
                         .reference = &two[0],
                         .runs = &runs,
                         .reference_runs = &base,
                         .result = &r,
                         .how = how};
    struct document *d = document_new();
    words_document(&w, d);
    cJSON *tree = document_json(d);
    const cJSON *in = cJSON_GetObjectItem(tree, "artefacts");
    ck_assert_str_eq(cJSON_GetObjectItem(in, "refused")->valuestring, text_end(&want));
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(in, "failure")) &&
              cJSON_IsNull(cJSON_GetObjectItem(in, "worst_request")) &&
              cJSON_IsNull(cJSON_GetObjectItem(in, "first_difference")) &&
              cJSON_IsNull(cJSON_GetObjectItem(in, "worst_scenario")));
    cJSON_Delete(tree);
    judge_runs_fini(&runs);
    judge_runs_fini(&base);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("arena runs", .setup = setup_runs, .timeout_s = 60),
    TEST(a_certificate_holds_the_best_of_each_run),
    TEST(a_reference_that_leaves_more_is_not_the_best),
    TEST(the_best_is_chosen_by_mean_gains),
    TEST(words_say_what_each_part_finds),
    TEST(refused_actions_are_summed_over_runs),
};
SUITE_MAIN("arena runs", rows)
