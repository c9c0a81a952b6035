/* Runs: a list of cells {configuration, policy, workload, seed} goes in, and one outcome per cell
 * comes back. Each cell is simulated in a worker process. With a store, cells that it holds are not
 * run again, and new ones are kept. */
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
    enum runner_samples samples;
    bool only_first;            /* the first request alone: can a policy start at all? */
    double warmup_s;            /* requests that arrive before are in no distribution */
    const char *binary;         /* another xpusim that runs it, never looked up; NULL: this one */
    const void *policy_context; /* information for a clairvoyant policy (sched.context), or NULL */
    const char *context_key;    /* the context as a text, by which the store knows it */
    /* Completes the cell in its worker, as loading a configuration costs the parent nothing there.
     * Memory that it allocates need not be freed. 0, or -errno with an error added, which becomes
     * the run's message. NULL: the cell is complete. */
    int (*load)(struct study_cell *c, struct err *e);
    const void *from; /* for load */
    /* An observer of the run, and a function that writes the analysis's data from it. Such a run is
     * never looked up and not kept. NULL: none. */
    struct observer *observer;
    void (*observer_write)(void *state, const struct trace *t, FILE *to);
    void *observer_state;
};

/* Names of values, shared by the outcomes that have the same. */
struct study_names {
    struct study_names *next;
    size_t n;
    char *text;     /* owned: one after the other, each with its zero */
    size_t size;    /* of text */
    const char **v; /* owned list of pointers into it */
};

/* The status of a run whose workload could not be made, as one without requests. The policy had no
 * part in it. */
#define STUDY_NO_WORKLOAD (-ENOMSG)

struct study_outcome {
    int status;                       /* 0, or the run failed and message says why */
    char message[JOBS_MESSAGE_BYTES]; /* "" when fine */
    int64_t run;                      /* in the store; 0 without one */
    bool found;                       /* it was there already */
    bool not_run;                     /* with a status: nobody ran it, so that it did not fail */
    const struct study_names *names;  /* the run's metrics, then its counters (counters.NAME) */
    double *values;                   /* by names; NULL when it failed */
    void *observed;                   /* by observer_write; NULL: nothing */
    size_t observed_bytes;
};

/* How runs are made; no result depends on it. */
struct study_how {
    uint32_t parallel;         /* at once */
    double cpu_limit_s;        /* of a run; 0: none */
    bool progress;             /* a bar on stderr */
    struct store *store;       /* what it holds is not run again; or NULL */
    uint32_t cells_per_worker; /* of one process, then a fresh one. More costs less, where no policy
                                  from outside can leave anything behind. 0: study_run looks whether
                                  one could, and study_stream takes 1 */
    uint64_t memory_limit_bytes; /* of a worker; 0: none */
};

struct study_outcomes {
    struct study_outcome *v; /* owned; by cell */
    uint32_t n;
    struct study_names *names; /* owned */
};

/* Runs all cells, and returns when they are done. Cells that fail do not stop the others.
 * study_outcomes_fini frees the result. */
struct study_outcomes study_run(const struct study_cell *cells, uint32_t n,
                                const struct study_how *how);

/* Cells that come one by one and whose outcomes nobody keeps: for more of them than memory holds.
 */
struct study_stream {
    struct study_how how;
    const char *kept; /* what `keeps` keeps, as the store calls it */
    void *ctx;        /* borrowed */
    /* Called in the worker. */
    int (*cell)(void *ctx, uint64_t index, struct study_cell *out, struct err *e);
    bool (*keeps)(void *ctx, const char *name); /* in the worker; NULL: all */
    /* In the parent. Number of the next cell, false when there is none. */
    bool (*next)(void *ctx, uint64_t *index);
    /* In the parent: a cell is done, in any order. Borrowed. Found runs come without values. */
    void (*done)(void *ctx, uint64_t index, const struct study_outcome *o);
    bool (*go_on)(void *ctx); /* every 50 ms; false stops everything; NULL: never stops */
};
/* 0 or -errno as pool_run. */
int study_stream(const struct study_stream *s);

/* The key by which a store knows the run of a complete cell, for free(). NULL with an error added
 * when its workload cannot be made. */
char *study_key(const struct study_cell *c, struct err *e);

/* n outcomes that nobody ran, to be read from a store. */
void study_outcomes_open(struct study_outcomes *o, uint32_t n);
void study_outcomes_read(struct study_outcomes *o, uint32_t index, struct store *s, int64_t run);
void study_outcomes_fini(struct study_outcomes *o);

/* A value by its name: NaN when the run failed, or has none. Cost: names. */
double study_value(const struct study_outcome *o, const char *name);
bool study_has(const struct study_outcome *o, const char *name);
/* Requests that its policy refused or did not finish. Those that ended with their job are neither,
 * since a faster policy cancels more of them. Runs stored before that counter count all as refused.
 * NaN when the run failed. */
double study_left(const struct study_outcome *o);
/* Like study_value, where the name is expected at an index: all names in their order cost O(1)
 * each. */
double study_value_near(const struct study_outcome *o, size_t index, const char *name);
