#include "experiments/diff/trouble.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/diff/shrink_trace.h"
#include "experiments/run/about.h"
#include "experiments/run/jobs.h"
#include "experiments/run/models.h"
#include "experiments/run/runner.h"
#include "experiments/shell/cli.h"
#include "policies/external/external.h"
#include "sim/base/output.h"
#include "sim/metrics/timeline.h"
#include "traces/traces.h"

#define MAX_TESTS 300
#define MAX_TESTS_BLIND 60    /* for programs, and runs of unknown length */
#define MAX_EVENTS 20000000.0 /* of all tests together: some seconds */

bool trouble_is(const struct trouble_end *end)
{
    int sig = end->exit_status - 128;
    bool given_up = sig == SIGXCPU || sig == SIGTERM || sig == SIGKILL; /* ended by a limit */
    return (end->exit_status != 0 && !given_up) || end->status == -ETIMEDOUT ||
           end->status == -ELOOP || end->status == -EPROTO || end->status == -EIO;
}

/* ---- one run in its own process ---- */

struct attempt {
    const struct trouble *trouble;
    const struct trace *trace;
    FILE *decisions;      /* or NULL */
    const char *timeline; /* path, or NULL */
};

static void run_attempt(void *ctx, uint32_t index UNUSED, struct job_result *r)
{
    const struct attempt *a = ctx;
    const struct trouble *t = a->trouble;
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct runner_options opt = {.decision_log = a->decisions};
    struct timeline *timeline = NULL;
    OWNED char *about = about_text(
        &(struct about){"timeline", t->config, t->policy, a->trace, t->options->seed, false});
    if (a->timeline != NULL) {
        struct timeline_options to = {.about = about};
        timeline = timeline_open(a->timeline, &t->config->soc.machine, &to, &e);
        opt.observer = timeline == NULL ? NULL : timeline_observer(timeline);
    }
    if (a->decisions != NULL) { /* a crash then loses no decision */
        (void)setvbuf(a->decisions, NULL, _IOLBF, BUFSIZ);
    }
    struct runner_result result;
    (void)runner_run(t->config, t->policy, a->trace, t->options->seed, &opt, &result, &e);
    (void)timeline_close(timeline, true, &e);
    struct trouble_end *end = xcalloc(1, sizeof *end);
    *end = (struct trouble_end){.status = result.sim.status, .events = result.sim.events};
    r->data = end;
    r->size = sizeof *end;
}

static struct trouble_end attempt(const struct attempt *a)
{
    struct job_result r;
    struct jobs j = {.n = 1,
                     .parallel = 1,
                     .cpu_limit_s = a->trouble->cpu_limit_s,
                     .ctx = (void *)(uintptr_t)a,
                     .run = run_attempt};
    jobs_run(&j, &r);
    struct trouble_end end = {.exit_status = r.exit_status == 0 ? -1 : r.exit_status};
    if (r.data != NULL) {
        memcpy(&end, r.data, sizeof end);
    }
    free(r.data);
    return end;
}

struct shrinking {
    const struct trouble *trouble;
    const struct trouble_end *end;
};

static bool alike(const struct trouble_end *a, const struct trouble_end *b)
{
    return a->status == b->status && a->exit_status == b->exit_status;
}

static bool fails_alike(void *ctx, const struct trace *t)
{
    const struct shrinking *s = ctx;
    struct attempt a = {.trouble = s->trouble, .trace = t};
    struct trouble_end end = attempt(&a);
    return t->n > 0 && alike(&end, s->end);
}

static bool is_program(const struct trouble *t)
{
    return external_spec_length(t->policy->label) > 0;
}

/* Greatest number of tests. A limit of time would give another trace on another machine; only
 * programs have one, too. */
static uint32_t allowance(const struct trouble *t, const struct trouble_end *end)
{
    if (end->events == 0 || is_program(t)) {
        return MAX_TESTS_BLIND;
    }
    double n = MAX_EVENTS / (double)end->events;
    return n < MAX_TESTS ? (uint32_t)n : MAX_TESTS;
}

/* ---- files and the command ---- */

static void put_word(const char *word, FILE *out)
{
    OWNED char *buf = xmalloc(4 * strlen(word) + 3);
    (void)fputs(cli_word(word, true, buf), out);
}

/* Prints "xpusim run --policy ... --trace TRACE", quoted for a shell. */
static void put_command(const struct config_options *o, const char *policy, const char *trace,
                        FILE *out)
{
    const char *const words[][2] = {
        {"--policy", policy}, {"--soc", o->soc}, {"--llm", o->llm}, {"--trace", trace}};
    (void)fputs("xpusim run", out);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        (void)fprintf(out, " %s ", words[i][0]);
        put_word(words[i][1], out);
    }
    (void)fprintf(out, " --seed %" PRIu64, o->seed);
    for (uint32_t i = 0; i < o->n_sets; i++) {
        (void)fputs(" --set ", out);
        put_word(o->sets[i], out);
    }
    (void)fputc('\n', out);
}

/* Runs the written trace once more, with decision log and timeline. Returns whether it fails in the
 * same way. */
static bool show_again(const struct trouble *t, const char *trace, const struct trouble_end *end,
                       struct err *e)
{
    SCOPED(trace_fini) struct trace again = {0};
    if (trace_read(trace, &again, e) != 0 || models_bind(t->options, &again, e) != 0) {
        return false;
    }
    OWNED char *log = xformat("%s/decisions", t->dir);
    OWNED char *timeline = xformat("%s/timeline.json", t->dir);
    struct output *decisions = output_open(log, e);
    struct attempt a = {.trouble = t,
                        .trace = &again,
                        .decisions = decisions == NULL ? NULL : output_stream(decisions),
                        .timeline = timeline};
    struct trouble_end last = attempt(&a);
    (void)output_close(decisions, true, e);
    return alike(&last, end);
}

/* The policy of further runs. A program may get a shorter limit for its answers, which its label
 * then states. *label: owned by the caller; NULL: unchanged. */
static struct config_policy hurried(const struct trouble *t, char **label)
{
    struct config_policy p = *t->policy;
    size_t name = external_spec_length(p.label);
    double limit_s = external_shorten(p.ops, &p.params, t->took_s);
    *label = NULL;
    if (limit_s > 0.0 && strstr(p.label + name, "limit_s=") == NULL) {
        *label = xformat("%s%climit_s=%g", p.label, p.label[name] == ':' ? ',' : ':', limit_s);
        p.label = *label;
    }
    return p;
}

static void leave(const struct trouble *t, const struct trouble_end *end, FILE *out)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    OWNED char *path = xformat("%s/trace.csv", t->dir);
    OWNED bool *all = xmalloc(t->trace->n + 1);
    memset(all, true, t->trace->n + 1);
    SCOPED(trace_fini) struct trace small = {0};
    struct shrinking ctx = {t, end};
    struct shrink_trace s = {.ctx = &ctx,
                             .shows = fails_alike,
                             .max_tests = allowance(t, end),
                             .limit_s = is_program(t) ? TROUBLE_LIMIT_S : 0.0,
                             .on_terminal = isatty(STDERR_FILENO) != 0};
    bool whole = trace_subset(t->trace, all, &small) == 0;
    if (is_program(t)) {
        (void)fprintf(out,
                      "Looking for a smaller trace that shows it, at most %g s (Ctrl-C ends it)\n",
                      TROUBLE_LIMIT_S);
    }
    if (whole && fails_alike(&ctx, &small)) {
        (void)shrink_trace_run(&s, &small);
    }
    if (mkdir(t->dir, 0777) != 0 && errno != EEXIST) {
        (void)err_add(&e, "%s: cannot make this folder for the trace of what went wrong: %s",
                      t->dir, strerror(errno));
    } else if (whole && trace_write(path, &small, &e) == 0) {
        bool shows = show_again(t, path, end, &e);
        (void)fprintf(out, "%s: %zu of %zu request%s, in %s/: trace.csv, decisions%s\n  ",
                      shows ? "Enough to show it" : "Not shown again by its trace", small.n,
                      t->trace->n, text_plural(t->trace->n), t->dir,
                      end->exit_status == 0 ? ", timeline.json" : "");
        put_command(t->options, t->policy->label, path, out);
    }
    err_print(&e, out);
}

void trouble_leave(const struct trouble *t, const struct trouble_end *end, FILE *out)
{
    struct trouble again = *t;
    OWNED char *label;
    struct config_policy p = hurried(t, &label);
    again.policy = &p;
    leave(&again, end, out);
}
