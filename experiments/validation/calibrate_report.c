#include "experiments/validation/calibrate_report.h"

#include <gsl/gsl_statistics_double.h>

#include "experiments/run/interval.h"
#include "sim/base/quantile.h"

#define MAD_TO_SD 1.4826 /* of a normal */

static const char *const kind_names[CALIBRATE_N_KINDS] = {"prefill", "decode", "short prefill"};

/* SI units per unit of a SoC file, for each parameter. */
const double calibrate_file_unit[CALIBRATE_N_PARAMS] = {1e12, 1e9,  1e-6, 1.0,  1.0, 1.0,
                                                        1e9,  1e-6, 1e-6, 1e-6, 1.0};
const char *const calibrate_unit_names[CALIBRATE_N_PARAMS] = {
    "TFLOP/s", "GB/s", "us", "rows", "1", "columns", "GB/s", "us", "us", "us", "1"};

static const char *const state_names[] = {"absent", "fitted", "held", "bound"};

static enum calibrate_kind kind_of(const struct calibrate_row *r)
{
    if (!point_is_prefill(r->point)) {
        return CALIBRATE_DECODE;
    }
    return r->point->input_tokens >= CALIBRATE_MIN_PROMPT ? CALIBRATE_PREFILL
                                                          : CALIBRATE_SHORT_PREFILL;
}

static void errors_of(const struct calibrate_set *s, struct calibrate_error *out)
{
    for (int kind = 0; kind < CALIBRATE_N_KINDS; kind++) {
        SCOPED(sample_fini) struct sample x;
        sample_init(&x, false);
        for (size_t i = 0; i < s->n; i++) {
            const struct calibrate_row *r = &s->rows[i];
            if ((int)kind_of(r) == kind && isfinite(r->ln_error)) {
                /* decode rows after short prompts count as short, too */
                bool is_short = r->point->input_tokens < CALIBRATE_MIN_PROMPT;
                if (kind != CALIBRATE_DECODE || !is_short || r->point->input_tokens == 0) {
                    sample_add(&x, fabs(exp(r->ln_error) - 1.0));
                }
            }
        }
        out[kind] =
            (struct calibrate_error){x.n, sample_quantile(&x, 0.5), sample_quantile(&x, 0.9)};
    }
}

static double robust_sd(const struct calibrate_set *s, bool prefill)
{
    SCOPED(sample_fini) struct sample x;
    sample_init(&x, false);
    for (size_t i = 0; i < s->n; i++) {
        if (point_is_prefill(s->rows[i].point) == prefill && isfinite(s->rows[i].ln_error)) {
            sample_add(&x, fabs(s->rows[i].ln_error));
        }
    }
    return MAD_TO_SD * sample_quantile(&x, 0.5);
}

void calibrate_entry_make(const struct catalog *c, const struct points *points,
                          const struct soc *soc, uint8_t device, uint32_t runtime,
                          struct calibrate_entry *out)
{
    memset(out, 0, sizeof *out);
    calibrate_collect(c, points, soc, device, runtime, &out->set);
    out->residuals = &c->residuals;
    if (out->set.n == 0) {
        return;
    }
    SCOPED(err_fini) struct err e = ERR_INIT;
    out->fitted = calibrate_fit(&out->set, &out->fit, &e) == 0;
    if (!out->fitted) {
        (void)snprintf(out->refusal, sizeof out->refusal, "%s", e.n > 0 ? e.lines[0] : "");
    }
    for (size_t i = 0; i < out->set.n; i++) {
        const struct point *p = out->set.rows[i].point;
        uint32_t rows = point_is_prefill(p) ? p->input_tokens * p->batch : p->batch;
        out->rows_max = rows > out->rows_max ? rows : out->rows_max;
        uint32_t context = p->input_tokens + (point_is_prefill(p) ? 0 : 1); /* and its own token */
        out->context_max = context > out->context_max ? context : out->context_max;
    }
    if (!out->fitted) {
        return;
    }
    errors_of(&out->set, out->seen);
    out->leave_refused = calibrate_leave_one_out(&out->set);
    out->sigma[0] = robust_sd(&out->set, true);
    out->sigma[1] = robust_sd(&out->set, false);
    errors_of(&out->set, out->unseen);
}

/* ---- output ---- */

const struct soc_runtime *calibrate_entry_runtime(const struct calibrate_entry *e)
{
    return &e->set.soc->devices[e->set.device].runtimes[e->set.runtime];
}

/* Prints the value, its error or unit, and its state. */
static void show_param(const struct calibrate_fit *f, int k, struct frame *t)
{
    double unit = calibrate_file_unit[k];
    const char *name = calibrate_unit_names[k];
    bool fitted = f->state[k] == CALIBRATE_FITTED;
    FRAME_ROW(t, calibrate_param_names[k], f->value[k] / unit,
              fitted ? document_format("+- %.2g %s", f->se[k] / unit, name) : name,
              fitted ? ""
              : f->state[k] == CALIBRATE_HELD
                  ? "not determined: held at its start"
                  : document_format("at its bound; the points allow %.4g to "
                                    "%.4g",
                                    f->low[k] / unit, f->high[k] / unit));
}

static void put_params(const struct calibrate_fit *f, struct document *d)
{
    struct frame *shown = document_table(d, 2, "lrrl", NULL);
    struct frame *params =
        document_data(d, "parameters", 1, "parameter value se unit low high state");
    struct document *covariance = document_array(d, "ln_covariance");
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (f->state[k] == CALIBRATE_ABSENT) {
            continue;
        }
        double unit = calibrate_file_unit[k];
        show_param(f, k, shown);
        FRAME_ROW(params, calibrate_param_names[k], f->value[k] / unit,
                  FRAME_IF(f->state[k] == CALIBRATE_FITTED, f->se[k] / unit),
                  calibrate_unit_names[k], f->low[k] / unit, f->high[k] / unit,
                  state_names[f->state[k]]);
        struct document *row = document_array(covariance, NULL);
        for (int j = 0; j < CALIBRATE_N_PARAMS; j++) {
            if (f->state[j] != CALIBRATE_ABSENT) {
                DOCUMENT_VALUES(row, NULL, f->covariance[k][j]);
            }
        }
    }
}

/* Adds errors of fitted rows and of those with each model left out, side by side in text. */
static void put_errors(const struct calibrate_entry *e, struct document *d)
{
    static const char errors[] = "kind n median p90";
    static const struct frame_column columns[] = {
        {.name = "|error|, %", .kind = FRAME_TEXT},
        {.name = "rows"},
        {.name = "median", .scale = 100.0, .format = "%.1f", .missing = "nan"},
        {.name = "P90", .scale = 100.0, .format = "%.1f", .missing = "nan"},
        {.name = "models left out:"},
        {.name = "median", .scale = 100.0, .format = "%.1f", .missing = "nan"},
        {.name = "P90", .scale = 100.0, .format = "%.1f", .missing = "nan"},
    };
    struct frame *shown = frame_indent(DOCUMENT_FRAME(d, NULL, 0, columns), 2);
    struct frame *seen = document_data(d, "errors", 1, errors);
    struct frame *unseen = document_data(d, "errors_leave_one_model_out", 1, errors);
    for (int kind = 0; kind < CALIBRATE_N_KINDS; kind++) {
        const struct calibrate_error *a = &e->seen[kind];
        const struct calibrate_error *b = &e->unseen[kind];
        FRAME_ROW(seen, kind_names[kind], a->n, a->median, a->p90);
        FRAME_ROW(unseen, kind_names[kind], b->n, b->median, b->p90);
        if (a->n > 0) {
            FRAME_ROW(shown, kind_names[kind], a->n, a->median, a->p90, b->n, b->median, b->p90);
        }
    }
}

static void show_offsets(const struct calibrate_entry *e, struct document *d)
{
    for (uint32_t g = 0; e->set.n_groups > 1 && g < e->set.n_groups; g++) {
        document_note(d, "  %s under %s: rate x %.3f, bandwidth x %.3f of the pool's%s",
                      e->set.groups[g].soc, e->set.groups[g].runtime, exp(e->fit.offset[g][0]),
                      exp(e->fit.offset[g][1]), e->set.groups[g].own ? ", counted in" : "");
    }
}

static int by_weights(const void *a, const void *b)
{
    double x = (*(const struct llm *const *)a)->weight_bytes;
    double y = (*(const struct llm *const *)b)->weight_bytes;
    return (x > y) - (x < y);
}

/* The model with the median weights among rows, so that their order does not matter. */
static const struct llm *middle_model(const struct calibrate_entry *e)
{
    OWNED const struct llm **models = xmalloc((e->set.n + 1) * sizeof(const struct llm *));
    for (size_t i = 0; i < e->set.n; i++) {
        models[i] = &e->set.rows[i].k.llm;
    }
    qsort(models, e->set.n, sizeof(const struct llm *), by_weights);
    return models[e->set.n / 2];
}

/* Shows intervals of an unseen model, by the left-out rows of the family. A fit of new points moves
 * the entry, but not the errors of fits like it. Small and large models are separate classes. */
static void show_intervals(const struct calibrate_entry *e, struct document *d)
{
    static const char *const names[] = {"prefill", "decode"};
    struct llm m = *middle_model(e);
    for (int i = 0; i < 2 && e->residuals != NULL; i++) {
        struct soc_runtime r = *calibrate_entry_runtime(e);
        r.start.given = true;
        struct conformal_interval x =
            interval_of(e->residuals, e->set.soc, e->set.device, &r, &m, i == 0, 1024);
        OWNED char *text = interval_text(&x);
        document_note(d, "  95 %% interval of an unseen model's %s: %s", names[i], text);
    }
}

void calibrate_entry_document(const struct calibrate_entry *e, struct document *d)
{
    const struct soc_runtime *r = calibrate_entry_runtime(e);
    const char *device = e->set.soc->machine.devices[e->set.device].name;
    const char *what = document_format("%s, %s, %u bits: %zu point%s", device, r->runtime,
                                       r->weight_bits, e->set.n, text_plural(e->set.n));
    DOCUMENT_VALUES(d, "device", device, "runtime", r->runtime, "weight_bits", r->weight_bits,
                    "points", e->set.n);
    if (!e->fitted) {
        DOCUMENT_VALUES(d, "not_fitted", e->refusal);
        document_note(d, "%s; not fitted, the file's values stay\n  %s\n", what, e->refusal);
        return;
    }
    DOCUMENT_VALUES(d, "models", e->fit.n_models);
    document_note(d, "%s of %zu model%s, %u round%s", what, e->fit.n_models,
                  text_plural(e->fit.n_models), e->fit.rounds, text_plural(e->fit.rounds));
    put_params(&e->fit, d);
    show_offsets(e, d);
    put_errors(e, d);
    struct frame *rows =
        document_data(d, "rows", 0, "line soc metric input_tokens unseen_ln_error");
    for (size_t i = 0; i < e->set.n; i++) {
        const struct calibrate_row *row = &e->set.rows[i];
        FRAME_ROW(rows, row->point->line, row->point->soc, row->point->metric_name,
                  row->point->input_tokens, row->ln_error);
    }
    DOCUMENT_VALUES(d, "sigma_prefill", e->sigma[0], "sigma_decode", e->sigma[1]);
    document_note(d,
                  "  residual noise on models left out: prefill %.3f, decode %.3f (as "
                  "sim.annotation.sigma_*)",
                  e->sigma[0], e->sigma[1]);
    show_intervals(e, d);
    if (e->leave_refused > 0) {
        document_note(
            d,
            "  %zu model%s left out left too little for a fit: predicted from the starting values",
            e->leave_refused, text_plural(e->leave_refused));
    }
    document_note(d, "%s", "");
}
