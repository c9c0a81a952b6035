#include "experiments/drive/against.h"

#include "sim/base/quantile.h"
#include "sim/base/rng.h"

static double value_of(const struct request_time *t, enum against_metric m)
{
    SIM_ASSERT(!t->finished || (t->ttft_s >= 0.0 && t->e2e_s >= t->ttft_s && !(t->tpot_s < 0.0)));
    return m == AGAINST_TTFT ? t->ttft_s : m == AGAINST_TPOT ? t->tpot_s : t->e2e_s;
}

double against_mape(const struct request_times *x, const struct request_times *y,
                    enum against_metric m)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        double a = value_of(&x->v[i], m);
        double b = value_of(&y->v[i], m);
        /* Requests that finished in only one of the runs have no pair of times. */
        if (x->v[i].finished && y->v[i].finished && isfinite(a) && b > 0.0) {
            sum += fabs(a / b - 1.0);
            n++;
        }
    }
    /* Both runs have one trace, or x was not run (mape_at_speed in against_print.c). */
    SIM_ASSERT((x->n == y->n || x->v == NULL) && n <= x->n && isfinite(sum));
    return n > 0 ? sum / n : (double)NAN;
}

/* Mean error of request i over the repeats in which it finished; NaN: none. */
static double request_error(const struct request_times *x, const struct against_policy *p, size_t i,
                            enum against_metric m)
{
    double sum = 0.0;
    uint32_t n = 0;
    SIM_ASSERT(i < x->n && p->n_real <= AGAINST_MAX_REPEATS);
    for (uint32_t k = 0; k < p->n_real && x->v[i].finished; k++) {
        SIM_ASSERT(i < p->real[k].times.n);
        const struct request_time *y = &p->real[k].times.v[i];
        double error = fabs(value_of(&x->v[i], m) / value_of(y, m) - 1.0);
        if (y->finished && isfinite(error)) {
            sum += error;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

#define DRAWS 1000

struct against_error against_error(const struct request_times *x, const struct against_policy *p,
                                   enum against_metric m)
{
    struct against_error out = {p->n_real > 0 ? 0.0 : (double)NAN, (double)NAN, (double)NAN};
    SCOPED(sample_fini) struct sample draws;
    struct rng r;
    OWNED double *errors = xcalloc(x->n + 1, sizeof *errors);
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        out.mean += against_mape(x, &p->real[k].times, m) / p->n_real;
    }
    for (size_t i = 0; i < x->n; i++) {
        double error = request_error(x, p, i, m);
        SIM_ASSERT(isnan(error) || error >= 0.0);
        errors[n] = error;
        n += isfinite(error) ? 1 : 0;
    }
    rng_init(&r, rng_key(1, RNG_BOOTSTRAP, m, REQUEST_CLASS_COUNT));
    sample_init(&draws, false);
    for (int i = 0; i < DRAWS && n > 0; i++) {
        double sum = 0.0;
        for (uint32_t k = 0; k < n; k++) {
            sum += errors[rng_below(&r, n)];
        }
        sample_add(&draws, sum / n);
    }
    if (n > 0) {
        out.low = sample_quantile(&draws, 0.025);
        out.high = sample_quantile(&draws, 0.975);
        SIM_ASSERT(out.low >= 0.0 && out.low <= out.high);
    }
    return out;
}

double against_mape_of_means(const struct request_times *x, const struct against_policy *p,
                             enum against_metric m)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        double real = 0.0;
        uint32_t repeats = 0;
        SIM_ASSERT(p->n_real == 0 || p->real[0].times.n == x->n);
        for (uint32_t k = 0; k < p->n_real; k++) {
            const struct request_time *t = &p->real[k].times.v[i];
            double v = value_of(t, m);
            if (t->finished && isfinite(v)) {
                real += v;
                repeats++;
            }
        }
        double a = value_of(&x->v[i], m);
        SIM_ASSERT(repeats <= p->n_real && (repeats > 0 || real == 0.0));
        if (x->v[i].finished && isfinite(a) && real > 0.0) {
            sum += fabs(a * repeats / real - 1.0);
            n++;
        }
    }
    SIM_ASSERT(isfinite(sum) && n <= x->n); /* requests that no repeat finished are left out */
    return n > 0 ? sum / n : (double)NAN;
}

double against_mean(const struct request_times *t, enum against_metric m, enum request_class cls)
{
    double sum = 0.0;
    uint32_t n = 0;
    SIM_ASSERT((int)m < AGAINST_METRICS && (int)cls <= REQUEST_CLASS_COUNT);
    for (size_t i = 0; i < t->n; i++) {
        double v = value_of(&t->v[i], m);
        if (t->v[i].finished && isfinite(v) && (cls == REQUEST_CLASS_COUNT || t->v[i].cls == cls)) {
            sum += v;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* ---- order of policies ---- */

/* Mean over repeats of a policy, and the least and greatest mean of one repeat. */
struct seen {
    double mean, low, high;
};

/* r NULL: takes each repeat once; otherwise draws as many with replacement. */
static struct seen see(const struct against_policy *p, enum against_metric m,
                       enum request_class cls, struct rng *r)
{
    struct seen out = {0.0, HUGE_VAL, -HUGE_VAL};
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_real; k++) {
        /* Draws whole repeats, because requests of one run share the machine's state and are not
         * independent. */
        uint32_t of = r != NULL ? rng_below(r, p->n_real) : k;
        double v = against_mean(&p->real[of].times, m, cls);
        if (isfinite(v)) {
            out.mean += v;
            out.low = fmin(out.low, v);
            out.high = fmax(out.high, v);
            n++;
        }
    }
    out.mean = n > 0 ? out.mean / n : (double)NAN;
    SIM_ASSERT(n == 0 ||
               (out.low <= out.mean * (1.0 + 1e-12) && out.mean <= out.high * (1.0 + 1e-12)));
    return out;
}

double against_real_mean(const struct against_policy *p, enum against_metric m,
                         enum request_class cls)
{
    return see(p, m, cls, NULL).mean;
}

/* Kendall's tau between the real means x and other values y of n policies. Pairs with overlapping
 * real ranges are tied. */
static double tau_of(const struct seen *x, const double *y, uint32_t n, struct against_tau *counts)
{
    int32_t agree = 0;
    uint32_t used = 0;
    counts->pairs = 0;
    counts->tied = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            double dx = x[i].mean - x[j].mean;
            double dy = y[i] - y[j];
            if (!isfinite(dx) || !isfinite(dy)) {
                continue;
            }
            counts->pairs++;
            /* The real runs do not order these two, so a simulation cannot get their order
             * wrong. */
            if (x[i].low <= x[j].high && x[j].low <= x[i].high) {
                counts->tied++;
                continue;
            }
            agree += dx * dy > 0.0 ? 1 : dx * dy < 0.0 ? -1 : 0;
            used++;
        }
    }
    SIM_ASSERT(counts->pairs == counts->tied + used && counts->pairs <= n * (n - 1) / 2);
    SIM_ASSERT((uint32_t)abs(agree) <= used); /* so tau is from -1 to 1 */
    return used > 0 ? agree / (double)used : (double)NAN;
}

/* Bootstrap interval of tau between resampled real runs and `other`; NULL: a second resample. Each
 * draw has its own ties. */
static void take_interval(const struct against *a, const double *other, enum against_metric m,
                          enum request_class cls, struct against_tau *t)
{
    struct rng r;
    SCOPED(sample_fini) struct sample draws;
    struct against_tau unused;
    SIM_ASSERT(a->n_policies <= AGAINST_MAX_POLICIES);
    /* The key is fixed, so the same runs give the same interval. */
    rng_init(&r, rng_key(1, RNG_BOOTSTRAP, m, cls));
    sample_init(&draws, false);
    for (int i = 0; i < DRAWS; i++) {
        struct seen x[AGAINST_MAX_POLICIES];
        double y[AGAINST_MAX_POLICIES];
        for (uint32_t k = 0; k < a->n_policies; k++) {
            x[k] = see(&a->policies[k], m, cls, &r);
            y[k] = other != NULL ? other[k] : see(&a->policies[k], m, cls, &r).mean;
        }
        double tau = tau_of(x, y, a->n_policies, &unused);
        if (!isnan(tau)) {
            sample_add(&draws, tau);
        }
    }
    t->low = sample_quantile(&draws, 0.025);
    t->high = sample_quantile(&draws, 0.975);
    /* Without other values, tau is the mean over the draws. */
    t->tau = other != NULL ? t->tau : sample_mean(&draws);
    SIM_ASSERT(!(t->low > t->high) && !(t->low < -1.0) && !(t->high > 1.0));
}

static struct against_tau tau_against(const struct against *a, const double *other,
                                      enum against_metric m, enum request_class cls)
{
    struct against_tau out = {(double)NAN, (double)NAN, (double)NAN, 0, 0};
    struct seen real[AGAINST_MAX_POLICIES];
    double means[AGAINST_MAX_POLICIES];
    for (uint32_t i = 0; i < a->n_policies; i++) {
        real[i] = see(&a->policies[i], m, cls, NULL);
        means[i] = real[i].mean;
    }
    double tau = tau_of(real, other != NULL ? other : means, a->n_policies, &out);
    if (other != NULL) {
        out.tau = tau;
    }
    /* A resample of one repeat is that repeat, so its interval would have no width. */
    if (a->repeats > 1) {
        take_interval(a, other, m, cls, &out);
    }
    SIM_ASSERT(!(fabs(out.tau) > 1.0) && out.tied <= out.pairs);
    return out;
}

struct against_tau against_tau(const struct against *a, uint32_t model, enum against_metric m,
                               enum request_class cls)
{
    double simulated[AGAINST_MAX_POLICIES];
    SIM_ASSERT(model < a->n_models && a->n_models <= AGAINST_MAX_MODELS);
    for (uint32_t i = 0; i < a->n_policies; i++) {
        simulated[i] = against_mean(&a->policies[i].simulated[model], m, cls);
    }
    return tau_against(a, simulated, m, cls);
}

struct against_tau against_tau_real(const struct against *a, enum against_metric m,
                                    enum request_class cls)
{
    return tau_against(a, NULL, m, cls);
}
