/* `xpusim sweep`: runs an experiment file into a store. */
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "experiments/run/job_options.h"
#include "experiments/run/jobs.h"
#include "experiments/shell/cli.h"
#include "experiments/sweep/suite.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_slurm.h"
#include "sim/base/datadir.h"

#define MAX_POLICIES 64

struct options {
    struct option_texts files; /* the experiment */
    struct option_texts policies;
    struct job_options work;
    struct option_output output;
    const char *spec, *store, *format;
    bool jobs_given, yes, dry_run, fail_fast;
    uint32_t memory_limit_mb;
    struct sweep_options sweep;
    struct slurm_options slurm;
};

static void init(void *target)
{
    struct options *o = target;
    o->work.how.parallel = worker_processors();
}

static void summarise(const struct options *o, const struct spec *spec,
                      const struct sweep_result *r)
{
    if (r->failed > 0) {
        (void)fprintf(stderr, "xpusim: error: %" PRIu64 " run%s failed, the first at %s\n",
                      r->failed, text_plural(r->failed), r->first_failure);
    }
    if (o->output.quiet) {
        return;
    }
    (void)fprintf(stderr,
                  "xpusim: %s: %" PRIu64 " run%s done, %" PRIu64 " found in the store, %" PRIu64
                  " failed%s\n",
                  o->spec, r->done, text_plural(r->done), r->found, r->failed,
                  r->interrupted ? "; stopped early: the same command continues" : "");
    if (r->empty > 0) {
        (void)fprintf(stderr,
                      "xpusim: note: %" PRIu64
                      " replication%s without requests, which count for nobody\n",
                      r->empty, text_plural(r->empty));
    }
    OWNED char *outside = extrapolated_text(&r->extrapolated);
    if (outside != NULL) {
        SCOPED(json_drop) cJSON *settings = spec_point_settings(spec, r->extrapolated_point);
        OWNED char *text = json_text(settings, false);
        (void)fprintf(
            stderr,
            "xpusim: warning: outside the calibrated range, where times are extrapolated: "
            "%s at point %" PRIu64 " (%s); no point has a larger share\n",
            outside, r->extrapolated_point, text);
    }
    if (r->points_open > 0) {
        (void)fprintf(stderr,
                      "xpusim: note: %" PRIu64 " point%s did not reach the half-widths in "
                      "%" PRIu32 " replication%s\n",
                      r->points_open, text_plural(r->points_open), spec->max_replications,
                      text_plural(spec->max_replications));
    }
}

static int sweep(struct options *o, const struct spec *spec, struct err *e)
{
    struct store *store = store_open(o->store, STORE_USE_CREATE, e);
    if (store == NULL) {
        return EXIT_BAD_INPUT;
    }
    struct sweep_result r;
    int rc = sweep_run(spec, store, &o->sweep, &r, e);
    int status = rc == 0 ? EXIT_OK : rc == -ENOMEM ? EXIT_NO_MEMORY : EXIT_CHECK_FAILED;
    summarise(o, spec, &r);
    if (status == EXIT_OK && !r.interrupted) {
        store_export(store, r.experiment, o->format, stdout);
    }
    if (r.failed > 0 || r.interrupted) {
        status = status == EXIT_OK ? EXIT_CHECK_FAILED : status;
    }
    return store_close(store, e) == 0 ? status : EXIT_BAD_INPUT;
}

static int to_slurm(const struct options *o, struct err *e)
{
    OWNED char *limit = xformat("%.17g", o->sweep.how.cpu_limit_s);
    OWNED char *memory = xformat("%" PRIu32, o->memory_limit_mb);
    struct slurm_command c = {.jobs = o->jobs_given ? o->work.how.parallel : 1, .complete = true};
    slurm_word(&c, "sweep");
    slurm_word(&c, o->spec);
    for (uint32_t i = 0; i < o->policies.n; i++) {
        slurm_word(&c, "--policy");
        slurm_word(&c, o->policies.v[i]);
    }
    slurm_word(&c, "--time-limit");
    slurm_word(&c, limit);
    slurm_word(&c, o->memory_limit_mb > 0 ? "--memory-limit" : NULL);
    slurm_word(&c, o->memory_limit_mb > 0 ? memory : NULL);
    slurm_word(&c, o->fail_fast ? "--fail-fast" : NULL);
    slurm_word(&c, o->yes ? "--yes" : NULL);
    return sweep_slurm(o->store, &o->slurm, &c, e) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* --dry-run: prints the number of runs, and how many of them an existing store has. */
static int tell_size(const struct options *o, const struct spec *spec, struct err *e)
{
    uint64_t there = 0;
    if (o->store != NULL && access(o->store, F_OK) == 0) {
        struct store *store = store_open(o->store, STORE_USE_READ, e);
        if (store == NULL) {
            return EXIT_BAD_INPUT;
        }
        there = sweep_there(spec, store);
        if (store_close(store, e) != 0) {
            return EXIT_BAD_INPUT;
        }
    }
    uint64_t runs = spec_runs(spec, spec->max_replications);
    (void)printf("%s: %" PRIu64 " point%s, %s%" PRIu64 " run%s, %" PRIu64 " of them in the store\n",
                 o->spec, spec->n_points, text_plural(spec->n_points),
                 spec->n_until > 0 ? "at most " : "", runs, text_plural(runs), there);
    return EXIT_OK;
}

/* Whether there are policies. A suite has none, so --policy must name them. */
static bool names_policies(const struct options *o, const struct spec *spec, struct err *e)
{
    bool named = spec->suite == NULL || o->policies.n > 0;
    if (!named) {
        (void)err_add(e, "%s: a suite names no policy: --policy is missing", o->spec);
    }
    return named;
}

static int with_spec(struct options *o, struct err *e)
{
    struct spec *spec = xkept(xcalloc(1, sizeof *spec));
    int status = EXIT_BAD_INPUT;
    if (spec_load_with(spec, o->spec, (const char *const *)o->policies.v, o->policies.n, o->yes,
                       e) == 0 &&
        names_policies(o, spec, e) && spec_check(spec, e) == 0) {
        if (o->dry_run) {
            status = tell_size(o, spec, e);
        } else if (o->slurm.tasks > 0) {
            status = to_slurm(o, e);
        } else {
            status = sweep(o, spec, e);
        }
    }
    return status;
}

static int only_export(const struct options *o, struct err *e)
{
    struct store *store = store_open(o->store, STORE_USE_READ, e);
    if (store == NULL) {
        return EXIT_BAD_INPUT;
    }
    store_export(store, 0, o->format, stdout);
    return store_close(store, e) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
}

/* Checks and settles options that depend on each other. */
static int settle(struct options *o, struct err *e)
{
    o->spec = o->files.n > 0 ? suite_file(o->files.v[0], e) : NULL;
    o->sweep.how = o->work.how;
    o->sweep.how.progress = !o->output.quiet && isatty(STDERR_FILENO) != 0;
    o->sweep.fail_fast = o->fail_fast;
    o->sweep.memory_limit_bytes = (uint64_t)o->memory_limit_mb << 20;
    o->sweep.shard = o->slurm.shard;
    o->sweep.shards = o->slurm.shards;
    if (e->n > 0 || slurm_refuse_alone(&o->slurm, e) != 0) {
        return -EINVAL;
    }
    if (o->spec == NULL && o->format == NULL) {
        return err_add(e, "the experiment file is missing; `xpusim sweep --help`");
    }
    if (o->store == NULL && !o->dry_run) {
        return err_add(e, "-o STORE.db is missing: where results go");
    }
    if (o->slurm.tasks > 0 && (o->sweep.shards > 1 || o->format != NULL)) {
        return err_add(e, "--slurm excludes --shard and --export");
    }
    if (o->dry_run && o->format != NULL && o->spec != NULL) {
        return err_add(e, "--dry-run excludes --export: there are no results");
    }
    bool of_runs = o->policies.n > 0 || o->sweep.shards > 1 || o->dry_run || o->fail_fast;
    if (o->spec == NULL && of_runs) {
        return err_add(e, "without an experiment file sweep prints what is in the store; --policy, "
                          "--shard, --dry-run and --fail-fast belong to a file");
    }
    return 0;
}

static int run(void *values, struct err *e)
{
    struct options *o = values;
    int rc = settle(o, e);
    return rc != 0 ? rc : o->spec != NULL ? with_spec(o, e) : only_export(o, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_TEXTS(OPTIONS, policies, "policy", "P[:K=V,..]", MAX_POLICIES,
                 "policy of every point, of an experiment or a suite that names none; repeated"),
    OPTION_OUTPUT(OPTIONS, store, "STORE.db", NULL, "store; created when missing"),
    OPTION_TEXT(OPTIONS, store, "store", "STORE.db", NULL,
                "like -o, by the name of other commands"),
    OPTION_CHOICE(OPTIONS, format, "export", "F", NULL, store_forms,
                  "print this experiment's results afterwards, as one of"),
    OPTION_ROW(COUNT, OPTIONS, work.how.parallel, uint32_t, "jobs", "J",
               "runs at once (default: processors; in a Slurm task: 1)", .min = 1, .max = 4096,
               .given = 1 + OPTION_AT(OPTIONS, jobs_given, bool)),
    OPTION_NUMBER(OPTIONS, work.how.cpu_limit_s, "time-limit", "S", "600", 1.0, 1e7,
                  "CPU seconds after which a run is stopped"),
    OPTION_COUNT(OPTIONS, memory_limit_mb, "memory-limit", "MB", NULL, 16, 100000000,
                 "address space of a run, in MB (default: no limit)"),
    OPTION_FLAG(OPTIONS, fail_fast, "fail-fast", "stop at the first run that fails"),
    OPTION_FLAG(OPTIONS, yes, "yes", "run even more than 100000 runs"),
    OPTION_FLAG(OPTIONS, dry_run, "dry-run",
                "check the file and print its number of runs, without running them"),
};
static const struct option_table own = OPTION_TABLE_INIT(NULL, rows, init);
const struct command cmd_sweep = {
    .name = "sweep",
    .summary = "run an experiment file: many runs into a store, resumable, in shards",
    .usage = "SPEC.json -o STORE.db [options]\n"
             "-o STORE.db --export csv|json",
    .about = "Makes the missing runs of an experiment (docs/concepts/experiments.md describes "
             "the file), and keeps the results in an SQLite file. The same command continues an "
             "interrupted or killed one. Without SPEC it prints the results in a store.",
    .operands = {"SPEC.json", 0, 1, offsetof(OPTIONS, files)},
    COMMAND_TAKES({.table = &own}, OPTION_CHILD(slurm_option_table, slurm),
                  OPTION_CHILD(option_quiet_table, output)),
    .run = run,
};
