/* `xpusim drive`: runs policies on real engines, calibrates, and compares with simulation. */
#include "experiments/commands/commands.h"
#include "experiments/commands/drive.h"
#include "experiments/drive/against.h"
#include "experiments/drive/probe.h"
#include "experiments/report/interference.h"
#include "experiments/run/about.h"
#include "experiments/run/models.h"
#include "sim/base/output.h"
#include "sim/metrics/explain.h"
#include "sim/metrics/timeline.h"

#define PROBE_ROWS 64 /* of the static kernel that --probe compiles */

static const char *const engines[] = {"ggml", "openvino", "mixed", NULL};
static const char *const clocks[] = {"wall", "cpu", NULL};

/* ---- one policy ---- */

/* Outputs that a run writes while it runs. */
struct drive_files {
    struct output *decisions, *requests; /* the run owns requests from its start */
    struct timeline *timeline;
    struct explain *explain;
};

static int files_open(struct drive_files *f, const struct drive_values *o, const struct config *c,
                      const struct config_policy *p, const struct trace *t, struct err *e)
{
    *f = (struct drive_files){0};
    if (o->decisions != NULL && (f->decisions = output_open(o->decisions, e)) == NULL) {
        return -EINVAL;
    }
    if (o->requests != NULL && (f->requests = output_open(o->requests, e)) == NULL) {
        return -EINVAL;
    }
    if (o->timeline != NULL) {
        OWNED char *text = about_text(&(struct about){"timeline", c, p, t, o->config.seed, false});
        struct timeline_options to = {.only_launches = true, .about = text};
        f->timeline = timeline_open(o->timeline, &c->soc.machine, &to, e);
    }
    if (o->explain) {
        f->explain = explain_new(&c->soc.machine, EXPLAIN_ALL);
        explain_price(f->explain, &c->truth.model);
    }
    return e->n == 0 ? 0 : -EINVAL;
}

static void files_close(struct drive_files *f, bool keep, struct err *e)
{
    (void)timeline_close(f->timeline, keep, e);
    (void)output_close(f->decisions, keep, e);
    explain_free(f->explain);
}

static int run_once(const struct drive_values *o, const struct drive_options *d,
                    const struct config *c, const struct config_policy *p, const struct trace *t,
                    struct err *e)
{
    struct drive_files files;
    struct real_run r;
    struct runner_result result;
    if (files_open(&files, o, c, p, t, e) != 0) {
        (void)output_close(files.requests, false, e);
        files_close(&files, false, e);
        return EXIT_BAD_INPUT;
    }
    struct runner_options opt = {
        .requests = files.requests,
        .decision_log = files.decisions == NULL ? NULL : output_stream(files.decisions),
        .observer = files.explain != NULL    ? explain_observer(files.explain)
                    : files.timeline != NULL ? timeline_observer(files.timeline)
                                             : NULL};
    int status = EXIT_OK;
    if (real_execute(d, c, p, t, o->config.seed, &opt, &result, &r, e) != 0) {
        status = drive_failed(&r);
    } else {
        struct document *said = document_new();
        SCOPED(json_drop) cJSON *executor = real_to_json(d, &c->soc.machine, &r);
        runner_document(c, p, t, o->config.seed, &result, said);
        document_tree(said, "executor", executor);
        if (files.explain != NULL) {
            struct interference m;
            interference_collect(files.explain, t, &m);
            interference_document(&m, said);
        }
        document_show(said, &o->output);
        if (output_is(&o->output, "text")) {
            (void)printf("\n");
            real_print(&r, &c->soc.machine, stdout);
        }
        if (r.report.interrupted) {
            status = drive_say_interrupted((uint32_t)result.sim.audit.finished, "request");
        }
    }
    /* Kept after a failed run, because they show the failure. */
    files_close(&files, !r.sim.refused, e);
    if (o->kernels != NULL && !r.sim.refused) {
        (void)real_write_kernels(o->kernels, &r.report, &c->soc.machine, e);
    }
    runner_result_fini(&result);
    real_run_fini(&r);
    return status;
}

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
    struct output *topk = o->topk == NULL ? NULL : output_open(o->topk, e);
    if (o->topk != NULL && topk == NULL) {
        (void)output_close(tokens, false, e);
        return EXIT_BAD_INPUT;
    }
    d->topk = topk == NULL ? NULL : output_stream(topk);
    int status = EXIT_OK;
    for (uint32_t k = 0; k < o->repeat && status == EXIT_OK; k++) {
        status = run_once(o, d, c, &p, t, e);
    }
    bool ran = status != EXIT_CHECK_FAILED && status != EXIT_BAD_INPUT;
    int rc = output_close(topk, ran, e);
    rc = output_close(tokens, ran, e) != 0 ? -EINVAL : rc;
    return rc == 0 ? status : EXIT_BAD_INPUT;
}

static int drive_calibrate(const struct drive_values *o, struct calibration *cal, struct err *e)
{
    struct fit fit;
    int status = EXIT_OK;
    for (uint32_t k = 0; k < o->repeat && status == EXIT_OK && drive_interrupt == 0; k++) {
        status = calibration_round(cal, e);
    }
    int end = EXIT_OK;
    if (status == EXIT_OK && drive_interrupt != 0) {
        end = drive_say_interrupted(cal->n_whole, "run");
        status = cal->n_whole > 0 ? EXIT_OK : end;
    } else if (status == EXIT_OK && !cal->trace_only) {
        calibration_pairs(cal);
    }
    status = status == EXIT_OK ? calibration_write(cal, &fit, e) : status;
    if (status == EXIT_OK) {
        calibration_print(cal, &fit, stdout);
        status = end;
    }
    return status;
}

/* ---- probe of a device ---- */

static int drive_probe(const struct drive_values *o, const struct llm *llm, struct err *e)
{
    struct probe p;
    struct document *said = document_new();
    int failed = probe_open(&p, e);
    failed = failed == 0 ? probe_device(&p, o->probe, llm, PROBE_ROWS, said, e) : failed;
    if (failed >= 0) {
        document_show(said, &o->output);
    }
    probe_close(&p);
    return failed < 0 ? EXIT_BAD_INPUT : failed > 0 ? EXIT_CHECK_FAILED : EXIT_OK;
}

/* ---- the command ---- */

/* Refuses options without effect, and output files that several runs would write. */
static int check_runs(const struct drive_values *o, struct err *e)
{
    bool fits = o->compare || o->calibrate.n > 0;
    bool files = o->tokens != NULL || o->topk != NULL || o->kernels != NULL ||
                 o->requests != NULL || o->decisions != NULL || o->timeline != NULL;
    if ((files && (fits || o->repeat > 1)) || (o->explain && fits)) {
        return err_add(e, "--tokens, --topk, --kernels, --requests, --decisions, --timeline and "
                          "--explain are of a single run of one policy");
    }
    if ((o->repeat > 1 || fits) && !o->compare && !output_is(&o->output, "text")) {
        return err_add(e, "--calibrate and --repeat of one policy print text only; --compare has "
                          "all runs as data");
    }
    if (o->datasheet != NULL && !o->compare) {
        return err_add(e, "--beside-soc goes with --compare");
    }
    if (o->trace_only && o->calibrate.n == 0) {
        return err_add(e, "--trace-only goes with --calibrate");
    }
    if (o->calibrate.n > 0 && !o->compare &&
        (o->config.trace != NULL || o->config.workload != NULL)) {
        return err_add(e,
                       "--calibrate runs its own traces; --trace and --workload are of --compare "
                       "and of a run");
    }
    return o->out != NULL && o->calibrate.n == 0
               ? err_add(e, "-o is the SoC file of --calibrate, which is not given")
               : 0;
}

static int check(const struct drive_values *o, struct err *e)
{
    if (o->calibrate.n > 0 && o->out == NULL) {
        return err_add(e, "--calibrate needs -o FILE.json");
    }
    if (check_runs(o, e) != 0) {
        return -EINVAL;
    }
    if (o->explain && o->timeline != NULL) {
        return err_add(e, "--explain and --timeline: one of them a run");
    }
    if (o->compare && o->policies.n < 2) {
        return err_add(e, "--compare needs at least two --policy");
    }
    if (o->calibrate.n == 0 && !o->compare && o->policies.n != 1) {
        return err_add(e, "one --policy is needed (several with --compare)");
    }
    if (models_refuse_several(&o->config, "drive", e) != 0) {
        return -EINVAL;
    }
    return 0;
}

/* The default machine of a simulation is not this computer, so drive has its own defaults. */
static void own_machine(struct config_options *o, const char *devices)
{
    bool chips =
        devices != NULL && (strstr(devices, "NPU") != NULL || strstr(devices, "GPU") != NULL);
    const char *soc = chips ? "npu-and-gpu" : "two-cores";
    o->soc = o->soc_given ? o->soc : soc;
    o->llm = o->llm_given ? o->llm : "random-1024";
}

/* Refuses prompts with shared prefixes: on real kernels only sessions reuse prefixes. */
static int shares_nothing(const struct trace *t, const char *name, struct err *e)
{
    bool shares = t->graph != NULL && t->graph->source != NULL;
    return shares ? err_add(e,
                            "--trace %s: prompts that share prefixes (prefix_of, prefix_group) "
                            "are not run on real kernels; `xpusim run` simulates them",
                            name)
                  : 0;
}

static int run(void *values, struct err *e)
{
    struct drive_values *o = values;
    OWNED struct config *c = xcalloc(1, sizeof *c);
    SCOPED(trace_fini) struct trace t = {0};
    struct drive_options d;
    int status = EXIT_BAD_INPUT;
    own_machine(&o->config, o->real.devices);
    drive_listen();
    if (o->probe != NULL) {
        status = config_load(c, &o->config, e) == 0 ? drive_probe(o, &c->llm, e) : status;
    } else if (check(o, e) == 0 && config_load(c, &o->config, e) == 0 &&
               real_devices(&o->real, &c->soc.machine, &d, e) == 0) {
        d.interrupt = &drive_interrupt;
        struct calibration *cal = xkept(xcalloc(1, sizeof *cal));
        *cal = (struct calibration){.drive = &d,
                                    .config = c,
                                    .options = &o->config,
                                    .traces = o->calibrate,
                                    .policies = o->compare ? (struct option_texts){0} : o->policies,
                                    .out = o->out,
                                    .trace_only = o->trace_only};
        fit_input_init(&cal->in, d.clock);
        if (o->calibrate.n > 0 && !o->compare) {
            status = drive_calibrate(o, cal, e);
        } else if (config_trace(&o->config, o->config.seed, CONFIG_AS_WRITTEN, &t, e) == 0 &&
                   shares_nothing(&t, o->config.trace, e) == 0) {
            status = o->compare ? drive_compare(o, &d, cal, &t, e) : drive_one(o, &d, c, &t, e);
        }
    }
    config_fini(c);
    return status;
}

#define OPTIONS struct drive_values

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", AGAINST_MAX_POLICIES,
                 "policy and parameters; with --compare and --calibrate may be repeated"),
    OPTION_CHOICE(OPTIONS, real.engine, "engine", "E", "ggml", engines,
                  "inference backend; mixed: openvino as the NPU, ggml as the others"),
    OPTION_CHOICE(OPTIONS, real.clock, "clock", "C", "wall", clocks,
                  "clock of the run. wall: threads and real time. cpu: kernels one after another; "
                  "each takes its processor time on a virtual clock"),
    OPTION_TEXT(OPTIONS, real.cores, "cores", "N,N,..", NULL,
                "processor of each device of the machine (default: one after another)"),
    OPTION_TEXT(OPTIONS, real.devices, "devices", "D,D,..", NULL,
                "devices of the backend. NPU and GPU become the machine's devices of that kind, "
                "and CPU every other one (default CPU)"),
    OPTION_COUNT(OPTIONS, repeat, "repeat", "N", "1", 1, AGAINST_MAX_REPEATS,
                 "number of repeats; with --compare round-robin"),
    OPTION_TEXT(OPTIONS, tokens, "tokens", "FILE", NULL, "write the tokens of each request"),
    OPTION_TEXT(OPTIONS, topk, "topk", "FILE.jsonl", NULL,
                "write token texts of the requests, with the 8 likeliest tokens after each token "
                "and their probabilities"),
    OPTION_TEXT(OPTIONS, kernels, "kernels", "FILE.csv", NULL, "write one line per kernel"),
    OPTION_TEXT(OPTIONS, requests, "requests", "FILE.csv", NULL, "write one line per request"),
    OPTION_FILE(OPTIONS, decisions, "decisions", "FILE", "write one line per scheduling decision"),
    OPTION_FLAG(
        OPTIONS, explain, "explain",
        "print where latencies went: mean causes by class, and the delay that each request causes"),
    OPTION_FILE(OPTIONS, timeline, "timeline", "FILE.json[.gz]",
                "write the schedule for ui.perfetto.dev (Chrome trace events)"),
    OPTION_TEXTS(OPTIONS, calibrate, "calibrate", "TRACE.csv", 16,
                 "run this trace under a few policies and write a SoC file (-o); may be repeated"),
    OPTION_FLAG(OPTIONS, trace_only, "trace-only",
                "with --calibrate: without the bench of kernels that the trace may lack, and "
                "without pairs of kernels"),
    OPTION_OUTPUT(OPTIONS, out, "FILE.json", NULL, "SoC file that --calibrate writes"),
    OPTION_FLAG(
        OPTIONS, compare, "compare",
        "compare real with simulated runs: errors, order of policies, and run-to-run differences. "
        "With --calibrate, that trace runs before each repeat, so that both see the same computer"),
    OPTION_TEXT(
        OPTIONS, datasheet, "beside-soc", "S", NULL,
        "with --compare: simulate a second machine, for instance the one before calibration"),
    OPTION_FLAG(OPTIONS, real.realtime, "realtime",
                "run at real-time priority (SCHED_FIFO) on the wall clock, where that is "
                "permitted. Nothing else runs on the devices' processors meanwhile, so the desktop "
                "stops unless --cores leaves it a processor"),
    OPTION_NUMBER(OPTIONS, real.limit_s, "limit", "S", "300", 1, 1e6,
                  "real time after which a run is stopped"),
    OPTION_NUMBER(OPTIONS, real.hang_s, "hang", "S", "60", 0.01, 1e6,
                  "time after which a kernel counts as hung"),
    OPTION_NUMBER(OPTIONS, real.compile_s, "compile-limit", "S", "600", 0.01, 1e6,
                  "time after which a single compilation, or opening an engine, counts as hung"),
    OPTION_TEXT(OPTIONS, probe, "probe", "DEVICE", NULL,
                "compile and run one FFN and one attention on a device of openvino, and print "
                "what failed"),
};
const struct command cmd_drive = {
    .name = "drive",
    .summary = "run policies on real kernels, and compare the simulator with them",
    .usage = "--policy P --trace T.csv [options]\n"
             "--calibrate T1.csv [--calibrate T2.csv] -o my-soc.json [options]\n"
             "--compare --policy A --policy B --trace T3.csv --soc my-soc.json [options]\n"
             "--compare --calibrate T1.csv -o my-soc.json --policy A --policy B --trace T3.csv",
    .about = "Runs a policy on real kernels of a real model with random weights. The "
             "defaults of --soc and --llm below are those of simulations: drive takes two-cores "
             "(npu-and-gpu, where --devices has an NPU or a GPU) and random-1024. Each device of "
             "the machine is one thread, pinned to a processor. `make engines` installs the "
             "inference backends.\n\n--calibrate fits "
             "the simulator's inputs to the kernels that ran. --compare compares the simulator "
             "with real runs. docs/real-execution.md explains both for your own machine.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .run = run,
};
