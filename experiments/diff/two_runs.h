/* Two runs whose decisions should be equal: the same command line, except for options of side B
 * (policy, settings, seed, workload) or another binary. For diff and bisect. */
#pragma once

#include "experiments/diff/diverge.h"
#include "experiments/run/config.h"
#include "experiments/run/job_options.h"
#include "experiments/run/jobs.h"

struct two_runs_side {
    struct config_options options;
    const char *policy;
    const char *binary; /* another xpusim, only for side B; NULL: this one */
    struct config config;
    struct config_policy parsed;
};

/* As on the command line: options of both sides, and those of side B. */
struct two_runs_options {
    struct config_options both, b;
    struct job_options work;
    const char *policy, *b_policy, *against;
};

/* The tables of a struct two_runs_options at an offset, as children of a command. */
extern const struct option_table two_runs_option_table;
#define TWO_RUNS_CHILDREN(at)                                                                      \
    {&two_runs_option_table, (at), NULL, false},                                                   \
        {&time_limit_option_table, (at) + offsetof(struct two_runs_options, work), NULL, false},   \
        {&config_option_table, (at) + offsetof(struct two_runs_options, both), NULL, false},       \
    {                                                                                              \
        &config_option_table, (at) + offsetof(struct two_runs_options, b), "b-", false             \
    }

struct two_runs {
    struct two_runs_side side[2]; /* A and B */
    uint32_t jobs;
    double time_limit_s;
};

/* The end of a run, with its decision log. */
struct two_runs_log {
    FILE *log;  /* owned; rewound; NULL: none */
    int status; /* 0, or the run's failure */
    char message[JOBS_MESSAGE_BYTES];
    const char *state; /* kept; state just before the requested decision; NULL: unknown */
};

/* Loads both sides, and keeps them. Returns 0 or -EINVAL. */
int two_runs_load(struct two_runs *r, const struct two_runs_options *o, struct err *e);

/* ---- running ---- */

/* Runs one side on a trace in its own process. If the policy crashes, exits or never returns, out
 * has a message and only that process ends. before: the decision whose state is requested
 * (snapshot.h), or NULL. The state of another binary is not available. */
void two_runs_run(const struct two_runs *r, int side, const struct trace *t,
                  const struct divergence *before, struct two_runs_log *out);
void two_runs_log_fini(struct two_runs_log *l);

/* The end of a run of two_runs_part; "": success. */
typedef char two_runs_end[JOBS_MESSAGE_BYTES];

/* Whether the two sides differ on this trace. Both run in their own processes: a side that crashes
 * or does not return differs from one that ends. */
bool two_runs_part(const struct two_runs *r, const struct trace *t, two_runs_end end[2]);
