/* `xpusim measure`: measures kernels on real or simulated devices, and fits the rows. */
#include <time.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/measure_print.h"
#include "experiments/commands/measure_resume.h"
#include "experiments/shell/cli.h"
#include "hwmodels/backends/measure.h"
#include "hwmodels/backends/simdev.h"
#include "hwmodels/kernel_fit.h"
#include "sim/base/json.h"
#include "sim/base/output.h"
#include "sim/base/version.h"
#include "sim/base/words.h"

#define MAX_FITS 64
#define MAX_NAME 63 /* of a machine */

struct options {
    struct measure_options m;
    struct option_output shown;
    struct option_texts fits;
    const char *backend, *output, *soc, *sim, *name, *size;
    uint32_t seed, pool_mb;
    double ddr_peak_gbs;
    bool list;
};

static void check_name(const char *name, struct err *e)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-+");
    if (name[0] == '\0' || name[good] != '\0' || good > MAX_NAME) {
        err_add(e, "--name %s: letters, digits and . _ - + only, at most %d", name, MAX_NAME);
    }
}

/* ---- measuring ---- */

static void set_pool(struct options *o)
{
    o->m.backend_options.pool_bytes =
        o->pool_mb > 0 ? (uint64_t)o->pool_mb << 20 : measure_pool_bytes(&o->m);
}

static int load_truth(const struct options *o, struct simdev_truth *truth, struct err *e)
{
    const char *path = soc_path(o->soc);
    SCOPED(json_drop) cJSON *root = json_read_file(path, e);
    if (root == NULL) {
        return -EINVAL;
    }
    simdev_truth_init(truth);
    truth->seed = o->seed;
    int rc = soc_parse(root, path, &truth->soc, e);
    return rc == 0 && o->sim != NULL ? simdev_truth_set(truth, o->sim, e) : rc;
}

/* Finds the backend and fills its options. `truth` must outlive the run. */
static int choose_backend(struct options *o, struct simdev_truth *truth, struct err *e)
{
    o->m.backend = backend_find(o->backend);
    o->m.soc = o->name;
    o->m.seed = o->seed;
    if (o->m.backend == NULL) {
        return err_add(e, "--backend %s: no such backend; `xpusim measure --list` shows them",
                       o->backend);
    }
    if (o->m.backend != &backend_sim) {
        if (o->sim != NULL) {
            return err_add(e, "--sim goes with --backend sim");
        }
        set_pool(o);
        return 0;
    }
    o->m.backend_options.truth = truth;
    return load_truth(o, truth, e);
}

static int list(struct options *o, struct err *e)
{
    for (size_t i = 0; backend_list()[i] != NULL; i++) {
        const struct backend_ops *ops = backend_list()[i];
        struct simdev_truth truth;
        (void)printf("%-8s %s\n", ops->name, ops->summary);
        o->backend = ops->name;
        SCOPED(err_fini) struct err why = ERR_INIT;
        struct backend *b =
            choose_backend(o, &truth, &why) == 0 ? ops->start(&o->m.backend_options, &why) : NULL;
        if (b == NULL) {
            (void)printf("  not here: %s\n", why.n > 0 ? why.lines[0] : "unknown reason");
        } else {
            struct backend_info infos[BACKEND_MAX_DEVICES];
            uint32_t n = ops->enumerate(b, infos, BACKEND_MAX_DEVICES);
            for (uint32_t k = 0; k < n && k < BACKEND_MAX_DEVICES; k++) {
                (void)printf("  %-10s %s\n", infos[k].name, infos[k].description);
            }
            ops->stop(b);
        }
    }
    return e->n == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* The text for the rows' source. Only real times have a date. */
static const char *source_of(const struct options *o)
{
    if (o->m.backend == &backend_sim) {
        return document_format("xpusim measure %s, simulated %.40s", XPUSIM_VERSION, o->soc);
    }
    char day[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) != NULL) {
        (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%MZ", &tm);
    }
    return document_format("xpusim measure %s, backend %s, %s", XPUSIM_VERSION, o->m.backend->name,
                           day);
}

/* Measures simulated devices in one go. */
static int measure_whole(struct options *o, struct err *e)
{
    struct output *out = output_open(o->output, e);
    int rc = out == NULL ? -EINVAL : measure_run(&o->m, output_stream(out), e);
    return output_close(out, rc != -EINVAL, e) != 0 ? -EINVAL : rc;
}

/* Measures real devices, and continues an interrupted measurement with the same options. */
static int measure_on(struct options *o, struct err *e)
{
    OWNED char *what =
        xformat("%s %s devices=%s name=%s size=%s repetitions=%" PRIu32
                " window=%g samples=%" PRIu32 " pool=%" PRIu64 " seed=%" PRIu32 "%s",
                XPUSIM_VERSION, o->m.backend->name, o->m.devices == NULL ? "" : o->m.devices,
                o->name, o->size, o->m.repetitions, o->m.window_s, o->m.min_samples,
                o->m.backend_options.pool_bytes >> 20, o->seed,
                o->m.alone_only   ? " alone"
                : o->m.pairs_only ? " pairs"
                                  : "");
    struct measure_resume *r = measure_resume_open(o->output, what, e);
    if (r == NULL) {
        return -EINVAL;
    }
    o->m.steps_done = measure_resume_steps(r);
    o->m.step = measure_resume_step;
    o->m.step_ctx = r;
    int rc = measure_run(&o->m, measure_resume_stream(r), e);
    return measure_resume_close(r, rc != -EINVAL, e) != 0 ? -EINVAL : rc;
}

static int pairs(const struct options *o, const char *const *files, uint32_t n, struct err *e)
{
    struct kernel_rows rows = {.n = 0};
    struct pairs p = {.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        (void)kernel_rows_read(&rows, files[i], e);
    }
    if (e->n == 0 && pairs_make(&p, &rows, e) == 0) {
        struct document *d = document_new();
        measure_pairs_document(&p, d);
        document_show(d, &o->shown);
    }
    return e->n == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

static int measure(struct options *o, struct err *e)
{
    struct simdev_truth truth;
    if (choose_backend(o, &truth, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    o->m.source = source_of(o);
    o->m.announce = !o->shown.quiet;
    o->m.progress = !o->shown.quiet && isatty(STDERR_FILENO) != 0;
    int rc = o->m.backend->virtual_time ? measure_whole(o, e) : measure_on(o, e);
    if (rc == -EINVAL) {
        return EXIT_BAD_INPUT;
    }
    if (o->m.pairs_only) {
        int status = pairs(o, &o->output, 1, e);
        return rc == 0 ? status : EXIT_CHECK_FAILED;
    }
    int status = measure_summary(o->output, stdout, e);
    return rc == 0 ? status : EXIT_CHECK_FAILED;
}

/* ---- fitting ---- */

static int fit(const struct options *o, struct err *e)
{
    struct kernel_rows rows = {.n = 0};
    struct kernel_fit result;
    for (uint32_t i = 0; i < o->fits.n; i++) {
        (void)kernel_rows_read(&rows, o->fits.v[i], e);
    }
    int status = EXIT_BAD_INPUT;
    if (e->n == 0 && kernel_fit_run(&result, &rows, e) == 0) {
        struct document *d = document_new();
        measure_document(&result, d);
        document_show(d, &o->shown);
        struct kernel_soc_options soc = {.name = rows.v[0].soc,
                                         .ddr_peak_bytes_per_s = o->ddr_peak_gbs * 1e9};
        if (o->output != NULL) {
            (void)kernel_fit_write_soc(&result, &rows, &soc, o->output, e);
        }
        bool wrong = result.alone.wrong || result.together.wrong;
        status = e->n > 0 ? EXIT_BAD_INPUT : wrong ? EXIT_CHECK_FAILED : EXIT_OK;
    }
    return status;
}

static void print_backends(FILE *out)
{
    (void)fputs("Backends:\n", out);
    for (size_t i = 0; backend_list()[i] != NULL; i++) {
        (void)fprintf(out, "  %-8s %s\n", backend_list()[i]->name, backend_list()[i]->summary);
    }
}

/* Replaces the kernel's folders of load, energy and NPU counters, for tests. */
static void take_folders(struct measure_options *m)
{
    const struct {
        const char *name, **dir;
    } folders[] = {{"XPUSIM_PROC_DIR", &m->proc_dir},
                   {"XPUSIM_RAPL_DIR", &m->rapl_dir},
                   {"XPUSIM_ACCEL_DIR", &m->accel_dir}};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *dir = getenv(folders[i].name);
        *folders[i].dir = dir != NULL ? dir : *folders[i].dir;
    }
}

static void init(void *target)
{
    struct options *o = target;
    measure_options_init(&o->m);
    take_folders(&o->m);
    o->m.repetitions = 0; /* set_by_size fills it */
    o->m.window_s = 0.0;
}

/* Fills options that were not given. A tiny measurement has few and short windows, so that it takes
 * less than a minute. */
static void set_by_size(struct measure_options *m)
{
    struct measure_options usual;
    measure_options_init(&usual);
    bool tiny = m->size == PLAN_TINY;
    m->repetitions = m->repetitions > 0 ? m->repetitions : tiny ? 3 : usual.repetitions;
    m->window_s = m->window_s > 0.0 ? m->window_s : tiny ? 0.04 : usual.window_s;
}

static int refuse_ignored(const struct options *o, struct err *e)
{
    if (o->list) {
        return options_only("measure --list", "list library soc", e);
    }
    if (o->fits.n > 0) {
        return options_only("measure --fit", o->m.pairs_only ? "fit pairs" : "fit output ddr-peak",
                            e);
    }
    bool sim = strcmp(o->backend, "sim") == 0;
    return options_only(sim ? "measure without --fit" : "measure of real devices",
                        sim ? "backend devices output size repetitions spread-s window-s samples "
                              "retries foreign-limit steal-limit deadline-s pool-mb alone pairs "
                              "seed name soc sim"
                            : "backend devices output size repetitions spread-s window-s samples "
                              "retries foreign-limit steal-limit deadline-s pool-mb alone pairs "
                              "seed name library sim",
                        e);
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    if (refuse_ignored(o, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    o->m.size = (enum plan_size)words_find(plan_sizes, o->size);
    set_by_size(&o->m);
    if (o->fits.n == 0 && !o->list && o->output == NULL) {
        (void)err_add(e, "measure: -o FILE.csv is needed (or --fit, or --list)");
    }
    if (o->m.pairs_only && o->m.alone_only) {
        (void)err_add(e, "measure: --pairs and --alone: one of them");
    }
    if (output_is(&o->shown, "json") && o->fits.n == 0 && !o->m.pairs_only) {
        (void)err_add(e, "measure: --json goes with --fit");
    }
    check_name(o->name, e);
    if (e->n > 0) {
        return EXIT_BAD_INPUT;
    }
    if (o->fits.n > 0 && o->m.pairs_only) {
        return pairs(o, o->fits.v, o->fits.n, e);
    }
    return o->list ? list(o, e) : o->fits.n > 0 ? fit(o, e) : measure(o, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXT(OPTIONS, backend, "backend", "B", "native",
                "backend that measures, one of those below"),
    OPTION_TEXT(OPTIONS, m.devices, "devices", "D,D", NULL,
                "devices to measure; --list shows them (default: the first two)"),
    OPTION_OUTPUT(OPTIONS, output, "FILE", NULL, "write the rows here; with --fit, the SoC file"),
    OPTION_TEXTS(OPTIONS, fits, "fit", "FILE.csv", MAX_FITS, "fit these rows; repeated"),
    OPTION_FLAG(OPTIONS, list, "list", "print the backends and devices of this computer"),
    OPTION_CHOICE(OPTIONS, size, "size", "S", "small", plan_sizes,
                  "duration: within a minute, minutes, or matrices of a 7B model"),
    OPTION_COUNT(OPTIONS, m.repetitions, "repetitions", "N", NULL, 1, 100000,
                 "repetitions of the plan (default 5, tiny: 3)"),
    OPTION_NUMBER(OPTIONS, m.spread_s, "spread-s", "T", NULL, 0.0, 1e6,
                  "pause between repetitions (default 0)"),
    OPTION_NUMBER(OPTIONS, m.window_s, "window-s", "T", NULL, 1e-3, 3600.0,
                  "length of one measurement (default 0.3, tiny: 0.04)"),
    OPTION_COUNT(OPTIONS, m.min_samples, "samples", "N", NULL, 3, 1000,
                 "least number of samples in a window (default 5)"),
    OPTION_COUNT(OPTIONS, m.retries, "retries", "N", NULL, 0, 100,
                 "repetitions of a disturbed window (default 1)"),
    OPTION_NUMBER(
        OPTIONS, m.foreign_limit_frac, "foreign-limit", "F", NULL, 0.0, 1.0,
        "share of processor time of other load above which a row is flagged (default 0.05)"),
    OPTION_NUMBER(OPTIONS, m.steal_limit_frac, "steal-limit", "F", NULL, 0.0, 1.0,
                  "share of processor time that the hypervisor took, above which a row is flagged "
                  "(default 0.02)"),
    OPTION_NUMBER(OPTIONS, m.deadline_s, "deadline-s", "T", NULL, 1e-3, 1e5,
                  "deadline of a window, beyond four times its expected time (default 10)"),
    OPTION_COUNT(OPTIONS, pool_mb, "pool-mb", "N", NULL, 1, 1u << 20,
                 "memory per device that weights rotate through (default: twice the last-level "
                 "cache, at least 640, at most a fifth of the memory)"),
    OPTION_FLAG(OPTIONS, m.alone_only, "alone", "measure no pairs"),
    OPTION_FLAG(OPTIONS, m.pairs_only, "pairs",
                "measure each kind of kernel next to each other kind, and nothing else: who slows "
                "whom, and what the memory gives to both. With --fit: of these rows"),
    OPTION_COUNT(OPTIONS, seed, "seed", "N", "1", 0, UINT32_MAX,
                 "seed of the order of shapes, and of random numbers in sim"),
    OPTION_TEXT(OPTIONS, name, "name", "NAME", "this-machine", "name of the machine in the rows"),
    OPTION_TEXT(OPTIONS, m.backend_options.library, "library", "FILE", NULL,
                "blas, opencl: load this library instead of the usual one"),
    OPTION_TEXT(OPTIONS, soc, "soc", "S", "core-ultra-5-125h", "sim: the SoC to simulate"),
    OPTION_TEXT(OPTIONS, sim, "sim", "K=V,...", NULL,
                "sim: noise, drift, outliers, foreign, hang, sharpness, lambda_gemv, "
                "form=model|fill|steps|private, ..."),
    OPTION_NUMBER(OPTIONS, ddr_peak_gbs, "ddr-peak", "GB/s", NULL, 0.1, 1e5,
                  "--fit: datasheet bandwidth of the memory"),
};
static const struct option_table own = OPTION_TABLE_INIT(NULL, rows, init);
const struct command cmd_measure = {
    .name = "measure",
    .summary = "measure kernels on real devices, and fit a machine file",
    .usage = "[--backend B] [--devices D,D] -o FILE.csv [options]\n"
             "--fit FILE.csv [--fit FILE.csv ...] [-o SOC.json] [--json]\n"
             "--list",
    .about = "Measures isolated and co-running kernels on the devices of a backend, and writes "
             "rows in the columns of the reference points. A disturbed row is kept with a flag. "
             "The end of the output says how many rows can be trusted, and why the others cannot. "
             "The same command continues an interrupted measurement. With --fit the rows become a "
             "SoC file, which runs with the kernel-time model it was fitted with.",
    .notes = "Exit status: 0 measured; 1 a device stopped answering, fewer than half of the rows "
             "can be\ntrusted, or the model does not fit; 2 bad usage or input, or the backend "
             "cannot run here.",
    .print_notes = print_backends,
    COMMAND_TAKES({.table = &own}, OPTION_CHILD(option_json_table, shown)),
    .run = run,
};
