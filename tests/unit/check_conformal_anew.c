/* Intervals of predictions, computed again from drawn tables by the text of hwmodels/conformal.h;
 * by hand: check_conformal. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/conformal.h"
#include "sim/base/quantile.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

enum { MOST = 150, CLASSES = 4 };

static struct conformal_row all[MOST];
static const struct conformal_row *rows[MOST]; /* those that count */
static size_t n_all, n;

static void draw(struct rng *r, uint32_t n_models)
{
    static const char *const socs[] = {"a", "b", "c", "d", "e"};
    static const char *const families[] = {"f", "g", "h"};
    n_all = 1 + rng_below(r, MOST);
    for (size_t i = 0; i < n_all; i++) {
        struct conformal_row *x = &all[i];
        memset(x, 0, sizeof *x);
        x->soc = xkeep(xstrdup(socs[rng_below(r, 5)]));
        x->by = xkeep(xstrdup(socs[rng_below(r, 5)]));
        x->family = xkeep(xstrdup(families[rng_below(r, 3)]));
        x->model = xkeep(xformat("m%u", rng_below(r, n_models)));
        x->kind = rng_below(r, 3) == 0 ? DEVICE_KIND_NPU : DEVICE_KIND_IGPU;
        x->phase = rng_below(r, 5) == 0 ? CONFORMAL_DECODE : CONFORMAL_PREFILL;
        x->left = (enum conformal_left)rng_below(r, 4);
        x->weights = 1e9 * (1.0 + rng_below(r, 3));
        x->tokens = 10.0 * (1.0 + rng_below(r, 200));
        x->ln_error = 0.2 * rng_normal(r);
        x->distance = rng_below(r, 2) * rng_uniform(r);
        x->mixture = rng_below(r, 3) == 0;
    }
}

static const char *family_of(const struct conformal_query *q)
{
    return q->family[0] != '\0' ? q->family : q->soc;
}

static bool left_out(const struct conformal_row *x, const struct conformal_query *q)
{
    bool model = q->without_model != NULL && strcmp(q->without_model, x->model) == 0;
    bool soc = q->without_soc != NULL &&
               (strcmp(q->without_soc, x->soc) == 0 || strcmp(q->without_soc, x->by) == 0);
    return model || soc;
}

/* From the nearest row of the family whose model a fit had not seen; 0 where there is none. */
static double distance(const struct conformal_query *q)
{
    double least = -1.0;
    for (size_t i = 0; i < n; i++) {
        const struct conformal_row *x = rows[i];
        if (x->left == CONFORMAL_MODEL && x->kind == q->kind &&
            strcmp(x->family, family_of(q)) == 0) {
            double d = fmax(fabs(log(q->weights) - log(x->weights)),
                            fabs(log(q->tokens + 1.0) - log(x->tokens + 1.0)));
            least = least < 0.0 ? d : fmin(least, d);
        }
    }
    return fmax(least, 0.0);
}

/* Errors of one model, or of one machine, are of a group. */
static bool same_group(const struct conformal_row *x, const struct conformal_row *y)
{
    return x->left == y->left && strcmp(x->left == CONFORMAL_MODEL ? x->model : x->soc,
                                        y->left == CONFORMAL_MODEL ? y->model : y->soc) == 0;
}

/* All rows; those of what was left out; of the kind, too; of the size, too. */
static bool in_class(int level, const struct conformal_row *x, enum conformal_left left,
                     enum device_kind kind, double weights)
{
    return (level < 1 || x->left == left) && (level < 2 || x->kind == kind) &&
           (level < 3 ||
            (x->weights < CONFORMAL_SMALL_WEIGHTS) == (weights < CONFORMAL_SMALL_WEIGHTS));
}

/* Decode of a mixture of experts is twice as uncertain. */
static double less_sure(bool mixture, enum conformal_phase phase)
{
    return mixture && phase == CONFORMAL_DECODE ? 2.0 : 1.0;
}

static double error_of(const struct conformal_row *x)
{
    return x->ln_error / (1.0 + CONFORMAL_WIDEN * x->distance) / less_sure(x->mixture, x->phase);
}

/* Adds the variances between groups and within them. Each class is drawn to the one above. Returns
 * NaN without a group. */
static double sd(enum conformal_left left, enum device_kind kind, double weights,
                 const struct conformal_row *without)
{
    double variance = (double)NAN;
    for (int level = 0; level < CLASSES; level++) {
        double groups = 0.0;
        double count = 0.0;
        double between = 0.0;
        double within = 0.0;
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            double members = 0.0;
            bool first = true;
            if (!in_class(level, rows[i], left, kind, weights) ||
                (without != NULL && same_group(rows[i], without))) {
                continue;
            }
            for (size_t k = 0; k < n; k++) {
                if (in_class(level, rows[k], left, kind, weights) && same_group(rows[i], rows[k])) {
                    first = first && k >= i;
                    sum += error_of(rows[k]);
                    members += 1.0;
                }
            }
            double mean = sum / members;
            count += 1.0;
            within += (error_of(rows[i]) - mean) * (error_of(rows[i]) - mean);
            groups += first;
            between += first ? mean * mean : 0.0;
        }
        if (groups > 0.0) {
            double own = between / groups + within / count;
            variance = isnan(variance) ? own
                                       : (groups * own + CONFORMAL_PRIOR_GROUPS * variance) /
                                             (groups + CONFORMAL_PRIOR_GROUPS);
        }
    }
    return sqrt(variance);
}

static double deviations(enum device_kind kind, double level)
{
    double of_all[MOST];
    double of_kind[MOST];
    size_t n_of = 0;
    size_t n_kind = 0;
    size_t groups = 0;
    size_t kind_groups = 0;
    for (size_t i = 0; i < n; i++) {
        bool first = true;
        bool first_of_kind = true;
        double by = sd(rows[i]->left, rows[i]->kind, rows[i]->weights, rows[i]);
        for (size_t k = 0; k < i; k++) {
            bool same = same_group(rows[i], rows[k]);
            first = first && !same;
            first_of_kind = first_of_kind && !(same && rows[k]->kind == kind);
        }
        groups += first;
        if (by > 0.0) {
            double ratio = fabs(error_of(rows[i])) / by;
            of_all[n_of++] = ratio;
            if (rows[i]->kind == kind) {
                of_kind[n_kind++] = ratio;
                kind_groups += first_of_kind;
            }
        }
    }
    if (n_of == 0) {
        return gsl_cdf_ugaussian_Pinv((1.0 + level) / 2.0);
    }
    if (kind_groups < CONFORMAL_KIND_GROUPS) {
        return sample_quantile_of(of_all, n_of, fmin(1.0, level + level / (double)groups));
    }
    return sample_quantile_of(of_kind, n_kind, fmin(1.0, level + level / (double)kind_groups));
}

static double draw_at(const struct conformal *table, const struct conformal_query *q, double u)
{
    double x;
    conformal_draws(table, q, &u, 1, &x);
    return x;
}

START_TEST(an_interval_is_that_of_its_rows)
{
    struct rng r;
    struct conformal table = {.v = all};
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 321, 0));
    draw(&r, _i % 2 == 0 ? 4 : 60);
    table.n = n_all;
    conformal_prepare(&table);
    for (int k = 0; k < 6; k++) {
        const struct conformal_row *like = &all[rng_below(&r, (uint32_t)n_all)];
        struct conformal_query q = conformal_query_of(like);
        q.weights *= 0.5 + rng_uniform(&r);
        q.without_model = k % 3 == 0 ? like->model : NULL;
        q.without_soc = k % 3 == 1 ? like->soc : NULL;
        q.family = k == 5 ? "" : q.family;
        q.kind = k == 4 ? DEVICE_KIND_CPU : q.kind;
        n = 0;
        for (size_t i = 0; i < n_all; i++) {
            if (all[i].phase == q.phase && !left_out(&all[i], &q)) {
                rows[n++] = &all[i];
            }
        }
        struct conformal_interval is = conformal_of(&table, &q, 0.9);
        double by = sd(q.left, q.kind, q.weights, NULL);
        ck_assert_double_eq_tol(is.distance, distance(&q), 1e-9);
        ck_assert_int_eq(is.left, q.left);
        if (isnan(by)) {
            ck_assert(is.low_factor == 0.0 && isinf(is.high_factor) && is.n == 0);
            ck_assert_double_eq(draw_at(&table, &q, 0.9), 0.0);
            continue;
        }
        double widen = (1.0 + CONFORMAL_WIDEN * distance(&q)) * less_sure(q.mixture, q.phase);
        double half = deviations(q.kind, 0.9) * by * widen;
        ck_assert_msg(fabs(log(is.high_factor) - half) < 1e-7 * fmax(1.0, half) &&
                          fabs(log(is.low_factor) + half) < 1e-7 * fmax(1.0, half),
                      "%zu rows: %g, not %g", n, log(is.high_factor), half);
        ck_assert_double_eq_tol(draw_at(&table, &q, 0.95), half, 1e-7 * fmax(1.0, half));
        ck_assert_double_eq_tol(draw_at(&table, &q, 0.05), -half, 1e-7 * fmax(1.0, half));
        /* Takes the rows of its class on its kind of device; without any, those of its class; else
         * all. */
        size_t counted[3] = {0, 0, 0};
        for (size_t i = 0; i < n; i++) {
            for (int level = 0; level < 3; level++) {
                counted[level] += in_class(level, rows[i], q.left, q.kind, q.weights);
            }
        }
        int level = counted[2] > 0 ? 2 : counted[1] > 0 ? 1 : 0;
        ck_assert_uint_eq(is.n, counted[level]);
        ck_assert_str_eq(is.pool, level < 2 ? "all" : q.kind == DEVICE_KIND_NPU ? "npu" : "igpu");
    }
}
END_TEST

/* A row has its values from the file, and its distance from the rows that its fit has kept. */
START_TEST(a_row_that_is_read_knows_its_distance)
{
    struct rng r;
    SCOPED(text_fini) struct text csv = {0};
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 322, 0));
    draw(&r, _i % 2 == 0 ? 4 : 60);
    text_format(
        &csv, "soc,family,device,model,weights,phase,input_tokens,left_out,ln_error,by,mixture\n");
    for (size_t i = 0; i < n_all; i++) {
        const struct conformal_row *x = &all[i];
        text_format(&csv, "%s,%s,%s,%s,%.17g,%s,%.17g,%s,%.17g,%s,%d\n", x->soc, x->family,
                    x->kind == DEVICE_KIND_NPU ? "npu" : "igpu", x->model, x->weights,
                    conformal_phase_names[x->phase], x->tokens, conformal_left_names[x->left],
                    x->ln_error, x->by, x->mixture);
    }
    const char *path = tempfile_make(".csv");
    tempfile_put(text_end(&csv));
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct conformal table;
    ck_assert_int_eq(conformal_read(path, &table, &e), 0);
    tempfile_remove();
    ck_assert_uint_eq(table.n, n_all);
    for (size_t i = 0; i < n_all; i++) {
        const struct conformal_row *x = &all[i];
        bool model = x->left == CONFORMAL_MODEL;
        struct conformal_query q = {.soc = x->soc,
                                    .family = x->family,
                                    .kind = x->kind,
                                    .weights = x->weights,
                                    .tokens = x->tokens,
                                    .without_model = model ? x->model : NULL,
                                    .without_soc = model ? NULL : x->soc};
        n = 0;
        for (size_t k = 0; k < n_all; k++) {
            if (all[k].phase == x->phase && !left_out(&all[k], &q)) {
                rows[n++] = &all[k];
            }
        }
        ck_assert_double_eq_tol(table.v[i].distance, distance(&q), 1e-9);
        ck_assert_double_eq(table.v[i].ln_error, x->ln_error);
        ck_assert_str_eq(table.v[i].by, x->by);
        ck_assert(table.v[i].mixture == x->mixture);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("conformal"),
    LOOP(a_row_that_is_read_knows_its_distance, 16),
    LOOP(an_interval_is_that_of_its_rows, 16),
};
SUITE_MAIN("intervals of predictions", suite)
