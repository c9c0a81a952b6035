/* History matching worked out again: emulators by Gaussian elimination, implausibilities, findings
 * over the same samples, the printed document by hand, and points of the first wave. Simulated
 * values are made up. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/claims/fit.h"
#include "sim/base/json.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

#define POINTS 12
#define CHECKS 4
#define SAMPLES 8000
#define TERMS 5 /* 1, and a line and a curve of two parameters */

static struct fit fit;
static struct fit_options options;
static struct claim claims[3];
static struct setup nothing;
static struct err err;
static char state_path[64];

/* Two parameters, three claims: A has a number about a neutral value and a bound from below, B a
 * number, C a bound from above. What a point shows is a smooth function of it with a little
 * waviness. */
static void make_claims(void)
{
    memset(claims, 0, sizeof claims);
    claims[0].id = "A";
    claims[1].id = "B";
    claims[2].id = "C";
    claims[0].n_checks = 2;
    claims[1].n_checks = claims[2].n_checks = 1;
    claims[0].checks[0] =
        (struct claim_check){.kind = CHECK_NUMBER, .low = 3.0, .high = 4.0, .neutral = 1.0};
    claims[0].checks[1] =
        (struct claim_check){.kind = CHECK_ABOVE, .low = 5.0, .high = 5.0, .neutral = (double)NAN};
    claims[1].checks[0] =
        (struct claim_check){.kind = CHECK_NUMBER, .low = 2.0, .high = 2.0, .neutral = (double)NAN};
    claims[2].checks[0] =
        (struct claim_check){.kind = CHECK_BELOW, .low = 1.5, .high = 1.5, .neutral = (double)NAN};
}

static void setup(void)
{
    static const uint32_t of[CHECKS] = {0, 0, 1, 2};
    static const uint32_t at[CHECKS] = {0, 1, 0, 0};
    err = (struct err)ERR_INIT;
    nothing = (struct setup){.set = {.n = 0}};
    (void)snprintf(state_path, sizeof state_path, "fit-anew-%ld.tmp.json", (long)getpid());
    make_claims();
    options = (struct fit_options){
        .run = {.replications = 3, .seed = 7}, .confirm = 9, .fixed = &nothing, .quiet = true};
    fit = (struct fit){.o = &options, .e = &err, .claims = {.v = claims, .n = 3}};
    fit.parameters.n = 2;
    fit.parameters.v[0] = (struct fit_parameter){
        .name = "width", .unit = "B", .what = "w", .measure = "a rod", .low = 10.0, .high = 20.0};
    fit.parameters.v[1] = (struct fit_parameter){.name = "rate",
                                                 .unit = "1/s",
                                                 .what = "r",
                                                 .measure = "a clock",
                                                 .low = 1.0,
                                                 .high = 100.0,
                                                 .log_scale = true};
    fit.parameters.v[0].changes.set = (struct setup_texts){.v = {"a={x}!"}, .n = 1};
    fit.parameters.v[1].changes.set = (struct setup_texts){.v = {"b={x}", "fixed"}, .n = 2};
    fit.n_checks = CHECKS;
    fit.checks = xcalloc(CHECKS, sizeof *fit.checks);
    for (uint32_t k = 0; k < CHECKS; k++) {
        fit.checks[k] = (struct fit_check){of[k], &claims[of[k]].checks[at[k]]};
    }
    for (uint32_t i = 0; i < POINTS; i++) {
        double u[FIT_MAX_PARAMETERS] = {fmod(0.31 + 0.618034 * i, 1.0),
                                        fmod(0.17 + 0.754878 * i, 1.0)};
        struct fit_point *p = fit_point_add(&fit, u);
        p->mean[0] = 1.0 + 4.0 * u[0] + sin(9.0 * u[1]);
        p->mean[1] = 3.0 + 5.0 * u[1] * u[1];
        p->mean[2] = i == 4 ? (double)NAN : 4.0 * u[0] * u[1];
        p->mean[3] = 2.0 * (u[0] - 0.3) * (u[0] - 0.3) + cos(7.0 * u[0] * u[1]);
        for (uint32_t k = 0; k < CHECKS; k++) {
            p->sd[k] = k == 3 ? 0.0 : 0.1 + 0.3 * u[k % 2] + 0.02 * k;
        }
    }
}

static void teardown(void)
{
    for (uint32_t i = 0; i < fit.n_points; i++) {
        free(fit.points[i].mean);
        free(fit.points[i].sd);
    }
    free(fit.points);
    free(fit.checks);
    fit_emulator_free(fit.emulator);
    err_fini(&err);
    (void)remove(state_path);
}

/* ---- the emulator ---- */

/* Solves a x = b by elimination with pivots, in place; *log_det of a. */
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
        terms_of(fit.points[i].u, t);
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
        terms_of(fit.points[i].u, t);
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
                k[i] = covariance(fit.points[i / POINTS].u, fit.points[i % POINTS].u, lengths[l]) +
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
                    const double *u = fit.points[i < out ? i : i + 1].u;
                    for (uint32_t j = 0; j < POINTS - 1; j++) {
                        a[i * (POINTS - 1) + j] =
                            covariance(u, fit.points[j < out ? j : j + 1].u, lengths[l]) +
                            (i == j ? nuggets[r] : 0.0);
                    }
                    b[i] = left[i < out ? i : i + 1];
                }
                eliminate(a, b, POINTS - 1, &log_det);
                for (uint32_t i = 0; i < POINTS - 1; i++) {
                    predicted += b[i] * covariance(fit.points[out].u,
                                                   fit.points[i < out ? i : i + 1].u, lengths[l]);
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
        double sd = fit.points[i].sd[check];
        y[i] = spread ? log(sd > 1e-6 ? sd : 1e-6) : fit.points[i].mean[check];
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
        y += o->weights[i] * covariance(u, fit.points[i].u, o->length);
    }
    double least = o->low - (o->high - o->low);
    double most = o->high + (o->high - o->low);
    return y < least ? least : y > most ? most : y;
}

START_TEST(an_emulator_is_what_elimination_gives)
{
    fit.emulator = fit_emulator_new(&fit);
    for (uint32_t check = 0; check < CHECKS; check++) {
        struct again value = output_again(check, false);
        struct again spread = output_again(check, true);
        if (check != 3) { /* no spread at all leaves nothing to be likely */
            ck_assert_double_eq_tol(fit_emulator_error(fit.emulator)[check], value.error, 1e-8);
        }
        for (uint32_t i = 0; i < 60; i++) {
            double u[FIT_MAX_PARAMETERS] = {fmod(0.137 * i, 1.0), fmod(0.071 * i, 1.0)};
            double mean[CHECKS];
            double sd[CHECKS];
            fit_emulator_at(fit.emulator, u, mean, sd);
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
    fit_emulator_at(fit.emulator, away, mean, sd);
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

/* By hand: A's number at 2 with sd 0.3 and error 0.1 misses 3 by 1, of sqrt(0.09 + 0.01 + (0.05
 * x 2.5)^2) = 0.34004, which is 2.9408; the mean is 1 above the neutral value, of sqrt(0.01 + 0.01)
 * = 0.14142, so 2 - 7.07 is no more. A's bound at 5.2 is kept by 0.2, of the model's 0.25: 2 - 0.8
 * = 1.2. B's 2 at 2.3 misses 0.3, of sqrt(0.01 + 0.01) = 2.1213. C's bound at 1.6 is missed by 0.1
 * of 0.075: 3.3333. */
START_TEST(implausibility_is_a_distance_in_single_traces)
{
    const double mean[CHECKS] = {2.0, 5.2, 2.3, 1.6};
    const double sd[CHECKS] = {0.3, 0.3, 0.1, 0.0};
    const double error[CHECKS] = {0.1, 0.1, 0.0, 0.0};
    double far[3];
    fit_implausibility(&fit, mean, sd, error, far);
    ck_assert_double_eq_tol(far[0], 1.0 / sqrt(0.1 + 0.125 * 0.125), 1e-12);
    ck_assert_double_eq_tol(far[1], 0.3 / sqrt(0.02), 1e-12);
    ck_assert_double_eq_tol(far[2], 2.0 + 0.1 / 0.075, 1e-9);
    ck_assert_double_eq_tol(far_again(&claims[0].checks[1], 5.2, 0.3, 0.1), 1.2, 1e-9);
    for (int i = 0; i < 400; i++) {
        double at[CHECKS];
        double worst = 0.0;
        for (uint32_t k = 0; k < CHECKS; k++) {
            at[k] = fmod(0.37 * i + 1.7 * k, 8.0) - 1.0;
        }
        fit_implausibility(&fit, at, sd, error, far);
        for (uint32_t k = 0; k < CHECKS; k++) {
            double own = far_again(fit.checks[k].check, at[k], sd[k], error[k]);
            worst = k == 1 && worst > own ? worst : own;
            if (k > 0) {
                ck_assert_double_eq_tol(far[k - 1], worst, 1e-9);
            }
        }
    }
}
END_TEST

/* Of a simulated point: half its own values, half the emulators', whose spreads count. */
static void point_again(const struct fit_point *p, double *far)
{
    double mean[CHECKS];
    double sd[CHECKS];
    fit_emulator_at(fit.emulator, p->u, mean, sd);
    double of[CHECKS];
    for (uint32_t k = 0; k < CHECKS; k++) {
        of[k] = far_again(fit.checks[k].check, (mean[k] + p->mean[k]) / 2.0, sd[k], 0.0);
    }
    far[0] = of[0] > of[1] ? of[0] : of[1];
    far[1] = of[2];
    far[2] = of[3];
}

START_TEST(points_are_ranked_by_claims_that_may_hold)
{
    double far[3];
    fit_point_implausibility(&fit, &fit.points[3], far); /* no emulator: its own values */
    ck_assert_double_eq_tol(
        far[1], far_again(&claims[1].checks[0], fit.points[3].mean[2], fit.points[3].sd[2], 0.0),
        1e-12);
    fit_point_implausibility(&fit, &fit.points[4], far);
    ck_assert_double_eq(far[1], 10.0); /* what is not defined is far from holding */
    fit.emulator = fit_emulator_new(&fit);
    double sum[POINTS] = {0.0};
    for (uint32_t i = 0; i < POINTS; i++) {
        double again[3];
        point_again(&fit.points[i], again);
        fit_point_implausibility(&fit, &fit.points[i], far);
        for (int c = 0; c < 3; c++) {
            ck_assert_double_eq_tol(far[c], again[c], 1e-9);
            sum[i] += again[c] <= 2.0 ? 1.0 - again[c] / 20.0 : 0.0;
        }
    }
    uint32_t best[FIT_CONFIRMED];
    ck_assert_uint_eq(fit_best_points(&fit, best), FIT_CONFIRMED);
    for (int i = 0; i < FIT_CONFIRMED; i++) {
        uint32_t ahead = 0;
        for (uint32_t k = 0; k < POINTS; k++) {
            ahead += sum[k] > sum[best[i]] || (sum[k] == sum[best[i]] && k < best[i]);
        }
        ck_assert_uint_eq(ahead, (uint32_t)i);
    }
    fit.n_points = 5;
    ck_assert_uint_eq(fit_best_points(&fit, best), 5);
    fit.n_points = POINTS;
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
            fit_emulator_at(fit.emulator, u, mean, sd);
            fit_implausibility(&fit, mean, sd, fit_emulator_error(fit.emulator), far);
        } else {
            memcpy(u, fit.points[i - SAMPLES].u, sizeof u);
            point_again(&fit.points[i - SAMPLES], far);
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
    struct fit_findings g;
    fit.emulator = fit_emulator_new(&fit);
    fit.witness = (struct fit_witness){.u = {0.25, 0.5}, .holds = 5, .compatible = 2};
    ck_assert_int_eq(fit_conclude(&fit, &g), 0);
    OWNED struct seen *s = samples_again();
    ck_assert_uint_eq(g.best.holds, 5);
    ck_assert_uint_eq(fit.witness.holds, 0);
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
    fit_findings_fini(&g);
}
END_TEST

/* Four claims on one number, which a sample may have within 0.3 of it. What cannot be alone is said
 * once, and no larger set that holds one that was said. */
START_TEST(conflicts_are_the_smallest_sets_that_no_sample_has)
{
    static struct claim own[4];
    static struct fit_check checks[4];
    struct fit_findings g;
    memset(own, 0, sizeof own);
    for (uint32_t i = 0; i < 4; i++) {
        static const char *const ids[] = {"P", "Q", "R", "S"};
        static const double at[] = {0.5, 0.9, 9.0, 0.1};
        own[i].id = ids[i];
        own[i].n_checks = 1;
        own[i].checks[0] = (struct claim_check){
            .kind = CHECK_NUMBER, .low = at[i], .high = at[i], .neutral = (double)NAN};
        checks[i] = (struct fit_check){i, &own[i].checks[0]};
    }
    struct fit alone = fit;
    alone.claims.v = own;
    alone.claims.n = 4;
    alone.checks = checks;
    alone.n_points = 0;
    alone.points = NULL;
    for (uint32_t i = 0; i < POINTS; i++) {
        struct fit_point *p = fit_point_add(&alone, fit.points[i].u);
        for (int k = 0; k < 4; k++) { /* all four see the first parameter itself */
            p->mean[k] = p->u[0];
            p->sd[k] = 0.1;
        }
    }
    alone.emulator = fit_emulator_new(&alone);
    ck_assert_int_eq(fit_conclude(&alone, &g), 0);
    /* 0.5 and 0.9 have 0.7, two of the 0.1 away; so have 0.5 and 0.1. 0.1 and 0.9 are 0.8 apart,
     * above twice 0.3; 9 is nowhere. P, Q and S together would need Q and S. */
    ck_assert_uint_eq(g.n_conflicts, 2);
    ck_assert_uint_eq(g.conflicts[0], 4u);
    ck_assert_uint_eq(g.conflicts[1], 2u | 8u);
    ck_assert_uint_eq(g.plausible[2], 0);
    ck_assert_double_gt(g.low[2][0], g.high[2][0]); /* nothing is left */
    ck_assert_double_eq(g.left_frac[2], 0.0);
    ck_assert_double_eq(g.settles_frac[2][0], 0.0);
    fit_findings_fini(&g);
    for (uint32_t i = 0; i < POINTS; i++) {
        free(alone.points[i].mean);
        free(alone.points[i].sd);
    }
    free(alone.points);
    fit_emulator_free(alone.emulator);
}
END_TEST

/* ---- what is printed ---- */

static const char printed[] =
    "12 points of 2 parameters, 3 traces each, 41 s of processor time\n"
    "\n"
    "Points where a claim is plausible, of those simulated: A 4 B 7 C 9\n"
    "\n"
    "The best points, each on 3 fresh traces\n"
    "    point   6: A C; compatible: B\n"
    "    point  12: B; compatible: \n"
    "\n"
    "Largest set that holds together: 2 of 3 claims (A C), judged on 9 fresh traces\n"
    "Compatible there, not decided: 1 (B)\n"
    "    width              12.5 B\n"
    "    rate               10 1/s\n"
    "\n"
    "0 claims: 0 reproduced, 0 calibrated, 0 compatible, not decided, 0 direction, 0 not "
    "reproduced, 0 not modellable\n"
    "\n"
    "Smallest sets that the emulators rule out in these ranges\n"
    "    {A, B}\n"
    "    {C}\n"
    "\n"
    "What is left of the ranges: by each claim alone, and by the set together (share of the "
    "space)\n"
    "    A         25.0 %   width 12..14 rate 3.162..10\n"
    "    B        100.0 %  \n"
    "    C         12.5 %   rate 10..100\n"
    "    together   6.2 %   width 11..19\n"
    "\n"
    "What one measurement would settle: claims' doubt that knowing a number removes, summed over "
    "claims\n"
    "    1.20  rate               a clock\n"
    "    0.60  width              a rod\n";

static void findings_by_hand(struct fit_findings *g)
{
    *g = (struct fit_findings){
        .best = {.u = {0.25, 0.5}, .holds = 5, .compatible = 2},
        .conflicts = {3, 4},
        .n_conflicts = 2,
        .left_frac = {0.25, 1.0, 0.125, 0.0625},
        .plausible = {4, 7, 9},
        .low = {{0.2, 0.25}, {0.0, 0.0}, {0.05, 0.5}, {0.1, 1.0}},
        .high = {{0.4, 0.5}, {1.0, 1.0}, {0.95, 1.0}, {0.9, 0.0}},
        .together_frac = {{0.5, 0.25, 0.125}, {0.25, 0.75, 0.0625}, {0.125, 0.0625, 0.875}},
        .settles_frac = {{0.1, 0.2}, {0.2, 0.7}, {0.3, 0.3}}};
    fit.cpu_s = 41.2;
    fit.confirmed[0] = (struct fit_confirmed){5, 5, 2};
    fit.confirmed[1] = (struct fit_confirmed){11, 2, 0};
    fit.n_confirmed = 2;
}

static void is_tree(const cJSON *tree, const char *path, const char *wanted)
{
    const cJSON *at = tree;
    OWNED char *words = xstrdup(path);
    for (char *w = strtok(words, "."); w != NULL; w = strtok(NULL, ".")) {
        at = cJSON_GetObjectItemCaseSensitive(at, w);
    }
    OWNED char *text = at != NULL ? json_text(at, false) : xstrdup("nothing");
    for (char *end = text + strlen(text); end > text && end[-1] == '\n';) {
        *--end = '\0';
    }
    ck_assert_msg(strcmp(text, wanted) == 0, "%s: %s, wanted %s", path, text, wanted);
}

START_TEST(the_document_says_the_findings)
{
    struct fit_findings g;
    findings_by_hand(&g);
    struct document *d = document_new();
    fit_document(&fit, &g, d);
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    document_put(d, "text", f);
    (void)fclose(f);
    ck_assert_msg(strcmp(text, printed) == 0, "%s", text);
    free(text);
    cJSON *tree = document_json(d);
    is_tree(tree, "points", "12");
    is_tree(tree, "traces", "3");
    is_tree(tree, "confirmed_on", "9");
    is_tree(tree, "each_on", "3");
    is_tree(tree, "seed", "7");
    is_tree(tree, "claims", "[\"A\",\"B\",\"C\"]");
    is_tree(tree, "plausible", "{\"A\":4,\"B\":7,\"C\":9}");
    is_tree(tree, "best_points",
            "[{\"point\":6,\"holds\":\"A "
            "C\",\"compatible\":\"B\"},{\"point\":12,\"holds\":\"B\",\"compatible\":\"\"}]");
    is_tree(tree, "compatible", "[\"B\"]");
    is_tree(tree, "conflicts", "[[\"A\",\"B\"],[\"C\"]]");
    is_tree(tree, "ranges.A", "{\"left_frac\":0.25,\"width\":[0.2,0.4],\"rate\":[0.25,0.5]}");
    is_tree(tree, "ranges.C", "{\"left_frac\":0.125,\"width\":[0.05,0.95],\"rate\":[0.5,1]}");
    is_tree(tree, "ranges.together", "{\"left_frac\":0.0625,\"width\":[0.1,0.9]}");
    is_tree(tree, "settles",
            "{\"A\":{\"width\":0.1,\"rate\":0.2},\"B\":{\"width\":0.2,\"rate\":0.7},\"C\":{"
            "\"width\":0.3,\"rate\":0.3}}");
    is_tree(tree, "together.B", "{\"A\":0.25,\"B\":0.75,\"C\":0.0625}");
    is_tree(tree, "parameters.rate",
            "{\"unit\":\"1/"
            "s\",\"low\":\"1\",\"high\":\"100\",\"witness\":\"10\",\"witness_at\":0.5,\"measure\":"
            "\"a clock\"}");
    is_tree(tree, "parameters.width",
            "{\"unit\":\"B\",\"low\":\"10\",\"high\":\"20\",\"witness\":\"12.5\",\"witness_at\":0."
            "25,\"measure\":\"a rod\"}");
    is_tree(tree, "profile.fitted_to", "[\"A\",\"B\",\"C\"]");
    is_tree(tree, "profile.holds", "[\"A\",\"C\"]");
    is_tree(tree, "profile.set", "[\"a=12.5!\",\"b=10\",\"fixed\"]");
    cJSON_Delete(tree);
}
END_TEST

static const char constraints[] =
    "Constraints: A B, priced without runs on a grid of 3 machines; all hold on 1\n"
    "    rate               3.162 to 31.62 1/s\n"
    "\n";
static const char excluded[] =
    "Constraints: A B, priced without runs on a grid of 3 machines; all hold on 1\n"
    "No machine in the ranges has all of them. Smallest sets that hold nowhere, on the grid or by "
    "descent from its nearest "
    "points:\n"
    "    {A, B}\n"
    "\n";

/* A made-up pool: of the second parameter alone, from 0.25 to 0.75. */
START_TEST(constraints_are_said_and_kept_to)
{
    static struct fit_priced priced[4] = {{.u = {0.9, 0.25}, .holds = 3},
                                          {.u = {0.9, 0.75}, .holds = 1},
                                          {.u = {0.9, 0.5}, .holds = 2},
                                          {.u = {0.1, 0.75}, .holds = 3}};
    static struct fit_priced pool[3] = {{.u = {0.9, 0.25}}, {.u = {0.1, 0.75}}, {.u = {0.3, 0.4}}};
    struct fit_findings g = {.n_conflicts = 0};
    options.n_under = 2;
    fit.n_points = 0;
    fit.under = (struct fit_under){.stated = {.v = claims, .n = 2},
                                   .n_claims = 2,
                                   .active = {1},
                                   .n_active = 1,
                                   .seen = priced,
                                   .n_seen = 4,
                                   .n_grid = 3,
                                   .pool = pool,
                                   .n_pool = 3};
    for (int with = 1; with >= 0; with--) {
        struct document *d = document_new();
        char *text = NULL;
        size_t n;
        FILE *f = open_memstream(&text, &n);
        fit.under.n_pool = with ? 3 : 0;
        fit.under.conflicts[0] = 3;
        fit.under.n_conflicts = 1;
        fit_document(&fit, &g, d);
        document_put(d, "text", f);
        (void)fclose(f);
        ck_assert_str_eq(text, with ? constraints : excluded);
        free(text);
        cJSON *tree = document_json(d);
        is_tree(tree, "under", "[\"A\",\"B\"]");
        is_tree(tree, "grid", "3");
        is_tree(tree, "grid_holds", "1");
        is_tree(tree, "priced", "4");
        is_tree(tree, with ? "constraints_leave" : "constraints_exclude",
                with ? "{\"rate\":[\"3.162\",\"31.62\"]}" : "[[\"A\",\"B\"]]");
        cJSON_Delete(tree);
    }
    /* A search takes the second number of a point of the pool: any, or the nearest. The first one
     * is its own. */
    fit.under.n_pool = 3;
    struct rng r;
    bool drawn[3] = {false};
    rng_init(&r, 1);
    for (int i = 0; i < 50; i++) {
        double u[FIT_MAX_PARAMETERS] = {0.6, 0.6};
        fit_under_draw(&fit, &r, u);
        int which = u[1] == 0.25 ? 0 : u[1] == 0.75 ? 1 : 2;
        drawn[which] = true;
        ck_assert(u[0] == 0.6 && u[1] == pool[which].u[1]);
    }
    ck_assert(drawn[0] && drawn[1] && drawn[2]);
    static const double from[] = {0.0, 0.32, 0.33, 0.57, 0.58, 1.0};
    static const double to[] = {0.25, 0.25, 0.4, 0.4, 0.75, 0.75};
    for (int i = 0; i < 6; i++) {
        double u[FIT_MAX_PARAMETERS] = {0.9, from[i]};
        fit_under_nearest(&fit, u);
        ck_assert(u[0] == 0.9 && u[1] == to[i]);
    }
    fit.n_points = POINTS;
}
END_TEST

/* ---- points ---- */

START_TEST(points_come_back_from_their_file)
{
    options.state = state_path;
    fit.cpu_s = 12.5;
    ck_assert_int_eq(fit_points_resume(&fit, &err), 0); /* no file yet */
    ck_assert_uint_eq(fit.n_points, POINTS);
    ck_assert_int_eq(fit_points_keep(&fit, &err), 0);
    struct fit other = fit;
    other.points = NULL;
    other.n_points = 0;
    other.cpu_s = 0.0;
    ck_assert_int_eq(fit_points_resume(&other, &err), 0);
    ck_assert_uint_eq(other.n_points, POINTS);
    ck_assert_double_eq(other.cpu_s, 12.5);
    for (uint32_t i = 0; i < POINTS; i++) {
        for (uint32_t k = 0; k < CHECKS; k++) {
            ck_assert_double_eq_tol(other.points[i].sd[k], fit.points[i].sd[k], 1e-15);
            if (isnan(fit.points[i].mean[k])) {
                ck_assert(isnan(other.points[i].mean[k]));
            } else {
                ck_assert_double_eq_tol(other.points[i].mean[k], fit.points[i].mean[k], 1e-14);
            }
        }
        ck_assert_double_eq_tol(other.points[i].u[1], fit.points[i].u[1], 1e-15);
        free(other.points[i].mean);
        free(other.points[i].sd);
    }
    free(other.points);
    /* Each of these makes it another search. */
    static const char *const under[] = {"X"};
    for (int i = 0; i < 6; i++) {
        struct fit_options o = options;
        other = fit;
        other.points = NULL;
        other.n_points = 0;
        other.o = &o;
        o.run.seed += i == 0;
        o.run.replications += i == 1;
        o.under = under;
        o.n_under = i == 2;
        other.claims.n -= i == 3;
        other.parameters.n -= i == 4;
        other.n_checks -= i == 5;
        ck_assert_int_eq(fit_points_resume(&other, &err), -EINVAL);
        ck_assert_uint_eq(other.n_points, 0);
    }
    ck_assert_uint_eq(err.n, 6);
}
END_TEST

/* Claim i under set-up s is row s n + i. */
START_TEST(claims_are_spread_over_set_ups)
{
    struct setup setups[3] = {{.set = {.v = {"a=1"}, .n = 1}},
                              {.set = {.v = {"a=2"}, .n = 1}},
                              {.set = {.v = {"a=3"}, .n = 1}}};
    for (uint32_t n = 1; n <= 3; n++) {
        struct claims c = {.v = xcalloc(2, sizeof *c.v), .n = 2};
        c.v[0].id = "A";
        c.v[1].id = "B";
        c.v[0].setup = c.v[1].setup = (struct setup){.set = {.v = {"own"}, .n = 1}};
        ck_assert_int_eq(fit_spread(&c, setups, n, &err), 0);
        ck_assert_uint_eq(c.n, 2 * n);
        for (uint32_t i = 0; i < c.n; i++) {
            ck_assert_str_eq(c.v[i].id, i % 2 == 0 ? "A" : "B");
            ck_assert_uint_eq(c.v[i].setup.set.n, 2);
            ck_assert_str_eq(c.v[i].setup.set.v[0], "own");
            ck_assert_str_eq(c.v[i].setup.set.v[1], setups[i / 2].set.v[0]);
        }
        free(c.v);
    }
    /* A quarter of the traces judge each of the best, and one more; or as many as asked for. */
    ck_assert_uint_eq(fit_confirm_each(&options), 3);
    options.confirm_each = 5;
    ck_assert_uint_eq(fit_confirm_each(&options), 5);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("fit anew", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(an_emulator_is_what_elimination_gives),
    TEST(implausibility_is_a_distance_in_single_traces),
    TEST(points_are_ranked_by_claims_that_may_hold),
    TEST(findings_are_shares_and_ranges_of_the_samples),
    TEST(conflicts_are_the_smallest_sets_that_no_sample_has),
    TEST(the_document_says_the_findings),
    TEST(constraints_are_said_and_kept_to),
    TEST(points_come_back_from_their_file),
    TEST(claims_are_spread_over_set_ups),
};
SUITE_MAIN("fit anew", suite)
