#include "experiments/drive/fit_impl.h"

#define MIN_KERNELS 8
#define KINDS_PER_TERM 2 /* least kinds of work per term for a line of a device's own */

/* ---- input ---- */

void fit_input_init(struct fit_input *in, enum drive_clock clock)
{
    *in = (struct fit_input){.one_by_one = clock == DRIVE_CLOCK_CPU};
}

/* Runs are numbered from 1 in their order, and kernels of one run follow one another. */
static bool input_ok(const struct fit_input *in)
{
    return in->n == 0 || (in->run[0] >= 1 && in->run[in->n - 1] <= in->fit.n_runs &&
                          in->run[0] <= in->run[in->n - 1]);
}

static bool times_ok(const struct drive_times *t)
{
    uint64_t n = 0;
    for (int i = 0; i < DRIVE_OCTAVES; i++) {
        n += t->octave[i].n;
    }
    return n == t->n && t->max_ns <= t->sum_ns * (1.0 + 1e-9);
}

void fit_input_fini(struct fit_input *in)
{
    free(in->kernels);
    free(in->run);
    free(in->segments);
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
    SIM_ASSERT(times_ok(to));
}

static void add_residents(struct fit *f, const struct drive_report *r)
{
    for (size_t i = 0; i < r->n_residents; i++) {
        const struct drive_resident_time *t = &r->residents[i];
        double s = (double)t->ns / 1e9;
        struct fit_line *l = &f->residents[t->work];
        SIM_ASSERT(t->work < DRIVE_WORKS && t->ns >= 0 && t->size > 0.0);
        l->n += 1.0;
        l->x += t->size;
        l->y += s;
        l->xx += t->size * t->size;
        l->xy += t->size * s;
        l->max_s = fmax(l->max_s, s);
        SIM_ASSERT(l->x * l->x <= l->n * l->xx * (1.0 + 1e-9)); /* Cauchy and Schwarz */
    }
}

void fit_line_solve(struct fit_line *l)
{
    if (l->n == 0.0) {
        return;
    }
    double spread = l->n * l->xx - l->x * l->x;
    SIM_ASSERT(l->x > 0.0 && l->y >= 0.0);
    /* If all sizes are equal, there is no slope, and all of the time counts as fixed. */
    l->slope_s = spread > 1e-9 * l->n * l->xx ? (l->n * l->xy - l->x * l->y) / spread : 0.0;
    l->slope_s = fmax(0.0, l->slope_s);
    l->fixed_s = (l->y - l->slope_s * l->x) / l->n;
    /* No time is negative, so a line with a negative offset is replaced by one through zero. */
    if (l->fixed_s < 0.0) {
        l->fixed_s = 0.0;
        l->slope_s = l->y / l->x;
    }
    /* Each case passes through the mean, so the sum of times is kept. */
    SIM_ASSERT(l->fixed_s >= 0.0 && l->slope_s >= 0.0);
    SIM_ASSERT(fabs(l->n * l->fixed_s + l->slope_s * l->x - l->y) <= 1e-9 * l->y);
}

void fit_input_add(struct fit_input *in, const struct drive_report *r, double tail_tokens,
                   bool disturbed)
{
    struct fit *f = &in->fit;
    SIM_ASSERT(input_ok(in) && f->n_parts == 0 && tail_tokens >= 0.0);
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
        in->kernels[in->n] = r->kernels[i];
        /* Segments are appended below, so a kernel's index into them moves by those already
         * here. */
        SIM_ASSERT(r->kernels[i].segment0 + r->kernels[i].n_segments <= r->n_segments);
        in->kernels[in->n++].segment0 += (uint32_t)in->n_segments;
    }
    for (size_t i = 0; i < r->n_segments; i++) {
        LIST_ADD(in->segments, in->n_segments, r->segments[i]);
    }
    SIM_ASSERT(input_ok(in) && f->n_disturbed <= f->n_runs);
}

/* ---- parts ---- */

/* Mixed attention (prompts and decodes in one pass) has no numbers of its own. Those of
 * PART_PREFILL and PART_DECODE predict it. */
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
    SIM_ASSERT(k->stopped || (k->prefill_rows <= k->shape_rows && k->rows <= k->shape_rows));
    return (struct work_shape){.rows = k->shape_rows,
                               .sequences = k->sequences,
                               .prefill_rows = k->prefill_rows,
                               .attn_pairs = k->pairs,
                               .kv_read_tokens = k->keys};
}

/* Fills the regressors of a kernel. Returns false if it is not of that part. */
static bool regressors(const struct fit_input *in, const struct drive_kernel *k, enum part part,
                       struct fit_split split, double *x)
{
    double share = (double)k->rows / k->shape_rows;
    bool decode = k->sequences == k->shape_rows && k->prefill_rows == 0;
    if (k->stopped || k->op != (uint8_t)part_ops[part]) {
        return false;
    }
    SIM_ASSERT(share > 0.0 && share <= 1.0 && k->prefill_rows <= k->shape_rows);
    memset(x, 0, SAMPLE_TERMS * sizeof *x);
    x[0] = 1.0;
    switch (part) {
    case PART_PREFILL:
        fit_prompt_terms(in, k, split, &x[1]);
        return k->prefill_rows == k->shape_rows; /* all of its rows are of prompts */
    case PART_DECODE:
        x[1] = (double)k->keys * share;
        x[2] = k->rows;
        return decode;
    case PART_MIXED:
        fit_prompt_terms(in, k, split, x);
        x[4] = fit_decode_keys(in, k);
        x[5] = k->rows - x[1] - x[3];
        SIM_ASSERT(x[5] >= 0.0); /* prompts have at most all of its rows */
        return k->prefill_rows > 0 && k->prefill_rows < k->shape_rows;
    case PART_LAYER:
        x[1] = (double)k->keys;
        return true;
    default:
        x[0] = k->padded_rows;
        return true;
    }
}

/* Collects the samples of one device, or of all devices if device < 0. A one-row kernel that co-ran
 * with another engine counts with its isolated time, because the contention model adds the
 * slowdown. */
static void collect(const struct fit_input *in, const double *overlap, const struct fit_device *d,
                    int device, enum part part, struct fit_split split, struct samples *s)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct drive_kernel *k = &in->kernels[i];
        double x[SAMPLE_TERMS];
        if ((device >= 0 && k->device != device) || !regressors(in, k, part, split, x)) {
            continue;
        }
        double slow =
            fit_is_one_row(k) ? 1.0 + d[k->device].beside.value * fmin(1.0, overlap[i]) : 1.0;
        SIM_ASSERT(slow >= 1.0 && overlap[i] >= 0.0 && k->ns > 0);
        SIM_ASSERT(part != PART_PREFILL || x[2] + x[4] == k->rows); /* all rows are of prompts */
        struct sample *to = samples_add(s);
        to->t_s = (double)k->ns / 1e9 / slow;
        memcpy(to->x, x, sizeof x);
    }
    samples_screen(s);
}

static uint32_t part_params(enum part part, const struct fit_device *d)
{
    SIM_ASSERT(part < N_PARTS && d->token[part_ops[part]].n <= SOC_OPS_MAX_POINTS);
    switch (part) {
    case PART_PREFILL:
        return FIT_PROMPT_TERMS - (d->split.few_below == 0 ? 2 : 0);
    case PART_DECODE:
        return 3;
    case PART_LAYER:
        return 2;
    case PART_MIXED:
        return 0;
    default:
        return d->token[part_ops[part]].n;
    }
}

/* Coefficients of a part with a line; NULL: it has a table, or nothing of its own. */
static struct fit_number *part_line(enum part part, struct fit_device *d)
{
    return part == PART_PREFILL  ? d->prefill
           : part == PART_DECODE ? d->decode
           : part == PART_LAYER  ? d->layer
                                 : NULL;
}

/* Number of terms of a line. Terms that are 0 in every kernel get the coefficient 0. */
static uint32_t part_terms(enum part part, const struct fit_device *d)
{
    uint32_t terms = part == PART_PREFILL ? FIT_PROMPT_TERMS : part_params(part, d);
    SIM_ASSERT(terms >= part_params(part, d) && (terms <= SAMPLE_TERMS || part < PART_PREFILL));
    return terms;
}

/* For assertions: fitted and measured times have the same sum. */
static bool keeps_sum(const struct samples *s)
{
    double sum = 0.0, fitted = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        sum += s->v[i].t_s;
        fitted += s->v[i].fitted_s;
    }
    return fabs(fitted - sum) <= 1e-9 * sum;
}

static void part_fit(struct samples *s, enum part part, struct fit_device *d)
{
    switch (part) {
    case PART_PREFILL:
    case PART_DECODE:
    case PART_LAYER:
        samples_regress(s, part_terms(part, d), part_line(part, d));
        SIM_ASSERT(keeps_sum(s));
        break;
    case PART_MIXED:
        for (size_t i = 0; i < s->n; i++) {
            const double *x = s->v[i].x;
            s->v[i].fitted_s =
                d->prefill[0].value + d->decode[1].value * x[4] + d->decode[2].value * x[5];
            for (int t = 0; t < 4; t++) {
                s->v[i].fitted_s += d->prefill[FIT_PROMPT_FEW + t].value * x[t];
            }
        }
        break;
    default:
        samples_table(s, &d->token[part_ops[part]]);
        samples_table_fitted(s, &d->token[part_ops[part]]);
    }
}

struct prompts {
    const struct fit_input *in;
    const double *overlap;
    const struct fit_device *devices;
    int device;
};

static void collect_prompts(void *self, struct fit_split split, struct samples *s)
{
    const struct prompts *p = self;
    collect(p->in, p->overlap, p->devices, p->device, PART_PREFILL, split, s);
}

/* Chooses a device's paths of attention. If it had too few kinds of prompts, those of all devices
 * decide. */
static struct fit_split split_make(const struct fit_input *in, const double *overlap,
                                   const struct fit_device *devices, uint32_t device)
{
    struct prompts p = {in, overlap, devices, (int)device};
    /* Once per device. */
    SIM_ASSERT(devices[device].split.few_below == 0 && devices[device].rows_max == 0);
    struct samples s = {0};
    collect_prompts(&p, (struct fit_split){0}, &s);
    p.device = samples_kinds(&s) < KINDS_PER_TERM * FIT_PROMPT_TERMS ? -1 : p.device;
    free(s.v);
    return fit_prompt_split(collect_prompts, &p);
}

/* Sets the measured range of rows and keys: the device's own, or that of all devices if it ran no
 * kernel. */
static void range_make(const struct fit_input *in, uint32_t device, struct fit_device *d)
{
    SIM_ASSERT(d->rows_max == 0 && d->keys_max == 0);
    for (int all = 0; all < 2 && d->rows_max == 0; all++) {
        for (size_t i = 0; i < in->n; i++) {
            const struct drive_kernel *k = &in->kernels[i];
            if (!k->stopped && (all || k->device == device)) {
                uint32_t keys = fit_longest(in, k);
                d->rows_max = k->rows > d->rows_max ? k->rows : d->rows_max;
                d->keys_max = keys > d->keys_max ? keys : d->keys_max;
            }
        }
    }
}

/* Fits a part of one device. If its own kernels have few kinds of work (two prompt lengths, for
 * instance), they give only its speed. The kernels of all devices then give the dependence on
 * work. */
static void make_part(const struct fit_input *in, const double *overlap, struct fit *out,
                      uint32_t device, enum part part, struct err *e)
{
    struct samples s = {0};
    struct fit_device *d = &out->devices[device];
    SIM_ASSERT(out->n_parts < FIT_MAX_PARTS && device < out->n_devices);
    struct fit_part *to = &out->parts[out->n_parts];
    collect(in, overlap, out->devices, (int)device, part, d->split, &s);
    *to = (struct fit_part){.name = part_names[part], .device = (uint8_t)device};
    struct fit_number *line = part_line(part, d);
    uint32_t params = part_params(part, d);
    bool few = line != NULL && samples_kinds(&s) < KINDS_PER_TERM * params;
    if (s.n >= MIN_KERNELS && few) {
        struct samples all = {0};
        collect(in, overlap, out->devices, -1, part, d->split, &all);
        part_fit(&all, part, d);
        samples_scale(&s, part_terms(part, d), line);
        SIM_ASSERT(keeps_sum(&s) && all.n >= s.n); /* all devices include this one */
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
        collect(in, overlap, out->devices, -1, part, d->split, &s);
    }
    if (s.n >= MIN_KERNELS) {
        part_fit(&s, part, d);
        samples_judge(&s, part_params(part, d), to);
        out->n_parts++;
    } else if (part != PART_LAYER && part != PART_MIXED) {
        (void)err_add(e, "only %zu kernel%s of %s ran: a longer trace is needed", s.n,
                      text_plural(s.n), part_names[part]);
    }
    free(s.v);
}

int fit_make(const struct fit_input *in, const struct machine *m, struct fit *out, struct err *e)
{
    SIM_ASSERT(input_ok(in) && in->fit.n_parts == 0 && m->n_devices <= MACHINE_MAX_DEVICES);
    *out = in->fit;
    out->n_devices = m->n_devices;
    for (int w = 0; w < DRIVE_WORKS; w++) {
        fit_line_solve(&out->residents[w]);
    }
    OWNED double *overlap = xcalloc(in->n + 1, sizeof *overlap);
    for (size_t i = 0; i < in->n; i++) {
        overlap[i] = fit_is_one_row(&in->kernels[i]) ? fit_overlap(in, i) : 0.0;
    }
    for (uint32_t d = 0; d < m->n_devices; d++) {
        /* The slowdown comes first, because the parts are fitted with it divided out. */
        fit_beside(in, overlap, d, &out->devices[d]);
        SIM_ASSERT(fit_number_ok(out->devices[d].beside) && out->devices[d].beside.low >= 0.0);
    }
    for (uint32_t d = 0; d < m->n_devices && e->n == 0; d++) {
        out->devices[d].split = split_make(in, overlap, out->devices, d);
        range_make(in, d, &out->devices[d]);
        for (int p = 0; p < N_PARTS; p++) {
            make_part(in, overlap, out, d, (enum part)p, e);
        }
    }
    /* Each device's fit has attention, so its ranges of rows and keys are known. */
    for (uint32_t d = 0; d < m->n_devices && e->n == 0; d++) {
        SIM_ASSERT(out->devices[d].rows_max > 0 && out->devices[d].keys_max > 0);
    }
    return e->n == 0 ? 0 : -EINVAL;
}
