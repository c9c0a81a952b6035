/* `xpusim compare`: policies on common random numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/compare/compare.h"
#include "experiments/compare/regret.h"
#include "experiments/compare/tune.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"

#define MAX_POLICIES 32
#define MAX_LOADS 16
#define MAX_METRICS 64
#define MAX_OPTIONS 48
#define TUNE_REPLICATIONS 3
#define MAX_TUNE 1000 /* configurations of a policy */
#define CAPACITY_REPLICATIONS 3
#define CAPACITY_COMPRESS 50.0 /* arrivals so much faster that the machine never waits for one */

static const char help[] =
    "usage: xpusim compare --policy P1 --policy P2 ... [options]\n"
    "\n"
    "Runs every policy on the same requests, N times with different ones, and prints means with\n"
    "95 % intervals and the paired differences against the baseline.\n"
    "\n"
    "  --policy P[:K=V,..]  policy and parameters; repeated\n"
    "  --baseline P         what to compare with (default: the first policy)\n"
    "  --replications N     runs per policy (default 10); the first has --seed itself\n"
    "  --jobs J             runs at once (default: processors); results do not depend on it\n"
    "  --metric NAME        metric to print; repeated (default: the usual eight); --json has all\n"
    "  --load R1,R2,..      scale the arrival rates so that the baseline's load is R: its "
    "capacity\n"
    "                       is measured first, on the same requests arriving all at once\n"
    "  --regret             also how far each policy stays behind a lower bound of the machine "
    "and\n"
    "                       behind a clairvoyant schedule\n"
    "  --tune N             also tune every policy: the best of N configurations of each, found "
    "on\n"
    "                       other seeds, against the policy as given\n"
    "  --tune-metric NAME   what the best is chosen by (default "
    "reactive.norm_e2e_per_token_s.mean)\n"
    "  --tune-replications R  training runs of each configuration (default 3)\n"
    "  --sketch             quantiles within 0.5 %, constant memory\n"
    "  --time-limit S       CPU seconds after which a run is given up (default 600)\n"
    "  --json               results as JSON\n"
    "  --quiet              no progress bar, no notes\n"
    "\n";

static const char *const usual_metrics[] = {
    "reactive.ttft_s.mean",    "reactive.e2e_s.mean",           "reactive.e2e_s.p90",
    "proactive.e2e_s.mean",    "all.norm_e2e_per_token_s.mean", "all.throughput_req_per_min",
    "igpu.weighted_util_frac", "energy_active_j_per_token",
};

struct compare_options {
    struct config_options config;
    const char *policies[MAX_POLICIES];
    uint32_t n_policies;
    const char *baseline;
    const char *metrics[MAX_METRICS];
    uint32_t n_metrics;
    double loads[MAX_LOADS];
    uint32_t n_loads;
    uint32_t replications, jobs;
    double time_limit_s;
    bool sketch, json, quiet, regret;
    struct tune_options tune; /* budget 0: none */
};

struct compared {
    struct config config;
    struct config_policy policies[MAX_POLICIES];
    struct compare_plan plan;
};

static int add_name(const char *option, const char **list, uint32_t *n, uint32_t max,
                    const char *name, struct err *e)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (strcmp(list[i], name) == 0) {
            return err_add(e, "--%s %s: given twice", option, name);
        }
    }
    if (*n == max) {
        return err_add(e, "--%s: more than %" PRIu32, option, max);
    }
    list[(*n)++] = name;
    return 0;
}

/* One option; false when it is unknown. */
static bool take_option(struct compare_options *o, int c, const char *arg, struct err *e)
{
    switch (c) {
    case 'p':
        (void)add_name("policy", o->policies, &o->n_policies, MAX_POLICIES, arg, e);
        return true;
    case 'b':
        o->baseline = arg;
        return true;
    case 'n':
        (void)cli_count("replications", arg, 1, 100000, &o->replications, e);
        return true;
    case 'J':
        (void)cli_count("jobs", arg, 1, 4096, &o->jobs, e);
        return true;
    case 'm':
        (void)add_name("metric", o->metrics, &o->n_metrics, MAX_METRICS, arg, e);
        return true;
    case 'l':
        (void)cli_number_list("load", arg, 0.01, 100.0, o->loads, MAX_LOADS, &o->n_loads, e);
        return true;
    case 't':
        (void)cli_number("time-limit", arg, 1.0, 1e7, &o->time_limit_s, e);
        return true;
    case 's':
        o->sketch = true;
        return true;
    case 'r':
        o->regret = true;
        return true;
    case 'T':
        (void)cli_count("tune", arg, 1, MAX_TUNE, &o->tune.budget, e);
        return true;
    case 'M':
        o->tune.metric = arg;
        return true;
    case 'R':
        (void)cli_count("tune-replications", arg, 1, 1000, &o->tune.replications, e);
        return true;
    case 'j':
        o->json = true;
        return true;
    case 'q':
        o->quiet = true;
        return true;
    default:
        return config_take_option(&o->config, c, arg, e) != 0;
    }
}

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct compare_options *o, struct err *e)
{
    static const struct option own[] = {{"policy", required_argument, NULL, 'p'},
                                        {"baseline", required_argument, NULL, 'b'},
                                        {"replications", required_argument, NULL, 'n'},
                                        {"jobs", required_argument, NULL, 'J'},
                                        {"metric", required_argument, NULL, 'm'},
                                        {"load", required_argument, NULL, 'l'},
                                        {"time-limit", required_argument, NULL, 't'},
                                        {"sketch", no_argument, NULL, 's'},
                                        {"regret", no_argument, NULL, 'r'},
                                        {"tune", required_argument, NULL, 'T'},
                                        {"tune-metric", required_argument, NULL, 'M'},
                                        {"tune-replications", required_argument, NULL, 'R'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
    struct option longs[MAX_OPTIONS];
    size_t n = config_long_options(longs, MAX_OPTIONS - sizeof own / sizeof own[0]);
    memcpy(&longs[n], own, sizeof own);
    *o = (struct compare_options){.config = config_options_default(),
                                  .replications = 10,
                                  .jobs = jobs_processors(),
                                  .time_limit_s = 600.0};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            (void)fputs(config_options_help, stdout);
            return 1;
        }
        if (!take_option(o, c, optarg, e)) {
            return err_add(e, "`xpusim compare --help` shows the options");
        }
    }
    if (optind < argc) {
        return err_add(e, "%s: not an option", argv[optind]);
    }
    if (o->tune.budget == 0 && (o->tune.metric != NULL || o->tune.replications > 0)) {
        (void)err_add(e, "--tune-metric and --tune-replications belong to --tune N");
    }
    o->tune.metric = o->tune.metric != NULL ? o->tune.metric : TUNE_DEFAULT_METRIC;
    o->tune.replications = o->tune.replications > 0 ? o->tune.replications : TUNE_REPLICATIONS;
    if (o->n_policies == 0) {
        return err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void check_metrics(const struct compared *c, const struct compare_options *o, struct err *e)
{
    struct metric_list names = {0};
    runner_metric_names(&c->config, &names);
    for (uint32_t i = 0; i < o->n_metrics; i++) {
        if (metric_list_find(&names, o->metrics[i]) == NULL) {
            (void)err_add(e, "--metric %s: no metric is called so; `xpusim run --json` shows all",
                          o->metrics[i]);
        }
    }
    metric_list_fini(&names);
}

/* Loads everything once, so that bad input is one message and not one per run. */
static int prepare(struct compared *c, struct compare_options *o, struct err *e)
{
    uint32_t baseline = 0;
    if (o->baseline != NULL) {
        while (baseline < o->n_policies && strcmp(o->policies[baseline], o->baseline) != 0) {
            baseline++;
        }
        if (baseline == o->n_policies) {
            (void)add_name("policy", o->policies, &o->n_policies, MAX_POLICIES, o->baseline, e);
        }
    }
    if (config_load(&c->config, &o->config, e) == 0) {
        check_metrics(c, o, e);
    }
    for (uint32_t i = 0; i < o->n_policies; i++) {
        (void)config_policy_parse(&c->policies[i], o->policies[i], e);
    }
    struct trace t = {0};
    (void)config_trace(&o->config, o->config.seed, (struct config_arrivals){1.0, 1.0, false}, &t,
                       e);
    trace_fini(&t);
    c->plan = (struct compare_plan){
        .config = &c->config,
        .options = &o->config,
        .policies = c->policies,
        .n_policies = o->n_policies,
        .baseline = baseline,
        .replications = o->replications,
        .parallel = o->jobs,
        .cpu_limit_s = o->time_limit_s,
        .arrivals = {1.0, 1.0, false},
        .sketch = o->sketch,
        .progress = !o->quiet && isatty(STDERR_FILENO) != 0,
    };
    if (e->n == 0 && o->regret) {
        (void)regret_check(&c->plan, e);
    }
    if (e->n == 0 && o->tune.budget > 0) {
        (void)tune_check(&c->plan, &o->tune, e);
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void report_failures(const struct compare_plan *plan, const struct compare_result *r)
{
    for (uint32_t i = 0; i < r->n_failures; i++) {
        const struct compare_failure *f = &r->failures[i];
        (void)fprintf(stderr, "xpusim: error: %s, replication %" PRIu32 " (seed %" PRIu64 "): %s\n",
                      plan->policies[f->policy].label, f->replication,
                      compare_seed(plan->options->seed, f->replication), f->message);
    }
}

static void add_regret(const struct compare_plan *plan, const struct compare_result *r, cJSON *into)
{
    struct regret g;
    regret_run(plan, &g);
    if (into != NULL) {
        cJSON_AddItemToObject(into, "regret", regret_to_json(plan, r, &g));
    } else {
        regret_print(plan, r, &g, stdout);
    }
    regret_fini(&g);
}

/* Tunes, and takes the results over. Returns how many runs of tuned policies failed. */
static uint32_t add_tuning(const struct compare_options *o, const struct compare_plan *plan,
                           struct compare_result *r, const char *const *metrics, uint32_t n_metrics,
                           cJSON *into)
{
    struct tune t;
    tune_run(plan, &o->tune, r, &t);
    report_failures(plan, &t.tuned);
    if (into != NULL) {
        cJSON_AddItemToObject(into, "tuning", tune_to_json(plan, &t));
    } else {
        tune_print(plan, &t, metrics, n_metrics, stdout);
    }
    uint32_t failed = t.tuned.n_failures;
    tune_fini(&t);
    return failed;
}

/* Runs the plan and prints it as text, or adds it to the JSON object `into`. */
static int run_plan(const struct compare_options *o, const struct compare_plan *plan, cJSON *into)
{
    const char *const *metrics = o->n_metrics > 0 ? o->metrics : usual_metrics;
    uint32_t n_metrics =
        o->n_metrics > 0 ? o->n_metrics : sizeof usual_metrics / sizeof usual_metrics[0];
    struct compare_result r;
    compare_run(plan, &r);
    report_failures(plan, &r);
    uint32_t failed = r.n_failures;
    if (into != NULL) {
        cJSON_AddItemToObject(into, "policies", compare_to_json(plan, &r));
        cJSON_AddNumberToObject(into, "failed_runs", r.n_failures);
    } else {
        compare_print(plan, &r, metrics, n_metrics, stdout);
    }
    if (o->regret) {
        add_regret(plan, &r, into);
    }
    if (o->tune.budget > 0) {
        failed += add_tuning(o, plan, &r, metrics, n_metrics, into);
    }
    compare_result_fini(&r);
    return failed > 0 ? EXIT_CHECK_FAILED : EXIT_OK;
}

/* ---- loads ---- */

struct capacity {
    double req_per_min;         /* of the baseline when it never waits for work */
    double offered_req_per_min; /* of the workload as it is */
};

/* Saturated runs of the baseline: its completions per minute over the busy period, and the rate at
 * which the workload asks, both averaged over a few replications. */
static int measure_capacity(const struct compare_plan *plan, struct capacity *out, struct err *e)
{
    struct compare_plan p = *plan;
    p.policies = &plan->policies[plan->baseline];
    p.n_policies = 1;
    p.baseline = 0;
    p.replications = CAPACITY_REPLICATIONS;
    p.arrivals.compress = CAPACITY_COMPRESS;
    struct compare_result r;
    compare_run(&p, &r);
    report_failures(&p, &r);
    *out = (struct capacity){0.0, 0.0};
    if (r.n_failures == 0) {
        const double *done = compare_values(&r, 0, "all.throughput_req_per_min");
        const double *arrived = compare_values(&r, 0, "all.arrived");
        const double *window = compare_values(&r, 0, "arrival_window_s");
        double n = CAPACITY_REPLICATIONS;
        for (uint32_t i = 0; i < CAPACITY_REPLICATIONS; i++) {
            out->req_per_min += done[i] / n;
            out->offered_req_per_min +=
                (arrived[i] - 1.0) / (window[i] * CAPACITY_COMPRESS) * 60.0 / n;
        }
    }
    compare_result_fini(&r);
    if (!(out->req_per_min > 0.0) || !(out->offered_req_per_min > 0.0)) {
        return err_add(e, "--load: the capacity of %s could not be measured on this workload",
                       plan->policies[plan->baseline].label);
    }
    return 0;
}

/* The plan at one load. */
static int run_load(const struct compare_options *o, const struct compare_plan *plan,
                    const struct capacity *cap, double load, cJSON *loads)
{
    struct compare_plan p = *plan;
    p.arrivals.rate_scale = load * cap->req_per_min / cap->offered_req_per_min;
    cJSON *into = NULL;
    if (loads != NULL) {
        into = cJSON_CreateObject();
        cJSON_AddItemToArray(loads, into);
        cJSON_AddNumberToObject(into, "load", load);
        cJSON_AddNumberToObject(into, "rate_scale", p.arrivals.rate_scale);
    } else {
        (void)printf("\n==== load %g of %s: arrival rates times %.4g\n", load,
                     plan->policies[plan->baseline].label, p.arrivals.rate_scale);
    }
    return run_plan(o, &p, into);
}

static int run_loads(const struct compare_options *o, const struct compare_plan *plan, cJSON *root,
                     struct err *e)
{
    struct capacity cap;
    if (measure_capacity(plan, &cap, e) != 0) {
        return EXIT_CHECK_FAILED;
    }
    cJSON *loads = NULL;
    if (root != NULL) {
        cJSON_AddNumberToObject(root, "capacity_req_per_min", cap.req_per_min);
        cJSON_AddNumberToObject(root, "offered_req_per_min", cap.offered_req_per_min);
        loads = cJSON_AddArrayToObject(root, "loads");
    } else {
        (void)printf("capacity of %s: %.4g requests per minute; the workload offers %.4g\n",
                     plan->policies[plan->baseline].label, cap.req_per_min,
                     cap.offered_req_per_min);
    }
    int status = EXIT_OK;
    for (uint32_t i = 0; i < o->n_loads; i++) {
        int s = run_load(o, plan, &cap, o->loads[i], loads);
        status = s > status ? s : status;
    }
    return status;
}

/* ---- all of it ---- */

static cJSON *describe(const struct compare_options *o, const struct compared *c)
{
    cJSON *root = cJSON_CreateObject();
    char text[64];
    (void)snprintf(text, sizeof text, "%016" PRIx64, c->config.hash);
    cJSON_AddStringToObject(root, "version", config_version());
    cJSON_AddStringToObject(root, "config_hash", text);
    cJSON_AddStringToObject(root, "workload", c->config.workload);
    cJSON_AddNumberToObject(root, "seed", (double)o->config.seed);
    cJSON_AddItemToObject(root, "config", cJSON_Duplicate(c->config.tree, true));
    cJSON_AddStringToObject(root, "baseline", c->policies[c->plan.baseline].label);
    cJSON_AddNumberToObject(root, "replications", o->replications);
    cJSON_AddNumberToObject(root, "level_frac", STATS_LEVEL_FRAC);
    cJSON *seeds = cJSON_AddArrayToObject(root, "seeds");
    for (uint32_t i = 0; i < o->replications; i++) {
        cJSON_AddItemToArray(seeds, cJSON_CreateNumber((double)compare_seed(o->config.seed, i)));
    }
    return root;
}

static int compare(struct compare_options *o, struct err *e)
{
    struct compared *c = xcalloc(1, sizeof *c);
    int status = EXIT_BAD_INPUT;
    if (prepare(c, o, e) == 0) {
        if (o->config.trace != NULL && o->replications > 1 && !o->quiet) {
            (void)fprintf(stderr, "xpusim: note: the trace is a file, so replications differ in "
                                  "noise only\n");
        }
        cJSON *root = o->json ? describe(o, c) : NULL;
        if (root == NULL) {
            (void)printf("%s, %s, %s; %" PRIu32 " replications from seed %" PRIu64
                         "; mean [95 %% interval]\n",
                         c->config.soc.machine.name, c->config.llm.name, c->config.workload,
                         o->replications, o->config.seed);
        }
        status = o->n_loads > 0 ? run_loads(o, &c->plan, root, e) : run_plan(o, &c->plan, root);
        if (root != NULL && status != EXIT_BAD_INPUT) {
            char *text = cJSON_Print(root);
            (void)printf("%s\n", text);
            cJSON_free(text);
        }
        cJSON_Delete(root);
    }
    config_fini(&c->config);
    free(c);
    return status;
}

int cmd_compare(int argc, char **argv)
{
    struct compare_options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = compare(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    config_options_fini(&o.config);
    return status;
}
