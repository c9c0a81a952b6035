#include "experiments/validation/energy.h"

#include <gsl/gsl_cdf.h>

#include "experiments/validation/least_squares.h"
#include "hwmodels/soc.h"
#include "sim/base/csv_record.h"
#include "sim/base/words.h"

#define NUMBERS (DEVICE_KIND_COUNT + 2)
#define MAX_WATTS 1e5
#define NO_WATTS 1e-9            /* what a solver leaves of a zero: watts, or watts per GB/s */
#define PRICED_BY "w1-reference" /* bytes of a pass are the model's on any machine */

_Static_assert(NUMBERS <= LEAST_SQUARES_MAX, "a column for each number");

const char *const energy_left_names[] = {"source", "model"};

/* ---- reading ---- */

static const char *const phases[] = {"decode", "prefill", NULL};

#define OF(member) CSV_MEMBER(struct energy_row, p.member)
#define POSITIVE(member, most) CSV_NUMBER, OF(member), .min = 1e-6, .max = (most)

static void row_check(void *row, const struct csvfile *f, struct err *e)
{
    struct energy_point *p = &((struct energy_row *)row)->p;
    p->line = csvfile_line(f);
    if (p->idle_watts >= p->watts) {
        csvfile_refuse(f, csvfile_column(f, "idle_watts"), e, "must be below watts");
    }
}

static int read_points(const char *path, struct energy_rows *out, struct err *e)
{
    const struct csv_field fields[] = {
        {"soc", CSV_TEXT, OF(soc), .min = 1},
        {"device", CSV_TEXT, OF(device), .min = 1},
        {"runtime", CSV_TEXT, OF(runtime), .min = 1},
        {"model", CSV_TEXT, OF(model), .min = 1},
        {"weight_bits", CSV_WHOLE, OF(weight_bits), .min = 1, .max = 32},
        {"input_tokens", CSV_WHOLE, OF(input_tokens), .max = 1e7},
        {"phase", CSV_CHOICE, OF(prefill), .choices = phases},
        {"meter", CSV_CHOICE, OF(meter), .choices = soc_meter_names()},
        {"idle_watts", CSV_NUMBER, OF(idle_watts), .max = MAX_WATTS, .or_empty = true},
        {"watts", POSITIVE(watts, MAX_WATTS)},
        {"tok_s", POSITIVE(tok_s, 1e7)},
        {"source", CSV_TEXT, OF(source), .min = 1},
    };
    static const struct energy_row blank = {.p = {.idle_watts = -1.0}};
    const struct csv_table table =
        CSV_TABLE(fields, sizeof blank, .blank = &blank, .check = row_check, .holds = "powers");
    out->v = csv_table_read(&table, path, &out->n, e);
    return out->v != NULL ? 0 : -EINVAL;
}

/* ---- what a row's pass moves, and how fast a file says it is ---- */

static struct point as_point(const struct energy_point *p, bool prefill)
{
    return (struct point){.soc = p->soc,
                          .device = p->device,
                          .runtime = p->runtime,
                          .model = p->model,
                          .source = "",
                          .weight_bits = p->weight_bits,
                          .act_bits = 16,
                          .input_tokens = p->input_tokens,
                          .batch = 1,
                          .metric = prefill ? POINT_PREFILL_TOK_S : POINT_DECODE_TOK_S,
                          .value = p->tok_s};
}

/* Bytes of a token of decode; 0: nobody knows the model. */
static double token_bytes(const struct catalog *c, const struct energy_point *p)
{
    struct point as = as_point(p, false);
    as.soc = PRICED_BY;
    as.device = catalog_soc(c, PRICED_BY)->machine.devices[0].name;
    struct predict_case k;
    predict_bind(c, &as, &k);
    return k.has_llm ? predict_price(&k, &as, NULL).bytes : 0.0;
}

static void predict_rate(const struct catalog *c, struct energy_row *r, double bytes)
{
    struct point as = as_point(&r->p, r->p.prefill);
    struct prediction q = predict_row(c, &as);
    r->rate_tok_s = r->rate_gbs = r->rate_half = (double)NAN;
    if (q.reason == NULL && !isnan(q.low)) {
        r->rate_tok_s = q.value;
        r->rate_half = 0.5 * log(q.high / q.low);
        r->rate_gbs = r->p.prefill ? q.entry->one.bytes_per_s / 1e9 : q.value * bytes / 1e9;
        r->gbs = r->p.prefill ? r->rate_gbs : r->gbs;
    }
}

int energy_read(const struct catalog *c, const char *path, struct energy_rows *out, struct err *e)
{
    *out = (struct energy_rows){0};
    int rc = read_points(path, out, e);
    for (size_t i = 0; rc == 0 && i < out->n; i++) {
        struct energy_row *r = &out->v[i];
        int kind = words_find(device_kind_names(), r->p.device);
        double bytes = token_bytes(c, &r->p);
        const struct soc *soc = catalog_soc(c, r->p.soc);
        if (soc != NULL && r->p.idle_watts < 0.0 && r->p.meter >= SOC_METER_PACKAGE &&
            r->p.meter < SOC_METER_WALL) {
            r->p.idle_watts = soc->machine.idle_watts;
        }
        r->kind = kind < 0 ? DEVICE_KIND_IGPU : (enum device_kind)kind;
        r->gbs = r->p.prefill ? 0.0 : bytes * r->p.tok_s / 1e9;
        predict_rate(c, r, bytes);
        r->reason = kind < 0        ? "the work of several devices"
                    : bytes <= 0.0  ? "no file for this model"
                    : r->gbs <= 0.0 ? "a prefill whose machine has no file"
                                    : NULL;
    }
    return rc;
}

/* ---- the model ---- */

static bool counts(const struct energy_row *r, uint32_t meter)
{
    return r->reason == NULL && !r->left_out && r->p.meter == meter;
}

/* Kinds that no row determines have the mean of those that one does. */
static void fill_kinds(struct energy_watts *w, const size_t *rows)
{
    double sum = 0.0;
    size_t n = 0;
    for (int k = 0; k < DEVICE_KIND_COUNT; k++) {
        sum += rows[k] > 0 ? w->device[k] : 0.0;
        n += rows[k] > 0;
    }
    for (int k = 0; k < DEVICE_KIND_COUNT; k++) {
        w->device[k] = rows[k] > 0 ? w->device[k] : sum / (double)n;
    }
}

struct energy_watts energy_fit(const struct energy_rows *r, uint32_t meter)
{
    double(*a)[NUMBERS] = xmalloc((r->n + 1) * sizeof *a);
    OWNED double *y = xmalloc((r->n + 1) * sizeof *y);
    double x[NUMBERS] = {0};
    size_t rows[DEVICE_KIND_COUNT] = {0};
    struct energy_watts w = {0};
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        if (counts(q, meter)) {
            bool idle = q->p.idle_watts >= 0.0;
            memset(a[w.n], 0, sizeof a[w.n]);
            a[w.n][q->kind] = 1.0 / q->p.watts;
            a[w.n][DEVICE_KIND_COUNT] = idle ? 0.0 : 1.0 / q->p.watts;
            a[w.n][DEVICE_KIND_COUNT + 1] = q->gbs / q->p.watts;
            y[w.n++] = 1.0 - (idle ? q->p.idle_watts / q->p.watts : 0.0);
            rows[q->kind]++;
        }
    }
    if (w.n > 1) {
        least_squares_fit(&a[0][0], y, w.n, NUMBERS, x);
        for (int k = 0; k < NUMBERS; k++) {
            x[k] = x[k] < NO_WATTS ? 0.0 : x[k];
        }
        memcpy(w.device, x, sizeof w.device);
        w.idle = x[DEVICE_KIND_COUNT];
        w.joules_per_byte = 1e-9 * x[DEVICE_KIND_COUNT + 1];
        fill_kinds(&w, rows);
        SIM_ASSERT(w.idle >= 0.0 && w.joules_per_byte >= 0.0 && w.device[0] >= 0.0);
    }
    free(a);
    return w;
}

static double fitted(const struct energy_watts *w, const struct energy_row *r, double gbs)
{
    return (r->p.idle_watts >= 0.0 ? r->p.idle_watts : w->idle) + w->device[r->kind] +
           1e9 * w->joules_per_byte * gbs;
}

static bool same_toolchain(const struct energy_row *a, const struct energy_row *b)
{
    size_t n = strcspn(a->p.runtime, "-.");
    return strcspn(b->p.runtime, "-.") == n && strncmp(a->p.runtime, b->p.runtime, n) == 0;
}

double energy_watts_of(const struct energy_rows *r, const struct energy_watts *w,
                       const struct energy_row *row, double gbs)
{
    double sum[2] = {0.0};
    size_t n[2] = {0}; /* of the device; of the toolchain on it */
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        if (counts(q, row->p.meter) && q->kind == row->kind && strcmp(q->p.soc, row->p.soc) == 0) {
            for (int its = 0; its <= same_toolchain(q, row); its++) {
                sum[its] += log(q->p.watts / fitted(w, q, q->gbs));
                n[its]++;
            }
        }
    }
    int its = n[1] > 0;
    return fitted(w, row, gbs) * exp(sum[its] / (double)(n[its] + 1));
}

double energy_factor(const struct energy_rows *r, const struct energy_watts *w,
                     const struct energy_row *row)
{
    return energy_watts_of(r, w, row, row->gbs) / fitted(w, row, row->gbs);
}

/* ---- leaving out ---- */

/* Rows of one README are of one publication per machine. */
static bool same_source(const struct energy_row *a, const struct energy_row *b)
{
    return point_same_source(a->p.source, b->p.source) && strcmp(a->p.soc, b->p.soc) == 0;
}

static bool same_model(const struct energy_row *a, const struct energy_row *b)
{
    return strcmp(a->p.soc, b->p.soc) == 0 && strcmp(a->p.model, b->p.model) == 0;
}

static bool same_machine(const struct energy_row *a, const struct energy_row *b)
{
    return strcmp(a->p.soc, b->p.soc) == 0;
}

/* What is left out, and the groups whose errors make the intervals. */
static const struct {
    bool (*out)(const struct energy_row *a, const struct energy_row *b);
    bool (*group)(const struct energy_row *a, const struct energy_row *b);
} lefts[ENERGY_LEFTS] = {{same_source, same_source}, {same_model, same_machine}};

static void predict_without(struct energy_rows *r, struct energy_row *row, enum energy_left left)
{
    for (size_t i = 0; i < r->n; i++) {
        r->v[i].left_out = lefts[left].out(&r->v[i], row);
    }
    struct energy_watts w = energy_fit(r, row->p.meter);
    w = w.n > 1 ? w : energy_fit(r, SOC_METER_PACKAGE);
    bool known = w.n > 1 && row->reason == NULL;
    row->left[left].watts = known ? energy_watts_of(r, &w, row, row->gbs) : (double)NAN;
    row->left[left].joules =
        known ? energy_watts_of(r, &w, row, row->rate_gbs) / row->rate_tok_s : (double)NAN;
    for (size_t i = 0; i < r->n; i++) {
        r->v[i].left_out = false;
    }
}

static double ln_error(const struct energy_row *r, enum energy_left left)
{
    return log(r->left[left].watts / r->p.watts);
}

/* Half of the 95 % interval of ln watts, from other groups' errors. */
static double half_of(const struct energy_rows *r, const struct energy_row *row,
                      enum energy_left left)
{
    double sum = 0.0;
    size_t groups = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        bool first = !isnan(q->left[left].watts) && !lefts[left].group(q, row);
        double squares = 0.0;
        size_t n = 0;
        for (size_t j = 0; first && j < r->n; j++) {
            if (!isnan(r->v[j].left[left].watts) && lefts[left].group(&r->v[j], q)) {
                first = j >= i;
                squares += pow(ln_error(&r->v[j], left), 2.0);
                n++;
            }
        }
        if (first) {
            SIM_ASSERT(n > 0); /* it is of its own group */
            sum += squares / (double)n;
            groups++;
        }
    }
    return groups < 2
               ? (double)NAN
               : gsl_cdf_tdist_Pinv(0.975, (double)groups - 1.0) * sqrt(sum / (double)groups);
}

void energy_leave_out(struct energy_rows *r)
{
    for (int left = 0; left < ENERGY_LEFTS; left++) {
        for (size_t i = 0; i < r->n; i++) {
            predict_without(r, &r->v[i], (enum energy_left)left);
        }
        for (size_t i = 0; i < r->n; i++) {
            struct energy_row *q = &r->v[i];
            q->left[left].watts_half = half_of(r, q, (enum energy_left)left);
            q->left[left].joules_half = hypot(q->left[left].watts_half, q->rate_half);
        }
    }
}
