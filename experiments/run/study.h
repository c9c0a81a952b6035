/* A study: cells {configuration, policy, workload, seed}, each simulated in a worker process, and
 * what came of each. A judge says which cells it needs and reads outcomes; runs are started here,
 * and here only looked up: with a store, cells that it holds are not run again, and new ones are
 * kept. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/run/runner.h"
#include "experiments/run/worker.h"
#include "experiments/store/store.h"

struct study_cell {
    const struct config *config;          /* borrowed, as all of these */
    const struct config_options *options; /* of the workload */
    const struct config_policy *policy;   /* of another binary only its label */
    uint64_t seed; /* of workload and noise: equal seeds meet equal requests */
    struct config_arrivals arrivals;
    bool only_first;     /* the first request alone: can a policy start at all? */
    double warmup_s;     /* requests that arrive before are in no distribution */
    const char *binary;  /* another xpusim that runs it, never looked up; NULL: this one */
    const void *context; /* information for a clairvoyant policy (sched.context), or NULL; then */
    const char *told;    /* ... the same as a text, by which the store knows it */
    /* An observer of the run, and a function that writes the analysis's data from it. Such a run is
     * never looked up and not kept. NULL: none. */
    struct observer *observer;
    void (*say)(void *heard, const struct trace *t, FILE *to);
    void *heard;
};

/* Names of values, shared by the outcomes that have the same. */
struct study_names {
    struct study_names *next;
    size_t n;
    char *text;     /* owned: one after the other, each with its zero */
    size_t size;    /* of text */
    const char **v; /* owned list of pointers into it */
};

struct study_outcome {
    int status;                       /* 0, or the run failed and message says why */
    char message[JOBS_MESSAGE_BYTES]; /* "" when fine */
    int64_t run;                      /* in the store; 0 without one */
    bool found;                       /* it was there already */
    const struct study_names *names;  /* the run's metrics, then its counters (counters.NAME) */
    double *values;                   /* by names; NULL when it failed */
    void *said;                       /* what cell.say wrote; NULL: nothing */
    size_t said_bytes;
};

/* How runs are made; no result depends on it. */
struct study_how {
    uint32_t parallel;   /* at once */
    double cpu_limit_s;  /* of a run; 0: none */
    bool progress;       /* a bar on stderr */
    struct store *store; /* what it holds is not run again; or NULL */
};

struct study {
    uint64_t n; /* cells, numbered from 0 */
    struct study_how how;
    uint32_t cells_per_worker; /* of one process, then a fresh one; 0: 1. More costs less, where no
                                  policy from outside can leave anything behind */
    uint64_t memory_limit_bytes; /* of a worker; 0: none */
    enum runner_samples samples;
    bool reads;       /* found runs come with their values (always, where done is NULL) */
    const char *kept; /* what `keeps` keeps, as the store calls it; NULL: "*", everything */
    void *ctx;        /* borrowed */
    /* Called in the worker. Its allocations need not be freed unless cells_per_worker is large. 0,
     * or -errno with an error added. */
    int (*cell)(void *ctx, uint64_t index, struct study_cell *out, struct err *e);
    bool (*keeps)(void *ctx, const char *name); /* in the worker; NULL: all */
    /* In the parent. Number of the next cell, false when there is none now; NULL: 0 .. n - 1. */
    bool (*next)(void *ctx, uint64_t *index);
    /* In the parent: a cell is done, in any order. Borrowed. With it no outcome is kept: for
     * studies too large to be in memory. NULL: the judge is given all outcomes together, and keeps,
     * next and go_on are NULL too. */
    void (*done)(void *ctx, uint64_t index, const struct study_outcome *o);
    bool (*go_on)(void *ctx); /* every 50 ms; false stops everything */
};

struct study_outcomes {
    struct study_outcome *v; /* owned */
    uint32_t n;
    struct study_names *names; /* owned */
    int rc;                    /* of a study with `done`: 0 or -errno as pool_run */
};

/* An analysis; it runs nothing. It receives the outcomes of the jobs that it asked for last (NULL:
 * none yet), and writes the next jobs into `next` (zeroed before). Everything it borrows must stay
 * until the outcomes have come. Returns false when it is done. */
typedef bool study_judge(void *ctx, const struct study_outcomes *came, struct study *next);
/* Runs what a judge asks for, until it knows. Cells that fail do not stop the others. */
void study_run(study_judge *judge, void *ctx);

/* n outcomes that nobody ran, to be read from a store. */
void study_outcomes_open(struct study_outcomes *o, uint32_t n);
void study_outcomes_read(struct study_outcomes *o, uint32_t index, struct store *s, int64_t run);
void study_outcomes_fini(struct study_outcomes *o);

/* A value by its name: NaN when the run failed, or has none. Cost: names. */
double study_value(const struct study_outcome *o, const char *name);
bool study_has(const struct study_outcome *o, const char *name);
/* Like study_value, where the name is expected at an index: all names in their order cost O(1)
 * each. */
double study_value_near(const struct study_outcome *o, size_t index, const char *name);
