/* Machines left out: what is predicted, and that nothing of the machine but its measured rows
 * enters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/validation/leave_machine.h"
#include "sim/base/arena.h"
#include "sim/base/datadir.h"
#include "tests/helpers/suite.h"

static struct err err;
static struct catalog catalog;
static struct points points;
static struct leave_rows rows;
static const struct leave_points all = {&points, &points};

/* Two machines of one family, 8-bit weights, three models: enough to fit the 155H. */
static void setup(void)
{
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(catalog_open(&catalog, &err), 0);
    ck_assert_int_eq(points_read(datadir_path("hwmodels/points/reference.csv"), &points, &err), 0);
    size_t n = 0;
    for (size_t i = 0; i < points.n; i++) {
        const struct point *p = &points.v[i];
        bool its = strcmp(p->soc, "core-ultra-7-165h") == 0;
        bool other = strcmp(p->soc, "core-ultra-7-155h") == 0;
        bool model = strcmp(p->model, "chatglm3-6b") == 0 || strcmp(p->model, "gemma-7b") == 0 ||
                     strcmp(p->model, "stablelm-3b-4e1t") == 0;
        if (p->weight_bits == 8 && (its || other) && model) {
            points.v[n++] = *p;
        }
    }
    points.n = n;
}

static void teardown(void)
{
    err_fini(&err);
}

static bool of_165h(const struct leave_row *r)
{
    return strcmp(r->soc, "core-ultra-7-165h") == 0 && !r->averaged;
}

/* The 165H has two models at 8 bits, each with four lengths of a prefill and of a decode. Each is
 * measured once, and the other one's 8 rows are predicted: 16. There is one sibling, so the average
 * of copies is its copy. */
START_TEST(each_choice_predicts_the_rows_of_other_models)
{
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &rows, &err), 0);
    size_t n = 0;
    for (size_t i = 0; i < rows.n; i++) {
        const struct leave_row *r = &rows.v[i];
        n += of_165h(r);
        ck_assert(r->width_measured && r->same_family);
        ck_assert(r->half[LEAVE_UPDATED] > 0.0 && isnan(r->half[LEAVE_SCALED]));
    }
    ck_assert_uint_eq(n, 16);
    ck_assert_uint_eq(rows.machines, 2);
    ck_assert_uint_eq(rows.pairs, 2);
}
END_TEST

/* All times of the 165H take twice as long. Its sibling does not know them, so the data sheet's
 * error moves by exactly ln 2, the scaled one's not at all, and the update's by less than ln 2. */
START_TEST(a_machine_is_known_by_its_measured_rows_alone)
{
    struct leave_rows twice;
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &rows, &err), 0);
    for (size_t i = 0; i < points.n; i++) {
        points.v[i].value *= strcmp(points.v[i].soc, "core-ultra-7-165h") == 0 ? 2.0 : 1.0;
    }
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &twice, &err), 0);
    ck_assert_uint_eq(rows.n, twice.n);
    for (size_t i = 0; i < rows.n; i++) {
        if (of_165h(&rows.v[i])) {
            const double *a = rows.v[i].ln_error;
            const double *b = twice.v[i].ln_error;
            ck_assert_double_eq_tol(a[LEAVE_SHEET] - b[LEAVE_SHEET], log(2.0), 1e-9);
            ck_assert_double_eq_tol(a[LEAVE_ROOFLINE] - b[LEAVE_ROOFLINE], log(2.0), 1e-9);
            ck_assert_double_eq_tol(a[LEAVE_SCALED], b[LEAVE_SCALED], 1e-9);
            ck_assert(a[LEAVE_UPDATED] - b[LEAVE_UPDATED] < log(2.0));
        }
    }
}
END_TEST

/* The 165H has no short prompts of one model. Where it alone is measured, those of the other model
 * are scaled as its long ones: all errors are the same when every time takes twice as long. */
START_TEST(a_phase_without_rows_is_scaled_as_prompts)
{
    struct leave_rows twice;
    const char *model = NULL;
    size_t n = 0;
    size_t short_ones = 0;
    for (size_t i = 0; i < points.n; i++) {
        const struct point *p = &points.v[i];
        bool its = strcmp(p->soc, "core-ultra-7-165h") == 0;
        model = its && model == NULL ? p->model : model;
        bool out = its && strcmp(p->model, model) == 0 && point_is_prefill(p) &&
                   conformal_phase_of(true, p->input_tokens) == CONFORMAL_SHORT_PREFILL;
        points.v[n] = *p;
        n += out ? 0 : 1;
    }
    ck_assert_uint_lt(n, points.n);
    points.n = n;
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &rows, &err), 0);
    for (size_t i = 0; i < points.n; i++) {
        points.v[i].value *= strcmp(points.v[i].soc, "core-ultra-7-165h") == 0 ? 2.0 : 1.0;
    }
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &twice, &err), 0);
    ck_assert_uint_eq(rows.n, twice.n);
    for (size_t i = 0; i < rows.n; i++) {
        if (of_165h(&rows.v[i])) {
            ck_assert_double_eq_tol(rows.v[i].ln_error[LEAVE_SCALED],
                                    twice.v[i].ln_error[LEAVE_SCALED], 1e-9);
            short_ones += rows.v[i].phase == CONFORMAL_SHORT_PREFILL;
        }
    }
    ck_assert_uint_gt(short_ones, 0);
}
END_TEST

/* One row of the 165H, not measured in the first choice, twice as long: of all predictions of that
 * choice only its own error moves. */
START_TEST(a_row_that_was_not_measured_moves_no_prediction)
{
    struct leave_rows moved;
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &rows, &err), 0);
    const struct point *measured = NULL; /* the first of the 165H */
    struct point *other = NULL;
    for (size_t i = 0; i < points.n; i++) {
        struct point *p = &points.v[i];
        bool its = strcmp(p->soc, "core-ultra-7-165h") == 0 && point_is_latency(p);
        measured = its && measured == NULL ? p : measured;
        other = its && strcmp(p->model, measured->model) != 0 ? p : other;
    }
    ck_assert_ptr_nonnull(other);
    other->value *= 2.0;
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &moved, &err), 0);
    size_t first = rows.n;
    size_t changed = 0;
    for (size_t i = 0; i < rows.n; i++) {
        first = of_165h(&rows.v[i]) && first == rows.n ? i : first;
    }
    for (size_t i = first; i < first + 8; i++) { /* of the first choice */
        changed +=
            fabs(rows.v[i].ln_error[LEAVE_UPDATED] - moved.v[i].ln_error[LEAVE_UPDATED]) > 1e-9;
    }
    ck_assert_uint_eq(changed, 1);
}
END_TEST

/* The 165H's rows as a table of their own, under a version that the files lack: only it is judged,
 * each of its two models by the other one's 8 rows. Twice the times move the data sheet's errors by
 * ln 2 and nothing else of it, so no fit has taken them. */
START_TEST(a_table_apart_is_judged_alone)
{
    struct points known = {.v = xkept(xmalloc(points.n * sizeof *points.v))};
    struct points judged = {.v = xkept(xmalloc(points.n * sizeof *points.v))};
    for (size_t i = 0; i < points.n; i++) {
        struct points *its = strcmp(points.v[i].soc, "core-ultra-7-165h") == 0 ? &judged : &known;
        struct point *p = &its->v[its->n++];
        *p = points.v[i];
        p->runtime = xkeep(xformat("%s", its == &judged ? "openvino-2099.1" : points.v[i].runtime));
    }
    const struct leave_points apart = {&known, &judged};
    struct leave_rows twice;
    ck_assert_int_eq(leave_machines(&catalog, &apart, 1, &rows, &err), 0);
    for (size_t i = 0; i < judged.n; i++) {
        judged.v[i].value *= 2.0;
    }
    ck_assert_int_eq(leave_machines(&catalog, &apart, 1, &twice, &err), 0);
    ck_assert_uint_eq(rows.n, 2 * 16); /* by the copy of the 155H, and by the average of one copy */
    ck_assert_uint_eq(rows.machines, 1);
    for (size_t i = 0; i < rows.n; i++) {
        ck_assert_str_eq(rows.v[i].soc, "core-ultra-7-165h");
        ck_assert_double_eq_tol(rows.v[i].ln_error[LEAVE_SHEET] - twice.v[i].ln_error[LEAVE_SHEET],
                                log(2.0), 1e-9);
    }
}
END_TEST

/* With a third machine each has two siblings. A row that a choice leaves is predicted by each copy,
 * and once by their average. */
START_TEST(copies_of_siblings_are_averaged)
{
    size_t n = 0;
    ck_assert_int_eq(points_read(datadir_path("hwmodels/points/reference.csv"), &points, &err), 0);
    for (size_t i = 0; i < points.n; i++) {
        const struct point *p = &points.v[i];
        bool its = strcmp(p->soc, "core-ultra-7-155h") == 0 ||
                   strcmp(p->soc, "core-ultra-7-165h") == 0 ||
                   strcmp(p->soc, "core-ultra-7-255h") == 0;
        bool model = strcmp(p->model, "chatglm3-6b") == 0 || strcmp(p->model, "gemma-7b") == 0 ||
                     strcmp(p->model, "stablelm-3b-4e1t") == 0 ||
                     strcmp(p->model, "llama-2-7b") == 0;
        if (p->weight_bits == 8 && its && model) {
            points.v[n++] = *p;
        }
    }
    points.n = n;
    ck_assert_int_eq(leave_machines(&catalog, &all, 1, &rows, &err), 0);
    size_t averaged = 0;
    double of_copies = 0.0;
    double of_averages = 0.0;
    for (size_t i = 0; i < rows.n; i++) {
        averaged += rows.v[i].averaged;
        double *sum = rows.v[i].averaged ? &of_averages : &of_copies;
        *sum += rows.v[i].ln_error[LEAVE_UPDATED] * rows.v[i].ln_error[LEAVE_UPDATED];
    }
    ck_assert_uint_gt(averaged, 0);
    ck_assert_uint_eq(rows.n, 3 * averaged);
    ck_assert_double_lt(of_averages, 0.5 * of_copies); /* of half as many */
}
END_TEST

static const struct suite_row tests[] = {
    CASE("machines left out", .setup = setup, .teardown = teardown, .timeout_s = 120),
    TEST(each_choice_predicts_the_rows_of_other_models),
    TEST(a_machine_is_known_by_its_measured_rows_alone),
    TEST(a_phase_without_rows_is_scaled_as_prompts),
    TEST(a_row_that_was_not_measured_moves_no_prediction),
    TEST(a_table_apart_is_judged_alone),
    TEST(copies_of_siblings_are_averaged),
};
SUITE_MAIN("machines left out", tests)
