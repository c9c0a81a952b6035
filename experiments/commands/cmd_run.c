/* `xpusim run`: runs one simulation. */
#include "experiments/commands/commands.h"
#include "experiments/compare/steady.h"
#include "experiments/diff/trouble.h"
#include "experiments/run/about.h"
#include "experiments/run/config.h"
#include "experiments/run/job_options.h"
#include "experiments/run/models.h"
#include "experiments/run/runner.h"
#include "experiments/run/sandbox.h"
#include "experiments/shell/cli.h"
#include "policies/replay.h"
#include "sim/base/clock.h"
#include "sim/base/output.h"
#include "sim/metrics/timeline.h"

struct run_options {
    struct config_options config;
    const char *policy, *requests, *decisions, *replay, *timeline, *detail, *trouble;
    double from_s, to_s; /* of the timeline */
    struct job_options work;
    struct option_output output;
    struct sample_options samples;
    bool steady;
};

/* steady: NULL: not requested. */
static int print_result(const struct run_options *o, const struct config *c,
                        const struct config_policy *p, const struct trace *t,
                        const struct runner_result *r, const struct steady *steady, FILE *out)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    int status = r->sim.audit.clean ? EXIT_OK : EXIT_CHECK_FAILED;
    struct document *d = document_new();
    runner_document(c, p, t, o->config.seed, r, d);
    if (steady != NULL && steady_document(steady, r->verdict == METRICS_OVERLOADED, d, &e) != 0) {
        status = EXIT_CHECK_FAILED;
    }
    document_print(d, &o->output, out);
    err_print(&e, stderr);
    return status;
}

static struct timeline *open_timeline(const struct run_options *o, const struct config *c,
                                      const struct config_policy *p, const struct trace *t,
                                      struct err *e)
{
    OWNED char *text = about_text(&(struct about){"timeline", c, p, t, o->config.seed, false});
    bool launches = o->detail != NULL ? strcmp(o->detail, "launches") == 0 : !(o->to_s > 0.0);
    struct timeline_options to = {.from_ns = units_ns_from_s(o->from_s),
                                  .to_ns = units_ns_from_s(o->to_s),
                                  .only_launches = launches,
                                  .about = text};
    return timeline_open(o->timeline, &c->soc.machine, &to, e);
}

/* Prints why a run failed, and its state then. */
static int tell_failure(const struct sim_result *r)
{
    (void)fprintf(stderr, "xpusim: error: %s\n", r->message);
    if (r->scene[0] != '\0') {
        (void)fprintf(stderr, "What there was then:\n%s", r->scene);
    }
    return r->refused ? EXIT_BAD_INPUT : EXIT_CHECK_FAILED;
}

/* Simulates loaded inputs, and prints the result. */
static int simulate(const struct run_options *o, const struct config *c,
                    const struct config_policy *p, const struct replay *replay,
                    const struct trace *t, FILE *out, struct trouble_end *end, struct err *e)
{
    struct runner_options opt = {.samples = sample_options_choice(&o->samples, e),
                                 .policy_context = replay};
    struct output *decisions = o->decisions != NULL ? output_open(o->decisions, e) : NULL;
    struct output *requests = o->requests != NULL ? output_open(o->requests, e) : NULL;
    struct timeline *timeline = o->timeline != NULL ? open_timeline(o, c, p, t, e) : NULL;
    if (e->n > 0) { /* checked before the run, which may take long */
        (void)timeline_close(timeline, false, e);
        (void)output_close(requests, false, e);
        (void)output_close(decisions, false, e);
        return EXIT_BAD_INPUT;
    }
    opt.decision_log = decisions != NULL ? output_stream(decisions) : NULL;
    opt.requests = requests;
    opt.observer = timeline != NULL ? timeline_observer(timeline) : NULL;
    struct steady *steady = o->steady ? steady_new() : NULL;
    opt.series = steady != NULL ? steady_observer(steady) : NULL;
    SCOPED(runner_result_fini) struct runner_result r;
    OWNED char *requests_about =
        about_comment(&(struct about){"requests", c, p, t, o->config.seed, false});
    opt.requests_about = requests_about;
    int rc = runner_run(c, p, t, o->config.seed, &opt, &r, e);
    int status = EXIT_OK;
    *end = (struct trouble_end){.status = r.sim.refused ? 0 : r.sim.status, .events = r.sim.events};
    /* Kept after a failed run, because they show the failure. */
    rc = timeline_close(timeline, !r.sim.refused, e) != 0 ? -EINVAL : rc;
    status = r.sim.status != 0 ? tell_failure(&r.sim) : print_result(o, c, p, t, &r, steady, out);
    if (replay != NULL && r.sim.status == 0 && r.sim.policy_counters[0] > 0) {
        (void)fprintf(stderr, "xpusim: error: %llu decision%s of %s did not happen again\n",
                      (unsigned long long)r.sim.policy_counters[0],
                      text_plural(r.sim.policy_counters[0]), o->replay);
        status = EXIT_CHECK_FAILED;
    }
    if (replay != NULL && status == EXIT_CHECK_FAILED) {
        (void)fprintf(stderr,
                      "xpusim: note: --replay %s: workload, seed, machine, models and settings "
                      "must be those of the run that wrote it\n",
                      o->replay);
    }
    if (rc != 0 && e->n > 0) {
        status = EXIT_BAD_INPUT;
    }
    if (output_close(decisions, !r.sim.refused, e) != 0) {
        status = EXIT_BAD_INPUT;
    }
    return status;
}

struct simulation {
    const struct run_options *o;
    const struct config *config;
    const struct config_policy *policy;
    const struct trace *trace;
    const struct replay *replay; /* NULL: none */
    struct trouble_end end;
};

static int work(void *ctx, FILE *out, struct err *e)
{
    struct simulation *s = ctx;
    return simulate(s->o, s->config, s->policy, s->replay, s->trace, out, &s->end, e);
}

/* Whether a path may be standard output, to which results then go. */
static bool writes_through(const char *path)
{
    return path != NULL && (output_is_stdout(path) || strncmp(path, "/dev/", 5) == 0 ||
                            strncmp(path, "/proc/", 6) == 0);
}

static int simulate_safely(struct simulation *s, struct err *e)
{
    const struct run_options *o = s->o;
    struct sandbox box = {.policy = s->policy->label,
                          .time_limit_s = o->work.how.cpu_limit_s,
                          .writes_stdout = writes_through(o->requests) ||
                                           writes_through(o->decisions) ||
                                           writes_through(o->timeline),
                          .ctx = s,
                          .work = work,
                          .answer = &s->end,
                          .answer_bytes = sizeof s->end};
    int died = 0;
    double began_s = clock_now_s();
    int status = sandbox_run(&box, &died, e);
    s->end.exit_status = died;
    if (s->replay == NULL && o->trouble[0] != '\0' && trouble_is(&s->end)) {
        trouble_leave(&(struct trouble){s->config, s->policy, &o->config, s->trace,
                                        o->work.how.cpu_limit_s, clock_now_s() - began_s,
                                        o->trouble},
                      &s->end, stderr);
    }
    return status;
}

static int load_and_simulate(const struct run_options *o, struct err *e)
{
    SCOPED(config_fini) struct config c;
    struct config_policy p;
    SCOPED(trace_fini) struct trace t = {0};
    int status = EXIT_BAD_INPUT;
    (void)config_load(&c, &o->config, e);
    struct replay *replay = NULL;
    if (o->replay == NULL) {
        (void)config_policy_parse(&p, o->policy, e);
    } else if ((replay = replay_read(o->replay, e)) != NULL) {
        /* The only parameter of the policy in a log is the drafter. The fingerprint has the log's
         * hash instead. */
        char *hash = xformat("replay=%016" PRIx64, replay_hash(replay));
        const struct policy_ops *ops = replay_policy(replay);
        p = (struct config_policy){.ops = ops,
                                   .params = {.n = ops->params != NULL},
                                   .label = "replay",
                                   .params_text = xkeep(hash)};
    }
    (void)sample_options_choice(&o->samples, e);
    (void)config_trace_packed(&o->config, o->config.seed, CONFIG_AS_WRITTEN, &t, e);
    if (e->n == 0) {
        models_note(&o->config, &t);
        struct simulation s = {o, &c, &p, &t, replay, {0}};
        status = simulate_safely(&s, e);
    }
    replay_free(replay);
    return status;
}

static int run(void *values, struct err *e)
{
    const struct run_options *o = values;
    if (o->policy == NULL && o->replay == NULL) {
        return err_add(e, "--policy is missing (`xpusim list policy` shows the names)");
    }
    if (o->policy != NULL && o->replay != NULL) {
        return err_add(e, "--replay does not go with --policy: the decisions are the file's");
    }
    if (o->to_s > 0.0 && o->to_s <= o->from_s) {
        return err_add(e, "--to %g: not after --from %g", o->to_s, o->from_s);
    }
    if (o->timeline == NULL && (o->from_s > 0.0 || o->to_s > 0.0 || o->detail != NULL)) {
        return err_add(e, "--from, --to and --timeline-detail belong to --timeline; results "
                          "are of the whole run");
    }
    return load_and_simulate(o, e);
}

static const char *const details[] = {"launches", "kernels", NULL};

#define OPTIONS struct run_options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, policy, "policy", "P[:K=V,..]", NULL,
                "policy and parameters (`xpusim list policy`), a plug-in PATH.so, exec:COMMAND or "
                "python:FILE:CLASS (docs/policy-protocol.md)"),
    OPTION_FILE(OPTIONS, requests, "requests", "FILE.csv", "write one line per request"),
    OPTION_FILE(OPTIONS, decisions, "decisions", "FILE", "write one line per scheduling decision"),
    OPTION_FILE(OPTIONS, timeline, "timeline", "FILE.json[.gz]",
                "write the schedule for ui.perfetto.dev (Chrome trace events)"),
    OPTION_NUMBER(OPTIONS, from_s, "from", "S", NULL, 0.0, 1e9,
                  "start of the timeline's window, in seconds (default: start of the run)"),
    OPTION_NUMBER(OPTIONS, to_s, "to", "S", NULL, 1e-9, 1e9,
                  "end of the timeline's window, in seconds (default: end of the run)"),
    OPTION_CHOICE(
        OPTIONS, detail, "timeline-detail", "D", NULL, details,
        "detail of a device in the timeline (default: kernels where --to is given, else launches)"),
    OPTION_TEXT(OPTIONS, replay, "replay", "FILE", NULL,
                "replay a file of --decisions, instead of a policy"),
    OPTION_ROW(TEXT, OPTIONS, trouble, const char *, "trouble", "DIR",
               "folder for a minimal reproducer, with decisions and timeline, if the policy "
               "breaks the run; '' for none",
               .preset = "xpusim-trouble", .blank = true),
    OPTION_FLAG(OPTIONS, steady, "steady",
                "print means of the steady state from this one run, with intervals (batch means); "
                "refused when it has none"),
};
const struct command cmd_run = {
    .name = "run",
    .summary = "simulate one policy on one machine and workload",
    .usage = "--policy P [options]",
    .about = "Simulates one policy on one machine and workload, and prints latencies, throughput, "
             "use of the devices and energy.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(sample_option_table, samples),
                  OPTION_CHILD(time_limit_option_table, work),
                  OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};
