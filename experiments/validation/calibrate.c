#include "experiments/validation/calibrate.h"

static void add_row(struct calibrate_set *s, const struct point *p, const struct predict_case *k)
{
    s->rows = xgrow(s->rows, s->n, sizeof *s->rows);
    const struct soc_device *mine = &s->soc->devices[s->device];
    const struct soc_device *its = &k->soc->devices[k->device];
    struct calibrate_row *r = &s->rows[s->n++];
    *r = (struct calibrate_row){.point = p, .k = *k, .seconds = point_pass_seconds(p)};
    r->rate_scale = its->peak_flop_per_s / mine->peak_flop_per_s;
    r->bandwidth_scale =
        k->soc->machine.ddr_peak_bytes_per_s / s->soc->machine.ddr_peak_bytes_per_s;
}

static bool same_family(const struct soc *a, const struct soc *b)
{
    return strcmp(a->machine.name, b->machine.name) == 0 ||
           (a->family[0] != '\0' && strcmp(a->family, b->family) == 0);
}

/* Rounding of sums depends on the order. With sorted rows, the digits in a file do not depend on
 * the order of its points. */
SORT_BY(by_content, struct calibrate_row, SORT_TEXT(point->soc), SORT_TEXT(point->runtime),
        SORT_TEXT(point->model), SORT_UP(point->metric), SORT_UP(point->input_tokens),
        SORT_UP(point->batch), SORT_UP(point->value))

void calibrate_collect(const struct catalog *c, const struct points *points, const struct soc *soc,
                       uint8_t device, uint32_t runtime, struct calibrate_set *out)
{
    *out = (struct calibrate_set){.soc = soc, .device = device, .runtime = runtime};
    const struct soc_runtime *mine = &soc->devices[device].runtimes[runtime];
    for (size_t i = 0; i < points->n; i++) {
        const struct point *p = &points->v[i];
        if (!point_is_latency(p)) {
            continue;
        }
        struct predict_case k;
        predict_bind(c, p, &k);
        if (k.reason != NULL || k.match != SOC_MATCH_EXACT || !same_family(k.soc, soc) ||
            k.soc->machine.devices[k.device].kind != soc->machine.devices[device].kind) {
            continue;
        }
        const struct soc_runtime *its = &k.soc->devices[k.device].runtimes[k.runtime];
        if (its->weight_bits == mine->weight_bits && strcmp(its->runtime, mine->runtime) == 0) {
            add_row(out, p, &k);
        }
    }
    if (out->n > 1) {
        qsort(out->rows, out->n, sizeof *out->rows, by_content);
    }
}

void calibrate_set_fini(struct calibrate_set *s)
{
    free(s->rows);
    memset(s, 0, sizeof *s);
}

static bool same_model(const struct calibrate_row *a, const struct calibrate_row *b)
{
    return strcmp(a->k.llm.name, b->k.llm.name) == 0;
}

static bool same_source(const struct calibrate_row *a, const struct calibrate_row *b)
{
    return point_same_source(a->point->source, b->point->source);
}

static size_t leave_out(struct calibrate_set *s,
                        bool (*same)(const struct calibrate_row *a, const struct calibrate_row *b),
                        bool or_start)
{
    OWNED double *ln_error = xmalloc((s->n + 1) * sizeof *ln_error);
    OWNED bool *done = xcalloc(s->n + 1, sizeof *done);
    size_t refused = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (done[i]) {
            continue;
        }
        for (size_t j = 0; j < s->n; j++) {
            s->rows[j].left_out = same(&s->rows[j], &s->rows[i]);
        }
        struct calibrate_fit fit;
        SCOPED(err_fini) struct err e = ERR_INIT;
        bool ok = calibrate_fit(s, &fit, &e) == 0;
        refused += !ok;
        for (size_t j = i; j < s->n; j++) {
            if (s->rows[j].left_out) {
                done[j] = true;
                ln_error[j] = ok         ? s->rows[j].ln_error
                              : or_start ? calibrate_start_error(s, &s->rows[j])
                                         : (double)NAN;
            }
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        s->rows[i].ln_error = ln_error[i];
        s->rows[i].left_out = false;
    }
    calibrate_group(s);
    return refused;
}

size_t calibrate_leave_one_out(struct calibrate_set *s)
{
    return leave_out(s, same_model, true);
}

size_t calibrate_leave_source_out(struct calibrate_set *s)
{
    return leave_out(s, same_source, false);
}
