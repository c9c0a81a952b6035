/* The report of an update: numbers before and after, errors of other models, the next benchmark. */
#include "experiments/validation/calibrate_report.h"
#include "experiments/validation/measured_update_impl.h"
#include "sim/base/json.h"

#define NORMAL_95 1.959964
#define NEXT_MODELS 12 /* models to choose the next benchmark from */

static const struct frame_column number_columns[] = {
    {.name = "device", .kind = FRAME_TEXT},
    {.name = "runtime", .kind = FRAME_TEXT},
    {.name = "weight_bits", .title = "bits"},
    {.name = "number", .kind = FRAME_TEXT},
    {.name = "unit", .kind = FRAME_TEXT},
    {.name = "before", .format = "%.4g"},
    {.name = "after", .format = "%.4g"},
    {.name = "low", .format = "%.4g"},
    {.name = "high", .format = "%.4g"},
    {.name = "sd_ratio", .title = "range x", .format = "%.2f"},
};

static const struct frame_column error_columns[] = {
    {.name = "device", .kind = FRAME_TEXT},
    {.name = "runtime", .kind = FRAME_TEXT},
    {.name = "weight_bits", .title = "bits"},
    {.name = "phase", .title = "95 % of other models", .kind = FRAME_TEXT},
    {.name = "factor_before", .title = "before: x or /", .format = "%.2f"},
    {.name = "factor_after", .title = "now", .format = "%.2f"},
};

cJSON *measured_entry_tree(const struct measured_work *w, uint8_t device, uint32_t runtime)
{
    cJSON *devices = json_member(w->tree, "devices");
    return cJSON_GetArrayItem(json_member(cJSON_GetArrayItem(devices, device), "runtimes"),
                              (int)runtime);
}

bool measured_has_rows(const struct update_row *rows, size_t n, uint32_t runtime)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].k.runtime == runtime) {
            return true;
        }
    }
    return false;
}

void measured_put_numbers(const struct measured_work *w, const struct update *prior,
                          const struct update *u, const struct update_row *rows, size_t n)
{
    struct frame *f = frame_indent(DOCUMENT_FRAME(w->d, "numbers", 0, number_columns), 2);
    for (size_t i = 0; i < u->n; i++) {
        const struct update_param *p = &u->params[i];
        if (!measured_has_rows(rows, n, p->runtime)) {
            continue;
        }
        const struct soc_runtime *r = &w->soc->devices[u->device].runtimes[p->runtime];
        const struct soc_runtime before = update_entry(prior, p->runtime);
        const char *bad;
        const cJSON *q = json_find_path(measured_entry_tree(w, u->device, p->runtime),
                                        calibrate_param_names[p->k], &bad);
        double ratio =
            sqrt(gsl_matrix_get(u->covariance, i, i) / gsl_matrix_get(prior->covariance, i, i));
        FRAME_ROW(f, w->soc->machine.devices[u->device].name, r->runtime, r->weight_bits,
                  calibrate_param_names[p->k], calibrate_unit_names[p->k],
                  calibrate_param_get(&before, p->k) / calibrate_file_unit[p->k],
                  json_number(q, "value"), json_number(q, "low"), json_number(q, "high"), ratio);
    }
}

struct frame *measured_errors_table(struct document *d)
{
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "errors", 0, error_columns), 2);
    return f;
}

void measured_put_errors(const struct measured_work *w, const struct update *u, uint32_t runtime,
                         const double before[UPDATE_PHASES], const double after[UPDATE_PHASES],
                         struct frame *f)
{
    const struct soc_runtime *r = &w->soc->devices[u->device].runtimes[runtime];
    for (int phase = 0; phase < UPDATE_PHASES; phase++) {
        FRAME_ROW(f, w->soc->machine.devices[u->device].name, r->runtime, r->weight_bits,
                  conformal_phase_names[phase], exp(NORMAL_95 * before[phase]),
                  exp(NORMAL_95 * after[phase]));
    }
}

static const struct frame_column next_columns[] = {
    {.name = "device", .title = "measure next: device", .kind = FRAME_TEXT},
    {.name = "runtime", .kind = FRAME_TEXT},
    {.name = "model", .kind = FRAME_TEXT},
    {.name = "weight_bits", .title = "bits"},
    {.name = "variance_removed_frac",
     .title = "variance it removes",
     .scale = 100.0,
     .format = "%.0f %%"},
};

/* Proposes for each width the benchmark with the largest gain, of a model not measured at it. */
void measured_put_next(const struct measured_work *w, const struct update *u,
                       const struct update_row *rows, size_t n)
{
    SCOPED(update_usual_fini) struct update_usual x;
    const struct soc_device *d = &w->soc->devices[u->device];
    update_usual(u, w->c, d->runtimes[rows[0].k.runtime].runtime, false, NEXT_MODELS, &x);
    OWNED double *share = xcalloc(x.n + 1, sizeof *share);
    update_gains(u, &x, share);
    for (size_t i = 0; i < x.n; i++) {
        const struct predict_case *k = &x.v[i]->rows[0].k;
        for (size_t j = 0; j < n; j++) {
            if (rows[j].k.runtime == k->runtime && strcmp(rows[j].k.llm.name, k->llm.name) == 0) {
                share[i] = 0.0;
            }
        }
    }
    struct frame *f = frame_indent(DOCUMENT_FRAME(w->d, "next", 0, next_columns), 2);
    for (uint32_t r = 0; r < d->n_runtimes; r++) {
        size_t best = x.n;
        for (size_t i = 0; i < x.n; i++) {
            bool better = share[i] > (best < x.n ? share[best] : 0.0);
            best = x.v[i]->rows[0].k.runtime == r && better ? i : best;
        }
        if (best < x.n) {
            FRAME_ROW(f, w->soc->machine.devices[u->device].name, d->runtimes[r].runtime,
                      x.v[best]->rows[0].k.llm.name, d->runtimes[r].weight_bits, share[best]);
        }
    }
}
