#include "experiments/compare/search.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"

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

const char *search_slo_name(const struct search_options *o, uint32_t index, char *buf, size_t size)
{
    if (index >= o->n_slos) {
        (void)snprintf(buf, size, "overloaded runs <= half");
    } else {
        const struct search_slo *s = &o->slos[index];
        (void)snprintf(buf, size, "%s%s%g", s->metric, s->at_most ? "<=" : ">=", s->limit);
    }
    return buf;
}

/* ---- one rate ---- */

static struct search_slo overload_rule(void)
{
    return (struct search_slo){
        .metric = "backlog.verdict", .at_most = true, .limit = MAX_OVERLOADED_FRAC};
}

/* One-sided chance of a mean so far on the bad side of the limit, if it lay on the limit. */
static double miss_chance(const struct search_slo *s, const struct stats_interval *m)
{
    double over = s->at_most ? m->mean - s->limit : s->limit - m->mean;
    if (m->n < 2) {
        return UNDEFINED;
    }
    if (m->sd == 0.0) {
        return over > 0.0 ? 0.0 : 1.0;
    }
    return gsl_cdf_tdist_Q(over / (m->sd / sqrt(m->n)), m->n - 1);
}

void search_judge(const struct search_options *o, const double *const *values, uint32_t n,
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
        /* Not defined, or one value: neither met nor missed. A claim that all hold is wrong only if
         * the one that does not was wrongly passed, so it needs no correction; a miss takes the
         * worst of several. */
        all_met = all_met && v->miss_p >= 1.0 - alpha_frac;
        any_missed = any_missed || v->miss_p <= alpha_frac / n_slos;
        if (v->miss_p < worst) {
            worst = v->miss_p;
            t->binding = i;
        }
    }
    t->outcome = any_missed ? SEARCH_MISSED : all_met ? SEARCH_MET : SEARCH_UNDECIDED;
}

/* Looks until the rate is decided or the replications are used up. */
static void test_rate(const struct search_options *o, const struct search_source *source,
                      double scale, struct search_result *out)
{
    struct search_test *t = &out->tests[out->n_tests++];
    *t = (struct search_test){.scale = scale, .outcome = SEARCH_UNDECIDED};
    uint32_t most = o->min_replications << (SEARCH_LOOKS - 1);
    double *values[SEARCH_MAX_SLOS + 1];
    double *rates = xmalloc(most * sizeof *rates);
    for (uint32_t i = 0; i <= o->n_slos; i++) {
        values[i] = xmalloc(most * sizeof *values[i]);
    }
    double alpha = (1.0 - o->confidence_frac) / (SEARCH_MAX_TESTS * SEARCH_LOOKS);
    uint32_t n = o->min_replications;
    for (uint32_t look = 0; look < SEARCH_LOOKS; look++, n *= 2) {
        if (source->measure(source->ctx, scale, t->replications, n, values, rates, out->message) !=
            0) {
            t->outcome = SEARCH_FAILED;
            break;
        }
        t->replications = n;
        search_judge(o, (const double *const *)values, n, alpha, t);
        if (t->outcome != SEARCH_UNDECIDED) {
            break;
        }
    }
    t->req_per_min = stats_mean(rates, t->replications, STATS_LEVEL_FRAC).mean;
    for (uint32_t i = 0; i <= o->n_slos; i++) {
        free(values[i]);
    }
    free(rates);
}

/* ---- bisection ---- */

/* Known so far, as scales; 0 where nothing is. Undecided rates lie in [from, to]. */
struct bracket {
    double met, missed, from, to;
};

static void take(struct search_result *r, struct bracket *b)
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
    /* What the ends have passed is decided. */
    if (b->missed > 0.0 && b->to >= b->missed) {
        b->to = b->from < b->missed ? b->from : 0.0;
        b->from = b->to > 0.0 ? b->from : 0.0;
    }
    if (b->from > 0.0 && b->from <= b->met) {
        b->from = b->to > b->met ? b->to : 0.0;
        b->to = b->from > 0.0 ? b->to : 0.0;
    }
}

/* The next rate to try; 0 when the bracket is as narrow as asked. The wider gap goes first. */
static double next_rate(const struct bracket *b, double precision_frac)
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

void search_find(const struct search_options *o, const struct search_source *source,
                 struct search_result *out)
{
    memset(out, 0, sizeof *out);
    out->low = out->high = -1;
    struct bracket b = {0.0, 0.0, 0.0, 0.0};
    for (double scale = 1.0; scale > 0.0; scale = next_rate(&b, o->precision_frac)) {
        if (out->n_tests == SEARCH_MAX_TESTS) {
            (void)snprintf(out->message, sizeof out->message, "stopped after %d rates",
                           SEARCH_MAX_TESTS);
            return;
        }
        if (scale > SEARCH_MAX_SCALE || scale < 1.0 / SEARCH_MAX_SCALE) {
            (void)snprintf(out->message, sizeof out->message, "%s at %g times the workload's rate",
                           scale > 1.0 ? "nothing is missed even" : "nothing is met even",
                           scale > 1.0 ? scale / 2.0 : scale * 2.0);
            return;
        }
        test_rate(o, source, scale, out);
        if (out->tests[out->n_tests - 1].outcome == SEARCH_FAILED) {
            return;
        }
        take(out, &b);
    }
    if (b.missed / b.met > 1.0 + o->precision_frac) {
        (void)snprintf(out->message, sizeof out->message,
                       "precision of %g %% not reached: the ends differ by %.1f %%, and the rates "
                       "between them stay undecided in the replications allowed",
                       100.0 * o->precision_frac, 100.0 * (b.missed / b.met - 1.0));
    }
}

/* ---- by simulation ---- */

struct simulated {
    const struct search_options *options;
    struct compare_plan plan;
};

static int simulate(void *ctx, double scale, uint32_t from, uint32_t to, double *const *values,
                    double *rates, char *message)
{
    const struct simulated *s = ctx;
    uint32_t n_slos = s->options->n_slos;
    struct compare_plan p = s->plan;
    p.first = from;
    p.replications = to - from;
    p.arrivals.rate_scale = scale;
    struct compare_result r;
    compare_run(&p, &r);
    int rc = 0;
    if (r.n_failures > 0) {
        (void)snprintf(message, JOBS_MESSAGE_BYTES, "%s", r.failures[0].message);
        rc = -EIO;
    } else {
        for (uint32_t i = 0; i < n_slos; i++) {
            memcpy(values[i] + from, compare_values(&r, 0, s->options->slos[i].metric),
                   (to - from) * sizeof(double));
        }
        const double *verdict = compare_values(&r, 0, "backlog.verdict");
        const double *arrived = compare_values(&r, 0, "all.arrived");
        const double *window = compare_values(&r, 0, "arrival_window_s");
        for (uint32_t k = from; k < to; k++) {
            rates[k] = (arrived[k - from] - 1.0) / window[k - from] * 60.0;
            values[n_slos][k] = verdict[k - from] >= (double)METRICS_OVERLOADED ? 1.0 : 0.0;
        }
    }
    compare_result_fini(&r);
    return rc;
}

void search_run(const struct search_options *o, const struct compare_plan *plan, uint32_t policy,
                struct search_result *out)
{
    struct simulated s = {.options = o, .plan = *plan};
    s.plan.policies = &plan->policies[policy];
    s.plan.n_policies = 1;
    s.plan.baseline = 0;
    struct search_source source = {&s, simulate};
    search_find(o, &source, out);
}
