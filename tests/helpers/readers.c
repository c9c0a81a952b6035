#define _XOPEN_SOURCE 700 /* realpath */
#include "tests/helpers/readers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/claims/claims.h"
#include "experiments/claims/fit.h"
#include "experiments/commands/commands.h"
#include "experiments/compare/stored.h"
#include "experiments/diff/diverge.h"
#include "experiments/gate/gate.h"
#include "experiments/report/report.h"
#include "experiments/run/config.h"
#include "experiments/run/expr.h"
#include "experiments/run/runner.h"
#include "experiments/store/store.h"
#include "experiments/sweep/spec.h"
#include "experiments/validation/points.h"
#include "hwmodels/conformal.h"
#include "hwmodels/kernel_rows.h"
#include "hwmodels/llm_gguf.h"
#include "hwmodels/speculation_data.h"
#include "plots/figure.h"
#include "policies/replay.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "traces/agents.h"
#include "traces/arrivals.h"
#include "traces/measured.h"
#include "traces/traces.h"

/* ---- traces and data sets ---- */

static int read_trace(const char *path, struct err *e)
{
    struct trace t;
    int rc = trace_read(path, &t, e);
    trace_fini(&t);
    return rc;
}

/* Recognizes the format by the file, as `trace import FILE` does. */
static int read_import(const char *path, struct err *e)
{
    struct trace t;
    struct trace_import_options o = TRACE_IMPORT_DEFAULTS;
    o.rate_per_min = 10.0;
    o.link = true;
    int rc = trace_import(&o, path, &t, NULL, e);
    trace_fini(&t);
    return rc;
}

#define IMPORTER(name, format_)                                                                    \
    static int read_##name(const char *path, struct err *e)                                        \
    {                                                                                              \
        struct trace t;                                                                            \
        struct trace_import_options o = TRACE_IMPORT_DEFAULTS;                                     \
        o.format = (format_);                                                                      \
        o.rate_per_min = 10.0;                                                                     \
        int rc = trace_import(&o, path, &t, NULL, e);                                              \
        trace_fini(&t);                                                                            \
        return rc;                                                                                 \
    }
IMPORTER(agentic_mooncake, "agentic-mooncake")
IMPORTER(aiperf, "aiperf")
IMPORTER(azure, "azure")
IMPORTER(bailian, "bailian")
IMPORTER(burstgpt, "burstgpt")
IMPORTER(claude_code, "claude-code")
IMPORTER(codex, "codex")
IMPORTER(copilot, "copilot")
IMPORTER(dynamo, "dynamo")
IMPORTER(tracelab, "tracelab")
IMPORTER(genai_perf, "genai-perf")
IMPORTER(guidellm, "guidellm")
IMPORTER(inference_perf, "inference-perf")
IMPORTER(mooncake, "mooncake")
IMPORTER(openai, "openai")
IMPORTER(otel, "otel")
IMPORTER(plain, "plain")
IMPORTER(sharegpt, "sharegpt")
IMPORTER(splitwise, "splitwise")
IMPORTER(vidur, "vidur")
IMPORTER(vllm, "vllm")
IMPORTER(weka, "weka")

static int read_dataset(const char *path, struct err *e)
{
    struct dataset d;
    int rc = dataset_load(path, &d, e);
    dataset_fini(&d);
    return rc;
}

static int read_events(const char *path, struct err *e)
{
    struct events ev;
    int rc = events_load(path, &ev, e);
    events_fini(&ev);
    return rc;
}

/* Thousands of seconds of arrivals are fine, and slow. */
static int read_workload(char *text, struct err *e)
{
    size_t digits = 0;
    for (const char *p = text; *p != '\0'; p++) {
        digits = *p >= '0' && *p <= '9' ? digits + 1 : 0;
        bool exponent = (*p == 'e' || *p == 'E' || *p == 'x' || *p == 'X' || *p == 'p') &&
                        p[1] >= '0' && p[1] <= '9';
        if (digits > 4 || exponent) {
            return 0;
        }
    }
    struct trace t;
    int rc = trace_generate(text, 1, 1e-3, &t, e);
    trace_fini(&t);
    return rc;
}

/* A small trace: what is larger is refused in the same way. */
static int read_agents(const char *path, struct err *e)
{
    cJSON *tree = json_read_file(path, e);
    if (tree == NULL) {
        return -1;
    }
    struct agents a;
    struct trace t = {0};
    int rc = agents_read(tree, path, &a, e);
    rc = rc == 0 ? agents_generate(&a, 1, 1.0, 2000, &t, e) : rc;
    trace_fini(&t);
    agents_fini(&a);
    return rc;
}

/* ---- machines, models, settings ---- */

/* Two requests on what was loaded. A run may fail, saying why, but its books add up. */
static void try_run(const struct config *c, const struct config_policy *p, const char *workload,
                    const void *context)
{
    struct config_options o = config_options_default();
    struct err e = ERR_INIT;
    struct trace t;
    struct runner_result r;
    struct runner_options how = {.policy_context = context};
    o.workload = workload;
    int rc = config_trace(&o, 1, (struct config_arrivals){0}, &t, &e);
    SIM_REQUIRE(rc == 0, "%s", workload);
    rc = runner_run(c, p, &t, 1, &how, &r, &e);
    SIM_REQUIRE(rc != 0 || r.sim.audit.clean, "audit");
    SIM_REQUIRE(rc == 0 || strstr(r.sim.message, "audit failed") == NULL, "%s", r.sim.message);
    runner_result_fini(&r);
    trace_fini(&t);
    err_fini(&e);
}

static int load_and_run(const struct config_options *o, struct err *e)
{
    static struct config c;
    static struct config_policy p;
    int rc = config_load(&c, o, e);
    if (rc == 0 && config_policy_parse(&p, "agent-xpu-v2", e) == 0) {
        try_run(&c, &p, "w1:n=2", NULL);
    }
    config_fini(&c);
    return rc;
}

static int read_soc(const char *path, struct err *e)
{
    struct config_options o = config_options_default();
    o.soc = path;
    return load_and_run(&o, e);
}

static int read_llm(const char *path, struct err *e)
{
    struct config_options o = config_options_default();
    o.llm = path;
    return load_and_run(&o, e);
}

static int read_gguf(const char *path, struct err *e)
{
    cJSON *tree = llm_gguf_tree(path, "fuzzed", e);
    cJSON_Delete(tree);
    return tree == NULL ? -EINVAL : 0;
}

static int read_settings(char *text, struct err *e)
{
    struct config_options o = config_options_default();
    char *save = NULL;
    for (char *s = strtok_r(text, "\n", &save); s != NULL && o.n_sets < 16;
         s = strtok_r(NULL, "\n", &save)) {
        if (strchr(s, '=') != NULL) { /* the option's row asks for it */
            o.sets[o.n_sets++] = s;
        }
    }
    return load_and_run(&o, e);
}

static int read_policy(char *text, struct err *e)
{
    static struct config_policy p;
    if (strstr(text, ".so") != NULL || strncmp(text, "exec:", 5) == 0 ||
        strncmp(text, "python:", 7) == 0) {
        return 0; /* code, and programs: one that says nothing may do so for 30 s (limit_s) */
    }
    return config_policy_parse(&p, text, e);
}

static int read_decisions(const char *path, struct err *e)
{
    static struct config c;
    struct replay *log = replay_read(path, e);
    if (log == NULL) {
        return -1;
    }
    FILE *f = fopen(path, "rb"); /* bisect reads two logs: here the same one twice */
    FILE *g = fopen(path, "rb");
    struct divergence d;
    diverge_find(f, g, &d);
    SIM_REQUIRE(!d.differs, "a log differs from itself");
    (void)fclose(f);
    (void)fclose(g);
    struct config_options o = config_options_default();
    struct config_policy p = {.ops = replay_policy(log), .label = "replay"};
    struct err none = ERR_INIT;
    int rc = config_load(&c, &o, &none);
    SIM_REQUIRE(rc == 0, "the default machine");
    try_run(&c, &p, "w1:n=2", log);
    config_fini(&c);
    replay_free(log);
    return 0;
}

/* ---- measurements ---- */

static int read_points(const char *path, struct err *e)
{
    struct points p;
    int rc = points_read(path, &p, e);
    return rc;
}

static int read_measured_run(const char *path, struct err *e)
{
    struct measured_run r = {0};
    int rc = measured_run_read(path, &r, e);
    trace_fini(&r.trace);
    return rc;
}

static int read_kernel_rows(const char *path, struct err *e)
{
    struct kernel_rows r;
    r = (struct kernel_rows){.n = 0};
    int rc = kernel_rows_read(&r, path, e);
    return rc;
}

static int read_residuals(const char *path, struct err *e)
{
    struct conformal c;
    int rc = conformal_read(path, &c, e);
    return rc;
}

/* The shipped folder of speculation data with one file of it replaced. */
static int read_speculation(const char *path, const char *replaced, struct err *e)
{
    static const char *const files[] = {"ablation.csv", "acceptance.csv", "constants.json",
                                        "rejection_causes.csv"};
    static struct speculation_data data;
    char dir[READER_PATH_BYTES + 8];
    char name[READER_PATH_BYTES + 64];
    (void)snprintf(dir, sizeof dir, "%s.d", path);
    SIM_REQUIRE(mkdir(dir, 0700) == 0, "%s", dir);
    for (int i = 0; i < 4; i++) {
        char *target = NULL;
        (void)snprintf(name, sizeof name, "%s/%s", SPECULATION_DIR, files[i]);
        if (strcmp(files[i], replaced) != 0) {
            target = realpath(datadir_path(name), NULL);
        }
        (void)snprintf(name, sizeof name, "%s/%s", dir, files[i]);
        int rc = symlink(target != NULL ? target : path, name);
        SIM_REQUIRE(rc == 0, "%s", name);
        free(target);
    }
    int rc = speculation_data_read(dir, &data, e);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", dir, files[i]);
        (void)unlink(name);
    }
    (void)rmdir(dir);
    return rc;
}

static int read_ablation(const char *path, struct err *e)
{
    return read_speculation(path, "ablation.csv", e);
}

static int read_acceptance(const char *path, struct err *e)
{
    return read_speculation(path, "acceptance.csv", e);
}

static int read_constants(const char *path, struct err *e)
{
    return read_speculation(path, "constants.json", e);
}

static int read_rejections(const char *path, struct err *e)
{
    return read_speculation(path, "rejection_causes.csv", e);
}

/* ---- experiments ---- */

static int read_claims(const char *path, struct err *e)
{
    struct claims c = {0};
    int rc = claims_read(&c, path, e);
    claims_fini(&c);
    return rc;
}

static int read_fit(const char *path, struct err *e)
{
    static struct fit_parameters p;
    int rc = fit_parameters_read(&p, path, NULL, 0, e);
    return rc;
}

static int read_spec(const char *path, struct err *e)
{
    struct spec s;
    struct spec_point p = {0};
    int rc = spec_load(&s, path, false, e);
    if (rc == 0) { /* what a point asks for may still be refused */
        struct err own = ERR_INIT;
        (void)spec_point(&s, s.n_points - 1, &p, &own);
        cJSON_Delete(spec_point_settings(&s, s.n_points - 1));
        err_fini(&own);
    }
    return rc;
}

static int read_gate(const char *path, struct err *e)
{
    static struct gate_baseline b;
    struct gate_report r;
    int rc = gate_baseline_read(path, &b, e);
    if (rc == 0) { /* against what it holds itself */
        gate_judge(&b, &b.recorded, &b.recorded, true, &r);
    }
    return rc;
}

/* A store is a database file: damage is found by SQLite or by what is read. */
static int read_store(const char *path, struct err *e)
{
    struct store *s = store_open(path, STORE_USE_READ, e);
    if (s == NULL) {
        return -1;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = memory_stream(&text, &size);
    store_export(s, 0, "csv", out);
    store_export(s, 0, "json", out);
    struct option_texts usual = {0};
    struct stored_options how = {.metrics = &usual, .every = true};
    struct document *d = document_new();
    (void)stored_compare(s, &how, document_array(d, ""), e);
    memory_stream_close(out, &text);
    free(text);
    (void)store_close(s, e);
    return e->n > 0 ? -1 : 0;
}

static int no_names(void *ctx, const char *name, double *out, char *message)
{
    (void)ctx;
    *out = (double)strlen(name);
    (void)snprintf(message, EXPR_MESSAGE_BYTES, "%.40s", name);
    return name[0] == 'z' ? -1 : 0;
}

static int read_expr(char *text, struct err *e)
{
    char message[EXPR_MESSAGE_BYTES];
    struct expr_names names = {NULL, no_names};
    double x;
    int rc = expr_eval(text, &names, &x, message);
    return rc == 0 ? 0 : err_add(e, "%s", message);
}

/* ---- results ---- */

/* The first line names a figure; the rest is what it reads, up to the data it would draw. */
static int read_figure(const char *path, struct err *e)
{
    char name[64] = "";
    char rest[READER_PATH_BYTES + 8];
    char bytes[4096];
    (void)snprintf(rest, sizeof rest, "%s.in", path);
    FILE *in = fopen(path, "rb");
    FILE *out = fopen(rest, "wb");
    SIM_REQUIRE(in != NULL && out != NULL, "%s", rest);
    const struct figure *figure = fgets(name, sizeof name, in) == NULL
                                      ? NULL
                                      : (name[strcspn(name, "\n")] = '\0', figure_find(name));
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;) {
        (void)fwrite(bytes, 1, n, out);
    }
    (void)fclose(in);
    (void)fclose(out);
    int rc = 0;
    if (figure != NULL) {
        static struct figure_request q;
        q = (struct figure_request){.n_inputs = 0};
        struct figure_data d;
        (void)figure_input_add(&q, rest, e);
        figure_data_init(&d);
        rc = figure_prepare(figure, &q, &d, e);
        figure_data_fini(&d);
    }
    (void)unlink(rest);
    return rc;
}

static int read_report(const char *path, struct err *e)
{
    static const struct figure_request none;
    static const struct report_figures no_figures;
    cJSON *tree = json_read_file(path, e);
    if (tree == NULL) {
        return -1;
    }
    struct report_input in = {path, tree, 0};
    int rc = report_check(&in, e);
    if (rc == 0) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = memory_stream(&text, &size);
        struct report_page page;
        (void)report_page_load(&page, &none, true, e);
        report_write(&page, &in, 1, &none, &no_figures, out);
        memory_stream_close(out, &text);
        free(text);
    }
    cJSON_Delete(tree);
    return rc;
}

/* ---- the command line ---- */

/* A word per line, the command first. Nothing is run. */
static int read_arguments(char *text, struct err *e)
{
    char *argv[64];
    int argc = 0;
    char *save = NULL;
    for (char *s = strtok_r(text, "\n", &save); s != NULL && argc < 63;
         s = strtok_r(NULL, "\n", &save)) {
        argv[argc++] = s;
    }
    argv[argc] = NULL;
    const struct command *c = argc > 0 ? command_find(argv[0], e) : NULL;
    if (c == NULL || c->run == NULL) {
        return e->n > 0 ? -1 : 0;
    }
    int rc = options_parse(c, argc, argv, xkept(xcalloc(1, c->bytes)), e);
    if (rc > 0) { /* it printed help, also when it found other errors */
        err_fini(e);
    }
    return rc < 0 ? rc : 0;
}

const struct reader readers[] = {
    {"ablation", "hwmodels/speculation/ablation.csv", 2000, read_ablation, NULL},
    {"acceptance", "hwmodels/speculation/acceptance.csv", 3000, read_acceptance, NULL},
    {"agentic-mooncake", NULL, 2000, read_agentic_mooncake, NULL},
    {"agents", "traces/workloads/desktop-assistant.json", 4000, read_agents, NULL},
    {"aiperf", NULL, 2000, read_aiperf, NULL},
    {"arguments", NULL, 400, NULL, read_arguments},
    {"azure", NULL, 1000, read_azure, NULL},
    {"bailian", NULL, 2000, read_bailian, NULL},
    {"burstgpt", NULL, 1000, read_burstgpt, NULL},
    {"claims", NULL, 3000, read_claims, NULL},
    {"claude-code", NULL, 2000, read_claude_code, NULL},
    {"codex", NULL, 2000, read_codex, NULL},
    {"copilot", NULL, 2000, read_copilot, NULL},
    {"constants", "hwmodels/speculation/constants.json", 8000, read_constants, NULL},
    {"dataset", NULL, 2000, read_dataset, NULL},
    {"decisions", NULL, 4000, read_decisions, NULL},
    {"dynamo", NULL, 2000, read_dynamo, NULL},
    {"events", NULL, 1000, read_events, NULL},
    {"expr", NULL, 200, NULL, read_expr},
    {"figure", NULL, 3000, read_figure, NULL},
    {"fit", "experiments/claims/open-125h.json", 4000, read_fit, NULL},
    {"gate", NULL, 3000, read_gate, NULL},
    {"genai-perf", NULL, 2000, read_genai_perf, NULL},
    {"gguf", NULL, 4000, read_gguf, NULL},
    {"guidellm", NULL, 2000, read_guidellm, NULL},
    {"hugging-face", NULL, 2000, read_llm, NULL},
    {"import", NULL, 2000, read_import, NULL},
    {"inference-perf", NULL, 2000, read_inference_perf, NULL},
    {"kernel-rows", NULL, 3000, read_kernel_rows, NULL},
    {"llm", "hwmodels/llm/llama-3.2-3b.json", 1500, read_llm, NULL},
    {"measured-run", NULL, 2000, read_measured_run, NULL},
    {"mooncake", NULL, 2000, read_mooncake, NULL},
    {"openai", NULL, 2000, read_openai, NULL},
    {"otel", NULL, 2000, read_otel, NULL},
    {"plain", NULL, 1000, read_plain, NULL},
    {"points", NULL, 3000, read_points, NULL},
    {"policy", NULL, 300, NULL, read_policy},
    {"rejections", "hwmodels/speculation/rejection_causes.csv", 500, read_rejections, NULL},
    {"report", NULL, 4000, read_report, NULL},
    {"residuals", NULL, 3000, read_residuals, NULL},
    {"settings", NULL, 300, NULL, read_settings},
    {"sharegpt", NULL, 2000, read_sharegpt, NULL},
    {"soc", "hwmodels/soc/w1-reference.json", 12000, read_soc, NULL},
    {"spec", NULL, 2000, read_spec, NULL},
    {"splitwise", NULL, 1000, read_splitwise, NULL},
    {"store", NULL, 100000, read_store, NULL},
    {"trace", NULL, 2000, read_trace, NULL},
    {"tracelab", NULL, 2000, read_tracelab, NULL},
    {"vidur", NULL, 1000, read_vidur, NULL},
    {"vllm", NULL, 2000, read_vllm, NULL},
    {"weka", NULL, 2000, read_weka, NULL},
    {"workload", NULL, 300, NULL, read_workload},
};
const size_t n_readers = sizeof readers / sizeof readers[0];

const struct reader *reader_find(const char *name)
{
    for (size_t i = 0; i < n_readers; i++) {
        if (strcmp(readers[i].name, name) == 0) {
            return &readers[i];
        }
    }
    return NULL;
}

/* In memory where the system has such a folder. The ending is that of a SoC file's path; the
 * others do not ask for one. */
static const char *input_path(void)
{
    static char path[READER_PATH_BYTES];
    if (path[0] == '\0') {
        (void)snprintf(path, sizeof path, "%s/xpusim-input-%ld.json",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    }
    return path;
}

int reader_try(const struct reader *r, const void *bytes, size_t n)
{
    struct err e = ERR_INIT;
    int rc;
    if (r->text != NULL) {
        char *text = xmalloc(n + 1);
        memcpy(text, bytes, n);
        text[n] = '\0';
        rc = r->text(text, &e);
        free(text);
    } else {
        FILE *f = fopen(input_path(), "wb");
        SIM_REQUIRE(f != NULL, "%s", input_path());
        size_t written = fwrite(bytes, 1, n, f);
        SIM_REQUIRE(fclose(f) == 0 && written == n, "%s", input_path());
        rc = r->file(input_path(), &e);
    }
    SIM_REQUIRE((rc == 0) == (e.n == 0), "%s: answer %d with %zu messages (%s)", r->name, rc, e.n,
                e.n > 0 ? e.lines[0] : "");
    err_fini(&e);
    return rc;
}

void readers_fini(void)
{
    (void)unlink(input_path());
}
