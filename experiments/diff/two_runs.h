/* Two runs that should decide equally: the same command line, except for side B's own options
 * (policy, settings, seed, workload) or another binary. For diff and bisect. */
#pragma once

#include "experiments/diff/diverge.h"
#include "experiments/run/config.h"
#include "experiments/run/job_options.h"
#include "experiments/run/jobs.h"

struct two_runs_side {
    struct config_options options;
    const char *policy;
    const char *binary; /* another xpusim; NULL: this one. Only side B has one */
    struct config config;
    struct config_policy parsed;
};

/* As on the command line: what both sides have, and what B has of its own. */
struct two_runs_options {
    struct config_options both, b;
    struct job_options work;
    const char *policy, *b_policy, *against;
};

/* The tables of struct two_runs_options at an offset: its children in a command's list. */
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

/* How a run ended, with its decision log. */
struct two_runs_log {
    FILE *log;  /* owned; rewound; NULL when there is none */
    int status; /* 0, or the run's failure */
    char message[JOBS_MESSAGE_BYTES];
    const char *state; /* kept; just before the decision asked for; NULL when nobody knows it */
};

/* Loads both sides. 0 or -EINVAL. Kept, each time. */
int two_runs_load(struct two_runs *r, const struct two_runs_options *o, struct err *e);

/* ---- running ---- */

/* Runs one side on a trace, in a process of its own. The message names a policy that crashes, exits
 * or never returns; nothing else ends. before: the decision whose state is wanted (snapshot.h), or
 * NULL. The state of side B's other binary is not available. */
void two_runs_run(const struct two_runs *r, int side, const struct trace *t,
                  const struct divergence *before, struct two_runs_log *out);
void two_runs_log_fini(struct two_runs_log *l);

/* How a run of two_runs_part ended: "" where it did well. */
typedef char two_runs_end[JOBS_MESSAGE_BYTES];

/* Do the two sides part on this trace? Both in processes of their own: one that crashes or does not
 * return has parted from one that does not. */
bool two_runs_part(const struct two_runs *r, const struct trace *t, two_runs_end end[2]);
