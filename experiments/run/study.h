/* Runs: a list of cells {configuration, policy, workload, seed} goes in, and one outcome per cell
 * comes back. Each cell is simulated in a worker process. With a store, cells that it holds are not
 * run again, and new ones are kept. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/run/runner.h"
#include "experiments/run/worker.h"
#include "experiments/store/store.h"

struct study_cell {
    const struct config *config;          /* borrowed, like all members */
    const struct config_options *options; /* for the workload */
    const struct config_policy *policy;   /* with `binary` only its label is used */
    uint64_t seed; /* of workload and noise: equal seeds give equal requests */
    struct config_arrivals arrivals;
    enum runner_samples samples;
    bool only_first;            /* only the first request: checks that a policy can start */
    double warmup_s;            /* requests that arrive before it are in no distribution */
    const char *binary;         /* another xpusim to run it, without store; NULL: this one */
    const void *policy_context; /* information for a clairvoyant policy (sched.context), or NULL */
    const char *context_key;    /* the context as text, part of the key in the store */
    /* Completes the cell in its worker, so that the parent need not load configurations. It need
     * not free memory. Returns 0, or -errno with an error, which becomes the run's message. NULL:
     * the cell is complete. */
    int (*load)(struct study_cell *c, struct err *e);
    const void *from; /* argument of load */
    /* An observer of the run, and a function that writes its data for the analysis. Such a run does
     * not use the store. NULL: none. */
    struct observer *observer;
    void (*observer_write)(void *state, const struct trace *t, FILE *to);
    void *observer_state;
};

/* Names of values, shared by outcomes with equal names. */
struct study_names {
    struct study_names *next;
    size_t n;
    char *text;     /* owned; concatenated, each NUL-terminated */
    size_t size;    /* of text */
    const char **v; /* owned; pointers into text */
};

/* The status of a run whose workload has no requests. It is no failure, and counts for nobody. */
#define STUDY_NO_REQUESTS (-ENODATA)

struct study_outcome {
    int status;                       /* 0, or -errno of the failure in message */
    char message[JOBS_MESSAGE_BYTES]; /* "" without a failure */
    int64_t run;                      /* number in the store; 0 without a store */
    bool found;                       /* the store had it already */
    bool not_run;                     /* with a status: it was not run, so it did not fail */
    const struct study_names *names;  /* the run's metrics, then its counters (counters.NAME) */
    double *values;                   /* in the order of names; NULL if it failed */
    void *observed;                   /* written by observer_write, or NULL */
    size_t observed_bytes;
};

/* How runs are made. Results do not depend on it. */
struct study_how {
    uint32_t parallel;         /* runs at once */
    double cpu_limit_s;        /* for each run; 0: none */
    bool progress;             /* a bar on stderr */
    struct store *store;       /* its runs are not repeated; or NULL */
    uint32_t cells_per_worker; /* runs per process. More are cheaper, but a plug-in may leave state
                                  behind. 0: study_run chooses, depending on the policies;
                                  study_stream takes 1 */
    uint64_t memory_limit_bytes; /* for each worker; 0: none */
};

struct study_outcomes {
    struct study_outcome *v; /* owned; indexed by cell */
    uint32_t n;
    struct study_names *names; /* owned */
};

/* Runs all cells. A failure does not stop the others. Free the result by study_outcomes_fini. */
struct study_outcomes study_run(const struct study_cell *cells, uint32_t n,
                                const struct study_how *how);

/* A stream of cells whose outcomes are not kept, for more cells than fit in memory. */
struct study_stream {
    struct study_how how;
    const char *kept; /* description of what `keeps` selects, for the store */
    void *ctx;        /* borrowed */
    /* Called in the worker. */
    int (*cell)(void *ctx, uint64_t index, struct study_cell *out, struct err *e);
    /* In the worker: whether to keep a value; NULL: all. */
    bool (*keeps)(void *ctx, const char *name);
    /* In the parent: number of the next cell; false if there is none. */
    bool (*next)(void *ctx, uint64_t *index);
    /* In the parent: a cell is done, in any order. The outcome is borrowed, and has no values if it
     * was in the store. */
    void (*done)(void *ctx, uint64_t index, const struct study_outcome *o);
    bool (*go_on)(void *ctx); /* called every 50 ms; false stops all; NULL: never */
};
/* 0 or -errno as pool_run. */
int study_stream(const struct study_stream *s);

/* The store's key for the run of a complete cell; the caller frees it. NULL with an error if its
 * workload cannot be made. */
char *study_key(const struct study_cell *c, struct err *e);

/* Makes n empty outcomes, to be read from a store. */
void study_outcomes_open(struct study_outcomes *o, uint32_t n);
void study_outcomes_read(struct study_outcomes *o, uint32_t index, struct store *s, int64_t run);
void study_outcomes_fini(struct study_outcomes *o);

/* A value by its name; NaN if the run failed or lacks it. Cost: names. */
double study_value(const struct study_outcome *o, const char *name);
bool study_has(const struct study_outcome *o, const char *name);
/* Did an empty battery end the run? */
bool study_battery_empty(const struct study_outcome *o);
/* Number of requests that the policy shed or did not finish. Requests that ended with their job do
 * not count, because a faster policy cancels more of them; in runs stored before that counter
 * existed they count as shed. If a battery ended the run, all requests that never arrived count as
 * one more. NaN if the run failed. */
double study_left(const struct study_outcome *o);
/* Like study_value, with the expected index of the name: O(1) if it is right. */
double study_value_near(const struct study_outcome *o, size_t index, const char *name);
