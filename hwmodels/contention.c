/* How concurrent kernels share DDR (sources: README.md). max-min is the default: it leaves
 * compute-bound kernels alone and slows memory-bound ones, as both Agent.xpu papers measured. */
#include "sim/api/contention.h"

#include <stdbool.h>
#include <string.h>

static void share_none(struct flow *f, uint32_t n, double capacity, const void *params)
{
    (void)capacity;
    (void)params;
    for (uint32_t i = 0; i < n; i++) {
        f[i].share_bytes_per_s = f[i].demand_bytes_per_s;
    }
}

static double total_demand(const struct flow *f, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += f[i].demand_bytes_per_s;
    }
    return sum;
}

static double weight_of(const struct flow *f, bool weighted)
{
    return weighted ? f->weight : 1.0;
}

/* Two flows that together ask for more than there is: the usual case at a kernel boundary. */
static void fill_two(struct flow *f, double capacity, bool weighted)
{
    double w0 = weight_of(&f[0], weighted);
    double w1 = weight_of(&f[1], weighted);
    double s0 = capacity * w0 / (w0 + w1);
    double s1 = capacity - s0;
    if (f[0].demand_bytes_per_s <= s0) {
        s0 = f[0].demand_bytes_per_s;
        s1 = capacity - s0;
    } else if (f[1].demand_bytes_per_s <= s1) {
        s1 = f[1].demand_bytes_per_s;
        s0 = capacity - s1;
    }
    f[0].share_bytes_per_s = s0;
    f[1].share_bytes_per_s = s1;
}

/* Progressive filling, exact: whoever asks for no more than an equal (weighted) part of what is
 * left gets its demand; when nobody does, all others get that part. O(n^2), n a handful. */
static void fill(struct flow *f, uint32_t n, double capacity, bool weighted)
{
    if (total_demand(f, n) <= capacity) {
        share_none(f, n, capacity, NULL);
        return;
    }
    if (n == 2) {
        fill_two(f, capacity, weighted);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        f[i].share_bytes_per_s = -1.0; /* open: not known yet */
    }
    double left = capacity;
    double level = 0.0; /* per unit of weight */
    for (bool closed = true; closed;) {
        double weight = 0.0; /* of the open flows, summed anew: no rounding is carried along */
        for (uint32_t i = 0; i < n; i++) {
            weight += f[i].share_bytes_per_s < 0.0 ? weight_of(&f[i], weighted) : 0.0;
        }
        level = weight > 0.0 ? left / weight : 0.0;
        closed = false;
        for (uint32_t i = 0; i < n; i++) {
            if (f[i].share_bytes_per_s < 0.0 &&
                f[i].demand_bytes_per_s <= level * weight_of(&f[i], weighted)) {
                f[i].share_bytes_per_s = f[i].demand_bytes_per_s;
                left -= f[i].demand_bytes_per_s;
                closed = true;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (f[i].share_bytes_per_s < 0.0) {
            f[i].share_bytes_per_s = level * weight_of(&f[i], weighted);
        }
    }
}

static void share_max_min(struct flow *f, uint32_t n, double capacity, const void *params)
{
    (void)params;
    fill(f, n, capacity, false);
}

static void share_weighted(struct flow *f, uint32_t n, double capacity, const void *params)
{
    (void)params;
    fill(f, n, capacity, true);
}

static void share_proportional(struct flow *f, uint32_t n, double capacity, const void *params)
{
    (void)params;
    double sum = total_demand(f, n);
    double part = sum <= capacity ? 1.0 : capacity / sum;
    for (uint32_t i = 0; i < n; i++) {
        f[i].share_bytes_per_s = f[i].demand_bytes_per_s * part;
    }
}

static const struct contention_ops forms[] = {
    {"max-min", share_max_min},
    {"none", share_none},
    {"proportional", share_proportional},
    {"weighted", share_weighted},
};
static const char *const names[] = {"max-min", "none", "proportional", "weighted", NULL};

const struct contention_ops *contention_find(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(forms[i].name, name) == 0) {
            return &forms[i];
        }
    }
    return NULL;
}

const char *const *contention_names(void)
{
    return names;
}
