/* Contention models: how concurrent kernels share the DDR bandwidth. A model is a pure function
 * over a handful of flows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CONTENTION_MAX_FLOWS 64

struct flow {
    double demand_bytes_per_s; /* bandwidth in isolation: an upper bound of its share */
    double weight;             /* > 0; used by `weighted` only */
    uint8_t device;            /* device index, for models with per-device parameters */
    double share_bytes_per_s;  /* result: 0 <= share <= demand */
};

/* Parameters of the models that take any. NULL: all zero. Flows of devices beyond the table (the
 * loader) have no ceiling. */
#define CONTENTION_MAX_DEVICES 8
struct contention_params {
    /* The highest isolated bandwidth of each device. A flow near it is memory-bound. A flow far
     * below it is compute-bound, and hides the latency that other flows cause. 0: unknown. */
    double ceiling_bytes_per_s[CONTENTION_MAX_DEVICES];
    double beside[CONTENTION_MAX_DEVICES]; /* `beside`: slowdown of a memory-bound flow while
                                              another device works, minus 1 */
    double latency; /* `latency`: slowdown of a memory-bound flow next to a full DDR, minus 1 */
    double minor;   /* `pccs`: the same slowdown while all demands fit the capacity */
    /* `pccs`: external demand, as a share of capacity, from which slowing saturates; > 0 */
    double balance_frac;
};

/* Fills share of each flow. The capacity is ddr_cap_frac of the peak, raised to the largest demand,
 * so an isolated flow always gets its demand. A model that is not unlimited guarantees:
 *   sum of shares <= capacity, up to rounding;
 *   share = demand exactly, if the sum of demands <= capacity. This does not hold for `beside`,
 *   `latency` and `pccs`, in which others slow a flow before the capacity is reached.
 */
struct contention_ops {
    const char *name;
    bool unlimited; /* the DDR has no limit: every share is its demand */
    void (*share)(struct flow *flows, uint32_t n, double capacity_bytes_per_s, const void *params);
};

/* Finds a model by name; NULL if there is none. Models: `beside`, `latency`, `max-min`, `none`,
 * `pccs`, `proportional`, `weighted`. */
const struct contention_ops *contention_find(const char *name);
/* The sorted, NULL-terminated list of names. */
const char *const *contention_names(void);
