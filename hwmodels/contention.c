/* How concurrent kernels share DDR (hardware.md section 3). max-min is the default: it leaves
 * compute-bound kernels alone and slows memory-bound ones, as both Agent.xpu papers measured. */
#include "sim/api/contention.h"

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

/* Progressive filling, exact: whoever asks for no more than an equal (weighted) part of what is
 * left gets its demand; when nobody does, all others get that part. O(n^2), n a handful. */
static void fill(struct flow *f, uint32_t n, double capacity, int weighted)
{
    if (total_demand(f, n) <= capacity) {
        share_none(f, n, capacity, NULL);
        return;
    }
    uint8_t open[CONTENTION_MAX_FLOWS];
    double weight = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        open[i] = 1;
        weight += weighted ? f[i].weight : 1.0;
    }
    double left = capacity;
    for (int changed = 1; changed != 0;) {
        changed = 0;
        double level = weight > 0.0 ? left / weight : 0.0; /* per unit of weight */
        for (uint32_t i = 0; i < n; i++) {
            double w = weighted ? f[i].weight : 1.0;
            if (open[i] && f[i].demand_bytes_per_s <= level * w) {
                f[i].share_bytes_per_s = f[i].demand_bytes_per_s;
                open[i] = 0;
                left -= f[i].demand_bytes_per_s;
                weight -= w;
                changed = 1;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (open[i]) {
            f[i].share_bytes_per_s = left * (weighted ? f[i].weight : 1.0) / weight;
        }
    }
}

static void share_max_min(struct flow *f, uint32_t n, double capacity, const void *params)
{
    (void)params;
    fill(f, n, capacity, 0);
}

static void share_weighted(struct flow *f, uint32_t n, double capacity, const void *params)
{
    (void)params;
    fill(f, n, capacity, 1);
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
