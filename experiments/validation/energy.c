#include "experiments/validation/energy.h"

#include <gsl/gsl_cdf.h>

#include "hwmodels/soc.h"
#include "sim/base/csv_record.h"
#include "sim/base/words.h"

#define MAX_WATTS 1e5
#define PRICED_BY "w1-reference" /* bytes of a pass are the model's on any machine */

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

/* ---- traffic and predicted rate of a row ---- */

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

/* Bytes of a token of decode; 0: unknown model. */
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
            r->p.meter < SOC_METER_WALL && soc->machine.idle_watts < r->p.watts) {
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

static bool same_power(const struct energy_point *a, const struct energy_point *b)
{
    return strcmp(a->soc, b->soc) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->runtime, b->runtime) == 0 && strcmp(a->model, b->model) == 0 &&
           a->weight_bits == b->weight_bits && a->meter == b->meter && a->prefill == b->prefill &&
           a->watts == b->watts && a->tok_s == b->tok_s;
}

int energy_read_judged(const struct catalog *c, const char *path, struct energy_rows *r,
                       struct err *e)
{
    struct energy_rows more;
    size_t before = e->n;
    size_t n = r->n;
    if (energy_read(c, path, &more, e) != 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < more.n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (same_power(&more.v[i].p, &r->v[j].p)) {
                (void)err_add(e, "%s:%llu: the fit has this power, too (line %llu)", path,
                              (unsigned long long)more.v[i].p.line,
                              (unsigned long long)r->v[j].p.line);
                break;
            }
        }
        more.v[i].judged = true;
        KEPT_ADD(r->v, r->n, more.v[i]);
    }
    return e->n == before ? 0 : -EINVAL;
}

/* ---- the model ---- */

static bool same_machine(const struct energy_row *a, const struct energy_row *b)
{
    return strcmp(a->p.soc, b->p.soc) == 0;
}

/* Whether two rows are from one source. Rows of one README are one publication per machine. */
static bool same_source(const struct energy_row *a, const struct energy_row *b)
{
    return same_machine(a, b) && point_same_source(a->p.source, b->p.source);
}

static bool counts(const struct energy_row *r, uint32_t meter)
{
    return r->reason == NULL && !r->left_out && !r->judged && r->p.meter == meter;
}

static double idle_of(const struct energy_row *r)
{
    return fmax(r->p.idle_watts, 0.0);
}

/* Number of rows of its publication for its kind of device. */
static size_t siblings(const struct energy_rows *r, const struct energy_row *of)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        n += counts(q, of->p.meter) && q->kind == of->kind && same_source(q, of);
    }
    return n;
}

struct energy_watts energy_fit(const struct energy_rows *r, uint32_t meter)
{
    struct energy_watts w = {.per_byte = meter != SOC_METER_RAIL};
    double sum[DEVICE_KIND_COUNT] = {0};
    double publications[DEVICE_KIND_COUNT] = {0};
    double of_all = 0.0;
    size_t kinds = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        if (counts(q, meter)) {
            double share = 1.0 / (double)siblings(r, q);
            double scale = w.per_byte ? 1e9 * q->gbs : 1.0;
            sum[q->kind] += share * log((q->p.watts - idle_of(q)) / scale);
            publications[q->kind] += share;
            w.n++;
        }
    }
    for (int k = 0; k < DEVICE_KIND_COUNT; k++) {
        sum[k] = publications[k] > 0.0 ? sum[k] / publications[k] : 0.0;
        of_all += sum[k];
        kinds += publications[k] > 0.0;
    }
    for (int k = 0; k < DEVICE_KIND_COUNT && kinds > 0; k++) {
        w.device[k] = exp(publications[k] > 0.0 ? sum[k] : of_all / (double)kinds);
    }
    return w;
}

static double fitted(const struct energy_watts *w, const struct energy_row *r, double gbs)
{
    return idle_of(r) + w->device[r->kind] * (w->per_byte ? 1e9 * gbs : 1.0);
}

static bool same_toolchain(const struct energy_row *a, const struct energy_row *b)
{
    size_t n = strcspn(a->p.runtime, "-.");
    return strcspn(b->p.runtime, "-.") == n && strncmp(a->p.runtime, b->p.runtime, n) == 0;
}

struct own {
    size_t n;
    double factor;
};

/* Readings of the row's machine with its toolchain, or with all if that has none. */
static struct own own_readings(const struct energy_rows *r, const struct energy_watts *w,
                               const struct energy_row *row)
{
    double sum[2] = {0.0};
    size_t n[2] = {0}; /* of the device; of the toolchain on it */
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        if (counts(q, row->p.meter) && q->kind == row->kind && same_machine(q, row)) {
            for (int its = 0; its <= same_toolchain(q, row); its++) {
                sum[its] += log(q->p.watts / fitted(w, q, q->gbs));
                n[its]++;
            }
        }
    }
    int its = n[1] > 0;
    return (struct own){n[its], exp(sum[its] / (double)(n[its] + 1))};
}

double energy_factor(const struct energy_rows *r, const struct energy_watts *w,
                     const struct energy_row *row)
{
    return own_readings(r, w, row).factor;
}

double energy_watts_of(const struct energy_rows *r, const struct energy_watts *w,
                       const struct energy_row *row, double gbs)
{
    return fitted(w, row, gbs) * energy_factor(r, w, row);
}

/* ---- leaving out ---- */

static bool same_model(const struct energy_row *a, const struct energy_row *b)
{
    return same_machine(a, b) && strcmp(a->p.model, b->p.model) == 0;
}

/* `out` selects rows to leave out; `group` selects rows whose errors make an interval together. */
static const struct {
    bool (*out)(const struct energy_row *a, const struct energy_row *b);
    bool (*group)(const struct energy_row *a, const struct energy_row *b);
} lefts[ENERGY_LEFTS] = {{same_source, same_source}, {same_model, same_machine}};

/* The share of an error of the rate that is one of joules per token: watts in proportion to the
 * rate cancel it, idle watts do not. */
static double rate_share(const struct energy_watts *w, const struct energy_row *r)
{
    return w->per_byte && !r->p.prefill ? idle_of(r) / fitted(w, r, r->rate_gbs) : 1.0;
}

static void predict_without(struct energy_rows *r, struct energy_row *row, enum energy_left left)
{
    for (size_t i = 0; i < r->n; i++) {
        r->v[i].left_out = !row->judged && lefts[left].out(&r->v[i], row);
    }
    struct energy_watts w = energy_fit(r, row->p.meter);
    w = w.n > 1 ? w : energy_fit(r, SOC_METER_PACKAGE);
    bool known = w.n > 1 && row->reason == NULL;
    row->left[left].watts = known ? energy_watts_of(r, &w, row, row->gbs) : (double)NAN;
    row->left[left].joules =
        known ? energy_watts_of(r, &w, row, row->rate_gbs) / row->rate_tok_s : (double)NAN;
    row->left[left].rate_share = rate_share(&w, row);
    row->left[left].own = own_readings(r, &w, row).n > 0;
    for (size_t i = 0; i < r->n; i++) {
        r->v[i].left_out = false;
    }
}

static double ln_error(const struct energy_row *r, enum energy_left left)
{
    return log(r->left[left].watts / r->p.watts);
}

/* Whether it is of the fit's table, and like the row has readings of its machine, or not. */
static bool alike(const struct energy_row *q, const struct energy_row *row, enum energy_left left)
{
    return !q->judged && !isnan(q->left[left].watts) && q->left[left].own == row->left[left].own;
}

/* Half-width of the 95 % interval of ln watts, from errors of other groups. */
static double half_of(const struct energy_rows *r, const struct energy_row *row,
                      enum energy_left left)
{
    double sum = 0.0;
    size_t groups = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct energy_row *q = &r->v[i];
        bool first = alike(q, row, left) && !lefts[left].group(q, row);
        double squares = 0.0;
        size_t n = 0;
        for (size_t j = 0; first && j < r->n; j++) {
            if (alike(&r->v[j], row, left) && lefts[left].group(&r->v[j], q)) {
                first = j >= i;
                squares += pow(ln_error(&r->v[j], left), 2.0);
                n++;
            }
        }
        if (first) {
            SIM_ASSERT(n > 0); /* a row is in its own group */
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
            q->left[left].joules_half =
                hypot(q->left[left].watts_half, q->left[left].rate_share * q->rate_half);
        }
    }
}
