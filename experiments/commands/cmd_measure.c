/* `xpusim measure`: kernels on real (or simulated) devices, and the fit of what was measured. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/measure_print.h"
#include "experiments/shell/cli.h"
#include "hwmodels/backends/host.h"
#include "hwmodels/backends/measure.h"
#include "hwmodels/backends/simdev.h"
#include "hwmodels/kernel_fit.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/version.h"

#define MAX_FITS 64
#define CACHE_FACTOR 2.0     /* weights rotate through this many last-level caches ... */
#define MIN_POOL_MB 640.0    /* ... at least this (what the protocol was proved with) ... */
#define POOL_MEMORY_FRAC 0.2 /* ... and at most this share of the memory per device */

static const char HELP[] =
    "usage: xpusim measure [--backend B] [--devices D,D] -o FILE.csv [options]\n"
    "       xpusim measure --fit FILE.csv [--fit FILE.csv ...] [-o SOC.json] [--json]\n"
    "       xpusim measure --list\n"
    "\n"
    "Measures kernels alone and together on the devices of a backend, and writes rows in the\n"
    "columns of the reference points. A row that was disturbed is kept with a flag.\n"
    "\n"
    "  --backend B        native (default), blas, opencl, sim\n"
    "  --devices D,D      default: the first two; --list shows them\n"
    "  -o, --output FILE  the rows; with --fit, the SoC file\n"
    "  --size S           tiny (seconds), small (default), full (matrices of a 7B model)\n"
    "  --repetitions N    default 5\n"
    "  --spread-s T       pause between repetitions (default 0)\n"
    "  --window-s T       of one measurement (default 0.3)\n"
    "  --samples N        at least, in a window (default 5)\n"
    "  --retries N        of a disturbed window (default 1)\n"
    "  --foreign-limit F  others' share of processor time above which a row is flagged (0.05)\n"
    "  --steal-limit F    the hypervisor's (0.02)\n"
    "  --deadline-s T     of a window, beyond four times its expected time (default 10)\n"
    "  --step-deadline-s T  of one driver call (default 600)\n"
    "  --pool-mb N        memory per device that weights rotate through (default: twice the\n"
    "                     last-level cache, at least 640, at most a fifth of the memory)\n"
    "  --alone            no pairs\n"
    "  --seed N           of the order of shapes, and of chance in sim (default 1)\n"
    "  --name NAME        of the machine in the rows (default this-machine)\n"
    "  --proc-dir, --rapl-dir, --accel-dir DIR\n"
    "                     where load, energy and NPU counters are read\n"
    "  --library FILE     blas, opencl: load this library instead of the usual one\n"
    "  --soc S            sim: the SoC to simulate (default core-ultra-5-125h)\n"
    "  --sim K=V,...      sim: noise, drift, outliers, foreign, hang, sharpness, lambda_gemv,\n"
    "                     form=model|fill|steps|private, ...\n"
    "  --ddr-peak GB/s    --fit: datasheet bandwidth of the memory\n"
    "  --json             --fit: results as JSON\n"
    "  --quiet            no progress bar\n"
    "\n"
    "Exit status: 0 measured; 1 a device stopped answering, or the form does not fit; 2 bad usage\n"
    "or input, or the backend cannot run here.\n";

struct options {
    struct measure_options m;
    const char *backend, *output, *soc, *sim, *name;
    const char *fits[MAX_FITS];
    uint32_t n_fits, seed, pool_mb;
    double ddr_peak_gbs;
    bool list, json, quiet;
};

enum option_id {
    OPT_FIT = 256,
    OPT_LIST,
    OPT_REPS,
    OPT_SPREAD,
    OPT_WINDOW,
    OPT_SAMPLES,
    OPT_RETRIES,
    OPT_FOREIGN,
    OPT_STEAL,
    OPT_DEADLINE,
    OPT_STEP,
    OPT_POOL,
    OPT_ALONE,
    OPT_SEED,
    OPT_NAME,
    OPT_PROC,
    OPT_RAPL,
    OPT_ACCEL,
    OPT_SOC,
    OPT_SIM,
    OPT_PEAK,
    OPT_JSON,
    OPT_QUIET,
    OPT_LIBRARY,
    OPT_SIZE
};

static const struct option longs[] = {{"backend", required_argument, NULL, 'b'},
                                      {"devices", required_argument, NULL, 'd'},
                                      {"output", required_argument, NULL, 'o'},
                                      {"help", no_argument, NULL, 'h'},
                                      {"fit", required_argument, NULL, OPT_FIT},
                                      {"list", no_argument, NULL, OPT_LIST},
                                      {"size", required_argument, NULL, OPT_SIZE},
                                      {"repetitions", required_argument, NULL, OPT_REPS},
                                      {"spread-s", required_argument, NULL, OPT_SPREAD},
                                      {"window-s", required_argument, NULL, OPT_WINDOW},
                                      {"samples", required_argument, NULL, OPT_SAMPLES},
                                      {"retries", required_argument, NULL, OPT_RETRIES},
                                      {"foreign-limit", required_argument, NULL, OPT_FOREIGN},
                                      {"steal-limit", required_argument, NULL, OPT_STEAL},
                                      {"deadline-s", required_argument, NULL, OPT_DEADLINE},
                                      {"step-deadline-s", required_argument, NULL, OPT_STEP},
                                      {"pool-mb", required_argument, NULL, OPT_POOL},
                                      {"alone", no_argument, NULL, OPT_ALONE},
                                      {"seed", required_argument, NULL, OPT_SEED},
                                      {"name", required_argument, NULL, OPT_NAME},
                                      {"proc-dir", required_argument, NULL, OPT_PROC},
                                      {"rapl-dir", required_argument, NULL, OPT_RAPL},
                                      {"accel-dir", required_argument, NULL, OPT_ACCEL},
                                      {"soc", required_argument, NULL, OPT_SOC},
                                      {"sim", required_argument, NULL, OPT_SIM},
                                      {"ddr-peak", required_argument, NULL, OPT_PEAK},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"library", required_argument, NULL, OPT_LIBRARY},
                                      {"quiet", no_argument, NULL, OPT_QUIET},
                                      {NULL, 0, NULL, 0}};

static void take_size(struct options *o, const char *text, struct err *e)
{
    int size = plan_size_find(text);
    if (size < 0) {
        err_add(e, "--size %s: must be tiny, small or full", text);
    }
    o->m.size = size < 0 ? PLAN_SMALL : (enum plan_size)size;
}

static void take_fit(struct options *o, const char *path, struct err *e)
{
    if (o->n_fits == MAX_FITS) {
        err_add(e, "--fit: at most %d files", MAX_FITS);
        return;
    }
    o->fits[o->n_fits++] = path;
}

/* Options with a number. False when `id` is none of them. */
static bool take_number(struct options *o, int id, const char *text, struct err *e)
{
    struct measure_options *m = &o->m;
    switch (id) {
    case OPT_REPS:
        (void)cli_count("repetitions", text, 1, 100000, &m->repetitions, e);
        return true;
    case OPT_SAMPLES:
        (void)cli_count("samples", text, 3, 1000, &m->min_samples, e);
        return true;
    case OPT_RETRIES:
        (void)cli_count("retries", text, 0, 100, &m->retries, e);
        return true;
    case OPT_SEED:
        (void)cli_count("seed", text, 0, UINT32_MAX, &o->seed, e);
        return true;
    case OPT_POOL:
        (void)cli_count("pool-mb", text, 1, 1u << 20, &o->pool_mb, e);
        return true;
    case OPT_SPREAD:
        (void)cli_number("spread-s", text, 0.0, 1e6, &m->spread_s, e);
        return true;
    case OPT_WINDOW:
        (void)cli_number("window-s", text, 1e-3, 3600.0, &m->window_s, e);
        return true;
    case OPT_FOREIGN:
        (void)cli_number("foreign-limit", text, 0.0, 1.0, &m->foreign_limit_frac, e);
        return true;
    case OPT_STEAL:
        (void)cli_number("steal-limit", text, 0.0, 1.0, &m->steal_limit_frac, e);
        return true;
    case OPT_DEADLINE:
        (void)cli_number("deadline-s", text, 1e-3, 1e5, &m->deadline_s, e);
        return true;
    case OPT_STEP:
        (void)cli_number("step-deadline-s", text, 1.0, 1e6, &m->step_deadline_s, e);
        return true;
    case OPT_PEAK:
        (void)cli_number("ddr-peak", text, 0.1, 1e5, &o->ddr_peak_gbs, e);
        return true;
    default:
        return false;
    }
}

/* Options with a text or none. False for an unknown one (getopt has said so). */
static bool take_text(struct options *o, int id, const char *text, struct err *e)
{
    switch (id) {
    case 'b':
        o->backend = text;
        return true;
    case 'd':
        o->m.devices = text;
        return true;
    case 'o':
        o->output = text;
        return true;
    case OPT_FIT:
        take_fit(o, text, e);
        return true;
    case OPT_LIST:
        o->list = true;
        return true;
    case OPT_SIZE:
        take_size(o, text, e);
        return true;
    case OPT_ALONE:
        o->m.alone_only = true;
        return true;
    case OPT_NAME:
        o->name = text;
        return true;
    case OPT_PROC:
        o->m.proc_dir = text;
        return true;
    case OPT_RAPL:
        o->m.rapl_dir = text;
        return true;
    case OPT_ACCEL:
        o->m.accel_dir = text;
        return true;
    case OPT_LIBRARY:
        o->m.backend_options.library = text;
        return true;
    case OPT_SOC:
        o->soc = text;
        return true;
    case OPT_SIM:
        o->sim = text;
        return true;
    case OPT_JSON:
        o->json = true;
        return true;
    case OPT_QUIET:
        o->quiet = true;
        return true;
    default:
        return false;
    }
}

static void check_name(const char *option, const char *name, size_t max, struct err *e)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-+");
    if (name[0] == '\0' || name[good] != '\0' || good >= max) {
        err_add(e, "--%s %s: letters, digits and . _ - + only, at most %zu", option, name, max - 1);
    }
}

/* 0, 1 when help was asked for, -EINVAL. */
static int parse(int argc, char **argv, struct options *o, struct err *e)
{
    memset(o, 0, sizeof *o);
    measure_options_init(&o->m);
    o->backend = "native";
    o->soc = "core-ultra-5-125h";
    o->name = "this-machine";
    o->seed = 1;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        if (c == 'h') {
            return 1;
        }
        if (!take_number(o, c, optarg, e) && !take_text(o, c, optarg, e)) {
            return err_add(e, "measure: bad usage, see xpusim measure --help");
        }
    }
    if (optind < argc) {
        err_add(e, "measure: unexpected argument \"%s\"", argv[optind]);
    }
    if (o->n_fits == 0 && !o->list && o->output == NULL) {
        err_add(e, "measure: -o FILE.csv is needed (or --fit, or --list)");
    }
    if (o->json && o->n_fits == 0) {
        err_add(e, "measure: --json goes with --fit");
    }
    check_name("name", o->name, sizeof((struct kernel_row *)0)->soc, e);
    return e->n == 0 ? 0 : -EINVAL;
}

/* ---- measuring ---- */

static void set_pool(struct options *o)
{
    double mb = o->pool_mb;
    if (o->pool_mb == 0) {
        double cache_mb = host_cache_bytes() / 1048576.0;
        double memory_mb = host_memory_bytes(o->m.proc_dir) / 1048576.0;
        mb = CACHE_FACTOR * cache_mb > MIN_POOL_MB ? CACHE_FACTOR * cache_mb : MIN_POOL_MB;
        if (memory_mb > 0.0 && mb > POOL_MEMORY_FRAC * memory_mb) {
            mb = POOL_MEMORY_FRAC * memory_mb;
            (void)fprintf(stderr,
                          "xpusim: weights rotate through %.0f MB only: less than twice the "
                          "last-level cache\n",
                          mb);
        }
    }
    o->m.backend_options.pool_bytes = (uint64_t)(mb * 1048576.0);
}

static int load_truth(const struct options *o, struct simdev_truth *truth, struct err *e)
{
    char path[512];
    (void)soc_path(o->soc, path, sizeof path);
    cJSON *root = json_read_file(path, e);
    if (root == NULL) {
        return -EINVAL;
    }
    simdev_truth_init(truth);
    truth->seed = o->seed;
    int rc = soc_parse(root, path, &truth->soc, e);
    cJSON_Delete(root);
    return rc == 0 && o->sim != NULL ? simdev_truth_set(truth, o->sim, e) : rc;
}

/* The name of the backend with its options filled in, or an error. `truth` outlives the run. */
static int choose_backend(struct options *o, struct simdev_truth *truth, struct err *e)
{
    o->m.backend = backend_find(o->backend);
    o->m.soc = o->name;
    o->m.seed = o->seed;
    if (o->m.backend == NULL) {
        return err_add(e, "--backend %s: must be blas, native, opencl or sim", o->backend);
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
        struct err why = ERR_INIT;
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
        err_fini(&why);
    }
    return e->n == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* Real times belong to the day they were measured on; simulated ones to none. */
static void write_source(const struct options *o, char *buf, size_t size)
{
    if (o->m.backend == &backend_sim) {
        (void)snprintf(buf, size, "xpusim measure %s, simulated %.40s", XPUSIM_VERSION, o->soc);
        return;
    }
    char day[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) != NULL) {
        (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%MZ", &tm);
    }
    (void)snprintf(buf, size, "xpusim measure %s, backend %s, %s", XPUSIM_VERSION,
                   o->m.backend->name, day);
}

static int measure(struct options *o, struct err *e)
{
    struct simdev_truth truth;
    char source[160];
    char part[1024];
    if (choose_backend(o, &truth, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    write_source(o, source, sizeof source);
    o->m.source = source;
    o->m.progress = !o->quiet && isatty(STDERR_FILENO) != 0;
    if (snprintf(part, sizeof part, "%s.part", o->output) >= (int)sizeof part) {
        err_add(e, "-o %s: path too long", o->output);
        return EXIT_BAD_INPUT;
    }
    FILE *out = fopen(part, "w");
    if (out == NULL) {
        err_add(e, "%s: %s", part, strerror(errno));
        return EXIT_BAD_INPUT;
    }
    int rc = measure_run(&o->m, out, e);
    bool written = ferror(out) == 0;
    written = fclose(out) == 0 && written;
    if (rc == -EINVAL || !written || rename(part, o->output) != 0) {
        if (rc != -EINVAL) {
            err_add(e, "%s: cannot be written", o->output);
        }
        (void)remove(part);
        return EXIT_BAD_INPUT;
    }
    return rc == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}

/* ---- fitting ---- */

static int fit(const struct options *o, struct err *e)
{
    struct kernel_rows rows;
    struct kernel_fit result;
    kernel_rows_init(&rows);
    for (uint32_t i = 0; i < o->n_fits; i++) {
        (void)kernel_rows_read(&rows, o->fits[i], e);
    }
    int status = EXIT_BAD_INPUT;
    if (e->n == 0 && kernel_fit_run(&result, &rows, e) == 0) {
        if (o->json) {
            measure_print_json(&result, stdout);
        } else {
            measure_print_text(&result, stdout);
        }
        struct kernel_soc_options soc = {.name = rows.v[0].soc,
                                         .ddr_peak_bytes_per_s = o->ddr_peak_gbs * 1e9};
        if (o->output != NULL) {
            (void)kernel_fit_write_soc(&result, &rows, &soc, o->output, e);
        }
        bool wrong = result.alone.wrong || result.together.wrong;
        status = e->n > 0 ? EXIT_BAD_INPUT : wrong ? EXIT_CHECK_FAILED : EXIT_OK;
        kernel_fit_fini(&result);
    }
    kernel_rows_fini(&rows);
    return status;
}

int cmd_measure(int argc, char **argv)
{
    struct options o;
    struct err e = ERR_INIT;
    int rc = parse(argc, argv, &o, &e);
    int status = EXIT_BAD_INPUT;
    if (rc == 1) {
        (void)fputs(HELP, stdout);
        status = EXIT_OK;
    } else if (rc == 0) {
        status = o.list ? list(&o, &e) : o.n_fits > 0 ? fit(&o, &e) : measure(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}
