/* `xpusim view`: one page to look at runs, click requests and compare policies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/view_runs.h"
#include "experiments/report/report.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "sim/base/arena.h"
#include "sim/base/output.h"

struct view_options {
    struct option_texts files, policies;
    struct config_options config;
    struct job_options work;
    struct option_output output;
    const char *path;
    double from_s, to_s;
    bool data;
};

/* Runs the policies into a file of a temporary folder, which the caller removes. */
static int simulate(const struct view_options *o, const char *path, struct err *e)
{
    struct view_runs v = {&o->config, &o->policies, o->work.how.cpu_limit_s, o->from_s, o->to_s};
    struct output *out = output_open(path, e);
    int status = out != NULL ? view_runs_write(&v, output_stream(out), e) : EXIT_BAD_INPUT;
    bool keep = status == EXIT_OK;
    return output_close(out, keep, e) != 0 ? EXIT_BAD_INPUT : status;
}

static int write_page(const struct view_options *o, const char *runs, struct err *e)
{
    struct figure_request all = {.n_inputs = 0};
    struct report_input in[FIGURE_MAX_INPUTS];
    struct report_figures none = {.n = 0};
    struct report_page page = {.html = NULL};
    size_t n = 0;
    if (runs != NULL) {
        (void)figure_input_add(&all, runs, e);
        all.inputs[0].path = "these runs";
    }
    for (uint32_t i = 0; i < o->files.n; i++) {
        (void)figure_input_add(&all, o->files.v[i], e);
    }
    for (size_t i = 0; i < all.n_inputs && e->n == 0; i++) {
        report_take(&all.inputs[i], i, in, &n, true, e);
    }
    struct output *out =
        e->n == 0 && report_page_load(&page, true, e) == 0 ? output_open(o->path, e) : NULL;
    if (out != NULL) {
        report_write(&page, in, n, &all, &none, output_stream(out));
        (void)output_close(out, true, e);
    }
    report_page_fini(&page);
    figure_request_fini(&all);
    return e->n > 0 ? EXIT_BAD_INPUT : EXIT_OK;
}

static int view(const struct view_options *o, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = xformat("%s/xpusim-view-XXXXXX", tmp != NULL ? tmp : "/tmp");
    char *runs = NULL;
    int status = EXIT_OK;
    if (o->policies.n > 0) {
        if (mkdtemp(dir) == NULL) {
            (void)err_add(e, "%s: cannot make a temporary folder", dir);
            free(dir);
            return EXIT_BAD_INPUT;
        }
        runs = xformat("%s/runs.json", dir);
        status = simulate(o, runs, e);
    }
    if (status == EXIT_OK) {
        status = write_page(o, runs, e);
    }
    if (runs != NULL) {
        (void)remove(runs);
        (void)rmdir(dir);
    }
    free(runs);
    free(dir);
    return status;
}

static int run(void *values, struct err *e)
{
    const struct view_options *o = values;
    if (o->data) {
        return o->policies.n == 0 || o->files.n > 0 || o->path != NULL
                   ? err_add(e, "--json goes with --policy alone: it prints the runs as data")
                   : simulate(o, "/dev/stdout", e);
    }
    if (o->path == NULL || (o->policies.n == 0 && o->files.n == 0)) {
        return err_add(e, "view needs --policy or files of results, and -o FILE.html");
    }
    if (o->to_s > 0.0 && o->to_s <= o->from_s) {
        return err_add(e, "--to %g: not after --from %g", o->to_s, o->from_s);
    }
    return view(o, e);
}

#define OPTIONS struct view_options

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", 16,
                 "policy and parameters to simulate; may be repeated"),
    OPTION_OUTPUT(OPTIONS, path, "FILE.html", NULL, "write the page here, whole or not at all"),
    OPTION_FLAG(OPTIONS, data, "json",
                "print the runs as data for a later `view` or `report --live`, instead of a page"),
    OPTION_NUMBER(OPTIONS, from_s, "from", "S", NULL, 0.0, 1e9,
                  "start of the window in which every kernel is recorded, in seconds"),
    OPTION_NUMBER(OPTIONS, to_s, "to", "S", NULL, 1e-9, 1e9,
                  "end of that window (default: no kernels, launches only)"),
};
const struct command cmd_view = {
    .name = "view",
    .summary = "make a page to look at runs: zoom, click, compare",
    .usage = "--policy P [--policy Q ...] [RESULT...] -o FILE.html [options of run]\n"
             "RESULT... -o FILE.html",
    .about =
        "Simulates each policy once, on the same requests, and writes one HTML page that needs no "
        "network. The page shows the schedule of every device with DDR, memory and power. A click "
        "on a request shows its causes and who was in its way. Two policies are drawn on one time "
        "axis, with the first decision that differs.\n\nFiles of results join the page: compare "
        "--json and compare --load --json add means with intervals and latency over load, view "
        "--json adds further runs.",
    .operands = {"RESULT", 0, FIGURE_MAX_INPUTS - 1, offsetof(OPTIONS, files)},
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(time_limit_option_table, work),
                  OPTION_CHILD(option_quiet_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};
