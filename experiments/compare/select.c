/* Sequential ranking and selection; select_run.c runs it on policies. */
#include "experiments/compare/select.h"

#include <gsl/gsl_cdf.h>

struct selecting {
    const struct select_options *o;
    struct select_result *out;
    double beta; /* error probability of a pair */
};

static double h_squared(double beta, uint32_t r)
{
    return (pow(2.0 * beta, -2.0 / (r - 1.0)) - 1.0) * (r - 1.0);
}

/* Statistics of a pair over those of the first r replications that have both values. */
struct pair {
    double ahead, s2; /* mean advantage of l over i; variance */
    uint32_t n;
};

static struct pair pair_of(const struct selecting *s, uint32_t l, uint32_t i, uint32_t r)
{
    const double *x = s->out->of[l].values;
    const double *y = s->out->of[i].values;
    struct pair p = {.n = 0};
    double sum = 0.0;
    for (uint32_t k = 0; k < r; k++) { /* Welford 1962 */
        double d = s->o->gain ? x[k] - y[k] : y[k] - x[k];
        if (!isnan(d)) {
            double from = d - p.ahead;
            p.ahead += from / ++p.n;
            sum += from * (d - p.ahead);
        }
    }
    p.s2 = p.n > 1 ? sum / (p.n - 1.0) : 0.0;
    return p;
}

/* Whether i is behind a remaining alternative. If two are equal, the later one is behind. */
static bool is_behind(const struct selecting *s, const bool *left, uint32_t i, uint32_t r)
{
    const double delta = s->out->delta;
    for (uint32_t l = 0; l < s->out->k; l++) {
        if (l == i || !left[l]) {
            continue;
        }
        struct pair p = pair_of(s, l, i, r);
        if (p.n < 2) {
            continue;
        }
        double n = p.n;
        double w =
            fmax(0.0, delta / (2.0 * n) * (h_squared(s->beta, p.n) * p.s2 / (delta * delta) - n));
        bool tie = !(w > 0.0) && !(p.ahead > 0.0) && !(p.ahead < 0.0) && l < i;
        if (p.ahead > w || tie) {
            return true;
        }
    }
    return false;
}

/* Alternatives that remain before a test are compared with each other. Returns how many remain
 * after it. */
static uint32_t screen(const struct selecting *s, const bool *before)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->out->k; i++) {
        struct select_one *x = &s->out->of[i];
        x->left = before[i] && !is_behind(s, before, i, s->out->replications);
        n += x->left ? 1 : 0;
    }
    return n;
}

/* Runs replications up to `to` of the remaining ones. Drops those without values. */
static void extend(const struct selecting *s, bool *left, uint32_t to, select_measure *measure,
                   void *ctx)
{
    struct select_result *out = s->out;
    OWNED double **values = xcalloc(out->k + 1, sizeof *values);
    for (uint32_t i = 0; i < out->k; i++) {
        left[i] = out->of[i].left;
        if (left[i]) {
            out->of[i].values = xrealloc(out->of[i].values, to * sizeof *out->of[i].values);
        }
        values[i] = out->of[i].values;
    }
    measure(ctx, left, out->replications, to, values);
    for (uint32_t i = 0; i < out->k; i++) {
        struct select_one *x = &out->of[i];
        if (left[i]) {
            out->runs += to - out->replications;
            x->n = to;
            for (uint32_t k = out->replications; k < to; k++) {
                x->failed = x->failed || isinf(x->values[k]);
            }
            left[i] = x->left = !x->failed;
        }
    }
    out->replications = to;
}

static void find_best(const struct selecting *s)
{
    struct select_result *out = s->out;
    out->best = out->k;
    for (uint32_t i = 0; i < out->k; i++) {
        if (out->of[i].left &&
            (out->best == out->k || pair_of(s, i, out->best, out->replications).ahead > 0.0)) {
            out->best = i;
        }
    }
}

static uint64_t equal_runs(const struct selecting *s)
{
    const struct select_result *out = s->out;
    double n = s->o->first;
    for (uint32_t i = 0; i < out->k && out->best < out->k; i++) {
        if (i != out->best && !out->of[i].failed) {
            double s2 = pair_of(s, out->best, i, out->of[i].n).s2;
            double z = gsl_cdf_ugaussian_Qinv(s->beta) / s->out->delta;
            n = fmax(n, ceil(z * z * s2));
        }
    }
    return (uint64_t)fmin(n, out->replications) * out->k;
}

static double delta_of(const struct selecting *s)
{
    const struct select_result *out = s->out;
    double mean = s->o->base < out->k ? select_mean(out, s->o->base) : (double)NAN;
    for (uint32_t i = 0; i < out->k && isnan(mean); i++) {
        mean = select_mean(out, i);
    }
    /* 0 if the mean is 0; then any difference counts. */
    double delta = fabs(mean) * s->o->delta_frac;
    return delta > 0.0 || isnan(delta) ? delta : 1e-300;
}

void select_by(const struct select_options *o, uint32_t k, select_measure *measure, void *ctx,
               struct select_result *out)
{
    *out = (struct select_result){.k = k, .gain = o->gain};
    out->of = xkept(xcalloc(k + 1, sizeof *out->of));
    struct selecting s = {o, out, k > 1 ? (1.0 - o->confidence_frac) / (k - 1.0) : 1.0};
    OWNED bool *left = xcalloc(k + 1, sizeof *left);
    SIM_REQUIRE((o->delta > 0.0 || o->delta_frac > 0.0) && o->first >= SELECT_FIRST_MIN,
                "a selection without a zone");
    for (uint32_t i = 0; i < k; i++) {
        out->of[i].left = true;
    }
    uint32_t n = k;
    for (uint32_t to = o->first; n > 0; to += 1 + to / 10) {
        to = to < o->most ? to : o->most;
        extend(&s, left, to, measure, ctx);
        out->delta = o->delta > 0.0 ? o->delta : out->delta > 0.0 ? out->delta : delta_of(&s);
        n = screen(&s, left);
        if (n <= 1 || to == o->most || isnan(out->delta)) {
            break;
        }
    }
    out->decided = n == 1;
    find_best(&s);
    out->equal_runs = equal_runs(&s);
}

double select_mean(const struct select_result *r, uint32_t i)
{
    const struct select_one *x = &r->of[i];
    return x->failed ? (double)NAN : stats_mean(x->values, x->n, STATS_LEVEL_FRAC).mean;
}
