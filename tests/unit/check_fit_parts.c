/* Parts of the fit of measured kernels are compared with a second computation from the texts of its
 * headers. Cells and starting values come from random rows. Weights, drift, intervals and the test
 * of the form come from random points. check_kernel_fit has the whole. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/kernel_fit_impl.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1.0, fabs(b)) || (isinf(a) && a == b);
}

/* ---- from rows to cells ---- */

enum { MOST_ROWS = 600, REPETITIONS = 4 };

static const char *const devices[] = {"cpu0", "gpu0"};
static const uint32_t widths[] = {8, 16};

static struct kernel_row *new_row(struct kernel_rows *rows, struct rng *r, int device,
                                  const struct kernel_spec *s, uint32_t repetition)
{
    struct kernel_row *row = kernel_rows_add(rows);
    kernel_row_set_spec(row, s);
    row->device = xkeep(xstrdup(devices[device]));
    row->runtime = "rt";
    row->repetition = repetition;
    row->metric = KERNEL_METRIC_MS;
    row->samples = rng_below(r, 40);
    row->value = 0.5 + rng_uniform(r);
    row->p10 = row->value * 0.9;
    row->p90 = row->value * (rng_below(r, 8) == 0 ? 0.9 : 1.1);
    row->flag = xkeep(xstrdup(rng_below(r, 9) == 0 ? "steal" : ""));
    return row;
}

/* Draws shapes of every kind on both devices, and pairs of them, in any order. */
static void draw_rows(struct kernel_rows *rows, struct rng *r, uint32_t most_gemm)
{
    struct kernel_spec all[64];
    uint32_t n = 0;
    for (uint32_t w = 0; w < 2; w++) {
        for (uint32_t k = 0; k < most_gemm; k++) {
            all[n++] = (struct kernel_spec){.op = KERNEL_GEMM,
                                            .weight_bits = widths[w],
                                            .act_bits = 32,
                                            .rows = 2u << k,
                                            .n = 64,
                                            .k = 64,
                                            .held_out = k == 4};
        }
        for (uint32_t k = 0; k < 3; k++) {
            all[n++] = (struct kernel_spec){.op = KERNEL_GEMV,
                                            .weight_bits = widths[w],
                                            .act_bits = 32,
                                            .rows = 1,
                                            .n = 64 << k,
                                            .k = 64,
                                            .held_out = k == 2};
        }
    }
    all[n++] = (struct kernel_spec){.op = KERNEL_DECODE,
                                    .weight_bits = 16,
                                    .act_bits = 32,
                                    .rows = 2,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 32,
                                    .context_tokens = 100};
    all[n++] =
        (struct kernel_spec){.op = KERNEL_READ, .weight_bits = 32, .rows = 1, .stream_bytes = 4096};
    all[n++] =
        (struct kernel_spec){.op = KERNEL_READ, .weight_bits = 32, .rows = 1, .stream_bytes = 8192};
    all[n++] =
        (struct kernel_spec){.op = KERNEL_COPY, .weight_bits = 32, .rows = 1, .stream_bytes = 4096};
    for (uint32_t k = 0; k < 4; k++) {
        all[n++] = (struct kernel_spec){.op = KERNEL_KNOB,
                                        .weight_bits = 32,
                                        .rows = 1,
                                        .stream_bytes = 4096,
                                        .intensity_flop_per_byte = 1u << k};
    }
    *rows = (struct kernel_rows){.n = 0};
    for (uint32_t repetition = 0; repetition < REPETITIONS; repetition++) {
        for (uint32_t i = 0; i < 2 * n; i++) {
            (void)new_row(rows, r, (int)(i % 2), &all[i / 2], repetition);
        }
        for (uint32_t i = 0; i < 12; i++) {
            const struct kernel_spec *other = &all[rng_below(r, n)];
            struct kernel_row *row = new_row(rows, r, 0, &all[i * (n - 1) / 11], repetition);
            row->metric = KERNEL_METRIC_SLOWDOWN;
            row->value += 1.0;
            row->partner = xkeep(xformat("gpu0:%s", kernel_spec_name(other)));
        }
        struct kernel_row *power =
            new_row(rows, r, 0, &all[0], 50); /* of no time: no part of a fit */
        power->metric = KERNEL_METRIC_POWER_W;
    }
}

static bool same_cell(const struct kernel_row *a, const struct kernel_row *b)
{
    return a->metric == b->metric && strcmp(a->device, b->device) == 0 &&
           strcmp(a->model, b->model) == 0 && strcmp(a->partner, b->partner) == 0;
}

static bool counts(const struct kernel_row *r)
{
    return r->flag[0] == '\0' &&
           (r->metric == KERNEL_METRIC_MS || r->metric == KERNEL_METRIC_SLOWDOWN);
}

/* Mean and range of all trusted rows of a cell; seconds. */
static void cell_of(const struct kernel_rows *rows, const struct kernel_row *of,
                    struct kernel_cell *out)
{
    double sum = 0.0;
    *out = (struct kernel_cell){.low = HUGE_VAL, .high = -HUGE_VAL};
    for (size_t i = 0; i < rows->n; i++) {
        const struct kernel_row *r = &rows->v[i];
        double value = r->metric == KERNEL_METRIC_MS ? r->value * 1e-3 : r->value;
        if (counts(r) && same_cell(r, of)) {
            sum += log(value);
            out->n++;
            out->low = fmin(out->low, value);
            out->high = fmax(out->high, value);
        }
    }
    out->log_mean = sum / out->n;
}

/* pi / 2 of the variance of a mean of n normal values, whose standard deviation follows from the
 * distance of the ranks of p10 and p90 (Blom); half more for a slowdown. */
static double var_of(const struct kernel_row *r)
{
    double n = r->samples;
    if (n < 3 || r->p90 <= r->p10) {
        return 0.0;
    }
    double high = gsl_cdf_ugaussian_Pinv((ceil(0.9 * n) - 0.375) / (n + 0.25));
    double low = gsl_cdf_ugaussian_Pinv((ceil(0.1 * n) - 0.375) / (n + 0.25));
    double sd = (log(r->p90) - log(r->p10)) / (high - low);
    return 1.5708 * sd * sd / n * (r->metric == KERNEL_METRIC_SLOWDOWN ? 1.5 : 1.0);
}

/* Returns the best W or Q over time of the fitted single cells of a device. Products are taken by
 * width. */
static double best_of(const struct kernel_rows *rows, int device, uint32_t bits, enum kernel_op op,
                      bool flop, uint32_t *n)
{
    double top = 0.0;
    *n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct kernel_row *r = &rows->v[i];
        bool first = counts(r);
        for (size_t k = 0; k < i && first; k++) {
            first = !counts(&rows->v[k]) || !same_cell(r, &rows->v[k]);
        }
        if (first && r->metric == KERNEL_METRIC_MS && strcmp(r->device, devices[device]) == 0 &&
            r->op == op && (bits == 0 || r->weight_bits == bits) && !r->held_out) {
            struct kernel_cell c;
            cell_of(rows, r, &c);
            top = fmax(top, (flop ? r->flop : r->bytes) / exp(c.log_mean));
            ++*n;
        }
    }
    return top;
}

static void check_start(const struct fit_problem *f, int at, enum kernel_param p, int device,
                        double wanted)
{
    ck_assert_int_ge(at, 0);
    ck_assert_int_eq(f->fit->params[at].param, p);
    ck_assert_str_eq(f->fit->params[at].device, devices[device]);
    double is = fit_from_x(p, f->x[at]);
    ck_assert_msg(near(is, wanted), "%s starts at %g, not %g", kernel_param_name(p), is, wanted);
}

/* The cap begins at the largest total that a pair reached. For both sides that is the bytes that
 * they move alone, divided by the slowdown. There is a sensitivity for each kind and width of
 * product or decode that runs with another. */
static void check_contention(const struct kernel_rows *rows, const struct fit_problem *f)
{
    double most = 0.0;
    uint32_t sensitive = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct kernel_row *r = &rows->v[i];
        if (!counts(r) || r->metric != KERNEL_METRIC_SLOWDOWN || r->held_out) {
            continue;
        }
        struct kernel_cell slow;
        double moved = 0.0;
        int found = 0;
        cell_of(rows, r, &slow);
        for (size_t k = 0; k < rows->n && found < 3; k++) {
            const struct kernel_row *x = &rows->v[k];
            const char *name = xkeep(xformat("%s:%s", x->device, x->model));
            bool own = strcmp(x->device, r->device) == 0 && strcmp(x->model, r->model) == 0;
            int which = own ? 1 : strcmp(name, r->partner) == 0 ? 2 : 0;
            if (counts(x) && x->metric == KERNEL_METRIC_MS && (which & ~found) != 0) {
                struct kernel_cell alone;
                cell_of(rows, x, &alone);
                moved += x->bytes / exp(alone.log_mean);
                found |= which;
            }
        }
        most = found == 3 ? fmax(most, moved / exp(slow.log_mean)) : most;
        bool is = r->op == KERNEL_GEMV || r->op == KERNEL_GEMM || r->op == KERNEL_DECODE;
        for (size_t k = 0; k < i && is; k++) {
            const struct kernel_row *x = &rows->v[k];
            is = !counts(x) || x->metric != r->metric || x->held_out || x->op != r->op ||
                 x->weight_bits != r->weight_bits;
        }
        sensitive += is;
    }
    uint32_t lambdas = 0;
    for (uint32_t i = 0; i < f->fit->n_params; i++) {
        lambdas += f->fit->params[i].param == KERNEL_PARAM_LAMBDA;
    }
    ck_assert_uint_eq(lambdas, sensitive);
    ck_assert_int_ge(f->cap, 0);
    ck_assert_int_eq(f->fit->params[f->cap].param, KERNEL_PARAM_CAP);
    ck_assert_int_eq(f->fit->params[f->sharpness].param, KERNEL_PARAM_SHARPNESS);
    double cap = fit_from_x(KERNEL_PARAM_CAP, f->x[f->cap]);
    ck_assert_msg(near(cap / most, 1.0), "the cap begins at %g, not %g", cap, most);
}

START_TEST(cells_and_starting_values_are_those_of_the_rows)
{
    struct rng r;
    struct err e = ERR_INIT;
    struct kernel_rows rows;
    struct kernel_fit fit;
    static struct fit_problem f;
    uint32_t most_gemm = _i % 3 == 2 ? 2 : 5; /* two are too few for a rate of their own */
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 105, 0));
    draw_rows(&rows, &r, most_gemm);
    memset(&fit, 0, sizeof fit);
    memset(&f, 0, sizeof f);
    f.fit = &fit;
    ck_assert_msg(fit_prepare(&f, &rows, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    uint32_t flagged = 0;
    uint32_t cells = 0;
    uint32_t points = 0;
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *row = &rows.v[i];
        bool timed = row->metric == KERNEL_METRIC_MS || row->metric == KERNEL_METRIC_SLOWDOWN;
        bool first = true;
        flagged += timed && row->flag[0] != '\0';
        if (!counts(row)) {
            continue;
        }
        for (size_t k = 0; k < i && first; k++) {
            first = !counts(&rows.v[k]) || !same_cell(row, &rows.v[k]);
        }
        cells += first;
        bool fitted = !row->held_out && (row->op != KERNEL_GEMM || most_gemm > 2);
        const struct kernel_cell *c = NULL;
        uint32_t same = 0;
        for (uint32_t k = 0; k < fit.n_cells; k++) {
            if (same_cell(fit.cells[k].row, row)) {
                c = &fit.cells[k];
                same++;
            }
        }
        ck_assert_uint_eq(same, 1);
        struct kernel_cell wanted;
        cell_of(&rows, row, &wanted);
        ck_assert_int_eq(c->held_out, row->held_out);
        ck_assert(c->n == 0 || c->n == wanted.n); /* 0: nothing describes it or its partner */
        ck_assert(near(c->log_mean, wanted.log_mean));
        ck_assert(near(c->low, wanted.low) && near(c->high, wanted.high));
        ck_assert_int_eq(c->partner >= 0, row->metric == KERNEL_METRIC_SLOWDOWN);
        if (c->partner >= 0) {
            const struct kernel_row *p = fit.cells[c->partner].row;
            const char *name = xkeep(xformat("%s:%s", p->device, p->model));
            ck_assert_str_eq(name, row->partner);
            ck_assert_int_eq(fit.cells[c->partner].partner, -1);
        } else {
            ck_assert_int_eq(c->n == 0, row->op == KERNEL_GEMM && most_gemm <= 2);
        }
        fitted = fitted && c->n > 0;
        uint32_t found = 0;
        for (uint32_t k = 0; k < f.n_points; k++) {
            const struct fit_point *p = &f.points[k];
            double value = row->metric == KERNEL_METRIC_MS ? row->value * 1e-3 : row->value;
            found += &fit.cells[p->cell] == c && p->repetition == row->repetition &&
                     near(p->log_value, log(value)) && near(p->var, var_of(row)) &&
                     p->weight == 1.0;
        }
        ck_assert_msg(found == (fitted ? 1u : 0u), "%s, repetition %u: %u points", row->model,
                      row->repetition, found);
        points += fitted;
    }
    ck_assert_uint_eq(fit.n_flagged, flagged);
    ck_assert_uint_eq(fit.n_repetitions, REPETITIONS);
    ck_assert_uint_ge(fit.n_cells, cells); /* partners that have no trusted time have one, too */
    ck_assert_uint_eq(f.n_points, points);
    ck_assert_uint_eq(fit.n_points, points);
    ck_assert_int_eq(f.n_devices, 2);
    ck_assert_int_eq(f.n_groups, 4);
    for (int g = 0; g < f.n_groups; g++) {
        const struct fit_group *x = &f.groups[g];
        int d = strcmp(f.devices[x->device].row->device, devices[0]) == 0 ? 0 : 1;
        uint32_t n = 0;
        double rate = best_of(&rows, d, x->weight_bits, KERNEL_GEMM, true, &n);
        if (n >= 3) {
            check_start(&f, x->rate, KERNEL_PARAM_RATE, d, rate);
            check_start(&f, x->bandwidth, KERNEL_PARAM_BANDWIDTH, d,
                        best_of(&rows, d, x->weight_bits, KERNEL_GEMM, false, &n));
            check_start(&f, x->knee, KERNEL_PARAM_KNEE, d, 2.0);
        } else {
            ck_assert(x->rate < 0 && x->bandwidth < 0 && x->knee < 0);
        }
        uint32_t one = 0;
        double bandwidth = best_of(&rows, d, x->weight_bits, KERNEL_GEMV, false, &one);
        if (one > 0) {
            check_start(&f, x->bandwidth_one, KERNEL_PARAM_BANDWIDTH_ONE, d, bandwidth);
        }
        ck_assert_int_eq(x->launch >= 0, n + one >= 3);
    }
    for (int i = 0; i < f.n_devices; i++) {
        const struct fit_device *x = &f.devices[i];
        int d = strcmp(x->row->device, devices[0]) == 0 ? 0 : 1;
        uint32_t n = 0;
        check_start(&f, x->read, KERNEL_PARAM_READ, d,
                    best_of(&rows, d, 0, KERNEL_READ, false, &n));
        check_start(&f, x->copy, KERNEL_PARAM_COPY, d,
                    best_of(&rows, d, 0, KERNEL_COPY, false, &n));
        check_start(&f, x->attention, KERNEL_PARAM_ATTENTION, d,
                    best_of(&rows, d, 0, KERNEL_DECODE, true, &n));
        check_start(&f, x->knob_rate, KERNEL_PARAM_KNOB_RATE, d,
                    best_of(&rows, d, 0, KERNEL_KNOB, true, &n));
        check_start(&f, x->knob_knee, KERNEL_PARAM_KNOB_KNEE, d, 2.0);
    }
    check_contention(&rows, &f);
    free(f.points);
    free(fit.cells);
    err_fini(&e);
}
END_TEST

/* ---- weights, drift and tests ---- */

enum { CELLS = 14, POINTS = CELLS * 8 };

static struct kernel_fit fit;
static struct fit_problem problem;
static struct kernel_cell some_cells[CELLS];
static struct fit_point some_points[POINTS];

/* Draws cells of one to eight points, sorted. Every third has a partner. */
static void draw_points(struct rng *r, double noise)
{
    memset(&fit, 0, sizeof fit);
    memset(&problem, 0, sizeof problem);
    problem = (struct fit_problem){.fit = &fit, .points = some_points, .cap = -1};
    fit.cells = some_cells;
    fit.n_cells = CELLS;
    fit.n_repetitions = 8;
    for (int c = 0; c < CELLS; c++) {
        double level = rng_uniform(r);
        some_cells[c] = (struct kernel_cell){.partner = c % 3 == 2 ? 0 : -1};
        some_cells[c].predicted = exp(level + 0.02 * (rng_uniform(r) - 0.5));
        uint32_t n = 1 + rng_below(r, 8);
        for (uint32_t k = 0; k < n; k++) {
            some_points[problem.n_points++] =
                (struct fit_point){c, k, level + noise * (rng_uniform(r) - 0.5),
                                   1e-4 * rng_uniform(r), 0.5 + rng_uniform(r)};
        }
    }
}

static bool is_alone(const struct fit_point *p)
{
    return some_cells[p->cell].partner < 0;
}

/* Over the points of one cell: how many, the mean of their logarithms, and of their variances. */
struct over {
    double n, mean, var;
};

static struct over over_cell(int cell)
{
    struct over o = {0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < problem.n_points; i++) {
        if (some_points[i].cell == cell) {
            o.n += 1.0;
            o.mean += some_points[i].log_value;
            o.var += some_points[i].var;
        }
    }
    return (struct over){o.n, o.mean / o.n, o.var / o.n};
}

/* Scatter of repetitions: squares, the weighted ones, the part that samples explain, degrees of
 * freedom. */
static void scatter(bool alone, double out[4])
{
    memset(out, 0, 4 * sizeof *out);
    for (int c = 0; c < CELLS; c++) {
        struct over o = over_cell(c);
        if ((some_cells[c].partner < 0) == alone) {
            out[2] += o.var * (o.n - 1.0);
            out[3] += o.n - 1.0;
        }
    }
    for (uint32_t i = 0; i < problem.n_points; i++) {
        struct over o = over_cell(some_points[i].cell);
        if (is_alone(&some_points[i]) == alone) {
            double off = some_points[i].log_value - o.mean;
            out[0] += off * off;
            out[1] += some_points[i].weight * some_points[i].weight * off * off;
        }
    }
    out[3] -= alone ? fit.n_repetitions - 1.0 : 0.0;
}

START_TEST(weights_are_of_samples_and_scatter)
{
    struct rng r;
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 106, 0));
    draw_points(&r, _i % 4 == 0 ? 0.0 : 0.1);
    double wanted[POINTS];
    for (uint32_t i = 0; i < problem.n_points; i++) {
        double s[4];
        struct over o = over_cell(some_points[i].cell);
        scatter(is_alone(&some_points[i]), s);
        double between = s[3] >= 1.0 ? fmax(0.0, (s[0] - s[2]) / s[3]) : 1e-4;
        wanted[i] = 1.0 / sqrt(fmax(1e-10, o.var + between));
    }
    fit_weigh(&problem);
    for (uint32_t i = 0; i < problem.n_points; i++) {
        ck_assert_msg(near(some_points[i].weight, wanted[i]), "%g, not %g", some_points[i].weight,
                      wanted[i]);
    }
}
END_TEST

START_TEST(a_slow_repetition_is_taken_out_of_times_alone)
{
    struct rng r;
    double off[8] = {0.0};
    double weight[8] = {0.0};
    double wanted[POINTS];
    double squares = 0.0;
    double used = 0.0;
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 107, 0));
    draw_points(&r, 0.1);
    for (uint32_t i = 0; i < problem.n_points; i++) {
        const struct fit_point *p = &some_points[i];
        struct over o = over_cell(p->cell);
        off[p->repetition] += is_alone(p) ? p->weight * p->weight * (p->log_value - o.mean) : 0.0;
        weight[p->repetition] += is_alone(p) ? p->weight * p->weight : 0.0;
    }
    for (int k = 0; k < 8; k++) {
        off[k] = weight[k] > 0.0 ? off[k] / weight[k] : 0.0;
        squares += off[k] * off[k];
        used += weight[k] > 0.0;
    }
    for (uint32_t i = 0; i < problem.n_points; i++) {
        const struct fit_point *p = &some_points[i];
        wanted[i] = p->log_value - (is_alone(p) ? off[p->repetition] : 0.0);
    }
    fit_remove_drift(&problem);
    for (uint32_t i = 0; i < problem.n_points; i++) {
        ck_assert(near(some_points[i].log_value, wanted[i]));
    }
    ck_assert_double_gt(used, 1.0);
    ck_assert(near(fit.drift_frac, sqrt(squares / (used - 1.0))));
    ck_assert(near(problem.drift_var, squares / (used - 1.0) / used));
}
END_TEST

/* The test compares F of the means' misfit over the scatter of repetitions, and the misfit beyond
 * chance. */
START_TEST(the_form_is_held_against_the_scatter)
{
    struct rng r;
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 108, 0));
    draw_points(&r, 0.02);
    fit_weigh(&problem);
    fit.n_params = 3;
    fit.params[0].param = KERNEL_PARAM_RATE;
    fit.params[1].param = KERNEL_PARAM_CAP;
    fit.params[2].param = KERNEL_PARAM_SHARPNESS;
    fit_lack_of_fit(&problem);
    for (int alone = 0; alone < 2; alone++) {
        const struct kernel_lack_of_fit *is = alone ? &fit.alone : &fit.together;
        double s[4];
        double misfit = 0.0;
        double weighted = 0.0;
        double chance = 0.0;
        double rows = 0.0;
        double cells = 0.0;
        scatter(alone == 1, s);
        for (int c = 0; c < CELLS; c++) {
            struct over o = over_cell(c);
            double w = 0.0;
            for (uint32_t i = 0; i < problem.n_points; i++) {
                w = some_points[i].cell == c ? some_points[i].weight : w;
            }
            double off = o.mean - log(some_cells[c].predicted);
            if ((some_cells[c].partner < 0) == (alone == 1)) {
                misfit += o.n * off * off;
                weighted += o.n * w * w * off * off;
                chance += 1.0 / (w * w);
                rows += o.n;
                cells += 1.0;
            }
        }
        double dof = cells - (alone ? 1.0 : 2.0);
        ck_assert_int_eq(is->tested, s[3] >= 1.0 && dof >= 1.0);
        if (!is->tested) {
            continue;
        }
        double f = weighted / dof / (s[1] / s[3]);
        double left = sqrt(fmax(0.0, misfit - chance * dof / cells) / rows);
        ck_assert(near(is->noise_frac, sqrt(s[0] / s[3])));
        ck_assert(near(is->f, f) && near(is->p, gsl_cdf_fdist_Q(f, dof, s[3])));
        ck_assert_msg(near(is->misfit_frac, left), "%g, not %g", is->misfit_frac, left);
        ck_assert_int_eq(is->wrong, is->p < 0.01 && left > 0.01);
    }
}
END_TEST

/* Intervals are Bonferroni's over all parameters, two-sided at 95 %, and each stage has its degrees
 * of freedom. Rates are exponentials of the fitted numbers, launches are in microseconds, and knees
 * and sharpness are inverses. */
START_TEST(intervals_are_of_students_quantiles)
{
    static const enum kernel_param all[] = {
        KERNEL_PARAM_RATE, KERNEL_PARAM_KNEE,      KERNEL_PARAM_LAUNCH, KERNEL_PARAM_READ,
        KERNEL_PARAM_CAP,  KERNEL_PARAM_SHARPNESS, KERNEL_PARAM_LAMBDA};
    enum { N = sizeof all / sizeof all[0] };
    struct rng r;
    double covariance[N * N] = {0.0};
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 109, 0));
    draw_points(&r, 0.02);
    fit.n_params = N;
    problem.cap = 4;
    problem.covariance = covariance;
    problem.dof[0] = 1.0 + rng_below(&r, 40);
    problem.dof[1] = 1.0 + rng_below(&r, 40);
    problem.drift_var = 1e-4 * rng_uniform(&r);
    for (int i = 0; i < N; i++) {
        fit.params[i].param = all[i];
        problem.x[i] = (rng_below(&r, 2) > 0 ? 1.0 : -1.0) * (0.2 + rng_uniform(&r));
        covariance[i * N + i] = rng_below(&r, 6) == 0 ? 0.0 : 0.04 * rng_uniform(&r);
    }
    fit_intervals(&problem);
    for (int i = 0; i < N; i++) {
        const struct kernel_estimate *q = &fit.params[i];
        bool inverse = all[i] == KERNEL_PARAM_KNEE || all[i] == KERNEL_PARAM_SHARPNESS;
        bool rate = all[i] == KERNEL_PARAM_RATE || all[i] == KERNEL_PARAM_READ ||
                    all[i] == KERNEL_PARAM_CAP;
        double unit = all[i] == KERNEL_PARAM_LAUNCH ? 1e-6 : 1.0;
        double x = inverse ? fabs(problem.x[i]) : problem.x[i];
        /* All rates fall together when everything gets slower, launches grow, the rest stays. */
        double drift = rate ? 1.0 : all[i] == KERNEL_PARAM_LAUNCH ? x * x : 0.0;
        double t = gsl_cdf_tdist_Pinv(1.0 - 0.05 / (2.0 * N), problem.dof[i >= 4]);
        double var = covariance[i * N + i];
        double half = var > 0.0 ? t * sqrt(var + drift * problem.drift_var) : HUGE_VAL;
        double value = rate ? exp(x) : inverse ? 1.0 / x : unit * x;
        double low = rate ? exp(x - half) : inverse ? 1.0 / (x + half) : unit * (x - half);
        double high = rate      ? exp(x + half)
                      : inverse ? (half < x ? 1.0 / (x - half) : HUGE_VAL)
                                : unit * (x + half);
        ck_assert_msg(near(q->value / unit, value / unit) && near(q->low / unit, low / unit) &&
                          near(q->high / unit, high / unit),
                      "%s: %g [%g, %g], not %g [%g, %g]", kernel_param_name(all[i]), q->value,
                      q->low, q->high, value, low, high);
        double wide = (high - low) / 2.0;
        bool resolved = wide < 0.5 * fabs(value) || (all[i] == KERNEL_PARAM_LAMBDA && wide < 0.05);
        ck_assert_int_eq(q->resolved, resolved && var > 0.0);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("fit", .timeout_s = 60),
    LOOP(cells_and_starting_values_are_those_of_the_rows, 6),
    LOOP(weights_are_of_samples_and_scatter, 20),
    LOOP(a_slow_repetition_is_taken_out_of_times_alone, 20),
    LOOP(the_form_is_held_against_the_scatter, 20),
    LOOP(intervals_are_of_students_quantiles, 20),
};
SUITE_MAIN("parts of a fit", suite)
