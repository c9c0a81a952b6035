/* `xpusim compare`: compares policies with common random numbers. */
#include "experiments/commands/commands.h"
#include "experiments/commands/compare_asked.h"
#include "experiments/compare/choose.h"
#include "experiments/compare/regret.h"
#include "experiments/compare/stored.h"
#include "experiments/compare/uncertainty.h"
#include "experiments/run/recordings.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "experiments/sweep/suite.h"

#define MAX_POLICIES 64
#define MAX_TUNE_REPLICATIONS 1000
#define MAX_TUNE 1000 /* configurations of a policy */

struct compared {
    struct config config;
    struct config_policy *policies; /* owned */
    struct compare_plan plan;
};

/* Loads everything once, so that bad input gives one message, not one per run. */
static int prepare(struct compared *c, struct compare_options *o, struct err *e)
{
    const uint32_t asked = o->config.n_recordings > 1 && !o->replications_given
                               ? o->config.n_recordings
                               : o->replications;
    uint32_t baseline = 0;
    while (o->baseline != NULL && strcmp(o->policies.v[baseline], o->baseline) != 0) {
        baseline++; /* add_baseline put it there */
    }
    c->policies = xcalloc(o->policies.n, sizeof *c->policies);
    for (uint32_t i = 0; i < o->metrics.n; i++) {
        config_options_metric(&o->config, o->metrics.v[i]);
    }
    if (o->tune.metric != NULL) {
        config_options_metric(&o->config, o->tune.metric);
    }
    o->config.several = true;
    o->config.resample = o->resample != NULL;
    o->config.resample_jobs = o->resample != NULL && strcmp(o->resample, "jobs") == 0;
    if (config_load_all(&c->config, &o->config, CONFIG_AS_WRITTEN, o->policies.v, o->policies.n,
                        c->policies, e) == 0) {
        (void)choose_check(&c->config, &o->metrics, e);
    }
    const uint32_t replications = recordings_replications(&o->config, asked);
    o->select.most = recordings_replications(&o->config, o->select.most);
    if (o->select.confidence_frac > 0.0 && o->select.most < SELECT_FIRST_MIN) {
        (void)err_add(e,
                      "--select: runs a policy on %d recordings at least, and there are %" PRIu32
                      "; give more, or --workload",
                      SELECT_FIRST_MIN, o->select.most);
    }
    c->plan = (struct compare_plan){
        .config = &c->config,
        .options = &o->config,
        .policies = c->policies,
        .n_policies = o->policies.n,
        .baseline = baseline,
        .replications = replications,
        .relevance_frac = o->relevance_percent / 100.0,
        .how = o->work.how,
        .arrivals = o->point != NULL ? o->point->settings.arrivals : CONFIG_AS_WRITTEN,
        .samples = sample_options_choice(&o->samples, e),
    };
    if (e->n == 0 && o->regret) {
        (void)regret_check(&c->plan, e);
    }
    if (e->n == 0 && o->tune.budget > 0) {
        o->tune.select = o->select;
        (void)tune_check(&c->plan, &o->tune, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void add_regret(const struct compare_plan *plan, const struct compare_result *r,
                       struct document *d)
{
    struct regret g;
    regret_run(&g, plan);
    regret_document(plan, r, &g, document_within(d, "regret"));
}

/* Adds tuning to the results. Returns the number of failed runs of tuned policies. */
static uint32_t add_tuning(const struct compare_options *o, const struct compare_plan *plan,
                           const struct compare_result *r, const char *const *metrics,
                           uint32_t n_metrics, struct document *d)
{
    struct tune *t = xkept(xcalloc(1, sizeof *t));
    tune_run(t, plan, &o->tune, r);
    compare_report_failures(plan, &t->tuned);
    tune_document(plan, t, metrics, n_metrics, document_within(d, "tuning"));
    return t->tuned.n_failures;
}

/* Runs on the drawn machines, and adds the parameters that decide the order. */
static void add_uncertainty(struct uncertainty *u, const struct compare_plan *plan,
                            const struct compare_result *r, const char *const *metrics,
                            uint32_t n_metrics, struct document *d)
{
    u->plan = plan;
    u->nominal = r;
    u->metrics = metrics;
    u->n_metrics = n_metrics;
    uncertainty_run(u);
    uncertainty_document(plan, u, document_within(d, "uncertainty"));
}

/* Runs the plan and adds the results. */
static int run_plan(const struct compare_options *o, const struct compare_plan *plan,
                    struct document *d, struct err *e)
{
    if (compare_selects(o)) { /* only with --load; else compare_one has selected */
        struct select_result r;
        struct compare_plan own = *plan;
        return compare_select(o, &own, &r, e) == 0 ? compare_put_selection(o, plan, &r, d)
                                                   : EXIT_BAD_INPUT;
    }
    struct uncertainty *u = xkept(xcalloc(1, sizeof *u));
    /* Draws the machines before any run, because that may fail. */
    if (o->uncertainty > 0 &&
        machines_draw(plan->config, plan->options, o->uncertainty, &u->machines, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    SCOPED(compare_result_fini) struct compare_result r;
    compare_run(plan, &r);
    compare_report_failures(plan, &r);
    uint32_t failed = r.n_failures;
    SCOPED(texts_fini) struct texts chosen;
    struct compare_plan rest = *plan; /* for runs that are not replications of the experiment */
    rest.experiment = 0;
    if (choose_metrics(&r, &o->metrics, &chosen, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    const char *const *metrics = (const char *const *)chosen.v;
    uint32_t n_metrics = (uint32_t)chosen.n;
    compare_document(plan, &r, metrics, n_metrics, output_is(&o->output, "json"), d);
    DOCUMENT_VALUES(d, "failed_runs", r.n_failures);
    document_print_so_far(d, &o->output, stdout);
    if (o->regret) {
        add_regret(&rest, &r, d);
    }
    if (o->tune.budget > 0) {
        failed += add_tuning(o, &rest, &r, metrics, n_metrics, d);
    }
    if (o->uncertainty > 0 && r.n_failures == 0) {
        add_uncertainty(u, &rest, &r, metrics, n_metrics, d);
    } else if (o->uncertainty > 0) {
        (void)fputs("xpusim: error: --uncertainty: not computed, because runs failed\n", stderr);
    }
    document_print_so_far(d, &o->output, stdout);
    return failed > 0 || r.n_empty == r.replications ? EXIT_CHECK_FAILED : EXIT_OK;
}

/* ---- loads ---- */

static int run_loads(const struct compare_options *o, const struct compare_plan *plan,
                     struct document *d, struct err *e)
{
    struct capacity cap;
    if (capacity_measure(plan, &cap, e) != 0) {
        return EXIT_CHECK_FAILED;
    }
    const char *baseline = plan->policies[plan->baseline].label;
    DOCUMENT_VALUES(d, "capacity_req_per_min", cap.req_per_min, "offered_req_per_min",
                    cap.offered_req_per_min);
    document_note(d, "capacity of %s: %.4g requests per minute; the workload offers %.4g", baseline,
                  cap.req_per_min, cap.offered_req_per_min);
    struct document *loads = document_array(d, "loads");
    OWNED double *rates = xcalloc(o->loads.n + 1, sizeof *rates);
    for (uint32_t i = 0; i < o->loads.n; i++) {
        rates[i] = o->loads.v[i] * cap.req_per_min / cap.offered_req_per_min *
                   plan->arrivals.rate_scale; /* which a point of a suite has */
    }
    struct compare_plan all = *plan;
    stored_note(&all, o->loads.v, rates, o->loads.n);
    int status = EXIT_OK;
    for (uint32_t i = 0; i < o->loads.n; i++) {
        struct compare_plan p = all;
        p.first_point = i * plan->n_policies;
        p.arrivals.rate_scale = rates[i];
        p.where = document_format("load %g of %s", o->loads.v[i], baseline);
        struct document *of = document_within(loads, NULL);
        DOCUMENT_VALUES(of, "load", o->loads.v[i], "rate_scale", p.arrivals.rate_scale);
        document_note(of, "\n==== load %g of %s: arrival rates times %.4g", o->loads.v[i], baseline,
                      p.arrivals.rate_scale);
        document_print_so_far(d, &o->output, stdout);
        int s = run_plan(o, &p, of, e);
        status = s > status ? s : status;
    }
    return status;
}

/* ---- the whole comparison ---- */

/* Kinds of figures that the comparison has data for. */
static const char *kind_of(const struct compare_options *o)
{
    bool sd = false;
    for (uint32_t i = 0; i < o->policies.n; i++) {
        sd = sd || strncmp(o->policies.v[i], "sd-npu", 6) == 0;
    }
    return document_format("%s%s%s", o->loads.n > 0 ? "load" : "compare", sd ? " sd" : "",
                           o->uncertainty >= UNCERTAINTY_LIST_MIN ? " uncertainty" : "");
}

static void describe(const struct compare_options *o, const struct compared *c, struct document *d)
{
    const struct config *config = &c->config;
    struct compare_head head = {.command = options_command(),
                                .kind = kind_of(o),
                                .version = config_version(),
                                .config_hash = config->hash,
                                .config = config->tree,
                                .soc = config->soc.machine.name,
                                .llm = config->models,
                                .workload = config->workload,
                                .baseline = c->policies[c->plan.baseline].label,
                                .seed = o->config.seed,
                                .replications = c->plan.replications,
                                .relevance_frac = c->plan.relevance_frac,
                                .sample = recordings_sample(&o->config),
                                .note = recordings_note(&o->config)};
    compare_head_document(&head, d);
}

/* Compares the policies on one configuration, and fills its document. */
static int compare_one(struct compare_options *o, struct document *d, struct err *e)
{
    OWNED struct compared *c = xcalloc(1, sizeof *c);
    int status = EXIT_BAD_INPUT;
    int rc = prepare(c, o, e);
    struct select_result best;
    bool selects = compare_selects(o) && o->loads.n == 0;
    if (rc == 0 && selects) { /* first, because it decides the number of replications */
        rc = compare_select(o, &c->plan, &best, e);
    }
    if (rc == 0) {
        describe(o, c, d);
        document_print_so_far(d, &o->output, stdout);
    }
    if (rc == 0 && selects) {
        status = compare_put_selection(o, &c->plan, &best, d);
    } else if (rc == 0) {
        if (o->loads.n == 0) {
            stored_note(&c->plan, NULL, NULL, 0);
        }
        status = o->loads.n > 0 ? run_loads(o, &c->plan, d, e) : run_plan(o, &c->plan, d, e);
    }
    config_fini(&c->config);
    free(c->policies);
    return status;
}

/* Compares the policies on every point of a suite, with its replications and metrics by default. */
static int compare_suite(const struct compare_options *o, struct document *d, struct err *e)
{
    struct suite *s = xkept(xcalloc(1, sizeof *s));
    struct document *points = document_array(d, "points");
    int status = suite_load(s, o->suite, e) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
    DOCUMENT_VALUES(d, "suite", s->spec.name, "hash", document_format("%s", s->hash));
    for (uint32_t i = 0; i < s->n_points && status != EXIT_BAD_INPUT; i++) {
        struct compare_options own = *o;
        own.point = &s->points[i];
        own.config = suite_options(s, i, &o->config);
        own.replications = o->replications_given ? o->replications : s->spec.replications;
        for (uint32_t k = 0; k < s->spec.n_patterns && o->metrics.n == 0; k++) {
            options_text_add(&own.metrics, s->spec.patterns[k]);
        }
        struct document *at = document_within(points, NULL);
        document_note(at, "%s==== point %s", i > 0 ? "\n" : "", own.point->name);
        DOCUMENT_VALUES(at, "point", own.point->name);
        SCOPED(err_fini) struct err why = ERR_INIT; /* other points may succeed */
        int one = compare_one(&own, at, &why);
        for (size_t k = 0; k < why.n; k++) {
            (void)err_add(e, "point %s: %s", own.point->name, why.lines[k]);
        }
        status = one > status ? one : status;
        document_print_so_far(d, &o->output, stdout);
    }
    return status;
}

static int compare(void *values, struct err *e)
{
    struct compare_options *o = values;
    struct document *d = document_new();
    int status = o->suite != NULL ? compare_suite(o, d, e) : compare_one(o, d, e);
    if (status != EXIT_BAD_INPUT) {
        document_show(d, &o->output);
    }
    return status;
}

/* Adds the baseline to the policies unless it is one of them. */
static void add_baseline(struct compare_options *o)
{
    uint32_t i = 0;
    while (o->baseline != NULL && i < o->policies.n && strcmp(o->policies.v[i], o->baseline) != 0) {
        i++;
    }
    if (o->baseline != NULL && i == o->policies.n) {
        options_text_add(&o->policies, o->baseline);
    }
}

static int run(void *values, struct err *e)
{
    struct compare_options *o = values;
    if (o->policies.n == 0 && o->work.path != NULL) {
        return e->n > 0 ? EXIT_BAD_INPUT : compare_stored(o, e);
    }
    if (o->tune.budget == 0 && o->tune_given) {
        (void)err_add(e, "--tune-metric and --tune-replications belong to --tune N");
    }
    if (o->policies.n == 0) {
        (void)err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    if (o->resample != NULL && o->config.n_recordings != 1) {
        (void)err_add(e, "--resample: takes one recorded trace (--trace FILE)");
    }
    if (o->resample != NULL &&
        (o->regret || o->tune.budget > 0 || o->uncertainty > 0 || o->work.path != NULL)) {
        (void)err_add(e, "--resample: does not go with --store, --tune, --regret and "
                         "--uncertainty, which need a sample of its own");
    }
    (void)select_asked_check(&o->select, e);
    if (o->select.confidence_frac > 0.0 &&
        (o->resample != NULL || o->regret || o->uncertainty > 0 || o->metrics.n > 1)) {
        (void)err_add(e, "--select: takes one metric, and does not go with --resample, --regret "
                         "and --uncertainty");
    }
    if (o->by != NULL) {
        (void)err_add(e, "--by belongs to --store without --policy");
    }
    if (o->suite != NULL) {
        (void)suite_refuse_options(&o->config, e);
    }
    add_baseline(o);
    return e->n > 0 ? -EINVAL : job_options_work(&o->work, o->output.quiet, compare, o, e);
}

/* Compares each policy with its variants, each without one mechanism. The first is the baseline. */
static int run_ablate(void *values, struct err *e)
{
    struct compare_options *o = values;
    struct option_texts all = {0};
    for (uint32_t i = 0; i < o->policies.n; i++) {
        (void)ablate_variants(&all, o->policies.v[i], e);
    }
    if (all.n > MAX_POLICIES) {
        (void)err_add(e, "%u policies and variants; at most %d", all.n, MAX_POLICIES);
    }
    o->policies = all;
    return e->n > 0 ? -EINVAL : run(o, e);
}

#define OPTIONS struct compare_options

static const char *const resample_names[] = {"sessions", "jobs", NULL};

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", MAX_POLICIES,
                 "policy and parameters, as of `run`; repeated"),
    OPTION_TEXT(
        OPTIONS, baseline, "baseline", "P", NULL,
        "policy to compare with, which runs also where no --policy names it (default: the first)"),
    OPTION_ROW(
        COUNT, OPTIONS, replications, uint32_t, "replications", "N",
        "runs per policy; the first has --seed itself, and the seeds of the others (--json has "
        "them) are drawn from it. Recorded traces allow at most one "
        "per recording",
        .preset = "10", .min = 1, .max = 100000,
        .given = 1 + OPTION_AT(OPTIONS, replications_given, bool)),
    OPTION_TEXT(OPTIONS, suite, "suite", "NAME", NULL,
                "compare at every point of a suite (docs/concepts/arena.md)"),
    OPTION_CHOICE(OPTIONS, resample, "resample", "WHAT", NULL, resample_names,
                  "resample one recorded trace for every replication: its sessions, or the jobs of "
                  "a request graph, and their starts (block bootstrap)"),
    OPTION_TEXTS(OPTIONS, metrics, "metric", "NAME", CHOOSE_MAX,
                 "metric to print, or a pattern of metrics (reactive.*.p90); repeated. --json has "
                 "all. The first is the question; the others share a correction "
                 "(docs/concepts/comparison.md) (default: the usual eight)"),
    OPTION_NUMBER(OPTIONS, relevance_percent, "relevance", "PERCENT", "1", 0.0, 100.0,
                  "share of the baseline's mean: a difference whose interval is within it is "
                  "printed as equal"),
    OPTION_TEXT(OPTIONS, by, "by", "SETTING", NULL,
                "setting to compare in --store: points of an experiment that differ only in it, "
                "pair by pair (default: policy, with its params.*)"),
    OPTION_NUMBERS(OPTIONS, loads, "load", "R1,R2,..", 0.01, 100.0,
                   "scale the arrival rates so that the baseline's load is R. Its capacity is "
                   "measured first, with the same requests arriving nearly at once"),
    OPTION_FLAG(OPTIONS, regret, "regret",
                "also print the distance of each policy from a lower bound of the machine and from "
                "a clairvoyant schedule"),
    OPTION_COUNT(OPTIONS, tune.budget, "tune", "N", NULL, 1, MAX_TUNE,
                 "also tune every policy: compare the best of N configurations, found on other "
                 "seeds, with the policy as given"),
    OPTION_ROW(TEXT, OPTIONS, tune.metric, const char *, "tune-metric", "NAME",
               "metric that the best configuration is chosen by", .preset = TUNE_DEFAULT_METRIC,
               .given = 1 + OPTION_AT(OPTIONS, tune_given, bool)),
    OPTION_ROW(COUNT, OPTIONS, tune.replications, uint32_t, "tune-replications", "R",
               "training runs of each configuration", .preset = "3", .min = 1,
               .max = MAX_TUNE_REPLICATIONS, .given = 1 + OPTION_AT(OPTIONS, tune_given, bool)),
    OPTION_COUNT(OPTIONS, uncertainty, "uncertainty", "N", NULL, UNCERTAINTY_MIN, 10000,
                 "also compare on N machines sampled from the ranges of the hardware numbers. "
                 "Prints the probability that a policy is better. From 64 machines on also prints "
                 "the numbers that decide it, how far these must move before the order turns, and "
                 "what to measure next. Takes 2 N runs of each policy and some more"),
};
static const struct option_child children[] = {
    OPTION_ROWS(NULL, rows),
    {&select_option_table, offsetof(OPTIONS, select), NULL, false},
    {&sample_option_table, offsetof(OPTIONS, samples), NULL, false},
    {&job_option_table, offsetof(OPTIONS, work), NULL, false},
    {&option_output_table, offsetof(OPTIONS, output), NULL, false},
    {&config_option_table, offsetof(OPTIONS, config), NULL, false},
    {0},
};
const struct command cmd_compare = {
    .name = "compare",
    .summary = "compare policies on the same requests, with confidence intervals",
    .usage = "--policy P1 --policy P2 ... [options]",
    .about = "Runs every policy on the same requests, N times with different ones. Prints means "
             "with 95 % intervals, and the paired differences against the baseline.\n\nWith "
             "--store and without --policy it runs nothing. It prints the comparison of every "
             "experiment in the store, of `compare` and of `sweep`, from the runs kept there.",
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};

const struct command cmd_ablate = {
    .name = "ablate",
    .summary = "show what each mechanism of a policy is worth: the policy without it",
    .usage = "POLICY [options]",
    .about = "Compares a policy with itself, one mechanism taken away at a time. The policy "
             "declares its mechanisms (`xpusim list policy NAME` shows them). A result that is "
             "\"higher by 20 %\" without a mechanism says that it saves 17 %.\n\nThe options are "
             "those of `compare`: several loads, a sample of machines, metrics.",
    .operands = {"POLICY", 1, MAX_POLICIES, offsetof(OPTIONS, policies)},
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run_ablate,
};
