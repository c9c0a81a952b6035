#include "experiments/run/job_options.h"

#include <unistd.h>

#include "experiments/run/worker.h"

#define JOBS struct job_options

static void init(void *target)
{
    JOBS *o = target;
    o->how.parallel = worker_processors();
}

#define TIME_LIMIT                                                                                 \
    OPTION_ROW(                                                                                    \
        NUMBER, JOBS, how.cpu_limit_s, double, "time-limit", "S",                                  \
        "CPU seconds after which a run is stopped. A run that only waits (a sleep, a lock) "       \
        "is stopped after as many seconds of wall-clock time, at most 60",                         \
        .preset = "600", .min = 1.0, .max = 1e7, .aside = true)

static const struct option_row rows[] = {
    OPTION_ROW(COUNT, JOBS, how.parallel, uint32_t, "jobs", "J",
               "runs at once (default: processors); results do not depend on it", .min = 1,
               .max = 4096, .aside = true),
    TIME_LIMIT,
    OPTION_FILE(JOBS, path, "store", "FILE.db",
                "keep the runs in an SQLite file, and reuse those that it has, of the same "
                "program, configuration, requests, policy and seed"),
};

static const struct option_row time_limit_rows[] = {TIME_LIMIT};

const struct option_table job_option_table = OPTION_TABLE_INIT("Work", rows, init);
const struct option_table time_limit_option_table = OPTION_TABLE(NULL, time_limit_rows);

#define SAMPLES struct sample_options

static const struct option_row sample_rows[] = {
    OPTION_FLAG(SAMPLES, sketch, "sketch",
                "compute quantiles within 0.5 %, in memory that grows with waiting requests only "
                "(default above 100,000 requests)"),
    OPTION_FLAG(SAMPLES, exact, "exact", "keep every sample: 1.2 kB per request"),
};
const struct option_table sample_option_table = OPTION_TABLE(NULL, sample_rows);

enum runner_samples sample_options_choice(const struct sample_options *o, struct err *e)
{
    if (o->sketch && o->exact) {
        (void)err_add(e, "--sketch and --exact: one of them");
    }
    return o->sketch  ? RUNNER_SAMPLES_SKETCH
           : o->exact ? RUNNER_SAMPLES_EXACT
                      : RUNNER_SAMPLES_AUTO;
}

int job_options_work(struct job_options *o, bool quiet, int (*work)(void *, struct err *),
                     void *values, struct err *e)
{
    struct store *s = o->path != NULL ? store_open(o->path, STORE_USE_CREATE, e) : NULL;
    if (o->path != NULL && s == NULL) {
        return -EINVAL;
    }
    o->how.progress = !quiet && isatty(STDERR_FILENO) != 0;
    o->how.store = s;
    int status = work(values, e);
    if (s != NULL && !quiet) {
        (void)fprintf(stderr, "xpusim: %s: %" PRIu64 " run%s added, %" PRIu64 " found there\n",
                      o->path, store_added(s), text_plural(store_added(s)), store_found(s));
    }
    (void)store_close(s, e);
    o->how.store = NULL;
    return status;
}
