/* `xpusim search`: the highest rate a policy sustains under service-level objectives. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/compare/search.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"

#define MAX_POLICIES 32
#define MAX_OPTIONS 48

static const char help[] =
    "usage: xpusim search --policy P1 [--policy P2 ...] --slo METRIC<=VALUE ... [options]\n"
    "\n"
    "Finds how far the workload's rates can be raised while every SLO holds: bisection, with as\n"
    "many replications at each rate as it takes to tell, and a confidence statement.\n"
    "\n"
    "  --policy P[:K=V,..]  policy and parameters; repeated\n"
    "  --slo METRIC<=VALUE  or METRIC>=VALUE, of a metric's mean over replications; repeated, all\n"
    "                       must hold. Such as all.norm_e2e_per_token_s.mean<=0.1,\n"
    "                       reactive.e2e_s.p90<=20, or with --ttft-slo and --tpot-slo\n"
    "                       reactive.slo_attainment_frac>=0.9\n"
    "  --precision F        stop when the two ends differ by this share (default 0.05)\n"
    "  --confidence F       of the whole statement, per policy (default 0.95)\n"
    "  --replications N     of the first look at a rate (default 10); up to 8 N when in doubt\n"
    "  --jobs J             runs at once (default: processors); results do not depend on it\n"
    "  --time-limit S       CPU seconds after which a run is given up (default 600)\n"
    "  --json               results as JSON, with every rate tried\n"
    "  --quiet              no progress\n"
    "\n";

struct options {
    struct config_options config;
    struct search_options search;
    const char *policies[MAX_POLICIES];
    uint32_t n_policies;
    uint32_t jobs;
    double time_limit_s;
    bool json, quiet;
};

static void add_policy(struct options *o, const char *name, struct err *e)
{
    for (uint32_t i = 0; i < o->n_policies; i++) {
        if (strcmp(o->policies[i], name) == 0) {
            (void)err_add(e, "--policy %s: given twice", name);
            return;
        }
    }
    if (o->n_policies == MAX_POLICIES) {
        (void)err_add(e, "--policy: more than %d", MAX_POLICIES);
        return;
    }
    o->policies[o->n_policies++] = name;
}

static void add_slo(struct options *o, const char *text, struct err *e)
{
    if (o->search.n_slos == SEARCH_MAX_SLOS) {
        (void)err_add(e, "--slo: more than %d", SEARCH_MAX_SLOS);
    } else if (search_slo_parse(text, &o->search.slos[o->search.n_slos], e) == 0) {
        o->search.n_slos++;
    }
}

/* One option; false when it is unknown. */
static bool take_option(struct options *o, int c, const char *arg, struct err *e)
{
    switch (c) {
    case 'p':
        add_policy(o, arg, e);
        return true;
    case 'o':
        add_slo(o, arg, e);
        return true;
    case 'P':
        (void)cli_number("precision", arg, 0.001, 10.0, &o->search.precision_frac, e);
        return true;
    case 'C':
        (void)cli_number("confidence", arg, 0.5, 0.9999, &o->search.confidence_frac, e);
        return true;
    case 'n':
        (void)cli_count("replications", arg, 2, 10000, &o->search.min_replications, e);
        return true;
    case 'J':
        (void)cli_count("jobs", arg, 1, 4096, &o->jobs, e);
        return true;
    case 't':
        (void)cli_number("time-limit", arg, 1.0, 1e7, &o->time_limit_s, e);
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
static int parse_options(int argc, char **argv, struct options *o, struct err *e)
{
    static const struct option own[] = {{"policy", required_argument, NULL, 'p'},
                                        {"slo", required_argument, NULL, 'o'},
                                        {"precision", required_argument, NULL, 'P'},
                                        {"confidence", required_argument, NULL, 'C'},
                                        {"replications", required_argument, NULL, 'n'},
                                        {"jobs", required_argument, NULL, 'J'},
                                        {"time-limit", required_argument, NULL, 't'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
    struct option longs[MAX_OPTIONS];
    size_t n = config_long_options(longs, MAX_OPTIONS - sizeof own / sizeof own[0]);
    memcpy(&longs[n], own, sizeof own);
    *o = (struct options){
        .config = config_options_default(),
        .search = {.min_replications = 10, .precision_frac = 0.05, .confidence_frac = 0.95},
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
            return err_add(e, "`xpusim search --help` shows the options");
        }
    }
    if (optind < argc) {
        return err_add(e, "%s: not an option", argv[optind]);
    }
    if (o->n_policies == 0) {
        (void)err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    if (o->search.n_slos == 0 && e->n == 0) {
        (void)err_add(e, "--slo is missing, as in --slo 'reactive.e2e_s.p90<=20'");
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void check_metrics(const struct config *c, const struct search_options *o, struct err *e)
{
    struct metric_list names = {0};
    runner_metric_names(c, &names);
    for (uint32_t i = 0; i < o->n_slos; i++) {
        if (metric_list_find(&names, o->slos[i].metric) == NULL) {
            (void)err_add(e, "--slo %s: no metric is called so; `xpusim run --json` shows all",
                          o->slos[i].metric);
        }
    }
    metric_list_fini(&names);
}

struct prepared {
    struct config config;
    struct config_policy policies[MAX_POLICIES];
    struct compare_plan plan;
    struct search_result results[MAX_POLICIES];
};

static int prepare(struct prepared *c, const struct options *o, struct err *e)
{
    if (config_load(&c->config, &o->config, e) == 0) {
        check_metrics(&c->config, &o->search, e);
    }
    for (uint32_t i = 0; i < o->n_policies; i++) {
        (void)config_policy_parse(&c->policies[i], o->policies[i], e);
    }
    struct trace t = {0};
    (void)config_trace(&o->config, o->config.seed, (struct config_arrivals){1.0, 1.0, false}, &t,
                       e);
    trace_fini(&t);
    c->plan = (struct compare_plan){.config = &c->config,
                                    .options = &o->config,
                                    .policies = c->policies,
                                    .n_policies = o->n_policies,
                                    .parallel = o->jobs,
                                    .cpu_limit_s = o->time_limit_s,
                                    .arrivals = {1.0, 1.0, false},
                                    .progress = !o->quiet && isatty(STDERR_FILENO) != 0};
    return e->n > 0 ? -EINVAL : 0;
}

static void print(const struct options *o, const struct prepared *c)
{
    if (!o->json) {
        (void)printf("%s, %s, %s; seed %" PRIu64 "\n", c->config.soc.machine.name,
                     c->config.llm.name, c->config.workload, o->config.seed);
        search_print(&o->search, &c->plan, c->results, stdout);
        return;
    }
    cJSON *root = cJSON_CreateObject();
    char hash[32];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, c->config.hash);
    cJSON_AddStringToObject(root, "config_hash", hash);
    cJSON_AddStringToObject(root, "workload", c->config.workload);
    cJSON_AddNumberToObject(root, "confidence_frac", o->search.confidence_frac);
    cJSON_AddItemToObject(root, "policies", search_to_json(&o->search, &c->plan, c->results));
    char *text = cJSON_Print(root);
    (void)printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(root);
}

static int search(const struct options *o, struct err *e)
{
    struct prepared *c = xcalloc(1, sizeof *c);
    int status = EXIT_BAD_INPUT;
    if (prepare(c, o, e) == 0) {
        status = EXIT_OK;
        for (uint32_t i = 0; i < o->n_policies; i++) {
            search_run(&o->search, &c->plan, i, &c->results[i]);
            bool found = c->results[i].low >= 0 && c->results[i].high >= 0;
            status = found ? status : EXIT_CHECK_FAILED;
        }
        print(o, c);
    }
    config_fini(&c->config);
    free(c);
    return status;
}

int cmd_search(int argc, char **argv)
{
    struct options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = search(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    config_options_fini(&o.config);
    return status;
}
