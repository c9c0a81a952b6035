/* `xpusim view`: one page to look at runs, click requests and compare policies. */
#include "experiments/commands/commands.h"
#include "experiments/commands/view_runs.h"
#include "experiments/report/report.h"
#include "experiments/run/job_options.h"
#include "experiments/shell/cli.h"
#include "sim/base/input.h"
#include "sim/base/output.h"

struct view_options {
    struct option_texts files, policies;
    struct config_options config;
    struct job_options work;
    struct option_output output;
    const char *path;
    double from_s, to_s;
    bool data, recompute;
};

static struct view_runs runs_of(const struct view_options *o)
{
    return (struct view_runs){.config = &o->config,
                              .policies = &o->policies,
                              .time_limit_s = o->work.how.cpu_limit_s,
                              .from_s = o->from_s,
                              .to_s = o->to_s,
                              .recompute = o->recompute};
}

#define MAX_TEXT_BYTES ((size_t)1 << 30)

/* Simulates into the first input of the page. */
static int simulate(const struct view_options *o, struct figure_request *all, struct err *e)
{
    struct view_runs v = runs_of(o);
    FILE *f = tmpfile();
    SIM_REQUIRE(f != NULL, "temporary files");
    int status = view_runs_write(&v, f, e);
    rewind(f);
    char *text = status == EXIT_OK ? input_text_of(f, "the runs", MAX_TEXT_BYTES, e) : NULL;
    (void)fclose(f);
    if (text != NULL) {
        struct figure_input *in = &all->inputs[all->n_inputs++];
        *in = (struct figure_input){.path = "these runs", .tree = cJSON_Parse(text)};
        SIM_REQUIRE(in->tree != NULL, "a document of this program is JSON");
        in->about = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(in->tree, "about"), true);
        free(text);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : status;
}

static int write_page(const struct view_options *o, const struct figure_request *all, struct err *e)
{
    struct report_input in[FIGURE_MAX_INPUTS];
    struct report_figures none = {.n = 0};
    SCOPED(report_page_fini) struct report_page page = {.html = NULL};
    size_t n = 0;
    for (size_t i = 0; i < all->n_inputs && e->n == 0; i++) {
        report_take(&all->inputs[i], i, in, &n, true, e);
    }
    struct output *out =
        e->n == 0 && report_page_load(&page, all, true, e) == 0 ? output_open(o->path, e) : NULL;
    if (out != NULL) {
        report_write(&page, in, n, all, &none, output_stream(out));
        (void)output_close(out, true, e);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : EXIT_OK;
}

static int view(const struct view_options *o, struct err *e)
{
    SCOPED(figure_request_fini) struct figure_request all = {.n_inputs = 0};
    int status = o->policies.n > 0 ? simulate(o, &all, e) : EXIT_OK;
    for (uint32_t i = 0; i < o->files.n && status == EXIT_OK; i++) {
        (void)figure_input_add(&all, o->files.v[i], e);
    }
    if (status == EXIT_OK) {
        status = write_page(o, &all, e);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : status;
}

/* --json: the runs as data, to standard output. */
static int print_runs(const struct view_options *o, struct err *e)
{
    struct view_runs v = runs_of(o);
    return view_runs_write(&v, stdout, e);
}

static int run(void *values, struct err *e)
{
    const struct view_options *o = values;
    if (o->recompute && (o->policies.n < 2 || o->config.trace != NULL)) {
        return err_add(e, "--recompute compares two policies or more on a generated workload: it "
                          "does not go with --trace");
    }
    if (o->data) {
        return o->policies.n == 0 || o->files.n > 0 || o->path != NULL
                   ? err_add(e, "--json goes with --policy alone: it prints the runs as data")
                   : print_runs(o, e);
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
    OPTION_FLAG(OPTIONS, recompute, "recompute",
                "put the simulator into the page: whoever reads it drags the load and compares the "
                "policies again, without a network (needs `make wasm`)"),
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
