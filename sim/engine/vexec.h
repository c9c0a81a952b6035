/* The kernels of one launch (vexec.c). */
#pragma once

#include "sim/core/consistent.h"
#include "sim/core/kernels.h"
#include "sim/engine/engine.h"

extern const unsigned after_vexec[]; /* for BECOMES: phases that may follow each phase */

static inline const struct kernel_cost *vexec_kernel(const struct kernel_run *r, uint32_t k)
{
    return k + 1 == r->n ? &r->last : &r->full;
}

/* A kernel's isolated demand during its DDR traffic, in bytes per second. */
static inline double vexec_demand(const struct kernel_cost *c)
{
    return c->load_ns > 0 ? c->bytes / units_s_from_ns(c->load_ns) : 0.0;
}

/* Counts n kernels of r in the run's result. */
static inline void vexec_count(struct engine *e, const struct kernel_run *r, uint64_t n)
{
    struct sim_result *res = e->core.result;
    res->kernels += n;
    res->counters[COUNTER_KERNELS_OUTSIDE_ENVELOPE] += r->outside ? n : 0;
}

/* Books the present kernel, the only one that power limits can have slowed. */
static inline void vexec_book_present(struct engine *e, struct vexec *v)
{
    v->slowed_ns += v->job.slowed_ns;
    v->job.slowed_ns = 0.0;
    v->isolated_ns += vexec_kernel(v->kernels, v->k)->t_ns;
    vexec_count(e, v->kernels, 1);
}

/* Books isolated kernels [from, to) of n ops like r. */
static inline void vexec_book(struct vexec *v, struct kernel_run *r, uint32_t from, uint32_t to,
                              uint64_t n)
{
    uint64_t full = n * ((to < r->n ? to : r->n - 1) - from);
    uint64_t last = to == r->n ? n : 0;
    r->booked_full += full;
    r->booked_last += last;
    v->isolated_ns += (int64_t)full * r->full.t_ns + (int64_t)last * r->last.t_ns;
}

void vexec_kernel_begin(struct engine *e, struct vexec *v);
/* Stores in the pass how much of the present kernel is done, so that a launch that starts there
 * continues it. Each launch counts the isolated time that it spent itself. */
void vexec_suspend(struct engine *e, struct vexec *v);
void vexec_continue(struct vexec *v);
/* Isolated time of the present kernel that a suspended launch did. */
static inline int64_t vexec_skip_ns(const struct vexec *v)
{
    return v->op == v->l->pub->op_begin && v->k == 0 ? v->skip_ns : 0;
}

/* Sets the position to the first kernel of an op, which has index `place` in its layer. */
static inline void vexec_enter(struct vexec *v, uint32_t op, uint32_t place)
{
    const struct pass *p = v->l->pub->pass;
    v->op = op;
    v->k = 0;
    if (op < v->l->pub->op_end) {
        v->place = place;
        bool head = op + 1 == p->n_ops && p->shape.logit_rows > 0;
        v->kind = head ? OP_HEAD : p->layer.kind[place];
        v->kernels = v->run[v->kind];
    }
}

/* Sets the position to the first kernel of the launch. */
static inline void vexec_place(struct vexec *v)
{
    const struct launch *l = v->l->pub;
    vexec_enter(v, l->op_begin, l->op_begin % l->pass->layer.n);
    v->kernels = v->first;
}

static inline void vexec_next_op(struct vexec *v)
{
    uint32_t n = v->l->pub->pass->layer.n;
    vexec_enter(v, v->op + 1, v->place + 1 < n ? v->place + 1 : 0);
}

/* Moves the position to the next kernel. */
static inline void vexec_next(struct vexec *v)
{
    SIM_ASSERT(v->op < v->l->pub->op_end);
    if (++v->k == v->kernels->n) {
        vexec_next_op(v);
    }
}

/* Whether its last op is HEAD. */
static inline bool vexec_has_head(const struct launch *l)
{
    return l->op_end == l->pass->n_ops && l->pass->shape.logit_rows > 0;
}

/* Whether the present kernel is the last one, or all are done (after vexec_jump). */
static inline bool vexec_at_last(const struct vexec *v)
{
    uint32_t end = v->l->pub->op_end;
    return v->op + 1 >= end && (v->op == end || v->k + 1 == v->kernels->n);
}

/* Ends the present piece of work. Returns false if it was the kernel's DDR traffic and the kernel
 * now computes. Otherwise the kernel has ended: it is counted and reported, and the position is
 * after it. */
bool vexec_kernel_ends(struct engine *e, struct vexec *v);
/* Moves the position over kernels that end within left_ns, isolated and at full speed, from the
 * start of the present kernel. Counts them, and returns their total time. O(ops of a layer). */
int64_t vexec_jump(struct vexec *v, int64_t left_ns);
