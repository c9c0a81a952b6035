/* All findings of runs on drawn machines are computed a second time by the formulas of
 * uncertainty.h. There are three policies, of which the second is the baseline, in a metric that is
 * to be low and one that is to be high. Two of 70 machines could not run. Runs depend on three
 * factors, on their requests and on chance. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/compare/uncertainty_impl.h"
#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

enum { M = 70, P = 3, K = 2, F = 4, R = 5, REPEATS = UNCERTAINTY_REPEATS, BASE = 1 };

static struct config config;
static struct config_options options;
static double values[M * REPEATS * P * K], nominal_values[P * K * R], drawn[M * F], z[M * F];
static const char *const metrics[K] = {"reactive.e2e_s.mean", "all.throughput_req_per_min"};
static const struct machine_number number = {.name = "n", .offset = 2.0};
static struct config_policy policies[P] = {{.label = "a"}, {.label = "b"}, {.label = "c"}};
static const struct compare_plan plan = {.config = &config,
                                         .options = &options,
                                         .policies = policies,
                                         .n_policies = P,
                                         .baseline = BASE,
                                         .relevance_frac = 0.1,
                                         .replications = R};

static double *at(uint32_t machine, uint32_t repeat, uint32_t policy, uint32_t metric)
{
    return &values[((machine * REPEATS + repeat) * P + policy) * K + metric];
}

static double nominal(uint32_t policy, uint32_t metric, uint32_t replication)
{
    return nominal_values[(policy * K + metric) * R + replication];
}

/* Repeats take the replications in turn. */
static uint32_t replication(uint32_t machine, uint32_t repeat)
{
    return (2 * machine + repeat) % R;
}

static bool failed(uint32_t machine)
{
    return machine == 3 || machine == 41;
}

static void make(struct machines *m)
{
    *m = (struct machines){.n_factors = F, .n_draws = M, .value = drawn, .z = z};
    for (uint32_t k = 0; k < F; k++) {
        m->factor[k] = (struct machine_factor){.path = "p",
                                               .unit = k == 2 ? "W" : "GB/s",
                                               .kind = k == 1 ? MACHINE_FIT : MACHINE_RANGE,
                                               .number = &number};
    }
    struct rng r;
    rng_init(&r, rng_key(11, RNG_TEST, 0, 0));
    for (uint32_t i = 0; i < P * K * R; i++) {
        nominal_values[i] = 30.0 + 2.0 * rng_normal(&r);
    }
    for (uint32_t i = 0; i < M; i++) {
        double *x = &z[i * F];
        for (uint32_t k = 0; k < F; k++) {
            x[k] = rng_normal(&r);
            drawn[i * F + k] = exp(x[k]) - number.offset; /* the fit's score is x */
        }
        for (uint32_t j = 0; j < REPEATS; j++) {
            for (uint32_t p = 0; p < P; p++) {
                for (uint32_t k = 0; k < K; k++) {
                    double machine = p == 0   ? 3.0 * x[0] + 1.5 * x[1] * x[1] - 1.0
                                     : p == 2 ? 2.0 * x[1] - x[3] + 0.5
                                              : 0.0;
                    *at(i, j, p, k) =
                        failed(i) ? (double)NAN
                                  : machine + nominal(p, k, replication(i, j)) + rng_normal(&r);
                }
            }
        }
    }
}

static double mean_of(const double *x, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum / n;
}

static double variance_of(const double *x, uint32_t n)
{
    double mean = mean_of(x, n);
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }
    return sum / (n - 1);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, uint32_t n, double q)
{
    double place = q * (n - 1);
    uint32_t below = (uint32_t)place;
    double part = place - below;
    return part > 0.0 ? sorted[below] + part * (sorted[below + 1] - sorted[below]) : sorted[below];
}

/* y on 1, x and x^2 by Gram and Schmidt: what it gives at each x, and R^2 for three numbers. */
static double fitted(const double *x, const double *y, uint32_t n, double *fit)
{
    double line[M];
    double curve[M];
    double mx = mean_of(x, n);
    double my = mean_of(y, n);
    double xx = 0.0, xq = 0.0, xy = 0.0, qq = 0.0, qy = 0.0, q = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        line[i] = x[i] - mx;
        xx += line[i] * line[i];
        xq += line[i] * x[i] * x[i];
        xy += line[i] * y[i];
        q += x[i] * x[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        curve[i] = x[i] * x[i] - q - line[i] * xq / xx;
        qq += curve[i] * curve[i];
        qy += curve[i] * y[i];
    }
    double left = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        fit[i] = my + line[i] * xy / xx + curve[i] * qy / qq;
        left += (y[i] - fit[i]) * (y[i] - fit[i]);
    }
    return fmax(0.0, 1.0 - left / (n - 3) / variance_of(y, n));
}

static void is(double got, double want)
{
    ck_assert_double_eq_tol(got, want, 1e-8 * fmax(1.0, fabs(want)));
}

/* The shares of machines' differences m, of which `kept` is not noise. */
static void shares_are(const struct uncertainty_pair *p, const double *m, const uint32_t *machine,
                       uint32_t n, double kept)
{
    double y[M];
    double x[M];
    double fit[M];
    uint32_t below = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lower = 0;
        for (uint32_t j = 0; j < n; j++) {
            lower += m[j] < m[i];
        }
        below += m[i] < 0.0;
        y[i] = gsl_cdf_ugaussian_Pinv((lower + 0.5) / n);
    }
    double zero = gsl_cdf_ugaussian_Pinv((double)below / n);
    uint32_t seen = 0;
    for (uint32_t k = 0; k < F; k++) {
        for (uint32_t i = 0; i < n; i++) {
            x[i] = z[machine[i] * F + k];
        }
        double share = fmin(1.0, fitted(x, y, n, fit) / kept);
        if (share == 0.0 || k == 2) { /* watts bear on neither metric */
            continue;
        }
        const struct uncertainty_share *s = p->top;
        while (s < p->top + p->n_top && s->factor != k) {
            s++;
        }
        ck_assert(s < p->top + p->n_top);
        is(s->share, share);
        ck_assert(s == p->top || s[-1].share >= share);
        ck_assert(0.0 <= s->low && s->low < s->high && s->high <= 1.0 && s->low <= share &&
                  share <= s->high);
        double sd = sqrt(variance_of(y, n) * (1.0 - share));
        double wrong = 0.0;
        for (uint32_t i = 0; i < n; i++) {
            double lower = gsl_cdf_ugaussian_P((zero - fit[i]) / sd);
            wrong += fmin(lower, 1.0 - lower) / n;
        }
        is(s->wrong_after, wrong);
        seen++;
    }
    ck_assert_uint_eq(p->n_top, seen);
    ck_assert_uint_ge(seen, 1);
}

/* Differences of machines without the noise of their two runs, and the model's share of the
 * variance, between means and between runs. */
struct model {
    double m[M], sorted[M], kept, of_runs;
};

static struct model model_of(double run[][REPEATS], const uint32_t *pick, uint32_t n)
{
    struct model x;
    double off[M];
    for (uint32_t i = 0; i < n; i++) {
        const double *d = run[pick[i]];
        off[i] = fabs(d[1] - d[0]) / 2.0; /* each run from the mean of both */
        x.sorted[i] = x.m[i] = mean_of(d, REPEATS);
    }
    qsort(off, n, sizeof *off, ascending);
    qsort(x.sorted, n, sizeof *x.sorted, ascending);
    /* Half of normal numbers are within 0.6745 deviations, four fifths within 1.2816. The runs are
     * as often apart as their mean: half the variance of a run. */
    double within = 2.0 * pow(quantile(off, n, 0.5) / 0.67448975019608174, 2.0);
    double all = pow(
        (quantile(x.sorted, n, 0.9) - quantile(x.sorted, n, 0.1)) / 2.0 / 1.2815515655446004, 2.0);
    double model = fmax(0.0, all - within / 2.0);
    x.of_runs = model / (model + within);
    x.kept = model / all;
    double middle = quantile(x.sorted, n, 0.5);
    for (uint32_t i = 0; i < n; i++) {
        x.m[i] = middle + sqrt(x.kept + (1.0 - x.kept) * acos(0.0) / n) * (x.m[i] - middle);
        x.sorted[i] = x.m[i];
    }
    return x;
}

static double better_of(const struct model *x, uint32_t n, bool gain)
{
    uint32_t better = 0;
    for (uint32_t i = 0; i < n; i++) {
        better += (gain ? -x->m[i] : x->m[i]) < 0.0;
    }
    return (double)better / n;
}

/* The deviation of the share over 200 choices of machines, with replacement. */
static double deviation(double run[][REPEATS], uint32_t n, uint32_t metric)
{
    double share[200];
    struct rng r;
    rng_init(&r, rng_key(options.seed, RNG_BOOTSTRAP, 0, 18));
    for (int b = 0; b < 200; b++) {
        uint32_t pick[M];
        for (uint32_t i = 0; i < n; i++) {
            pick[i] = rng_below(&r, n);
        }
        struct model x = model_of(run, pick, n);
        share[b] = better_of(&x, n, metric == 1);
    }
    return sqrt(variance_of(share, 200));
}

static void pair_is(const struct uncertainty_pair *p, uint32_t policy, uint32_t metric)
{
    ck_assert_uint_eq(p->policy, policy);
    ck_assert_uint_eq(p->metric, metric);
    ck_assert_int_eq(p->gain, metric == 1);
    double trace[R];
    for (uint32_t r = 0; r < R; r++) {
        trace[r] = nominal(policy, metric, r) - nominal(BASE, metric, r);
    }
    double mean = mean_of(trace, R);
    double half = gsl_cdf_tdist_Pinv(0.975, R - 1) * sqrt(variance_of(trace, R) / R);
    is(p->nominal, mean);
    is(p->sampling_low, mean - half);
    is(p->sampling_high, mean + half);
    /* The coefficient of the requests, of both runs of a machine: that with the smallest absolute
     * errors, which is one of the ratios. */
    double run[M][REPEATS], dx[M], dy[M], beta = 0.0, least = (double)INFINITY;
    for (uint32_t i = 0; i < M; i++) {
        for (uint32_t j = 0; j < REPEATS; j++) {
            run[i][j] = *at(i, j, policy, metric) - *at(i, j, BASE, metric);
        }
        dx[i] = trace[replication(i, 1)] - trace[replication(i, 0)];
        dy[i] = run[i][1] - run[i][0];
    }
    for (uint32_t c = 0; c < M; c++) {
        double errors = 0.0;
        for (uint32_t i = 0; i < M; i++) {
            errors += failed(i) ? 0.0 : fabs(dy[i] - dy[c] / dx[c] * dx[i]);
        }
        if (!failed(c) && errors < least) {
            least = errors;
            beta = dy[c] / dx[c];
        }
    }
    double kept_run[M][REPEATS];
    uint32_t machine[M], each[M], n = 0;
    for (uint32_t i = 0; i < M; i++) {
        if (failed(i)) {
            continue;
        }
        for (uint32_t j = 0; j < REPEATS; j++) {
            kept_run[n][j] = run[i][j] - beta * (trace[replication(i, j)] - mean);
        }
        each[n] = n;
        machine[n++] = i;
    }
    struct model x = model_of(kept_run, each, n);
    ck_assert(x.kept > 0.2);
    is(p->model_var_frac, x.of_runs);
    uint32_t not_worse = 0;
    for (uint32_t i = 0; i < n; i++) {
        double base = (*at(machine[i], 0, BASE, metric) + *at(machine[i], 1, BASE, metric)) / 2.0;
        not_worse += (metric == 1 ? -x.m[i] : x.m[i]) <= 0.1 * base;
    }
    double frac = better_of(&x, n, metric == 1);
    is(p->better_frac, frac);
    is(p->not_worse_frac, (double)not_worse / n);
    is(p->se, fmax(sqrt(frac * (1.0 - frac) / n), deviation(kept_run, n, metric)));
    qsort(x.sorted, n, sizeof *x.sorted, ascending);
    is(p->model_low, quantile(x.sorted, n, 0.025));
    is(p->model_high, quantile(x.sorted, n, 0.975));
    shares_are(p, x.m, machine, n, x.kept);
}

/* The range is of the means of a policy's two runs, on the machines on which nothing failed. */
static void means_are(struct uncertainty_range range, uint32_t p, uint32_t k)
{
    double x[M];
    uint32_t n = 0;
    for (uint32_t i = 0; i < M; i++) {
        if (!failed(i)) {
            x[n++] = (*at(i, 0, p, k) + *at(i, 1, p, k)) / 2.0;
        }
    }
    for (uint32_t i = 1; i < n; i++) { /* insertion */
        for (uint32_t j = i; j > 0 && x[j] < x[j - 1]; j--) {
            double t = x[j];
            x[j] = x[j - 1];
            x[j - 1] = t;
        }
    }
    is(range.low, quantile(x, n, 0.025));
    is(range.high, quantile(x, n, 0.975));
}

static struct metric names[K] = {{.name = "reactive.e2e_s.mean"},
                                 {.name = "all.throughput_req_per_min"}};
static struct compare_result result = {
    .n_policies = P, .replications = R, .n_metrics = K, .names = names, .values = nominal_values};

static struct uncertainty study(void)
{
    options = config_options_default();
    struct uncertainty u = {.plan = &plan,
                            .nominal = &result,
                            .metrics = metrics,
                            .n_metrics = K,
                            .n_policies = P,
                            .value = values};
    make(&u.machines);
    return u;
}

static void drop(struct uncertainty *u)
{
    free(u->pairs);
    free(u->best_frac);
}

START_TEST(every_number_is_that_of_its_formula)
{
    struct uncertainty u = study();
    uncertainty_analyse(&u);
    ck_assert_uint_eq(u.n_pairs, (P - 1) * K);
    for (uint32_t i = 0; i < u.n_pairs; i++) {
        pair_is(&u.pairs[i], i < K ? 0 : 2, i % K);
    }
    for (uint32_t k = 0; k < K; k++) {
        uint32_t best[P] = {0};
        for (uint32_t i = 0; i < M; i++) {
            uint32_t first = 0;
            for (uint32_t p = 1; p < P && !failed(i); p++) {
                double more =
                    *at(i, 0, p, k) + *at(i, 1, p, k) - *at(i, 0, first, k) - *at(i, 1, first, k);
                first = (k == 0 ? more < 0.0 : more > 0.0) ? p : first;
            }
            best[first] += !failed(i);
        }
        for (uint32_t p = 0; p < P; p++) {
            is(u.best_frac[k * P + p], best[p] / (M - 2.0));
            means_are(u.means[k * P + p], p, k);
        }
    }
    drop(&u);
}
END_TEST

/* Differences of machines are normal with a mean of -1 and a deviation of 1, so that 84 % are
 * better, and two runs of a machine have noise of 3. The share of 70 such machines varies by some
 * 0.12, three times what it would without noise. */
START_TEST(the_error_of_a_share_is_that_of_other_machines)
{
    enum { STUDIES = 40, N = STUDIES * (P - 1) * K };
    double share[N];
    double se = 0.0;
    uint32_t n = 0;
    struct uncertainty u = study();
    struct rng r;
    rng_init(&r, rng_key(12, RNG_TEST, 0, 0));
    for (uint32_t i = 0; i < P * K * R; i++) {
        nominal_values[i] = 30.0;
    }
    for (uint32_t s = 0; s < STUDIES; s++) {
        for (uint32_t i = 0; i < M * P * K; i++) {
            uint32_t p = i / K % P;
            double machine = p == BASE ? 0.0 : (i % K == 0 ? -1.0 : 1.0) + rng_normal(&r);
            for (uint32_t j = 0; j < REPEATS; j++) {
                *at(i / K / P, j, p, i % K) = machine + (p == BASE ? 0.0 : 3.0 * rng_normal(&r));
            }
        }
        uncertainty_analyse(&u);
        for (uint32_t k = 0; k < u.n_pairs; k++) {
            share[n++] = u.pairs[k].better_frac;
            se += u.pairs[k].se / N;
        }
        drop(&u);
        u.n_pairs = 0;
    }
    ck_assert_uint_eq(n, N);
    printf("note: shares vary by %.3f, stated %.3f\n", sqrt(variance_of(share, N)), se);
    ck_assert_double_eq_tol(sqrt(variance_of(share, N)), se, 0.2 * se);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("analysis"),
    TEST(every_number_is_that_of_its_formula),
    TEST(the_error_of_a_share_is_that_of_other_machines),
};
SUITE_MAIN("uncertainty worked out anew", rows)
