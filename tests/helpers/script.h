/* A policy that acts as a test function says, and records what the core reported to it. It is for
 * tests of the core and the executor in which the test itself must choose every action. */
#pragma once

#include "tests/helpers/scenario.h"

#define SCRIPT_MAX 64

struct script_end {
    int64_t at_ns;
    uint32_t launch_id;
    enum launch_outcome outcome;
    uint32_t op, rows_todo; /* cursor of the pass after it */
};

struct script_event {
    int64_t at_ns;
    uint32_t id; /* request, or the resident's key.a */
    bool swapped;
};

struct script {
    /* Called in every schedule call; acts. */
    void (*step)(struct sched *s, struct script *x);
    int (*init)(struct sched *s, struct script *x);       /* NULL: nothing */
    uint32_t stage;                                       /* see script_at */
    const struct request *request[SCENARIO_MAX_REQUESTS]; /* by id; NULL before arrival */
    struct pass *pass[SCENARIO_MAX_REQUESTS];             /* the step's own */
    const struct launch *launch[SCENARIO_MAX_REQUESTS];   /* the step's own */
    int rc[SCRIPT_MAX];                                   /* the step's own */
    uint32_t device, yield;                               /* the step's own */
    struct script_end ends[SCRIPT_MAX];
    uint32_t n_ends;
    struct script_event ready[SCRIPT_MAX], moved[SCRIPT_MAX], cancelled[SCRIPT_MAX];
    uint32_t n_ready, n_moved, n_cancelled;
};

extern const struct policy_ops script_ops;

/* Runs the scenario under script_ops; x->step chooses. Returns the run's status. */
int script_run(struct scenario *sc, struct script *x, const struct scenario_request *q, uint32_t n);

/* Returns true once, when the script is in this stage and the instant has come; the stage then
 * ends. Before that instant it sets a timer. */
bool script_at(struct sched *s, struct script *x, uint32_t stage, double ms);
/* The next pass of a request: all of its prompt, or one decode token. NULL: refused. */
struct pass *script_form(struct sched *s, const struct request *r);
/* Puts a pass on a device up to its end. Returns sched_launch's answer. */
int script_launch(struct sched *s, struct pass *p, uint8_t device, enum yield_point yield,
                  const struct launch **out);
/* Forms the next pass of every request that is in none and launches it on x->device, whole: the
 * launch is x->launch[id]. */
void script_serve(struct sched *s, struct script *x);
