/* `xpusim drive`: policies on real engines; calibration from what ran; simulation against it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiments/commands/commands.h"
#include "experiments/drive/against.h"
#include "experiments/drive/fit.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/output.h"

struct drive_values {
    struct config_options config;
    struct real_options real;
    struct option_output output;
    struct option_texts policies, calibrate;
    const char *kernels, *tokens, *requests, *out, *datasheet;
    uint32_t repeat;
    bool compare, no_realtime;
};

static const char *const engines[] = {"ggml", "openvino", "mixed", NULL};
static const char *const clocks[] = {"wall", "cpu", NULL};
static const struct config_arrivals as_written = {1.0, 1.0, false};

/* ---- what a real run says of itself ---- */

static void print_times(FILE *out, const char *what, const struct drive_times *t)
{
    if (t->n > 0) {
        (void)fprintf(out, "  %-34s %9.1f us mean, %9.1f us worst of %llu\n", what,
                      drive_mean_ns(t) / 1e3, t->max_ns / 1e3, (unsigned long long)t->n);
    }
}

static void print_report(const struct real_run *r, const struct machine *m, FILE *out)
{
    static const char *const stops[DRIVE_YIELDS] = {"stop at the next kernel",
                                                    "stop at the next op", "stop at the next layer",
                                                    "stop at the end"};
    (void)fprintf(out, "ran %.2f s, others had %.1f %% of the processors%s, load %.1f, %s\n",
                  r->end_s, 100.0 * (r->foreign_frac + r->steal_frac),
                  real_disturbed(r) ? " (disturbed)" : "", r->load_before,
                  r->report.realtime ? "SCHED_FIFO" : "usual priority");
    for (uint32_t i = 0; i < m->n_devices; i++) {
        (void)fprintf(out, "  %s busy %.1f %%\n", m->devices[i].name,
                      r->end_s > 0.0 ? (double)r->report.busy_ns[i] / 1e7 / r->end_s : 0.0);
    }
    print_times(out, "schedule, per instant", &r->report.schedule);
    print_times(out, "launch to first kernel", &r->report.submit);
    print_times(out, "last kernel to host", &r->report.completion);
    print_times(out, "sampling, per pass", &r->report.tail);
    for (int y = 0; y < DRIVE_YIELDS; y++) {
        print_times(out, stops[y], &r->report.stop[y]);
    }
    print_times(out, "reset", &r->report.reset);
    for (size_t i = 0; i < r->report.n_residents && i < 8; i++) {
        static const char *const works[] = {"compile of tokens", "swap out of bytes",
                                            "swap in of bytes"};
        const struct drive_resident_time *t = &r->report.residents[i];
        (void)fprintf(out, "  %s %.0f: %.2f ms\n", works[t->work], t->size, (double)t->ns / 1e6);
    }
    (void)fprintf(out, "  tokens %016llx\n", (unsigned long long)r->report.token_hash);
}

static cJSON *times_to_json(const struct drive_times *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "n", (double)t->n);
    cJSON_AddNumberToObject(o, "mean_us", drive_mean_ns(t) / 1e3);
    cJSON_AddNumberToObject(o, "max_us", t->max_ns / 1e3);
    return o;
}

static cJSON *executor_to_json(const struct drive_values *o, const struct drive_options *d,
                               const struct machine *m, const struct real_run *r)
{
    char text[512];
    cJSON *x = cJSON_CreateObject();
    cJSON_AddStringToObject(x, "clock", o->real.clock);
    cJSON_AddStringToObject(x, "engines", real_describe(d, m, text, sizeof text));
    cJSON_AddBoolToObject(x, "realtime", r->report.realtime);
    cJSON_AddNumberToObject(x, "foreign_frac", r->foreign_frac);
    cJSON_AddNumberToObject(x, "steal_frac", r->steal_frac);
    cJSON_AddNumberToObject(x, "load_before", r->load_before);
    cJSON_AddBoolToObject(x, "disturbed", real_disturbed(r));
    cJSON_AddItemToObject(x, "schedule", times_to_json(&r->report.schedule));
    cJSON_AddItemToObject(x, "submit", times_to_json(&r->report.submit));
    cJSON_AddItemToObject(x, "completion", times_to_json(&r->report.completion));
    cJSON_AddItemToObject(x, "sampling", times_to_json(&r->report.tail));
    static const char *const stops[DRIVE_YIELDS] = {"stop_kernel", "stop_op", "stop_layer",
                                                    "stop_pass"};
    for (int y = 0; y < DRIVE_YIELDS; y++) {
        cJSON_AddItemToObject(x, stops[y], times_to_json(&r->report.stop[y]));
    }
    cJSON_AddItemToObject(x, "reset", times_to_json(&r->report.reset));
    (void)snprintf(text, sizeof text, "%016llx", (unsigned long long)r->report.token_hash);
    cJSON_AddStringToObject(x, "tokens", text);
    return x;
}

static int write_kernels(const char *path, const struct drive_report *r, const struct machine *m,
                         struct err *e)
{
    static const char *const ops[OP_KIND_COUNT] = {"qkv", "mha", "ffn", "head", "layer"};
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    FILE *f = output_stream(out);
    (void)fprintf(f, "launch,device,op,layer,rows,padded_rows,sequences,pass_rows,prefill_rows,"
                     "pairs,keys,begin_s,us,stopped\n");
    for (size_t i = 0; i < r->n_kernels; i++) {
        const struct drive_kernel *k = &r->kernels[i];
        (void)fprintf(f, "%u,%s,%s,%u,%u,%u,%u,%u,%u,%llu,%llu,%.9f,%.3f,%d\n", k->launch,
                      m->devices[k->device].name, ops[k->op], k->layer, k->rows, k->padded_rows,
                      k->sequences, k->shape_rows, k->prefill_rows, (unsigned long long)k->pairs,
                      (unsigned long long)k->keys, (double)k->begin_ns / 1e9, (double)k->ns / 1e3,
                      k->stopped);
    }
    return output_close(out, true, e);
}

static int failed(const struct real_run *r)
{
    (void)fprintf(stderr, "xpusim: error: %s\n", r->message);
    return EXIT_CHECK_FAILED;
}

static void print_json(cJSON *root)
{
    char *text = cJSON_Print(root);
    (void)printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(root);
}

/* ---- one policy ---- */

static int drive_one(const struct drive_values *o, struct drive_options *d, const struct config *c,
                     const struct trace *t, struct err *e)
{
    struct config_policy p;
    if (config_policy_parse(&p, o->policies.v[0], e) != 0) {
        return EXIT_BAD_INPUT;
    }
    struct output *tokens = o->tokens == NULL ? NULL : output_open(o->tokens, e);
    if (o->tokens != NULL && tokens == NULL) {
        return EXIT_BAD_INPUT;
    }
    d->tokens = tokens == NULL ? NULL : output_stream(tokens);
    int status = EXIT_OK;
    for (uint32_t k = 0; k < o->repeat && status == EXIT_OK; k++) {
        struct real_run r;
        struct runner_result result;
        struct runner_options opt = {.requests_csv = o->requests};
        if (real_execute(d, c, &p, t, o->config.seed, &opt, &result, &r, e) != 0) {
            status = failed(&r);
        } else {
            struct document *said = document_new();
            cJSON *executor = executor_to_json(o, d, &c->soc.machine, &r);
            runner_document(c, &p, t, o->config.seed, &result, said);
            document_tree(said, "executor", executor);
            document_print(said, &o->output, stdout);
            document_free(said);
            cJSON_Delete(executor);
            if (!o->output.json) {
                (void)printf("\n");
                print_report(&r, &c->soc.machine, stdout);
            }
        }
        if (o->kernels != NULL) {
            (void)write_kernels(o->kernels, &r.report, &c->soc.machine, e);
        }
        runner_result_fini(&result);
        real_run_fini(&r);
    }
    return output_close(tokens, true, e) == 0 ? status : EXIT_BAD_INPUT;
}

/* ---- calibration ---- */

static double output_tokens(const struct trace *t)
{
    double n = 0.0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->rows[i].output_tokens;
    }
    return n;
}

static void print_fit(const struct fit *f, const struct machine *m, FILE *out)
{
    (void)fprintf(out, "%u runs, %u of them disturbed\n", f->n_runs, f->n_disturbed);
    for (uint32_t i = 0; i < f->n_parts; i++) {
        const struct fit_part *p = &f->parts[i];
        (void)fprintf(out,
                      "  %-5s %-12s %6u kernels, |error| %5.1f %% median %5.1f %% P90, lack of "
                      "fit p = %.2g%s",
                      m->devices[p->device].name, p->name, p->n, 100.0 * p->median_frac,
                      100.0 * p->p90_frac, p->lack_of_fit_p,
                      p->borrowed ? ", from another device" : "");
        if (p->lost > 0) {
            (void)fprintf(out, ", %u lost their core", p->lost);
        }
        (void)fputc('\n', out);
    }
    for (uint32_t d = 0; d < f->n_devices; d++) {
        const struct fit_number *b = &f->devices[d].beside;
        if (f->devices[d].n_beside > 0) {
            (void)fprintf(out,
                          "  %-5s one-row kernels beside another engine take %.2f [%.2f, %.2f] "
                          "times as long (%u kernels)\n",
                          m->devices[d].name, 1.0 + b->value, 1.0 + b->low, 1.0 + b->high,
                          f->devices[d].n_beside);
        }
    }
    print_times(out, "schedule, per instant", &f->schedule);
    print_times(out, "launch to first kernel", &f->submit);
    print_times(out, "last kernel to host", &f->completion);
    print_times(out, "sampling, per pass", &f->tail);
    print_times(out, "reset", &f->reset);
    if (f->n_compiles > 0) {
        (void)fprintf(out, "  compiling attention: %.1f ms + %.3f ms a token, of %u\n",
                      1e3 * f->compile_fixed_s, 1e3 * f->compile_per_token_s, f->n_compiles);
    }
}

static int calibrate_trace(const struct drive_values *o, struct drive_options *d,
                           const struct config *c, const char *trace, struct fit_input *in,
                           struct err *e)
{
    static const char *const usual[] = {"openvino-cb", "agent-xpu-v2"};
    struct config_options with = o->config;
    struct trace t = {0};
    with.trace = trace;
    with.workload = NULL;
    if (config_trace(&with, o->config.seed, as_written, &t, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    int status = EXIT_OK;
    uint32_t n = o->policies.n > 0 ? o->policies.n : 2;
    for (uint32_t i = 0; i < n * o->repeat && status == EXIT_OK; i++) {
        struct config_policy p;
        struct real_run r;
        struct runner_options opt = {0};
        const char *name = o->policies.n > 0 ? o->policies.v[i % n] : usual[i % n];
        if (config_policy_parse(&p, name, e) != 0) {
            status = EXIT_BAD_INPUT;
            break;
        }
        if (real_execute(d, c, &p, &t, o->config.seed, &opt, NULL, &r, e) != 0) {
            status = failed(&r);
        } else {
            fit_input_add(in, &r.report, output_tokens(&t), real_disturbed(&r));
            (void)fprintf(stderr, "%s on %s: %zu kernels in %.1f s, others had %.1f %%\n", name,
                          trace, r.report.n_kernels, r.end_s,
                          100.0 * (r.foreign_frac + r.steal_frac));
        }
        real_run_fini(&r);
    }
    trace_fini(&t);
    return status;
}

static int write_soc(const struct drive_values *o, const struct drive_options *d,
                     const struct config *c, const struct fit *f, struct err *e)
{
    char name[128];
    char source[512];
    char text[256];
    time_t now = time(NULL);
    struct tm day;
    (void)gmtime_r(&now, &day);
    (void)strftime(source, sizeof source, "%Y-%m-%d", &day);
    (void)snprintf(name, sizeof name, "%.50s-real", c->soc.machine.name);
    size_t used = strlen(source);
    (void)snprintf(source + used, sizeof source - used,
                   ": xpusim drive --calibrate, clock %s, %u runs (%u disturbed), %s",
                   o->real.clock, f->n_runs, f->n_disturbed,
                   real_describe(d, &c->soc.machine, text, sizeof text));
    cJSON *root = fit_to_soc(f, cJSON_GetObjectItem(c->tree, "soc"), &c->llm, name, source);
    int rc = json_write_file(o->out, root, e);
    cJSON_Delete(root);
    return rc;
}

static int drive_calibrate(const struct drive_values *o, struct drive_options *d,
                           const struct config *c, struct err *e)
{
    if (o->out == NULL) {
        return err_add(e, "--calibrate needs -o FILE.json");
    }
    struct fit_input in;
    fit_input_init(&in);
    int status = EXIT_OK;
    for (uint32_t i = 0; i < o->calibrate.n && status == EXIT_OK; i++) {
        status = calibrate_trace(o, d, c, o->calibrate.v[i], &in, e);
    }
    struct fit f;
    if (status == EXIT_OK &&
        (fit_make(&in, &c->soc.machine, &c->llm, &f, e) != 0 || write_soc(o, d, c, &f, e) != 0)) {
        status = EXIT_BAD_INPUT;
    } else if (status == EXIT_OK) {
        print_fit(&f, &c->soc.machine, stdout);
    }
    fit_input_fini(&in);
    return status;
}

/* ---- comparison ---- */

/* The machine file for simulating: measured kernels and their slowdown where it has them. */
static int load_model(const struct config_options *o, const char *soc, bool measured,
                      struct config *c, struct err *e)
{
    struct config_options with = *o;
    static char form[] = "sim.hwmodel=per-op";
    static char contention[] = "sim.contention=beside";
    char *sets[] = {form, contention}; /* borrowed: `with` is never freed */
    with.soc = soc;
    for (size_t i = 0; measured && i < 2 && with.n_sets < CONFIG_MAX_SETS; i++) {
        with.sets[with.n_sets++] = sets[i];
    }
    return config_load(c, &with, e);
}

static int simulate(const struct config *c, const struct config_policy *p, const struct trace *t,
                    uint64_t seed, struct request_times *out, struct err *e)
{
    request_times_init(out, t->n);
    struct runner_options opt = {.series = &out->observer};
    struct runner_result r;
    int rc = runner_run(c, p, t, seed, &opt, &r, e);
    if (rc != 0) {
        (void)fprintf(stderr, "xpusim: error: %s\n", r.sim.message);
    }
    runner_result_fini(&r);
    return rc;
}

static int run_all(const struct drive_values *o, struct drive_options *d, const struct config *c,
                   const struct trace *t, struct against *a, struct err *e)
{
    for (uint32_t k = 0; k < o->repeat; k++) {
        for (uint32_t i = 0; i < a->n_policies; i++) { /* A-B-C-A-B-C: drift meets all alike */
            struct config_policy p;
            struct against_policy *to = &a->policies[i];
            struct runner_options opt = {0};
            if (config_policy_parse(&p, o->policies.v[i], e) != 0) {
                return EXIT_BAD_INPUT;
            }
            struct real_run *r = &to->real[to->n_real++];
            if (real_execute(d, c, &p, t, o->config.seed, &opt, NULL, r, e) != 0) {
                return failed(r);
            }
            if (!o->output.quiet) {
                (void)fprintf(stderr, "%s, repeat %u: %.1f s, others had %.1f %%\n", to->label,
                              k + 1, r->end_s, 100.0 * (r->foreign_frac + r->steal_frac));
            }
        }
    }
    return EXIT_OK;
}

static int simulate_all(const struct drive_values *o, const struct config *models,
                        const struct trace *t, struct against *a, struct err *e)
{
    for (uint32_t i = 0; i < a->n_policies; i++) {
        struct config_policy p;
        if (config_policy_parse(&p, o->policies.v[i], e) != 0) {
            return EXIT_BAD_INPUT;
        }
        (void)snprintf(a->policies[i].label, sizeof a->policies[i].label, "%s", p.label);
        for (uint32_t m = 0; m < a->n_models; m++) {
            if (simulate(&models[m], &p, t, o->config.seed, &a->policies[i].simulated[m], e) != 0) {
                return EXIT_CHECK_FAILED;
            }
        }
    }
    return EXIT_OK;
}

static int drive_compare(const struct drive_values *o, struct drive_options *d,
                         const struct trace *t, struct err *e)
{
    struct against *a = xcalloc(1, sizeof *a);
    struct config *models = xcalloc(2, sizeof *models);
    a->n_policies = o->policies.n;
    a->n_models = o->datasheet == NULL ? 1 : 2;
    a->repeats = o->repeat;
    a->clock = o->real.clock;
    int status = EXIT_BAD_INPUT;
    (void)load_model(&o->config, o->config.soc, true, &models[0], e);
    if (o->datasheet != NULL) {
        (void)load_model(&o->config, o->datasheet, false, &models[1], e);
    }
    if (e->n == 0) {
        (void)snprintf(a->trace, sizeof a->trace, "%s", models[0].workload);
        (void)real_describe(d, &models[0].soc.machine, a->engines, sizeof a->engines);
        for (uint32_t m = 0; m < a->n_models; m++) {
            a->models[m] = models[m].soc.machine.name;
        }
        status = simulate_all(o, models, t, a, e);
        status = status == EXIT_OK ? run_all(o, d, &models[0], t, a, e) : status;
        if (status == EXIT_OK && o->output.json) {
            print_json(against_to_json(a));
        } else if (status == EXIT_OK) {
            against_print(a, stdout);
        }
    }
    against_fini(a);
    config_fini(&models[0]);
    if (o->datasheet != NULL) {
        config_fini(&models[1]);
    }
    free(models);
    free(a);
    return status;
}

/* ---- the command ---- */

static int check(const struct drive_values *o, struct err *e)
{
    if (o->compare && o->calibrate.n > 0) {
        return err_add(e, "--calibrate and --compare: one after the other");
    }
    if (o->compare && o->policies.n < 2) {
        return err_add(e, "--compare needs at least two --policy");
    }
    if (o->calibrate.n == 0 && !o->compare && o->policies.n != 1) {
        return err_add(e, "one --policy is needed (several with --compare)");
    }
    return 0;
}

/* The usual machine of a simulation is none that this computer could be. */
static void own_machine(struct config_options *o)
{
    o->soc = strcmp(o->soc, CONFIG_DEFAULT_SOC) == 0 ? "two-cores" : o->soc;
    o->llm = strcmp(o->llm, CONFIG_DEFAULT_LLM) == 0 ? "random-1024" : o->llm;
}

static int run(void *values, struct err *e)
{
    struct drive_values *o = values;
    struct config *c = xcalloc(1, sizeof *c);
    struct trace t = {0};
    struct drive_options d;
    int status = EXIT_BAD_INPUT;
    o->real.realtime = !o->no_realtime;
    own_machine(&o->config);
    if (check(o, e) == 0 && config_load(c, &o->config, e) == 0 &&
        real_devices(&o->real, &c->soc.machine, &d, e) == 0) {
        if (o->calibrate.n > 0) {
            status = drive_calibrate(o, &d, c, e);
        } else if (config_trace(&o->config, o->config.seed, as_written, &t, e) == 0) {
            status = o->compare ? drive_compare(o, &d, &t, e) : drive_one(o, &d, c, &t, e);
        }
    }
    trace_fini(&t);
    config_fini(c);
    free(c);
    return status;
}

#define OPTIONS struct drive_values

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", AGAINST_MAX_POLICIES,
                 "policy and parameters; with --compare and --calibrate may be repeated"),
    OPTION_CHOICE(OPTIONS, real.engine, "engine", "E", "ggml", engines,
                  "who runs the kernels; mixed: openvino as the NPU, ggml as the others"),
    OPTION_CHOICE(OPTIONS, real.clock, "clock", "C", "wall", clocks,
                  "wall: threads and real time; cpu: kernels one after another, each takes its "
                  "processor time on a virtual clock"),
    OPTION_TEXT(OPTIONS, real.cores, "cores", "N,N,..", NULL,
                "processor of each device of the machine (default: one after another)"),
    OPTION_TEXT(OPTIONS, real.devices, "devices", "D,D,..", NULL,
                "the engine's device for each (default CPU; of openvino also NPU, GPU)"),
    OPTION_COUNT(OPTIONS, repeat, "repeat", "N", "1", 1, AGAINST_MAX_REPEATS,
                 "times everything is run; with --compare in turns"),
    OPTION_TEXT(OPTIONS, tokens, "tokens", "FILE", NULL, "write the tokens of each request"),
    OPTION_TEXT(OPTIONS, kernels, "kernels", "FILE.csv", NULL, "write one line per kernel"),
    OPTION_TEXT(OPTIONS, requests, "requests", "FILE.csv", NULL, "write one line per request"),
    OPTION_TEXTS(OPTIONS, calibrate, "calibrate", "TRACE.csv", 16,
                 "run this trace (may be repeated) under a few policies and write a SoC file (-o)"),
    {.name = "output",
     .letter = 'o',
     .value = "FILE.json",
     .kind = OPTION_KIND_TEXT,
     .offset = OPTION_AT(OPTIONS, out, const char *),
     .help = "where --calibrate writes"},
    OPTION_FLAG(OPTIONS, compare, "compare",
                "real against simulated: errors, order of policies, and real against real"),
    OPTION_TEXT(OPTIONS, datasheet, "beside-soc", "S", NULL,
                "with --compare: a second machine to simulate, as it was before calibration"),
    OPTION_FLAG(OPTIONS, no_realtime, "no-realtime",
                "do not ask for real-time priority (SCHED_FIFO) on the wall clock"),
    OPTION_NUMBER(OPTIONS, real.limit_s, "limit", "S", "300", 1, 1e6,
                  "real time after which a run is given up"),
    OPTION_NUMBER(OPTIONS, real.hang_s, "hang", "S", "60", 0.01, 1e6,
                  "a kernel that takes longer hangs"),
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
static const struct option_child children[] = {
    {.table = &own},
    {&option_output_table, offsetof(OPTIONS, output), NULL, false},
    {&config_option_table, offsetof(OPTIONS, config), NULL, false},
    {0},
};
const struct command cmd_drive = {
    .name = "drive",
    .summary = "the same policies on real kernels, and how far the simulator is from them",
    .usage = "--policy P --trace T.csv [options]\n"
             "--calibrate T1.csv [--calibrate T2.csv] -o my-soc.json [options]\n"
             "--compare --policy A --policy B --trace T3.csv --soc my-soc.json [options]",
    .about = "Runs a policy on real kernels of a real model with random weights (--soc two-cores "
             "--llm random-1024 where nothing else is said): one thread per device of the machine, "
             "pinned to a processor. `make engines` gets the engines.\n\n"
             "--calibrate fits what the simulator needs from the kernels that ran; --compare holds "
             "the simulator to what ran. docs/real-execution.md says how to do this on your own "
             "machine.",
    .children = children,
    .bytes = sizeof(OPTIONS),
    .run = run,
};
