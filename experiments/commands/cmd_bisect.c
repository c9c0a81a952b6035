/* `xpusim bisect`: finds a smallest trace on which two runs decide differently. */
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/diff/shrink_trace.h"
#include "experiments/diff/two_runs.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "sim/base/memory.h"
#include "traces/traces.h"

struct options {
    struct two_runs_options given;
    struct option_output shown;
    const char *output;
    uint32_t max_tests;
};

struct work {
    const struct options *options;
    struct two_runs *runs;
    uint32_t tests;
    two_runs_end end[2]; /* of the last pair */
};

static bool parts(void *ctx, const struct trace *t)
{
    struct work *w = ctx;
    w->tests++;
    return two_runs_part(w->runs, t, w->end);
}

/* Prints the remaining requests for people. */
static void put_trace(const struct trace *t, struct document *d)
{
    OWNED char *text = NULL;
    size_t size = 0;
    FILE *f = memory_stream(&text, &size);
    trace_print(f, t);
    memory_stream_close(f, &text);
    /* without its last newline, which a note adds */
    document_note(d, "%.*s", (int)(size > 0 ? size - 1 : 0), text);
}

/* Puts the ends of failed runs. */
static void put_ends(const struct work *w, struct document *d)
{
    for (int i = 0; i < 2; i++) {
        if (w->end[i][0] != '\0') {
            document_note(d, "run %c failed: %s", 'A' + i, w->end[i]);
        }
    }
    DOCUMENT_VALUES(d, "message_a", w->end[0], "message_b", w->end[1]);
}

static int bisect(const struct options *o, struct two_runs *runs, struct document *d, struct err *e)
{
    struct work w = {.options = o, .runs = runs};
    SCOPED(trace_fini) struct trace t = {0};
    int status = EXIT_BAD_INPUT;
    if (two_runs_load(runs, &o->given, e) == 0 &&
        config_trace(&runs->side[0].options, runs->side[0].options.seed, CONFIG_AS_WRITTEN, &t,
                     e) == 0) {
        size_t before = t.n;
        bool part = parts(&w, &t);
        put_ends(&w, d);
        if (!part) {
            document_note(d, "no difference on %zu request%s", before, text_plural(before));
            DOCUMENT_VALUES(d, "requests", before, "left", 0, "pairs_of_runs", w.tests);
            status = EXIT_CHECK_FAILED;
        } else {
            struct shrink_trace s = {.ctx = &w,
                                     .shows = parts,
                                     .max_tests = o->max_tests,
                                     .on_terminal = !o->shown.quiet && isatty(STDERR_FILENO) != 0};
            (void)shrink_trace_run(&s, &t);
            if (trace_write(o->output, &t, e) == 0) {
                document_note(
                    d, "the difference needs %zu of %zu request%s (%" PRIu32 " pair%s of runs)",
                    t.n, before, text_plural(before), w.tests, text_plural(w.tests));
                DOCUMENT_VALUES(d, "requests", before, "left", t.n, "pairs_of_runs", w.tests,
                                "trace", o->output);
                put_trace(&t, d);
                status = EXIT_OK;
            }
        }
    }
    return status;
}

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    const struct config_options *b = &o->given.b;
    if (o->output == NULL) {
        return err_add(e, "-o is missing: where the trace goes");
    }
    if (options_without("bisect", "quantile below qoe b-quantile b-below b-qoe", e) != 0) {
        return EXIT_BAD_INPUT;
    }
    if (b->trace != NULL || b->workload != NULL || b->machine != NULL || b->ttft_slo_s > 0.0 ||
        b->tpot_slo_s > 0.0) {
        return err_add(e,
                       "--b-trace, --b-workload, --b-machine, --b-ttft-slo and --b-tpot-slo: both "
                       "sides get side A's requests, their targets and events of the machine; "
                       "`xpusim diff` compares runs of different ones");
    }
    struct two_runs *runs = xkept(xcalloc(1, sizeof *runs));
    struct document *d = document_new();
    int status = bisect(o, runs, d, e);
    if (status != EXIT_BAD_INPUT) {
        document_print(d, &o->shown, stdout);
    }
    return status;
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, output, "OUT.csv", NULL, "write the trace here, whole or not at all"),
    OPTION_COUNT(OPTIONS, max_tests, "max-tests", "N", "2000", 1, 1000000,
                 "limit of pairs of runs"),
};
const struct command cmd_bisect = {
    .name = "bisect",
    .summary = "find the smallest trace on which two runs decide differently",
    .usage = "--policy P [options] [--b-OPTION ...] [--against BINARY] -o OUT.csv",
    .about = "Reduces the workload to a trace on which the two runs still decide differently. It "
             "leaves out sessions (delta debugging), then last turns, then halves lengths, as long "
             "as the difference remains. Both sides get side A's workload, with its targets and "
             "events of the machine. `xpusim diff ... "
             "--trace OUT.csv` then shows the difference. Exit 1 when the runs do not differ.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_output_table, shown),
                  TWO_RUNS_CHILDREN(offsetof(OPTIONS, given))),
    .run = run,
};
