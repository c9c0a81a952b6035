#include "experiments/drive/against.h"

#include <math.h>

#include "sim/base/quantile.h"
#include "sim/base/rng.h"

double against_value(const struct request_time *t, enum against_metric m)
{
    return m == AGAINST_TTFT ? t->ttft_s : m == AGAINST_TPOT ? t->tpot_s : t->e2e_s;
}

double against_mape(const struct request_times *x, const struct request_times *y,
                    enum against_metric m)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        double a = against_value(&x->v[i], m);
        double b = against_value(&y->v[i], m);
        if (x->v[i].finished && y->v[i].finished && isfinite(a) && b > 0.0) {
            sum += fabs(a / b - 1.0);
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

double against_mean(const struct request_times *t, enum against_metric m, enum request_class cls)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        double v = against_value(&t->v[i], m);
        if (t->v[i].finished && isfinite(v) && (cls == REQUEST_CLASS_COUNT || t->v[i].cls == cls)) {
            sum += v;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* ---- order of policies ---- */

double against_real_mean(const struct against_policy *p, enum against_metric m,
                         enum request_class cls)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        double v = against_mean(&p->real[k].times, m, cls);
        if (isfinite(v)) {
            sum += v;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* Whether the ranges that two policies had over their repeats overlap. */
static bool within_noise(const struct against_policy *a, const struct against_policy *b,
                         enum against_metric m, enum request_class cls)
{
    double low[2] = {HUGE_VAL, HUGE_VAL};
    double high[2] = {-HUGE_VAL, -HUGE_VAL};
    const struct against_policy *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < both[i]->n_real; k++) {
            double v = against_mean(&both[i]->real[k].times, m, cls);
            low[i] = fmin(low[i], v);
            high[i] = fmax(high[i], v);
        }
    }
    return !(low[0] > high[1] || low[1] > high[0]);
}

/* Tau of two lists over the pairs that are not tied. */
static double tau_of(const struct against *a, const double *x, const double *y,
                     enum against_metric m, enum request_class cls, struct against_tau *counts)
{
    int32_t agree = 0;
    uint32_t n = 0;
    counts->pairs = 0;
    counts->tied = 0;
    for (uint32_t i = 0; i < a->n_policies; i++) {
        for (uint32_t j = 0; j < i; j++) {
            double dx = x[i] - x[j];
            double dy = y[i] - y[j];
            if (!isfinite(dx) || !isfinite(dy)) {
                continue;
            }
            counts->pairs++;
            if (within_noise(&a->policies[i], &a->policies[j], m, cls)) {
                counts->tied++;
                continue;
            }
            agree += dx * dy > 0.0 ? 1 : dx * dy < 0.0 ? -1 : 0;
            n++;
        }
    }
    return n > 0 ? agree / (double)n : (double)NAN;
}

/* ---- intervals: repeats drawn with replacement, each policy's for itself ---- */

#define DRAWS 1000

static double redrawn_mean(const struct against_policy *p, enum against_metric m,
                           enum request_class cls, struct rng *r)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        double v = against_mean(&p->real[rng_below(r, p->n_real)].times, m, cls);
        if (isfinite(v)) {
            sum += v;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* Draws: tau of redrawn reality against `other`, or against a second draw of itself where that is
 * NULL. */
static void take_interval(const struct against *a, const double *other, enum against_metric m,
                          enum request_class cls, struct against_tau *t)
{
    struct rng r;
    struct sample draws;
    struct against_tau unused;
    rng_init(&r, rng_key(1, RNG_BOOTSTRAP, m, cls));
    sample_init(&draws, false);
    for (int i = 0; i < DRAWS; i++) {
        double x[AGAINST_MAX_POLICIES];
        double y[AGAINST_MAX_POLICIES];
        for (uint32_t k = 0; k < a->n_policies; k++) {
            x[k] = redrawn_mean(&a->policies[k], m, cls, &r);
            y[k] = other != NULL ? other[k] : redrawn_mean(&a->policies[k], m, cls, &r);
        }
        double tau = tau_of(a, x, y, m, cls, &unused);
        if (!isnan(tau)) {
            sample_add(&draws, tau);
        }
    }
    t->low = sample_quantile(&draws, 0.025);
    t->high = sample_quantile(&draws, 0.975);
    if (other == NULL) {
        t->tau = sample_mean(&draws);
    }
    sample_fini(&draws);
}

struct against_tau against_tau(const struct against *a, uint32_t model, enum against_metric m,
                               enum request_class cls)
{
    struct against_tau out = {(double)NAN, (double)NAN, (double)NAN, 0, 0};
    double real[AGAINST_MAX_POLICIES];
    double simulated[AGAINST_MAX_POLICIES];
    for (uint32_t i = 0; i < a->n_policies; i++) {
        simulated[i] = against_mean(&a->policies[i].simulated[model], m, cls);
        real[i] = against_real_mean(&a->policies[i], m, cls);
    }
    out.tau = tau_of(a, real, simulated, m, cls, &out);
    take_interval(a, simulated, m, cls, &out);
    return out;
}

struct against_tau against_tau_real(const struct against *a, enum against_metric m,
                                    enum request_class cls)
{
    struct against_tau out = {(double)NAN, (double)NAN, (double)NAN, 0, 0};
    double real[AGAINST_MAX_POLICIES];
    for (uint32_t i = 0; i < a->n_policies; i++) {
        real[i] = against_real_mean(&a->policies[i], m, cls);
    }
    (void)tau_of(a, real, real, m, cls, &out);
    if (a->repeats > 1) {
        take_interval(a, NULL, m, cls, &out);
    }
    return out;
}

void against_fini(struct against *a)
{
    for (uint32_t i = 0; i < a->n_policies; i++) {
        struct against_policy *p = &a->policies[i];
        for (uint32_t k = 0; k < p->n_real; k++) {
            real_run_fini(&p->real[k]);
        }
        for (uint32_t m = 0; m < a->n_models; m++) {
            request_times_fini(&p->simulated[m]);
        }
    }
}
