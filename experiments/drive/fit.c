#include "experiments/drive/fit.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"

#define MIN_KERNELS 8
#define MIN_BESIDE 30     /* kernels of each kind for a slowdown */
#define OVERLAP_MOST 0.9  /* beside another engine */
#define OVERLAP_LEAST 0.1 /* alone */
#define Z95 1.96

/* ---- input ---- */

void fit_input_init(struct fit_input *in)
{
    *in = (struct fit_input){0};
}

void fit_input_fini(struct fit_input *in)
{
    free(in->kernels);
    free(in->run);
    *in = (struct fit_input){0};
}

static void times_merge(struct drive_times *to, const struct drive_times *from)
{
    to->n += from->n;
    to->sum_ns += from->sum_ns;
    to->sum_sq += from->sum_sq;
    to->max_ns = fmax(to->max_ns, from->max_ns);
}

/* Compiles take a + b tokens, moves bytes / rate. */
static void add_residents(struct fit *f, const struct drive_report *r)
{
    double n = 0.0, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0, bytes = 0.0, moved_s = 0.0;
    for (size_t i = 0; i < r->n_residents; i++) {
        const struct drive_resident_time *t = &r->residents[i];
        double s = (double)t->ns / 1e9;
        if (t->work == DRIVE_COMPILE) {
            n += 1.0;
            x += t->size;
            y += s;
            xx += t->size * t->size;
            xy += t->size * s;
        } else {
            bytes += t->size;
            moved_s += s;
            f->n_swaps++;
        }
    }
    double spread = n * xx - x * x;
    if (n > 0.0) {
        double slope = spread > 0.0 ? fmax(0.0, (n * xy - x * y) / spread) : 0.0;
        f->compile_per_token_s = slope;
        f->compile_fixed_s = fmax(0.0, (y - slope * x) / n);
        f->n_compiles += (uint32_t)n;
    }
    f->swap_bytes_per_s = moved_s > 0.0 ? bytes / moved_s : f->swap_bytes_per_s;
}

void fit_input_add(struct fit_input *in, const struct drive_report *r, double tail_tokens,
                   bool disturbed)
{
    struct fit *f = &in->fit;
    f->n_runs++;
    f->n_disturbed += disturbed;
    times_merge(&f->schedule, &r->schedule);
    times_merge(&f->submit, &r->submit);
    times_merge(&f->completion, &r->completion);
    times_merge(&f->tail, &r->tail);
    times_merge(&f->reset, &r->reset);
    f->tail_tokens += tail_tokens;
    add_residents(f, r);
    while (in->n + r->n_kernels > in->cap) {
        in->cap = in->cap == 0 ? 8192 : 2 * in->cap;
        in->kernels = xrealloc(in->kernels, in->cap * sizeof *in->kernels);
        in->run = xrealloc(in->run, in->cap * sizeof *in->run);
    }
    for (size_t i = 0; i < r->n_kernels; i++) {
        in->run[in->n] = f->n_runs;
        in->kernels[in->n++] = r->kernels[i];
    }
}

/* ---- kernels of one part ---- */

/* A kernel with its regressors, as a part of the fit sees it. */
struct sample {
    double t_s, x[3];
    double fitted_s;
};

struct samples {
    struct sample *v;
    size_t n, cap;
    uint32_t lost;
};

static struct sample *sample_add(struct samples *s)
{
    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 1024 : 2 * s->cap;
        s->v = xrealloc(s->v, s->cap * sizeof *s->v);
    }
    return &s->v[s->n++];
}

static int by_work(const void *a, const void *b)
{
    const struct sample *p = a;
    const struct sample *q = b;
    for (int i = 0; i < 3; i++) {
        if (p->x[i] != q->x[i]) {
            return p->x[i] < q->x[i] ? -1 : 1;
        }
    }
    return (p->t_s > q->t_s) - (p->t_s < q->t_s);
}

static bool same_work(const struct sample *a, const struct sample *b)
{
    return a->x[0] == b->x[0] && a->x[1] == b->x[1] && a->x[2] == b->x[2];
}

/* Sorts by work; drops those that lost their core, where three or more like them tell. */
static void screen(struct samples *s)
{
    if (s->n > 0) {
        qsort(s->v, s->n, sizeof *s->v, by_work);
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->n;) {
        size_t end = i;
        while (end < s->n && same_work(&s->v[i], &s->v[end])) {
            end++;
        }
        double limit = FIT_LOST_CORE * s->v[(i + end) / 2].t_s;
        for (size_t k = i; k < end; k++) {
            if (end - i < 3 || s->v[k].t_s <= limit) {
                s->v[kept++] = s->v[k];
            } else {
                s->lost++;
            }
        }
        i = end;
    }
    s->n = kept;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Errors of single kernels, and whether the form misses more than repeats of like work scatter: F
 * of lack of fit over pure error, in relative errors. Samples are sorted by work. */
static void judge(const struct samples *s, uint32_t n_params, struct fit_part *part)
{
    double *error = xcalloc(s->n, sizeof *error);
    double lack = 0.0, pure = 0.0;
    size_t groups = 0;
    for (size_t i = 0; i < s->n;) {
        size_t end = i;
        double mean = 0.0;
        while (end < s->n && same_work(&s->v[i], &s->v[end])) {
            mean += s->v[end].t_s / s->v[end].fitted_s - 1.0;
            end++;
        }
        mean /= (double)(end - i);
        for (size_t k = i; k < end; k++) {
            double r = s->v[k].t_s / s->v[k].fitted_s - 1.0;
            error[k] = fabs(s->v[k].fitted_s / s->v[k].t_s - 1.0);
            pure += (r - mean) * (r - mean);
        }
        lack += (double)(end - i) * mean * mean;
        groups++;
        i = end;
    }
    qsort(error, s->n, sizeof *error, by_value);
    part->n = (uint32_t)s->n;
    part->lost = s->lost;
    part->median_frac = error[s->n / 2];
    part->p90_frac = error[(size_t)(0.9 * (double)(s->n - 1))];
    double df1 = (double)groups - n_params;
    double df2 = (double)(s->n - groups);
    part->lack_of_fit_p = df1 > 0.0 && df2 > 0.0 && pure > 0.0
                              ? gsl_cdf_fdist_Q(lack / df1 / (pure / df2), df1, df2)
                              : (double)NAN;
    free(error);
}

/* ---- regression with coefficients that are not negative ---- */

/* t = c . x with relative errors; negative coefficients are set to 0 one by one. Then all are
 * scaled so that the sum of times is kept. */
static void regress(struct samples *s, uint32_t p, struct fit_number *c)
{
    bool used[3] = {true, p > 1, p > 2};
    for (uint32_t i = 0; i < p; i++) { /* a regressor that never varies from 0 says nothing */
        bool any = false;
        for (size_t k = 0; k < s->n; k++) {
            any = any || s->v[k].x[i] != 0.0;
        }
        used[i] = used[i] && any;
    }
    memset(c, 0, p * sizeof *c);
    for (bool again = true; again;) {
        again = false;
        uint32_t map[3];
        uint32_t m = 0;
        for (uint32_t i = 0; i < p; i++) {
            if (used[i]) {
                map[m++] = i;
            }
        }
        if (m == 0 || s->n <= m) {
            break;
        }
        gsl_matrix *x = gsl_matrix_alloc(s->n, m);
        gsl_vector *y = gsl_vector_alloc(s->n);
        gsl_vector *b = gsl_vector_alloc(m);
        gsl_matrix *cov = gsl_matrix_alloc(m, m);
        for (size_t k = 0; k < s->n; k++) {
            for (uint32_t i = 0; i < m; i++) {
                gsl_matrix_set(x, k, i, s->v[k].x[map[i]] / s->v[k].t_s);
            }
            gsl_vector_set(y, k, 1.0);
        }
        gsl_multifit_linear_workspace *w = gsl_multifit_linear_alloc(s->n, m);
        double chisq;
        size_t rank;
        gsl_multifit_linear_tsvd(x, y, 1e-10, b, cov, &chisq, &rank, w);
        int worst = -1;
        for (uint32_t i = 0; i < m; i++) {
            double v = gsl_vector_get(b, i);
            double sd = sqrt(gsl_matrix_get(cov, i, i));
            c[map[i]] = (struct fit_number){v, fmax(0.0, v - Z95 * sd), v + Z95 * sd};
            if (v < 0.0 && (worst < 0 || v < gsl_vector_get(b, (size_t)worst))) {
                worst = (int)i;
            }
        }
        if (worst >= 0) {
            used[map[worst]] = false;
            c[map[worst]] = (struct fit_number){0};
            again = true;
        }
        gsl_multifit_linear_free(w);
        gsl_matrix_free(cov);
        gsl_vector_free(b);
        gsl_vector_free(y);
        gsl_matrix_free(x);
    }
    double sum = 0.0, fitted = 0.0;
    for (size_t k = 0; k < s->n; k++) {
        s->v[k].fitted_s = 0.0;
        for (uint32_t i = 0; i < p; i++) {
            s->v[k].fitted_s += c[i].value * s->v[k].x[i];
        }
        sum += s->v[k].t_s;
        fitted += s->v[k].fitted_s;
    }
    double scale = fitted > 0.0 ? sum / fitted : 1.0;
    for (uint32_t i = 0; i < p; i++) {
        c[i] = (struct fit_number){c[i].value * scale, c[i].low * scale, c[i].high * scale};
    }
    for (size_t k = 0; k < s->n; k++) {
        s->v[k].fitted_s *= scale;
    }
}

/* ---- tables over rows ---- */

/* Row counts in lots by powers of two: mean rows, mean time with its interval. Times may not fall
 * with rows: neighbours that do are pooled. */
static void table_make(struct samples *s, struct fit_table *t)
{
    double n[SOC_OPS_MAX_POINTS] = {0};
    *t = (struct fit_table){0};
    double sum[SOC_OPS_MAX_POINTS] = {0}, squares[SOC_OPS_MAX_POINTS] = {0};
    double rows[SOC_OPS_MAX_POINTS] = {0};
    int lot = -1;
    for (size_t i = 0; i < s->n; i++) {
        int l = (int)ceil(log2(s->v[i].x[0]) - 1e-9);
        if (l != lot && t->n < SOC_OPS_MAX_POINTS) {
            t->n++;
            lot = l;
        }
        uint32_t k = t->n - 1;
        n[k] += 1.0;
        rows[k] += s->v[i].x[0];
        sum[k] += s->v[i].t_s;
        squares[k] += s->v[i].t_s * s->v[i].t_s;
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < t->n; k++, kept++) {
        n[kept] = n[k];
        rows[kept] = rows[k];
        sum[kept] = sum[k];
        squares[kept] = squares[k];
        while (kept > 0 && sum[kept] / n[kept] < sum[kept - 1] / n[kept - 1]) {
            n[kept - 1] += n[kept];
            rows[kept - 1] += rows[kept];
            sum[kept - 1] += sum[kept];
            squares[kept - 1] += squares[kept];
            kept--;
        }
    }
    t->n = kept;
    for (uint32_t k = 0; k < kept; k++) {
        double mean = sum[k] / n[k];
        double sd = n[k] > 1.0 ? sqrt(fmax(0.0, squares[k] / n[k] - mean * mean) / n[k]) : 0.0;
        t->rows[k] = rows[k] / n[k];
        t->s[k] = (struct fit_number){mean, fmax(0.0, mean - Z95 * sd), mean + Z95 * sd};
    }
}

static void table_fitted(struct samples *s, const struct fit_table *t)
{
    struct soc_ops ops = {.given = true};
    ops.qkv.n = t->n;
    for (uint32_t k = 0; k < t->n; k++) {
        ops.qkv.rows[k] = t->rows[k];
        ops.qkv.s[k] = t->s[k].value;
    }
    for (size_t i = 0; i < s->n; i++) {
        struct kernel_query q = {.op = OP_QKV, .padded_rows = (uint32_t)s->v[i].x[0]};
        s->v[i].fitted_s = soc_ops_seconds(&ops, &q);
    }
}

/* ---- overlap with the other engines ---- */

/* Share of kernel k during which another device of the same run was busy. Kernels of a run are in
 * order of their launches' ends; a scan of the neighbourhood is enough, because launches overlap
 * few others. */
static double overlap_of(const struct fit_input *in, size_t at)
{
    const struct drive_kernel *k = &in->kernels[at];
    int64_t covered = 0;
    const size_t reach = 4000;
    size_t from = at > reach ? at - reach : 0;
    size_t to = at + reach < in->n ? at + reach : in->n;
    for (size_t i = from; i < to; i++) {
        const struct drive_kernel *o = &in->kernels[i];
        if (in->run[i] != in->run[at] || o->device == k->device) {
            continue;
        }
        int64_t begin = o->begin_ns > k->begin_ns ? o->begin_ns : k->begin_ns;
        int64_t end =
            o->begin_ns + o->ns < k->begin_ns + k->ns ? o->begin_ns + o->ns : k->begin_ns + k->ns;
        covered += end > begin ? end - begin : 0;
    }
    return (double)covered / (double)k->ns;
}

static bool is_one_row(const struct drive_kernel *k)
{
    return k->padded_rows == 1 && !k->stopped && k->op != OP_MHA && k->op != OP_HEAD;
}

/* One-row products and layers beside another engine over the same alone, by op; the mean of the
 * ops. */
static void beside_make(const struct fit_input *in, const double *overlap, uint32_t device,
                        struct fit_device *out)
{
    double ratio = 0.0, variance = 0.0, ops = 0.0;
    for (int op = OP_QKV; op < OP_KIND_COUNT; op++) {
        double n[2] = {0}, sum[2] = {0}, squares[2] = {0};
        for (size_t i = 0; i < in->n; i++) {
            const struct drive_kernel *k = &in->kernels[i];
            bool both = overlap[i] >= OVERLAP_MOST;
            if (k->device != device || k->op != op || !is_one_row(k) ||
                (!both && overlap[i] > OVERLAP_LEAST)) {
                continue;
            }
            n[both] += 1.0;
            sum[both] += (double)k->ns;
            squares[both] += (double)k->ns * (double)k->ns;
        }
        if (n[0] < MIN_BESIDE || n[1] < MIN_BESIDE) {
            continue;
        }
        double mean[2], relative = 0.0;
        for (int b = 0; b < 2; b++) {
            mean[b] = sum[b] / n[b];
            relative += (squares[b] / n[b] / (mean[b] * mean[b]) - 1.0) / n[b];
        }
        ratio += mean[1] / mean[0];
        variance += relative;
        ops += 1.0;
        out->n_beside += (uint32_t)n[1];
    }
    if (ops > 0.0) {
        double value = ratio / ops - 1.0;
        double sd = sqrt(variance) / ops;
        out->beside = (struct fit_number){fmax(0.0, value), fmax(0.0, value - Z95 * sd),
                                          fmax(0.0, value + Z95 * sd)};
    }
}

/* ---- parts ---- */

enum part { PART_QKV, PART_FFN, PART_HEAD, PART_PREFILL, PART_DECODE, PART_LAYER, N_PARTS };
static const char *const part_names[N_PARTS] = {"qkv",         "ffn",        "head",
                                                "mha prefill", "mha decode", "layer"};
static const enum op_kind part_ops[N_PARTS] = {OP_QKV, OP_FFN, OP_HEAD, OP_MHA, OP_MHA, OP_LAYER};

/* Regressors of a kernel in a part; false: it is not of that part. Mixed attention is of none. */
static bool regressors(const struct drive_kernel *k, enum part part, double *x)
{
    double share = (double)k->rows / k->shape_rows;
    bool decode = k->sequences == k->shape_rows && k->prefill_rows == 0;
    if (k->stopped || k->op != (uint8_t)part_ops[part]) {
        return false;
    }
    x[0] = 1.0;
    x[1] = x[2] = 0.0;
    switch (part) {
    case PART_PREFILL:
        x[1] = (double)k->pairs * share;
        x[2] = k->rows;
        return k->prefill_rows == k->shape_rows && k->rows > 1;
    case PART_DECODE:
        x[1] = (double)k->keys * share;
        x[2] = k->rows;
        return decode;
    case PART_LAYER:
        x[1] = (double)k->keys;
        return true;
    default:
        x[0] = k->padded_rows;
        return true;
    }
}

/* device < 0: of all. One-row kernels beside another engine count as if they had been alone: what
 * the slowdown takes is the contention form's. */
static void collect(const struct fit_input *in, const double *overlap, const struct fit_device *d,
                    int device, enum part part, struct samples *s)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct drive_kernel *k = &in->kernels[i];
        double x[3];
        if ((device >= 0 && k->device != device) || !regressors(k, part, x)) {
            continue;
        }
        double slow = is_one_row(k) ? 1.0 + d[k->device].beside.value * fmin(1.0, overlap[i]) : 1.0;
        struct sample *to = sample_add(s);
        *to = (struct sample){.t_s = (double)k->ns / 1e9 / slow, .x = {x[0], x[1], x[2]}};
    }
    screen(s);
}

static void part_fit(struct samples *s, enum part part, struct fit_device *d)
{
    switch (part) {
    case PART_PREFILL:
        regress(s, 3, d->prefill);
        break;
    case PART_DECODE:
        regress(s, 3, d->decode);
        break;
    case PART_LAYER:
        regress(s, 2, d->layer);
        break;
    default:
        table_make(s, &d->token[part_ops[part]]);
        table_fitted(s, &d->token[part_ops[part]]);
    }
}

static uint32_t part_params(enum part part, const struct fit_device *d)
{
    return part == PART_PREFILL || part == PART_DECODE ? 3
           : part == PART_LAYER                        ? 2
                                                       : d->token[part_ops[part]].n;
}

int fit_make(struct fit_input *in, const struct machine *m, const struct llm *llm, struct fit *out,
             struct err *e)
{
    *out = in->fit;
    out->n_devices = m->n_devices;
    double *overlap = xcalloc(in->n + 1, sizeof *overlap);
    for (size_t i = 0; i < in->n; i++) {
        overlap[i] = is_one_row(&in->kernels[i]) ? overlap_of(in, i) : 0.0;
    }
    for (uint32_t d = 0; d < m->n_devices; d++) {
        beside_make(in, overlap, d, &out->devices[d]);
    }
    for (uint32_t d = 0; d < m->n_devices && e->n == 0; d++) {
        for (int p = 0; p < N_PARTS; p++) {
            struct samples s = {0};
            struct fit_part *part = &out->parts[out->n_parts];
            collect(in, overlap, out->devices, (int)d, (enum part)p, &s);
            *part = (struct fit_part){.name = part_names[p], .device = (uint8_t)d};
            if (s.n < MIN_KERNELS) {
                part->borrowed = true;
                s.n = 0;
                collect(in, overlap, out->devices, -1, (enum part)p, &s);
            }
            if (s.n >= MIN_KERNELS) {
                part_fit(&s, (enum part)p, &out->devices[d]);
                judge(&s, part_params((enum part)p, &out->devices[d]), part);
                out->n_parts++;
            } else if (p != PART_LAYER) {
                (void)err_add(e, "only %zu kernels of %s ran: a longer trace is needed", s.n,
                              part_names[p]);
            }
            free(s.v);
        }
        const struct fit_table *ffn = &out->devices[d].token[OP_FFN];
        double weights = (double)llm->hidden * llm->ffn_hidden * (llm->gated_ffn ? 3.0 : 2.0) +
                         (double)llm->heads * llm->head_dim * llm->hidden;
        if (e->n == 0 && ffn->rows[0] < 1.5) {
            out->devices[d].one_row_bytes_per_s =
                weights * llm->body_bytes_per_weight / ffn->s[0].value;
        }
    }
    free(overlap);
    return e->n == 0 ? 0 : -EINVAL;
}
