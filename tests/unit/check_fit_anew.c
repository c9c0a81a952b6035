/* History matching worked out again: emulators by Gaussian elimination, implausibilities, findings
 * over the same samples. Simulated values are made up. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/scope.h"
#include "tests/helpers/madefit.h"
#include "tests/helpers/suite.h"

#define POINTS MADEFIT_POINTS
#define CHECKS MADEFIT_CHECKS
#define SAMPLES 8000
#define TERMS 5 /* 1, and a line and a curve of two parameters */

/* ---- the emulator ---- */

/* Solves a x = b by elimination with pivots, in place, and sets *log_det of a. */
static void eliminate(double *a, double *b, size_t n, double *log_det)
{
    *log_det = 0.0;
    for (size_t c = 0; c < n; c++) {
        size_t p = c;
        for (size_t r = c; r < n; r++) {
            p = fabs(a[r * n + c]) > fabs(a[p * n + c]) ? r : p;
        }
        for (size_t k = 0; k < n; k++) {
            double t = a[c * n + k];
            a[c * n + k] = a[p * n + k];
            a[p * n + k] = t;
        }
        double t = b[c];
        b[c] = b[p];
        b[p] = t;
        *log_det += log(fabs(a[c * n + c]));
        for (size_t r = c + 1; r < n; r++) {
            double f = a[r * n + c] / a[c * n + c];
            for (size_t k = c; k < n; k++) {
                a[r * n + k] -= f * a[c * n + k];
            }
            b[r] -= f * b[c];
        }
    }
    for (size_t c = n; c-- > 0;) {
        for (size_t k = c + 1; k < n; k++) {
            b[c] -= a[c * n + k] * b[k];
        }
        b[c] /= a[c * n + c];
    }
}

static void terms_of(const double *u, double *t)
{
    double x = u[0] - 0.5;
    double y = u[1] - 0.5;
    const double v[TERMS] = {1.0, x, x * x, y, y * y};
    memcpy(t, v, sizeof v);
}

static double covariance(const double *a, const double *b, double length)
{
    double d = (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]);
    return exp(-d / (2.0 * length * length));
}

struct again {
    double trend[TERMS], weights[POINTS], length, low, high, error;
};

/* The ridge of GSL is the square of its lambda: 0.01. */
static void trend_again(struct again *o, const double *y, double *left)
{
    double a[TERMS * TERMS] = {0.0};
    double ignored;
    memset(o->trend, 0, sizeof o->trend);
    for (uint32_t i = 0; i < POINTS; i++) {
        double t[TERMS];
        terms_of(madefit.points[i].u, t);
        for (uint32_t k = 0; k < TERMS; k++) {
            o->trend[k] += t[k] * y[i];
            for (uint32_t l = 0; l < TERMS; l++) {
                a[k * TERMS + l] += t[k] * t[l];
            }
        }
    }
    for (uint32_t k = 0; k < TERMS; k++) {
        a[k * TERMS + k] += 0.1 * 0.1;
    }
    eliminate(a, o->trend, TERMS, &ignored);
    for (uint32_t i = 0; i < POINTS; i++) {
        double t[TERMS];
        terms_of(madefit.points[i].u, t);
        left[i] = y[i];
        for (uint32_t k = 0; k < TERMS; k++) {
            left[i] -= o->trend[k] * t[k];
        }
    }
}

/* The likeliest of all lengths and nuggets, and the errors of points left out one by one. */
static void process_again(struct again *o, const double *left)
{
    static const double lengths[] = {0.4, 0.7, 1.2, 2.0};
    static const double nuggets[] = {0.01, 0.05, 0.2, 0.5, 1.0};
    double best = -(double)INFINITY;
    for (int l = 0; l < 4; l++) {
        for (int r = 0; r < 5; r++) {
            double k[POINTS * POINTS];
            double w[POINTS];
            double log_det;
            for (uint32_t i = 0; i < POINTS * POINTS; i++) {
                k[i] = covariance(madefit.points[i / POINTS].u, madefit.points[i % POINTS].u,
                                  lengths[l]) +
                       (i / POINTS == i % POINTS ? nuggets[r] : 0.0);
            }
            memcpy(w, left, sizeof w);
            eliminate(k, w, POINTS, &log_det);
            double s2 = 0.0;
            for (uint32_t i = 0; i < POINTS; i++) {
                s2 += left[i] * w[i] / POINTS;
            }
            double likelihood = -0.5 * (POINTS * log(s2) + log_det);
            if (likelihood <= best) {
                continue;
            }
            best = likelihood;
            o->length = lengths[l];
            memcpy(o->weights, w, sizeof w);
            o->error = 0.0;
            for (uint32_t out = 0; out < POINTS; out++) { /* predicted by the others */
                double a[(POINTS - 1) * (POINTS - 1)];
                double b[POINTS - 1];
                double predicted = 0.0;
                for (uint32_t i = 0; i < POINTS - 1; i++) {
                    const double *u = madefit.points[i < out ? i : i + 1].u;
                    for (uint32_t j = 0; j < POINTS - 1; j++) {
                        a[i * (POINTS - 1) + j] =
                            covariance(u, madefit.points[j < out ? j : j + 1].u, lengths[l]) +
                            (i == j ? nuggets[r] : 0.0);
                    }
                    b[i] = left[i < out ? i : i + 1];
                }
                eliminate(a, b, POINTS - 1, &log_det);
                for (uint32_t i = 0; i < POINTS - 1; i++) {
                    predicted +=
                        b[i] * covariance(madefit.points[out].u,
                                          madefit.points[i < out ? i : i + 1].u, lengths[l]);
                }
                o->error += (left[out] - predicted) * (left[out] - predicted) / POINTS;
            }
            o->error = sqrt(o->error);
        }
    }
}

static struct again output_again(uint32_t check, bool spread)
{
    struct again o = {.low = (double)INFINITY, .high = -(double)INFINITY};
    double y[POINTS];
    double left[POINTS];
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < POINTS; i++) {
        double sd = madefit.points[i].sd[check];
        y[i] = spread ? log(sd > 1e-6 ? sd : 1e-6) : madefit.points[i].mean[check];
        if (!isnan(y[i])) {
            sum += y[i];
            n++;
            o.low = y[i] < o.low ? y[i] : o.low;
            o.high = y[i] > o.high ? y[i] : o.high;
        }
    }
    for (uint32_t i = 0; i < POINTS; i++) {
        y[i] = isnan(y[i]) ? sum / n : y[i];
    }
    trend_again(&o, y, left);
    process_again(&o, left);
    return o;
}

static double predicted(const struct again *o, const double *u)
{
    double t[TERMS];
    double y = 0.0;
    terms_of(u, t);
    for (uint32_t k = 0; k < TERMS; k++) {
        y += o->trend[k] * t[k];
    }
    for (uint32_t i = 0; i < POINTS; i++) {
        y += o->weights[i] * covariance(u, madefit.points[i].u, o->length);
    }
    double least = o->low - (o->high - o->low);
    double most = o->high + (o->high - o->low);
    return y < least ? least : y > most ? most : y;
}

START_TEST(an_emulator_is_what_elimination_gives)
{
    madefit.emulator = fit_emulator_new(&madefit);
    for (uint32_t check = 0; check < CHECKS; check++) {
        struct again value = output_again(check, false);
        struct again spread = output_again(check, true);
        if (check != 3) { /* no spread at all leaves nothing to be likely */
            ck_assert_double_eq_tol(fit_emulator_error(madefit.emulator)[check], value.error, 1e-8);
        }
        for (uint32_t i = 0; i < 60; i++) {
            double u[FIT_MAX_PARAMETERS] = {fmod(0.137 * i, 1.0), fmod(0.071 * i, 1.0)};
            double mean[CHECKS];
            double sd[CHECKS];
            fit_emulator_at(madefit.emulator, u, mean, sd);
            ck_assert_double_eq_tol(mean[check], predicted(&value, u), 1e-7);
            if (check != 3) {
                ck_assert_double_eq_tol(log(sd[check]), predicted(&spread, u), 1e-7);
            } else {
                ck_assert_double_eq_tol(sd[check], 1e-6, 1e-12);
            }
        }
    }
    /* far outside no more than the range of what was seen beyond it */
    const double away[FIT_MAX_PARAMETERS] = {40.0, -30.0};
    double mean[CHECKS];
    double sd[CHECKS];
    struct again value = output_again(0, false);
    fit_emulator_at(madefit.emulator, away, mean, sd);
    ck_assert_double_eq_tol(mean[0], predicted(&value, away), 1e-9);
}
END_TEST

/* ---- implausibility ---- */

static double far_again(const struct claim_check *k, double mean, double sd, double error)
{
    double single = sqrt(sd * sd / 9.0 + error * error); /* of the mean of 9 traces */
    if (isnan(mean)) {
        return 10.0;
    }
    if (k->kind == CHECK_ABOVE || k->kind == CHECK_BELOW) {
        double over = k->kind == CHECK_ABOVE ? mean - k->low : k->low - mean;
        double unit = single > 0.05 * k->low + 1e-12 ? single : 0.05 * k->low + 1e-12;
        return 2.0 - over / unit > 0.0 ? 2.0 - over / unit : 0.0;
    }
    double middle = (k->low + k->high) / 2.0;
    double model = 0.05 * fabs(middle - (isnan(k->neutral) ? 0.0 : k->neutral));
    double miss = mean < k->low ? k->low - mean : mean > k->high ? mean - k->high : 0.0;
    double far = miss / sqrt(sd * sd + error * error + model * model);
    if (!isnan(k->neutral)) {
        double side = middle > k->neutral ? mean - k->neutral : k->neutral - mean;
        double doubt = 2.0 - side / sqrt(single * single + 1e-24);
        far = doubt > far ? doubt : far;
    }
    return far;
}

/* Distances are computed by hand. A's number at 2 with sd 0.3 and error 0.1 misses 3 by 1. That is
 * over sqrt(0.09 + 0.01 + (0.05 x 2.5)^2) = 0.34004, which is 2.9408. The mean is 1 above the
 * neutral value, over sqrt(0.01 + 0.01) = 0.14142, so 2 - 7.07 is no more. A's bound at 5.2 is kept
 * by 0.2, over the model's 0.25: 2 - 0.8 = 1.2. B's 2 at 2.3 misses 0.3, over sqrt(0.01 + 0.01) =
 * 2.1213. C's bound at 1.6 is missed by 0.1 over 0.075: 3.3333. */
START_TEST(implausibility_is_a_distance_in_single_traces)
{
    const double mean[CHECKS] = {2.0, 5.2, 2.3, 1.6};
    const double sd[CHECKS] = {0.3, 0.3, 0.1, 0.0};
    const double error[CHECKS] = {0.1, 0.1, 0.0, 0.0};
    double far[3];
    fit_implausibility(&madefit, mean, sd, error, far);
    ck_assert_double_eq_tol(far[0], 1.0 / sqrt(0.1 + 0.125 * 0.125), 1e-12);
    ck_assert_double_eq_tol(far[1], 0.3 / sqrt(0.02), 1e-12);
    ck_assert_double_eq_tol(far[2], 2.0 + 0.1 / 0.075, 1e-9);
    ck_assert_double_eq_tol(far_again(&madefit_claims[0].checks[1], 5.2, 0.3, 0.1), 1.2, 1e-9);
    for (int i = 0; i < 400; i++) {
        double at[CHECKS];
        double worst = 0.0;
        for (uint32_t k = 0; k < CHECKS; k++) {
            at[k] = fmod(0.37 * i + 1.7 * k, 8.0) - 1.0;
        }
        fit_implausibility(&madefit, at, sd, error, far);
        for (uint32_t k = 0; k < CHECKS; k++) {
            double own = far_again(madefit.checks[k].check, at[k], sd[k], error[k]);
            worst = k == 1 && worst > own ? worst : own;
            if (k > 0) {
                ck_assert_double_eq_tol(far[k - 1], worst, 1e-9);
            }
        }
    }
}
END_TEST

/* Distances of a simulated point: its mean is half its own, half the emulators', whose spreads
 * count. */
static void point_again(const struct fit_point *p, double *far)
{
    double mean[CHECKS];
    double sd[CHECKS];
    fit_emulator_at(madefit.emulator, p->u, mean, sd);
    double of[CHECKS];
    for (uint32_t k = 0; k < CHECKS; k++) {
        of[k] = far_again(madefit.checks[k].check, (mean[k] + p->mean[k]) / 2.0, sd[k], 0.0);
    }
    far[0] = of[0] > of[1] ? of[0] : of[1];
    far[1] = of[2];
    far[2] = of[3];
}

START_TEST(points_are_ranked_by_claims_that_may_hold)
{
    double far[3];
    fit_point_implausibility(&madefit, &madefit.points[3], far); /* no emulator: its own values */
    ck_assert_double_eq_tol(far[1],
                            far_again(&madefit_claims[1].checks[0], madefit.points[3].mean[2],
                                      madefit.points[3].sd[2], 0.0),
                            1e-12);
    fit_point_implausibility(&madefit, &madefit.points[4], far);
    ck_assert_double_eq(far[1], 10.0); /* what is not defined is far from holding */
    madefit.emulator = fit_emulator_new(&madefit);
    double sum[POINTS] = {0.0};
    for (uint32_t i = 0; i < POINTS; i++) {
        double again[3];
        point_again(&madefit.points[i], again);
        fit_point_implausibility(&madefit, &madefit.points[i], far);
        for (int c = 0; c < 3; c++) {
            ck_assert_double_eq_tol(far[c], again[c], 1e-9);
            sum[i] += again[c] <= 2.0 ? 1.0 - again[c] / 20.0 : 0.0;
        }
    }
    uint32_t best[FIT_CONFIRMED];
    ck_assert_uint_eq(fit_best_points(&madefit, best), FIT_CONFIRMED);
    for (int i = 0; i < FIT_CONFIRMED; i++) {
        uint32_t ahead = 0;
        for (uint32_t k = 0; k < POINTS; k++) {
            ahead += sum[k] > sum[best[i]] || (sum[k] == sum[best[i]] && k < best[i]);
        }
        ck_assert_uint_eq(ahead, (uint32_t)i);
    }
    madefit.n_points = 5;
    ck_assert_uint_eq(fit_best_points(&madefit, best), 5);
    madefit.n_points = POINTS;
}
END_TEST

/* ---- findings ---- */

struct seen {
    double u[2];
    bool possible[3], likely[3];
};

static struct seen seen_from(const double *u, const double *far)
{
    struct seen s = {.u = {u[0], u[1]}};
    for (int c = 0; c < 3; c++) {
        s.possible[c] = far[c] <= 3.0;
        s.likely[c] = far[c] <= 2.0;
    }
    return s;
}

static bool all_possible(const struct seen *s, uint32_t set)
{
    return ((set & 1u) == 0 || s->possible[0]) && ((set & 2u) == 0 || s->possible[1]) &&
           ((set & 4u) == 0 || s->possible[2]);
}

static struct seen *samples_again(void)
{
    struct seen *s = xcalloc(SAMPLES + POINTS, sizeof *s);
    struct rng r;
    rng_init(&r, rng_key(7, RNG_FIT, UINT32_MAX, 0));
    for (uint32_t i = 0; i < SAMPLES + POINTS; i++) {
        double mean[CHECKS];
        double sd[CHECKS];
        double far[3];
        double u[FIT_MAX_PARAMETERS] = {0.0};
        if (i < SAMPLES) {
            u[0] = rng_uniform(&r);
            u[1] = rng_uniform(&r);
            fit_emulator_at(madefit.emulator, u, mean, sd);
            fit_implausibility(&madefit, mean, sd, fit_emulator_error(madefit.emulator), far);
        } else {
            memcpy(u, madefit.points[i - SAMPLES].u, sizeof u);
            point_again(&madefit.points[i - SAMPLES], far);
        }
        s[i] = seen_from(u, far);
    }
    return s;
}

static double settled_again(const struct seen *s, int claim, int parameter)
{
    double between = 0.0;
    double p = 0.0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        p += s[i].likely[claim] / (double)SAMPLES;
    }
    for (int bin = 0; bin < 5; bin++) {
        double n = 0.0;
        double held = 0.0;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            if (s[i].u[parameter] >= bin / 5.0 && s[i].u[parameter] < (bin + 1) / 5.0) {
                n += 1.0;
                held += s[i].likely[claim];
            }
        }
        between += n / SAMPLES * (held / n - p) * (held / n - p);
    }
    return between / (p * (1.0 - p));
}

START_TEST(findings_are_shares_and_ranges_of_the_samples)
{
    static struct fit_findings g;
    madefit.emulator = fit_emulator_new(&madefit);
    madefit.witness = (struct fit_witness){.u = {0.25, 0.5}, .holds = 5, .compatible = 2};
    ck_assert_int_eq(fit_conclude(&madefit, &g), 0);
    OWNED struct seen *s = samples_again();
    ck_assert_uint_eq(g.best.holds, 5);
    ck_assert_uint_eq(madefit.witness.holds, 0);
    for (uint32_t row = 0; row < 4; row++) { /* each claim, then the best set: A and C */
        uint32_t set = row < 3 ? 1u << row : 5u;
        double low[2] = {1.0, 1.0};
        double high[2] = {0.0, 0.0};
        uint32_t left = 0;
        for (uint32_t i = 0; i < SAMPLES + POINTS; i++) {
            if (all_possible(&s[i], set)) {
                left += i < SAMPLES;
                for (int k = 0; k < 2; k++) {
                    low[k] = fmin(low[k], s[i].u[k]);
                    high[k] = fmax(high[k], s[i].u[k]);
                }
            }
        }
        ck_assert_uint_gt(left, 0);
        ck_assert_double_eq(g.left_frac[row], left / (double)SAMPLES);
        for (int k = 0; k < 2; k++) {
            ck_assert_double_eq(g.low[row][k], low[k]);
            ck_assert_double_eq(g.high[row][k], high[k]);
        }
    }
    for (int a = 0; a < 3; a++) {
        uint32_t plausible = 0;
        for (uint32_t i = SAMPLES; i < SAMPLES + POINTS; i++) {
            plausible += s[i].likely[a];
        }
        ck_assert_uint_eq(g.plausible[a], plausible);
        for (int b = 0; b < 3; b++) {
            uint32_t n = 0;
            for (uint32_t i = 0; i < SAMPLES; i++) {
                n += s[i].likely[a] && s[i].likely[b];
            }
            ck_assert_double_eq(g.together_frac[a][b], n / (double)SAMPLES);
        }
        for (int k = 0; k < 2; k++) {
            ck_assert_double_gt(g.settles_frac[a][k], 0.0);
            ck_assert_double_eq_tol(g.settles_frac[a][k], settled_again(s, a, k), 1e-9);
        }
    }
}
END_TEST

/* Five claims on one number, which a sample may have within 0.3 of it. A claim that no sample has
 * is a set of its own. No larger set that contains a listed one is listed, and one that shares a
 * claim with it is. */
START_TEST(conflicts_are_the_smallest_sets_that_no_sample_has)
{
    static struct claim own[5];
    static struct fit_check checks[5];
    static struct fit_findings g;
    memset(own, 0, sizeof own);
    for (uint32_t i = 0; i < 5; i++) {
        static const char *const ids[] = {"P", "Q", "R", "S", "T"};
        static const double at[] = {0.5, 0.9, 9.0, 0.1, 0.95};
        own[i].id = ids[i];
        own[i].n_checks = 1;
        own[i].checks[0] = (struct claim_check){
            .kind = CHECK_NUMBER, .low = at[i], .high = at[i], .neutral = (double)NAN};
        checks[i] = (struct fit_check){i, &own[i].checks[0]};
    }
    struct fit alone = madefit;
    alone.claims.v = own;
    alone.claims.n = 5;
    alone.checks = checks;
    alone.n_checks = 5;
    alone.n_points = 0;
    alone.points = NULL;
    for (uint32_t i = 0; i < POINTS; i++) {
        struct fit_point *p = fit_point_add(&alone, madefit.points[i].u);
        for (int k = 0; k < 5; k++) { /* all five see the first parameter itself */
            p->mean[k] = p->u[0];
            p->sd[k] = 0.1;
        }
    }
    alone.emulator = fit_emulator_new(&alone);
    ck_assert_int_eq(fit_conclude(&alone, &g), 0);
    /* 0.5 and 0.9 have 0.7, two of the 0.1 away; so have 0.5 and 0.1. 0.1 and 0.9 are 0.8 apart,
     * above twice 0.3; 9 is nowhere. P, Q and S together would need Q and S. T is with S as Q is.
     */
    ck_assert_uint_eq(g.n_conflicts, 3);
    ck_assert_uint_eq(g.conflicts[0], 4u);
    ck_assert_uint_eq(g.conflicts[1], 2u | 8u);
    ck_assert_uint_eq(g.conflicts[2], 8u | 16u);
    ck_assert_uint_eq(g.plausible[2], 0);
    ck_assert_double_gt(g.low[2][0], g.high[2][0]); /* nothing is left */
    ck_assert_double_eq(g.left_frac[2], 0.0);
    ck_assert_double_eq(g.settles_frac[2][0], 0.0);
    for (uint32_t i = 0; i < POINTS; i++) {
        free(alone.points[i].mean);
        free(alone.points[i].sd);
    }
    free(alone.points);
    fit_emulator_free(alone.emulator);
}
END_TEST
static const struct suite_row suite[] = {
    CASE("fit anew", .setup = madefit_setup, .teardown = madefit_teardown, .timeout_s = 60),
    TEST(an_emulator_is_what_elimination_gives),
    TEST(implausibility_is_a_distance_in_single_traces),
    TEST(points_are_ranked_by_claims_that_may_hold),
    TEST(findings_are_shares_and_ranges_of_the_samples),
    TEST(conflicts_are_the_smallest_sets_that_no_sample_has),
};
SUITE_MAIN("fit anew", suite)
