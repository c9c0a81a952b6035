/* When requests arrive: gap processes, recorded events, and the activity that modulates them.
 *
 * A process runs in operational time at its mean rate. The activity maps operational to real time,
 * so that every process can be modulated, and both classes share one activity. */
#pragma once

#include <gsl/gsl_rng.h>

#include "sim/base/base.h"
#include "sim/base/rng.h"

enum arrival_kind {
    ARRIVAL_POISSON,
    ARRIVAL_GAMMA,  /* gaps with a given coefficient of variation */
    ARRIVAL_REPLAY, /* gaps of recorded events, scaled to the rate */
    ARRIVAL_CLOSED  /* no process: closed loop */
};

/* Gaps of recorded events in order, without gaps between recordings. */
struct events {
    double *gap_s; /* owned */
    size_t n;
    double mean_s;
};

/* Reads a shipped name ("proactivebench_events") or a CSV path with arrival_s and, with several
 * recordings, session_id. Errors: decreasing times, a recording in two parts, a single instant. */
int events_load(const char *name, struct events *out, struct err *e);
void events_fini(struct events *ev);

struct arrivals {
    enum arrival_kind kind;
    double mean_s, cv;           /* of the gaps; cv for gamma */
    const struct events *events; /* borrowed; for replay */
    gsl_rng *rng;                /* owned */
    size_t at;                   /* replay position */
    bool begun;
    double op_s; /* operational time of the last arrival; 0 before it */
};

/* Stationary from the start: n requests are expected in n mean gaps, for any distribution of gaps.
 * Replay starts at a random place of the recording, and wraps around. */
void arrivals_init(struct arrivals *a, enum arrival_kind kind, double mean_s, double cv,
                   const struct events *events, uint64_t key);
void arrivals_fini(struct arrivals *a);
double arrivals_next(struct arrivals *a); /* operational time of the next arrival, s */

/* User activity, a two-state Markov-modulated rate of mean 1. It is `burst` while active, and (1 -
 * burst * share) / (1 - share) while idle. Active and idle times are exponential with means share *
 * period and (1 - share) * period. It starts in its steady state. burst 1: off. */
struct activity {
    double burst, idle_factor, mean_on_s, mean_off_s;
    struct rng rng;
    bool enabled, on;
    double real_s, op_s, next_real_s; /* the phase began at (real, op) and ends at next_real */
};

/* Precondition: burst >= 1, 0 < share <= 1, burst * share <= 1 unless burst is 1. */
void activity_init(struct activity *a, double burst, double share, double period_s, uint64_t key);
/* Real time of an operational time; calls must not go back in time. */
double activity_real(struct activity *a, double op_s);
