/* How concurrent kernels share DDR bandwidth. A form is a pure function over a handful of flows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CONTENTION_MAX_FLOWS 64

struct flow {
    double demand_bytes_per_s; /* what it takes when alone: an upper bound of its share */
    double weight;             /* > 0; used by `weighted` only */
    uint8_t device;            /* which engine, for forms with per-engine parameters */
    double share_bytes_per_s;  /* result: 0 <= share <= demand */
};

/* What forms with parameters need; NULL stands for all zero. Flows of a device beyond the table
 * (the loader) have no ceiling. */
#define CONTENTION_MAX_DEVICES 8
struct contention_params {
    /* What each engine draws alone at most: a flow near it waits for memory, one far below it for
     * its own arithmetic, and hides the latency that others cause. 0: not known. */
    double ceiling_bytes_per_s[CONTENTION_MAX_DEVICES];
    double beside[CONTENTION_MAX_DEVICES]; /* `beside`: slowdown of a memory-bound flow while
                                              another engine draws anything, minus 1 */
    double latency; /* `latency`: slowdown of a memory-bound flow beside a full DDR, minus 1 */
    double minor;   /* `pccs`: the same where demands do not exceed the capacity */
    double
        balance_frac; /* `pccs`: external demand, of capacity, from which slowing saturates; > 0 */
};

/* Fills share of each flow. capacity is kappa * peak, raised to the largest single demand, so a
 * flow alone always gets what it gets alone. Invariants for every form that is not unlimited: sum
 * of shares
 * <= capacity (up to rounding); if the sum of demands <= capacity, share = demand exactly (not of
 * `beside`, `latency` and `pccs`, in which others slow a flow before the capacity is reached). */
struct contention_ops {
    const char *name;
    bool unlimited; /* the DDR has no limit: every share is its demand */
    void (*share)(struct flow *flows, uint32_t n, double capacity_bytes_per_s, const void *params);
};

/* NULL when there is no form of that name. Forms: beside, latency, max-min, none, pccs,
 * proportional, weighted. */
const struct contention_ops *contention_find(const char *name);
/* The sorted, NULL-terminated list of names. */
const char *const *contention_names(void);
