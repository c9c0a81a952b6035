/* `xpusim sweep`: an experiment file into a store. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/run/jobs.h"
#include "experiments/shell/cli.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_slurm.h"
#include "sim/base/arena.h"

static const char help[] =
    "usage: xpusim sweep SPEC.json -o STORE.db [options]\n"
    "       xpusim sweep -o STORE.db --export csv|json\n"
    "\n"
    "Runs what is missing of an experiment (experiments/sweep/spec.h describes the file), and "
    "keeps the\n"
    "results in an SQLite file. Interrupted or killed, the same command goes on. Without SPEC it\n"
    "prints what a store holds.\n"
    "\n"
    "  -o, --output STORE.db  the store; made when it is not there\n"
    "  --export csv|json      afterwards, print this experiment's results\n"
    "  --jobs J               runs at once (default: processors); results do not depend on it\n"
    "  --shard I/N            only every Nth run, from I = 0 (N counts as 0, so 1/N to N/N will "
    "do\n"
    "                         too); `xpusim merge` puts the stores together\n"
    "  --fail-fast            stop at the first run that fails\n"
    "  --time-limit S         CPU seconds after which a run is given up (default 600)\n"
    "  --memory-limit MB      address space a run may use (default: no limit)\n"
    "  --yes                  do it, even when it is more than 100000 runs\n"
    "  --dry-run              check the file, print how many runs it has, and are done\n"
    "  --slurm TASKS          instead of running here: submit a job array of so many shards, and "
    "a\n"
    "                         job that merges them into STORE.db; --jobs (default 1) is the "
    "number\n"
    "                         of processors per task\n"
    "  --slurm-option OPT     option of both jobs, as --slurm-option=--partition=long; repeated\n"
    "  --slurm-scripts        with --slurm: write the scripts (STORE.db.slurm/) without "
    "submitting\n"
    "  --quiet                no progress bar, no summary\n";

struct options {
    const char *spec, *store, *format;
    struct sweep_options sweep;
    struct slurm_options slurm; /* tasks 0: here */
    bool yes, dry_run, quiet;
};

static void take_shard(const char *arg, struct sweep_options *o, struct err *e)
{
    char *end = NULL;
    char *end2 = NULL;
    unsigned long i = strtoul(arg, &end, 10);
    unsigned long n = *end == '/' ? strtoul(end + 1, &end2, 10) : 0;
    if (arg[0] < '0' || arg[0] > '9' || n == 0 || end[1] < '0' || end[1] > '9' || *end2 != '\0' ||
        n > 1000000 || i > n) {
        (void)err_add(e, "--shard %s: must be I/N with I from 0 to N - 1, as in 0/4", arg);
        return;
    }
    o->shard = (uint32_t)(i % n);
    o->shards = (uint32_t)n;
}

static bool take_option(struct options *o, int c, struct err *e)
{
    uint32_t megabytes = 0;
    switch (c) {
    case 'o':
        o->store = optarg;
        return true;
    case 'x':
        o->format = optarg;
        if (strcmp(optarg, "csv") != 0 && strcmp(optarg, "json") != 0) {
            (void)err_add(e, "--export %s: must be csv or json", optarg);
        }
        return true;
    case 'J':
        (void)cli_count("jobs", optarg, 1, 4096, &o->sweep.jobs, e);
        o->slurm.jobs = o->sweep.jobs;
        return true;
    case 'S':
        (void)cli_count("slurm", optarg, 1, 100000, &o->slurm.tasks, e);
        return true;
    case 'O':
        if (o->slurm.n_options == SLURM_MAX_OPTIONS || strncmp(optarg, "-", 1) != 0 ||
            strchr(optarg, '\n') != NULL) {
            (void)err_add(e, "--slurm-option %s: must be an option of sbatch; at most %d", optarg,
                          SLURM_MAX_OPTIONS);
            return true;
        }
        o->slurm.options[o->slurm.n_options++] = optarg;
        return true;
    case 'W':
        o->slurm.submit = false;
        return true;
    case 's':
        take_shard(optarg, &o->sweep, e);
        return true;
    case 'f':
        o->sweep.fail_fast = true;
        return true;
    case 't':
        (void)cli_number("time-limit", optarg, 1.0, 1e7, &o->sweep.time_limit_s, e);
        return true;
    case 'm':
        (void)cli_count("memory-limit", optarg, 16, 100000000, &megabytes, e);
        o->sweep.memory_limit_bytes = (uint64_t)megabytes << 20;
        return true;
    case 'y':
        o->yes = true;
        return true;
    case 'n':
        o->dry_run = true;
        return true;
    case 'q':
        o->quiet = true;
        return true;
    default:
        return false;
    }
}

/* 0, 1 when help was printed, or -EINVAL. */
static int parse_options(int argc, char **argv, struct options *o, struct err *e)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"export", required_argument, NULL, 'x'},
                                          {"jobs", required_argument, NULL, 'J'},
                                          {"shard", required_argument, NULL, 's'},
                                          {"fail-fast", no_argument, NULL, 'f'},
                                          {"time-limit", required_argument, NULL, 't'},
                                          {"memory-limit", required_argument, NULL, 'm'},
                                          {"slurm", required_argument, NULL, 'S'},
                                          {"slurm-option", required_argument, NULL, 'O'},
                                          {"slurm-scripts", no_argument, NULL, 'W'},
                                          {"yes", no_argument, NULL, 'y'},
                                          {"dry-run", no_argument, NULL, 'n'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.sweep = {.jobs = jobs_processors(), .shards = 1, .time_limit_s = 600.0},
                          .slurm = {.jobs = 1, .submit = true}};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "o:hq", longs, NULL)) != -1;) {
        if (c == 'h') {
            (void)fputs(help, stdout);
            return 1;
        }
        if (!take_option(o, c, e)) {
            return err_add(e, "`xpusim sweep --help` shows the options");
        }
    }
    if (optind < argc) {
        o->spec = argv[optind++];
    }
    if (optind < argc) {
        return err_add(e, "%s: one experiment file at a time", argv[optind]);
    }
    if (o->spec == NULL && o->format == NULL) {
        return err_add(e, "the experiment file is missing; `xpusim sweep --help`");
    }
    if (o->store == NULL && !o->dry_run) {
        return err_add(e, "-o STORE.db is missing: where results go");
    }
    if (o->slurm.tasks > 0 && (o->sweep.shards > 1 || o->format != NULL)) {
        (void)err_add(e, "--slurm excludes --shard and --export");
    }
    return e->n > 0 ? -EINVAL : 0;
}

static void print_results(struct store *s, int64_t experiment, const char *format)
{
    if (format != NULL) {
        (strcmp(format, "csv") == 0 ? store_export_csv : store_export_json)(s, experiment, stdout);
    }
}

static void summarise(const struct options *o, const struct spec *spec,
                      const struct sweep_result *r)
{
    if (r->failed > 0) {
        (void)fprintf(stderr, "xpusim: error: %" PRIu64 " runs failed, the first at %s\n",
                      r->failed, r->first_failure);
    }
    if (o->quiet) {
        return;
    }
    (void)fprintf(stderr,
                  "xpusim: %s: %" PRIu64 " runs done, %" PRIu64 " were in the store, %" PRIu64
                  " failed%s\n",
                  o->spec, r->done, r->found, r->failed,
                  r->interrupted ? "; stopped early: the same command goes on" : "");
    if (r->points_open > 0) {
        (void)fprintf(stderr,
                      "xpusim: note: %" PRIu64 " points did not reach their half-widths in "
                      "%" PRIu32 " replications\n",
                      r->points_open, spec->max_replications);
    }
}

static int sweep(struct options *o, const struct spec *spec, struct err *e)
{
    struct store *store = store_open(o->store, true, e);
    if (store == NULL) {
        return EXIT_BAD_INPUT;
    }
    o->sweep.progress = !o->quiet && isatty(STDERR_FILENO) != 0;
    struct sweep_result r;
    int status = sweep_run(spec, store, &o->sweep, &r, e) == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
    summarise(o, spec, &r);
    if (status == EXIT_OK && !r.interrupted) {
        print_results(store, r.experiment, o->format);
    }
    if (store_close(store, e) != 0 || r.failed > 0 || r.interrupted) {
        status = EXIT_CHECK_FAILED;
    }
    return status;
}

static int to_slurm(struct options *o, struct err *e)
{
    o->slurm.time_limit_s = o->sweep.time_limit_s;
    o->slurm.memory_limit_bytes = o->sweep.memory_limit_bytes;
    o->slurm.fail_fast = o->sweep.fail_fast;
    o->slurm.yes = o->yes;
    return sweep_slurm(o->spec, o->store, &o->slurm, e) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* --dry-run: how much it is and, of a store that is there, how much of it is done. */
static int tell_size(const struct options *o, const struct spec *spec, struct err *e)
{
    uint64_t there = 0;
    if (o->store != NULL && access(o->store, F_OK) == 0) {
        struct store *store = store_open(o->store, false, e);
        if (store == NULL) {
            return EXIT_BAD_INPUT;
        }
        there = store_count(store, sweep_experiment(spec, store));
        if (store_close(store, e) != 0) {
            return EXIT_CHECK_FAILED;
        }
    }
    (void)printf("%s: %" PRIu64 " points, %s%" PRIu64 " runs, %" PRIu64 " of them in the store\n",
                 o->spec, spec->n_points, spec->n_until > 0 ? "at most " : "",
                 spec_runs(spec, spec->max_replications), there);
    return EXIT_OK;
}

static int with_spec(struct options *o, struct err *e)
{
    struct spec *spec = xcalloc(1, sizeof *spec);
    int status = EXIT_BAD_INPUT;
    if (spec_load(spec, o->spec, o->yes, e) == 0 && spec_check(spec, e) == 0) {
        if (o->dry_run) {
            status = tell_size(o, spec, e);
        } else if (o->slurm.tasks > 0) {
            status = to_slurm(o, e);
        } else {
            status = sweep(o, spec, e);
        }
    }
    spec_fini(spec);
    free(spec);
    return status;
}

static int only_export(const struct options *o, struct err *e)
{
    struct store *store = store_open(o->store, false, e);
    if (store == NULL) {
        return EXIT_BAD_INPUT;
    }
    print_results(store, 0, o->format);
    return store_close(store, e) == 0 ? EXIT_OK : EXIT_CHECK_FAILED;
}

int cmd_sweep(int argc, char **argv)
{
    struct options o;
    struct err e = ERR_INIT;
    int rc = parse_options(argc, argv, &o, &e);
    int status = rc == 1 ? EXIT_OK : EXIT_BAD_INPUT;
    if (rc == 0) {
        status = o.spec != NULL ? with_spec(&o, &e) : only_export(&o, &e);
    }
    err_print(&e, stderr);
    err_fini(&e);
    return status;
}
