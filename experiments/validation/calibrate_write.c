/* Writes a calibration into a SoC file. */
#include <cjson/cJSON.h>

#include "experiments/validation/calibrate_report.h"
#include "sim/base/json.h"

/* A fixed parameter that an earlier calibration had fitted becomes assumed again. */
static void write_param(const struct calibrate_entry *e, int k, const char *source, cJSON *runtime)
{
    cJSON *to = runtime;
    const char *key = calibrate_param_names[k];
    if (strncmp(key, "one_row.", 8) == 0) {
        to = json_member(runtime, "one_row");
        key += 8;
    }
    const cJSON *o = json_member(to, key);
    if (o == NULL) {
        return;
    }
    double v = calibrate_rounded(e->fit.value[k] / calibrate_file_unit[k]);
    bool held = e->fit.state[k] == CALIBRATE_HELD;
    if (held && strcmp(json_member(o, "kind")->valuestring, "fitted") != 0) {
        return;
    }
    double low = held ? v / 2.0 : calibrate_rounded(e->fit.low[k] / calibrate_file_unit[k]);
    double high = held ? v * 2.0 : calibrate_rounded(e->fit.high[k] / calibrate_file_unit[k]);
    OWNED char *text =
        xformat("%s; %s", source,
                held ? "not determined by them: the value before, a factor of 2 either way"
                : e->fit.state[k] == CALIBRATE_BOUND ? "at its physical bound; range: profile"
                                                     : "range: 2 standard errors");
    json_put_quantity(to, key,
                      (struct quantity){.value = v,
                                        .low = low,
                                        .high = high,
                                        .kind = held ? QUANTITY_ASSUMED : QUANTITY_FITTED},
                      calibrate_unit_names[k], text);
}

static void put_error(const char *key, const struct calibrate_error *e, struct document *fit)
{
    if (e->n > 0) {
        DOCUMENT_VALUES(document_within(fit, key), "median", calibrate_rounded(e->median), "p90",
                        calibrate_rounded(e->p90));
    }
}

/* Writes the covariance of the fitted v (calibrate.h), from which machines can be drawn. */
static void put_covariance(const struct calibrate_fit *f, struct document *fit)
{
    struct document *names = document_array(fit, "parameters");
    struct document *rows = document_array(fit, "ln_covariance");
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (f->state[k] == CALIBRATE_FITTED) {
            DOCUMENT_VALUES(names, NULL, calibrate_param_names[k]);
            struct document *row = document_array(rows, NULL);
            for (int j = 0; j < CALIBRATE_N_PARAMS; j++) {
                if (f->state[j] == CALIBRATE_FITTED) {
                    DOCUMENT_VALUES(row, NULL, calibrate_rounded(f->covariance[k][j]));
                }
            }
        }
    }
}

static void put_fit(const struct calibrate_entry *e, const char *points_name, struct document *d)
{
    const struct soc_runtime s = calibrate_start(calibrate_entry_runtime(e));
    struct document *fit = document_within(d, "fit");
    struct document *start = document_within(fit, "start");
    DOCUMENT_VALUES(start, "rate", calibrate_rounded(s.many.flop_per_s / 1e12), "bandwidth",
                    calibrate_rounded(s.many.bytes_per_s / 1e9), "launch",
                    calibrate_rounded(s.many.launch_s / 1e-6), "row_fill",
                    calibrate_rounded(s.fill_rows), "attention",
                    calibrate_rounded(s.attention_frac), "width_fill",
                    calibrate_rounded(s.width_fill), "one_row_bandwidth",
                    calibrate_rounded(s.one.bytes_per_s / 1e9), "one_row_launch",
                    calibrate_rounded(s.one.launch_s / 1e-6));
    if (s.enqueue_own) {
        DOCUMENT_VALUES(start, "enqueue", calibrate_rounded(s.enqueue_s / 1e-6));
    }
    if (s.prompt_enqueue_own) {
        DOCUMENT_VALUES(start, "prompt_enqueue", calibrate_rounded(s.prompt_enqueue_s / 1e-6));
    }
    if (s.special_attention_own) {
        DOCUMENT_VALUES(start, "special_attention", calibrate_rounded(s.special_attention_frac));
    }
    DOCUMENT_VALUES(fit, "points", points_name, "n", e->set.n, "models", e->fit.n_models,
                    "sigma_prefill",
                    FRAME_IF(isfinite(e->sigma[0]), calibrate_rounded(e->sigma[0])), "sigma_decode",
                    FRAME_IF(isfinite(e->sigma[1]), calibrate_rounded(e->sigma[1])));
    put_covariance(&e->fit, fit);
    put_error("unseen_prefill", &e->unseen[CALIBRATE_PREFILL], fit);
    put_error("unseen_decode", &e->unseen[CALIBRATE_DECODE], fit);
}

void calibrate_entry_write(const struct calibrate_entry *e, const char *points_name, cJSON *runtime)
{
    struct document *d = document_new();
    const char *source = document_format("fit to %zu points of %zu models in %.120s", e->set.n,
                                         e->fit.n_models, points_name);
    for (int k = 0; k < CALIBRATE_N_PARAMS; k++) {
        if (e->fit.state[k] != CALIBRATE_ABSENT) {
            write_param(e, k, source, runtime);
        }
    }
    DOCUMENT_VALUES(document_within(d, "valid"), "rows_max", e->rows_max, "context_max",
                    e->context_max);
    put_fit(e, points_name, d);
    SCOPED(json_drop) cJSON *tree = document_json(d);
    while (tree->child != NULL) {
        cJSON *item = cJSON_DetachItemViaPointer(tree, tree->child);
        cJSON_DeleteItemFromObjectCaseSensitive(runtime, item->string);
        cJSON_AddItemToObject(runtime, item->string, item);
    }
}
