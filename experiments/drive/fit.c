#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/fit_impl.h"
#include "sim/base/arena.h"

#define MIN_KERNELS 8
#define KINDS_PER_TERM 2  /* of work, for a line of its own */
#define MIN_BESIDE 30     /* kernels of each kind for a slowdown */
#define OVERLAP_MOST 0.9  /* beside another engine */
#define OVERLAP_LEAST 0.1 /* alone */

/* ---- input ---- */

void fit_input_init(struct fit_input *in, enum drive_clock clock)
{
    *in = (struct fit_input){.one_by_one = clock == DRIVE_CLOCK_CPU};
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
    for (int i = 0; i < DRIVE_OCTAVES; i++) {
        to->octave[i].n += from->octave[i].n;
        to->octave[i].sum_ns += from->octave[i].sum_ns;
        to->octave[i].sum_sq += from->octave[i].sum_sq;
    }
}

static void add_residents(struct fit *f, const struct drive_report *r)
{
    for (size_t i = 0; i < r->n_residents; i++) {
        const struct drive_resident_time *t = &r->residents[i];
        double s = (double)t->ns / 1e9;
        struct fit_line *l = &f->residents[t->work];
        l->n += 1.0;
        l->x += t->size;
        l->y += s;
        l->xx += t->size * t->size;
        l->xy += t->size * s;
        l->max_s = fmax(l->max_s, s);
    }
}

void fit_line_solve(struct fit_line *l)
{
    if (l->n == 0.0) {
        return;
    }
    double spread = l->n * l->xx - l->x * l->x;
    /* Sizes that are all alike give no slope; then all of the time counts as fixed. */
    l->slope_s = spread > 1e-9 * l->n * l->xx ? (l->n * l->xy - l->x * l->y) / spread : 0.0;
    l->slope_s = fmax(0.0, l->slope_s);
    l->fixed_s = (l->y - l->slope_s * l->x) / l->n;
    /* A line that would begin below zero goes through it: no machine takes less than no time. */
    if (l->fixed_s < 0.0) {
        l->fixed_s = 0.0;
        l->slope_s = l->y / l->x;
    }
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
    for (size_t i = 0; i < r->n_kernels; i++) {
        in->kernels = xgrow(in->kernels, in->n, sizeof *in->kernels);
        in->run = xgrow(in->run, in->n, sizeof *in->run);
        in->run[in->n] = f->n_runs;
        in->kernels[in->n++] = r->kernels[i];
    }
}

/* ---- overlap with the other engines ---- */

/* Share of kernel k during which another device of the same run was busy. Kernels of a run are in
 * order of their launches' ends; a scan of the neighbourhood is enough, because launches overlap
 * few others. */
double fit_overlap(const struct fit_input *in, size_t at)
{
    const struct drive_kernel *k = &in->kernels[at];
    int64_t covered = 0;
    const size_t reach = 4000;
    size_t from = at > reach ? at - reach : 0;
    size_t to = at + reach < in->n ? at + reach : in->n;
    if (in->one_by_one) {
        return 0.0; /* what overlaps on a virtual clock did not meet */
    }
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

bool fit_is_one_row(const struct drive_kernel *k)
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
            if (k->device != device || k->op != op || !fit_is_one_row(k) ||
                (!both && overlap[i] > OVERLAP_LEAST)) {
                continue;
            }
            n[both] += 1.0;
            sum[both] += (double)k->ns;
            squares[both] += (double)k->ns * (double)k->ns;
        }
        /* A slowdown is a small difference of two means: of few kernels it would be noise that
         * --compare then takes for physics. */
        if (n[0] < MIN_BESIDE || n[1] < MIN_BESIDE) {
            continue;
        }
        double mean[2], relative = 0.0;
        for (int b = 0; b < 2; b++) {
            mean[b] = sum[b] / n[b];
            /* Of the logarithm of a mean: the variances of a ratio's two sides add up. */
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

/* Mixed attention, of prompts and decodes in one pass, has no numbers of its own: it is judged by
 * those of the two before it. */
enum part {
    PART_QKV,
    PART_FFN,
    PART_HEAD,
    PART_PREFILL,
    PART_DECODE,
    PART_MIXED,
    PART_LAYER,
    N_PARTS
};
static const char *const part_names[N_PARTS] = {"qkv",        "ffn",       "head", "mha prefill",
                                                "mha decode", "mha mixed", "layer"};
static const enum op_kind part_ops[N_PARTS] = {OP_QKV, OP_FFN, OP_HEAD, OP_MHA,
                                               OP_MHA, OP_MHA, OP_LAYER};

struct work_shape fit_shape(const struct drive_kernel *k)
{
    return (struct work_shape){.rows = k->shape_rows,
                               .sequences = k->sequences,
                               .prefill_rows = k->prefill_rows,
                               .attn_pairs = k->pairs,
                               .kv_read_tokens = k->keys};
}

/* x: pairs and rows of prompts, pairs and rows of decodes; of the kernel's share. */
static void mixed_terms(const struct drive_kernel *k, double *x)
{
    struct work_shape w = fit_shape(k);
    double share = (double)k->rows / k->shape_rows;
    double decodes = soc_ops_decode_keys(&w);
    x[0] = ((double)k->pairs - decodes) * share;
    x[1] = k->prefill_rows * share;
    x[2] = decodes * share;
    x[3] = (k->shape_rows - k->prefill_rows) * share;
}

/* Regressors of a kernel in a part; false: it is not of that part. */
static bool regressors(const struct drive_kernel *k, enum part part, double *x)
{
    double share = (double)k->rows / k->shape_rows;
    bool decode = k->sequences == k->shape_rows && k->prefill_rows == 0;
    if (k->stopped || k->op != (uint8_t)part_ops[part]) {
        return false;
    }
    x[0] = 1.0;
    x[1] = x[2] = x[3] = 0.0;
    switch (part) {
    case PART_PREFILL:
        x[1] = (double)k->pairs * share;
        x[2] = k->rows;
        return k->prefill_rows == k->shape_rows && k->rows > 1;
    case PART_DECODE:
        x[1] = (double)k->keys * share;
        x[2] = k->rows;
        return decode;
    case PART_MIXED:
        mixed_terms(k, x);
        return k->prefill_rows > 0 && k->prefill_rows < k->shape_rows;
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
        double x[SAMPLE_TERMS];
        if ((device >= 0 && k->device != device) || !regressors(k, part, x)) {
            continue;
        }
        double slow =
            fit_is_one_row(k) ? 1.0 + d[k->device].beside.value * fmin(1.0, overlap[i]) : 1.0;
        struct sample *to = samples_add(s);
        *to = (struct sample){.t_s = (double)k->ns / 1e9 / slow, .x = {x[0], x[1], x[2], x[3]}};
    }
    samples_screen(s);
}

static uint32_t part_params(enum part part, const struct fit_device *d)
{
    return part == PART_PREFILL || part == PART_DECODE ? 3
           : part == PART_LAYER                        ? 2
           : part == PART_MIXED                        ? 0
                                                       : d->token[part_ops[part]].n;
}

/* Coefficients of a part that is a line; NULL: it is none. */
static struct fit_number *part_line(enum part part, struct fit_device *d)
{
    return part == PART_PREFILL  ? d->prefill
           : part == PART_DECODE ? d->decode
           : part == PART_LAYER  ? d->layer
                                 : NULL;
}

static void part_fit(struct samples *s, enum part part, struct fit_device *d)
{
    switch (part) {
    case PART_PREFILL:
    case PART_DECODE:
    case PART_LAYER:
        samples_regress(s, part_params(part, d), part_line(part, d));
        break;
    case PART_MIXED:
        for (size_t i = 0; i < s->n; i++) {
            const double *x = s->v[i].x;
            s->v[i].fitted_s = d->prefill[0].value + d->prefill[1].value * x[0] +
                               d->prefill[2].value * x[1] + d->decode[1].value * x[2] +
                               d->decode[2].value * x[3];
        }
        break;
    default:
        samples_table(s, &d->token[part_ops[part]]);
        samples_table_fitted(s, &d->token[part_ops[part]]);
    }
}

/* A part of one device. Of kernels that are of few kinds of work (two lengths of prompts say) the
 * device's own tell how fast it is, and those of all devices what the time depends on. */
static void make_part(const struct fit_input *in, const double *overlap, struct fit *out,
                      uint32_t device, enum part part, struct err *e)
{
    struct samples s = {0};
    struct fit_device *d = &out->devices[device];
    struct fit_part *to = &out->parts[out->n_parts];
    collect(in, overlap, out->devices, (int)device, part, &s);
    *to = (struct fit_part){.name = part_names[part], .device = (uint8_t)device};
    struct fit_number *line = part_line(part, d);
    uint32_t params = part_params(part, d);
    bool few = line != NULL && samples_kinds(&s) < KINDS_PER_TERM * params;
    if (s.n >= MIN_KERNELS && few) {
        struct samples all = {0};
        collect(in, overlap, out->devices, -1, part, &all);
        part_fit(&all, part, d);
        samples_scale(&s, params, line);
        samples_judge(&s, params, to);
        to->borrowed_form = true;
        out->n_parts++;
        free(all.v);
        free(s.v);
        return;
    }
    if (s.n < MIN_KERNELS && part != PART_MIXED) {
        to->borrowed = true;
        s.n = 0;
        collect(in, overlap, out->devices, -1, part, &s);
    }
    if (s.n >= MIN_KERNELS) {
        part_fit(&s, part, d);
        samples_judge(&s, part_params(part, d), to);
        out->n_parts++;
    } else if (part != PART_LAYER && part != PART_MIXED) {
        (void)err_add(e, "only %zu kernels of %s ran: a longer trace is needed", s.n,
                      part_names[part]);
    }
    free(s.v);
}

int fit_make(const struct fit_input *in, const struct machine *m, struct fit *out, struct err *e)
{
    *out = in->fit;
    out->n_devices = m->n_devices;
    for (int w = 0; w < DRIVE_WORKS; w++) {
        fit_line_solve(&out->residents[w]);
    }
    double *overlap = xcalloc(in->n + 1, sizeof *overlap);
    for (size_t i = 0; i < in->n; i++) {
        overlap[i] = fit_is_one_row(&in->kernels[i]) ? fit_overlap(in, i) : 0.0;
    }
    for (uint32_t d = 0; d < m->n_devices; d++) {
        /* First, because the times of the parts are taken with the slowdown divided out. */
        beside_make(in, overlap, d, &out->devices[d]);
    }
    for (uint32_t d = 0; d < m->n_devices && e->n == 0; d++) {
        for (int p = 0; p < N_PARTS; p++) {
            make_part(in, overlap, out, d, (enum part)p, e);
        }
    }
    free(overlap);
    return e->n == 0 ? 0 : -EINVAL;
}
