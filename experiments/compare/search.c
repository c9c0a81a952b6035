#include "experiments/compare/search.h"

#include "sim/base/portable.h"

#define UNDEFINED ((double)NAN)
#define MAX_OVERLOADED_FRAC 0.5

/* ---- SLOs ---- */

int search_slo_parse(const char *text, struct search_slo *out, struct err *e)
{
    const char *sign = strstr(text, "<=");
    const char *other = strstr(text, ">=");
    out->at_most = sign != NULL;
    sign = sign != NULL ? sign : other;
    char *end = NULL;
    out->limit = sign != NULL ? strtod(sign + 2, &end) : 0.0;
    if (sign == NULL || sign == text || (size_t)(sign - text) >= sizeof out->metric ||
        end == sign + 2 || *end != '\0' || !isfinite(out->limit)) {
        return err_add(e,
                       "--slo %s: must be METRIC<=VALUE or METRIC>=VALUE, as in "
                       "reactive.e2e_s.p90<=20",
                       text);
    }
    (void)snprintf(out->metric, sizeof out->metric, "%.*s", (int)(sign - text), text);
    return 0;
}

const char *search_slo_name(const struct search_options *o, uint32_t index)
{
    const struct search_slo *s = &o->slos[index];
    return index >= o->n_slos
               ? "overloaded runs <= half"
               : xkeep(xformat("%s%s%g", s->metric, s->at_most ? "<=" : ">=", s->limit));
}

/* ---- one rate ---- */

static struct search_slo overload_rule(void)
{
    return (struct search_slo){
        .metric = "backlog.verdict", .at_most = true, .limit = MAX_OVERLOADED_FRAC};
}

/* One-sided p-value of the mean if the true one were at the limit. */
static double miss_chance(const struct search_slo *s, const struct stats_interval *m)
{
    double over = s->at_most ? m->mean - s->limit : s->limit - m->mean;
    if (m->n < 2) {
        return UNDEFINED;
    }
    if (m->sd == 0.0) {
        return over > 0.0 ? 0.0 : 1.0;
    }
    return portable_student_above(over / (m->sd / sqrt(m->n)), m->n - 1);
}

/* Probability that a share of requests that is just at its limit has no exception: all meet the
 * target, or none is lost. 0: the values have exceptions, or are no such share. */
static double no_exception(const struct search_slo *s, const struct search_value *v)
{
    double share = s->at_most ? 1.0 - s->limit : s->limit;
    bool none = v->mean.sd == 0.0 && v->mean.mean == (s->at_most ? 0.0 : 1.0);
    bool is_share = share > 0.0 && share < 1.0 && v->requests > 0.0;
    return none && is_share ? pow(share, v->requests) : 0.0;
}

void search_look(const struct search_options *o, const double *const *values, uint32_t n,
                 double alpha_frac, struct search_test *t)
{
    uint32_t n_slos = o->n_slos + 1;
    bool all_met = true;
    bool any_missed = false;
    double worst = 2.0;
    for (uint32_t i = 0; i < n_slos; i++) {
        struct search_slo s = i < o->n_slos ? o->slos[i] : overload_rule();
        struct search_value *v = &t->values[i];
        v->mean = stats_mean(values[i], n, 1.0 - 2.0 * alpha_frac);
        v->miss_p = miss_chance(&s, &v->mean);
        if (no_exception(&s, v) >= 1.0 - o->confidence_frac) {
            v->miss_p = UNDEFINED;
        }
        if (i == o->n_slos) { /* a share, which Student's interval may exceed */
            v->mean.low = fmax(v->mean.low, 0.0);
            v->mean.high = fmin(v->mean.high, 1.0);
            /* If half of all runs are overloaded, all or none of n are with this probability. */
            double equal_frac = pow(0.5, n - 1.0);
            v->miss_p = equal_frac >= 1.0 - o->confidence_frac ? UNDEFINED : v->miss_p;
        }
        /* Undefined or a single value: neither met nor missed. "All met" is only wrong if the SLO
         * that is not met was wrongly passed, so it needs no correction; a miss is the worst of
         * several tests. */
        all_met = all_met && v->miss_p >= 1.0 - alpha_frac;
        any_missed = any_missed || v->miss_p <= alpha_frac / n_slos;
        if (v->miss_p < worst) {
            worst = v->miss_p;
            t->binding = i;
        }
    }
    t->outcome = any_missed ? SEARCH_MISSED : all_met ? SEARCH_MET : SEARCH_UNDECIDED;
}

/* ---- bisection ---- */

/* Scales; 0: unknown. Undecided: [from, to]. */
struct search_bracket {
    double met, missed, from, to;
};

/* Updates the bracket with the last test. */
static void narrow(struct search_result *r, struct search_bracket *b)
{
    int i = (int)r->n_tests - 1;
    const struct search_test *t = &r->tests[i];
    if (t->outcome == SEARCH_MET && t->scale > b->met) {
        b->met = t->scale;
        r->low = i;
    } else if (t->outcome == SEARCH_MISSED && (b->missed == 0.0 || t->scale < b->missed)) {
        b->missed = t->scale;
        r->high = i;
    } else if (t->outcome == SEARCH_UNDECIDED) {
        b->from = b->from == 0.0 ? t->scale : fmin(b->from, t->scale);
        b->to = fmax(b->to, t->scale);
    }
    /* The ends decide all undecided rates beyond them. */
    if (b->missed > 0.0 && b->to >= b->missed) {
        b->to = b->from < b->missed ? b->from : 0.0;
        b->from = b->to > 0.0 ? b->from : 0.0;
    }
    if (b->from > 0.0 && b->from <= b->met) {
        b->from = b->to > b->met ? b->to : 0.0;
        b->to = b->from > 0.0 ? b->to : 0.0;
    }
    SIM_ASSERT(b->missed == 0.0 || b->met < b->missed);
    SIM_ASSERT(b->from <= b->to && (b->from == 0.0 || b->met < b->from));
    SIM_ASSERT(b->to == 0.0 || b->missed == 0.0 || b->to < b->missed);
}

/* The next rate to try, in the wider gap; 0: the bracket is narrow enough. */
static double next_rate(const struct search_bracket *b, double precision_frac)
{
    double enough = 1.0 + precision_frac;
    if (b->met == 0.0) { /* downwards until something is met */
        double least = b->from > 0.0 ? b->from : b->missed;
        return least > 0.0 ? least / 2.0 : 1.0;
    }
    if (b->missed == 0.0) {
        return 2.0 * fmax(b->met, b->to);
    }
    if (b->from == 0.0) {
        return b->missed / b->met > enough ? sqrt(b->met * b->missed) : 0.0;
    }
    double below = b->from / b->met;
    double above = b->missed / b->to;
    if (fmax(below, above) <= enough) {
        return 0.0;
    }
    return below >= above ? sqrt(b->met * b->from) : sqrt(b->to * b->missed);
}

/* Begins a test at the next rate. NULL, possibly with a message, if there is none. */
static struct search_test *begin_rate(const struct search_options *o,
                                      const struct search_bracket *b, double scale,
                                      struct search_result *out)
{
    if (scale == 0.0) {
        if (b->missed / b->met > 1.0 + o->precision_frac) {
            (void)snprintf(out->message, sizeof out->message,
                           "precision of %g %% not reached: the ends differ by %.1f %%, and the "
                           "rates between them stay undecided in the replications allowed",
                           100.0 * o->precision_frac, 100.0 * (b->missed / b->met - 1.0));
        }
    } else if (out->n_tests == SEARCH_MAX_TESTS) {
        (void)snprintf(out->message, sizeof out->message, "stopped after %d rates",
                       SEARCH_MAX_TESTS);
    } else if (scale > SEARCH_MAX_SCALE || scale < 1.0 / SEARCH_MAX_SCALE) {
        (void)snprintf(out->message, sizeof out->message, "%s at %g times the workload's rate",
                       scale > 1.0 ? "nothing is missed even" : "nothing is met even",
                       scale > 1.0 ? scale / 2.0 : scale * 2.0);
    } else {
        out->tests[out->n_tests] =
            (struct search_test){.scale = scale, .outcome = SEARCH_UNDECIDED};
        return &out->tests[out->n_tests++];
    }
    return NULL;
}

/* A rate that cannot be run ends a search. Below the workload's rate, a trace probably has no
 * request; then the result for higher rates is kept. */
static void explain_failure(const struct search_result *r, double scale, const char *failure,
                            char *message, size_t size)
{
    uint32_t missed = 0;
    for (uint32_t i = 0; i + 1 < r->n_tests; i++) {
        missed += r->tests[i].outcome == SEARCH_MISSED;
    }
    if (r->n_tests == 1) {
        (void)snprintf(message, size, "%s", failure);
    } else if (r->low < 0) {
        (void)snprintf(message, size,
                       "nothing is met down to %g times the workload's rate, %u missed and %u "
                       "undecided; %g times it cannot be run: %s",
                       r->tests[r->n_tests - 2].scale, missed, r->n_tests - 1 - missed, scale,
                       failure);
    } else {
        (void)snprintf(message, size, "%g times the workload's rate cannot be run: %s", scale,
                       failure);
    }
}

/* Pools the first n replications. A mean of their rates would be dominated by those with few
 * requests that arrived close together. */
static double rate_of(const struct search_looked *at, uint32_t n)
{
    double arrivals = 0.0;
    double time_s = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        arrivals += at->offered[i].requests;
        time_s += at->offered[i].time_s;
    }
    return time_s > 0.0 ? arrivals / time_s * 60.0 : UNDEFINED;
}

/* Tests a rate, with doubled replications each time, until it is decided. */
static void test_rate(const struct search_options *o, search_measure *measure, void *ctx,
                      struct search_looked *at, struct search_test *t, struct search_result *out)
{
    for (int look = 0; look < SEARCH_LOOKS && t->outcome == SEARCH_UNDECIDED; look++) {
        uint32_t to = o->min_replications << look;
        const char *failure = measure(ctx, t->scale, t->replications, to, at);
        if (failure != NULL) {
            explain_failure(out, t->scale, failure, out->message, sizeof out->message);
            t->outcome = SEARCH_FAILED;
        } else {
            t->replications = to;
            for (uint32_t i = 0; i < o->n_slos; i++) {
                t->values[i].requests = 0.0;
                for (uint32_t k = 0; k < to; k++) {
                    t->values[i].requests += at->requests[i][k];
                }
            }
            search_look(o, (const double *const *)at->values, to,
                        /* Bonferroni over all looks at all rates that could be tried, because
                         * stopping at the first decisive look would otherwise give false decisions.
                         */
                        (1.0 - o->confidence_frac) / (SEARCH_MAX_TESTS * SEARCH_LOOKS), t);
        }
        SIM_ASSERT(t->outcome == SEARCH_FAILED || t->replications == to);
        t->req_per_min = rate_of(at, t->replications);
    }
}

void search_by(const struct search_options *o, search_measure *measure, void *ctx,
               struct search_result *out)
{
    memset(out, 0, sizeof *out);
    out->low = out->high = -1;
    struct search_looked at;
    uint32_t most = o->min_replications << (SEARCH_LOOKS - 1);
    at.offered = xmalloc(most * sizeof *at.offered);
    for (uint32_t i = 0; i <= o->n_slos; i++) {
        at.values[i] = xmalloc(most * sizeof *at.values[i]);
        if (i < o->n_slos) {
            at.requests[i] = xcalloc(most, sizeof *at.requests[i]);
        }
    }
    struct search_bracket known = {0};
    struct search_test *t = begin_rate(o, &known, 1.0, out);
    while (t != NULL) {
        test_rate(o, measure, ctx, &at, t, out);
        if (t->outcome == SEARCH_FAILED) {
            break;
        }
        narrow(out, &known);
        t = begin_rate(o, &known, next_rate(&known, o->precision_frac), out);
    }
    for (uint32_t i = 0; i <= o->n_slos; i++) {
        free(at.values[i]);
        if (i < o->n_slos) {
            free(at.requests[i]);
        }
    }
    free(at.offered);
}

/* ---- on simulations ---- */

struct simulations {
    const struct search_options *options;
    struct compare_plan plan; /* only with this policy */
    struct search_result *out;
    double own; /* rate of the plan */
    char failure[JOBS_MESSAGE_BYTES];
};

/* The error for a metric without values, which cannot be met or missed at any rate. Runs have no
 * column for a metric that cannot occur. NULL: it has values, or a run was overloaded, which
 * decides without them. */
static const char *no_value(struct simulations *s, const char *metric, const double *v,
                            const double *verdict, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if ((v != NULL && isfinite(v[k])) || verdict[k] >= (double)METRICS_OVERLOADED) {
            return NULL;
        }
    }
    bool targets = strstr(metric, "slo_attainment") != NULL || strstr(metric, "goodput") != NULL;
    (void)snprintf(s->failure, sizeof s->failure, "%s has no value in any of %u runs%s", metric, n,
                   targets ? ": no request has a target (--ttft-slo, --tpot-slo)" : "");
    return s->failure;
}

/* How many requests of the metric's class arrived. NULL: it is no metric of a class. */
static const double *arrived_of(const struct compare_result *r, const char *metric)
{
    OWNED char *name = xformat("%.*s.arrived", (int)strcspn(metric, "."), metric);
    return compare_values(r, 0, name);
}

static const char *simulate(void *ctx, double scale, uint32_t from, uint32_t to,
                            struct search_looked *into)
{
    struct simulations *s = ctx;
    SCOPED(compare_result_fini) struct compare_result r;
    s->plan.first = from;
    s->plan.replications = to - from;
    s->plan.arrivals.rate_scale = s->own * scale;
    compare_run(&s->plan, &r);
    if (r.n_failures > 0) {
        memcpy(s->failure, r.failures[0].message, sizeof s->failure);
        return s->failure;
    }
    const double *verdict = compare_values(&r, 0, "backlog.verdict");
    if (verdict == NULL) {
        (void)snprintf(s->failure, sizeof s->failure, "no requests in any of %u runs", to - from);
        return s->failure;
    }
    uint32_t n_slos = s->options->n_slos;
    for (uint32_t i = 0; i < n_slos; i++) {
        const char *metric = s->options->slos[i].metric;
        const double *v = compare_values(&r, 0, metric);
        if (from == 0 && no_value(s, metric, v, verdict, to) != NULL) {
            return s->failure;
        }
        const double *arrived = arrived_of(&r, metric);
        for (uint32_t k = from; k < to; k++) {
            bool known = arrived != NULL && isfinite(arrived[k - from]);
            into->requests[i][k] = known ? arrived[k - from] : 0.0;
            into->values[i][k] = v != NULL ? v[k - from] : METRIC_UNDEFINED;
        }
    }
    const double *arrived = compare_values(&r, 0, "all.arrived");
    const double *window = compare_values(&r, 0, "arrival_window_s");
    SCOPED(err_fini) struct err e = ERR_INIT; /* ignored: these workloads have run */
    for (uint32_t k = 0; k < to - from; k++) {
        into->offered[from + k] = (struct compare_offered){0.0, 0.0};
        (void)compare_offered(&s->plan, k, arrived[k], window[k], &into->offered[from + k], &e);
        /* An overloaded run may meet limits for the few requests that it served, so overload is a
         * separate limit. */
        bool overloaded = verdict[k] >= (double)METRICS_OVERLOADED;
        into->values[n_slos][from + k] = r.empty[k] ? METRIC_UNDEFINED : overloaded;
        s->out->n_empty += verdict[k] == (double)METRICS_BATTERY_EMPTY;
    }
    s->out->extrapolated = compare_extrapolated(&r, 0);
    return NULL;
}

void search_run(const struct search_options *o, const struct compare_plan *plan, uint32_t policy,
                struct search_result *out)
{
    double own = plan->arrivals.rate_scale > 0.0 ? plan->arrivals.rate_scale : 1.0;
    struct simulations s = {o, compare_alone(plan, policy), out, own, ""};
    search_by(o, simulate, &s, out);
}
