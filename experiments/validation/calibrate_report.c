#include "experiments/validation/calibrate_report.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/interval.h"
#include "experiments/shell/table.h"
#include "sim/base/arena.h"
#include "sim/base/quantile.h"

#define MAD_TO_SD 1.4826 /* of a normal */

static const char *const kind_names[CALIBRATE_N_KINDS] = {"prefill", "decode", "short prefill"};

/* Of each parameter: SI units per unit of a SoC file. */
static const double file_unit[CALIBRATE_N_PARAMS] = {1e12, 1e9, 1e-6, 1.0, 1.0, 1.0, 1e9, 1e-6};
static const char *const unit_names[CALIBRATE_N_PARAMS] = {"TFLOP/s", "GB/s",    "us",   "rows",
                                                           "1",       "columns", "GB/s", "us"};

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
        struct sample x;
        sample_init(&x, false);
        for (size_t i = 0; i < s->n; i++) {
            const struct calibrate_row *r = &s->rows[i];
            if ((int)kind_of(r) == kind && isfinite(r->ln_error)) {
                /* a decode row of a short prompt is one of short prompts too */
                bool is_short = r->point->input_tokens < CALIBRATE_MIN_PROMPT;
                if (kind != CALIBRATE_DECODE || !is_short || r->point->input_tokens == 0) {
                    sample_add(&x, fabs(exp(r->ln_error) - 1.0));
                }
            }
        }
        out[kind] =
            (struct calibrate_error){x.n, sample_quantile(&x, 0.5), sample_quantile(&x, 0.9)};
        sample_fini(&x);
    }
}

static double robust_sd(const struct calibrate_set *s, bool prefill)
{
    struct sample x;
    sample_init(&x, false);
    for (size_t i = 0; i < s->n; i++) {
        if (point_is_prefill(s->rows[i].point) == prefill && isfinite(s->rows[i].ln_error)) {
            sample_add(&x, fabs(s->rows[i].ln_error));
        }
    }
    double sd = MAD_TO_SD * sample_quantile(&x, 0.5);
    sample_fini(&x);
    return sd;
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
    struct err e = ERR_INIT;
    out->fitted = calibrate_fit(&out->set, &out->fit, &e) == 0;
    if (!out->fitted) {
        (void)snprintf(out->refusal, sizeof out->refusal, "%s", e.n > 0 ? e.lines[0] : "");
    }
    err_fini(&e);
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

void calibrate_entry_fini(struct calibrate_entry *e)
{
    calibrate_set_fini(&e->set);
}

/* ---- printing ---- */

static const struct soc_runtime *entry_of(const struct calibrate_entry *e)
{
    return &e->set.soc->devices[e->set.device].runtimes[e->set.runtime];
}

static void print_param(struct table *t, const struct calibrate_fit *f, int k)
{
    table_cell(t, "%s", calibrate_param_names[k]);
    table_cell(t, "%.4g", f->value[k] / file_unit[k]);
    if (f->state[k] == CALIBRATE_FITTED) {
        table_cell(t, "+- %.2g %s", f->se[k] / file_unit[k], unit_names[k]);
        table_cell(t, "%s", "");
    } else if (f->state[k] == CALIBRATE_HELD) {
        table_cell(t, "%s", unit_names[k]);
        table_cell(t, "%s", "not determined: held at its start");
    } else {
        table_cell(t, "%s", unit_names[k]);
        table_cell(t, "at its bound; the points allow %.4g to %.4g", f->low[k] / file_unit[k],
                   f->high[k] / file_unit[k]);
    }
}

static void print_offsets(const struct calibrate_entry *e, FILE *out)
{
    for (uint32_t g = 0; e->set.n_groups > 1 && g < e->set.n_groups; g++) {
        (void)fprintf(out, "  %s under %s: rate x %.3f, bandwidth x %.3f of the pool's%s\n",
                      e->set.groups[g].soc, e->set.groups[g].runtime, exp(e->fit.offset[g][0]),
                      exp(e->fit.offset[g][1]), e->set.groups[g].own ? ", counted in" : "");
    }
}

/* Of an unseen model, by the left-out rows of the family: a fit of new points moves the entry, not
 * what fits like it were off by. */
static void print_intervals(const struct calibrate_entry *e, FILE *out)
{
    static const char *const names[] = {"prefill", "decode"};
    struct llm m = e->set.rows[0].k.llm;
    for (int i = 0; i < 2 && e->residuals != NULL; i++) {
        char text[160];
        struct soc_runtime r = *entry_of(e);
        r.start.given = true;
        struct conformal_interval x =
            interval_of(e->residuals, e->set.soc, e->set.device, &r, &m, i == 0, 1024);
        (void)fprintf(out, "  95 %% interval of an unseen model's %s: %s\n", names[i],
                      interval_text(&x, text, sizeof text));
    }
}

void calibrate_entry_print(const struct calibrate_entry *e, FILE *out)
{
    const struct soc_runtime *r = entry_of(e);
    (void)fprintf(out, "%s, %s, %u bits: %zu points",
                  e->set.soc->machine.devices[e->set.device].name, r->runtime, r->weight_bits,
                  e->set.n);
    if (!e->fitted) {
        (void)fprintf(out, "; not fitted, the file's values stay\n  %s\n\n", e->refusal);
        return;
    }
    (void)fprintf(out, " of %zu models, %u rounds\n", e->fit.n_models, e->fit.rounds);
    struct table t;
    table_init(&t, "lrrl");
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (e->fit.state[k] != CALIBRATE_ABSENT) {
            print_param(&t, &e->fit, k);
        }
    }
    table_print(&t, out, 2);
    table_fini(&t);
    print_offsets(e, out);
    table_init(&t, "lrrrrrr");
    static const char *const heads[] = {"|error|, %",       "rows",   "median", "P90",
                                        "models left out:", "median", "P90"};
    for (int i = 0; i < 7; i++) {
        table_cell(&t, "%s", heads[i]);
    }
    for (int kind = 0; kind < CALIBRATE_N_KINDS; kind++) {
        if (e->seen[kind].n > 0) {
            table_cell(&t, "%s", kind_names[kind]);
            table_cell(&t, "%zu", e->seen[kind].n);
            table_cell(&t, "%.1f", 100.0 * e->seen[kind].median);
            table_cell(&t, "%.1f", 100.0 * e->seen[kind].p90);
            table_cell(&t, "%zu", e->unseen[kind].n);
            table_cell(&t, "%.1f", 100.0 * e->unseen[kind].median);
            table_cell(&t, "%.1f", 100.0 * e->unseen[kind].p90);
        }
    }
    table_print(&t, out, 2);
    table_fini(&t);
    (void)fprintf(out,
                  "  residual noise on models left out: prefill %.3f, decode %.3f (as "
                  "sim.annotation.sigma_*)\n",
                  e->sigma[0], e->sigma[1]);
    print_intervals(e, out);
    if (e->leave_refused > 0) {
        (void)fprintf(
            out,
            "  %zu models left out left too little for a fit: predicted from the starting values\n",
            e->leave_refused);
    }
    (void)fputc('\n', out);
}

static void put(cJSON *o, const char *key, double v)
{
    if (isfinite(v)) {
        cJSON_AddNumberToObject(o, key, v);
    } else {
        cJSON_AddNullToObject(o, key);
    }
}

static cJSON *errors_json(const struct calibrate_error *e)
{
    cJSON *o = cJSON_CreateObject();
    for (int kind = 0; kind < CALIBRATE_N_KINDS; kind++) {
        cJSON *k = cJSON_AddObjectToObject(o, kind_names[kind]);
        cJSON_AddNumberToObject(k, "n", (double)e[kind].n);
        put(k, "median", e[kind].median);
        put(k, "p90", e[kind].p90);
    }
    return o;
}

cJSON *calibrate_entry_json(const struct calibrate_entry *e)
{
    const struct soc_runtime *r = entry_of(e);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "device", e->set.soc->machine.devices[e->set.device].name);
    cJSON_AddStringToObject(o, "runtime", r->runtime);
    cJSON_AddNumberToObject(o, "weight_bits", r->weight_bits);
    cJSON_AddNumberToObject(o, "points", (double)e->set.n);
    if (!e->fitted) {
        cJSON_AddStringToObject(o, "not_fitted", e->refusal);
        return o;
    }
    cJSON_AddNumberToObject(o, "models", (double)e->fit.n_models);
    cJSON *params = cJSON_AddObjectToObject(o, "parameters");
    cJSON *cov = cJSON_AddArrayToObject(o, "ln_covariance");
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (e->fit.state[k] == CALIBRATE_ABSENT) {
            continue;
        }
        cJSON *p = cJSON_AddObjectToObject(params, calibrate_param_names[k]);
        put(p, "value", e->fit.value[k] / file_unit[k]);
        put(p, "se", e->fit.se[k] / file_unit[k]);
        cJSON_AddStringToObject(p, "unit", unit_names[k]);
        put(p, "low", e->fit.low[k] / file_unit[k]);
        put(p, "high", e->fit.high[k] / file_unit[k]);
        cJSON_AddStringToObject(p, "state", state_names[e->fit.state[k]]);
        cJSON *row = cJSON_CreateArray();
        for (int j = 0; j < CALIBRATE_N_PARAMS; j++) {
            if (e->fit.state[j] != CALIBRATE_ABSENT) {
                cJSON_AddItemToArray(row, cJSON_CreateNumber(e->fit.covariance[k][j]));
            }
        }
        cJSON_AddItemToArray(cov, row);
    }
    cJSON_AddItemToObject(o, "errors", errors_json(e->seen));
    cJSON_AddItemToObject(o, "errors_leave_one_model_out", errors_json(e->unseen));
    cJSON *rows = cJSON_AddArrayToObject(o, "rows");
    for (size_t i = 0; i < e->set.n; i++) {
        const struct calibrate_row *row = &e->set.rows[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "line", (double)row->point->line);
        cJSON_AddStringToObject(one, "soc", row->point->soc);
        cJSON_AddStringToObject(one, "metric", row->point->metric_name);
        cJSON_AddNumberToObject(one, "input_tokens", row->point->input_tokens);
        put(one, "unseen_ln_error", row->ln_error);
        cJSON_AddItemToArray(rows, one);
    }
    put(o, "sigma_prefill", e->sigma[0]);
    put(o, "sigma_decode", e->sigma[1]);
    return o;
}

/* ---- into the file ---- */

static void replace_number(cJSON *o, const char *key, double v)
{
    cJSON_DeleteItemFromObjectCaseSensitive(o, key);
    cJSON_AddNumberToObject(o, key, v);
}

/* Four digits: more than any of these is known to. */
static double rounded(double v)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.4g", v);
    return strtod(text, NULL);
}

static void write_text(cJSON *o, const char *key, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(o, key);
    cJSON_AddStringToObject(o, key, text);
}

/* A held parameter that an earlier calibration had fitted is assumed again. */
static void write_param(const struct calibrate_entry *e, int k, const char *source, cJSON *runtime)
{
    cJSON *o = runtime;
    const char *key = calibrate_param_names[k];
    if (strncmp(key, "one_row.", 8) == 0) {
        o = cJSON_GetObjectItemCaseSensitive(runtime, "one_row");
        key += 8;
    }
    o = cJSON_GetObjectItemCaseSensitive(o, key);
    if (o == NULL) {
        return;
    }
    double v = rounded(e->fit.value[k] / file_unit[k]);
    bool held = e->fit.state[k] == CALIBRATE_HELD;
    if (held && strcmp(cJSON_GetObjectItemCaseSensitive(o, "kind")->valuestring, "fitted") != 0) {
        return;
    }
    double low = held ? v / 2.0 : rounded(e->fit.low[k] / file_unit[k]);
    double high = held ? v * 2.0 : rounded(e->fit.high[k] / file_unit[k]);
    replace_number(o, "value", v);
    replace_number(o, "low", fmin(v, low));
    replace_number(o, "high", fmax(v, high));
    char text[400];
    (void)snprintf(text, sizeof text, "%s; %s", source,
                   held ? "not determined by them: the value before, a factor of 2 either way"
                   : e->fit.state[k] == CALIBRATE_BOUND ? "at its physical bound; range: profile"
                                                        : "range: 2 standard errors");
    write_text(o, "source", text);
    write_text(o, "kind", held ? "assumed" : "fitted");
}

static void write_error(cJSON *o, const char *key, const struct calibrate_error *e)
{
    if (e->n > 0) {
        cJSON *k = cJSON_AddObjectToObject(o, key);
        cJSON_AddNumberToObject(k, "median", rounded(e->median));
        cJSON_AddNumberToObject(k, "p90", rounded(e->p90));
    }
}

/* Of the v (calibrate.h) of what was fitted, for who draws machines from it. */
static void write_covariance(const struct calibrate_fit *f, cJSON *fit)
{
    cJSON *names = cJSON_AddArrayToObject(fit, "parameters");
    cJSON *rows = cJSON_AddArrayToObject(fit, "ln_covariance");
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (f->state[k] == CALIBRATE_FITTED) {
            cJSON_AddItemToArray(names, cJSON_CreateString(calibrate_param_names[k]));
            cJSON *row = cJSON_CreateArray();
            for (int j = 0; j < CALIBRATE_N_PARAMS; j++) {
                if (f->state[j] == CALIBRATE_FITTED) {
                    cJSON_AddItemToArray(row, cJSON_CreateNumber(rounded(f->covariance[k][j])));
                }
            }
            cJSON_AddItemToArray(rows, row);
        }
    }
}

void calibrate_entry_write(const struct calibrate_entry *e, const char *points_name, cJSON *runtime)
{
    char source[256];
    (void)snprintf(source, sizeof source, "fit to %zu points of %zu models in %.120s", e->set.n,
                   e->fit.n_models, points_name);
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (e->fit.state[k] != CALIBRATE_ABSENT) {
            write_param(e, k, source, runtime);
        }
    }
    cJSON_DeleteItemFromObjectCaseSensitive(runtime, "valid");
    cJSON *valid = cJSON_AddObjectToObject(runtime, "valid");
    cJSON_AddNumberToObject(valid, "rows_max", e->rows_max);
    cJSON_AddNumberToObject(valid, "context_max", e->context_max);
    cJSON_DeleteItemFromObjectCaseSensitive(runtime, "fit");
    cJSON *fit = cJSON_AddObjectToObject(runtime, "fit");
    const struct soc_runtime s = calibrate_start(entry_of(e));
    cJSON *start = cJSON_AddObjectToObject(fit, "start");
    cJSON_AddNumberToObject(start, "rate", rounded(s.many.flop_per_s / 1e12));
    cJSON_AddNumberToObject(start, "bandwidth", rounded(s.many.bytes_per_s / 1e9));
    cJSON_AddNumberToObject(start, "launch", rounded(s.many.launch_s / 1e-6));
    cJSON_AddNumberToObject(start, "row_fill", rounded(s.fill_rows));
    cJSON_AddNumberToObject(start, "attention", rounded(s.attention_frac));
    cJSON_AddNumberToObject(start, "width_fill", rounded(s.width_fill));
    cJSON_AddNumberToObject(start, "one_row_bandwidth", rounded(s.one.bytes_per_s / 1e9));
    cJSON_AddNumberToObject(start, "one_row_launch", rounded(s.one.launch_s / 1e-6));
    cJSON_AddStringToObject(fit, "points", points_name);
    cJSON_AddNumberToObject(fit, "n", (double)e->set.n);
    cJSON_AddNumberToObject(fit, "models", (double)e->fit.n_models);
    for (int i = 0; i < 2; i++) {
        if (isfinite(e->sigma[i])) {
            cJSON_AddNumberToObject(fit, i == 0 ? "sigma_prefill" : "sigma_decode",
                                    rounded(e->sigma[i]));
        }
    }
    write_covariance(&e->fit, fit);
    write_error(fit, "unseen_prefill", &e->unseen[CALIBRATE_PREFILL]);
    write_error(fit, "unseen_decode", &e->unseen[CALIBRATE_DECODE]);
}
