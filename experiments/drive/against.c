#include "experiments/drive/against.h"

#include <math.h>

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

/* Means of one policy's repeats; skip: a repeat to leave out, or n_real. */
static double real_mean(const struct against_policy *p, enum against_metric m,
                        enum request_class cls, uint32_t skip)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        double v = against_mean(&p->real[k].times, m, cls);
        if (k != skip && isfinite(v)) {
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

static void take_range(struct against_tau *t, double tau)
{
    t->low = isnan(t->low) ? tau : fmin(t->low, tau);
    t->high = isnan(t->high) ? tau : fmax(t->high, tau);
}

struct against_tau against_tau(const struct against *a, uint32_t model, enum against_metric m,
                               enum request_class cls)
{
    struct against_tau out = {(double)NAN, (double)NAN, (double)NAN, 0, 0};
    struct against_tau unused;
    double real[AGAINST_MAX_POLICIES];
    double simulated[AGAINST_MAX_POLICIES];
    for (uint32_t i = 0; i < a->n_policies; i++) {
        simulated[i] = against_mean(&a->policies[i].simulated[model], m, cls);
        real[i] = real_mean(&a->policies[i], m, cls, UINT32_MAX);
    }
    out.tau = tau_of(a, real, simulated, m, cls, &out);
    for (uint32_t k = 0; k < a->repeats; k++) {
        for (uint32_t i = 0; i < a->n_policies; i++) {
            const struct against_policy *p = &a->policies[i];
            real[i] = k < p->n_real ? against_mean(&p->real[k].times, m, cls) : (double)NAN;
        }
        take_range(&out, tau_of(a, real, simulated, m, cls, &unused));
    }
    return out;
}

struct against_tau against_tau_real(const struct against *a, enum against_metric m,
                                    enum request_class cls)
{
    struct against_tau out = {(double)NAN, (double)NAN, (double)NAN, 0, 0};
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < a->repeats && a->repeats > 1; k++) {
        double one[AGAINST_MAX_POLICIES];
        double others[AGAINST_MAX_POLICIES];
        for (uint32_t i = 0; i < a->n_policies; i++) {
            const struct against_policy *p = &a->policies[i];
            one[i] = k < p->n_real ? against_mean(&p->real[k].times, m, cls) : (double)NAN;
            others[i] = real_mean(p, m, cls, k);
        }
        double tau = tau_of(a, one, others, m, cls, &out);
        if (!isnan(tau)) {
            take_range(&out, tau);
            sum += tau;
            n++;
        }
    }
    out.tau = n > 0 ? sum / n : (double)NAN;
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
