/* `xpusim view`: makes an interactive page of runs. */
#include "experiments/commands/commands.h"
#include "experiments/diff/diverge.h"
#include "experiments/report/report.h"
#include "experiments/report/schedule.h"
#include "experiments/run/about.h"
#include "experiments/run/job_options.h"
#include "experiments/run/models.h"
#include "experiments/run/runner.h"
#include "experiments/run/sandbox.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
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

/* ---- the runs as data (docs/schemas/view.json) ---- */

#define VIEW_VERSION 2
#define MAX_FILE_BYTES ((size_t)16 << 20)

/* One run, with the files for its part of the document and its decisions. */
struct one {
    const struct view_options *o;
    const struct config *config;
    const struct config_policy *policy;
    const struct trace *trace;
    FILE *text, *log; /* owned, temporary */
};

static void write_run(const struct one *x, const struct runner_result *r, struct schedule *s)
{
    uint64_t seed = x->o->config.seed;
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "policy", x->policy->label);
    about_document(&(struct about){"run", x->config, x->policy, x->trace, seed, false}, d);
    runner_document(x->config, x->policy, x->trace, seed, r, document_within(d, "result"));
    SCOPED(json_drop) cJSON *tree = document_json(d);
    OWNED char *text = json_text(tree, false);
    (void)fprintf(x->text, "%.*s,\"schedule\":", (int)strlen(text) - 1, text);
    schedule_write(s, x->text);
    (void)fputc('}', x->text);
    (void)fflush(x->text);
}

static int run_one(void *ctx, FILE *out UNUSED, struct err *e)
{
    const struct one *x = ctx;
    struct schedule_options o = {.from_ns = units_ns_from_s(x->o->from_s),
                                 .to_ns = units_ns_from_s(x->o->to_s)};
    runner_ranges(x->config, o.range);
    struct schedule *s = schedule_new(&x->config->soc.machine, x->trace, &o);
    for (uint32_t m = 0; m <= x->config->n_more; m++) {
        schedule_price(s, &models_roofline(x->config, m)->model);
    }
    struct runner_options opt = {
        .decision_log = x->log, .observer = schedule_observer(s), .series = schedule_explainer(s)};
    SCOPED(runner_result_fini) struct runner_result r;
    int status = EXIT_CHECK_FAILED;
    if (runner_run(x->config, x->policy, x->trace, x->o->config.seed, &opt, &r, e) == 0) {
        write_run(x, &r, s);
        status = EXIT_OK;
    } else if (e->n == 0) {
        (void)fprintf(stderr, "xpusim: error: %s: %s\n", x->policy->label, r.sim.message);
    }
    (void)fflush(x->log);
    runner_tell_printed(x->policy, r.printed_bytes);
    return status;
}

static void copy(FILE *from, FILE *to)
{
    char block[65536];
    rewind(from);
    for (size_t n; (n = fread(block, 1, sizeof block, from)) > 0;) {
        (void)fwrite(block, 1, n, to);
    }
}

/* Writes the first decision in which two runs differ, like `xpusim diff`. */
static void write_difference(struct one *x, uint32_t a, uint32_t b, FILE *out)
{
    struct divergence v;
    diverge_find(x[a].log, x[b].log, &v);
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "run_a", a, "run_b", b, "differs", v.differs, "decision", v.line, "a", v.a,
                    "b", v.b);
    struct document *context = document_array(d, "context");
    for (uint32_t i = 0; i < v.n_context; i++) {
        DOCUMENT_VALUES(context, NULL, v.context[i]);
    }
    SCOPED(json_drop) cJSON *tree = document_json(d);
    OWNED char *text = json_text(tree, false);
    (void)fputs(text, out);
}

/* ---- inputs of the page's own runs ---- */

/* Adds a file that was read, under the name that the page's program asks for: the path within the
 * data folder, or the given path. */
static void take_file(void *ctx, const char *path)
{
    cJSON *files = ctx;
    const char *data = datadir_path("");
    size_t n = strlen(data);
    const char *name = strncmp(path, data, n) == 0 ? path + n : path;
    name += strspn(name, "/");
    SCOPED(err_fini) struct err e = ERR_INIT;
    input_watch(NULL, NULL); /* not to add this reading */
    OWNED char *text =
        cJSON_HasObjectItem(files, name) ? NULL : input_text(path, MAX_FILE_BYTES, &e);
    input_watch(take_file, files);
    if (text != NULL) {
        cJSON_AddStringToObject(files, name, text);
    }
}

static void add_word(cJSON *list, const char *option, const char *word)
{
    OWNED char *dashed = xformat("--%s", option);
    cJSON_AddItemToArray(list, cJSON_CreateString(dashed));
    cJSON_AddItemToArray(list, cJSON_CreateString(word));
}

/* The command line of the comparison, without load and number of replications. */
static cJSON *arguments_of(const struct view_options *v)
{
    cJSON *list = cJSON_CreateArray();
    OWNED char *seed = xformat("%" PRIu64, v->config.seed);
    for (uint32_t i = 0; i < v->policies.n; i++) {
        add_word(list, "policy", v->policies.v[i]);
    }
    add_word(list, "seed", seed);
    struct config_word words[CONFIG_MAX_WORDS];
    uint32_t n = config_options_words(&v->config, words);
    for (uint32_t i = 0; i < n; i++) {
        add_word(list, words[i].option, words[i].value);
    }
    return list;
}

static void write_recompute(const struct view_options *o, cJSON *files, FILE *out)
{
    SCOPED(json_drop) cJSON *tree = cJSON_CreateObject();
    cJSON_AddItemToObject(tree, "arguments", arguments_of(o));
    cJSON_AddItemToObject(tree, "files", cJSON_Duplicate(files, true));
    OWNED char *text = json_text(tree, false);
    (void)fprintf(out, ",\"recompute\":%s", text);
}

static void write_all(struct one *x, uint32_t n, cJSON *files, FILE *out)
{
    struct about about = {"view", x[0].config, NULL, x[0].trace, x[0].o->config.seed, false};
    OWNED char *text = about_text(&about);
    (void)fprintf(out, "{\"about\":%s,\"version\":%d,\"runs\":[", text, VIEW_VERSION);
    for (uint32_t i = 0; i < n; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        copy(x[i].text, out);
    }
    (void)fputs("],\"differences\":[", out);
    for (uint32_t b = 1; b < n; b++) {
        for (uint32_t a = 0; a < b; a++) {
            (void)fputs(a + b > 1 ? "," : "", out);
            write_difference(x, a, b, out);
        }
    }
    (void)fputc(']', out);
    if (x[0].o->recompute) {
        write_recompute(x[0].o, files, out);
    }
    (void)fputs("}\n", out);
}

/* Writes {about, version, runs: [{policy, about, result, schedule}], differences: [{run_a, run_b,
 * differs, ...}], recompute: {arguments, files}}. Every policy runs once on the same requests; a
 * plug-in has its own process. Returns the exit status; unless it is 0, the output is incomplete.
 * Errors of runs are on stderr. */
static int write_runs(const struct view_options *o, FILE *out, struct err *e)
{
    SCOPED(config_fini) struct config c;
    OWNED struct config_policy *p = xcalloc(o->policies.n, sizeof *p);
    OWNED struct one *x = xcalloc(o->policies.n, sizeof *x);
    SCOPED(trace_fini) struct trace t = {0};
    uint32_t n = o->policies.n;
    int status = EXIT_OK;
    SCOPED(json_drop) cJSON *files = cJSON_CreateObject();
    input_watch(o->recompute ? take_file : NULL, files);
    (void)config_load(&c, &o->config, e);
    for (uint32_t i = 0; i < n; i++) {
        (void)config_policy_parse(&p[i], o->policies.v[i], e);
    }
    (void)config_trace(&o->config, o->config.seed, CONFIG_AS_WRITTEN, &t, e);
    input_watch(NULL, NULL);
    for (uint32_t i = 0; i < n && e->n == 0 && status == EXIT_OK; i++) {
        x[i] = (struct one){o, &c, &p[i], &t, tmpfile(), tmpfile()};
        SIM_REQUIRE(x[i].text != NULL && x[i].log != NULL, "temporary files");
        struct sandbox box = {.policy = o->policies.v[i],
                              .time_limit_s = o->work.how.cpu_limit_s,
                              .ctx = &x[i],
                              .work = run_one};
        status = sandbox_run(&box, NULL, e);
    }
    if (e->n == 0 && status == EXIT_OK) {
        write_all(x, n, files, out);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (x[i].text != NULL) {
            (void)fclose(x[i].text);
            (void)fclose(x[i].log);
        }
    }
    return e->n > 0 ? EXIT_BAD_INPUT : status;
}

/* ---- the page ---- */

#define MAX_TEXT_BYTES ((size_t)1 << 30)

/* Simulates, and adds the runs as the page's first input. */
static int simulate(const struct view_options *o, struct figure_request *all, struct err *e)
{
    SCOPED(input_drop) FILE *f = tmpfile();
    SIM_REQUIRE(f != NULL, "temporary files");
    int status = write_runs(o, f, e);
    rewind(f);
    OWNED char *text = status == EXIT_OK ? input_text_of(f, "the runs", MAX_TEXT_BYTES, e) : NULL;
    if (text != NULL) {
        cJSON *tree = cJSON_Parse(text);
        SIM_REQUIRE(tree != NULL, "a document of this program is JSON");
        (void)figure_input_take(all, "these runs", tree, e);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : status;
}

static int write_page(const struct view_options *o, const struct figure_request *all, struct err *e)
{
    struct report_input in[FIGURE_MAX_INPUTS];
    struct report_figures none = {.n = 0};
    struct report_page page = {.html = NULL};
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
    struct figure_request all = {.n_inputs = 0};
    int status = o->policies.n > 0 ? simulate(o, &all, e) : EXIT_OK;
    for (uint32_t i = 0; i < o->files.n && status == EXIT_OK; i++) {
        (void)figure_input_add(&all, o->files.v[i], e);
    }
    if (status == EXIT_OK) {
        status = write_page(o, &all, e);
    }
    return e->n > 0 ? EXIT_BAD_INPUT : status;
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
                   : write_runs(o, stdout, e);
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
                "put the simulator into the page: a reader can drag the load and compare the "
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
