#include "hwmodels/roofline.h"

#include "hwmodels/roofline_impl.h"
#include "sim/base/words.h"

/* Inlined into the kernel function of each model, because it is the hottest code. */
#define IN_PLACE __attribute__((always_inline)) static inline

/* fmax of two numbers, inline, because every kernel needs several. */
static inline double larger(double x, double y)
{
    return x > y ? x : y;
}

/* e_a, or the harmonic mean if pairs have different rates. Pairs of decode rows run at e_d, and so
 * do those of prompts with few rows each. All others run at e_s if the model's attention is
 * special, else at e_a. */
static inline double attention_frac(const struct roofline *r, const struct soc_runtime *p,
                                    const struct work_shape *w)
{
    bool special = r->special_attention && p->special_attention_frac > 0.0 && w->prefill_rows > 0;
    double of_prompts = special ? p->special_attention_frac : p->attention_frac;
    double of_decodes =
        p->decode_attention_frac > 0.0 ? p->decode_attention_frac : p->attention_frac;
    double pairs = (double)w->attn_pairs;
    if (of_prompts == of_decodes || pairs == 0.0) {
        return of_prompts;
    }
    /* Negative if drafts are verified, because these have several rows per sequence. */
    int64_t prompts = (int64_t)w->sequences - (w->rows - w->prefill_rows);
    bool few = w->prefill_rows < p->few_rows * prompts;
    double decode = few ? pairs : fmin(pairs, soc_ops_decode_keys(w));
    return pairs / (decode / of_decodes + (pairs - decode) / of_prompts);
}

struct terms {
    double compute_s, memory_s;
    double launch_s; /* launches, and costs per sequence of a batch */
    double flop, bytes;
    double compute_only_frac, bytes_per_s; /* of traffic: last share without any, largest rate */
    double keys;                           /* that attention reads, without padding */
};

/* Decode sequences, without the first one of a pass without a prompt. */
static double further_decodes(const struct work_shape *w)
{
    uint32_t rows = w->rows - w->prefill_rows;
    uint32_t prompts = w->prefill_rows > 0 ? 1 : 0; /* at least */
    uint32_t decodes = w->sequences - prompts < rows ? w->sequences - prompts : rows;
    return decodes > 0 && prompts == 0 ? decodes - 1.0 : decodes;
}

/* The share of an op's weights that a kernel uses. */
static inline double weights_frac(const struct kernel_query *q)
{
    return q->columns > 0 ? (double)q->columns / LAUNCH_COLUMNS : 1.0;
}

/* Number of passes, of equal size, into which a runtime's micro-batches split a kernel's rows. */
static inline double micro_batches(const struct soc_runtime *p, const struct kernel_query *q)
{
    return p->micro_batch > 0 ? ceil((double)q->padded_rows / p->micro_batch) : 1.0;
}

/* Several cards exchange a layer's rows twice: after the output projection and after the FFN. */
static inline double exchange_s(const struct roofline *r, const struct kernel_query *q)
{
    const struct soc_exchange *x = &r->exchange[q->device];
    if (x->cards < 2 || (q->op != OP_FFN && q->op != OP_LAYER)) {
        return 0.0;
    }
    /* A ring all-reduce sends 2 (n - 1) / n of the data over each link. */
    double sent = 2.0 * (x->cards - 1.0) / x->cards * ROOFLINE_ACT_BYTES * r->model.llm->hidden;
    return 2.0 * (x->latency_s + sent * q->padded_rows / x->bytes_per_s);
}

/* The share of far keys or pairs that a pass skips. Some runtimes skip them in decodes alone. */
static inline double skipped(const struct soc_runtime *p, const struct work_shape *w, double far)
{
    return p->decode_window && w->prefill_rows > 0 ? 0.0 : far;
}

/* Keys that a pass reads, where layers of so large a share skip far ones. */
static inline double keys_read(const struct soc_runtime *p, const struct work_shape *w, double far)
{
    return (double)w->kv_read_tokens - skipped(p, w, far) * (double)w->far_keys;
}

/* With padded attention the keys are a multiple of a chunk. */
static inline double padded_keys(const struct work_shape *w, const struct soc_runtime *p,
                                 double read, uint32_t chunk)
{
    double keys = larger(read, (double)p->window * w->sequences);
    if (!p->pad_attention || chunk == 0) {
        return keys;
    }
    /* Lengths of several sequences are unknown, so this is the mean padding. */
    return w->sequences == 1 ? ceil(keys / chunk) * chunk : keys + 0.5 * chunk * w->sequences;
}

/* Pairs of a query and a key, including masked ones that a static graph computes. */
static inline double all_pairs(const struct work_shape *w, const struct soc_runtime *p,
                               double far_frac)
{
    double pairs = (double)w->attn_pairs - skipped(p, w, far_frac) * (double)w->far_pairs;
    return larger(pairs, (double)p->window * w->rows);
}

/* Adds attention. A share of an MHA's rows has that share of the pairs and keys. */
IN_PLACE void attention_add(const struct hwmodel *m, const struct kernel_query *q, bool plain,
                            double flop_per_s, struct terms *t)
{
    const struct roofline *r = m->params;
    const struct soc_runtime *p = r->runtime[q->device];
    const struct work_shape *w = q->shape;
    double share = (double)q->rows / (double)w->rows;
    double flop = r->attn_flop_per_pair * all_pairs(w, p, r->far_pair_frac[q->device]) * share;
    t->keys = keys_read(p, w, r->far_key_frac[q->device]);
    double keys = padded_keys(w, p, t->keys, m->machine->devices[q->device].chunk_rows);
    t->compute_s += flop / (flop_per_s * (plain ? 1.0 : attention_frac(r, p, w)));
    t->flop += flop;
    t->bytes += r->kv_bytes_per_key * keys * share + r->attn_io_bytes_per_row * q->rows;
    if (r->state_bytes > 0.0) {
        double of_state = r->state_flop_per_row * q->rows;
        double e_r = p->recurrence_frac > 0.0 ? p->recurrence_frac : p->attention_frac;
        t->compute_s += of_state / (flop_per_s * (plain ? 1.0 : e_r));
        t->flop += of_state;
        t->bytes += r->state_bytes * w->sequences * share;
    }
}

/* Adds launches, and the costs of each further sequence, also in mixed passes: a launch of
 * attention, gathering its KV, and the share of weights that products of few rows read again. */
IN_PLACE void batch_add(const struct roofline *r, const struct kernel_query *q, double part,
                        const struct soc_curve *c, struct terms *t)
{
    const struct soc_runtime *p = r->runtime[q->device];
    const struct roofline_op *op = &r->ops[q->op];
    const struct work_shape *w = q->shape;
    double decodes = further_decodes(w);
    double again = p->decode_batch_frac * decodes * op->weight_bytes * part;
    t->launch_s = roofline_launches(r, q->device, q->op, q->padded_rows == 1) * c->launch_s *
                      micro_batches(p, q) +
                  op->sync_s * micro_batches(p, q) + exchange_s(r, q);
    if (w->prefill_rows == 0) {
        t->memory_s *= 1.0 + p->decode_stretch_frac * decodes;
    }
    if (roofline_has_attention(q->op)) { /* a share of the rows has that share of the sequences */
        double sequences = w->sequences * (double)q->rows / w->rows;
        double further = sequences > 1.0 ? sequences - 1.0 : 0.0;
        t->launch_s += p->attention_launches * further * c->launch_s;
        again += p->kv_gather_frac * r->kv_bytes_per_key * t->keys * further / w->sequences;
        /* Columns without a head read nothing, but wait for those with one. */
        double lacking = r->lacking_key_bytes[q->device];
        if (lacking > 0.0) {
            double keys = keys_read(p, w, r->far_lacking_frac[q->device]);
            t->launch_s += lacking * keys * q->rows / w->rows / c->bytes_per_s;
        }
    }
    /* This time is added to that of launches, not to the roofline's memory time. There it would
     * have no effect in compute-bound passes, so decodes of mixed passes would be free. */
    t->bytes += again;
    t->launch_s += again / c->bytes_per_s;
}

/* Work and bytes of a kernel's matrix products, and the time of the work. `plain`: only terms of
 * Appendix B. */
IN_PLACE void matrices_fill(const struct hwmodel *m, const struct kernel_query *q, bool plain,
                            struct terms *t)
{
    const struct roofline *r = m->params;
    const struct soc_runtime *p = r->runtime[q->device];
    const struct roofline_op *op = &r->ops[q->op];
    bool many = q->padded_rows > 1;
    const struct soc_curve *c = many ? &p->many : &p->one;
    *t = (struct terms){.compute_only_frac = r->compute_only_frac[q->device],
                        .bytes_per_s = c->bytes_per_s};
    if (q->op == OP_MHA) { /* it has no products */
        return;
    }
    double part = weights_frac(q);
    double passes = plain ? 1.0 : micro_batches(p, q);
    /* A static kernel computes its padding. */
    double rows = q->padded_rows / passes;
    /* By rows without padding, because padding is not routed to experts. */
    double touched = op->expert_bytes > 0.0 ? llm_experts_touched(m->llm, q->rows / passes) : 0.0;
    double fill = 1.0;   /* filling costs time but no work, so it is not in flop */
    double slower = 0.0; /* additional flop per row with the time of slower kernels */
    if (many && !plain) {
        /* Systolic arrays fill with rows: below their height fewer rows take no less time (32 on
         * the NPU of the Snapdragon 8 Gen 3, HeteroInfer). */
        rows = rows < p->min_rows ? p->min_rows : rows;
        /* The fill is fitted to prompts, the shortest of 32 rows. Runtimes have other kernels for
         * the few rows of a decode batch. */
        bool prompts = q->shape->prefill_rows > 0;
        double share = prompts ? 1.0 : p->batch_fill_frac;
        fill = 1.0 + share * p->fill_rows / rows;
        fill *= p->width_fill > 0.0 ? 1.0 + p->width_fill / m->llm->hidden : 1.0;
        if (op->expert_flop_per_row > 0.0) {
            slower = op->expert_flop_per_row * p->expert_fill / m->llm->ffn_hidden;
            if (prompts) {
                /* Each chosen expert costs additional rows. `fill` does not apply to them, so this
                 * divides by its factor. */
                double chosen = touched * m->llm->n_experts / m->llm->experts_per_token;
                slower += op->expert_flop_per_row * p->expert_rows * chosen / (rows + p->fill_rows);
            }
        }
    }
    t->flop = op->flop_per_row * rows * passes * part;
    t->compute_s = (t->flop + slower * rows * passes * part) / c->flop_per_s * fill;
    /* A share of the weights reads all inputs. Outputs are counted in full, too. */
    t->bytes = op->weight_bytes * passes * part + op->io_bytes_per_row * q->padded_rows;
    t->bytes += op->expert_bytes * touched * passes * part;
}

/* Time of compute and memory together: the maximum, ... */
static double longer_s(const struct terms *t, double knee)
{
    (void)knee;
    return larger(t->compute_s, t->memory_s);
}

/* ... or big (1 + (small/big)^p)^(1/p): (big^p + small^p)^(1/p) without overflow. */
static double norm_s(const struct terms *t, double knee)
{
    double big = fmax(t->compute_s, t->memory_s);
    double small = fmin(t->compute_s, t->memory_s);
    return big * pow(1.0 + pow(small / big, knee), 1.0 / knee);
}

/* Time to prepare an op. A prompt's shapes may take longer than a decode's. */
static inline double enqueue_s(const struct soc_runtime *p, const struct work_shape *w)
{
    return w->prefill_rows > 0 && p->prompt_enqueue_s > 0.0 ? p->prompt_enqueue_s : p->enqueue_s;
}

/* The host prepares each op while earlier ones run. The device waits if preparing a layer takes
 * longer than its matrix products; its ops share that wait. Attention would hide a little more, but
 * then the time of products would depend on the context. */
static double host_wait_s(const struct hwmodel *m, const struct kernel_query *q,
                          double (*both_s)(const struct terms *t, double knee))
{
    const struct roofline *r = m->params;
    struct kernel_query whole = *q;
    whole.op = q->op == OP_HEAD ? OP_HEAD : OP_LAYER;
    uint32_t chunk = m->machine->devices[q->device].chunk_rows;
    if (q->op == OP_MHA && q->rows > 1 && chunk > 0) { /* only products are split into chunks */
        whole.padded_rows = chunk;
        whole.rows = q->rows < chunk ? q->rows : chunk;
    }
    struct terms t;
    matrices_fill(m, &whole, false, &t);
    t.memory_s = t.bytes / t.bytes_per_s;
    double prims = r->ops[whole.op].prims;
    const struct soc_runtime *p = r->runtime[q->device];
    double lacking_s =
        prims * enqueue_s(p, q->shape) * micro_batches(p, &whole) - both_s(&t, p->knee);
    return lacking_s > 0.0 ? lacking_s * r->ops[q->op].prims / prims : 0.0;
}

/* All terms of a kernel: compute, memory, and launches. */
IN_PLACE void terms_fill(const struct hwmodel *m, const struct kernel_query *q, bool plain,
                         double (*both_s)(const struct terms *t, double knee), struct terms *t)
{
    const struct roofline *r = m->params;
    const struct soc_runtime *p = r->runtime[q->device];
    const struct soc_curve *c = q->padded_rows > 1 ? &p->many : &p->one;
    matrices_fill(m, q, plain, t);
    if (roofline_has_attention(q->op)) {
        attention_add(m, q, plain, c->flop_per_s, t);
    }
    t->memory_s = t->bytes / c->bytes_per_s;
    if (!plain) {
        batch_add(r, q, weights_frac(q), c, t);
        t->launch_s += enqueue_s(p, q->shape) > 0.0 ? host_wait_s(m, q, both_s) : 0.0;
    }
}

static double extended_s(const struct terms *t)
{
    return t->launch_s + larger(t->compute_s, t->memory_s);
}

static inline bool too_many_rows(const struct soc_runtime *p, uint32_t rows)
{
    return p->valid_rows_max != 0 && rows > p->valid_rows_max;
}

static inline uint32_t longest_context(const struct soc_runtime *p)
{
    return p->valid_context_max != 0 ? p->valid_context_max : UINT32_MAX;
}

/* A kernel first loads, then computes. Loading is limited by the device's bandwidth, so a
 * memory-bound kernel loads all the time. */
IN_PLACE int64_t load_ns(const struct terms *t, int64_t t_ns)
{
    double least_ns = larger(t->bytes / t->bytes_per_s * 1e9, 1.0);
    double ns = ceil(larger((1.0 - t->compute_only_frac) * (double)t_ns, least_ns));
    return ns < (double)t_ns ? (int64_t)ns : t_ns;
}

IN_PLACE void cost_fill(const struct terms *t, double seconds, bool is_outside,
                        struct kernel_cost *out)
{
    int64_t ns = units_round(seconds * 1e9);
    /* At least 1 ns: kernels of zero length could be launched for ever in one instant. */
    out->t_ns = ns < 1 ? 1 : ns;
    out->load_ns = t->compute_only_frac > 0.0 ? load_ns(t, out->t_ns) : out->t_ns;
    out->bytes = t->bytes;
    out->flop = t->flop;
    out->outside = is_outside;
}

static inline bool outside(const struct soc_runtime *p, const struct kernel_query *q)
{
    return too_many_rows(p, q->rows) || q->shape->max_context_tokens > longest_context(p);
}

IN_PLACE void finish(const struct hwmodel *m, const struct kernel_query *q, const struct terms *t,
                     double seconds, struct kernel_cost *out)
{
    const struct roofline *r = m->params;
    cost_fill(t, seconds, outside(r->runtime[q->device], q), out);
}

static void kernel_extended(const struct hwmodel *m, const struct kernel_query *q,
                            struct kernel_cost *out)
{
    struct terms t;
    terms_fill(m, q, false, longer_s, &t);
    finish(m, q, &t, extended_s(&t), out);
}

static void kernel_roofline(const struct hwmodel *m, const struct kernel_query *q,
                            struct kernel_cost *out)
{
    struct terms t;
    terms_fill(m, q, true, longer_s, &t);
    finish(m, q, &t, larger(t.compute_s, t.memory_s), out);
}

static double pnorm_s(const struct terms *t, double p)
{
    return t->launch_s + norm_s(t, p);
}

static void kernel_pnorm(const struct hwmodel *m, const struct kernel_query *q,
                         struct kernel_cost *out)
{
    const struct roofline *r = m->params;
    struct terms t;
    terms_fill(m, q, false, norm_s, &t);
    finish(m, q, &t, pnorm_s(&t, r->runtime[q->device]->knee), out);
}

/* A measured kernel may be faster than the DDR, because a cache has some of its bytes. */
static void cap_bytes(const struct hwmodel *m, struct kernel_cost *out)
{
    double most = m->machine->ddr_peak_bytes_per_s * 1e-9 * (double)out->load_ns;
    out->bytes = out->bytes > most ? most : out->bytes;
}

static void kernel_table(const struct hwmodel *m, const struct kernel_query *q,
                         struct kernel_cost *out)
{
    const struct roofline *r = m->params;
    struct terms t;
    terms_fill(m, q, false, longer_s, &t);
    double seconds = t.launch_s + larger(t.compute_s, t.memory_s);
    double factor = soc_table_factor(&r->runtime[q->device]->table, q->padded_rows);
    finish(m, q, &t, seconds * factor, out);
    if (factor < 1.0) {
        cap_bytes(m, out);
    }
}

/* Measured kernels of the same model; `p-norm` without these. */
static void kernel_per_op(const struct hwmodel *m, const struct kernel_query *q,
                          struct kernel_cost *out)
{
    const struct roofline *r = m->params;
    const struct soc_ops *ops = &r->runtime[q->device]->ops;
    struct terms t;
    terms_fill(m, q, false, norm_s, &t);
    /* Measured kernel times are only valid for their model. The formula predicts all others. */
    bool measured = ops->given && strcmp(ops->model, m->llm->name) == 0;
    double seconds = measured ? soc_ops_seconds(ops, q) * weights_frac(q)
                              : pnorm_s(&t, r->runtime[q->device]->knee);
    finish(m, q, &t, seconds, out);
    if (measured) {
        cap_bytes(m, out);
    }
}

static uint32_t context_limit(const struct hwmodel *m, uint8_t device)
{
    const struct roofline *r = m->params;
    return longest_context(r->runtime[device]);
}

static double ridge(const struct hwmodel *m, uint8_t device)
{
    const struct roofline *r = m->params;
    return r->runtime[device]->many.flop_per_s / r->runtime[device]->many.bytes_per_s;
}

static const struct hwmodel_ops extended = {.name = "extended",
                                            .kernel = kernel_extended,
                                            .context_limit = context_limit,
                                            .ridge_flop_per_byte = ridge,
                                            .floor = roofline_floor_extended};
static const struct hwmodel_ops roofline = {.name = "roofline",
                                            .kernel = kernel_roofline,
                                            .context_limit = context_limit,
                                            .ridge_flop_per_byte = ridge,
                                            .floor = roofline_floor_roofline};
static const struct hwmodel_ops pnorm = {.name = "p-norm",
                                         .kernel = kernel_pnorm,
                                         .context_limit = context_limit,
                                         .ridge_flop_per_byte = ridge,
                                         .floor = roofline_floor_extended};
static const struct hwmodel_ops table = {.name = "table",
                                         .kernel = kernel_table,
                                         .context_limit = context_limit,
                                         .ridge_flop_per_byte = ridge,
                                         .floor = roofline_floor_table};
static const struct hwmodel_ops per_op = {.name = "per-op",
                                          .kernel = kernel_per_op,
                                          .context_limit = context_limit,
                                          .ridge_flop_per_byte = ridge};
static const struct hwmodel_ops *const forms[] = {&extended, &pnorm, &per_op, &roofline, &table};
static const char *const names[] = {"extended", "p-norm", "per-op", "roofline", "table", NULL};

const struct hwmodel_ops *hwmodel_find(const char *form)
{
    int i = words_find(names, form);
    return i >= 0 ? forms[i] : NULL;
}

const char *const *hwmodel_names(void)
{
    return names;
}
