/* Costs of the kernels of a launch. */
#include <string.h>

#include "sim/base/rng.h"
#include "sim/core/kernels.h"
#include "sim/engine/costs.h"
#include "sim/engine/vexec.h"

/* Noise does not move bytes faster than the DDR can. */
static void make_noisy(const struct engine *e, struct kernel_cost *c, double factor)
{
    double least = ceil(c->bytes / e->core.setup->machine->ddr_peak_bytes_per_s * 1e9);
    SIM_ASSERT(factor > 0.0 && isfinite(factor));
    c->t_ns = (int64_t)fmax(round((double)c->t_ns * factor), least);
    c->load_ns = (int64_t)fmax(round((double)c->load_ns * factor), least);
}

/* A kernel alone must not draw more than the DDR has, even if its model says so. */
static inline void audit_kernel(struct engine *e, const struct kernel_cost *c)
{
    double *over = &e->core.result->audit.ddr_max_over_capacity;
    *over = costs_over_capacity(*over, costs_peak_bytes_per_ns(e), c->load_ns, c->bytes);
}

/* Kernels of one op of a launch. */
static void ask(struct engine *e, const struct launch *l, enum op_kind op, uint32_t rows,
                double factor, struct kernel_run *r)
{
    const struct work_shape *w = &l->pass->shape;
    kernel_run_of_columns(e->core.models[w->model].truth, w, op, l->device, l->graph, rows,
                          l->chunk_rows, l->columns, r);
    if (factor != 1.0) {
        make_noisy(e, &r->full, factor);
        make_noisy(e, &r->last, factor);
        r->last.t_ns = r->last.t_ns < 1 ? 1 : r->last.t_ns; /* else time would never pass */
        r->last.load_ns = r->last.load_ns < 1 ? 1 : r->last.load_ns;
    }
    audit_kernel(e, &r->last);
    if (r->n > 1) {
        audit_kernel(e, &r->full);
    }
    SIM_ASSERT(r->n >= 1 && vexec_demand(&r->full) >= 0.0 && vexec_demand(&r->last) >= 0.0);
}

/* What really happens may differ from the model by a factor that belongs to this piece of work, so
 * that every policy that launches it meets the same one. */
static double drawn_factor(const struct engine *e, const struct launch *l)
{
    double sigma = e->core.setup->truth_sigma;
    const struct segment *s = &l->pass->segments[0];
    /* Of the work and the device, and of no launch's number: those differ between policies. */
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

void costs_fill(struct engine *e, struct vexec *v)
{
    const struct launch *l = v->l->pub;
    const struct pass *p = l->pass;
    const enum op_kind begin = pass_op_kind(p, l->op_begin);
    double factor = truth_factor(e, l);
    ask(e, l, begin, l->rows, factor, &v->first);
    v->layer_ns = 0;
    /* A share of its first op has its rows, what follows has those of the pass. */
    uint32_t end = l->op_begin + p->layer.n + 1;
    end = l->op_end < end ? l->op_end : end;
    for (uint32_t op = l->op_begin + 1; op < end; op++) {
        enum op_kind kind = pass_op_kind(p, op);
        if (kind == begin && l->rows == p->shape.rows) {
            v->run[kind] = v->first;
        } else if (kind != OP_HEAD) {
            ask(e, l, kind, p->shape.rows, factor, &v->run[kind]);
        }
        v->layer_ns += kind != OP_HEAD ? kernel_run_total_ns(&v->run[kind]) : 0;
    }
    if (l->op_end - l->op_begin > 1 && vexec_has_head(l)) {
        ask(e, l, OP_HEAD, p->shape.logit_rows, factor, &v->run[OP_HEAD]);
    }
}
