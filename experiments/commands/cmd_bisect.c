/* `xpusim bisect`: the smallest trace on which two runs that should decide alike do not. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/diff/shrink.h"
#include "experiments/diff/two_runs.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"
#include "traces/traces.h"

static const char help[] =
    "usage: xpusim bisect --policy P [options] [--b-OPTION ...] [--against BINARY] -o OUT.csv\n"
    "\n"
    "Shrinks the workload to a trace on which the two runs still decide differently: sessions are\n"
    "left out (delta debugging), then last turns, then lengths are halved, as long as the "
    "difference\n"
    "stays. Both sides see side A's workload. `xpusim diff ... --trace OUT.csv` then shows it.\n"
    "Exit 1 when the runs do not differ.\n"
    "\n"
    "  -o, --output FILE    the trace, written whole or not at all\n"
    "  --max-tests N        pairs of runs at most (default 2000)\n"
    "  --quiet              no progress\n";

struct options {
    struct two_runs runs;
    const char *output;
    uint32_t max_tests;
    bool quiet;
};

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct options *o, struct err *e)
{
    struct option longs[TWO_RUNS_MAX_OPTIONS + 6];
    size_t n = two_runs_long_options(longs, TWO_RUNS_MAX_OPTIONS);
    longs[n++] = (struct option){"time-limit", required_argument, NULL, 't'};
    longs[n++] = (struct option){"output", required_argument, NULL, 'o'};
    longs[n++] = (struct option){"max-tests", required_argument, NULL, 'm'};
    longs[n++] = (struct option){"quiet", no_argument, NULL, 'q'};
    longs[n++] = (struct option){"help", no_argument, NULL, 'h'};
    longs[n] = (struct option){NULL, 0, NULL, 0};
    *o = (struct options){.max_tests = 2000};
    two_runs_init(&o->runs);
    for (int pass = 0; pass < 2; pass++) {
        optind = 1;
        for (int c; (c = getopt_long(argc, argv, "ho:q", longs, NULL)) != -1;) {
            if (c == 'h') {
                (void)fputs(help, stdout);
                (void)fputs(two_runs_help, stdout);
                (void)fputs(config_options_help, stdout);
                return 1;
            }
            if (c == 'o') {
                o->output = optarg;
            } else if (c == 'q') {
                o->quiet = true;
            } else if (c == 'm') {
                (void)cli_count("max-tests", optarg, 1, 1000000, &o->max_tests, e);
            } else if (c == 't') {
                (void)cli_number("time-limit", optarg, 1.0, 1e7, &o->runs.time_limit_s, e);
            } else if (two_runs_take_option(&o->runs, c, optarg, pass, e) == 0) {
                return err_add(e, "`xpusim bisect --help` shows the options");
            }
        }
        if (e->n > 0) {
            return -EINVAL;
        }
    }
    if (optind < argc) {
        return err_add(e, "%s: not an option", argv[optind]);
    }
    return o->output == NULL ? err_add(e, "-o is missing: where the trace goes") : 0;
}

/* ---- parts of a trace ---- */

/* The trace as it is being shrunk: rows in their order, `next` still by the whole trace's rows. */
struct work {
    struct options *options;
    struct trace now;     /* owned */
    uint32_t *session_of; /* owned; row -> number of its session from 0 */
    uint32_t tests;
};

static bool parts(struct work *w, const struct trace *t)
{
    w->tests++;
    if (!w->options->quiet && isatty(STDERR_FILENO) != 0) {
        (void)fprintf(stderr, "\r%" PRIu32 " tests, %zu requests ", w->tests, t->n);
    }
    return two_runs_part(&w->options->runs, t);
}

/* Numbers sessions by their first row. */
static size_t number_sessions(struct work *w)
{
    const struct trace *t = &w->now;
    free(w->session_of);
    w->session_of = xmalloc((t->n + 1) * sizeof *w->session_of);
    for (size_t i = 0; i < t->n_first; i++) {
        for (uint32_t r = (uint32_t)i; r != TRACE_NO_ROW; r = t->rows[r].next) {
            w->session_of[r] = (uint32_t)i;
        }
    }
    return t->n_first;
}

/* Takes the subset over when it still shows the difference. */
static bool take(struct work *w, const bool *keep_row)
{
    struct trace t = {0};
    if (trace_subset(&w->now, keep_row, &t) != 0 || !parts(w, &t)) {
        trace_fini(&t);
        return false;
    }
    trace_fini(&w->now);
    w->now = t;
    return true;
}

static bool sessions_show(void *ctx, const bool *keep, size_t n)
{
    (void)n;
    struct work *w = ctx;
    bool *rows = xmalloc((w->now.n + 1) * sizeof *rows);
    for (size_t i = 0; i < w->now.n; i++) {
        rows[i] = keep[w->session_of[i]];
    }
    struct trace t = {0};
    bool shows = trace_subset(&w->now, rows, &t) == 0 && parts(w, &t);
    trace_fini(&t);
    free(rows);
    return shows;
}

static void drop_sessions(struct work *w)
{
    size_t n = number_sessions(w);
    bool *keep = xmalloc((n + 1) * sizeof *keep);
    memset(keep, true, n);
    struct shrink s = {w, sessions_show, w->options->max_tests};
    (void)shrink_run(&s, keep, n);
    bool *rows = xmalloc((w->now.n + 1) * sizeof *rows);
    for (size_t i = 0; i < w->now.n; i++) {
        rows[i] = keep[w->session_of[i]];
    }
    struct trace t = {0};
    if (trace_subset(&w->now, rows, &t) == 0) { /* shrink_run has tested it */
        trace_fini(&w->now);
        w->now = t;
    }
    free(rows);
    free(keep);
}

/* Leaves out one last turn after another. */
static void drop_turns(struct work *w)
{
    bool dropped = true;
    while (dropped && w->tests < w->options->max_tests) {
        dropped = false;
        for (size_t i = w->now.n_first; i < w->now.n && !dropped; i++) {
            if (w->now.rows[i].next == TRACE_NO_ROW) {
                bool *rows = xmalloc((w->now.n + 1) * sizeof *rows);
                memset(rows, true, w->now.n);
                rows[i] = false;
                dropped = take(w, rows);
                free(rows);
            }
        }
    }
}

/* Halves a length of one row; false when the difference goes with it. */
static bool halve(struct work *w, size_t row, bool output)
{
    struct trace_row *r = &w->now.rows[row];
    struct trace_row old = *r;
    uint32_t *length = output ? &r->output_tokens : &r->input_tokens;
    if (*length < 2 || w->tests >= w->options->max_tests) {
        return false;
    }
    *length /= 2;
    r->prefix_tokens = r->prefix_tokens < r->input_tokens ? r->prefix_tokens : r->input_tokens;
    if (!parts(w, &w->now)) {
        *r = old;
        return false;
    }
    return true;
}

static void halve_lengths(struct work *w)
{
    for (size_t i = 0; i < w->now.n; i++) {
        while (halve(w, i, true)) {
        }
        while (halve(w, i, false)) {
        }
    }
    w->now.hash = trace_hash(&w->now);
}

/* ---- all of it ---- */

static int bisect(struct options *o, struct err *e)
{
    static const struct config_arrivals as_they_are = {1.0, 1.0, false};
    struct work w = {.options = o};
    int status = EXIT_BAD_INPUT;
    if (two_runs_load(&o->runs, e) == 0 &&
        config_trace(&o->runs.side[0].options, o->runs.side[0].options.seed, as_they_are, &w.now,
                     e) == 0) {
        size_t before = w.now.n;
        if (!parts(&w, &w.now)) {
            (void)printf("no difference on %zu requests\n", before);
            status = EXIT_CHECK_FAILED;
        } else {
            drop_sessions(&w);
            drop_turns(&w);
            halve_lengths(&w);
            if (trace_write(o->output, &w.now, e) == 0) {
                (void)printf("%zu of %zu requests show the difference (%" PRIu32
                             " pairs of runs)\n",
                             w.now.n, before, w.tests);
                trace_print(stdout, &w.now);
                status = EXIT_OK;
            }
        }
    }
    trace_fini(&w.now);
    free(w.session_of);
    return status;
}

int cmd_bisect(int argc, char **argv)
{
    struct options *o = xcalloc(1, sizeof *o);
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = bisect(o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    two_runs_fini(&o->runs);
    free(o);
    return status;
}
