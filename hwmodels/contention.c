/* How co-running kernels share DDR (sources: README.md). `latency` is the default: no other model
 * reproduces all four co-run pairs of the Agent.xpu papers (claim A7). In these a GEMM is hardly
 * slowed. A GEMV is slowed by both, and most by another GEMV. */
#include "sim/api/contention.h"
#include "sim/base/base.h"
#include "sim/base/words.h"

static void share_none(struct flow *f, uint32_t n, double capacity UNUSED,
                       const void *params UNUSED)
{
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

/* Two flows that together demand more than the capacity: the usual case at a kernel boundary. */
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

/* Exact progressive filling. A flow whose demand is at most its equal (weighted) part of the
 * remaining capacity gets the demand; when there is none, the others get that part. O(n^2), for
 * small n. */
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
        f[i].share_bytes_per_s = -1.0; /* open: not yet decided */
    }
    double left = capacity;
    double level = 0.0; /* per unit of weight */
    for (bool closed = true; closed;) {
        double weight = 0.0; /* of open flows; summed each time: no rounding errors accumulate */
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

static void share_max_min(struct flow *f, uint32_t n, double capacity, const void *params UNUSED)
{
    fill(f, n, capacity, false);
}

static void share_weighted(struct flow *f, uint32_t n, double capacity, const void *params UNUSED)
{
    fill(f, n, capacity, true);
}

static void share_proportional(struct flow *f, uint32_t n, double capacity,
                               const void *params UNUSED)
{
    double sum = total_demand(f, n);
    double part = sum <= capacity ? 1.0 : capacity / sum;
    for (uint32_t i = 0; i < n; i++) {
        f[i].share_bytes_per_s = f[i].demand_bytes_per_s * part;
    }
}

/* ---- models in which flows are slowed below the capacity ---- */

/* Share of its isolated time that a flow waits for memory. */
static double boundness(const struct flow *f, const struct contention_params *p)
{
    double ceiling = f->device < CONTENTION_MAX_DEVICES ? p->ceiling_bytes_per_s[f->device] : 0.0;
    double m = ceiling > 0.0 ? f->demand_bytes_per_s / ceiling : 0.0;
    return m < 1.0 ? m : 1.0;
}

/* Max-min; then each flow takes 1 + latency * (its boundness) * (others' share of the capacity)
 * times as long. Queues at a busier DDR delay every access, and a memory-bound kernel cannot hide
 * the delay. Others' shares are those of max-min, before their own slowdown, so no fixed point is
 * needed. */
static void share_latency(struct flow *f, uint32_t n, double capacity, const void *params)
{
    const struct contention_params *p = params;
    fill(f, n, capacity, false);
    /* A single flow is not slowed, because its isolated time includes its own queues. */
    if (p == NULL || p->latency <= 0.0 || n < 2) {
        return;
    }
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += f[i].share_bytes_per_s;
    }
    for (uint32_t i = 0; i < n; i++) {
        double others = (sum - f[i].share_bytes_per_s) / capacity;
        f[i].share_bytes_per_s /= 1.0 + p->latency * boundness(&f[i], p) * others;
    }
}

/* Max-min; then each flow takes 1 + `beside` * (its boundness) times as long while another engine
 * works. Measured kernels show this (`xpusim drive --calibrate`): the other engine's traffic does
 * not matter. */
static void share_beside(struct flow *f, uint32_t n, double capacity, const void *params)
{
    const struct contention_params *p = params;
    fill(f, n, capacity, false);
    uint32_t at_work = 0; /* set of engines, without the loader */
    for (uint32_t i = 0; i < n; i++) {
        at_work |= f[i].device < CONTENTION_MAX_DEVICES ? 1u << f[i].device : 0;
    }
    for (uint32_t i = 0; p != NULL && i < n; i++) {
        uint8_t d = f[i].device;
        if (d < CONTENTION_MAX_DEVICES && (at_work & ~(1u << d)) != 0) {
            f[i].share_bytes_per_s /= 1.0 + p->beside[d] * boundness(&f[i], p);
        }
    }
}

/* PCCS (Xu et al., MICRO'21). The slowdown of a kernel with demand x has three regions of the
 * others' demand y, at a capacity C:
 *
 *   minor    y <= C - x                   1 + minor y / C
 *   normal   up to the balance point      linear
 *   beyond   y >= balance_frac C          x / (max-min share of x against that y), constant
 *
 * An empty region is skipped. */
static double pccs_slowdown(double x, double y, double capacity, const struct contention_params *p)
{
    double minor = p != NULL ? p->minor : 0.0;
    double balance = (p != NULL && p->balance_frac > 0.0 ? p->balance_frac : 1.0) * capacity;
    double y0 = x < capacity ? capacity - x : 0.0;
    double s0 = 1.0 + minor * y0 / capacity;
    if (y <= y0) {
        return 1.0 + minor * y / capacity;
    }
    double fair = capacity - balance > capacity / 2.0 ? capacity - balance : capacity / 2.0;
    double s1 = x / fair > s0 ? x / fair : s0;
    if (y >= balance) {
        return s1;
    }
    return s0 + (s1 - s0) * (y - y0) / (balance - y0);
}

static void share_pccs(struct flow *f, uint32_t n, double capacity, const void *params)
{
    double demand = total_demand(f, n);
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double x = f[i].demand_bytes_per_s;
        double slow = n > 1 && x > 0.0 ? pccs_slowdown(x, demand - x, capacity, params) : 1.0;
        f[i].share_bytes_per_s = x / slow;
        sum += f[i].share_bytes_per_s;
    }
    /* Each slowdown is computed separately from the demand of all others, so the sum may exceed the
     * capacity. */
    for (uint32_t i = 0; sum > capacity && i < n; i++) {
        f[i].share_bytes_per_s *= capacity / sum;
    }
}

/* Sorted by name. */
static const struct contention_ops forms[] = {
    {.name = "beside", .share = share_beside},
    {.name = "latency", .share = share_latency},
    {.name = "max-min", .share = share_max_min},
    {.name = "none", .share = share_none, .unlimited = true},
    {.name = "pccs", .share = share_pccs},
    {.name = "proportional", .share = share_proportional},
    {.name = "weighted", .share = share_weighted},
};
static const char *const names[] = {"beside", "latency",      "max-min",  "none",
                                    "pccs",   "proportional", "weighted", NULL};

const struct contention_ops *contention_find(const char *name)
{
    int i = words_find(names, name);
    return i >= 0 ? &forms[i] : NULL;
}

const char *const *contention_names(void)
{
    return names;
}
