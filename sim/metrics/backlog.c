#include "sim/metrics/backlog.h"

#define FIRST_WIDTH_NS NS_PER_MS
#define MIN_BINS_FOR_SLOPE 3
#define MIN_BINS_FOR_STATUS 32 /* the limits of the rule have not been computed for fewer */
#define STRETCHES 10
/* Bins stop this many arrival windows after the last arrival, so that a long drain does not widen
 * them. A later arrival restarts them. */
#define WINDOWS_IN_BINS (BACKLOG_BINS / MIN_BINS_FOR_STATUS / 2)

const char *const metrics_verdict_names[] = {"STABLE", "UNDECIDED", "OVERLOADED", "BATTERY_EMPTY"};

void backlog_init(struct backlog *b)
{
    memset(b, 0, sizeof *b);
    b->width_ns = FIRST_WIDTH_NS;
    b->bin_end_ns = b->width_ns;
    b->late_since_ns = -1;
}

static void widen(struct backlog *b)
{
    for (int k = 0; k < BACKLOG_KINDS; k++) {
        double *area = b->area[k];
        for (uint32_t i = 0; i < BACKLOG_BINS / 2; i++) {
            area[i] = area[2 * i] + area[2 * i + 1];
        }
        memset(&area[BACKLOG_BINS / 2], 0, sizeof b->area[k] / 2);
    }
    b->width_ns *= 2;
    b->bin /= 2;
    b->bin_end_ns = (b->bin + 1) * b->width_ns;
}

/* Adds these levels to the bins from now_ns to `to_ns`. */
static inline void fill(struct backlog *b, const double *level, int64_t to_ns)
{
    while (to_ns >= b->bin_end_ns) {
        double dt = (double)(b->bin_end_ns - b->now_ns);
        for (int k = 0; k < BACKLOG_KINDS; k++) {
            b->area[k][b->bin] += level[k] * dt;
        }
        b->now_ns = b->bin_end_ns;
        b->bin_end_ns += b->width_ns;
        b->bin++;
    }
    SIM_ASSERT(b->bin == to_ns / b->width_ns && b->bin < BACKLOG_BINS);
    double dt = (double)(to_ns - b->now_ns);
    for (int k = 0; k < BACKLOG_KINDS; k++) {
        b->area[k][b->bin] += level[k] * dt;
    }
    b->now_ns = to_ns;
}

/* Widens bins until they reach `to_ns`. False if they must stop instead, in the drain. */
static bool fits(struct backlog *b, int64_t to_ns)
{
    int64_t window_ns = b->last_ns - b->first_ns;
    while (to_ns >= b->width_ns * BACKLOG_BINS) {
        if (b->width_ns * BACKLOG_BINS >= WINDOWS_IN_BINS * window_ns) {
            return false;
        }
        widen(b);
    }
    return true;
}

/* Adds the present counts over the time since the last change. */
static inline void advance(struct backlog *b, int64_t now_ns)
{
    int64_t to_ns = now_ns - b->first_ns;
    SIM_ASSERT(to_ns >= b->now_ns);
    double dt = (double)(to_ns - b->now_ns);
    b->area_ns += b->now[BACKLOG_REQUESTS] * dt;
    if (b->late_since_ns < 0 && fits(b, to_ns)) {
        fill(b, b->now, to_ns);
        return;
    }
    if (b->late_since_ns < 0) {
        b->late_since_ns = b->now_ns;
    }
    for (int k = 0; k < BACKLOG_KINDS; k++) {
        b->late[k] += b->now[k] * dt;
    }
    b->now_ns = to_ns;
}

/* Restarts the bins at an arrival. `late` is spread evenly over the time in between. */
static void resume(struct backlog *b, int64_t now_ns)
{
    double level[BACKLOG_KINDS];
    int64_t to_ns = now_ns - b->first_ns;
    for (int k = 0; k < BACKLOG_KINDS; k++) {
        level[k] = to_ns > b->late_since_ns ? b->late[k] / (double)(to_ns - b->late_since_ns) : 0.0;
        b->late[k] = 0.0;
    }
    b->now_ns = b->late_since_ns;
    b->late_since_ns = -1;
    b->last_ns = now_ns;
    bool reach = fits(b, to_ns);
    SIM_ASSERT(reach);
    (void)reach;
    fill(b, level, to_ns);
}

void backlog_arrive(struct backlog *b, int64_t now_ns, uint32_t prompt_tokens,
                    uint32_t output_tokens)
{
    if (b->arrivals == 0) {
        b->first_ns = b->last_ns = now_ns;
    }
    advance(b, now_ns);
    if (b->late_since_ns >= 0) {
        resume(b, now_ns);
    }
    b->now[BACKLOG_REQUESTS] += 1.0;
    b->now[BACKLOG_PROMPT] += prompt_tokens;
    b->now[BACKLOG_OUTPUT] += output_tokens;
    b->n_system++;
    b->max = b->n_system > b->max ? b->n_system : b->max;
    b->arrivals++;
    b->last_ns = now_ns;
    b->at_last = b->n_system;
    b->area_at_last_ns = b->area_ns;
}

void backlog_leave(struct backlog *b, int64_t now_ns, uint32_t prompt_tokens,
                   uint32_t output_tokens)
{
    SIM_ASSERT(b->n_system > 0);
    advance(b, now_ns);
    b->now[BACKLOG_REQUESTS] -= 1.0;
    b->now[BACKLOG_PROMPT] -= prompt_tokens;
    b->now[BACKLOG_OUTPUT] -= output_tokens;
    b->n_system--;
    SIM_ASSERT(b->n_system > 0 || (b->now[BACKLOG_PROMPT] == 0.0 && b->now[BACKLOG_OUTPUT] == 0.0));
    b->last_leave_ns = now_ns;
}

/* Whether the sum of the bins is right after widening. */
static bool bins_sum(const struct backlog *b)
{
    double sum = b->late[BACKLOG_REQUESTS];
    for (uint32_t i = 0; i < BACKLOG_BINS; i++) {
        SIM_ASSERT(b->area[BACKLOG_REQUESTS][i] >= 0.0);
        sum += b->area[BACKLOG_REQUESTS][i];
    }
    return fabs(sum - b->area_ns) <= 1e-9 * b->area_ns;
}

void backlog_finish(struct backlog *b, int64_t now_ns)
{
    if (b->arrivals > 0) {
        advance(b, now_ns);
    }
    SIM_ASSERT(bins_sum(b));
    SIM_ASSERT(b->max >= b->n_system && b->arrivals >= b->n_system);
}

/* Least-squares slope, requests per ns, of the bin means inside [from, to]; 0 with too few bins. */
static double slope(const struct backlog *b, int64_t from_ns, int64_t to_ns)
{
    int64_t first = (from_ns + b->width_ns - 1) / b->width_ns;
    int64_t end = to_ns / b->width_ns; /* exclusive */
    double n = (double)(end - first);
    if (end - first < MIN_BINS_FOR_SLOPE) {
        return 0.0;
    }
    double mid = 0.5 * (n - 1.0);
    double sxy = 0.0;
    for (int64_t i = first; i < end; i++) {
        sxy += ((double)(i - first) - mid) * (b->area[BACKLOG_REQUESTS][i] / (double)b->width_ns);
    }
    double sxx = n * (n * n - 1.0) / 12.0;
    return sxy / sxx / (double)b->width_ns;
}

/* Fills work[] with the mean work in the system, in ns of machine time, of every whole bin in the
 * window. Returns their number. */
static uint32_t work_of(const struct backlog *b, int64_t window_ns, double *work)
{
    uint32_t n = (uint32_t)(window_ns / b->width_ns);
    for (uint32_t i = 0; i < n; i++) {
        double ns = b->area[BACKLOG_PROMPT][i] * b->prompt_token_ns +
                    b->area[BACKLOG_OUTPUT][i] * b->output_token_ns;
        work[i] = ns / (double)b->width_ns;
    }
    return n;
}

/* The longest unbroken stretch of bins above the mean / all bins. */
static double longest_rise(const double *work, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += work[i];
    }
    uint32_t longest = 0;
    for (uint32_t i = 0, run = 0; i < n; i++) {
        run = work[i] > sum / n ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return (double)longest / n;
}

/* Mean growth between stretches, from an empty system, in standard errors. */
static double growth_t(const double *work, uint32_t n)
{
    double sum = 0.0;
    double squares = 0.0;
    double before = 0.0;
    for (uint32_t s = 1; s <= STRETCHES; s++) {
        double at_end = work[(uint64_t)n * s / STRETCHES - 1];
        double d = at_end - before;
        before = at_end;
        sum += d;
        squares += d * d;
    }
    double mean = sum / STRETCHES;
    double variance = fmax(squares - sum * mean, 0.0) / (STRETCHES - 1);
    if (variance <= 1e-18 * mean * mean) { /* all stretches grow equally */
        return mean > 0.0 ? HUGE_VAL : mean < 0.0 ? -HUGE_VAL : 0.0;
    }
    return mean / sqrt(variance / STRETCHES);
}

static void judge(const struct backlog *b, const struct metrics_verdict_rule *rule,
                  struct backlog_summary *s)
{
    double work[BACKLOG_BINS];
    uint32_t n = work_of(b, b->last_ns - b->first_ns, work);
    double most = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        most = fmax(most, work[i]);
    }
    if (b->arrivals < STRETCHES || n < MIN_BINS_FOR_STATUS || most <= 0.0) {
        return;
    }
    s->longest_rise_frac = longest_rise(work, n);
    s->growth_t = growth_t(work, n);
    bool settled = s->longest_rise_frac <= rule->settled_max_frac;
    bool grows = s->growth_t > rule->growing_min_t;
    if (settled != grows) {
        s->verdict = settled ? METRICS_STABLE : METRICS_OVERLOADED;
    }
}

struct backlog_summary backlog_summarise(const struct backlog *b,
                                         const struct metrics_verdict_rule *rule)
{
    struct backlog_summary s = {.mean_in_window = METRIC_UNDEFINED,
                                .unfinished_frac = METRIC_UNDEFINED,
                                .longest_rise_frac = METRIC_UNDEFINED,
                                .growth_t = METRIC_UNDEFINED,
                                .verdict = METRICS_UNDECIDED};
    if (b->arrivals == 0) {
        return s;
    }
    int64_t window_ns = b->last_ns - b->first_ns;
    int64_t end_ns = b->n_system > 0 ? b->first_ns + b->now_ns : b->last_leave_ns;
    s.drain_ns = (end_ns > b->last_ns ? (double)(end_ns - b->last_ns) : 0.0) + b->unserved_ns;
    s.unfinished_frac = (double)b->at_last / (double)b->arrivals;
    if (window_ns > 0) {
        double rate = (double)b->arrivals / (double)window_ns;
        s.growth_frac = slope(b, window_ns / 2, window_ns) / rate;
        s.mean_in_window = b->area_at_last_ns / (double)window_ns;
        judge(b, rule, &s);
    }
    return s;
}
