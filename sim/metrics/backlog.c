#include "sim/metrics/backlog.h"

#include <math.h>
#include <string.h>

#include "sim/base/err.h"
#include "sim/base/units.h"

#define FIRST_WIDTH_NS NS_PER_MS
#define MIN_BINS_FOR_SLOPE 3

const char *const metrics_verdict_names[] = {"STABLE", "BACKLOGGED", "OVERLOADED"};

void backlog_init(struct backlog *b)
{
    memset(b, 0, sizeof *b);
    b->width_ns = FIRST_WIDTH_NS;
    b->bin_end_ns = b->width_ns;
}

static void widen(struct backlog *b)
{
    for (uint32_t i = 0; i < BACKLOG_BINS / 2; i++) {
        b->area[i] = b->area[2 * i] + b->area[2 * i + 1];
    }
    memset(&b->area[BACKLOG_BINS / 2], 0, sizeof b->area / 2);
    b->width_ns *= 2;
    b->bin /= 2;
    b->bin_end_ns = (b->bin + 1) * b->width_ns;
}

/* Spreads the present number over the time since the last change. */
static inline void advance(struct backlog *b, int64_t now_ns)
{
    SIM_ASSERT(now_ns >= b->now_ns);
    while (now_ns >= b->width_ns * BACKLOG_BINS) {
        widen(b);
    }
    double n = b->n_system;
    b->area_ns += n * (double)(now_ns - b->now_ns);
    while (now_ns >= b->bin_end_ns) {
        b->area[b->bin++] += n * (double)(b->bin_end_ns - b->now_ns);
        b->now_ns = b->bin_end_ns;
        b->bin_end_ns += b->width_ns;
    }
    SIM_ASSERT(b->bin == now_ns / b->width_ns && b->bin < BACKLOG_BINS);
    b->area[b->bin] += n * (double)(now_ns - b->now_ns);
    b->now_ns = now_ns;
}

void backlog_arrive(struct backlog *b, int64_t now_ns)
{
    advance(b, now_ns);
    b->n_system++;
    b->max = b->n_system > b->max ? b->n_system : b->max;
    if (b->arrivals == 0) {
        b->first_ns = now_ns;
    }
    if (b->n_system == 1) {
        b->busy_since_ns = now_ns;
    }
    b->arrivals++;
    b->last_ns = now_ns;
    b->at_last = b->n_system;
    b->area_at_last_ns = b->area_ns;
}

void backlog_leave(struct backlog *b, int64_t now_ns)
{
    SIM_ASSERT(b->n_system > 0);
    advance(b, now_ns);
    b->n_system--;
    b->last_leave_ns = now_ns;
}

/* Do bins hold what they were given, however often they were widened? */
static bool bins_sum(const struct backlog *b)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < BACKLOG_BINS; i++) {
        SIM_ASSERT(b->area[i] >= 0.0);
        sum += b->area[i];
    }
    return fabs(sum - b->area_ns) <= 1e-9 * b->area_ns;
}

void backlog_finish(struct backlog *b, int64_t now_ns)
{
    advance(b, now_ns);
    SIM_ASSERT(bins_sum(b));
    SIM_ASSERT(b->max >= b->n_system && b->arrivals >= b->n_system);
}

/* Least-squares slope, requests per ns, of the bin means inside [from, to]; 0 with too few bins. */
static double slope(const struct backlog *b, int64_t from_ns, int64_t to_ns)
{
    int64_t first = (from_ns + b->width_ns - 1) / b->width_ns;
    int64_t end = to_ns / b->width_ns; /* one past the last whole bin */
    double n = (double)(end - first);
    if (end - first < MIN_BINS_FOR_SLOPE) {
        return 0.0;
    }
    double mid = 0.5 * (n - 1.0);
    double sxy = 0.0;
    for (int64_t i = first; i < end; i++) {
        sxy += ((double)(i - first) - mid) * (b->area[i] / (double)b->width_ns);
    }
    double sxx = n * (n * n - 1.0) / 12.0;
    return sxy / sxx / (double)b->width_ns;
}

struct backlog_summary backlog_summarise(const struct backlog *b,
                                         const struct metrics_verdict_rule *rule)
{
    struct backlog_summary s = {0.0, METRIC_UNDEFINED, METRIC_UNDEFINED, 0.0, METRICS_STABLE};
    if (b->arrivals == 0) {
        return s;
    }
    int64_t window_ns = b->last_ns - b->first_ns;
    int64_t end_ns = b->n_system > 0 ? b->now_ns : b->last_leave_ns;
    s.drain_ns = (end_ns > b->last_ns ? (double)(end_ns - b->last_ns) : 0.0) + b->unserved_ns;
    s.unfinished_frac = (double)b->at_last / (double)b->arrivals;
    if (window_ns > 0) {
        double rate = (double)b->arrivals / (double)window_ns;
        s.growth_frac = slope(b, b->first_ns + window_ns / 2, b->last_ns) / rate;
        s.mean_in_window = b->area_at_last_ns / (double)window_ns;
    }
    bool several = b->arrivals > 1 && s.drain_ns > rule->longest_min * b->longest_ns;
    double share = s.drain_ns / (double)window_ns; /* of no window: infinite */
    bool kept_up = window_ns == 0 || b->busy_since_ns - b->first_ns > window_ns / 2;
    if (several && !kept_up && share >= rule->overloaded_min_frac) {
        s.verdict = METRICS_OVERLOADED;
    } else if (several && share >= rule->backlogged_min_frac) {
        s.verdict = METRICS_BACKLOGGED;
    }
    return s;
}
