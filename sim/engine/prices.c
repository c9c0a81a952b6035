/* Prices of kernels that were asked for before. Ops without attention cost the same in every pass
 * of as many rows, logits and sequences, so most prices of a run are a few hundred; attention of
 * another context is priced anew. What whole passes alone on a device move is told once for many.
 */
#include <string.h>

#include "sim/engine/engine.h"

static void report(struct engine *e, struct prices *p)
{
    const struct llm *m = e->core.setup->llm;
    SIM_ASSERT(p->passes == 0 || p->summed);
    for (uint32_t op = 0; op < OP_KIND_COUNT && p->passes > 0; op++) {
        if (p->known[op] && op != OP_MHA && op != OP_LAYER) {
            vexec_tell(e, &p->run[op], p->passes * (op == OP_HEAD ? 1 : m->n_layers));
        }
    }
    p->passes = 0;
}

void prices_report(struct engine *e)
{
    for (uint32_t i = 0; i < 1u << PRICES_BITS; i++) {
        report(e, &e->prices[i]);
    }
    report(e, &e->unkept);
}

void prices_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    e->keeps_prices = s->truth->ops->context_limit != NULL && s->truth_sigma <= 0.0;
    for (uint8_t d = 0; e->keeps_prices && d < s->machine->n_devices; d++) {
        e->context_limit[d] = s->truth->ops->context_limit(s->truth, d);
    }
}

static struct prices *anew(struct engine *e, struct prices *p)
{
    report(e, p); /* who makes room says first what is not told yet */
    *p = (struct prices){0};
    return p;
}

#define MIX 0x9e3779b97f4a7c15u

static inline bool same_key(const struct prices *p, const uint64_t key[4])
{
    return p->key[0] == key[0] && p->key[1] == key[1] && p->key[2] == key[2] && p->key[3] == key[3];
}

struct prices *prices_find(struct engine *e, const struct work_shape *w, const struct launch *l,
                           uint32_t rows)
{
    SIM_ASSERT(rows > 0 && rows <= w->rows);
    /* With noise, or of a model that vouches for nothing, every price is new: one place is enough.
     */
    if (!e->keeps_prices) {
        return anew(e, &e->unkept);
    }
    /* Beyond it kernels count as outside the model's envelope, though their times be the same. */
    bool beyond = w->max_context_tokens > e->context_limit[l->device];
    uint64_t a = (uint64_t)rows << 32 | w->rows;
    uint64_t b = (uint64_t)w->prefill_rows << 32 | w->sequences;
    uint64_t c = (uint64_t)l->chunk_rows << 32 | (uint64_t)l->graph << 16 |
                 (uint64_t)l->device << 8 | (l->pass->fused_layers ? 2 : 0) | (beyond ? 1 : 0);
    uint64_t key[4] = {a, b, c, w->logit_rows}; /* logits: of the head */
    /* A polynomial, whose products do not wait for each other. */
    uint64_t h =
        a * (MIX * MIX * MIX * MIX) + b * (MIX * MIX * MIX) + c * (MIX * MIX) + key[3] * MIX;
    uint64_t at = ((h ^ h >> 32) * MIX) >> (65 - PRICES_BITS); /* each place has two entries */
    struct prices *two = &e->prices[2 * at];
    bool second = !same_key(&two[0], key);
    if (second && !same_key(&two[1], key)) {
        second = !e->second_price[at];                       /* the other one was used last */
        memcpy(anew(e, &two[second])->key, key, sizeof key); /* no key is all zeros: rows > 0 */
    }
    e->second_price[at] = second;
    return &two[second];
}

static void add(struct prices *p, enum op_kind op, uint64_t n)
{
    const struct kernel_run *r = &p->run[op];
    SIM_ASSERT(p->known[op] && op != OP_MHA && op != OP_LAYER);
    p->others_ns += (int64_t)n * kernel_run_total_ns(r);
    p->others += n * r->n;
    p->others_outside += r->outside ? n * r->n : 0;
}

/* Are the sums those of a pass whose kernels are priced now? */
static bool sums_hold(struct engine *e, const struct launch *l, const struct prices *p)
{
    const struct pass *pass = l->pass;
    int64_t others_ns = 0;
    for (uint32_t op = 0; op < pass->n_ops; op++) {
        enum op_kind kind = pass_op_kind(pass, op);
        if (kind != prices_attention(pass)) {
            bool again = op >= pass->layer.n && kind != OP_HEAD; /* layers are alike */
            SIM_ASSERT(again ||
                       vexec_priced_anew(e, l, kind, pass_op_rows(pass, op), &p->run[kind]));
            others_ns += kernel_run_total_ns(&p->run[kind]);
        }
    }
    SIM_ASSERT(p->others_ns == others_ns);
    return true;
}

struct prices *prices_of_pass(struct engine *e, struct vexec *v)
{
    const struct launch *l = &v->l->pub;
    const struct pass *pass = l->pass;
    struct prices *p = prices_find(e, &pass->shape, l, l->rows);
    SIM_ASSERT(vexec_whole_pass(v));
    if (p->summed) {
        SIM_ASSERT(sums_hold(e, l, p));
        return p;
    }
    vexec_fill(e, v); /* into the same place: the launch has all rows of its pass */
    for (uint32_t i = 0; i < pass->layer.n; i++) {
        if (pass->layer.kind[i] != prices_attention(pass)) {
            add(p, pass->layer.kind[i], e->core.setup->llm->n_layers);
        }
    }
    add(p, OP_HEAD, 1);
    p->summed = true;
    return p;
}

void prices_book(struct engine *e, struct vexec *v, struct prices *p, uint64_t n)
{
    struct sim_result *res = e->core.result;
    SIM_ASSERT(p->summed);
    v->solo_ns += (int64_t)n * p->others_ns;
    res->kernels += n * p->others;
    res->counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE] += n * p->others_outside;
    p->passes += n;
}
