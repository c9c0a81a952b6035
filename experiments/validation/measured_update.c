#include "experiments/validation/measured_update_impl.h"

#include "experiments/validation/calibrate_report.h"
#include "sim/base/json.h"

#define NORMAL_95 1.959964
#define IMPOSSIBLE_RATIO 1.5 /* of the DDR's peak: table rounding and bytes per weight */
#define SURPRISE_SD 4.0      /* deviation from the prediction: reported */
#define MISTAKE_SD 8.0       /* another machine or model, or a typo: refused */
#define FITTED_SHARE 0.5     /* of the prior's variance: a fitted number has at most this */

/* ---- rows ---- */

static const struct soc_device *device_of(const struct measured_work *w, const struct update_row *r)
{
    return &w->soc->devices[r->k.device];
}

/* "openvino-2025 at 4, 8 and 16 bits" of a device, for an error. */
static char *runtimes_text(const struct soc_device *d)
{
    SCOPED(text_fini) struct text t = {0};
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        text_item(&t, ", ", "");
        text_format(&t, "%s/%u", d->runtimes[i].runtime, d->runtimes[i].weight_bits);
    }
    return xstrdup(text_end(&t));
}

/* Sets a missing runtime to the device's default. */
static void complete(const struct measured_work *w, struct point *p)
{
    int device = predict_device(w->soc, p->device);
    if (p->runtime[0] == '\0' && device >= 0) {
        const struct soc_device *d = &w->soc->devices[device];
        enum soc_match match;
        uint32_t entry = soc_runtime_find(d, NULL, p->weight_bits, &match);
        p->runtime = d->runtimes[entry].runtime;
    }
}

/* Refuses llama-bench's model, an architecture and a size class that several models share. */
static void refuse_model(const struct measured_work *w, const struct update_row *r,
                         const char *place)
{
    const struct point *p = r->point;
    const struct llm *m = catalog_llm(w->c, p->model);
    OWNED char *why = r->k.reason != NULL
                          ? xstrdup(r->k.reason)
                          : xformat("it has %.4g weights here", llm_stored_weights(m));
    OWNED char *others = catalog_of_weights(w->c, p->weights);
    OWNED char *hint = p->weights > 0.0 && (m == NULL || r->k.reason == NULL)
                           ? xformat("; the row states %.4g weights, as these have: %s. --measured "
                                     "'file=...,model=NAME' or model=FILE.json says which it is",
                                     p->weights, others)
                           : xstrdup("");
    (void)err_add(w->e, "%s: model %s on device %s: %s%s", place, p->model, p->device, why, hint);
}

static void check_row(const struct measured_work *w, size_t i)
{
    const struct update_row *r = &w->rows[i];
    const struct point *p = r->point;
    const char *place = w->m->place[i];
    if (!point_is_latency(p)) {
        (void)err_add(w->e,
                      "%s: metric %s is no time of a prefill or a decode: ttft_ms, tpot_ms, "
                      "prefill_tok_s or decode_tok_s",
                      place, p->metric_name);
    } else if (r->k.reason != NULL ||
               (p->weights > 0.0 && !catalog_has_weights(&r->k.llm, p->weights))) {
        refuse_model(w, r, place);
    } else if (p->weight_bits == 0) {
        (void)err_add(w->e, "%s: the width of the weights is not stated: bits=4", place);
    } else if (r->k.match == SOC_MATCH_OTHER) {
        OWNED char *there = runtimes_text(device_of(w, r));
        (void)err_add(
            w->e,
            "%s: runtime %s at %u bits: %s has no such entry; it has %s. "
            "--measured 'runtime=NAME,...' next to file= or model= says which one the row is of",
            place, p->runtime, p->weight_bits, w->soc->machine.name, there);
    } else {
        if (r->k.match == SOC_MATCH_VERSION) {
            document_note(w->d, "%s: the nearest version to %s is %s, which is updated", place,
                          p->runtime, device_of(w, r)->runtimes[r->k.runtime].runtime);
        }
        double rate = predict_price(&r->k, p, NULL).bytes / point_pass_seconds(p);
        if (rate > IMPOSSIBLE_RATIO * w->soc->machine.ddr_peak_bytes_per_s) {
            (void)err_add(w->e, "%s: %s in %g s needs %.3g GB/s; %s has %.3g: not possible", place,
                          p->model, point_pass_seconds(p), rate / 1e9, w->soc->machine.name,
                          w->soc->machine.ddr_peak_bytes_per_s / 1e9);
        }
    }
}

/* The object of a key, created if missing. */
static cJSON *object_at(cJSON *o, const char *key)
{
    cJSON *there = json_member(o, key);
    return there != NULL ? there : cJSON_AddObjectToObject(o, key);
}

/* Whether a row is new to its entry. Otherwise it would narrow a range each time. */
static bool is_new(const struct measured_work *w, const struct update_row *r)
{
    const struct point *p = r->point;
    OWNED char *text = xformat("%s at %u bits, %s, %u tokens, batch %u: %.9g", p->model,
                               p->weight_bits, p->metric_name, p->input_tokens, p->batch, p->value);
    cJSON *fit = object_at(measured_entry_tree(w, r->k.device, r->k.runtime), "fit");
    cJSON *measured = object_at(fit, "measured");
    cJSON *took = json_member(measured, "took");
    took = took != NULL ? took : cJSON_AddArrayToObject(measured, "took");
    const cJSON *t;
    cJSON_ArrayForEach (t, took) {
        if (cJSON_IsString(t) && strcmp(t->valuestring, text) == 0) {
            return false;
        }
    }
    (void)cJSON_AddItemToArray(took, cJSON_CreateString(text));
    return true;
}

static int bind(struct measured_work *w)
{
    size_t before = w->e->n;
    size_t n = w->m->points.n;
    w->m->points.n = 0;
    w->rows = xcalloc(n + 1, sizeof *w->rows);
    for (size_t i = 0; i < n; i++) {
        size_t at = w->m->points.n;
        struct point *p = &w->m->points.v[at];
        *p = w->m->points.v[i];
        w->m->place[at] = w->m->place[i];
        complete(w, p);
        w->rows[at].point = p;
        predict_bind(w->c, p, &w->rows[at].k);
        check_row(w, at);
        if (w->e->n > before || is_new(w, &w->rows[at])) {
            w->m->points.n++;
        } else {
            document_note(w->d, "%s: %s %s has updated the file already, and counts once",
                          w->m->place[at], p->model, p->metric_name);
        }
    }
    if (n > 0 && w->m->points.n == 0) {
        (void)err_add(w->e, "%s: every row has updated the file already", w->soc->machine.name);
    }
    return w->e->n > before ? -EINVAL : 0;
}

static size_t rows_of(const struct measured_work *w, uint8_t device, struct update_row *out)
{
    size_t n = 0;
    for (size_t i = 0; i < w->m->points.n; i++) {
        if (w->rows[i].k.device == device) {
            out[n++] = w->rows[i];
        }
    }
    return n;
}

static size_t models_of(const struct update_row *rows, size_t n)
{
    size_t models = 0;
    for (size_t i = 0; i < n; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++) {
            first = first && strcmp(rows[i].k.llm.name, rows[j].k.llm.name) != 0;
        }
        models += first;
    }
    return models;
}

/* ---- the file ---- */

/* Writes a number with its new value and range. */
static void write_number(const struct measured_work *w, const struct update *u, size_t i,
                         double prior_sd, const char *source, bool measured)
{
    const struct update_param *p = &u->params[i];
    cJSON *to = measured_entry_tree(w, u->device, p->runtime);
    const char *key = calibrate_param_names[p->k];
    if (strncmp(key, "one_row.", 8) == 0) {
        to = json_member(to, "one_row");
        key += 8;
    }
    double unit = calibrate_file_unit[p->k];
    double offset = calibrate_offsets[p->k];
    double v = gsl_vector_get(u->mean, i);
    double sd = sqrt(gsl_matrix_get(u->covariance, i, i));
    double value = fmax(0.0, calibrate_x_of(v, offset));
    double high = calibrate_x_of(v + NORMAL_95 * sd, offset);
    if (p->k == CALIBRATE_BANDWIDTH || p->k == CALIBRATE_ONE_BANDWIDTH) {
        value = fmin(value, u->soc->machine.ddr_peak_bytes_per_s);
        high = fmin(high, u->soc->machine.ddr_peak_bytes_per_s);
    }
    struct quantity q = {
        .value = calibrate_rounded(value / unit),
        .low = calibrate_rounded(fmax(0.0, calibrate_x_of(v - NORMAL_95 * sd, offset)) / unit),
        .high = calibrate_rounded(high / unit)};
    bool fitted = measured && sd * sd <= FITTED_SHARE * prior_sd * prior_sd;
    q.kind = fitted ? QUANTITY_FITTED : QUANTITY_ASSUMED;
    json_put_quantity(to, key, q, calibrate_unit_names[p->k], source);
}

/* Writes an entry's covariance, for --uncertainty, and the errors of other models. */
static void write_fit(const struct measured_work *w, const struct update *u, uint32_t runtime,
                      double sd[2][UPDATE_PHASES], size_t rows, size_t models)
{
    cJSON *entry = measured_entry_tree(w, u->device, runtime);
    cJSON *fit = object_at(entry, "fit");
    static const char *const old[] = {"parameters", "ln_covariance", "error_sd"};
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(fit, old[i]);
    }
    cJSON *measured = object_at(fit, "measured");
    cJSON_DeleteItemFromObjectCaseSensitive(measured, "rows");
    cJSON_DeleteItemFromObjectCaseSensitive(measured, "models");
    JSON_MEMBERS(measured, "rows", (double)rows, "models", (double)models);
    cJSON *names = cJSON_AddArrayToObject(fit, "parameters");
    cJSON *matrix = cJSON_AddArrayToObject(fit, "ln_covariance");
    for (size_t i = 0; i < u->n; i++) {
        if (u->params[i].runtime != runtime) {
            continue;
        }
        cJSON_AddItemToArray(names, cJSON_CreateString(calibrate_param_names[u->params[i].k]));
        cJSON *row = cJSON_CreateArray();
        for (size_t j = 0; j < u->n; j++) {
            if (u->params[j].runtime == runtime) {
                double v = gsl_matrix_get(u->covariance, i, j);
                cJSON_AddItemToArray(row, cJSON_CreateNumber(calibrate_rounded(v)));
            }
        }
        cJSON_AddItemToArray(matrix, row);
    }
    cJSON *errors = cJSON_AddObjectToObject(fit, "error_sd");
    for (int small = 0; small < 2; small++) {
        for (int phase = 0; phase < UPDATE_PHASES; phase++) {
            cJSON_AddNumberToObject(errors, soc_error_names[small][phase],
                                    calibrate_rounded(sd[small][phase]));
        }
    }
}

static void error_sds(const struct measured_work *w, const struct update *u, uint32_t runtime,
                      double sd[2][UPDATE_PHASES])
{
    for (int small = 0; small < 2; small++) {
        SCOPED(update_usual_fini) struct update_usual usual;
        update_usual(u, w->c, w->soc->devices[u->device].runtimes[runtime].runtime, small == 1,
                     UPDATE_MODELS, &usual);
        for (int phase = 0; phase < UPDATE_PHASES; phase++) {
            sd[small][phase] = update_error_sd(u, &usual, runtime, (enum conformal_phase)phase);
            if (isnan(sd[small][phase])) { /* no published model fits this machine */
                sd[small][phase] = u->spread[small][phase].tail_sd;
            }
        }
    }
}

/* Reports rows that are unlikely under the prior, which still count, and refuses impossible ones.
 */
static int check_surprises(const struct measured_work *w, const struct update *prior)
{
    size_t before = w->e->n;
    for (size_t i = 0; i < w->m->points.n; i++) {
        if (w->rows[i].k.device != prior->device) {
            continue;
        }
        struct update_prediction x = update_predict(prior, &w->rows[i]);
        double away = log(point_pass_seconds(w->rows[i].point)) - x.ln_seconds;
        const struct point *p = w->rows[i].point;
        if (fabs(away) > MISTAKE_SD * x.sd) {
            (void)err_add(w->e,
                          "%s: %s %s takes x %.3g of the time that %s predicts before the update: "
                          "another machine or model, or a mistake",
                          w->m->place[i], p->model, p->metric_name, exp(away),
                          w->soc->machine.name);
        } else if (fabs(away) > SURPRISE_SD * x.sd) {
            document_note(w->d,
                          "%s: %s %s takes x %.2f of the time that %s predicts before the update; "
                          "check machine, model and runtime",
                          w->m->place[i], p->model, p->metric_name, exp(away),
                          w->soc->machine.name);
        }
    }
    return w->e->n > before ? -EINVAL : 0;
}

/* Runs use a device's default runtime. If it has no rows, it was not measured here, so the one with
 * most rows becomes the default. */
static void write_default(const struct measured_work *w, uint8_t device,
                          const struct update_row *rows, size_t n)
{
    const struct soc_device *d = &w->soc->devices[device];
    uint32_t best = d->fallback;
    size_t most = 0;
    for (uint32_t r = 0; r < d->n_runtimes; r++) {
        size_t here = 0;
        for (size_t i = 0; i < n; i++) {
            here += rows[i].k.runtime == r;
        }
        if (here > 0 && strcmp(d->runtimes[r].runtime, d->runtimes[d->fallback].runtime) == 0) {
            return;
        }
        best = here > most ? r : best;
        most = here > most ? here : most;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(measured_entry_tree(w, device, d->fallback), "default");
    cJSON_AddTrueToObject(measured_entry_tree(w, device, best), "default");
    document_note(w->d, "%s: runs use %s, which was measured, instead of %s",
                  w->soc->machine.devices[device].name, d->runtimes[best].runtime,
                  d->runtimes[d->fallback].runtime);
}

/* ---- the whole update ---- */

static void write_device(const struct measured_work *w, const struct update *prior,
                         const struct update *u, const struct update_row *rows, size_t n)
{
    size_t models = models_of(rows, n);
    OWNED char *source =
        xformat("%zu measured row%s of %zu model%s on this machine, and the range before them%s; "
                "range: 95 %%",
                n, text_plural(n), models, text_plural(models),
                w->like != NULL && w->like->n > 1 ? ", averaged over similar chips" : "");
    for (size_t i = 0; i < u->n; i++) {
        write_number(w, u, i, sqrt(gsl_matrix_get(prior->covariance, i, i)), source,
                     measured_has_rows(rows, n, u->params[i].runtime));
    }
    document_note(w->d, "%s: updated by %zu measured row%s of %zu model%s",
                  w->soc->machine.devices[u->device].name, n, text_plural(n), models,
                  text_plural(models));
    write_default(w, u->device, rows, n);
    measured_put_numbers(w, prior, u, rows, n);
    struct frame *errors = measured_errors_table(w->d);
    for (uint32_t r = 0; r < w->soc->devices[u->device].n_runtimes; r++) {
        double before[2][UPDATE_PHASES];
        double after[2][UPDATE_PHASES];
        error_sds(w, prior, r, before);
        error_sds(w, u, r, after);
        write_fit(w, u, r, after, n, models);
        if (measured_has_rows(rows, n, r)) {
            measured_put_errors(w, u, r, before[0], after[0], errors);
        }
    }
}

static int update_device(const struct measured_work *w, uint8_t device)
{
    OWNED struct update_row *rows = xmalloc((w->m->points.n + 1) * sizeof *rows);
    size_t n = rows_of(w, device, rows);
    SCOPED(update_fini) struct update prior = {0};
    SCOPED(update_fini) struct update u = {0};
    int rc = 0;
    if (n > 0) {
        update_init(&prior, w->soc, w->tree, device, &w->c->residuals);
        update_init(&u, w->soc, w->tree, device, &w->c->residuals);
        measured_like_average(w->like, &prior, &w->c->residuals);
        measured_like_average(w->like, &u, &w->c->residuals);
        rc = check_surprises(w, &prior);
        rc = rc == 0 ? update_take(&u, rows, n, w->e) : rc;
    }
    if (n > 0 && rc == 0) {
        write_device(w, &prior, &u, rows, n);
        measured_put_next(w, &u, rows, n);
    }
    return rc;
}

int measured_update(struct catalog *c, cJSON *tree, struct measured *m,
                    const struct measured_like *like, struct document *d, struct err *e)
{
    struct soc *soc = xkept(xmalloc(sizeof *soc));
    if (soc_parse(tree, json_string(tree, "name"), soc, e) != 0) { /* rows refer to it by name */
        return -EINVAL;
    }
    catalog_add_soc(c, soc);
    struct measured_work w = {
        .c = c, .soc = soc, .tree = tree, .m = m, .like = like, .d = d, .e = e};
    int rc = catalog_add_models(c, &m->points, e);
    rc = rc == 0 ? bind(&w) : rc;
    for (uint8_t i = 0; rc == 0 && i < soc->machine.n_devices; i++) {
        rc = update_device(&w, i);
    }
    if (rc == 0) {
        OWNED char *note =
            xformat("Measured on this machine: %zu row%s. Its other numbers are those of "
                    "the file that they updated.",
                    m->points.n, text_plural(m->points.n));
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "note");
        (void)cJSON_AddStringToObject(tree, "note", note);
    }
    free(w.rows);
    return rc;
}
