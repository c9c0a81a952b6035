/* How far forms of kernel times are off on shapes that none has seen: anchors and tables worked out
 * again on drawn cells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/kernel_fit_impl.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1.0, fabs(b)) || (isinf(a) && a == b);
}

static struct kernel_fit fit;

enum { FORMED = 60 };

static struct kernel_cell formed[FORMED];
static struct kernel_row formed_rows[FORMED];

static bool known_alone(const struct kernel_cell *c)
{
    return c->partner < 0 && c->n > 0 && !c->held_out;
}

/* A family is products of a width, attention, or one kind of streams, on one device. */
static bool of_family(const struct kernel_cell *c, const struct kernel_cell *o)
{
    bool product = kernel_op_is_product(c->row->op);
    bool attention = kernel_op_is_attention(c->row->op);
    return known_alone(o) && o->device == c->device &&
           (product     ? kernel_op_is_product(o->row->op) && c->group == o->group
            : attention ? kernel_op_is_attention(o->row->op)
                        : c->row->op == o->row->op);
}

/* Appendix B's anchors are two kernels of c's family: the most intense one, and the largest of
 * those at most twice as intense as the least. */
static double by_anchors(const struct kernel_cell *c)
{
    const struct kernel_cell *compute = NULL;
    const struct kernel_cell *memory = NULL;
    double least = HUGE_VAL;
    for (int i = 0; i < FORMED; i++) {
        least = of_family(c, &formed[i]) ? fmin(least, formed_rows[i].flop / formed_rows[i].bytes)
                                         : least;
    }
    for (int i = 0; i < FORMED; i++) {
        const struct kernel_cell *o = &formed[i];
        double intensity = o->row->flop / o->row->bytes;
        if (of_family(c, o)) {
            bool more = compute == NULL || intensity > compute->row->flop / compute->row->bytes;
            bool larger = memory == NULL || o->row->bytes > memory->row->bytes;
            compute = more ? o : compute;
            memory = intensity <= 2.0 * least && larger ? o : memory;
        }
    }
    if (memory == NULL) {
        return (double)NAN;
    }
    double computes = compute->row->flop > 0.0 ? exp(compute->log_mean) / compute->row->flop : 0.0;
    return fmax(c->row->bytes * exp(memory->log_mean) / memory->row->bytes,
                c->row->flop * computes);
}

/* Time per unit of work against a size, both in logarithms: flop of a row by rows of products,
 * bytes by flop a byte of knobs, and bytes by bytes. */
static void size_and_unit(const struct kernel_row *r, double *size, double *unit)
{
    bool gemm = r->op == KERNEL_GEMM;
    bool knob = r->op == KERNEL_KNOB;
    *size = gemm ? r->rows : knob ? r->flop / r->bytes : r->bytes;
    *unit = gemm ? r->flop / r->rows : r->bytes;
}

static double by_table(const struct kernel_cell *c)
{
    double size;
    double unit;
    const struct kernel_cell *next[2] = {NULL, NULL}; /* the nearest below and above, or equal */
    size_and_unit(c->row, &size, &unit);
    for (int i = 0; i < FORMED; i++) {
        const struct kernel_cell *o = &formed[i];
        double at;
        double own;
        if (!known_alone(o) || o->row->op != c->row->op || o->device != c->device ||
            o->group != c->group) {
            continue;
        }
        size_and_unit(o->row, &at, &own);
        for (int above = 0; above < 2; above++) {
            double had = 0.0;
            double had_unit = 0.0;
            if (above ? at < size : at > size) {
                continue;
            }
            if (next[above] != NULL) {
                size_and_unit(next[above]->row, &had, &had_unit);
            }
            bool nearer = next[above] == NULL || (above ? at < had : at > had);
            next[above] = nearer || (at == had && own > had_unit)
                              ? o
                              : next[above]; /* the larger of equals */
        }
    }
    if (next[0] == NULL && next[1] == NULL) {
        return (double)NAN;
    }
    const struct kernel_cell *low = next[0] != NULL ? next[0] : next[1];
    const struct kernel_cell *high = next[1] != NULL ? next[1] : next[0];
    double a;
    double b;
    double low_unit;
    double high_unit;
    size_and_unit(low->row, &a, &low_unit);
    size_and_unit(high->row, &b, &high_unit);
    double from = low->log_mean - log(low_unit);
    double to = high->log_mean - log(high_unit);
    double part = b > a ? log(size / a) / log(b / a) : 0.0;
    return unit * exp(from + part * (to - from));
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

static void expect_error(const struct kernel_form_error *is, enum kernel_form form, int op)
{
    double errors[FORMED];
    uint32_t n = 0;
    for (int i = 0; i < FORMED; i++) {
        const struct kernel_cell *c = &formed[i];
        if (c->partner >= 0 || c->n == 0 || !c->held_out || (op >= 0 && (int)c->row->op != op)) {
            continue;
        }
        double s = form == KERNEL_FORM_TWO_ANCHOR ? by_anchors(c)
                   : form == KERNEL_FORM_TABLE    ? by_table(c)
                                                  : c->predicted;
        if (isfinite(s)) {
            errors[n++] = fabs(s / exp(c->log_mean) - 1.0);
        }
    }
    qsort(errors, n, sizeof *errors, by_size);
    double median = n == 0 ? 0.0 : (errors[(n - 1) / 2] + errors[n / 2]) / 2.0;
    ck_assert_uint_eq(is->n, n);
    ck_assert_msg(near(is->median_frac, median) &&
                      near(is->worst_frac, n > 0 ? errors[n - 1] : 0.0),
                  "%s, op %d: %g and %g of %u, not %g", kernel_form_name(form), op, is->median_frac,
                  is->worst_frac, n, median);
}

START_TEST(forms_are_judged_on_what_none_has_seen)
{
    static const enum kernel_op ops[] = {KERNEL_GEMM, KERNEL_GEMM,   KERNEL_GEMV,   KERNEL_KNOB,
                                         KERNEL_READ, KERNEL_DECODE, KERNEL_PREFILL};
    static struct fit_problem f;
    struct rng r;
    rng_init(&r, rng_key((uint64_t)_i, RNG_TEST, 110, 0));
    memset(&fit, 0, sizeof fit);
    f = (struct fit_problem){.fit = &fit};
    fit.cells = formed;
    fit.n_cells = FORMED;
    for (int i = 0; i < FORMED; i++) {
        enum kernel_op op = ops[rng_below(&r, 7)];
        int device = (int)rng_below(&r, 2);
        bool grouped = kernel_op_is_product(op) || kernel_op_is_attention(op);
        formed_rows[i] = (struct kernel_row){.op = op,
                                             .rows = op == KERNEL_GEMM ? 1 + rng_below(&r, 8) : 1,
                                             .bytes = 1e6 * (1.0 + rng_below(&r, 6)),
                                             .flop = 1e6 * rng_below(&r, 200)};
        formed[i] = (struct kernel_cell){.row = &formed_rows[i],
                                         .device = device,
                                         .group = grouped ? 2 * device + (int)rng_below(&r, 2) : -1,
                                         .partner = rng_below(&r, 8) == 0 ? 0 : -1,
                                         .held_out = rng_below(&r, 3) == 0,
                                         .n = rng_below(&r, 9) == 0 ? 0 : 3,
                                         .log_mean = rng_uniform(&r),
                                         .predicted = 0.5 + 3.0 * rng_uniform(&r)};
        formed_rows[i].flop += op == KERNEL_GEMM || op == KERNEL_KNOB ? 1e6 : 0.0;
    }
    fit_judge(&f);
    for (int form = 0; form < KERNEL_FORM_COUNT; form++) {
        for (int op = 0; op < KERNEL_OP_COUNT; op++) {
            expect_error(&fit.errors[form][op], (enum kernel_form)form, op);
        }
        expect_error(&fit.all[form], (enum kernel_form)form, -1);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("forms"),
    LOOP(forms_are_judged_on_what_none_has_seen, 20),
};
SUITE_MAIN("forms of kernel times", suite)
