/* How concurrent kernels share DDR bandwidth. A form is a pure function over a handful of flows. */
#ifndef SIM_API_CONTENTION_H
#define SIM_API_CONTENTION_H

#include <stdint.h>

#define CONTENTION_MAX_FLOWS 64

struct flow {
    double demand_bytes_per_s; /* what it takes when alone: an upper bound of its share */
    double weight;             /* > 0; used by `weighted` only */
    uint8_t device;            /* which engine, for forms with per-engine parameters */
    double share_bytes_per_s;  /* result: 0 <= share <= demand */
};

/* Fills share of each flow. capacity is kappa * peak, raised to the largest single demand, so a
 * flow alone always gets what it gets alone. Invariants for every form except `none`: sum of shares
 * <= capacity (up to rounding); if the sum of demands <= capacity, share = demand exactly. */
struct contention_ops {
    const char *name;
    void (*share)(struct flow *flows, uint32_t n, double capacity_bytes_per_s, const void *params);
};

/* NULL when there is no form of that name. Forms: max-min, none, proportional, weighted. */
const struct contention_ops *contention_find(const char *name);
/* The sorted, NULL-terminated list of names. */
const char *const *contention_names(void);

#endif
