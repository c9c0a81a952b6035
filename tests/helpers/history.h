/* All that a run reports to observers, each with its instant: arrivals, tokens, ends of requests,
 * begins and ends of launches, residents. Two histories are compared as one is expected to follow
 * from the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/core/run.h"

enum happening_kind { ARRIVED, TOKENS, FINISHED, SHED, STARTED, ENDED, RESIDENT, KERNEL };

struct happening {
    int64_t at_ns;
    uint32_t kind; /* enum happening_kind */
    uint32_t who;  /* request, device or kind of resident */
    uint64_t what;
};

/* Zeroed: nothing yet. The caller frees v. */
struct history {
    bool kernels; /* the ends of kernels, too */
    struct happening *v;
    size_t n, cap;
    int rc;
    char message[160];
};

/* The changed run must have the events from begin to end, later by shift, with ids higher by `ids`.
 */
struct expected {
    int64_t begin_ns, end_ns, shift_ns;
    uint32_t ids;
    bool ends_sooner; /* with its last request, so that what is loaded then is not seen */
    bool twice;       /* every instant at twice the time, but for rounding */
    bool no_later;    /* every request ends then or before, and nothing else is known */
};

/* Runs it, which adds to h; ends the process after so much time of the processor. */
void history_simulate(struct sim_setup *s, double cpu_limit_s, struct history *h);
/* The first event that differs: its number in a, and by how much, where only its instant does. */
struct difference {
    size_t at;
    int64_t by_ns;    /* INT64_MAX: it is another event */
    int64_t drift_ns; /* by how much the event before was off, which rounding allows; at least 1 */
};

/* NULL, or in buf what differs first: an event of a that b lacks, or the reverse. */
const char *history_differs(const struct history *a, const struct history *b,
                            const struct expected *x, char *buf, size_t size, struct difference *d);
/* Of two runs that are nearly the same: has b other events up to there? Or that event, and earlier
 * or later by at least half as much? */
bool history_turns(const struct history *a, const struct history *b, const struct difference *d);
/* Has everybody who arrived before that instant ended before it? */
bool history_rests(const struct history *h, int64_t at_ns);
/* NULL, or in buf a request of a that ends later in b, or never. */
const char *history_later(const struct history *a, const struct history *b, char *buf, size_t size);
