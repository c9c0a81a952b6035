/* Machines drawn from the known ranges, and what runs on them allow to say. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/uncertainty_impl.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

#define N 400

static struct config config;
static struct config_options options;
static struct machines machines;
static struct err err;
static enum config_limit draw_limited;

static void draw(const char *soc, uint32_t n)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = soc;
    options.llm = "llama-3.2-3b";
    options.seed = 7;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
    config.sim.power.limit = draw_limited;
    ck_assert_msg(machines_draw(&config, &options, n, &machines, &err) == 0, "%s",
                  err.n > 0 ? err.lines[0] : "");
}

static void teardown(void)
{
    machines_fini(&machines);
    config_fini(&config);
    err_fini(&err);
}

static uint32_t factor(const char *path)
{
    for (uint32_t k = 0; k < machines.n_factors; k++) {
        if (strcmp(machines.factor[k].path, path) == 0) {
            return k;
        }
    }
    ck_abort_msg("no factor %s", path);
    return 0;
}

static double value(uint32_t i, uint32_t k)
{
    return machines.value[(size_t)i * machines.n_factors + k];
}

/* The 125H's strength of contention is 0.3 [0.15, 0.53]: a Latin hypercube puts exactly half of the
 * draws on either side of 0.3, and a tenth of them into each tenth of the distribution. */
START_TEST(ranges_are_drawn_evenly_about_their_value)
{
    draw("core-ultra-5-125h", N);
    uint32_t k = factor("soc.ddr.queueing");
    uint32_t below = 0;
    uint32_t lowest = 0;
    for (uint32_t i = 0; i < N; i++) {
        double v = value(i, k);
        ck_assert_double_ge(v, 0.15);
        ck_assert_double_le(v, 0.53);
        below += v < 0.3;
        lowest += v < 0.15 * pow(0.3 / 0.15, 0.2); /* a fifth of the lower half */
    }
    ck_assert_uint_eq(below, N / 2);
    ck_assert_uint_eq(lowest, N / 10);
}
END_TEST

/* Numbers that a calibration fitted together are drawn together. Variances and correlations of the
 * logarithms of 400 draws are those of the file's covariance, within four standard errors
 * (variances sqrt(2/n) = 7 %, correlations 1/sqrt(n) = 0.05). */
START_TEST(fitted_parameters_are_drawn_with_their_covariance)
{
    draw("core-ultra-7-155h", N);
    const char *bad;
    const cJSON *cov =
        json_find_path(config.tree, "soc.devices.igpu.runtimes.0.fit.ln_covariance", &bad);
    uint32_t a = factor("soc.devices.igpu.runtimes.0.rate");
    uint32_t b = factor("soc.devices.igpu.runtimes.0.bandwidth");
    double x[N];
    double y[N];
    for (uint32_t i = 0; i < N; i++) {
        x[i] = log(value(i, a));
        y[i] = log(value(i, b));
    }
    double caa = cJSON_GetArrayItem(cJSON_GetArrayItem(cov, 0), 0)->valuedouble;
    double cab = cJSON_GetArrayItem(cJSON_GetArrayItem(cov, 0), 1)->valuedouble;
    double cbb = cJSON_GetArrayItem(cJSON_GetArrayItem(cov, 1), 1)->valuedouble;
    ck_assert_double_eq_tol(gsl_stats_variance(x, 1, N) / caa, 1.0, 0.28);
    ck_assert_double_eq_tol(gsl_stats_variance(y, 1, N) / cbb, 1.0, 0.28);
    ck_assert_double_eq_tol(gsl_stats_correlation(x, 1, y, 1, N), cab / sqrt(caa * cbb), 0.2);
}
END_TEST

/* Every drawn machine loads, with its numbers; the file's comes back when nothing moves. */
START_TEST(drawn_machines_load)
{
    static struct config c;
    draw("core-ultra-7-258v", 16);
    uint32_t k = factor("soc.ddr.together");
    for (uint32_t i = 0; i < 16; i++) {
        ck_assert_msg(machines_load(&machines, &options, i, 0, 0.0, &c, &err) == 0, "%s",
                      err.n > 0 ? err.lines[0] : "");
        ck_assert_double_eq_tol(c.soc.machine.ddr_cap_frac, value(i, k), 1e-9);
        config_fini(&c);
    }
    const struct machine_factor *f = &machines.factor[k];
    ck_assert_int_eq(machines_load(&machines, &options, UINT32_MAX, k, f->nominal, &c, &err), 0);
    ck_assert(c.hash == config.hash);
    config_fini(&c);
}
END_TEST

/* Budgets of the package are drawn where they limit something, behind all other numbers, which stay
 * as they were. No machine has a PL1 of the range [28, 65] above its PL2 of [64, 115]. */
START_TEST(budgets_are_drawn_where_they_limit)
{
    static struct config c;
    draw("core-ultra-5-125h", 64);
    uint32_t n = machines.n_factors;
    uint32_t k = factor("soc.ddr.queueing");
    double before = value(5, k);
    teardown();
    draw_limited = CONFIG_LIMIT_PACKAGE;
    draw("core-ultra-5-125h", 64);
    draw_limited = CONFIG_LIMIT_NONE;
    ck_assert_uint_eq(machines.n_factors, n + 3);
    ck_assert_double_eq(value(5, k), before);
    uint32_t pl1 = factor("soc.package.pl1");
    ck_assert_str_eq(machines.factor[pl1].name, "package.pl1");
    machines.value[pl1] = 65;
    machines.value[factor("soc.package.pl2")] = 64;
    for (uint32_t i = 0; i < 64; i++) {
        ck_assert_msg(machines_load(&machines, &options, i, 0, 0.0, &c, &err) == 0, "%s",
                      err.n > 0 ? err.lines[0] : "");
        ck_assert_double_eq_tol(c.soc.package_pl1_watts, i == 0 ? 64 : value(i, pl1), 1e-9);
        ck_assert_double_eq_tol(c.soc.package_tau_s, value(i, factor("soc.package.tau")), 1e-9);
        config_fini(&c);
    }
}
END_TEST

/* A residual of 1.25 in prefill slows the engine's matrix products down to 0.8 of their rate and
 * leaves decode alone. */
START_TEST(residuals_are_factors_of_time)
{
    static struct config c;
    draw("core-ultra-5-125h", 16);
    uint32_t k = factor("residual.igpu.prefill");
    ck_assert_int_eq(machines_load(&machines, &options, UINT32_MAX, k, 1.25, &c, &err), 0);
    int d = machine_find(&c.soc.machine, DEVICE_KIND_IGPU);
    ck_assert_double_eq_tol(
        c.truth.runtime[d]->many.flop_per_s / config.truth.runtime[d]->many.flop_per_s, 0.8, 1e-12);
    ck_assert_double_eq(c.truth.runtime[d]->one.bytes_per_s,
                        config.truth.runtime[d]->one.bytes_per_s);
    config_fini(&c);
}
END_TEST

static void is_scaled(const struct soc_curve *is, const struct soc_curve *was, bool rate, bool read)
{
    ck_assert_double_eq_tol(is->flop_per_s / was->flop_per_s, rate ? 0.8 : 1.0, 1e-12);
    ck_assert_double_eq_tol(is->bytes_per_s / was->bytes_per_s, read ? 0.8 : 1.0, 1e-12);
    ck_assert_double_eq(is->launch_s, was->launch_s);
}

/* Each residual is of one device and one phase. Prefill slows the rate, decode the bandwidth, and
 * both do so for kernels of one row and of many. */
START_TEST(a_residual_slows_one_phase_of_one_device)
{
    static struct config c;
    uint32_t residuals = 0;
    draw("core-ultra-5-125h", 16);
    for (uint32_t k = 0; k < machines.n_factors; k++) {
        const struct machine_factor *f = &machines.factor[k];
        if (f->kind != MACHINE_RESIDUAL) {
            continue;
        }
        residuals++;
        ck_assert_int_eq(machines_load(&machines, &options, UINT32_MAX, k, 1.25, &c, &err), 0);
        for (uint32_t d = 0; d < c.soc.machine.n_devices; d++) {
            const struct soc_runtime *is = c.truth.runtime[d];
            const struct soc_runtime *was = config.truth.runtime[d];
            bool slowed = (int)d == f->device;
            is_scaled(&is->many, &was->many, slowed && !f->decode, slowed && f->decode);
            is_scaled(&is->one, &was->one, slowed && !f->decode, slowed && f->decode);
        }
        config_fini(&c);
    }
    ck_assert_uint_ge(residuals, 4);
}
END_TEST

/* The printed ends of a residual are those of the middle 95 % of its draws. A Latin hypercube has a
 * draw in each of 400 equal parts, so that ten are outside of either end, or at it. */
START_TEST(the_ends_of_residuals_hold_the_middle_of_the_draws)
{
    draw("core-ultra-5-125h", N);
    uint32_t residuals = 0;
    const uint32_t tail = (uint32_t)lround(N * (1.0 - MACHINES_LEVEL_FRAC) / 2.0);
    ck_assert_uint_eq(tail, 10);
    for (uint32_t k = 0; k < machines.n_factors; k++) {
        const struct machine_factor *f = &machines.factor[k];
        uint32_t outside[2] = {0, 0};
        uint32_t at[2] = {0, 0};
        for (uint32_t i = 0; i < N; i++) {
            outside[0] += value(i, k) < f->low;
            outside[1] += value(i, k) > f->high;
            at[0] += value(i, k) == f->low;
            at[1] += value(i, k) == f->high;
        }
        for (int end = 0; end < 2 && f->kind == MACHINE_RESIDUAL; end++) {
            ck_assert_msg(outside[end] <= tail && outside[end] + at[end] >= tail,
                          "%s: %u outside of end %d, %u at it", f->path, outside[end], end,
                          at[end]);
            residuals++;
        }
    }
    ck_assert_uint_gt(residuals, 0);
}
END_TEST

/* A fitted number is printed with two standard deviations of its logarithm to either side, where
 * that is above 0. A normal distribution has 2.3 % beyond each. */
START_TEST(fitted_numbers_have_two_deviations_to_either_side)
{
    draw("core-ultra-7-155h", N);
    uint32_t fitted = 0;
    for (uint32_t k = 0; k < machines.n_factors; k++) {
        const struct machine_factor *f = &machines.factor[k];
        if (f->kind != MACHINE_FIT || !(f->low > 0.0)) {
            continue;
        }
        double beyond[2] = {0.0, 0.0};
        for (uint32_t i = 0; i < N; i++) {
            beyond[0] += value(i, k) < f->low ? 1.0 / N : 0.0;
            beyond[1] += value(i, k) > f->high ? 1.0 / N : 0.0;
        }
        ck_assert(fmin(beyond[0], beyond[1]) > 0.005 && fmax(beyond[0], beyond[1]) < 0.045);
        double c = f->number->offset;
        is_near((f->low + c) * (f->high + c), (f->nominal + c) * (f->nominal + c));
        fitted++;
    }
    ck_assert_uint_gt(fitted, 4);
}
END_TEST

/* y is x + x^2 / 2 + e / 2, with x and e standard normal. Var E[y|x] is 1 + 1/2, of 1 + 1/2 + 1/4
 * in all: 6/7. A factor that y does not know has 0, less than 0.02 with 400 draws (adjusted). */
START_TEST(first_order_indices_of_a_known_sum)
{
    double x[N];
    double y[N];
    double other[N];
    struct rng r;
    rng_init(&r, 3);
    for (int i = 0; i < N; i++) {
        x[i] = rng_normal(&r);
        other[i] = rng_normal(&r);
        y[i] = x[i] + 0.5 * x[i] * x[i] + 0.5 * rng_normal(&r);
    }
    ck_assert_double_eq_tol(uncertainty_first_order(x, y, NULL, N, NULL), 6.0 / 7.0, 0.04);
    ck_assert_double_lt(uncertainty_first_order(other, y, NULL, N, NULL), 0.02);
}
END_TEST

/* ---- an order that one number decides ---- */

/* Two policies in one metric on drawn machines: the difference is 2 z + 0.2 of the score z of
 * factor k plus a trace effect that the nominal comparison knows. */
static const char *beside = "other"; /* a metric that the policy's runs have, too */

static struct uncertainty decided_by(uint32_t k, const char *metric)
{
    static struct config_policy policies[2] = {{.label = "base"}, {.label = "other"}};
    static struct compare_plan plan;
    static double nominal[40]; /* of each policy the metric, and the other one */
    static const char *metrics[1];
    static struct metric name[2];
    static struct compare_result r = {
        .n_policies = 2, .replications = 10, .n_metrics = 2, .names = name, .values = nominal};
    plan = (struct compare_plan){.config = &config,
                                 .options = &options,
                                 .policies = policies,
                                 .n_policies = 2,
                                 .relevance_frac = 0.05,
                                 .replications = 10};
    metrics[0] = metric;
    (void)snprintf(name[0].name, sizeof name[0].name, "%s", metric);
    (void)snprintf(name[1].name, sizeof name[1].name, "%s", beside);
    for (int i = 0; i < 10; i++) {
        nominal[i] = 20.0;                              /* the baseline */
        nominal[20 + i] = 20.0 + 0.2 + 3.0 * (i - 4.5); /* mean 0.2 more */
        nominal[10 + i] = (double)NAN;
        nominal[30 + i] = i == 3 ? 0.0 : (double)NAN;
    }
    struct uncertainty u = {.plan = &plan,
                            .nominal = &r,
                            .machines = machines,
                            .metrics = metrics,
                            .n_metrics = 1,
                            .n_policies = 2,
                            .value = xcalloc((size_t)N * UNCERTAINTY_REPEATS * 2, sizeof(double))};
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = 0; j < UNCERTAINTY_REPEATS; j++) {
            double z = machines.z[(size_t)i * machines.n_factors + k];
            uint32_t rep = uncertainty_replication(&plan, i, j);
            u.value[(i * UNCERTAINTY_REPEATS + j) * 2] = 20.0;
            u.value[(i * UNCERTAINTY_REPEATS + j) * 2 + 1] = 2.0 * z + nominal[20 + rep];
        }
    }
    uncertainty_analyse(&u);
    ck_assert_uint_eq(u.n_pairs, 1);
    return u;
}

/* Truth of 60 machines: the first n_far are overwhelmed, the next n_worse are worse by 1. */
struct truth {
    double others; /* difference of all others */
    double noise;  /* of a run */
    uint32_t n_far, n_worse;
};

static double drawn_difference(const struct truth *t, uint32_t machine, struct rng *g)
{
    bool far = machine < t->n_far;
    double mean = far ? -300.0 : machine < t->n_far + t->n_worse ? 1.0 : t->others;
    return mean + (far ? 100.0 : t->noise) * rng_normal(g);
}

static void close_uncertainty(struct uncertainty *u)
{
    free(u->value);
    free(u->pairs);
    free(u->best_frac);
}

/* The chance that was found on them to be better. */
static double chance_of(uint64_t set, struct truth t)
{
    struct config_policy policies[2] = {{.label = "base"}, {.label = "other"}};
    double nominal[4] = {0.0, 0.0, 0.0, 0.0};
    const char *metrics[] = {"reactive.e2e_s.mean"};
    struct metric name = {.name = "reactive.e2e_s.mean"};
    struct compare_result r = {
        .n_policies = 2, .replications = 2, .n_metrics = 1, .names = &name, .values = nominal};
    struct compare_plan plan = {.config = &config,
                                .options = &options,
                                .policies = policies,
                                .n_policies = 2,
                                .replications = 2};
    struct uncertainty u = {.plan = &plan,
                            .nominal = &r,
                            .machines = machines,
                            .metrics = metrics,
                            .n_metrics = 1,
                            .n_policies = 2,
                            .value = xcalloc((size_t)N * UNCERTAINTY_REPEATS * 2, sizeof(double))};
    struct rng g;
    rng_init(&g, rng_key(set, RNG_TEST, 0, 0));
    u.machines.n_draws = 60;
    for (uint32_t i = 0; i < 60 * UNCERTAINTY_REPEATS; i++) {
        u.value[2 * i + 1] = drawn_difference(&t, i / UNCERTAINTY_REPEATS, &g);
    }
    uncertainty_analyse(&u);
    double chance = u.pairs[0].better_frac;
    ck_assert_double_eq_tol(u.best_frac[0] + u.best_frac[1], 1.0, 1e-9);
    if (t.noise == 0.0) { /* equal ones share each machine */
        ck_assert_double_eq(u.best_frac[0], 0.5);
    }
    close_uncertainty(&u);
    return chance;
}

/* The mean of machines is known as well as their runs allow. Where all the difference is noise, no
 * order is sure. About 5 % of 200 such sets have a chance below 0.025 or above 0.975. */
START_TEST(noise_is_no_sure_order)
{
    draw("core-ultra-5-125h", N);
    uint32_t sure = 0;
    for (uint64_t set = 0; set < 200; set++) {
        double chance = chance_of(set, (struct truth){.noise = 1.0});
        sure += chance < 0.025 || chance > 0.975;
    }
    ck_assert_uint_le(sure, 20); /* 10 expected; above 20: once in 2,000 */
    ck_assert_double_eq(chance_of(1, (struct truth){0}), 0.0);
}
END_TEST

/* Six of 60 machines are overwhelmed, with differences of -300 and noise of 100. Nine of the others
 * are worse by 1, and the rest are better by 1, known to 0.3. So 51 of 60 are better, regardless of
 * the six. The mean of -31 is no machine's, and their noise is not the others'. */
START_TEST(overwhelmed_machines_do_not_decide_for_the_others)
{
    draw("core-ultra-5-125h", N);
    for (uint64_t set = 0; set < 50; set++) {
        double chance =
            chance_of(set, (struct truth){.others = -1.0, .noise = 0.3, .n_far = 6, .n_worse = 9});
        ck_assert_double_eq_tol(chance, 51.0 / 60.0, 1e-9);
    }
}
END_TEST

/* The policy is better (below 0) where z < -0.1. */
START_TEST(a_known_order_is_found_with_its_cause)
{
    draw("core-ultra-5-125h", N);
    uint32_t k = factor("soc.devices.igpu.runtimes.0.rate");
    struct uncertainty u = decided_by(k, "reactive.e2e_s.mean");
    struct uncertainty_pair *p = &u.pairs[0];
    uncertainty_conclude(p);
    ck_assert_double_eq_tol(p->better_frac, 0.46, 0.01); /* P(z < -0.1) = 0.4602 */
    /* It is worse by at most 5 % of 20: P(z <= 0.4) = 0.6554. */
    ck_assert_double_eq_tol(p->not_worse_frac, 0.6554, 0.02);
    ck_assert_double_eq_tol(p->nominal, 0.2, 1e-9);
    ck_assert_double_eq_tol(p->model_var_frac, 1.0, 1e-6); /* the traces are taken out whole */
    ck_assert_double_eq_tol(p->model_low, 0.2 - 2.0 * 1.96, 0.15);
    ck_assert_uint_eq(p->top[0].factor, k);
    ck_assert_double_gt(p->top[0].share, 0.98);
    ck_assert_int_eq(p->next, 0);
    ck_assert_double_lt(p->top[0].wrong_after, 0.03);
    close_uncertainty(&u);
}
END_TEST

/* Fits y on 1, x and x^2 by least squares, at every x. */
static void quadratic(const double *x, const double *y, double *fit)
{
    gsl_matrix *a = gsl_matrix_alloc(N, 3);
    gsl_matrix *cov = gsl_matrix_alloc(3, 3);
    gsl_vector *c = gsl_vector_alloc(3);
    gsl_vector_const_view v = gsl_vector_const_view_array(y, N);
    double square;
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < 3; k++) {
            gsl_matrix_set(a, i, k, k == 0 ? 1.0 : k == 1 ? x[i] : x[i] * x[i]);
        }
    }
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(N, 3);
    ck_assert_int_eq(gsl_multifit_linear(a, &v.vector, c, cov, &square, work), 0);
    for (size_t i = 0; i < N; i++) {
        fit[i] = gsl_vector_get(c, 0) + x[i] * (gsl_vector_get(c, 1) + x[i] * gsl_vector_get(c, 2));
    }
    gsl_multifit_linear_free(work);
    gsl_vector_free(c);
    gsl_matrix_free(cov);
    gsl_matrix_free(a);
}

/* The difference is 2 (a^2 - 1) + 2 b - 1 of two factors' scores. One known factor gives the rank's
 * score y to within the rest of its variance. A guess from it errs where the order is on the less
 * likely side. The two halves of a^2 differ, so the sides can be distinguished. */
START_TEST(knowing_a_cause_leaves_the_chance_of_the_rest)
{
    draw("core-ultra-5-125h", N);
    const uint32_t of[2] = {factor("soc.devices.igpu.runtimes.0.rate"), factor("soc.ddr.queueing")};
    static double m[N], y[N], x[2][N], fit[N];
    struct uncertainty u = decided_by(of[0], "reactive.e2e_s.mean");
    uint32_t below = 0;
    for (uint32_t i = 0; i < N; i++) {
        const double *z = &machines.z[(size_t)i * machines.n_factors];
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(machines.factor[of[k]].kind, MACHINE_RANGE);
            x[k][i] = z[of[k]];
        }
        m[i] = 2.0 * (x[0][i] * x[0][i] - 1.0) + 2.0 * x[1][i] - 1.0;
        below += m[i] < 0.0;
        for (uint32_t j = 0; j < UNCERTAINTY_REPEATS; j++) {
            u.value[(i * UNCERTAINTY_REPEATS + j) * 2 + 1] = 20.0 + m[i];
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        uint32_t rank = 0;
        for (uint32_t j = 0; j < N; j++) {
            rank += m[j] < m[i];
        }
        y[i] = gsl_cdf_ugaussian_Pinv((rank + 0.5) / N);
    }
    double zero = gsl_cdf_ugaussian_Pinv((double)below / N);
    free(u.pairs);
    free(u.best_frac);
    u.n_pairs = 0;
    uncertainty_analyse(&u);
    const struct uncertainty_pair *p = &u.pairs[0];
    for (int k = 0; k < 2; k++) {
        const struct uncertainty_share *s = &p->top[0];
        while (s < p->top + p->n_top && s->factor != of[k]) {
            s++;
        }
        ck_assert(s < p->top + p->n_top);
        quadratic(x[k], y, fit);
        double sd = sqrt(gsl_stats_variance(y, 1, N) * (1.0 - s->share));
        double wrong = 0.0;
        for (uint32_t i = 0; i < N; i++) {
            double better = gsl_cdf_ugaussian_P((zero - fit[i]) / sd);
            wrong += (better < 0.5 ? better : 1.0 - better) / N;
        }
        ck_assert_double_eq_tol(s->wrong_after, wrong, 1e-9);
    }
    close_uncertainty(&u);
}
END_TEST

/* Where more is better: better where z > -0.1, and not worse by more than 5 % of 20 where z >=
 * -0.6. */
START_TEST(more_is_better_in_some_metrics)
{
    draw("core-ultra-5-125h", N);
    struct uncertainty u =
        decided_by(factor("soc.devices.igpu.runtimes.0.rate"), "all.throughput_req_per_min");
    ck_assert_double_eq_tol(u.pairs[0].better_frac, 0.5398, 0.01);
    ck_assert_double_eq_tol(u.pairs[0].not_worse_frac, 0.7257, 0.02);
    close_uncertainty(&u);
}
END_TEST

/* The first and the third of five candidates change nothing: the others move up, three are left,
 * and the best to measure is the one that leaves the smallest chance of a wrong order. */
START_TEST(numbers_that_change_nothing_are_left_out)
{
    struct uncertainty_pair p = {.better_frac = 0.7, .n_top = 5, .next = -1};
    static const double wrong_after[] = {0.0, 0.2, 0.0, 0.1, 0.25};
    for (uint32_t k = 0; k < 5; k++) {
        p.top[k] = (struct uncertainty_share){
            .factor = k, .idle = k == 0 || k == 2, .wrong_after = wrong_after[k]};
    }
    uncertainty_conclude(&p);
    ck_assert_uint_eq(p.n_top, 3);
    ck_assert_uint_eq(p.n_idle, 2);
    ck_assert_uint_eq(p.top[0].factor, 1);
    ck_assert_uint_eq(p.top[1].factor, 3);
    ck_assert_uint_eq(p.top[2].factor, 4);
    ck_assert_int_eq(p.next, 1);
}
END_TEST

/* A power decides energies; times only where power is limited, by settings, by events of the
 * machine or by a battery. One run of one policy has been slowed, or has a charge at its end. */
START_TEST(a_power_is_a_cause_where_it_bears_on_the_metric)
{
    static const struct {
        const char *metric;
        enum config_limit limit;
        bool bears;
        const char *beside;
    } row[] = {
        {"reactive.e2e_s.mean", CONFIG_LIMIT_NONE, false, "other"},
        {"reactive.e2e_s.mean", CONFIG_LIMIT_PACKAGE, true, "other"},
        {"reactive.e2e_s.mean", CONFIG_LIMIT_THERMAL, true, "other"},
        {"reactive.e2e_s.mean", CONFIG_LIMIT_NONE, true, "throttle.lost_frac"},
        {"reactive.e2e_s.mean", CONFIG_LIMIT_NONE, true, "battery.end_frac"},
        {"system.energy_j", CONFIG_LIMIT_NONE, true, "other"},
        {"system.peak_power_watts", CONFIG_LIMIT_NONE, true, "other"},
        {"system.energy_j_per_token", CONFIG_LIMIT_NONE, true, "other"},
    };
    draw("core-ultra-5-125h", N);
    uint32_t k = factor("soc.idle_power");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        config.sim.power.limit = row[i].limit;
        beside = row[i].beside;
        struct uncertainty u = decided_by(k, row[i].metric);
        const struct uncertainty_share *first = &u.pairs[0].top[0];
        ck_assert_msg((first->factor == k && first->share > 0.98) == row[i].bears, "%s, limit %d",
                      row[i].metric, (int)row[i].limit);
        close_uncertainty(&u);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("machines", .teardown = teardown, .timeout_s = 60),
    TEST(ranges_are_drawn_evenly_about_their_value),
    TEST(fitted_parameters_are_drawn_with_their_covariance),
    TEST(fitted_numbers_have_two_deviations_to_either_side),
    TEST(drawn_machines_load),
    TEST(budgets_are_drawn_where_they_limit),
    TEST(residuals_are_factors_of_time),
    TEST(the_ends_of_residuals_hold_the_middle_of_the_draws),
    TEST(a_residual_slows_one_phase_of_one_device),
    TEST(first_order_indices_of_a_known_sum),
    TEST(noise_is_no_sure_order),
    TEST(overwhelmed_machines_do_not_decide_for_the_others),
    TEST(a_known_order_is_found_with_its_cause),
    TEST(knowing_a_cause_leaves_the_chance_of_the_rest),
    TEST(more_is_better_in_some_metrics),
    TEST(numbers_that_change_nothing_are_left_out),
    TEST(a_power_is_a_cause_where_it_bears_on_the_metric),
};
SUITE_MAIN("uncertainty", suite)
