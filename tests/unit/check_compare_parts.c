/* Made-up runs test parts of a comparison: places of values, failures, rows of a store. Machines
 * are drawn evenly in every number, and two classes have steady states. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/compare/machines.h"
#include "experiments/compare/steady.h"
#include "experiments/compare/uncertainty.h"
#include "experiments/run/folder.h"
#include "experiments/store/store.h"
#include "experiments/validation/calibrate_report.h"
#include "experiments/validation/calibrate_space.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    folder_enter();
}

static void teardown(void)
{
    err_fini(&err);
    folder_leave();
}

/* ---- runs ---- */

/* Two kinds of runs: those of policy 1 have one more counter, and their metrics in another order.
 */
static const char *texts[2][7] = {{"a.s", "npu.extrapolated_frac", "npu.extrapolated_rows_frac",
                                   "backlog.verdict", "counters.x", NULL},
                                  {"npu.extrapolated_rows_frac", "counters.y", "backlog.verdict",
                                   "counters.x", "npu.extrapolated_frac", "a.s", NULL}};
static struct study_names names[2];
static struct study_outcome outcomes[6];
static double values[6][6];
static const struct config_policy policies[] = {{.label = "p"}, {.label = "q"}};
static struct config_options options;

/* Number i is of policy i % 2 in replication i / 2. Its values are 100 i and the place of the name
 * in the first list (counters.y: 9); number 3 failed. */
static struct study_outcomes made(void)
{
    for (int k = 0; k < 2; k++) {
        names[k] = (struct study_names){.next = k == 0 ? &names[1] : NULL, .v = texts[k]};
        while (texts[k][names[k].n] != NULL) {
            names[k].n++;
        }
    }
    for (int i = 0; i < 6; i++) {
        outcomes[i] =
            (struct study_outcome){.names = &names[i % 2], .values = values[i], .run = 70 + i};
        for (size_t k = 0; k < names[i % 2].n; k++) {
            double at = 9;
            for (int j = 0; j < 5; j++) {
                at = strcmp(texts[0][j], texts[i % 2][k]) == 0 ? j : at;
            }
            values[i][k] = 100 * i + at;
        }
    }
    outcomes[3] = (struct study_outcome){.status = -EIO, .message = "it fell"};
    return (struct study_outcomes){.v = outcomes, .n = 6, .names = &names[0]};
}

static struct compare_plan plan_of(void)
{
    options = (struct config_options){.seed = 7};
    return (struct compare_plan){
        .options = &options, .policies = policies, .n_policies = 2, .replications = 3};
}

static void are(const struct compare_result *r, uint32_t policy, const char *metric, double a,
                double b, double c)
{
    const double want[] = {a, b, c};
    const double *x = compare_values(r, policy, metric);
    ck_assert_msg(x != NULL, "%s", metric);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(isnan(want[i]) ? isnan(x[i]) : fabs(x[i] - want[i]) < 1e-9,
                      "%s %d: %g, not %g", metric, i, x[i], want[i]);
    }
}

START_TEST(values_stand_by_policy_metric_and_replication)
{
    struct study_outcomes o = made();
    struct compare_plan plan = plan_of();
    SCOPED(compare_result_fini) struct compare_result r;
    compare_take(&plan, &o, &r);
    static const char *const want[] = {"a.s",
                                       "npu.extrapolated_frac",
                                       "npu.extrapolated_rows_frac",
                                       "backlog.verdict",
                                       "counters.x",
                                       "counters.y"};
    ck_assert_uint_eq(r.n_metrics, 6);
    ck_assert_uint_eq(r.n_plain, 4);
    ck_assert_uint_eq(r.n_policies, 2);
    ck_assert_uint_eq(r.replications, 3);
    for (int k = 0; k < 6; k++) {
        ck_assert_str_eq(r.names[k].name, want[k]);
        /* Asked by a text, and by the very name that is here. */
        OWNED char *copy = xstrdup(want[k]);
        ck_assert_ptr_eq(compare_values(&r, 1, copy), compare_values(&r, 1, r.names[k].name));
    }
    for (int k = 0; k < 5; k++) {
        are(&r, 0, want[k], k, 200 + k, 400 + k);
        are(&r, 1, want[k], 100 + k, (double)NAN, 500 + k);
    }
    are(&r, 0, "counters.y", (double)NAN, (double)NAN, (double)NAN);
    are(&r, 1, "counters.y", 109, (double)NAN, 509);
    ck_assert_ptr_null(compare_values(&r, 0, "counters.z"));
    ck_assert_uint_eq(r.n_failures, 1);
    ck_assert_uint_eq(r.failures[0].policy, 1);
    ck_assert_uint_eq(r.failures[0].replication, 1);
    ck_assert_str_eq(r.failures[0].message, "it fell");
    struct extrapolated x = compare_extrapolated(&r, 1);
    ck_assert_uint_eq(x.n, 1);
    ck_assert_str_eq(x.of[0].device, "npu");
    ck_assert_double_eq(x.of[0].frac, 301);
    ck_assert_double_eq(x.of[0].rows_frac, 302);
    struct hearing h;
    hearing_begin(&h);
    compare_report_failures(&plan, &r);
    SCOPED(said_fini) struct said s = hearing_end(&h);
    OWNED char *line =
        xformat("xpusim: error: q, replication 1 (seed %" PRIu64 "): it fell\n", config_seed(7, 1));
    said_is(&s, 0, "", line);
    struct compare_plan one = compare_alone(&plan, 1);
    ck_assert_uint_eq(one.n_policies, 1);
    ck_assert_str_eq(one.policies[0].label, "q");
    ck_assert_uint_eq(one.replications, 3);
}
END_TEST

/* Failures 0 and 2 differ by seed only. 1 is another policy's, and 3 came at another instant. */
START_TEST(failures_of_one_kind_are_one_line)
{
    struct compare_failure f[] = {{0, 0, "policy p, seed 1, t=5 ns: stalled"},
                                  {1, 0, "policy q, seed 1, t=5 ns: stalled"},
                                  {0, 1, "policy p, seed 9, t=5 ns: stalled"},
                                  {0, 2, "policy p, seed 3, t=6 ns: stalled"},
                                  {1, 1, "it fell"},
                                  {1, 2, "it fell"}};
    struct compare_plan plan = plan_of();
    struct compare_result r = {.failures = f, .n_failures = 6};
    struct hearing h;
    hearing_begin(&h);
    compare_report_failures(&plan, &r);
    SCOPED(said_fini) struct said s = hearing_end(&h);
    OWNED char *lines = xformat(
        "xpusim: error: p, replication 0 (seed 7) and 1 other: policy p, seed 1, t=5 ns: stalled\n"
        "xpusim: error: q, replication 0 (seed 7): policy q, seed 1, t=5 ns: stalled\n"
        "xpusim: error: p, replication 2 (seed %" PRIu64 "): policy p, seed 3, t=6 ns: stalled\n"
        "xpusim: error: q, replication 1 (seed %" PRIu64 "): it fell\n"
        "xpusim: error: q, replication 2 (seed %" PRIu64 "): it fell\n",
        config_seed(7, 2), config_seed(7, 1), config_seed(7, 2));
    said_is(&s, 0, "", lines);
}
END_TEST

START_TEST(no_metrics_are_left_where_all_failed)
{
    struct study_outcomes o = made();
    for (int i = 0; i < 6; i++) {
        outcomes[i] = (struct study_outcome){.status = -EIO, .message = "it fell"};
    }
    struct compare_plan plan = plan_of();
    SCOPED(compare_result_fini) struct compare_result r;
    compare_take(&plan, &o, &r);
    ck_assert_uint_eq(r.n_metrics, 0);
    ck_assert_uint_eq(r.n_plain, 0);
    ck_assert_uint_eq(r.n_failures, 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(r.failures[i].policy, i % 2);
        ck_assert_uint_eq(r.failures[i].replication, i / 2);
    }
}
END_TEST

struct member {
    uint64_t point;
    uint32_t replication;
    bool failed;
};
static struct member members[8];
static uint32_t n_members;

static void keep(void *ctx, const struct store_replication *r)
{
    (void)ctx;
    ck_assert_uint_lt(n_members, 8);
    members[n_members++] = (struct member){r->point, r->replication, r->run == 0};
}

/* From the fifth replication on and the tenth point: by point, then by replication. */
START_TEST(runs_are_replications_of_their_points)
{
    struct study_outcomes o = made();
    struct compare_plan plan = plan_of();
    plan.first = 5;
    plan.first_point = 10;
    struct store *s = plan.how.store = store_open("s.db", STORE_USE_CREATE, &err);
    plan.experiment = store_experiment(s, "e", "r", "{}");
    static const char *const names_of[] = {"a.s"};
    for (int i = 0; i < 6; i++) {
        OWNED char *print = xformat("run %d", i);
        struct store_run run = {.fingerprint = print,
                                .soc = "s",
                                .llm = "m",
                                .workload = "w",
                                .policy = "p",
                                .params = "",
                                .verdict = "STABLE"};
        double v = i;
        outcomes[i].run = store_put(s, &run, "*", names_of, &v, 1);
    }
    store_point(s, plan.experiment, 10, "{}");
    store_point(s, plan.experiment, 11, "{}");
    SCOPED(compare_result_fini) struct compare_result r;
    compare_take(&plan, &o, &r);
    store_replications(s, keep, NULL);
    ck_assert_uint_eq(n_members, 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(members[i].point, 10 + i / 3);
        ck_assert_uint_eq(members[i].replication, 5 + i % 3);
        ck_assert_int_eq(members[i].failed, i == 4);
    }
    double v[3];
    store_values(s, plan.experiment, 11, "a.s", v, 3); /* replications 0 to 2: none */
    ck_assert_double_nan(v[0]);
    double w[8];
    store_values(s, plan.experiment, 11, "a.s", w, 8);
    ck_assert(w[5] == 1 && isnan(w[6]) && w[7] == 5);
    ck_assert_int_eq(store_close(s, &err), 0);
}
END_TEST

/* ---- machines ---- */

/* Each number comes once from each n-th of its distribution on n machines, in an order of its own;
 * a range has half of them below its value, evenly in the logarithm. */
START_TEST(every_number_is_drawn_evenly)
{
    enum { N = 24 };
    options = config_options_default();
    OWNED struct config *c = xcalloc(1, sizeof *c);
    OWNED struct machines *m = xcalloc(1, sizeof *m);
    ck_assert_int_eq(config_load(c, &options, &err), 0);
    ck_assert_int_eq(machines_draw(c, &options, N, m, &err), 0);
    ck_assert_uint_eq(m->n_draws, N);
    uint32_t orders[2][N];
    uint32_t ranges = 0;
    for (uint32_t k = 0; k < m->n_factors; k++) {
        const struct machine_factor *f = &m->factor[k];
        bool seen[N] = {false};
        uint32_t below = 0;
        for (uint32_t i = 0; i < N; i++) {
            size_t at = (size_t)i * m->n_factors + k;
            double u = gsl_cdf_ugaussian_P(m->z[at]);
            uint32_t part = (uint32_t)(u * N);
            ck_assert_msg(part < N && !seen[part], "%s: part %u twice", f->path, part);
            seen[part] = true;
            orders[k % 2][i] = part;
            double v = m->value[at];
            if (f->kind == MACHINE_RANGE) {
                bool lower = u < 0.5;
                double from = lower ? f->low : f->nominal;
                double to = lower ? f->nominal : f->high;
                double share = lower ? 2 * u : 2 * u - 1;
                double want = from > 0 ? exp(log(from) + share * (log(to) - log(from)))
                                       : from + share * (to - from);
                ck_assert_msg(fabs(v - want) <= 1e-6 * fabs(want) + 1e-12, "%s: %g, not %g",
                              f->path, v, want);
                below += lower;
            } else {
                ck_assert_msg(v > 0.0 || f->number->offset > 0.0, "%s", f->path);
            }
        }
        if (f->kind == MACHINE_RANGE) {
            ck_assert_uint_eq(below, N / 2);
            ranges++;
        }
        ck_assert(k == 0 || memcmp(orders[0], orders[1], sizeof orders[0]) != 0);
    }
    ck_assert_uint_gt(ranges, 3);
    machines_fini(m);
    config_fini(c);
}
END_TEST

/* A drawn machine has every number that was drawn, and what is capped by the memory no more than
 * it; alone, the file's but for one. */
START_TEST(a_drawn_machine_has_its_numbers)
{
    enum { N = 16 };
    options = config_options_default();
    options.sets[options.n_sets++] = xstrdup("sim.stall_s=9");
    OWNED struct config *c = xcalloc(1, sizeof *c);
    OWNED struct config *drawn = xcalloc(1, sizeof *drawn);
    OWNED struct machines *m = xcalloc(1, sizeof *m);
    ck_assert_int_eq(config_load(c, &options, &err), 0);
    ck_assert_int_eq(machines_draw(c, &options, N, m, &err), 0);
    for (uint32_t i = 0; i < N; i += 5) {
        ck_assert_int_eq(machines_load(m, &options, i, 0, 0.0, drawn, &err), 0);
        ck_assert(drawn->sim.stall_s == 9.0);
        const char *bad;
        const cJSON *q = json_find_path(drawn->tree, "soc.ddr.peak", &bad);
        double peak = json_number(q, "value");
        for (uint32_t k = 0; k < m->n_factors; k++) {
            const struct machine_factor *f = &m->factor[k];
            if (f->kind != MACHINE_RESIDUAL) {
                double v = m->value[(size_t)i * m->n_factors + k];
                q = json_find_path(drawn->tree, f->path, &bad);
                double want = f->number->capped ? fmin(v, peak) : v;
                /* A key that the file lacks stays so at its default. */
                double is = q != NULL ? json_number(q, "value") : f->nominal;
                ck_assert_msg(is == want, "%s: %g, not %g", f->path, is, want);
            }
        }
        ck_assert(drawn->hash != c->hash);
        config_fini(drawn);
    }
    for (uint32_t k = 0; k < m->n_factors; k++) {
        const struct machine_factor *f = &m->factor[k];
        double x = f->kind == MACHINE_RESIDUAL ? 1.0 : f->high;
        ck_assert_int_eq(machines_load(m, &options, UINT32_MAX, k, x, drawn, &err), 0);
        for (uint32_t j = 0; j < m->n_factors; j++) {
            const char *bad;
            const cJSON *q = m->factor[j].kind == MACHINE_RESIDUAL
                                 ? NULL
                                 : json_find_path(drawn->tree, m->factor[j].path, &bad);
            bool capped = m->factor[j].number->capped;
            ck_assert_msg(q == NULL || capped ||
                              json_number(q, "value") == (j == k ? x : m->factor[j].nominal),
                          "%s with %s", m->factor[j].path, f->path);
        }
        /* A factor of 1 is no other machine. */
        ck_assert_int_eq(drawn->hash == c->hash, x == f->nominal);
        config_fini(drawn);
    }
    machines_fini(m);
    config_fini(c);
}
END_TEST

/* Returns the difference of two policies with one number at x and all others the file's, over the
 * first three replications. */
static double difference_at(const struct machines *m, const struct compare_plan *plan, uint32_t k,
                            double x, const char *metric)
{
    OWNED struct config *c = xcalloc(1, sizeof *c);
    ck_assert_int_eq(machines_load(m, plan->options, UINT32_MAX, k, x, c, &err), 0);
    struct compare_plan own = *plan;
    own.config = c;
    own.replications = UNCERTAINTY_FLIP_RUNS;
    SCOPED(compare_result_fini) struct compare_result r;
    compare_run(&own, &r);
    const double *a = compare_values(&r, 1, metric);
    const double *b = compare_values(&r, 0, metric);
    double sum = 0.0;
    for (uint32_t i = 0; i < UNCERTAINTY_FLIP_RUNS; i++) {
        sum += a[i] - b[i];
    }
    config_fini(c);
    return sum / UNCERTAINTY_FLIP_RUNS;
}

/* Two numbers of the machine are tested, of which one may only be higher. The findings of each must
 * be those of runs with that number alone, at the file's value and at both ends of its range. */
START_TEST(ends_of_a_range_are_run)
{
    enum { N = UNCERTAINTY_LIST_MIN };
    static const char metric[] = "reactive.e2e_s.mean";
    static const char *const metrics[] = {metric};
    options = config_options_default();
    options.workload = "mixed:reactive_per_min=60,proactive_per_min=60,duration_s=3";
    OWNED struct config *c = xcalloc(1, sizeof *c);
    struct uncertainty *u = xkept(xcalloc(1, sizeof *u));
    OWNED struct machines *all = xcalloc(1, sizeof *all);
    struct config_policy two[2];
    ck_assert_int_eq(config_load(c, &options, &err), 0);
    ck_assert_int_eq(config_policy_parse(&two[0], "fcfs:device=igpu", &err), 0);
    ck_assert_int_eq(config_policy_parse(&two[1], "fcfs:device=cpu", &err), 0);
    ck_assert_int_eq(machines_find(c, all, &err), 0);
    u->machines = (struct machines){.n_draws = N, .ddr_peak = all->ddr_peak};
    for (uint32_t k = 0; k < all->n_factors; k++) {
        bool mine = strcmp(all->factor[k].path, "soc.devices.igpu.runtimes.0.rate") == 0 ||
                    strcmp(all->factor[k].path, "soc.devices.cpu.runtimes.0.rate") == 0;
        if (mine) {
            struct machine_factor *f = &u->machines.factor[u->machines.n_factors++];
            *f = all->factor[k];
            f->kind = MACHINE_RANGE;
            f->low = f->device == 2 ? f->nominal : 0.05 * f->nominal;
            f->high = 3.0 * f->nominal;
        }
    }
    const uint32_t n = u->machines.n_factors;
    ck_assert_uint_eq(n, 2);
    u->machines.value = xcalloc(N * n, sizeof(double));
    u->machines.z = xcalloc(N * n, sizeof(double));
    for (uint32_t i = 0; i < N * n; i++) {
        /* The first number has a draw from each part of N. The other goes in steps of 5. */
        uint32_t part = i % n == 0 ? i / n : i / n * 5 % N;
        u->machines.z[i] = gsl_cdf_ugaussian_Pinv((part + 0.5) / N);
        const struct machine_factor *f = &u->machines.factor[i % n]; /* both count for something */
        u->machines.value[i] = f->nominal * pow(f->device == 2 ? 1.2 : 1.5, u->machines.z[i]);
    }
    struct compare_plan plan = {.config = c,
                                .options = &options,
                                .policies = two,
                                .n_policies = 2,
                                .replications = 4,
                                .how.parallel = 2,
                                .how.cpu_limit_s = 60.0,
                                .arrivals = CONFIG_AS_WRITTEN};
    SCOPED(compare_result_fini) struct compare_result nominal;
    compare_run(&plan, &nominal);
    u->plan = &plan;
    u->nominal = &nominal;
    u->metrics = metrics;
    u->n_metrics = 1;
    uncertainty_run(u);
    ck_assert_uint_eq(u->n_failed, 0);
    ck_assert_uint_eq(u->n_pairs, 1);
    const struct uncertainty_pair *p = &u->pairs[0];
    ck_assert_uint_eq(p->n_top, 2);
    for (uint32_t i = 0; i < p->n_top; i++) {
        const struct uncertainty_share *s = &p->top[i];
        const struct machine_factor *f = &u->machines.factor[s->factor];
        double at[3];
        const double x[] = {f->nominal, f->low, f->high};
        for (int k = 0; k < 3; k++) {
            at[k] = difference_at(&u->machines, &plan, s->factor, x[k], metric);
        }
        ck_assert_double_eq_tol(s->difference_file, at[0], 1e-9);
        ck_assert_double_eq_tol(s->difference_low, at[1], 1e-9);
        ck_assert_double_eq_tol(s->difference_high, at[2], 1e-9);
        ck_assert_int_eq(s->flips, at[0] * at[1] < 0 || at[0] * at[2] < 0);
        if (s->flips) { /* both sides of where it turns are runs, too */
            ck_assert_double_eq_tol(
                s->difference_holds,
                difference_at(&u->machines, &plan, s->factor, s->holds_at, metric), 1e-9);
            ck_assert_double_eq_tol(
                s->difference_turns,
                difference_at(&u->machines, &plan, s->factor, s->turns_at, metric), 1e-9);
            ck_assert(s->difference_holds * at[0] > 0 && s->difference_turns * at[0] < 0);
            /* Each run between them halves what lies between, in logarithms. */
            double whole = log((s->turns_at < f->nominal ? f->low : f->high) / f->nominal);
            double left = log(s->turns_at / s->holds_at);
            ck_assert_double_eq_tol(ldexp(left, UNCERTAINTY_FLIP_STEPS), whole, 1e-9);
        }
    }
    config_fini(c);
}
END_TEST

/* Numbers that a calibration fitted are drawn as it fitted them: the logarithm of a number that may
 * be 0 is of the number and the same offset. */
static void offsets_are_the_fits(void *seen, const char *path, const char *name, struct err *e)
{
    (void)path;
    options = config_options_default();
    options.soc = name;
    OWNED struct config *c = xcalloc(1, sizeof *c);
    OWNED struct machines *m = xcalloc(1, sizeof *m);
    ck_assert_int_eq(config_load(c, &options, e), 0);
    ck_assert_int_eq(machines_find(c, m, e), 0);
    for (uint32_t k = 0; k < m->n_factors; k++) {
        const struct machine_factor *f = &m->factor[k];
        const char *key = strrchr(f->path, '.') + 1;
        for (int i = 0; i < CALIBRATE_N_PARAMS && f->kind == MACHINE_FIT; i++) {
            if (strcmp(calibrate_param_names[i], key) == 0) {
                ck_assert_double_eq_tol(f->number->offset,
                                        calibrate_offsets[i] / calibrate_file_unit[i], 1e-9);
                ((bool *)seen)[i] = true;
            }
        }
    }
    config_fini(c);
}

START_TEST(fitted_numbers_are_drawn_as_they_were_fitted)
{
    bool seen[CALIBRATE_N_PARAMS] = {false};
    ck_assert_int_eq(folder_each(datadir_path("hwmodels/soc"), offsets_are_the_fits, seen, &err),
                     0);
    ck_assert(seen[CALIBRATE_RATE] && seen[CALIBRATE_BANDWIDTH] && seen[CALIBRATE_LAUNCH] &&
              seen[CALIBRATE_FILL] && seen[CALIBRATE_WIDTH]);
}
END_TEST

/* ---- steady states ---- */

static void finish(struct steady *s, enum request_class cls, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = 1000000000LL * i, took = 1000000 * (i % 2 + 1);
        struct request r = {.id = i, .cls = cls, .arrival_ns = at, .first_token_ns = at + took};
        steady_observer(s)->request_finished(s, at + 2 * took, &r);
    }
}

/* Requests that arrive together, and end in any order: their values follow their ids. */
static const char *steady_text(uint32_t at_once, uint32_t step)
{
    struct steady *s = steady_new();
    struct document *d = document_new();
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t id = i / 10 * 10 + i * step % 10;
        int64_t at = id / at_once * at_once, took = 1000 * (1 + id % 10 + id * 37 % 101);
        struct request r = {.id = id, .arrival_ns = at, .first_token_ns = at + took};
        steady_observer(s)->request_finished(s, at + took, &r);
    }
    ck_assert_int_eq(steady_document(s, false, d, &err), 0);
    return xkeep(shown_text(d, "json"));
}

START_TEST(requests_of_one_instant_come_in_the_order_of_their_ids)
{
    ck_assert_str_eq(steady_text(1, 1), steady_text(10, 7));
}
END_TEST

/* A class that has too few requests fails the whole, before or behind one that has enough, whose
 * rows are still there. */
START_TEST(each_class_has_its_steady_state)
{
    for (int few = -1; few < 2; few++) {
        struct steady *s = steady_new();
        finish(s, REQUEST_CLASS_REACTIVE, few == 0 ? 3 : 2000);
        finish(s, REQUEST_CLASS_PROACTIVE, few == 1 ? 3 : 2000);
        struct document *d = document_new();
        struct err e = ERR_INIT;
        ck_assert_int_eq(steady_document(s, false, d, &e), few < 0 ? 0 : -EINVAL);
        SCOPED(json_drop) cJSON *tree = document_json(d);
        const cJSON *rows = cJSON_GetObjectItem(tree, "steady");
        ck_assert_int_eq(cJSON_GetArraySize(rows), few < 0 ? 4 : 2);
        ck_assert_int_eq(cJSON_HasObjectItem(rows, "reactive.ttft_s"), few != 0);
        ck_assert_int_eq(cJSON_HasObjectItem(rows, "reactive.e2e_s"), few != 0);
        ck_assert_int_eq(cJSON_HasObjectItem(rows, "proactive.ttft_s"), few != 1);
        ck_assert_int_eq(cJSON_HasObjectItem(rows, "proactive.e2e_s"), few != 1);
        ck_assert_uint_eq(e.n, few < 0 ? 0 : 2);
        err_fini(&e);
    }
    struct steady *none = steady_new();
    struct document *d = document_new();
    ck_assert_int_eq(steady_document(none, false, d, &err), 0);
    OWNED char *text = shown_text(d, "text");
    ck_assert_str_eq(text, "");
}
END_TEST

static const struct suite_row rows[] = {
    CASE("runs", .setup = setup, .teardown = teardown),
    TEST(values_stand_by_policy_metric_and_replication),
    TEST(failures_of_one_kind_are_one_line),
    TEST(no_metrics_are_left_where_all_failed),
    TEST(runs_are_replications_of_their_points),
    CASE("machines", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(every_number_is_drawn_evenly),
    TEST(a_drawn_machine_has_its_numbers),
    TEST(ends_of_a_range_are_run),
    TEST(fitted_numbers_are_drawn_as_they_were_fitted),
    TEST(requests_of_one_instant_come_in_the_order_of_their_ids),
    TEST(each_class_has_its_steady_state),
};
SUITE_MAIN("parts of a comparison", rows)
