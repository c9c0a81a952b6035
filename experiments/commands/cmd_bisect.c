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
#include "experiments/shell/frame.h"
#include "sim/base/arena.h"
#include "traces/traces.h"

struct options {
    struct two_runs_options given;
    struct option_output shown;
    const char *output;
    uint32_t max_tests;
};

/* ---- parts of a trace ---- */

/* The trace as it is being shrunk: rows in their order, `next` still by the whole trace's rows. */
struct work {
    const struct options *options;
    struct two_runs *runs;
    struct trace now;     /* owned */
    uint32_t *session_of; /* owned; row -> number of its session from 0 */
    uint32_t tests;
};

static bool parts(struct work *w, const struct trace *t)
{
    w->tests++;
    if (!w->options->shown.quiet && isatty(STDERR_FILENO) != 0) {
        (void)fprintf(stderr, "\r%" PRIu32 " tests, %zu requests ", w->tests, t->n);
    }
    return two_runs_part(w->runs, t);
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

/* The requests that are left, for people. */
static void put_trace(const struct trace *t, struct document *d)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    SIM_REQUIRE(f != NULL, "memory");
    trace_print(f, t);
    (void)fclose(f);
    document_note(d, "%.*s", (int)(size > 0 ? size - 1 : 0), text); /* a note ends its line */
    free(text);
}

static int bisect(const struct options *o, struct two_runs *runs, struct document *d, struct err *e)
{
    static const struct config_arrivals as_they_are = {1.0, 1.0, false};
    struct work w = {.options = o, .runs = runs};
    int status = EXIT_BAD_INPUT;
    if (two_runs_load(runs, &o->given, e) == 0 &&
        config_trace(&runs->side[0].options, runs->side[0].options.seed, as_they_are, &w.now, e) ==
            0) {
        size_t before = w.now.n;
        if (!parts(&w, &w.now)) {
            document_note(d, "no difference on %zu requests", before);
            DOCUMENT_VALUES(d, "requests", before, "left", 0, "pairs_of_runs", w.tests);
            status = EXIT_CHECK_FAILED;
        } else {
            drop_sessions(&w);
            drop_turns(&w);
            halve_lengths(&w);
            if (trace_write(o->output, &w.now, e) == 0) {
                document_note(d,
                              "%zu of %zu requests show the difference (%" PRIu32 " pairs of runs)",
                              w.now.n, before, w.tests);
                DOCUMENT_VALUES(d, "requests", before, "left", w.now.n, "pairs_of_runs", w.tests,
                                "trace", o->output);
                put_trace(&w.now, d);
                status = EXIT_OK;
            }
        }
    }
    trace_fini(&w.now);
    free(w.session_of);
    return status;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    if (o->output == NULL) {
        return err_add(e, "-o is missing: where the trace goes");
    }
    struct two_runs *runs = xcalloc(1, sizeof *runs);
    struct document *d = document_new();
    int status = bisect(o, runs, d, e);
    if (status != EXIT_BAD_INPUT) {
        document_print(d, &o->shown, stdout);
    }
    document_free(d);
    two_runs_fini(runs);
    free(runs);
    return status;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    {.name = "output",
     .letter = 'o',
     .value = "OUT.csv",
     .kind = OPTION_KIND_TEXT,
     .offset = OPTION_AT(OPTIONS, output, const char *),
     .help = "the trace, written whole or not at all"},
    OPTION_COUNT(OPTIONS, max_tests, "max-tests", "N", "2000", 1, 1000000, "pairs of runs at most"),
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
static const struct option_child children[] = {
    {.table = &own},
    {&option_output_table, offsetof(OPTIONS, shown), NULL, false},
    TWO_RUNS_CHILDREN(offsetof(OPTIONS, given)),
    {0},
};
const struct command cmd_bisect = {
    .name = "bisect",
    .summary = "the smallest trace that shows such a difference",
    .usage = "--policy P [options] [--b-OPTION ...] [--against BINARY] -o OUT.csv",
    .about =
        "Shrinks the workload to a trace on which the two runs still decide differently: sessions "
        "are "
        "left out (delta debugging), then last turns, then lengths are halved, as long as the "
        "difference stays. Both sides see side A's workload. `xpusim diff ... --trace OUT.csv` "
        "then shows it. Exit 1 when the runs do not differ.",
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};
