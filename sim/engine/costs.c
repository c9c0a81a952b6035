/* A cache of kernel costs. Ops without attention cost the same in all passes of equal rows, logit
 * rows and sequences, so a run has a few hundred costs. Attention is computed again for each
 * context. Isolated kernels are booked where their costs are, and reported together. */
#include "sim/engine/costs.h"
#include "sim/base/rng.h"
#include "sim/core/kernels.h"
#include "sim/engine/ddr.h"
#include "sim/engine/vexec.h"

/* Costs of the kernels of similar passes. */
struct costs {
    uint64_t key[4];
    bool known[OP_KIND_COUNT];
    struct work_shape attention; /* shape of the attention whose cost it has */
    struct kernel_run run[OP_KIND_COUNT];
    uint32_t uses; /* launches that use it, and the cache */
    struct costs *next_free;
};

#define COST_BITS 10
struct cost_cache {
    struct costs *entries[1u << COST_BITS], *unused;
    bool second[1u << (COST_BITS - 1)]; /* for each pair of entries: the second was used last */
    bool keeps;      /* costs may be cached (hwmodel_ops.context_limit, no noise) */
    uint64_t number; /* otherwise makes every key unique */
    /* By model and device: longer contexts are outside the calibrated range. */
    uint32_t context_limit[SIM_MAX_MODELS][MACHINE_MAX_DEVICES];
};

void costs_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    struct cost_cache *c = e->costs = arena_alloc(&e->core.arena, sizeof *e->costs);
    c->keeps = s->truth->ops->context_limit != NULL && !sim_setup_is_random(s);
    for (uint32_t i = 0; c->keeps && i < e->core.n_models; i++) {
        const struct hwmodel *m = e->core.models[i].truth;
        for (uint8_t d = 0; d < s->machine->n_devices; d++) {
            c->context_limit[i][d] = m->ops->context_limit(m, d);
        }
    }
}

/* ---- one op ---- */

/* Applies noise, but never exceeds the DDR's peak bandwidth. */
static void make_noisy(const struct engine *e, struct kernel_cost *c, double factor)
{
    double least = ceil(c->bytes / e->core.setup->machine->ddr_peak_bytes_per_s * 1e9);
    SIM_ASSERT(factor > 0.0 && isfinite(factor));
    c->t_ns = (int64_t)fmax(round((double)c->t_ns * factor), least);
    c->load_ns = (int64_t)fmax(round((double)c->load_ns * factor), least);
}

/* The factor by which the true time differs from the model's. It depends on the work, so that it is
 * equal for all policies. */
static double drawn_factor(const struct engine *e, const struct launch *l)
{
    double sigma = e->core.setup->truth_sigma;
    const struct segment *s = &l->pass->segments[0];
    /* The key has no launch number, because these differ between policies. */
    uint64_t key =
        rng_key(e->core.setup->seed, RNG_TRUTH, ((uint64_t)s->request->id << 32) | s->first_token,
                ((uint64_t)l->op_begin << 8) | l->device);
    return exp(sigma * rng_normal_of_key(key) - 0.5 * sigma * sigma);
}

static bool hangs(const struct sim_setup *s, const struct launch *l)
{
    struct rng r;
    rng_init(&r, rng_key(s->seed, RNG_HANG, l->id, l->device));
    return rng_uniform(&r) < s->hang_frac;
}

static inline double truth_factor(const struct engine *e, const struct launch *l)
{
    const struct sim_setup *s = e->core.setup;
    double factor = s->truth_sigma > 0.0 ? drawn_factor(e, l) : 1.0;
    return s->hang_frac > 0.0 && hangs(s, l) ? factor * s->hang_factor : factor;
}

/* Gets the cost of one op from the model. */
__attribute__((noinline)) static void ask(struct engine *e, const struct launch *l, enum op_kind op,
                                          uint32_t rows, double factor, struct kernel_run *r)
{
    const struct work_shape *w = &l->pass->shape;
    kernel_run_fill(e->core.models[w->model].truth, w, op, l->device, l->graph, rows, l->chunk_rows,
                    l->columns, r);
    if (factor != 1.0) {
        make_noisy(e, &r->full, factor);
        make_noisy(e, &r->last, factor);
        r->last.t_ns = r->last.t_ns < 1 ? 1 : r->last.t_ns; /* so that time passes */
        r->last.load_ns = r->last.load_ns < 1 ? 1 : r->last.load_ns;
    }
    costs_audit(e, &r->last);
    if (r->n > 1) {
        costs_audit(e, &r->full);
    }
    SIM_ASSERT(r->n >= 1 && vexec_demand(&r->full) >= 0.0 && vexec_demand(&r->last) >= 0.0);
}

/* Whether a cached cost equals the model's. */
static bool cost_is(struct engine *e, const struct launch *l, enum op_kind op, uint32_t rows,
                    const struct kernel_run *run)
{
    struct kernel_run now;
    ask(e, l, op, rows, truth_factor(e, l), &now);
    SIM_ASSERT(run->n == now.n && run->outside == now.outside);
    SIM_ASSERT(run->last.t_ns == now.last.t_ns && run->last.bytes == now.last.bytes);
    SIM_ASSERT(run->full.t_ns == now.full.t_ns && run->full.bytes == now.full.bytes);
    SIM_ASSERT(run->full.load_ns == now.full.load_ns && run->last.load_ns == now.last.load_ns);
    return true;
}

/* ---- attention ---- */

static inline bool attends(enum op_kind op)
{
    return op == OP_MHA || op == OP_LAYER;
}

static inline bool same_context(const struct work_shape *x, const struct work_shape *y)
{
    return x->attn_pairs == y->attn_pairs && x->kv_read_tokens == y->kv_read_tokens &&
           x->far_pairs == y->far_pairs && x->far_keys == y->far_keys &&
           x->max_context_tokens == y->max_context_tokens;
}

/* Returns the kernels of the launch's first op, or of a later one. Attention is for one context, so
 * the launch has it by itself. */
static inline struct kernel_run *cost_of(struct engine *e, struct vexec *v, enum op_kind op,
                                         uint32_t rows, double factor, bool later)
{
    const struct launch *l = v->l->pub;
    struct costs *p = v->costs[later && v->costs[1] != NULL];
    struct kernel_run *run = &p->run[op];
    if (!p->known[op] || (attends(op) && !same_context(&p->attention, &l->pass->shape))) {
        ask(e, l, op, rows, factor, run);
        p->known[op] = true;
        p->attention = attends(op) ? l->pass->shape : p->attention;
    }
    SIM_ASSERT(cost_is(e, l, op, rows, run));
    if (attends(op)) {
        v->attention[later] = *run;
        run = &v->attention[later];
    }
    return run;
}

/* ---- the cache ---- */

/* Counts and reports the booked kernels of one op. */
static inline void report(struct engine *e, struct kernel_run *r)
{
    if (r->booked_full + r->booked_last > 0) {
        double full = vexec_demand(&r->full), last = vexec_demand(&r->last);
        ddr_report(e, r->booked_full, r->full.load_ns, full, full);
        ddr_report(e, r->booked_last, r->last.load_ns, last, last);
        vexec_count(e, r, r->booked_full + r->booked_last);
        r->booked_full = r->booked_last = 0;
    }
}

/* Ends a use of an entry, which may be NULL. */
static void leave(struct engine *e, struct costs *p)
{
    if (p != NULL && --p->uses == 0) {
        for (enum op_kind op = 0; op < OP_KIND_COUNT; op++) {
            report(e, &p->run[op]);
        }
        FREE_PUT(e->costs->unused, p);
    }
}

void costs_leave(struct engine *e, struct vexec *v)
{
    for (int later = 0; later < 2; later++) {
        report(e, &v->attention[later]);
        leave(e, v->costs[later]);
        v->costs[later] = NULL;
    }
}

void costs_finish(struct engine *e)
{
    for (uint32_t i = 0; i < e->core.setup->machine->n_devices; i++) {
        for (uint32_t k = 0; k < e->devices[i].n_launches; k++) {
            costs_leave(e, e->devices[i].launches[k]);
        }
    }
    for (uint32_t i = 0; i < 1u << COST_BITS; i++) {
        leave(e, e->costs->entries[i]);
    }
}

#define MIX 0x9e3779b97f4a7c15u

static inline bool same_key(const struct costs *p, const uint64_t key[4])
{
    return p != NULL && p->key[0] == key[0] && p->key[1] == key[1] && p->key[2] == key[2] &&
           p->key[3] == key[3];
}

/* Returns the entry for the launch's kernels of that many rows, which may be empty. The launch uses
 * it until costs_leave. */
static struct costs *find(struct engine *e, const struct launch *l, uint32_t rows)
{
    struct cost_cache *cache = e->costs;
    const struct work_shape *w = &l->pass->shape;
    SIM_ASSERT(rows > 0 && rows <= w->rows);
    /* Longer contexts count as outside the calibrated range, even if times are equal. */
    bool beyond = w->max_context_tokens > cache->context_limit[w->model][l->device];
    uint64_t a = (uint64_t)rows << 32 | w->rows;
    uint64_t b = (uint64_t)w->prefill_rows << 32 | w->sequences;
    uint64_t c = (uint64_t)l->chunk_rows << 32 | (uint64_t)w->model << 24 |
                 (uint64_t)l->graph << 16 | (uint64_t)l->device << 8 |
                 (l->pass->fused_layers ? 2 : 0) | (beyond ? 1 : 0);
    /* logit_rows are the rows of HEAD. If costs may not be cached, every key is new. */
    uint64_t d = cache->keeps ? (uint64_t)l->columns << 32 | w->logit_rows : ++cache->number;
    uint64_t key[4] = {a, b, c, d};
    /* A polynomial hash, whose products are independent. */
    uint64_t h = a * (MIX * MIX * MIX * MIX) + b * (MIX * MIX * MIX) + c * (MIX * MIX) + d * MIX;
    /* A hash has two entries. New keys share two, so that a run with noise takes no more memory. */
    uint64_t at = cache->keeps ? ((h ^ h >> 32) * MIX) >> (65 - COST_BITS) : 0;
    struct costs **two = &cache->entries[2 * at];
    bool second = !same_key(two[0], key);
    if (second && !same_key(two[1], key)) {
        second = !cache->second[at]; /* replace the one used less recently */
        leave(e, two[second]);
        FREE_TAKE(cache->unused, &e->core.arena, two[second]);
        *two[second] = (struct costs){.key = {a, b, c, d}, .uses = 1};
    }
    cache->second[at] = second;
    two[second]->uses++;
    return two[second];
}

void costs_fill(struct engine *e, struct vexec *v)
{
    const struct launch *l = v->l->pub;
    const struct pass *p = l->pass;
    double factor = truth_factor(e, l);
    v->costs[0] = find(e, l, l->rows);
    v->first = cost_of(e, v, pass_op_kind(p, l->op_begin), l->rows, factor, false);
    v->kernels = v->first;
    if (l->op_end - l->op_begin == 1) {
        return;
    }
    if (l->rows != p->shape.rows) { /* after a share of rows, later ops have all rows */
        v->costs[1] = find(e, l, p->shape.rows);
    }
    bool head = vexec_has_head(l);
    uint32_t n = l->op_end - l->op_begin - 1 - head; /* later ops, without HEAD */
    uint32_t place = v->place;
    v->layer_ns = n < p->layer.n ? kernel_run_total_ns(v->first) : 0;
    for (uint32_t i = 0; i < n && i < p->layer.n; i++) {
        place = place + 1 < p->layer.n ? place + 1 : 0;
        enum op_kind kind = p->layer.kind[place];
        v->run[kind] = cost_of(e, v, kind, p->shape.rows, factor, true);
        v->layer_ns += kernel_run_total_ns(v->run[kind]);
    }
    if (head) {
        v->run[OP_HEAD] = cost_of(e, v, OP_HEAD, p->shape.logit_rows, factor, true);
    }
}
