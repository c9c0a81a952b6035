/* `xpusim run`: one simulation. */
#include <errno.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/compare/steady.h"
#include "experiments/run/config.h"
#include "experiments/run/jobs.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "policies/replay.h"
#include "sim/metrics/timeline.h"

#define DEFAULT_TIME_LIMIT_S 600.0
#define MAX_OPTIONS 48

static const char help[] =
    "usage: xpusim run --policy P [options]\n"
    "\n"
    "Simulates one policy on one machine and workload, and prints what happened.\n"
    "\n"
    "  --policy P[:K=V,..]  policy and parameters (`xpusim list policy`)\n"
    "  --requests FILE.csv  write one line per request\n"
    "  --decisions FILE     write one line per scheduling decision\n"
    "  --timeline FILE.json write the schedule for ui.perfetto.dev (Chrome trace events)\n"
    "  --replay FILE        instead of a policy, the decisions of such a file\n"
    "  --steady             means of the steady state from this one run, with intervals (batch\n"
    "                       means, MSER-5); refused when it has none\n"
    "  --sketch             quantiles within 0.5 %, constant memory (for millions of requests)\n"
    "  --time-limit S       CPU seconds after which the run is given up (default 600)\n"
    "  --json               results as JSON\n"
    "  --quiet              no messages but errors\n"
    "\n";

struct run_options {
    struct config_options config;
    const char *policy, *requests, *decisions, *replay, *timeline;
    double time_limit_s;
    bool sketch, steady, json, quiet;
};

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct run_options *o, struct err *e)
{
    static const struct option own[] = {{"policy", required_argument, NULL, 'p'},
                                        {"requests", required_argument, NULL, 'r'},
                                        {"decisions", required_argument, NULL, 'd'},
                                        {"replay", required_argument, NULL, 'y'},
                                        {"timeline", required_argument, NULL, 'l'},
                                        {"sketch", no_argument, NULL, 's'},
                                        {"steady", no_argument, NULL, 'S'},
                                        {"time-limit", required_argument, NULL, 't'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
    struct option longs[MAX_OPTIONS];
    size_t n = config_long_options(longs, MAX_OPTIONS - sizeof own / sizeof own[0]);
    memcpy(&longs[n], own, sizeof own);
    *o = (struct run_options){.config = config_options_default(),
                              .time_limit_s = DEFAULT_TIME_LIMIT_S};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hq", longs, NULL)) != -1;) {
        switch (c) {
        case 'p':
            o->policy = optarg;
            break;
        case 'r':
            o->requests = optarg;
            break;
        case 'd':
            o->decisions = optarg;
            break;
        case 'y':
            o->replay = optarg;
            break;
        case 'l':
            o->timeline = optarg;
            break;
        case 's':
            o->sketch = true;
            break;
        case 'S':
            o->steady = true;
            break;
        case 't':
            (void)cli_number("time-limit", optarg, 1.0, 1e7, &o->time_limit_s, e);
            break;
        case 'j':
            o->json = true;
            break;
        case 'q':
            o->quiet = true;
            break;
        case 'h':
            (void)fputs(help, stdout);
            (void)fputs(config_options_help, stdout);
            return 1;
        default:
            if (config_take_option(&o->config, c, optarg, e) == 0) {
                return err_add(e, "`xpusim run --help` shows the options");
            }
        }
    }
    if (optind < argc) {
        return err_add(e, "%s: not an option", argv[optind]);
    }
    if (o->policy == NULL && o->replay == NULL) {
        return err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    return e->n > 0 ? -EINVAL : 0;
}

/* steady: NULL when not asked for. */
static int print_result(const struct run_options *o, const struct config *c,
                        const struct config_policy *p, const struct trace *t,
                        const struct runner_result *r, const struct steady *steady)
{
    struct err e = ERR_INIT;
    bool overloaded = r->verdict == METRICS_OVERLOADED;
    int status = r->sim.audit.clean ? EXIT_OK : EXIT_CHECK_FAILED;
    if (!o->json) {
        runner_print(c, p, t, o->config.seed, r, stdout);
    }
    cJSON *root = o->json ? runner_to_json(c, p, t, o->config.seed, r) : NULL;
    cJSON *into = root != NULL && steady != NULL ? cJSON_AddObjectToObject(root, "steady") : NULL;
    if (steady != NULL && steady_print(steady, overloaded, stdout, into, &e) != 0) {
        status = EXIT_CHECK_FAILED;
    }
    if (root != NULL) {
        char *text = cJSON_Print(root);
        (void)printf("%s\n", text);
        cJSON_free(text);
        cJSON_Delete(root);
    }
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}

/* Everything is loaded: simulates and prints. */
static int simulate(const struct run_options *o, const struct config *c,
                    const struct config_policy *p, const struct replay *replay,
                    const struct trace *t, struct err *e)
{
    struct runner_options opt = {
        .sketch = o->sketch, .requests_csv = o->requests, .policy_context = replay};
    if (o->decisions != NULL) {
        opt.decision_log = fopen(o->decisions, "w");
        if (opt.decision_log == NULL) {
            (void)err_add(e, "--decisions %s: cannot write: %s", o->decisions, strerror(errno));
            return EXIT_BAD_INPUT;
        }
    }
    struct timeline *timeline = NULL;
    if (o->timeline != NULL) {
        timeline = timeline_open(o->timeline, &c->soc.machine, e);
        if (timeline == NULL) {
            if (opt.decision_log != NULL) {
                (void)fclose(opt.decision_log);
            }
            return EXIT_BAD_INPUT;
        }
        opt.observer = timeline_observer(timeline);
    }
    struct steady *steady = o->steady ? steady_new() : NULL;
    opt.series = steady != NULL ? steady_observer(steady) : NULL;
    char message[200];
    (void)snprintf(message, sizeof message,
                   "policy %s: the run was given up after %g s of CPU time (--time-limit)",
                   p->ops->name, o->time_limit_s);
    jobs_limit_self(o->time_limit_s, message);
    struct runner_result r;
    int rc = runner_run(c, p, t, o->config.seed, &opt, &r, e);
    int status = EXIT_OK;
    rc = timeline_close(timeline, r.sim.status == 0, e) != 0 ? -EINVAL : rc;
    if (r.sim.status != 0) {
        (void)fprintf(stderr, "xpusim: error: %s\n", r.sim.message);
        status = EXIT_CHECK_FAILED;
    } else {
        status = print_result(o, c, p, t, &r, steady);
    }
    if (replay != NULL && r.sim.status == 0 && r.sim.policy_counters[0] > 0) {
        (void)fprintf(stderr, "xpusim: error: %llu decisions of %s did not happen again\n",
                      (unsigned long long)r.sim.policy_counters[0], o->replay);
        status = EXIT_CHECK_FAILED;
    }
    if (rc != 0 && e->n > 0) {
        status = EXIT_BAD_INPUT;
    }
    if (opt.decision_log != NULL && fclose(opt.decision_log) != 0) {
        (void)err_add(e, "--decisions %s: cannot write: %s", o->decisions, strerror(errno));
        status = EXIT_BAD_INPUT;
    }
    steady_free(steady);
    runner_result_fini(&r);
    return status;
}

static int load_and_simulate(const struct run_options *o, struct err *e)
{
    struct config c;
    struct config_policy p;
    struct trace t = {0};
    int status = EXIT_BAD_INPUT;
    (void)config_load(&c, &o->config, e);
    struct replay *replay = NULL;
    if (o->replay == NULL) {
        (void)config_policy_parse(&p, o->policy, e);
    } else if ((replay = replay_read(o->replay, e)) != NULL) {
        p = (struct config_policy){.ops = replay_policy(replay), .label = "replay"};
    }
    (void)config_trace(&o->config, o->config.seed, (struct config_arrivals){1.0, 1.0, false}, &t,
                       e);
    if (e->n == 0) {
        status = simulate(o, &c, &p, replay, &t, e);
    }
    trace_fini(&t);
    replay_free(replay);
    config_fini(&c);
    return status;
}

int cmd_run(int argc, char **argv)
{
    struct run_options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = load_and_simulate(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    config_options_fini(&o.config);
    return status;
}
