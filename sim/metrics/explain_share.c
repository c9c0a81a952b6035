/* The cost of sharing a pass: how much of its kernels' time each request's tokens would take in
 * their own kernels, and which requests are charged for the rest. */
#include "sim/metrics/explain_impl.h"

/* The shape of a pass with only this segment. */
static struct work_shape shape_of(const struct segment *s, const struct llm *m)
{
    uint64_t end = (uint64_t)s->first_token + s->n_tokens;
    bool prefill = s->role == SEGMENT_PREFILL;
    struct work_shape w = {.logit_rows = !prefill                                    ? s->n_tokens
                                         : end == request_prefill_target(s->request) ? 1
                                                                                     : 0,
                           .prefill_rows = prefill ? s->n_tokens : 0};
    work_shape_add(&w, m->sliding_window, s->first_token, s->n_tokens);
    return w;
}

/* Isolated time of an op's kernels for a pass of this shape, divided into kernels like those of g
 * (sim/core/kernels.c). */
static int64_t op_ns(const struct hwmodel *m, const struct explain_launch *g, enum op_kind op,
                     const struct work_shape *shape)
{
    uint32_t rows = op == OP_HEAD ? shape->logit_rows : shape->rows;
    if (rows == 0) {
        return 0;
    }
    struct kernel_query q = {.device = g->device,
                             .graph = g->graph,
                             .op = op,
                             .rows = rows,
                             .padded_rows = rows,
                             .shape = shape};
    struct kernel_cost cost = {.t_ns = 0};
    int64_t ns = 0;
    if (g->chunk_rows > 0 && op != OP_MHA && (rows > 1 || g->graph > 0)) {
        uint32_t full = (rows - 1) / g->chunk_rows;
        q.padded_rows = g->chunk_rows;
        if (full > 0) {
            q.rows = g->chunk_rows;
            hwmodel_kernel(m, &q, &cost);
            ns = full * cost.t_ns;
        }
        q.rows = rows - full * g->chunk_rows;
    }
    hwmodel_kernel(m, &q, &cost);
    return ns + cost.t_ns;
}

/* The part of a work that a segment's tokens take: for each op the ratio of its own kernels' model
 * time to that of the whole pass, applied to the measured time. */
static int64_t own_part(const struct hwmodel *m, const struct explain_work *work,
                        const struct work_shape *whole, const struct work_shape *own)
{
    int64_t sum = 0;
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        if (work->ns[op] > 0) {
            int64_t all_ns = op_ns(m, work->launch, (enum op_kind)op, whole);
            int64_t own_ns = op_ns(m, work->launch, (enum op_kind)op, own);
            double part = own_ns < all_ns ? (double)own_ns / (double)all_ns : 1.0;
            sum += (int64_t)((double)work->ns[op] * part + 0.5);
        }
    }
    return sum;
}

void explain_share(const struct explain *x, const struct pass *p, const struct explain_work *works,
                   size_t n, int64_t *own_ns)
{
    bool alone = x->n_models == 0 || p->n_segments == 1;
    SIM_ASSERT(alone || p->shape.model < x->n_models);
    const struct hwmodel *m = alone ? NULL : x->models[p->shape.model];
    for (uint32_t i = 0; i < p->n_segments; i++) {
        struct work_shape own = {0};
        if (!alone) {
            own = shape_of(&p->segments[i], m->llm);
        }
        for (size_t k = 0; k < n; k++) {
            own_ns[i] += alone ? 0 : own_part(m, &works[k], &p->shape, &own);
            for (int op = 0; alone && op < OP_KIND_COUNT; op++) {
                own_ns[i] += works[k].ns[op];
            }
        }
    }
}

void explain_share_charge(struct explain_live *v, const struct pass *p, uint32_t i,
                          int64_t shared_ns, const int64_t *own_ns)
{
    double all = 0.0; /* sum over the other segments */
    for (uint32_t k = 0; k < p->n_segments; k++) {
        all += k == i ? 0.0 : (double)own_ns[k];
    }
    /* Differences of a rounded running sum, so that the total is exact. */
    double so_far = 0.0;
    int64_t charged_ns = 0;
    for (uint32_t k = 0; k < p->n_segments && shared_ns > 0; k++) {
        if (k != i) {
            const struct request *r = p->segments[k].request;
            so_far += (double)own_ns[k];
            int64_t to_ns = so_far >= all ? shared_ns : (int64_t)((double)shared_ns * so_far / all);
            explain_in_way_of(v, r->id, r->cls)->shared_sum_ns += to_ns - charged_ns;
            charged_ns = to_ns;
        }
    }
}
