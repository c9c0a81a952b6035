/* Updates by a few rows are tested: the posterior by hand, a machine recovered, and the information
 * of a further row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/validation/update.h"
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

#define NORMAL_95 1.959964

static struct err err;
static struct catalog catalog;
static struct soc *soc; /* the catalogue's */
static cJSON *tree;
static struct update u;
static struct point points[4];
static struct update_row rows[4];

/* Every number of kernel times without a range, but those of 4-bit weights under openvino-2025 that
 * `free_keys` names: a factor of e^(1.96 sd) either way. */
static void fix(cJSON *node, bool entry, const char *const *free_keys, double sd)
{
    cJSON *q;
    cJSON_ArrayForEach (q, node) {
        if (!cJSON_IsObject(q) && !cJSON_IsArray(q)) {
            continue;
        }
        if (cJSON_GetObjectItemCaseSensitive(q, "low") == NULL) {
            const cJSON *bits = cJSON_GetObjectItemCaseSensitive(q, "weight_bits");
            bool mine = strcmp(json_string(q, "runtime"), "openvino-2025") == 0 && bits != NULL &&
                        bits->valueint == 4;
            fix(q, mine, free_keys, sd);
            continue;
        }
        bool is_free = false;
        for (int i = 0; entry && free_keys[i] != NULL; i++) {
            is_free = is_free || strcmp(free_keys[i], q->string) == 0;
        }
        double v = json_number(q, "value");
        double f = is_free ? exp(NORMAL_95 * sd) : 1.0;
        cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(q, "low"), v / f);
        cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(q, "high"), v * f);
    }
}

static void start(const char *const *free_keys, double sd)
{
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    tree = json_read_file(soc_path("core-ultra-5-125h"), &err);
    ck_assert_ptr_nonnull(tree);
    fix(cJSON_GetObjectItemCaseSensitive(tree, "devices"), false, free_keys, sd);
    soc = xmalloc(sizeof *soc);
    ck_assert_int_eq(soc_parse(tree, "test", soc, &err), 0);
    catalog_add_soc(&catalog, soc);
    update_init(&u, soc, tree, (uint8_t)machine_find(&soc->machine, DEVICE_KIND_IGPU),
                &catalog.residuals);
}

static void teardown(void)
{
    update_fini(&u);
    cJSON_Delete(tree);
    err_fini(&err);
}

/* A decode or a prefill of 4-bit weights, measured at `seconds`. */
static void row(int i, const char *model, uint32_t tokens, bool prefill, double seconds)
{
    points[i] = (struct point){.weight_bits = 4,
                               .batch = 1,
                               .input_tokens = tokens,
                               .metric = prefill ? POINT_TTFT_MS : POINT_TPOT_MS,
                               .value = 1e3 * seconds};
    points[i].soc = "core-ultra-5-125h";
    points[i].device = "igpu";
    points[i].runtime = "openvino-2025";
    points[i].model = xkeep(xstrdup(model));
    rows[i].point = &points[i];
    predict_bind(&catalog, &points[i], &rows[i].k);
    ck_assert_ptr_null(rows[i].k.reason);
}

static void set_noise(double row_sd, double model_sd)
{
    for (int i = 0; i < 2 * UPDATE_PHASES; i++) {
        u.spread[i % 2][i / 2].row_sd = row_sd;
        u.spread[i % 2][i / 2].model_sd = model_sd;
    }
}

static const char *const bandwidth[] = {"bandwidth", NULL};
static const char *const both[] = {"rate", "bandwidth", NULL};

/* One number x has ln T = h - g x near it, with g from a difference of the model's own times. A row
 * at ln T + d has prior variance s^2 and noise n^2. It moves x by -K d, K = s^2 g / (g^2 s^2 +
 * n^2), and leaves the variance s^2 (1 - K g). d is small, so that the model is a line there. */
START_TEST(the_posterior_of_one_number_is_the_closed_form)
{
    start(bandwidth, 0.2);
    ck_assert_uint_eq(u.n, 1);
    ck_assert_double_eq_tol(sqrt(gsl_matrix_get(u.covariance, 0, 0)), 0.2, 1e-6);
    set_noise(0.1, 0.0);
    row(0, "llama-3-8b", 1024, false, 1.0);
    struct soc_runtime r = soc->devices[u.device].runtimes[rows[0].k.runtime];
    double t0 = predict_price(&rows[0].k, &points[0], &r).seconds;
    r.many.bytes_per_s *= exp(1e-3);
    r.one.bytes_per_s *= exp(1e-3);
    double t1 = predict_price(&rows[0].k, &points[0], &r).seconds;
    double g = log(t0 / t1) / 1e-3;
    ck_assert(g > 0.8 && g <= 1.0); /* decode is nearly all memory */
    double d = 1e-3;
    points[0].value = 1e3 * t0 * exp(d);
    double k = 0.04 * g / (g * g * 0.04 + 0.01);
    double before = gsl_vector_get(u.mean, 0);
    ck_assert_int_eq(update_take(&u, rows, 1, &err), 0);
    ck_assert_double_eq_tol(gsl_vector_get(u.mean, 0) - before, -k * d, 2e-6);
    ck_assert_double_eq_tol(gsl_matrix_get(u.covariance, 0, 0), 0.04 * (1.0 - k * g), 1e-5);
}
END_TEST

static cJSON *free_number(cJSON *node)
{
    cJSON *q;
    cJSON_ArrayForEach (q, node) {
        const cJSON *low = cJSON_GetObjectItemCaseSensitive(q, "low");
        bool is_free = low != NULL && low->valuedouble < json_number(q, "value");
        cJSON *found = is_free ? q : low == NULL ? free_number(q) : NULL;
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

/* A limit of the data sheet may cut one side of a range. The other side has the deviation, 0.2. */
START_TEST(the_wider_side_of_a_range_has_the_deviation)
{
    static const char *const ends[] = {"low", "high"};
    start(bandwidth, 0.2);
    cJSON *q = free_number(cJSON_GetObjectItemCaseSensitive(tree, "devices"));
    const double v = json_number(q, "value");
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(q, ends[_i]), v);
    update_fini(&u);
    update_init(&u, soc, tree, (uint8_t)machine_find(&soc->machine, DEVICE_KIND_IGPU),
                &catalog.residuals);
    ck_assert_uint_eq(u.n, 1);
    ck_assert_double_eq_tol(sqrt(gsl_matrix_get(u.covariance, 0, 0)), 0.2, 1e-6);
}
END_TEST

/* The range of a copy is an error of transfers. Errors of models are a part of it, and at most half
 * of its variance is theirs. */
START_TEST(a_copys_range_has_the_errors_of_models)
{
    start(bandwidth, 1.0);
    double tail = u.spread[0][CONFORMAL_DECODE].tail_sd;
    teardown();
    ck_assert_double_gt(tail, 0.0);
    const double share = (const double[]){0.36, 0.9}[_i]; /* of the variance */
    double sd = tail / sqrt(share);
    start(bandwidth, sd);
    ck_assert_double_eq_tol(gsl_matrix_get(u.covariance, 0, 0), sd * sd, 1e-6);
    update_fini(&u);
    (void)snprintf(soc->like, sizeof soc->like, "core-ultra-7-155h");
    update_init(&u, soc, tree, (uint8_t)machine_find(&soc->machine, DEVICE_KIND_IGPU),
                &catalog.residuals);
    ck_assert_double_eq_tol(u.spread[0][CONFORMAL_DECODE].tail_sd, tail, 1e-12);
    ck_assert_double_eq_tol(gsl_matrix_get(u.covariance, 0, 0), sd * sd * (1.0 - fmin(share, 0.5)),
                            1e-6);
}
END_TEST

/* An error of the model is common to its rows. The mean of n of them has the variance r = 0.1^2 +
 * 0.1^2 / n. It leaves s^2 r / (g^2 s^2 + r), with g the slope where the update ends. */
START_TEST(rows_of_one_model_share_its_error)
{
    for (size_t n = 1; n <= 2; n++) {
        start(bandwidth, 0.2);
        set_noise(0.1, 0.1);
        row(0, "llama-3-8b", 1024, false, 0.07);
        row(1, "llama-3-8b", 1024, false, 0.07);
        ck_assert_int_eq(update_take(&u, rows, n, &err), 0);
        double slope;
        gsl_vector_view g = gsl_vector_view_array(&slope, 1);
        update_gradient(&u, &rows[0], &g.vector);
        double r = 0.01 + 0.01 / (double)n;
        ck_assert_double_eq_tol(gsl_matrix_get(u.covariance, 0, 0),
                                0.04 * r / (slope * slope * 0.04 + r), 1e-6);
        teardown();
    }
    start(bandwidth, 0.2);
}
END_TEST

/* ln of the density of the first n rows' times, integrated over the only number. At each value of
 * it row i is d[i] off. Rows are normal, with own errors a and common ones b: their determinant is
 * a^(n-1) (a + n b) and their square (sum d^2 - b / (a + n b) (sum d)^2) / a. */
static double integral(size_t n, double row_sd, double model_sd)
{
    double mean = gsl_vector_get(u.mean, 0);
    double sd = sqrt(gsl_matrix_get(u.covariance, 0, 0));
    double a = row_sd * row_sd;
    double all = a + (double)n * model_sd * model_sd;
    double density = 0.0;
    double weights = 0.0;
    for (double z = -6.0; z < 6.0; z += 1e-3) {
        gsl_vector_set(u.mean, 0, mean + z * sd);
        double sum = 0.0;
        double squares = 0.0;
        for (size_t i = 0; i < n; i++) {
            double d = update_predict(&u, &rows[i]).ln_seconds - log(1e-3 * points[i].value);
            sum += d;
            squares += d * d;
        }
        double square = (squares - model_sd * model_sd / all * sum * sum) / a;
        density += exp(-0.5 * (z * z + square));
        weights += exp(-0.5 * z * z);
    }
    gsl_vector_set(u.mean, 0, mean);
    return log(density / weights) - 0.5 * log(pow(a, (double)n - 1.0) * all);
}

/* A decode is nearly linear in the logarithm of the bandwidth, the more so in a small range. */
START_TEST(the_evidence_is_an_integral)
{
    const double small = 0.005;
    start(bandwidth, 0.2 * small);
    set_noise(0.1 * small, 0.3 * small);
    row(0, "llama-3-8b", 1024, false, 1.0);
    row(1, "llama-3-8b", 1024, false, 1.0);
    double usual = 1e3 * exp(update_predict(&u, &rows[0]).ln_seconds);
    points[0].value = usual * exp(0.5 * small);
    points[1].value = usual * exp(0.3 * small);
    for (size_t n = 1; n <= 2; n++) {
        ck_assert_double_eq_tol(update_ln_evidence(&u, rows, n),
                                integral(n, 0.1 * small, 0.3 * small), 1e-4);
    }
}
END_TEST

/* A launch may be e^4 times as long as stated, and a prompt of 32 tokens takes thrice its time: a
 * density of e^-2.2. By a line through the stated launch it would be e^-21.5. */
START_TEST(the_evidence_knows_long_launches)
{
    static const char *const launch[] = {"launch", NULL};
    start(launch, 2.0);
    set_noise(0.1, 0.1);
    row(0, "llama-3-8b", 32, true, 1.0);
    points[0].value = 3e3 * exp(update_predict(&u, &rows[0]).ln_seconds);
    ck_assert_double_eq_tol(update_ln_evidence(&u, rows, 1), integral(1, 0.1, 0.1), 0.1);
}
END_TEST

/* Two copies with weights 0.5 and 0.25 have 1.5 and 2 times the bandwidth. They move its logarithm
 * by (0.5 ln 1.5 + 0.25 ln 2) / 1.75. Only the first one has a range of the rate, 1.1 times as
 * much, and moves that by 0.5 ln 1.1 / 1.5. Half of the variance is the made machine's own; weights
 * of 1, 1/2 and 1/4 leave 21/49 of the other half. */
START_TEST(copies_are_averaged_by_their_weights)
{
    start(bandwidth, 0.2);
    struct update second = u;
    u = (struct update){0};
    cJSON *its_tree = tree;
    start(both, 0.2);
    struct update first = u;
    first.mean = gsl_vector_alloc(2);
    gsl_vector_memcpy(first.mean, u.mean);
    double was[2];
    ck_assert_uint_eq(u.n, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_rate = u.params[i].k == CALIBRATE_RATE;
        was[i] = gsl_vector_get(u.mean, i);
        gsl_vector_set(first.mean, i, was[i] + log(is_rate ? 1.1 : 1.5));
        if (!is_rate) {
            gsl_vector_set(second.mean, 0, was[i] + log(2.0));
        }
    }
    const struct update other[] = {first, second};
    const double weight[] = {0.5, 0.25};
    update_average(&u, other, weight, 2);
    for (size_t i = 0; i < 2; i++) {
        double moved = u.params[i].k == CALIBRATE_RATE ? 0.5 * log(1.1) / 1.5
                                                       : (0.5 * log(1.5) + 0.25 * log(2.0)) / 1.75;
        ck_assert_double_eq_tol(gsl_vector_get(u.mean, i) - was[i], moved, 1e-12);
        ck_assert_double_eq_tol(gsl_matrix_get(u.covariance, i, i), 0.04 * 5.0 / 7.0, 1e-8);
    }
    gsl_vector_free(first.mean);
    gsl_vector_free(second.mean);
    gsl_matrix_free(second.covariance);
    free(second.params);
    cJSON_Delete(its_tree);
}
END_TEST

/* A machine has 0.8 times the bandwidth and 1.3 times the rate, from one benchmark without
 * noise. */
START_TEST(a_made_machine_is_recovered)
{
    start(both, 0.3);
    set_noise(1e-3, 0.0);
    row(0, "llama-3-8b", 1024, true, 1.0);
    row(1, "llama-3-8b", 1024, false, 1.0);
    struct soc_runtime truth = soc->devices[u.device].runtimes[rows[0].k.runtime];
    truth.many.bytes_per_s *= 0.8;
    truth.one.bytes_per_s *= 0.8;
    truth.many.flop_per_s *= 1.3;
    truth.one.flop_per_s *= 1.3;
    for (int i = 0; i < 2; i++) {
        points[i].value = 1e3 * predict_price(&rows[i].k, &points[i], &truth).seconds;
    }
    ck_assert_int_eq(update_take(&u, rows, 2, &err), 0);
    struct soc_runtime got = update_entry(&u, rows[0].k.runtime);
    ck_assert_double_eq_tol(got.many.bytes_per_s / truth.many.bytes_per_s, 1.0, 0.005);
    ck_assert_double_eq_tol(got.many.flop_per_s / truth.many.flop_per_s, 1.0, 0.005);
    /* Another model is predicted, too, with an interval of the models' errors alone. */
    row(2, "phi-2", 1024, true, 1.0);
    double seconds = predict_price(&rows[2].k, &points[2], &truth).seconds;
    struct update_prediction x = update_predict(&u, &rows[2]);
    ck_assert_double_eq_tol(x.ln_seconds, log(seconds), 0.01);
    ck_assert(x.state_sd < 0.01);
}
END_TEST

/* Bandwidth stays at most the DDR's peak, for any measured row. */
START_TEST(no_bandwidth_exceeds_the_memory)
{
    start(bandwidth, 1.0);
    set_noise(1e-3, 0.0);
    row(0, "llama-3-8b", 1024, false, 0.03);
    ck_assert_int_eq(update_take(&u, rows, 1, &err), 0);
    struct soc_runtime got = update_entry(&u, rows[0].k.runtime);
    ck_assert_double_le(got.many.bytes_per_s, soc->machine.ddr_peak_bytes_per_s);
}
END_TEST

/* The expected gain does not depend on what is measured (a linear model): taking a benchmark in at
 * its predicted times removes the share that was announced. */
START_TEST(the_announced_gain_comes_true)
{
    start(both, 0.3);
    set_noise(0.05, 0.05);
    struct update_usual x;
    update_usual(&u, &catalog, "openvino-2025", false, 3, &x);
    ck_assert_uint_gt(x.n, 0);
    double share[64];
    ck_assert_uint_le(x.n, 64);
    update_gains(&u, &x, share);
    size_t at = x.n;
    for (size_t i = 0; i < x.n; i++) { /* one at 4 bits: no other entry has ranges */
        at = x.v[i]->points[0].weight_bits == 4 ? i : at;
        ck_assert(share[i] >= 0.0 && share[i] < 1.0);
        ck_assert(x.v[i]->points[0].weight_bits == 4 || share[i] == 0.0);
    }
    double variance[2] = {0.0, 0.0};
    for (int after = 0; after < 2; after++) {
        for (size_t i = 0; i < x.n; i++) {
            for (int phase = 0; phase < UPDATE_PHASES; phase++) {
                double sd = update_predict(&u, &x.v[i]->rows[phase]).state_sd;
                variance[after] += sd * sd;
            }
        }
        for (int phase = 0; after == 0 && phase < UPDATE_PHASES; phase++) {
            struct update_benchmark *b = x.v[at];
            b->points[phase].value = 1e3 * exp(update_predict(&u, &b->rows[phase]).ln_seconds);
        }
        if (after == 0) {
            ck_assert_int_eq(update_take(&u, x.v[at]->rows, UPDATE_PHASES, &err), 0);
        }
    }
    ck_assert_double_eq_tol(1.0 - variance[1] / variance[0], share[at], 1e-3);
    update_usual_fini(&x);
}
END_TEST

/* The error of several benchmarks of an entry is the root of their mean variance. That of an entry
 * without one is unknown. */
START_TEST(errors_of_benchmarks_are_a_root_of_mean_squares)
{
    start(both, 0.3);
    struct update_usual x;
    update_usual(&u, &catalog, "openvino-2025", false, 3, &x);
    uint32_t several = 0;
    for (uint32_t runtime = 0; runtime < soc->devices[u.device].n_runtimes; runtime++) {
        for (int phase = 0; phase < UPDATE_PHASES; phase++) {
            double squares = 0.0;
            uint32_t n = 0;
            for (size_t i = 0; i < x.n; i++) {
                if (x.v[i]->rows[phase].k.runtime == runtime) {
                    squares += pow(update_predict(&u, &x.v[i]->rows[phase]).sd, 2.0);
                    n++;
                }
            }
            several += n > 1;
            is_near(update_error_sd(&u, &x, runtime, (enum conformal_phase)phase),
                    n > 0 ? sqrt(squares / n) : (double)NAN);
        }
    }
    ck_assert_uint_gt(several, 0);
    update_usual_fini(&x);
}
END_TEST

/* Two widths of three pairs of machines, decode. Within the family of "a" both widths of a pair are
 * off by the same, so nothing is a width's own. From "a" to another family one is off by as much as
 * the other, the other way, so nothing is shared. */
static struct conformal made_pairs(struct conformal_row *v)
{
    static const struct {
        const char *soc, *family, *by;
        double first, second;
    } pairs[] = {
        {"b", "x", "a", 0.2, 0.2}, {"a", "x", "b", -0.2, -0.2}, {"c", "y", "a", 0.2, -0.2}};
    struct conformal c = {.v = v};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 12; k++) {
            v[c.n++] =
                (struct conformal_row){.soc = pairs[i].soc,
                                       .family = pairs[i].family,
                                       .by = pairs[i].by,
                                       .model = "m",
                                       .source = "",
                                       .kind = DEVICE_KIND_IGPU,
                                       .phase = CONFORMAL_DECODE,
                                       .left = CONFORMAL_SOC,
                                       .weights = 3e9,
                                       .weight_bits = k % 2 == 0 ? 4 : 8,
                                       .ln_error = k % 2 == 0 ? pairs[i].first : pairs[i].second};
        }
    }
    conformal_prepare(&c);
    return c;
}

/* Variance that two entries' bandwidths share, over that of the better known one. */
static double shared_of(const struct conformal *c, const char *like, const char *family)
{
    (void)snprintf(soc->like, sizeof soc->like, "%s", like);
    (void)snprintf(soc->family, sizeof soc->family, "%s", family);
    struct update x;
    update_init(&x, soc, tree, u.device, c);
    double rho = -1.0;
    for (size_t i = 0; i < x.n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (x.params[i].k == CALIBRATE_BANDWIDTH && x.params[k].k == CALIBRATE_BANDWIDTH) {
                rho = gsl_matrix_get(x.covariance, i, k) /
                      fmin(gsl_matrix_get(x.covariance, i, i), gsl_matrix_get(x.covariance, k, k));
            }
        }
    }
    update_fini(&x);
    return rho;
}

/* With the pairs above machines have 0.2^2 of the variance within a family, and widths all of it
 * across. A third of all twelve differences between widths is 0.4: widths have 0.16 / 2 / 3 of the
 * mean square of 0.04. */
START_TEST(widths_share_an_error_within_a_family)
{
    static struct conformal_row v[36];
    struct conformal c = made_pairs(v);
    start(bandwidth, 0.2);
    cJSON_Delete(tree);
    tree = json_read_file(soc_path("core-ultra-7-155h"), &err); /* every entry has its ranges */
    ck_assert_int_eq(soc_parse(tree, "test", soc, &err), 0);
    u.device = (uint8_t)machine_find(&soc->machine, DEVICE_KIND_IGPU);
    ck_assert_double_eq_tol(shared_of(&c, "a", "x"), 1.0, 1e-6);
    ck_assert_double_eq_tol(shared_of(&c, "a", "y"), 0.0, 1e-6);
    ck_assert_double_eq_tol(shared_of(&c, "a machine without rows", "x"),
                            (0.04 - 0.16 / 6.0) / 0.04, 1e-6);
}
END_TEST

static const struct suite_row tests[] = {
    CASE("update", .teardown = teardown, .timeout_s = 60),
    TEST(the_posterior_of_one_number_is_the_closed_form),
    LOOP(the_wider_side_of_a_range_has_the_deviation, 2),
    LOOP(a_copys_range_has_the_errors_of_models, 2),
    TEST(rows_of_one_model_share_its_error),
    TEST(the_evidence_is_an_integral),
    TEST(the_evidence_knows_long_launches),
    TEST(copies_are_averaged_by_their_weights),
    TEST(a_made_machine_is_recovered),
    TEST(no_bandwidth_exceeds_the_memory),
    TEST(the_announced_gain_comes_true),
    TEST(errors_of_benchmarks_are_a_root_of_mean_squares),
    TEST(widths_share_an_error_within_a_family),
};
SUITE_MAIN("update", tests)
