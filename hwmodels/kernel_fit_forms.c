/* Compares the fitted model, the two-anchor roofline and a table on held-out shapes. */
#include <gsl/gsl_sort.h>

#include "hwmodels/kernel_fit_impl.h"

const char *kernel_form_name(enum kernel_form f)
{
    static const char *const names[KERNEL_FORM_COUNT] = {"two-anchor", "p-norm", "table"};
    return names[f];
}

static bool fitted_alone(const struct kernel_cell *c)
{
    return c->partner < 0 && c->n > 0 && !c->held_out;
}

/* Whether one pair of anchors is for both kernels: products of a width on a device; attention;
 * streams by operation. */
static bool same_family(const struct kernel_cell *a, const struct kernel_cell *b)
{
    if (a->device != b->device) {
        return false;
    }
    enum kernel_op p = a->row->op;
    enum kernel_op q = b->row->op;
    if (kernel_op_is_product(p)) {
        return kernel_op_is_product(q) && a->group == b->group;
    }
    return kernel_op_is_attention(p) ? kernel_op_is_attention(q) : p == q;
}

/* Agent.xpu v2, Appendix B: the bandwidth of the least intense shape, the rate of
 * the most intense one, and the larger of the two terms. */
static double two_anchor_s(const struct kernel_fit *fit, const struct kernel_cell *c)
{
    const struct kernel_cell *memory = NULL;
    const struct kernel_cell *compute = NULL;
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *o = &fit->cells[i];
        if (!fitted_alone(o) || !same_family(c, o)) {
            continue;
        }
        double intensity = o->row->flop / o->row->bytes;
        double high = compute == NULL ? -1.0 : compute->row->flop / compute->row->bytes;
        compute = intensity > high ? o : compute;
        least = fmin(least, intensity);
    }
    /* The smallest shapes are slightly less intense than large ones, and mostly launch cost. So the
     * anchor is the largest of those with about the least intensity. */
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *o = &fit->cells[i];
        if (fitted_alone(o) && same_family(c, o) && o->row->flop / o->row->bytes <= 2.0 * least &&
            (memory == NULL || o->row->bytes > memory->row->bytes)) {
            memory = o;
        }
    }
    if (memory == NULL || compute == NULL) {
        return (double)NAN;
    }
    double by_memory_s = c->row->bytes / memory->row->bytes * exp(memory->log_mean);
    double by_compute_s =
        compute->row->flop > 0.0 ? c->row->flop / compute->row->flop * exp(compute->log_mean) : 0.0;
    return fmax(by_memory_s, by_compute_s);
}

/* A table has the time per unit of work against a size: products by rows, time per weight; the knob
 * by intensity, time per byte; all others by traffic, time per byte. */
static void table_entry(const struct kernel_row *r, double *key, double *unit)
{
    switch (r->op) {
    case KERNEL_GEMM:
        *key = r->rows;
        *unit = r->flop / r->rows;
        break;
    case KERNEL_KNOB:
        *key = r->flop / r->bytes;
        *unit = r->bytes;
        break;
    default:
        *key = r->bytes;
        *unit = r->bytes;
        break;
    }
}

static double table_s(const struct kernel_fit *fit, const struct kernel_cell *c)
{
    double key;
    double unit;
    double low = -HUGE_VAL; /* nearest known keys around the requested one, and their log times */
    double high = HUGE_VAL;
    double low_value = (double)NAN;
    double high_value = (double)NAN;
    double low_unit = 0.0;
    double high_unit = 0.0;
    table_entry(c->row, &key, &unit);
    double want = log(key);
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *o = &fit->cells[i];
        if (!fitted_alone(o) || o->row->op != c->row->op || o->device != c->device ||
            o->group != c->group) {
            continue;
        }
        double o_key;
        double o_unit;
        table_entry(o->row, &o_key, &o_unit);
        double at = log(o_key);
        /* Interpolates logarithms against logarithms, because times and sizes span decades, and
         * power laws are then exact. */
        double value = o->log_mean - log(o_unit);
        if (at <= want && (at > low || (at >= low && o_unit > low_unit))) {
            low = at;
            low_value = value;
            low_unit = o_unit;
        }
        if (at >= want && (at < high || (at <= high && o_unit > high_unit))) {
            high = at;
            high_value = value;
            high_unit = o_unit;
        }
    }
    double per_unit = low_value;
    if (isnan(low_value)) {
        per_unit = high_value; /* beyond the table: its end value */
    } else if (!isnan(high_value) && high > low) {
        per_unit = low_value + (high_value - low_value) * (want - low) / (high - low);
    }
    return exp(per_unit) * unit;
}

static struct kernel_form_error summary(double *errors, uint32_t n)
{
    struct kernel_form_error s = {n, 0.0, 0.0};
    if (n > 0) {
        gsl_sort(errors, 1, n);
        s.median_frac = n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2.0;
        s.worst_frac = errors[n - 1];
    }
    return s;
}

/* op < 0: all ops. */
static struct kernel_form_error judge(const struct kernel_fit *fit, enum kernel_form form, int op)
{
    OWNED double *errors = xcalloc(fit->n_cells + 1, sizeof *errors);
    uint32_t n = 0;
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *c = &fit->cells[i];
        if (c->partner >= 0 || c->n == 0 || !c->held_out ||
            (op >= 0 && c->row->op != (enum kernel_op)op)) {
            continue;
        }
        double predicted_s = form == KERNEL_FORM_TWO_ANCHOR ? two_anchor_s(fit, c)
                             : form == KERNEL_FORM_PNORM    ? c->predicted
                                                            : table_s(fit, c);
        if (isfinite(predicted_s)) {
            errors[n++] = fabs(predicted_s / exp(c->log_mean) - 1.0);
        }
    }
    return summary(errors, n);
}

void fit_judge(struct fit_problem *f)
{
    for (int form = 0; form < KERNEL_FORM_COUNT; form++) {
        for (int op = 0; op < KERNEL_OP_COUNT; op++) {
            f->fit->errors[form][op] = judge(f->fit, (enum kernel_form)form, op);
        }
        f->fit->all[form] = judge(f->fit, (enum kernel_form)form, -1);
    }
}
