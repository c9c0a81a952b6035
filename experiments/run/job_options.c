#include "experiments/run/job_options.h"

#include "experiments/run/jobs.h"

#define JOBS struct job_options

static void init(void *target)
{
    JOBS *o = target;
    o->jobs = worker_processors();
}

#define TIME_LIMIT                                                                                 \
    OPTION_NUMBER(JOBS, time_limit_s, "time-limit", "S", "600", 1.0, 1e7,                          \
                  "CPU seconds after which a run is given up")

static const struct option_row rows[] = {
    OPTION_COUNT(JOBS, jobs, "jobs", "J", NULL, 1, 4096,
                 "runs at once (default: processors); results do not depend on it"),
    TIME_LIMIT,
};

static const struct option_row time_limit_rows[] = {TIME_LIMIT};

const struct option_table job_option_table = {
    .title = "Work", .rows = rows, .n = sizeof rows / sizeof rows[0], .init = init};
const struct option_table time_limit_option_table = OPTION_TABLE(NULL, time_limit_rows);
