#include "experiments/commands/view_runs.h"

#include "experiments/diff/diverge.h"
#include "experiments/report/schedule.h"
#include "experiments/run/about.h"
#include "experiments/run/runner.h"
#include "experiments/run/sandbox.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"

#define VIEW_VERSION 2
#define MAX_FILE_BYTES ((size_t)16 << 20)

/* One run, and where its part of the document and its decisions go. */
struct one {
    const struct view_runs *v;
    const struct config *config;
    const struct config_policy *policy;
    const struct trace *trace;
    FILE *text, *log; /* owned, temporary */
};

static void write_run(const struct one *x, const struct runner_result *r, struct schedule *s)
{
    uint64_t seed = x->v->config->seed;
    SCOPED(document_drop) struct document *d = document_new();
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

static int simulate(void *ctx, FILE *out, struct err *e)
{
    const struct one *x = ctx;
    struct schedule_options o = {.from_ns = units_ns_from_s(x->v->from_s),
                                 .to_ns = units_ns_from_s(x->v->to_s)};
    runner_ranges(x->config, o.range);
    struct schedule *s =
        schedule_new(&x->config->soc.machine, x->trace, &x->config->truth.model, &o);
    struct runner_options opt = {
        .decision_log = x->log, .observer = schedule_observer(s), .series = schedule_explainer(s)};
    SCOPED(runner_result_fini) struct runner_result r;
    (void)out;
    int status = EXIT_CHECK_FAILED;
    if (runner_run(x->config, x->policy, x->trace, x->v->config->seed, &opt, &r, e) == 0) {
        write_run(x, &r, s);
        status = EXIT_OK;
    } else if (e->n == 0) {
        (void)fprintf(stderr, "xpusim: error: %s: %s\n", x->policy->label, r.sim.message);
    }
    (void)fflush(x->log);
    runner_tell_printed(x->policy, r.printed_bytes);
    schedule_free(s);
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

/* The first decision in which two of the runs differ, as `xpusim diff` finds it. */
static void write_difference(struct one *x, uint32_t a, uint32_t b, FILE *out)
{
    struct divergence v;
    diverge_find(x[a].log, x[b].log, &v);
    SCOPED(document_drop) struct document *d = document_new();
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

/* ---- what the page needs to compute ---- */

/* A file that was read, by the name that the page's program asks for: below the data folder its
 * path there, else its path as given. */
static void take_file(void *ctx, const char *path)
{
    cJSON *files = ctx;
    const char *data = datadir_path("");
    size_t n = strlen(data);
    const char *name = strncmp(path, data, n) == 0 ? path + n : path;
    name += strspn(name, "/");
    SCOPED(err_fini) struct err e = ERR_INIT;
    input_watch(NULL, NULL); /* this is no reading of the run's */
    OWNED char *text =
        cJSON_HasObjectItem(files, name) ? NULL : input_text(path, MAX_FILE_BYTES, &e);
    input_watch(take_file, files);
    if (text != NULL) {
        cJSON_AddStringToObject(files, name, text);
    }
}

static void add_word(cJSON *list, const char *option, const char *word)
{
    if (word != NULL) {
        cJSON_AddItemToArray(list, cJSON_CreateString(option));
        cJSON_AddItemToArray(list, cJSON_CreateString(word));
    }
}

/* The comparison's command line, without its load and number of replications. */
static cJSON *arguments_of(const struct view_runs *v)
{
    const struct config_options *o = v->config;
    cJSON *list = cJSON_CreateArray();
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, o->seed);
    for (uint32_t i = 0; i < v->policies->n; i++) {
        add_word(list, "--policy", v->policies->v[i]);
    }
    add_word(list, "--soc", o->soc);
    add_word(list, "--llm", o->llm);
    add_word(list, "--workload", o->workload);
    add_word(list, "--machine", o->machine);
    add_word(list, "--seed", seed);
    for (uint32_t i = 0; i < o->n_sets; i++) {
        add_word(list, "--set", o->sets[i]);
    }
    return list;
}

static void write_recompute(const struct view_runs *v, cJSON *files, FILE *out)
{
    SCOPED(json_drop) cJSON *tree = cJSON_CreateObject();
    cJSON_AddItemToObject(tree, "arguments", arguments_of(v));
    cJSON_AddItemToObject(tree, "files", cJSON_Duplicate(files, true));
    OWNED char *text = json_text(tree, false);
    (void)fprintf(out, ",\"recompute\":%s", text);
}

static void write_all(struct one *x, uint32_t n, cJSON *files, FILE *out)
{
    struct about about = {"view", x[0].config, NULL, x[0].trace, x[0].v->config->seed, false};
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
    if (x[0].v->recompute) {
        write_recompute(x[0].v, files, out);
    }
    (void)fputs("}\n", out);
}

int view_runs_write(const struct view_runs *v, FILE *out, struct err *e)
{
    SCOPED(config_fini) struct config c;
    OWNED struct config_policy *p = xcalloc(v->policies->n, sizeof *p);
    OWNED struct one *x = xcalloc(v->policies->n, sizeof *x);
    SCOPED(trace_fini) struct trace t = {0};
    uint32_t n = v->policies->n;
    int status = EXIT_OK;
    SCOPED(json_drop) cJSON *files = cJSON_CreateObject();
    input_watch(v->recompute ? take_file : NULL, files);
    (void)config_load(&c, v->config, e);
    for (uint32_t i = 0; i < n; i++) {
        (void)config_policy_parse(&p[i], v->policies->v[i], e);
    }
    (void)config_trace(v->config, v->config->seed, CONFIG_AS_WRITTEN, &t, e);
    input_watch(NULL, NULL);
    for (uint32_t i = 0; i < n && e->n == 0 && status == EXIT_OK; i++) {
        x[i] = (struct one){v, &c, &p[i], &t, tmpfile(), tmpfile()};
        SIM_REQUIRE(x[i].text != NULL && x[i].log != NULL, "temporary files");
        struct sandbox box = {.policy = v->policies->v[i],
                              .time_limit_s = v->time_limit_s,
                              .ctx = &x[i],
                              .work = simulate};
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
