#include "experiments/validation/validate.h"

#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "experiments/validation/energy.h"
#include "hwmodels/soc.h"
#include "sim/base/datadir.h"
#include "sim/base/quantile.h"

static const char *kind_name(const struct energy_row *r)
{
    return device_kind_names()[r->kind];
}

/* ---- the numbers of every meter ---- */

static const struct frame_column number_columns[] = {
    {.name = "meter", .kind = FRAME_TEXT},
    {.name = "number", .title = "", .kind = FRAME_TEXT},
    {.name = "rows"},
    {.name = "value", .format = "%.3g"},
    {.name = "low", .title = "without a source: least", .format = "%.3g", .missing = ""},
    {.name = "high", .title = "most", .format = "%.3g", .missing = ""},
    {.name = "unit", .title = "", .kind = FRAME_TEXT},
};

/* The range of each kind's number over fits without one of the meter's sources. low->n: fits. */
static void put_range(struct energy_rows *r, uint32_t meter, struct energy_watts *low,
                      struct energy_watts *high)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].p.meter != meter) {
            continue;
        }
        for (size_t j = 0; j < r->n; j++) {
            r->v[j].left_out = strcmp(r->v[j].p.source, r->v[i].p.source) == 0;
        }
        struct energy_watts w = energy_fit(r, meter);
        for (int k = 0; k < DEVICE_KIND_COUNT && w.n > 1; k++) {
            low->device[k] = low->n == 0 ? w.device[k] : fmin(low->device[k], w.device[k]);
            high->device[k] = fmax(high->device[k], w.device[k]);
        }
        low->n += w.n > 1;
    }
    for (size_t j = 0; j < r->n; j++) {
        r->v[j].left_out = false;
    }
}

static void put_numbers(struct energy_rows *r, uint32_t meter, struct frame *f)
{
    struct energy_watts all = energy_fit(r, meter);
    struct energy_watts low = {0};
    struct energy_watts high = {0};
    put_range(r, meter, &low, &high);
    for (int k = 0; k < DEVICE_KIND_COUNT && all.n > 1; k++) {
        size_t rows = 0;
        for (size_t i = 0; i < r->n; i++) {
            const struct energy_row *q = &r->v[i];
            rows += q->reason == NULL && q->p.meter == meter && q->kind == (enum device_kind)k;
        }
        if (rows > 0) {
            double scale = all.per_byte ? 1e12 : 1.0;
            FRAME_ROW(f, soc_meter_names()[meter], device_kind_names()[k], rows,
                      scale * all.device[k], FRAME_IF(low.n > 0, scale * low.device[k]),
                      FRAME_IF(low.n > 0, scale * high.device[k]), all.per_byte ? "pJ/B" : "W");
        }
    }
}

/* ---- machines with readings of their own ---- */

static const struct frame_column factor_columns[] = {
    {.name = "soc", .title = "own factor", .kind = FRAME_TEXT},
    {.name = "meter", .title = "", .kind = FRAME_TEXT},
    {.name = "device", .title = "", .kind = FRAME_TEXT},
    {.name = "runtime", .title = "", .kind = FRAME_TEXT},
    {.name = "rows"},
    {.name = "factor", .format = "x %.3g"},
};

static bool share_a_factor(const struct energy_row *a, const struct energy_row *b)
{
    return a->reason == NULL && b->reason == NULL && a->p.meter == b->p.meter &&
           a->kind == b->kind && strcmp(a->p.soc, b->p.soc) == 0 &&
           strcmp(a->p.runtime, b->p.runtime) == 0;
}

static void put_factors(const struct energy_rows *r, struct document *d)
{
    document_note(d, "%s", "");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "factors", 0, factor_columns), 2);
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        struct energy_watts w = energy_fit(r, q->p.meter);
        size_t n = 0;
        bool first = q->reason == NULL && w.n > 1;
        for (size_t j = 0; j < r->n; j++) {
            bool same = share_a_factor(q, &r->v[j]);
            first = first && (j >= i || !same);
            n += same;
        }
        if (first) {
            FRAME_ROW(f, q->p.soc, soc_meter_names()[q->p.meter], kind_name(q), q->p.runtime, n,
                      energy_factor(r, &w, q));
        }
    }
}

/* ---- errors ---- */

static const struct frame_column error_columns[] = {
    {.name = "quantity", .kind = FRAME_TEXT},
    {.name = "left_out", .title = "left out", .kind = FRAME_TEXT},
    {.name = "meter", .kind = FRAME_TEXT},
    {.name = "rows"},
    {.name = "median_frac", .title = "|error|, %", .scale = 100.0, .format = "%.1f"},
    {.name = "p90_frac", .title = "P90", .scale = 100.0, .format = "%.1f"},
    {.name = "inside_frac", .title = "in 95 %", .scale = 100.0, .format = "%.1f", .missing = ""},
    {.name = "factor", .title = "x or /", .format = "%.2f", .missing = ""},
};

struct class_of {
    bool joules;
    enum energy_left left;
    int meter; /* below 0: all */
    bool judged;
};

static bool error_in(const struct energy_row *r, const struct class_of *x, double *error,
                     double *half)
{
    double measured = x->joules ? r->p.watts / r->p.tok_s : r->p.watts;
    double predicted = x->joules ? r->left[x->left].joules : r->left[x->left].watts;
    *error = predicted / measured;
    *half = x->joules ? r->left[x->left].joules_half : r->left[x->left].watts_half;
    return r->judged == x->judged && !isnan(predicted) &&
           (x->meter < 0 || r->p.meter == (uint32_t)x->meter);
}

static void put_class(const struct energy_rows *r, const struct class_of *x, struct frame *f)
{
    OWNED double *error = xmalloc((r->n + 1) * sizeof *error);
    OWNED double *halves = xmalloc((r->n + 1) * sizeof *halves);
    size_t n = 0;
    size_t with = 0;
    size_t inside = 0;
    for (size_t i = 0; i < r->n; i++) {
        double ratio;
        double half;
        if (error_in(&r->v[i], x, &ratio, &half)) {
            error[n++] = fabs(ratio - 1.0);
            if (!isnan(half)) {
                inside += fabs(log(ratio)) <= half;
                halves[with++] = half;
            }
        }
    }
    if (n > 0) {
        FRAME_ROW(f, x->joules ? "J/token, rate predicted" : "W, rate measured",
                  x->judged ? "table" : energy_left_names[x->left],
                  x->meter < 0 ? "all" : soc_meter_names()[x->meter], n,
                  sample_quantile_of(error, n, 0.5), sample_quantile_of(error, n, 0.9),
                  FRAME_IF(with > 0, (double)inside / (double)with),
                  FRAME_IF(with > 0, exp(sample_quantile_of(halves, with, 0.5))));
    }
}

static void put_errors(const struct energy_rows *r, bool judged, struct document *d)
{
    document_note(d, "%s", "");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "errors", 0, error_columns), 2);
    for (int joules = 0; joules < 2; joules++) {
        for (int left = 0; left < (judged ? 1 : ENERGY_LEFTS); left++) {
            for (int meter = -1; meter < 0 || soc_meter_names()[meter] != NULL; meter++) {
                put_class(r, &(struct class_of){joules == 1, (enum energy_left)left, meter, judged},
                          f);
            }
        }
    }
}

/* ---- differences of two publications of one case ---- */

static const struct frame_column pair_columns[] = {
    {.name = "soc", .title = "read twice", .kind = FRAME_TEXT},
    {.name = "device", .title = "", .kind = FRAME_TEXT},
    {.name = "model", .title = "", .kind = FRAME_TEXT},
    {.name = "meter", .title = "", .kind = FRAME_TEXT},
    {.name = "watts", .format = "%.3g"},
    {.name = "again", .format = "%.3g"},
    {.name = "factor", .format = "x %.2f"},
};

static bool same_case(const struct energy_point *a, const struct energy_point *b)
{
    return strcmp(a->soc, b->soc) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->model, b->model) == 0 && a->weight_bits == b->weight_bits &&
           a->meter == b->meter && a->prefill == b->prefill &&
           strncmp(a->runtime, b->runtime, strcspn(a->runtime, "-.")) == 0;
}

static void put_pairs(const struct energy_rows *r, struct document *d)
{
    document_note(d, "%s", "");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "pairs", 0, pair_columns), 2);
    for (size_t i = 0; i < r->n; i++) {
        for (size_t j = i + 1; j < r->n; j++) {
            const struct energy_point *a = &r->v[i].p;
            const struct energy_point *b = &r->v[j].p;
            if (same_case(a, b)) {
                double factor = b->watts / a->watts;
                FRAME_ROW(f, a->soc, a->device, a->model, soc_meter_names()[a->meter], a->watts,
                          b->watts, fmax(factor, 1.0 / factor));
            }
        }
    }
}

/* ---- every row ---- */

static const struct frame_column row_columns[] = {
    {.name = "line"},
    {.name = "soc", .kind = FRAME_TEXT},
    {.name = "device", .kind = FRAME_TEXT},
    {.name = "runtime", .kind = FRAME_TEXT},
    {.name = "model", .kind = FRAME_TEXT},
    {.name = "phase", .kind = FRAME_TEXT},
    {.name = "meter", .kind = FRAME_TEXT},
    {.name = "joules", .title = "J/token", .format = "%.4g"},
    {.name = "joules_frac",
     .title = "J/token, %",
     .scale = 100.0,
     .format = "%+.1f",
     .missing = ""},
    {.name = "watts", .title = "W", .format = "%.4g"},
    {.name = "predicted", .format = "%.4g", .missing = ""},
    {.name = "low", .format = "%.4g", .missing = ""},
    {.name = "high", .format = "%.4g", .missing = ""},
    {.name = "error_frac", .title = "error, %", .scale = 100.0, .format = "%+.1f", .missing = ""},
    {.name = "reason", .title = "", .kind = FRAME_TEXT, .missing = ""},
    {.name = "source", .kind = FRAME_TEXT, .only_data = true},
};

static void put_rows(const struct energy_rows *r, bool judged, struct document *d)
{
    document_note(d, "\nrows, each predicted by a fit without its %s",
                  judged ? "table" : "publication");
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "rows", 0, row_columns), 2);
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        if (q->judged != judged) {
            continue;
        }
        double watts = q->left[ENERGY_SOURCE].watts;
        double spread = exp(q->left[ENERGY_SOURCE].watts_half);
        double joules = q->p.watts / q->p.tok_s;
        bool known = !isnan(watts);
        FRAME_ROW(f, q->p.line, q->p.soc, q->p.device, q->p.runtime, q->p.model,
                  q->p.prefill ? "prefill" : "decode", soc_meter_names()[q->p.meter], joules,
                  q->left[ENERGY_SOURCE].joules / joules - 1.0, q->p.watts, FRAME_IF(known, watts),
                  FRAME_IF(known, watts / spread), FRAME_IF(known, watts * spread),
                  FRAME_IF(known, watts / q->p.watts - 1.0),
                  FRAME_IF(!known, q->reason != NULL ? q->reason : "too few powers to fit"),
                  q->p.source);
    }
}

/* Puts the fitted numbers. */
static void put_fit(struct energy_rows *r, struct document *d)
{
    struct frame *f = frame_indent(DOCUMENT_FRAME(d, "numbers", 0, number_columns), 2);
    for (uint32_t meter = 0; soc_meter_names()[meter] != NULL; meter++) {
        put_numbers(r, meter, f);
    }
    put_factors(r, d);
}

static const char *table_path(const char *name)
{
    return datadir_named(name, "hwmodels/points", ".csv");
}

int validate_energy(const struct validate_energy_options *o, const struct option_output *out,
                    struct err *e)
{
    struct catalog c;
    struct energy_rows r = {0};
    bool judged = o->unseen != NULL;
    if (catalog_open(&c, e) != 0 || energy_read(&c, table_path(o->energy), &r, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    size_t n = r.n;
    if (judged && energy_read_judged(&c, table_path(o->unseen), &r, e) != 0) {
        return EXIT_BAD_INPUT;
    }
    struct document *d = document_new();
    DOCUMENT_VALUES(d, "energy", o->energy);
    document_note(d, "%s: %zu power%s%s", o->energy, n, text_plural(n), judged ? "" : "\n");
    if (judged) {
        DOCUMENT_VALUES(d, "unseen", o->unseen);
        document_note(d, "%s: %zu power%s, predicted by them", o->unseen, r.n - n,
                      text_plural(r.n - n));
    } else {
        put_fit(&r, d);
    }
    energy_leave_out(&r);
    put_errors(&r, judged, d);
    if (!judged) {
        put_pairs(&r, d);
    }
    put_rows(&r, judged, d);
    document_show(d, out);
    return EXIT_OK;
}

#define OPTIONS struct validate_energy_options

static const struct option_row option_rows[] = {
    OPTION_TEXT(OPTIONS, energy, "energy", "FILE.csv", NULL,
                "fit a watt model for each meter to published powers, and predict each row "
                "without its source; a shipped table: energy"),
};
const struct option_table validate_energy_option_table =
    OPTION_TABLE("Published powers", option_rows);
