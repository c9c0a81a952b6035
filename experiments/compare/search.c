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

/* ---- bisection ---- */

/* The rate last tried, into what is known. */
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

/* A rate to try; 0: enough is known. */
static void begin_rate(struct search *s, double scale)
{
    struct search_result *out = s->result;
    const struct search_bracket *b = &s->known;
    s->looks = 0;
    s->over = true;
    if (scale == 0.0) {
        if (b->missed / b->met > 1.0 + s->options->precision_frac) {
            (void)snprintf(out->message, sizeof out->message,
                           "precision of %g %% not reached: the ends differ by %.1f %%, and the "
                           "rates between them stay undecided in the replications allowed",
                           100.0 * s->options->precision_frac, 100.0 * (b->missed / b->met - 1.0));
        }
    } else if (out->n_tests == SEARCH_MAX_TESTS) {
        (void)snprintf(out->message, sizeof out->message, "stopped after %d rates",
                       SEARCH_MAX_TESTS);
    } else if (scale > SEARCH_MAX_SCALE || scale < 1.0 / SEARCH_MAX_SCALE) {
        (void)snprintf(out->message, sizeof out->message, "%s at %g times the workload's rate",
                       scale > 1.0 ? "nothing is missed even" : "nothing is met even",
                       scale > 1.0 ? scale / 2.0 : scale * 2.0);
    } else {
        out->tests[out->n_tests++] =
            (struct search_test){.scale = scale, .outcome = SEARCH_UNDECIDED};
        s->over = false;
    }
}

static struct search_test *current(const struct search *s)
{
    return &s->result->tests[s->result->n_tests - 1];
}

void search_open(struct search *s, const struct search_options *o, struct search_result *out)
{
    *s = (struct search){.options = o, .result = out};
    memset(out, 0, sizeof *out);
    out->low = out->high = -1;
    uint32_t most = o->min_replications << (SEARCH_LOOKS - 1);
    s->rates = xmalloc(most * sizeof *s->rates);
    for (uint32_t i = 0; i <= o->n_slos; i++) {
        s->values[i] = xmalloc(most * sizeof *s->values[i]);
    }
    begin_rate(s, 1.0);
}

bool search_next(const struct search *s, struct search_ask *ask)
{
    if (!s->over) { /* min, 2 min, 4 min, ... */
        *ask = (struct search_ask){.scale = current(s)->scale,
                                   .from = current(s)->replications,
                                   .to = s->options->min_replications << s->looks};
    }
    return !s->over;
}

void search_take(struct search *s, const char *failure)
{
    const struct search_options *o = s->options;
    struct search_test *t = current(s);
    if (failure != NULL) {
        (void)snprintf(s->result->message, sizeof s->result->message, "%s", failure);
        t->outcome = SEARCH_FAILED;
        s->over = true;
    } else {
        t->replications = o->min_replications << s->looks++;
        search_look(o, (const double *const *)s->values, t->replications,
                    /* Bonferroni over every look at every rate that could be tried: stopping as
                     * soon as a look decides would else find a difference where there is none. */
                    (1.0 - o->confidence_frac) / (SEARCH_MAX_TESTS * SEARCH_LOOKS), t);
    }
    t->req_per_min = stats_mean(s->rates, t->replications, STATS_LEVEL_FRAC).mean;
    if (!s->over && (t->outcome != SEARCH_UNDECIDED || s->looks == SEARCH_LOOKS)) {
        narrow(s->result, &s->known);
        begin_rate(s, next_rate(&s->known, o->precision_frac));
    }
}

void search_take_runs(struct search *s, const struct compare_result *r)
{
    struct search_ask ask;
    if (!search_next(s, &ask) || r->n_failures > 0) {
        search_take(s, r->n_failures > 0 ? r->failures[0].message : NULL);
        return;
    }
    uint32_t n_slos = s->options->n_slos;
    for (uint32_t i = 0; i < n_slos; i++) {
        memcpy(s->values[i] + ask.from, compare_values(r, 0, s->options->slos[i].metric),
               (ask.to - ask.from) * sizeof(double));
    }
    const double *verdict = compare_values(r, 0, "backlog.verdict");
    const double *arrived = compare_values(r, 0, "all.arrived");
    const double *window = compare_values(r, 0, "arrival_window_s");
    for (uint32_t k = ask.from; k < ask.to; k++) {
        /* n arrivals span n - 1 gaps. */
        s->rates[k] = (arrived[k - ask.from] - 1.0) / window[k - ask.from] * 60.0;
        /* An overloaded run meets any limit on those few that it served in time; that it is
         * overloaded is a limit of its own. */
        s->values[n_slos][k] = verdict[k - ask.from] >= (double)METRICS_OVERLOADED ? 1.0 : 0.0;
    }
    s->result->extrapolated = compare_extrapolated(r, 0);
    search_take(s, NULL);
}

void search_close(struct search *s)
{
    for (uint32_t i = 0; i <= s->options->n_slos; i++) {
        free(s->values[i]);
    }
    free(s->rates);
    *s = (struct search){0};
}
