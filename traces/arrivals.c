#include "traces/arrivals.h"

#include <gsl/gsl_randist.h>

#include "sim/base/csvfile.h"
#include "sim/base/datadir.h"
#include "sim/base/map.h"

/* ---- recorded events ---- */

static double gaps_read(struct csvfile *f, struct events *out, struct err *e)
{
    int at = csvfile_require(f, "arrival_s", e);
    int session = csvfile_column(f, "session_id");
    double sum_s = 0.0;
    double last_s = 0.0;
    uint64_t last_session = UINT64_MAX;
    SCOPED(map_fini) struct map seen = {0};
    while (at >= 0 && e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        double t_s = csvfile_number(f, at, 0.0, 1e9, e);
        uint64_t id = session < 0 ? 0 : csvfile_u64(f, session, 0, UINT32_MAX, e);
        /* Gaps are only counted within a session; the time between sessions is no gap. */
        if (id == last_session && t_s < last_s) {
            csvfile_refuse(f, at, e, "before the row above");
        } else if (id != last_session && map_find(&seen, id) != MAP_NONE) {
            csvfile_refuse(f, session, e, "\"%s\" is there again: its rows must follow each other",
                           csvfile_text(f, session));
        } else if (id == last_session) {
            LIST_ADD(out->gap_s, out->n, t_s - last_s);
            sum_s += t_s - last_s;
        }
        last_s = t_s;
        last_session = id;
        map_put(&seen, id, 1);
    }
    return sum_s;
}

int events_load(const char *name, struct events *out, struct err *e)
{
    *out = (struct events){0};
    size_t before = e->n;
    const char *path = datadir_named(name, "traces/datasets", ".csv");
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    double sum_s = gaps_read(f, out, e);
    if (e->n == before && sum_s <= 0.0) {
        err_add(e, "events \"%s\": needs two events at different times", name);
    }
    if (e->n != before) {
        events_fini(out);
        return -EINVAL;
    }
    out->mean_s = sum_s / (double)out->n;
    return 0;
}

void events_fini(struct events *ev)
{
    free(ev->gap_s);
    *ev = (struct events){0};
}

/* ---- gap processes ---- */

void arrivals_init(struct arrivals *a, enum arrival_kind kind, double mean_s, double cv,
                   const struct events *events, uint64_t key)
{
    *a = (struct arrivals){.kind = kind, .mean_s = mean_s, .cv = cv, .events = events};
    a->rng = rng_gsl_new(key);
}

void arrivals_fini(struct arrivals *a)
{
    gsl_rng_free(a->rng);
    a->rng = NULL;
}

static double next_gap_s(struct arrivals *a)
{
    switch (a->kind) {
    case ARRIVAL_GAMMA: {
        double shape = 1.0 / (a->cv * a->cv); /* CV of a gamma distribution is 1/sqrt(shape) */
        return gsl_ran_gamma(a->rng, shape, a->mean_s / shape);
    }
    case ARRIVAL_REPLAY: {
        /* Scale the recorded gap to the workload's rate. */
        double gap_s = a->events->gap_s[a->at] / a->events->mean_s * a->mean_s;
        a->at = (a->at + 1) % a->events->n;
        return gap_s;
    }
    case ARRIVAL_POISSON:
    case ARRIVAL_CLOSED:
        break;
    }
    return rng_exponential(a->rng->state, a->mean_s);
}

/* The rest of a recorded gap at a random instant of the recording, so that replications with other
 * seeds replay other parts of it. */
static double first_recorded_s(struct arrivals *a)
{
    const struct events *ev = a->events;
    double left_s = rng_uniform(a->rng->state) * ev->mean_s * (double)ev->n;
    /* Checks the index, because sums of gaps have rounding errors. */
    while (a->at + 1 < ev->n && left_s >= ev->gap_s[a->at]) {
        left_s -= ev->gap_s[a->at++];
    }
    double gap_s = fmax(0.0, ev->gap_s[a->at] - left_s) / ev->mean_s * a->mean_s;
    a->at = (a->at + 1) % ev->n;
    return gap_s;
}

/* The time from the start, a random instant, to the first arrival. This is the rest of a gap, and
 * more likely of a long one. A process that begins with a whole gap, as if at an arrival, has (CV^2
 * - 1) / 2 arrivals too many, regardless of its length. */
static double first_gap_s(struct arrivals *a)
{
    switch (a->kind) {
    case ARRIVAL_GAMMA: {
        /* The gap at the start has the length-weighted gamma distribution, with shape + 1. */
        double shape = 1.0 / (a->cv * a->cv);
        double gap_s = gsl_ran_gamma(a->rng, shape + 1.0, a->mean_s / shape);
        return gap_s * rng_uniform(a->rng->state);
    }
    case ARRIVAL_REPLAY:
        return first_recorded_s(a);
    case ARRIVAL_POISSON:
    case ARRIVAL_CLOSED:
        break;
    }
    return next_gap_s(a); /* an exponential gap is memoryless */
}

double arrivals_next(struct arrivals *a)
{
    a->op_s += a->begun ? next_gap_s(a) : first_gap_s(a);
    a->begun = true;
    return a->op_s;
}

/* ---- activity ---- */

void activity_init(struct activity *a, double burst, double share, double period_s, uint64_t key)
{
    *a = (struct activity){.burst = burst, .enabled = burst > 1.0};
    /* Keeps the mean rate: burst share + idle (1 - share) = 1. */
    a->idle_factor = share < 1.0 ? fmax(0.0, (1.0 - burst * share) / (1.0 - share)) : 1.0;
    a->mean_on_s = period_s * share;
    a->mean_off_s = period_s * (1.0 - share);
    rng_init(&a->rng, key);
    /* Start in the stationary state, so that workloads do not always begin with a burst. */
    a->on = rng_uniform(&a->rng) < share;
    a->next_real_s = rng_exponential(&a->rng, a->on ? a->mean_on_s : a->mean_off_s);
}

double activity_real(struct activity *a, double op_s)
{
    if (!a->enabled) {
        return op_s;
    }
    /* Gaps are drawn in operational time, with a constant rate, and mapped to real time here. So
     * the same draws give the same requests with and without bursts. */
    for (;;) {
        double rate = a->on ? a->burst : a->idle_factor;
        double end_op_s = a->op_s + rate * (a->next_real_s - a->real_s);
        if (op_s < end_op_s) {
            return a->real_s + (op_s - a->op_s) / rate;
        }
        a->op_s = end_op_s;
        a->real_s = a->next_real_s;
        a->on = !a->on;
        a->next_real_s += rng_exponential(&a->rng, a->on ? a->mean_on_s : a->mean_off_s);
    }
}
