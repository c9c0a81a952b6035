#include "experiments/commands/measure_print.h"
#include "sim/base/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>

/* Unit and scale that people read. */
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

static void print_params(const struct kernel_fit *fit, FILE *out)
{
    (void)fprintf(out, "%-12s %-9s %4s %-20s %11s %11s %11s\n", "device", "runtime", "bits",
                  "parameter", "value", "low", "high");
    for (uint32_t i = 0; i < fit->n_params; i++) {
        const struct kernel_estimate *q = &fit->params[i];
        double scale;
        const char *unit = unit_of(q->param, &scale);
        bool lambda = q->param == KERNEL_PARAM_LAMBDA;
        (void)fprintf(out, "%-12s %-9s %4" PRIu32 " %-20s %11.4g %11.4g %11.4g %s%s\n",
                      lambda                 ? kernel_op_name(q->op)
                      : q->device[0] != '\0' ? q->device
                                             : "-",
                      q->runtime[0] != '\0' ? q->runtime : "-", q->weight_bits,
                      kernel_param_name(q->param), q->value * scale, q->low * scale,
                      q->high * scale, unit, q->resolved ? "" : "  not resolved");
    }
}

static void print_lack(const char *what, const struct kernel_lack_of_fit *l, FILE *out)
{
    if (!l->tested) {
        (void)fprintf(out, "%-9s form not tested: needs repetitions and more shapes\n", what);
        return;
    }
    (void)fprintf(out, "%-9s noise %.2f %%, misfit %.2f %%, F = %.3g, p = %.2g: %s\n", what,
                  l->noise_frac * 100.0, l->misfit_frac * 100.0, l->f, l->p,
                  l->wrong ? "WRONG FORM, do not trust the intervals" : "the form holds");
}

static void print_forms(const struct kernel_fit *fit, FILE *out)
{
    (void)fprintf(out, "\nheld-out shapes, error of time: median (worst), by form\n%-9s %4s", "",
                  "n");
    for (int f = 0; f < KERNEL_FORM_COUNT; f++) {
        (void)fprintf(out, " %20s", kernel_form_name((enum kernel_form)f));
    }
    for (int op = 0; op <= KERNEL_OP_COUNT; op++) {
        bool all = op == KERNEL_OP_COUNT;
        const struct kernel_form_error *first =
            all ? &fit->all[KERNEL_FORM_PNORM] : &fit->errors[KERNEL_FORM_PNORM][op];
        if (first->n == 0) {
            continue;
        }
        (void)fprintf(out, "\n%-9s %4" PRIu32, all ? "all" : kernel_op_name((enum kernel_op)op),
                      first->n);
        for (int f = 0; f < KERNEL_FORM_COUNT; f++) {
            const struct kernel_form_error *s = all ? &fit->all[f] : &fit->errors[f][op];
            (void)fprintf(out, "    %6.1f %% (%5.1f %%)", s->median_frac * 100.0,
                          s->worst_frac * 100.0);
        }
    }
    (void)fprintf(out, "\n");
}

static void print_pairs(const struct kernel_fit *fit, FILE *out)
{
    bool any = false;
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *c = &fit->cells[i];
        if (c->partner < 0 || c->n == 0) {
            continue;
        }
        if (!any) {
            (void)fprintf(out, "\nslowdown beside another kernel: predicted, measured (range)\n");
        }
        any = true;
        (void)fprintf(out, "%-8s %-36s beside %-40s %6.3f %6.3f (%.3f to %.3f)%s\n", c->row->device,
                      c->row->model, c->row->partner, c->predicted, exp(c->log_mean), c->low,
                      c->high, c->held_out ? " held out" : "");
    }
}

void measure_print_text(const struct kernel_fit *fit, FILE *out)
{
    (void)fprintf(out,
                  "%" PRIu32 " rows fitted, %" PRIu32 " flagged and left out, %" PRIu32
                  " repetitions, drift between them %.2f %%\n\n",
                  fit->n_points, fit->n_flagged, fit->n_repetitions, fit->drift_frac * 100.0);
    print_params(fit, out);
    (void)fprintf(out, "\n");
    print_lack("alone", &fit->alone, out);
    print_lack("together", &fit->together, out);
    print_forms(fit, out);
    print_pairs(fit, out);
}

/* ---- JSON ---- */

/* JSON has no infinity: an open end is null. */
static void add_number(cJSON *o, const char *key, double v)
{
    if (isfinite(v)) {
        (void)cJSON_AddNumberToObject(o, key, v);
    } else {
        (void)cJSON_AddNullToObject(o, key);
    }
}

static void add_params(const struct kernel_fit *fit, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "parameters");
    for (uint32_t i = 0; i < fit->n_params; i++) {
        const struct kernel_estimate *q = &fit->params[i];
        double scale;
        cJSON *o = cJSON_CreateObject();
        (void)cJSON_AddItemToArray(list, o);
        (void)cJSON_AddStringToObject(o, "parameter", kernel_param_name(q->param));
        (void)cJSON_AddStringToObject(o, "device", q->device);
        (void)cJSON_AddStringToObject(o, "runtime", q->runtime);
        (void)cJSON_AddNumberToObject(o, "weight_bits", q->weight_bits);
        if (q->param == KERNEL_PARAM_LAMBDA) {
            (void)cJSON_AddStringToObject(o, "op", kernel_op_name(q->op));
        }
        const char *unit = unit_of(q->param, &scale);
        (void)cJSON_AddStringToObject(o, "unit", unit);
        add_number(o, "value", q->value * scale);
        add_number(o, "low", q->low * scale);
        add_number(o, "high", q->high * scale);
        (void)cJSON_AddBoolToObject(o, "resolved", q->resolved);
    }
}

static void add_lack(cJSON *root, const char *key, const struct kernel_lack_of_fit *l)
{
    cJSON *o = cJSON_AddObjectToObject(root, key);
    (void)cJSON_AddBoolToObject(o, "tested", l->tested);
    add_number(o, "noise_frac", l->noise_frac);
    add_number(o, "misfit_frac", l->misfit_frac);
    add_number(o, "f", l->f);
    add_number(o, "p", l->p);
    (void)cJSON_AddBoolToObject(o, "wrong_form", l->wrong);
}

static void add_error(cJSON *to, const char *key, const struct kernel_form_error *s)
{
    cJSON *o = cJSON_AddObjectToObject(to, key);
    (void)cJSON_AddNumberToObject(o, "n", s->n);
    add_number(o, "median_frac", s->median_frac);
    add_number(o, "worst_frac", s->worst_frac);
}

static void add_forms(const struct kernel_fit *fit, cJSON *root)
{
    cJSON *forms = cJSON_AddObjectToObject(root, "held_out");
    for (int f = 0; f < KERNEL_FORM_COUNT; f++) {
        cJSON *o = cJSON_AddObjectToObject(forms, kernel_form_name((enum kernel_form)f));
        add_error(o, "all", &fit->all[f]);
        for (int op = 0; op < KERNEL_OP_COUNT; op++) {
            if (fit->errors[f][op].n > 0) {
                add_error(o, kernel_op_name((enum kernel_op)op), &fit->errors[f][op]);
            }
        }
    }
}

static void add_cells(const struct kernel_fit *fit, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "kernels");
    for (uint32_t i = 0; i < fit->n_cells; i++) {
        const struct kernel_cell *c = &fit->cells[i];
        if (c->n == 0) {
            continue;
        }
        double scale = c->partner < 0 ? 1e3 : 1.0;
        cJSON *o = cJSON_CreateObject();
        (void)cJSON_AddItemToArray(list, o);
        (void)cJSON_AddStringToObject(o, "device", c->row->device);
        (void)cJSON_AddStringToObject(o, "model", c->row->model);
        (void)cJSON_AddStringToObject(o, "partner", c->partner < 0 ? "" : c->row->partner);
        (void)cJSON_AddStringToObject(o, "metric", c->partner < 0 ? "kernel_ms" : "co_slowdown");
        (void)cJSON_AddBoolToObject(o, "held_out", c->held_out);
        (void)cJSON_AddNumberToObject(o, "repetitions", c->n);
        add_number(o, "measured", exp(c->log_mean) * scale);
        add_number(o, "low", c->low * scale);
        add_number(o, "high", c->high * scale);
        add_number(o, "predicted", c->predicted * scale);
    }
}

void measure_print_json(const struct kernel_fit *fit, FILE *out)
{
    cJSON *root = cJSON_CreateObject();
    (void)cJSON_AddNumberToObject(root, "rows", fit->n_points);
    (void)cJSON_AddNumberToObject(root, "flagged", fit->n_flagged);
    (void)cJSON_AddNumberToObject(root, "repetitions", fit->n_repetitions);
    add_number(root, "drift_frac", fit->drift_frac);
    add_params(fit, root);
    add_lack(root, "alone", &fit->alone);
    add_lack(root, "together", &fit->together);
    add_forms(fit, root);
    add_cells(fit, root);
    json_print(root, out);
}
