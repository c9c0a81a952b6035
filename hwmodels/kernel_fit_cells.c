/* Makes a fit problem of rows: its kernels, and the parameters that they determine. */
#include <gsl/gsl_cdf.h>

#include "hwmodels/kernel_fit_impl.h"

#define MEDIAN_FACTOR 1.5708 /* pi / 2: asymptotic variance of a median over that of a mean */
#define MIN_MANY_SHAPES 3    /* row counts above one for a fit of P, B and p */

static bool same_kernel(const struct kernel_row *a, const struct kernel_row *b)
{
    return strcmp(a->device, b->device) == 0 && strcmp(a->runtime, b->runtime) == 0 &&
           strcmp(a->model, b->model) == 0;
}

static int find_cell(const struct kernel_fit *fit, const struct kernel_row *row)
{
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_row *r = fit->cells[i].row;
        bool alone = fit->cells[i].partner < 0;
        /* The isolated time has a cell, and the slowdown with each partner has another. */
        bool want_alone = row->metric == KERNEL_METRIC_MS;
        if (alone == want_alone && same_kernel(r, row) &&
            (alone || strcmp(r->partner, row->partner) == 0)) {
            return (int)i;
        }
    }
    return -1;
}

/* The isolated cell that a "device:model" names, created without points if it was not measured. */
static int find_partner(struct kernel_fit *fit, const struct kernel_rows *rows, const char *text);

static int new_cell(struct kernel_fit *fit, const struct kernel_row *row, int partner)
{
    fit->cells = xkept_grow(fit->cells, fit->n_cells, sizeof *fit->cells);
    struct kernel_cell *c = &fit->cells[fit->n_cells];
    memset(c, 0, sizeof *c);
    c->row = row;
    c->partner = partner;
    c->group = -1;
    c->device = -1;
    c->held_out = row->held_out;
    c->low = HUGE_VAL;
    c->high = -HUGE_VAL;
    return (int)fit->n_cells++;
}

static int find_partner(struct kernel_fit *fit, const struct kernel_rows *rows, const char *text)
{
    size_t device = strcspn(text, ":");
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_row *r = fit->cells[i].row;
        if (fit->cells[i].partner < 0 && strlen(r->device) == device &&
            strncmp(r->device, text, device) == 0 && strcmp(r->model, text + device + 1) == 0) {
            return (int)i;
        }
    }
    for (size_t i = 0; i < rows->n; i++) {
        const struct kernel_row *r = &rows->v[i];
        if (strlen(r->device) == device && strncmp(r->device, text, device) == 0 &&
            strcmp(r->model, text + device + 1) == 0) {
            /* Its work and bytes are known from the row of the partner. Without points it is not
             * fitted, and its isolated time is predicted. */
            return new_cell(fit, r, -1);
        }
    }
    return -1;
}

/* Mean of the nearest-rank p-quantile of n standard normal samples (Blom 1958). */
static double normal_rank(double p, double n)
{
    return gsl_cdf_ugaussian_Pinv((ceil(p * n) - 0.375) / (n + 0.25));
}

/* Variance of the logarithm of a window's median: pi/2 times that of a mean, for normal samples
 * with the standard deviation of the spread between p10 and p90. A slowdown divides by the mean of
 * two more windows, which adds half. */
static double sampling_var(const struct kernel_row *r)
{
    double n = r->samples;
    if (r->samples < 3 || !(r->p10 > 0.0) || !(r->p90 > r->p10)) {
        return 0.0;
    }
    double sd = log(r->p90 / r->p10) / (normal_rank(0.9, n) - normal_rank(0.1, n));
    double var = MEDIAN_FACTOR * sd * sd / n;
    return r->metric == KERNEL_METRIC_SLOWDOWN ? 1.5 * var : var;
}

static void add_point(struct fit_problem *f, int cell, const struct kernel_row *row)
{
    struct kernel_cell *c = &f->fit->cells[cell];
    double value = row->metric == KERNEL_METRIC_MS ? row->value / 1e3 : row->value;
    c->log_mean = (c->log_mean * c->n + log(value)) / (c->n + 1);
    c->n++;
    c->low = fmin(c->low, value);
    c->high = fmax(c->high, value);
    if (!c->held_out) {
        f->points[f->n_points++] =
            (struct fit_point){cell, row->repetition, log(value), sampling_var(row), 1.0};
    }
}

/* Isolated cells first, because partners need them. */
static int build_cells(struct fit_problem *f, const struct kernel_rows *rows, struct err *e)
{
    struct kernel_fit *fit = f->fit;
    f->points = xcalloc(rows->n + 1, sizeof *f->points);
    for (int pass = 0; pass < 2; pass++) {
        enum kernel_metric want = pass == 0 ? KERNEL_METRIC_MS : KERNEL_METRIC_SLOWDOWN;
        for (size_t i = 0; i < rows->n; i++) {
            const struct kernel_row *r = &rows->v[i];
            if (r->metric != want) {
                continue;
            }
            fit->n_repetitions =
                r->repetition >= fit->n_repetitions ? r->repetition + 1 : fit->n_repetitions;
            /* A left-out row counts as a repetition, because drift is by repetition number. */
            if (r->flag[0] != '\0') {
                fit->n_flagged++;
                continue;
            }
            int cell = find_cell(fit, r);
            if (cell < 0) {
                int partner = pass == 0 ? -1 : find_partner(fit, rows, r->partner);
                if (pass == 1 && partner < 0) {
                    return err_add(e, "%s with %s: no row says what the partner is", r->model,
                                   r->partner);
                }
                cell = new_cell(fit, r, partner);
            }
            add_point(f, cell, r);
        }
    }
    return 0;
}

/* ---- parameters ---- */

static int add_param(struct fit_problem *f, enum kernel_param p, const struct kernel_row *row,
                     uint32_t bits, double start)
{
    struct kernel_fit *fit = f->fit;
    SIM_REQUIRE(fit->n_params < KERNEL_FIT_MAX_PARAMS, "room for every parameter");
    struct kernel_estimate *q = &fit->params[fit->n_params];
    *q = (struct kernel_estimate){.param = p, .device = "", .runtime = "", .weight_bits = bits};
    if (row != NULL) {
        q->device = row->device;
        q->runtime = row->runtime;
        q->op = row->op;
    }
    f->x[fit->n_params] = fit_to_x(p, start);
    return (int)fit->n_params++;
}

static int device_of(struct fit_problem *f, const struct kernel_row *row)
{
    for (int i = 0; i < f->n_devices; i++) {
        if (strcmp(f->devices[i].row->device, row->device) == 0 &&
            strcmp(f->devices[i].row->runtime, row->runtime) == 0) {
            return i;
        }
    }
    if (f->n_devices == FIT_MAX_DEVICES) {
        return -1;
    }
    f->devices[f->n_devices] = (struct fit_device){row, -1, -1, -1, -1, -1};
    return f->n_devices++;
}

static int group_of(struct fit_problem *f, int device, uint32_t bits)
{
    for (int i = 0; i < f->n_groups; i++) {
        if (f->groups[i].device == device && f->groups[i].weight_bits == bits) {
            return i;
        }
    }
    if (f->n_groups == FIT_MAX_GROUPS) {
        return -1;
    }
    f->groups[f->n_groups] = (struct fit_group){device, bits, -1, -1, -1, -1, -1};
    return f->n_groups++;
}

/* Attention reads its cache with the parameters of products of the same width, or else of the
 * widest. */
static int attention_group(const struct fit_problem *f, int device, uint32_t bits)
{
    int widest = -1;
    for (int i = 0; i < f->n_groups; i++) {
        const struct fit_group *g = &f->groups[i];
        if (g->device != device) {
            continue;
        }
        if (g->weight_bits == bits) {
            return i;
        }
        widest = widest < 0 || g->weight_bits > f->groups[widest].weight_bits ? i : widest;
    }
    return widest;
}

static int assign_groups(struct fit_problem *f, struct err *e)
{
    /* Products first, because attention uses one of their groups. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < f->fit->n_cells; i++) {
            struct kernel_cell *c = &f->fit->cells[i];
            c->device = device_of(f, c->row);
            bool product = kernel_op_is_product(c->row->op);
            if (c->device >= 0 && pass == 0 && product) {
                c->group = group_of(f, c->device, c->row->weight_bits);
            } else if (c->device >= 0 && pass == 1 && kernel_op_is_attention(c->row->op)) {
                c->group = attention_group(f, c->device, c->row->weight_bits);
            }
            if (c->device < 0 || (pass == 0 && product && c->group < 0)) {
                return err_add(e, "more than %d devices or %d kernels widths in one fit",
                               FIT_MAX_DEVICES, FIT_MAX_GROUPS);
            }
        }
    }
    return 0;
}

/* Best rate, W/T or Q/T, over fitted isolated cells for which `take` is true; 0: none. */
static double best(const struct fit_problem *f, int device, int group, bool flop,
                   bool (*take)(const struct kernel_cell *c), uint32_t *n)
{
    double top = 0.0;
    *n = 0;
    for (uint32_t i = 0; i < f->fit->n_cells; i++) {
        const struct kernel_cell *c = &f->fit->cells[i];
        if (c->partner < 0 && c->n > 0 && !c->held_out && c->device == device &&
            (group < 0 || c->group == group) && take(c)) {
            double rate = (flop ? c->row->flop : c->row->bytes) / exp(c->log_mean);
            top = fmax(top, rate);
            ++*n;
        }
    }
    return top;
}

/* Shortest time of a product, an upper bound of its launch cost. */
static double shortest_s(const struct fit_problem *f, int group)
{
    double shortest = HUGE_VAL;
    for (uint32_t i = 0; i < f->fit->n_cells; i++) {
        const struct kernel_cell *c = &f->fit->cells[i];
        if (c->group == group && kernel_op_is_product(c->row->op) && c->partner < 0 && c->n > 0 &&
            !c->held_out) {
            shortest = fmin(shortest, exp(c->log_mean));
        }
    }
    return shortest;
}

static bool is_gemm(const struct kernel_cell *c)
{
    return c->row->op == KERNEL_GEMM;
}
static bool is_gemv(const struct kernel_cell *c)
{
    return c->row->op == KERNEL_GEMV;
}
static bool is_attention(const struct kernel_cell *c)
{
    return kernel_op_is_attention(c->row->op);
}
static bool is_read(const struct kernel_cell *c)
{
    return c->row->op == KERNEL_READ;
}
static bool is_copy(const struct kernel_cell *c)
{
    return c->row->op == KERNEL_COPY;
}
static bool is_knob(const struct kernel_cell *c)
{
    return c->row->op == KERNEL_KNOB;
}

static void group_params(struct fit_problem *f, int index)
{
    struct fit_group *g = &f->groups[index];
    const struct kernel_row *row = f->devices[g->device].row;
    uint32_t n;
    double rate = best(f, g->device, index, true, is_gemm, &n);
    /* With fewer shapes, rate, bandwidth and knee are not determined. Starting values are the best
     * of any kernel, because true ones are at least that. */
    if (n >= MIN_MANY_SHAPES) {
        double bandwidth = best(f, g->device, index, false, is_gemm, &n);
        g->rate = add_param(f, KERNEL_PARAM_RATE, row, g->weight_bits, rate);
        g->bandwidth = add_param(f, KERNEL_PARAM_BANDWIDTH, row, g->weight_bits, bandwidth);
        g->knee = add_param(f, KERNEL_PARAM_KNEE, row, g->weight_bits, 2.0);
    }
    uint32_t products = n;
    double one = best(f, g->device, index, false, is_gemv, &n);
    /* The launch costs at most the shortest kernel's time; half of that is the start. */
    if (n + products >= MIN_MANY_SHAPES) {
        g->launch =
            add_param(f, KERNEL_PARAM_LAUNCH, row, g->weight_bits, shortest_s(f, index) / 2.0);
    }
    if (n > 0) {
        g->bandwidth_one = add_param(f, KERNEL_PARAM_BANDWIDTH_ONE, row, g->weight_bits, one);
    }
}

static void device_params(struct fit_problem *f, int index)
{
    struct fit_device *d = &f->devices[index];
    uint32_t n;
    double rate = best(f, index, -1, true, is_attention, &n);
    d->attention = n > 0 ? add_param(f, KERNEL_PARAM_ATTENTION, d->row, 0, rate) : -1;
    double read = best(f, index, -1, false, is_read, &n);
    d->read = n > 0 ? add_param(f, KERNEL_PARAM_READ, d->row, 0, read) : -1;
    double copy = best(f, index, -1, false, is_copy, &n);
    d->copy = n > 0 ? add_param(f, KERNEL_PARAM_COPY, d->row, 0, copy) : -1;
    rate = best(f, index, -1, true, is_knob, &n);
    /* The knob kernel reads a stream, so its knee needs the stream's bandwidth. */
    if (n >= MIN_MANY_SHAPES && d->read >= 0) {
        d->knob_rate = add_param(f, KERNEL_PARAM_KNOB_RATE, d->row, 0, rate);
        d->knob_knee = add_param(f, KERNEL_PARAM_KNOB_KNEE, d->row, 0, 2.0);
    }
}

int fit_lambda(const struct kernel_fit *fit, const struct kernel_cell *c)
{
    for (uint32_t i = 0; i < fit->n_params; i++) {
        const struct kernel_estimate *q = &fit->params[i];
        if (q->param == KERNEL_PARAM_LAMBDA && q->op == c->row->op &&
            q->weight_bits == c->row->weight_bits) {
            return (int)i;
        }
    }
    return -1;
}

/* The cap starts at the largest total of any pair. Streams are the reference, with sensitivity 0.
 */
static void contention_params(struct fit_problem *f)
{
    double cap = 0.0;
    for (uint32_t i = 0; i < f->fit->n_cells; i++) {
        const struct kernel_cell *c = &f->fit->cells[i];
        if (c->partner < 0 || c->n == 0 || c->held_out) {
            continue;
        }
        const struct kernel_cell *p = &f->fit->cells[c->partner];
        if (f->cap < 0) {
            f->cap = add_param(f, KERNEL_PARAM_CAP, NULL, 0, 1.0);
            f->sharpness = add_param(f, KERNEL_PARAM_SHARPNESS, NULL, 0, 5.0);
        }
        double own = f->fit->cells[i].row->bytes;
        for (uint32_t k = 0; k < f->fit->n_cells; k++) { /* its isolated time, if measured */
            const struct kernel_cell *alone = &f->fit->cells[k];
            if (alone->partner < 0 && alone->n > 0 && p->n > 0 && same_kernel(alone->row, c->row)) {
                cap = fmax(cap, (own / exp(alone->log_mean) + p->row->bytes / exp(p->log_mean)) /
                                    exp(c->log_mean));
            }
        }
        bool sensitive =
            c->row->op == KERNEL_GEMV || c->row->op == KERNEL_DECODE || c->row->op == KERNEL_GEMM;
        if (sensitive && fit_lambda(f->fit, c) < 0) {
            int at = add_param(f, KERNEL_PARAM_LAMBDA, c->row, c->row->weight_bits, 0.02);
            /* add_param sets the device of the row, but a sensitivity belongs to a kernel and width
             * on any device. */
            f->fit->params[at].device = f->fit->params[at].runtime = "";
        }
    }
    if (f->cap >= 0) {
        f->x[f->cap] = fit_to_x(KERNEL_PARAM_CAP, cap > 0.0 ? cap : 1e9);
    }
}

/* Whether parameters describe the cell. Otherwise (for instance knobs without reads) its points are
 * dropped. */
static bool described(const struct fit_problem *f, const struct kernel_cell *c)
{
    const struct fit_device *d = &f->devices[c->device];
    switch (c->row->op) {
    case KERNEL_READ:
        return d->read >= 0;
    case KERNEL_COPY:
        return d->copy >= 0;
    case KERNEL_KNOB:
        return d->knob_rate >= 0;
    case KERNEL_GEMM:
        return c->group >= 0 && f->groups[c->group].rate >= 0;
    case KERNEL_GEMV:
        return c->group >= 0 &&
               (f->groups[c->group].bandwidth_one >= 0 || f->groups[c->group].rate >= 0);
    default:
        return d->attention >= 0 && c->group >= 0 &&
               (f->groups[c->group].bandwidth_one >= 0 || f->groups[c->group].rate >= 0);
    }
}

static void drop_undescribed(struct fit_problem *f)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->n_points; i++) {
        const struct kernel_cell *c = &f->fit->cells[f->points[i].cell];
        if (described(f, c) && (c->partner < 0 || described(f, &f->fit->cells[c->partner]))) {
            f->points[kept++] = f->points[i];
        }
    }
    f->n_points = kept;
    for (uint32_t i = 0; i < f->fit->n_cells; i++) {
        struct kernel_cell *c = &f->fit->cells[i];
        if (!described(f, c) || (c->partner >= 0 && !described(f, &f->fit->cells[c->partner]))) {
            c->n = 0;
        }
    }
}

int fit_prepare(struct fit_problem *f, const struct kernel_rows *rows, struct err *e)
{
    f->cap = -1;
    f->sharpness = -1;
    if (build_cells(f, rows, e) != 0 || assign_groups(f, e) != 0) {
        return -EINVAL;
    }
    for (int i = 0; i < f->n_groups; i++) {
        group_params(f, i);
    }
    for (int i = 0; i < f->n_devices; i++) {
        device_params(f, i);
    }
    contention_params(f); /* last, because the second stage fits the parameters from the cap on */
    drop_undescribed(f);
    f->fit->n_points = f->n_points;
    if (f->n_points <= f->fit->n_params || f->fit->n_params == 0) {
        return err_add(e,
                       "%u trusted row%s for %u parameter%s: measure more repetitions (of %u rows "
                       "%u are flagged)",
                       f->n_points, text_plural(f->n_points), f->fit->n_params,
                       text_plural(f->fit->n_params), f->n_points + f->fit->n_flagged,
                       f->fit->n_flagged);
    }
    return 0;
}
