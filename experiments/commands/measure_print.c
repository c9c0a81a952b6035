#include "experiments/commands/measure_print.h"

#include <sys/stat.h>

#include "experiments/shell/cli.h"
#include "hwmodels/kernel_rows.h"

/* ---- trust in the measured rows ---- */

#define ENOUGH_FRAC 0.5

static const struct {
    const char *flag, *why;
} reasons[] = {
    {"foreign_cpu", "others used the processor"},
    {"steal", "the hypervisor took the processor away"},
    {"lost_core", "the kernel's thread did not have its core"},
    {"spikes", "two speeds in one window"},
    {"few_samples", "too slow for the window: a larger --window-s"},
    {"unscreened", "nothing says who else used the processor, or the window is too short"},
    {"in_cache", "weights stay in the processor's cache: a larger --size"},
    {"deadline", "not finished by the deadline"},
    {"not_prepared", "the device refused the kernel"},
    {"failed", "the kernel failed"},
};
#define N_REASONS (sizeof reasons / sizeof reasons[0])

int measure_summary(const char *path, FILE *out, struct err *e)
{
    struct stat st;
    struct kernel_rows rows = {.n = 0};
    size_t n[N_REASONS] = {0};
    size_t timed = 0;
    size_t trusted = 0;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        return EXIT_OK;
    }
    if (kernel_rows_read(&rows, path, e) != 0) {
        return EXIT_CHECK_FAILED;
    }
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        if (r->metric != KERNEL_METRIC_MS && r->metric != KERNEL_METRIC_CO_MS) {
            continue;
        }
        timed++;
        trusted += r->flag[0] == '\0';
        for (size_t k = 0; k < N_REASONS; k++) {
            n[k] += strcmp(reasons[k].flag, r->flag) == 0;
        }
    }
    (void)fprintf(out, "%s: %zu of %zu times can be trusted\n", path, trusted, timed);
    for (size_t k = 0; k < N_REASONS; k++) {
        if (n[k] > 0) {
            (void)fprintf(out, "  %5zu %-12s %s\n", n[k], reasons[k].flag, reasons[k].why);
        }
    }
    bool enough = (double)trusted >= ENOUGH_FRAC * (double)timed;
    if (!enough) {
        (void)fprintf(out, "too few for a fit to rely on: measure again on an idle machine\n");
    }
    return enough ? EXIT_OK : EXIT_CHECK_FAILED;
}

/* Unit and scale of a parameter for people. */
static const char *unit_of(enum kernel_param p, double *scale)
{
    switch (p) {
    case KERNEL_PARAM_RATE:
    case KERNEL_PARAM_ATTENTION:
    case KERNEL_PARAM_KNOB_RATE:
        *scale = 1e-9;
        return "GFLOP/s";
    case KERNEL_PARAM_BANDWIDTH:
    case KERNEL_PARAM_BANDWIDTH_ONE:
    case KERNEL_PARAM_READ:
    case KERNEL_PARAM_COPY:
    case KERNEL_PARAM_CAP:
        *scale = 1e-9;
        return "GB/s";
    case KERNEL_PARAM_LAUNCH:
        *scale = 1e6;
        return "us";
    default:
        *scale = 1.0;
        return "1";
    }
}

static void put_params(const struct kernel_fit *fit, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "parameter", .kind = FRAME_TEXT},
        {.name = "device", .kind = FRAME_TEXT},
        {.name = "runtime", .kind = FRAME_TEXT},
        {.name = "weight_bits", .title = "bits"},
        {.name = "op", .kind = FRAME_TEXT},
        {.name = "unit", .kind = FRAME_TEXT},
        {.name = "value"},
        {.name = "low"},
        {.name = "high"},
        {.name = "resolved", .kind = FRAME_FLAG},
    };
    struct frame *f = DOCUMENT_FRAME(d, "parameters", 0, columns);
    for (uint32_t i = 0; i < fit->n_params; i++) {
        const struct kernel_estimate *q = &fit->params[i];
        double scale;
        const char *unit = unit_of(q->param, &scale);
        FRAME_ROW(f, kernel_param_name(q->param), q->device, q->runtime, q->weight_bits,
                  FRAME_IF(q->param == KERNEL_PARAM_LAMBDA, kernel_op_name(q->op)), unit,
                  q->value * scale, q->low * scale, q->high * scale, q->resolved);
    }
}

static void put_lack(const char *what, const struct kernel_lack_of_fit *l, struct document *d)
{
    DOCUMENT_VALUES(document_within(d, what), "tested", l->tested, "noise_frac", l->noise_frac,
                    "misfit_frac", l->misfit_frac, "f", l->f, "p", l->p, "wrong_form", l->wrong);
    if (!l->tested) {
        document_note(d, "%-9s form not tested: needs repetitions and more shapes", what);
        return;
    }
    document_note(d, "%-9s noise %.2f %%, misfit %.2f %%, F = %.3g, p = %.2g: %s", what,
                  l->noise_frac * 100.0, l->misfit_frac * 100.0, l->f, l->p,
                  l->wrong ? "WRONG FORM, do not trust the intervals" : "the form holds");
}

/* Notes if most parameters are not resolved: within so much noise every form fits. */
static void put_unresolved(const struct kernel_fit *fit, struct document *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fit->n_params; i++) {
        n += !fit->params[i].resolved;
    }
    if (2 * n > fit->n_params) {
        document_note(d,
                      "%" PRIu32 " of %" PRIu32
                      " parameters are not resolved: with so much noise every form holds",
                      n, fit->n_params);
    }
}

/* Puts a row per op and a column per form. In data, a form has its ops. */
static void put_forms(const struct kernel_fit *fit, struct document *d)
{
    document_note(d, "\nheld-out shapes, error of time: median (worst), by form");
    struct frame *shown = document_table(
        d, 0, "lrrrr", "", "n", kernel_form_name((enum kernel_form)0),
        kernel_form_name((enum kernel_form)1), kernel_form_name((enum kernel_form)2));
    _Static_assert(KERNEL_FORM_COUNT == 3, "a column for each");
    struct frame *f = document_data(d, "held_out", 2, "form op n median_frac worst_frac");
    for (int k = 0; k <= KERNEL_OP_COUNT; k++) {
        int op = k - 1; /* -1: all ops, which are first in data */
        for (int form = 0; form < KERNEL_FORM_COUNT; form++) {
            const struct kernel_form_error *s = op < 0 ? &fit->all[form] : &fit->errors[form][op];
            if (op < 0 || s->n > 0) {
                FRAME_ROW(f, kernel_form_name((enum kernel_form)form),
                          op < 0 ? "all" : kernel_op_name((enum kernel_op)op), s->n, s->median_frac,
                          s->worst_frac);
            }
        }
    }
    for (int op = 0; op <= KERNEL_OP_COUNT; op++) {
        bool all = op == KERNEL_OP_COUNT;
        uint32_t n = all ? fit->all[KERNEL_FORM_PNORM].n : fit->errors[KERNEL_FORM_PNORM][op].n;
        if (n == 0) {
            continue;
        }
        FRAME_CELLS(shown, all ? "all" : kernel_op_name((enum kernel_op)op), n);
        for (int form = 0; form < KERNEL_FORM_COUNT; form++) {
            const struct kernel_form_error *s = all ? &fit->all[form] : &fit->errors[form][op];
            FRAME_CELLS(shown, document_format("%.1f %% (%.1f %%)", s->median_frac * 100.0,
                                               s->worst_frac * 100.0));
        }
    }
}

/* Puts every kernel as data, and prints the co-running ones. */
static void put_cells(const struct kernel_fit *fit, struct document *d)
{
    struct document *title = document_within(d, NULL);
    struct frame *pairs = document_table(d, 0, "lllrrrrl", "device", "kernel", "beside",
                                         "predicted", "measured", "low", "high", "");
    struct frame *f = document_data(
        d, "kernels", 0,
        "device model partner metric held_out repetitions measured low high predicted");
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *c = &fit->cells[i];
        if (c->n == 0) {
            continue;
        }
        bool alone = c->partner < 0;
        double scale = alone ? 1e3 : 1.0;
        double measured = exp(c->log_mean);
        FRAME_ROW(f, c->row->device, c->row->model, alone ? "" : c->row->partner,
                  alone ? "kernel_ms" : "co_slowdown", c->held_out, c->n, measured * scale,
                  c->low * scale, c->high * scale, c->predicted * scale);
        if (!alone) {
            FRAME_ROW(pairs, c->row->device, c->row->model, c->row->partner, c->predicted, measured,
                      c->low, c->high, c->held_out ? "held out" : "");
        }
    }
    if (frame_rows(pairs) > 0) {
        document_note(title, "\nslowdown beside another kernel");
    }
}

void measure_document(const struct kernel_fit *fit, struct document *d)
{
    DOCUMENT_VALUES(d, "rows", fit->n_points, "flagged", fit->n_flagged, "repetitions",
                    fit->n_repetitions, "drift_frac", fit->drift_frac);
    document_note(d,
                  "%" PRIu32 " row%s fitted, %" PRIu32 " flagged and left out, %" PRIu32
                  " repetition%s, drift between them %.2f %%\n",
                  fit->n_points, text_plural(fit->n_points), fit->n_flagged, fit->n_repetitions,
                  text_plural(fit->n_repetitions), fit->drift_frac * 100.0);
    put_params(fit, d);
    document_note(d, "%s", "");
    put_lack("alone", &fit->alone, d);
    put_lack("together", &fit->together, d);
    put_unresolved(fit, d);
    put_forms(fit, d);
    put_cells(fit, d);
}
