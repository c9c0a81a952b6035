#include "experiments/validation/residuals.h"

#include <gsl/gsl_sort.h>

#include "experiments/validation/footprint_fit.h"
#include "hwmodels/transfers.h"
#include "sim/api/device.h"

/* ---- machines made from a sibling ---- */

#define MAX_PAIRS 256

/* Prints rows, median and P90 by phase, for one kind of device and one family (NULL: all). */
static void put_left_out(const struct conformal *c, enum device_kind kind, const char *family,
                         double *scratch, FILE *out)
{
    (void)fprintf(out, "  %-4s  %-20s", device_kind_names()[kind], family != NULL ? family : "all");
    for (int phase = CONFORMAL_PREFILL; phase <= CONFORMAL_DECODE; phase++) {
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++) {
            const struct conformal_row *r = &c->v[i];
            bool counts = phase != CONFORMAL_DECODE || r->tokens >= CONFORMAL_SHORT_TOKENS;
            if (r->left == CONFORMAL_MODEL && counts && r->kind == kind && (int)r->phase == phase &&
                (family == NULL || strcmp(family, r->family) == 0)) {
                scratch[n++] = 100.0 * fabs(expm1(r->ln_error));
            }
        }
        gsl_sort(scratch, 1, n);
        if (n > 0) { /* nearest ranks */
            (void)fprintf(out, "  %4zu %7.1f %6.1f", n, scratch[(n + 1) / 2 - 1],
                          scratch[(9 * n + 9) / 10 - 1]);
        } else {
            (void)fprintf(out, "  %4s %7s %6s", "-", "", "");
        }
    }
    (void)fputc('\n', out);
}

static bool first_of(const struct conformal *c, size_t i, bool of_kind)
{
    const struct conformal_row *r = &c->v[i];
    for (size_t j = 0; j < i; j++) {
        const struct conformal_row *s = &c->v[j];
        if (s->left == CONFORMAL_MODEL && s->kind == r->kind &&
            (of_kind || strcmp(s->family, r->family) == 0)) {
            return false;
        }
    }
    return r->left == CONFORMAL_MODEL;
}

void left_out_table_print(const struct conformal *c, FILE *out)
{
    OWNED double *scratch = xmalloc((c->n + 1) * sizeof *scratch);
    (void)fprintf(out,
                  "models left out: |error| in %%, median and P90\n  %-4s  %-20s  %4s %7s %6s  %4s "
                  "%7s %6s  %4s %7s %6s\n",
                  "", "family", "rows", "prefill", "P90", "rows", "short", "P90", "rows", "decode",
                  "P90");
    for (size_t i = 0; i < c->n; i++) {
        if (first_of(c, i, true)) {
            put_left_out(c, c->v[i].kind, NULL, scratch, out);
        }
        if (first_of(c, i, false)) {
            put_left_out(c, c->v[i].kind, c->v[i].family, scratch, out);
        }
    }
}

static void put_cell(const struct transfer_error *x, FILE *out)
{
    if (x->n == 0) {
        (void)fprintf(out, "  %4s %7s %6s %6s", "-", "", "", "");
    } else {
        (void)fprintf(out, "  %4zu %7.0f %6.0f %+6.0f", x->n, 100.0 * x->median_frac,
                      100.0 * x->p90_frac, 100.0 * x->bias_frac);
    }
}

static void put_row(const struct conformal *c, const char *from, const char *to,
                    enum device_kind kind, enum transfer_kin kin, FILE *out)
{
    struct transfer_query q = {.from = from, .to = to, .kind = kind, .kin = kin};
    for (int i = 0; i < 2; i++) {
        q.phase = i == 0 ? CONFORMAL_PREFILL : CONFORMAL_DECODE;
        struct transfer_error x = transfer_error_of(c, &q);
        put_cell(&x, out);
    }
    (void)fputc('\n', out);
}

void transfer_table_print(const struct conformal *c, FILE *out)
{
    struct transfer_pair pairs[MAX_PAIRS];
    size_t n = transfer_pairs(c, pairs, MAX_PAIRS);
    (void)fprintf(
        out,
        "a machine made from a sibling by data sheet: |error| in %% of rows of the second "
        "by the fit of the first\n  %-4s  %-20s %-20s %-6s  %4s %7s %6s %6s  %4s %7s %6s "
        "%6s\n",
        "", "made from", "machine", "family", "rows", "prefill", "P90", "bias", "rows", "decode",
        "P90", "bias");
    for (size_t i = 0; i < n && i < MAX_PAIRS; i++) {
        const struct transfer_pair *p = &pairs[i];
        (void)fprintf(out, "  %-4s  %-20s %-20s %-6s", device_kind_names()[p->kind], p->from, p->to,
                      p->within_family ? "same" : "other");
        put_row(c, p->from, p->to, p->kind, TRANSFER_ANY, out);
    }
    static const char *const kin[] = {"all pairs", "of one family", "of other families"};
    for (int kind = 0; device_kind_names()[kind] != NULL; kind++) {
        for (int k = TRANSFER_ANY; k <= TRANSFER_ACROSS_FAMILIES; k++) {
            struct transfer_query q = {.kind = (enum device_kind)kind,
                                       .phase = CONFORMAL_DECODE,
                                       .kin = (enum transfer_kin)k};
            if (transfer_error_of(c, &q).n > 0) {
                (void)fprintf(out, "  %-4s  %-48s", device_kind_names()[kind], kin[k]);
                put_row(c, NULL, NULL, (enum device_kind)kind, (enum transfer_kin)k, out);
            }
        }
    }
}

/* An entry with rows of its own SoC that could be fitted. */
struct fitted {
    struct calibrate_set set;
    struct calibrate_fit fit;
};

struct list {
    struct fitted *v; /* owned */
    size_t n;
};

static bool is_own(const struct fitted *f, const struct calibrate_row *r)
{
    return strcmp(r->k.soc->machine.name, f->set.soc->machine.name) == 0;
}

static void take(const struct catalog *c, const struct points *points, const struct soc *soc,
                 uint8_t device, uint32_t runtime, struct list *list)
{
    struct fitted f;
    calibrate_collect(c, points, soc, device, runtime, &f.set);
    bool own = false;
    for (size_t i = 0; i < f.set.n; i++) {
        own = own || is_own(&f, &f.set.rows[i]);
    }
    SCOPED(err_fini) struct err e = ERR_INIT;
    if (!own || calibrate_fit(&f.set, &f.fit, &e) != 0) {
        calibrate_set_fini(&f.set);
        return;
    }
    LIST_ADD(list->v, list->n, f);
}

static const struct soc_runtime *entry_of(const struct fitted *f)
{
    return &f->set.soc->devices[f->set.device].runtimes[f->set.runtime];
}

static void write_row(const struct fitted *f, const struct calibrate_row *r, const char *left_out,
                      const char *by, double ln_error, FILE *out)
{
    const struct point *p = r->point;
    const char *phase = conformal_phase_names[predict_phase(p)];
    const struct soc *soc = f->set.soc;
    bool of_model = strcmp(left_out, "model") == 0; /* these say what is known of a machine */
    (void)fprintf(out, "%s,%s,%s,%s,%u,%s,%.4g,%s,%u,%u,%s,%s,%.4f,%.*s,%d\n", soc->machine.name,
                  soc->family[0] != '\0' ? soc->family : soc->machine.name,
                  device_kind_names()[soc->machine.devices[f->set.device].kind], p->runtime,
                  p->weight_bits > 0 ? p->weight_bits : r->k.llm.weight_bits, r->k.llm.name,
                  r->k.llm.body_weights + r->k.llm.head_weights, phase, p->input_tokens, p->batch,
                  left_out, by, ln_error, of_model ? (int)point_source_length(p->source) : 0,
                  p->source, r->k.llm.n_experts > 0);
}

static bool same_toolchain(const struct fitted *a, const struct fitted *b)
{
    const char *x = entry_of(a)->runtime;
    const char *y = entry_of(b)->runtime;
    size_t n = strcspn(x, "."); /* a year of a toolchain: "openvino-2025" */
    return n == strcspn(y, ".") && strncmp(x, y, n) == 0 &&
           entry_of(a)->weight_bits == entry_of(b)->weight_bits &&
           a->set.soc->machine.devices[a->set.device].kind ==
               b->set.soc->machine.devices[b->set.device].kind;
}

/* Fits `from` without the SoC of `to`, because a family's pool has rows of both. */
static int fit_without(struct fitted *from, const struct fitted *to, struct calibrate_fit *out)
{
    bool pooled = false;
    for (size_t i = 0; i < from->set.n; i++) {
        struct calibrate_row *r = &from->set.rows[i];
        r->left_out = is_own(to, r);
        pooled = pooled || r->left_out;
    }
    *out = from->fit;
    SCOPED(err_fini) struct err e = ERR_INIT;
    int rc = pooled ? calibrate_fit(&from->set, out, &e) : 0;
    for (size_t i = 0; i < from->set.n; i++) {
        from->set.rows[i].left_out = false;
    }
    return rc;
}

/* Writes the rows of `to`, predicted by scaled parameters of `from`; none if `from` has no own
 * rows. */
static size_t transfer(struct fitted *from, struct fitted *to, double npu_share, FILE *out)
{
    struct calibrate_fit fit;
    if (fit_without(from, to, &fit) != 0) {
        return 0;
    }
    const struct soc *a = from->set.soc;
    const struct soc *b = to->set.soc;
    double rate =
        b->devices[to->set.device].peak_flop_per_s / a->devices[from->set.device].peak_flop_per_s;
    double bandwidth = soc_resize_bandwidth(a->machine.devices[from->set.device].kind,
                                            b->ddr_likely_bytes_per_s / a->ddr_likely_bytes_per_s);
    struct soc_runtime scaled = fit.params;
    double most = soc_share_of_ddr(a->machine.devices[from->set.device].kind,
                                   scaled.one.bytes_per_s / a->ddr_likely_bytes_per_s, npu_share);
    bandwidth = fmin(bandwidth, most * b->ddr_likely_bytes_per_s / scaled.one.bytes_per_s);
    struct soc_resize x =
        soc_resize(scaled.fill_rows, scaled.width_fill, rate,
                   soc_cores_ratio(&a->devices[from->set.device], &b->devices[to->set.device]));
    scaled.fill_rows *= x.row_fill;
    scaled.width_fill *= x.width_fill;
    scaled.attention_frac *= rate / x.rate;
    scaled.special_attention_frac *= rate / x.rate;
    scaled.recurrence_frac *= rate / x.rate;
    if (a->family[0] == '\0' || strcmp(a->family, b->family) != 0) {
        scaled.kv_columns = 0; /* of a family of chips, as in soc_sibling.c */
        scaled.decode_window = false;
        scaled.further_launches = 0.0;
    }
    size_t n = 0;
    for (size_t i = 0; i < to->set.n; i++) {
        struct calibrate_row r = to->set.rows[i];
        if (is_own(to, &r)) {
            r.rate_scale = x.rate;
            r.bandwidth_scale = bandwidth;
            write_row(to, &r, "soc", a->machine.name, calibrate_error(&r, &scaled), out);
            n++;
        }
    }
    return n;
}

/* Writes the SoC's own rows with an error. */
static size_t write_own(const struct fitted *f, const char *left_out, FILE *out)
{
    size_t n = 0;
    for (size_t i = 0; i < f->set.n; i++) {
        const struct calibrate_row *r = &f->set.rows[i];
        if (is_own(f, r) && isfinite(r->ln_error)) {
            write_row(f, r, left_out, f->set.soc->machine.name, r->ln_error, out);
            n++;
        }
    }
    return n;
}

/* Writes every row, predicted by its device's entry for another runtime, unchanged. */
static size_t other_runtimes(const struct catalog *c, const struct points *points, FILE *out)
{
    size_t n = 0;
    for (size_t i = 0; i < points->n; i++) {
        struct calibrate_row r = {.point = &points->v[i]};
        if (!point_is_latency(r.point)) {
            continue;
        }
        predict_bind_other(c, r.point, &r.k);
        if (r.k.reason == NULL) {
            double seconds = predict_price(&r.k, r.point, NULL).seconds;
            struct fitted f = {.set = {.soc = r.k.soc, .device = r.k.device}};
            write_row(&f, &r, "runtime", r.k.soc->machine.name,
                      log(seconds / point_pass_seconds(r.point)), out);
            n++;
        }
    }
    return n;
}

/* ---- memory ---- */

enum left { LEFT_MODEL, LEFT_SOURCE };

static bool is_left(const struct footprint_row *a, const struct footprint_row *b, enum left left)
{
    return left == LEFT_MODEL ? strcmp(a->k.llm.name, b->k.llm.name) == 0
                              : point_same_source(a->point->source, b->point->source);
}

static size_t put_memory(const struct footprint_row *r, const char *left, bool known,
                         const struct soc_memory *m, FILE *out)
{
    if (known) {
        struct calibrate_row row = {.point = r->point, .k = r->k};
        struct fitted f = {.set = {.soc = r->k.soc, .device = r->k.device}};
        write_row(&f, &row, left, r->k.soc->machine.name,
                  log(footprint_row_bytes(r, m) / (r->point->value * 1048576.0)), out);
    }
    return known;
}

static size_t memory_residuals(const struct catalog *c, const struct points *points, FILE *out)
{
    struct footprint_rows r;
    footprint_collect(c, points, &r);
    size_t n = 0;
    struct soc_memory m;
    for (size_t i = 0; i < r.n; i++) {
        for (int left = LEFT_MODEL; left <= LEFT_SOURCE; left++) {
            for (size_t j = 0; j < r.n; j++) {
                r.v[j].left_out = is_left(&r.v[j], &r.v[i], (enum left)left);
            }
            n += put_memory(&r.v[i], left == LEFT_MODEL ? "model" : "source",
                            footprint_fit(&r, &r.v[i], &m), &m, out);
        }
        for (size_t j = 0; j < r.n; j++) {
            r.v[j].left_out = false;
        }
        n += put_memory(&r.v[i], "runtime", footprint_fit_others(&r, &r.v[i], &m), &m, out);
    }
    return n;
}

size_t residuals_write(const struct catalog *c, const struct points *points, const char *name,
                       double npu_share, FILE *out)
{
    struct list list = {0};
    for (size_t s = 0; s < c->n_socs; s++) {
        for (uint8_t d = 0; d < c->socs[s]->machine.n_devices; d++) {
            for (uint32_t r = 0; r < c->socs[s]->devices[d].n_runtimes; r++) {
                take(c, points, c->socs[s], d, r, &list);
            }
        }
    }
    (void)fprintf(out,
                  "# Made by `xpusim calibrate --points %s --residuals`: ln(predicted / measured) "
                  "of rows that a fit has not seen.\n"
                  "soc,family,device,runtime,weight_bits,model,weights,phase,input_tokens,batch,"
                  "left_out,by,ln_error,source,mixture\n",
                  name);
    size_t n = 0;
    for (size_t i = 0; i < list.n; i++) {
        struct fitted *f = &list.v[i];
        for (size_t j = 0; j < list.n; j++) {
            if (list.v[j].set.soc != f->set.soc && same_toolchain(&list.v[j], f)) {
                n += transfer(&list.v[j], f, npu_share, out);
            }
        }
        (void)calibrate_leave_one_out(&f->set);
        n += write_own(f, "model", out);
        (void)calibrate_leave_source_out(&f->set);
        n += write_own(f, "source", out);
    }
    n += other_runtimes(c, points, out);
    n += memory_residuals(c, points, out);
    for (size_t i = 0; i < list.n; i++) {
        calibrate_set_fini(&list.v[i].set);
    }
    free(list.v);
    return n;
}
