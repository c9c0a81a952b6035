#include "hwmodels/backends/window.h"

#include <gsl/gsl_statistics_double.h>

#define SLACK                                                                                      \
    4.0 /* a window may take this many times its expected time before the deadline starts \ */
#define MAX_SIDES 2
#define SPIKE 2.0     /* times the median */
#define CORE_FRAC 0.9 /* least share of a launch on its core; else the sample has other load */

struct span {
    int64_t first, last; /* tickets */
    uint32_t n;          /* wanted launches */
};

/* Queues the launches of all sides, alternating, so that the sides start together. */
static int submit_all(const struct backend_ops *ops, struct window_side *sides, uint32_t n_sides,
                      struct span *spans)
{
    /* All at once, because otherwise the host between launches would be measured. */
    for (uint32_t i = 0; i < BACKEND_MAX_INFLIGHT; i++) {
        for (uint32_t k = 0; k < n_sides; k++) {
            if (i >= spans[k].n) {
                continue;
            }
            int64_t ticket = ops->submit(sides[k].kernel);
            if (ticket < 0) {
                return (int)ticket;
            }
            spans[k].first = i == 0 ? ticket : spans[k].first;
            spans[k].last = ticket;
        }
    }
    return 0;
}

/* Waits for side 0, withdraws the remaining launches of the others, and waits for these. */
static int wait_all(const struct backend_ops *ops, struct window_side *sides, uint32_t n_sides,
                    struct span *spans, int64_t timeout_ns)
{
    int rc = 0;
    for (uint32_t k = 0; k < n_sides; k++) {
        /* A side with remaining work would run isolated from now on. */
        if (k > 0 || rc != 0) {
            int64_t stays = ops->cancel(sides[k].device, spans[k].first);
            spans[k].last = stays >= 0 && stays < spans[k].last ? stays : spans[k].last;
        }
        if (spans[k].last < spans[k].first) {
            continue;
        }
        int one = ops->wait(sides[k].device, spans[k].last, timeout_ns);
        if (one != 0) {
            sides[k].hung = one == -ETIMEDOUT;
            rc = rc == 0 || one == -ETIMEDOUT ? one : rc;
        }
    }
    return rc;
}

/* Time in which all sides ran: from the latest first completion to the earliest last one. */
static bool overlap(const struct backend_ops *ops, struct window_side *sides, uint32_t n_sides,
                    const struct span *spans, int64_t *from_ns, int64_t *to_ns)
{
    *from_ns = INT64_MIN;
    *to_ns = INT64_MAX;
    for (uint32_t k = 0; k < n_sides; k++) {
        struct backend_stamps first;
        struct backend_stamps last;
        if (ops->stamps(sides[k].device, spans[k].first, &first) != 0 ||
            ops->stamps(sides[k].device, spans[k].last, &last) != 0) {
            return false;
        }
        *from_ns = first.start_ns > *from_ns ? first.start_ns : *from_ns;
        *to_ns = last.end_ns < *to_ns ? last.end_ns : *to_ns;
    }
    return true;
}

/* Removes samples over twice the median, which have an interrupt or a page fault. They would bias
 * the median slightly upwards. */
static void drop_spikes(struct window_side *s)
{
    uint32_t all = s->n;
    s->median_s = all > 0 ? window_quantile(s, 0.5) : 0.0;
    double limit_s = SPIKE * s->median_s;
    s->n = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (s->samples[i] <= limit_s) {
            s->samples[s->n++] = s->samples[i];
        }
    }
    s->median_s = s->n < all ? window_quantile(s, 0.5) : s->median_s;
    s->spike_frac = all > 0 ? (double)(all - s->n) / all : 0.0;
}

/* Whether the launch had its core. Unknown processor time counts as yes. */
static bool kept_core(const struct backend_stamps *st)
{
    return st->cpu_ns < 0 || (double)st->cpu_ns >= CORE_FRAC * (double)(st->end_ns - st->start_ns);
}

/* Whether the other side ran, with its core, during a sample of this one. */
static bool other_ran(const struct backend_ops *ops, const struct window_side *other,
                      const struct span *span, int64_t *at, int64_t from_ns, int64_t to_ns)
{
    struct backend_stamps st;
    int64_t lost_ns = 0;
    while (*at > span->first && ops->stamps(other->device, *at, &st) == 0 &&
           st.start_ns > from_ns) {
        (*at)--;
    }
    for (; *at <= span->last && ops->stamps(other->device, *at, &st) == 0; (*at)++) {
        int64_t begin = st.start_ns > from_ns ? st.start_ns : from_ns;
        int64_t end = st.end_ns < to_ns ? st.end_ns : to_ns;
        lost_ns += end > begin && !kept_core(&st) ? end - begin : 0;
        if (st.end_ns >= to_ns) {
            break;
        }
    }
    return (double)lost_ns <= (1.0 - CORE_FRAC) * (double)(to_ns - from_ns);
}

/* Collects samples. other NULL: the side runs isolated. */
static void collect(const struct backend_ops *ops, struct window_side *s, const struct span *span,
                    const struct window_side *other, const struct span *other_span, int64_t from_ns,
                    int64_t to_ns)
{
    struct backend_stamps st;
    int64_t previous_ns = -1;
    int64_t at = other != NULL ? other_span->first : 0;
    double span_s = 0.0;
    double cpu_s = 0.0;
    bool cpu_known = true;
    for (int64_t t = span->first; t <= span->last; t++) {
        if (ops->stamps(s->device, t, &st) != 0) {
            previous_ns = -1;
            continue;
        }
        if (previous_ns >= from_ns && previous_ns >= 0 && st.end_ns <= to_ns) {
            bool both =
                other == NULL || other_ran(ops, other, other_span, &at, previous_ns, st.end_ns);
            /* From end to end, so that samples include the launch cost, as in a model's run. */
            if (both && kept_core(&st)) {
                s->samples[s->n++] = units_s_from_ns(st.end_ns - previous_ns);
            }
            span_s += units_s_from_ns(st.end_ns - st.start_ns);
            cpu_known = cpu_known && st.cpu_ns >= 0;
            cpu_s += units_s_from_ns(st.cpu_ns);
        }
        previous_ns = st.end_ns;
    }
    drop_spikes(s);
    s->idle_frac = cpu_known && span_s > 0.0 ? fmax(0.0, 1.0 - cpu_s / span_s) : -1.0;
}

static void read_busy(const struct window_options *o, struct window_side *sides, uint32_t n_sides,
                      struct backend_counters *out)
{
    for (uint32_t k = 0; k < n_sides; k++) {
        out[k] = (struct backend_counters){.busy_valid = false};
        o->backend->ops->counters(sides[k].device, &out[k]);
    }
}

static void set_busy(struct window_side *sides, uint32_t n_sides,
                     const struct backend_counters *from, const struct backend_counters *to,
                     double span_s)
{
    for (uint32_t k = 0; k < n_sides; k++) {
        bool known = from[k].busy_valid && to[k].busy_valid && span_s > 0.0;
        sides[k].busy_frac =
            known ? units_s_from_ns(to[k].busy_ns - from[k].busy_ns) / span_s : -1.0;
    }
}

/* The sides run for the same span: the window, or longer for slow kernels. */
static double plan_launches(const struct window_options *o, struct window_side *sides,
                            uint32_t n_sides, struct span *spans)
{
    double span_s = o->window_s;
    for (uint32_t k = 0; k < n_sides; k++) {
        span_s = fmax(span_s, o->min_samples * sides[k].alone_s);
        sides[k].hung = false;
        sides[k].n = 0;
        sides[k].idle_frac = -1.0;
    }
    for (uint32_t k = 0; k < n_sides; k++) {
        double n = ceil(span_s / sides[k].alone_s) + 1.0; /* the first one only starts the clock */
        spans[k].n = n < BACKEND_MAX_INFLIGHT - 1 ? (uint32_t)n : BACKEND_MAX_INFLIGHT - 1;
    }
    return span_s;
}

int window_run(const struct window_options *o, struct window_side *sides, uint32_t n_sides,
               struct backend_host *host)
{
    const struct backend_ops *ops = o->backend->ops;
    struct span spans[MAX_SIDES] = {{0, 0, 0}, {0, 0, 0}};
    struct backend_counters from[MAX_SIDES];
    struct backend_counters to[MAX_SIDES];
    SIM_REQUIRE(n_sides >= 1 && n_sides <= MAX_SIDES, "one or two sides");
    double span_s = plan_launches(o, sides, n_sides, spans);
    struct host_times before = {.valid = false};
    if (ops->host == NULL) { /* else the backend knows the other load of its host */
        before = host_times_read(o->proc_dir);
    }
    int64_t start_ns = backend_now_ns(o->backend);
    read_busy(o, sides, n_sides, from);
    int rc = submit_all(ops, sides, n_sides, spans);
    if (rc != 0) { /* nothing is measured, but queued launches must end */
        (void)wait_all(ops, sides, n_sides, spans, units_ns_from_s(o->deadline_s));
        return -EIO;
    }
    /* Co-running kernels take longer than isolated ones; a kernel that takes this long does not
     * return. */
    rc = wait_all(ops, sides, n_sides, spans, units_ns_from_s(SLACK * span_s + o->deadline_s));
    read_busy(o, sides, n_sides, to);
    set_busy(sides, n_sides, from, to, units_s_from_ns(backend_now_ns(o->backend) - start_ns));
    if (ops->host != NULL) {
        ops->host(o->backend, host);
    } else {
        struct host_times after = host_times_read(o->proc_dir);
        *host = host_times_shares(&before, &after);
    }
    int64_t from_ns;
    int64_t to_ns;
    if (rc == 0 && overlap(ops, sides, n_sides, spans, &from_ns, &to_ns)) {
        for (uint32_t k = 0; k < n_sides; k++) {
            const uint32_t x = n_sides - 1 - k; /* the other side */
            collect(ops, &sides[k], &spans[k], n_sides > 1 ? &sides[x] : NULL, &spans[x], from_ns,
                    to_ns);
        }
    }
    return rc == -ECANCELED ? 0 : rc;
}

double window_quantile(struct window_side *s, double p)
{
    double rank = ceil(p * s->n);
    uint32_t i = rank < 1.0 ? 0 : (uint32_t)rank - 1;
    return gsl_stats_select(s->samples, 1, s->n, i < s->n ? i : s->n - 1);
}
