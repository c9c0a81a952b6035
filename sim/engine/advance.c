/* The one function that moves jobs through time.
 *
 * The queue holds what a policy can see. Between two of its events only kernels end, and nobody but
 * their launch takes notice: advance() moves all running launches over these boundaries and stops
 * before the first that ends its launch or must yield. One launch alone at full speed is left where
 * it is until somebody takes notice, and then jumps in closed form. `sim.collapse=false` makes
 * every boundary an instant of the run instead, with the same results. */
#include "sim/engine/advance.h"
#include "sim/engine/vexec.h"

void advance_init(struct engine *e)
{
    const struct sim_setup *s = e->core.setup;
    e->may_advance = s->collapse;
    e->may_jump = s->collapse;
    for (uint32_t i = 0; i < s->n_observers; i++) {
        e->kernels_seen = e->kernels_seen || s->observers[i]->kernel != NULL;
        e->may_jump =
            e->may_jump && s->observers[i]->kernel == NULL && !s->observers[i]->wants_kernels;
    }
}

/* Does nobody wait for the end of a kernel of the launch? */
static inline bool unawaited(const struct engine *e, const struct vexec *v)
{
    return (!v->l->pub->stop_requested ||
            (v->l->pub->yield == YIELD_PASS && v->in_flight_left == 0)) &&
           (e->frames.phase != FRAMES_WAITING || e->frames.job.device != v->job.device);
}

/* Is the end of the present kernel no more than that? */
static inline bool kernel_unnoticed(const struct engine *e, const struct vexec *v)
{
    return !vexec_at_last(v) && unawaited(e, v);
}

/* Does nobody but its launch take notice of the end of what it does now? */
static inline bool unnoticed(const struct engine *e, const struct job *j)
{
    return j->exec != NULL && (j->exec->compute_ns > 0 || kernel_unnoticed(e, j->exec));
}

/* The next boundary, of one launch or of several at once. False: it is to be noticed. */
static bool step(struct engine *e)
{
    struct job *j = ddr_first(e, e->n_jobs);
    int64_t at_ns = j->end_ns;
    for (uint32_t i = 0; i < e->n_jobs; i++) {
        if (e->jobs[i]->end_ns == at_ns && !unnoticed(e, e->jobs[i])) {
            return false;
        }
    }
    e->now_ns = at_ns;
    for (; j->end_ns == at_ns; j = ddr_first(e, e->n_jobs)) {
        if (vexec_kernel_ends(e, j->exec)) {
            vexec_kernel_begin(e, j->exec);
        }
    }
    ddr_settle(e);
    return true;
}

/* Moves a launch that is alone at full speed over what ends before that instant. Its kernels end
 * after whole numbers of ns. */
static void jump(struct engine *e, struct vexec *v, int64_t before_ns)
{
    struct job *j = &v->job;
    SIM_ASSERT(j->rate == 1.0 && j->speed == 1.0 && j->end_ns < before_ns && e->n_jobs == 1);
    int64_t from_ns = j->end_ns + v->compute_ns;
    if (vexec_pass_alone(e, v, before_ns) || (from_ns >= before_ns && step(e))) {
        return;
    }
    ddr_report(e, 1, j->end_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
    v->compute_ns = 0;
    vexec_book(e, v, v->kernels, v->k, 1);
    vexec_next(v);
    int64_t until_ns = from_ns + vexec_jump(e, v, before_ns - 1 - from_ns);
    if (v->op == v->l->pub->op_end) {
        j->end_ns = until_ns;
        e->now_ns = until_ns;
        e->ddr_since_ns = until_ns;
        return;
    }
    e->now_ns = until_ns;
    e->ddr_since_ns = until_ns;
    vexec_kernel_begin(e, v);
    ddr_settle(e);
}

/* Its end is known, and nobody asks where it is before. */
static void leave_behind(struct engine *e, struct vexec *v)
{
    e->behind = v;
    v->behind_end_ns = v->job.end_ns;
    v->job.end_ns += v->compute_ns + vexec_rest_ns(v);
}

void advance_behind(struct engine *e)
{
    struct vexec *v = e->behind;
    int64_t now_ns = e->now_ns;
    e->behind = NULL;
    v->job.end_ns = v->behind_end_ns;
    while (v->job.end_ns <= now_ns && v->op < v->l->pub->op_end) {
        jump(e, v, now_ns + 1);
    }
    e->now_ns = now_ns;
}

/* ---- two launches ---- */

static inline bool is_plain(const struct job *j)
{
    return j->exec == NULL || (j->share_frac == 1.0 && j->speed == 1.0);
}

/* A piece of work of a launch, while the other job does its present one. */
struct piece {
    const struct kernel_run *kernels; /* it is of kernel k of them, */
    uint32_t k;
    bool ends; /* and the last of it */
    double work_ns, demand;
    struct ddr_sums sums;
    double rate[2]; /* its own, the other's */
    int64_t lasts_ns;
    uint64_t passed; /* times that it was over, not reported yet */
};

static inline int64_t duration(double ns)
{
    return ns < (double)TIME_LAST_NS ? units_ceil(ns) : TIME_LAST_NS + 1;
}

static void piece_fill(struct engine *e, const struct vexec *v, const struct job *other,
                       bool computes, struct piece *x)
{
    const struct kernel_cost *c = vexec_kernel(v->kernels, v->k);
    double demand = computes ? 0.0 : vexec_demand(v->kernels, v->k);
    uint32_t i = &v->job == e->jobs[1];
    const double both[] = {i == 0 ? demand : other->demand_bytes_per_s,
                           i == 1 ? demand : other->demand_bytes_per_s};
    const struct ddr_pair *p = ddr_pair(e, ddr_pair_devices(e), both);
    double work_ns = (double)(computes ? c->t_ns - c->load_ns : c->load_ns);
    *x = (struct piece){.kernels = v->kernels,
                        .k = v->k,
                        .ends = computes || c->t_ns == c->load_ns,
                        .work_ns = work_ns,
                        .demand = demand,
                        .sums = p->sums,
                        .rate = {p->rate[i], p->rate[1 - i]},
                        .lasts_ns = duration(work_ns / p->rate[i]),
                        .passed = 0};
}

static inline void piece_over(struct engine *e, struct vexec *v, const struct piece *x)
{
    ddr_report(e, x->passed, x->lasts_ns, x->sums.demand, x->sums.share);
    if (x->ends) {
        vexec_book(e, v, x->kernels, x->k, x->passed);
    }
}

/* The piece that is in progress now, since now. */
static inline void piece_in_progress(struct engine *e, struct vexec *v, const struct piece *x)
{
    struct job *j = &v->job;
    e->ddr_since_ns = e->now_ns;
    e->ddr_demand = x->sums.demand;
    e->ddr_share = x->sums.share;
    v->compute_ns = x->ends ? 0 : vexec_kernel(x->kernels, x->k)->t_ns - (int64_t)x->work_ns;
    j->left_ns = x->work_ns;
    j->demand_bytes_per_s = x->demand;
    j->rate = x->rate[0];
    j->updated_ns = e->now_ns;
    j->end_ns = e->now_ns + x->lasts_ns;
}

/* Is it sure that a job ends after that instant? */
static inline bool ends_after(const struct job *j, int64_t at_ns)
{
    return j->left_ns > (double)(at_ns - j->updated_ns) * j->rate + 1.0;
}

/* The same steps as above, of one of two jobs at full speed. It goes over what ends before that
 * instant, and surely before the other's piece of work. Each piece is looked up once. */
static void step_beside(struct engine *e, struct vexec *v, struct job *other, int64_t before_ns)
{
    struct job *j = &v->job;
    if (!ends_after(other, j->end_ns) || !unnoticed(e, j)) {
        return;
    }
    struct piece began = {.kernels = v->kernels,
                          .k = v->k,
                          .ends = v->compute_ns == 0,
                          .sums = {e->ddr_demand, e->ddr_share, 0.0},
                          .lasts_ns = j->end_ns - e->ddr_since_ns};
    struct piece known[OP_KIND_COUNT * 4]; /* by op, is it its last kernel, and phase */
    uint32_t is_known = 0;
    struct piece *x = &began;
    int64_t end_ns = j->end_ns;
    const bool passes = unawaited(e, v); /* as long as only kernels end */
    do {
        x->passed++;
        bool computes = !x->ends;
        if (!computes) {
            vexec_next(v);
            v->kernel_begin_ns = end_ns;
        }
        uint32_t at = v->kind * 4 + (v->k + 1 == v->kernels->n) * 2u + computes;
        x = &known[at];
        if ((is_known >> at & 1) == 0) {
            is_known |= 1u << at;
            piece_fill(e, v, other, computes, x);
        }
        if (x->rate[1] != other->rate) {
            e->now_ns = end_ns;
            job_progress(e, other);
            other->rate = x->rate[1];
        }
        end_ns += x->lasts_ns;
    } while (end_ns < before_ns && ends_after(other, end_ns) &&
             (!x->ends || (passes && !vexec_at_last(v))));
    e->now_ns = end_ns - x->lasts_ns;
    piece_in_progress(e, v, x);
    other->end_ns = other->updated_ns + duration(other->left_ns / other->rate);
    piece_over(e, v, &began);
    for (x = known; is_known > 0; x++, is_known >>= 1) {
        if ((is_known & 1) != 0) {
            piece_over(e, v, x);
        }
    }
}

void advance(struct engine *e, int64_t before_ns)
{
    SIM_ASSERT(!e->ddr_dirty);
    struct job *first;
    while (e->may_advance && e->behind == NULL && (first = ddr_first(e, e->n_jobs)) != NULL &&
           first->end_ns < before_ns) {
        bool alone = e->n_jobs == 1 && e->may_jump && first->exec != NULL && first->rate == 1.0;
        if (alone && kernel_unnoticed(e, first->exec)) {
            leave_behind(e, first->exec);
            continue;
        }
        if (e->n_jobs == 2 && e->may_jump && first->exec != NULL && is_plain(e->jobs[0]) &&
            is_plain(e->jobs[1])) {
            step_beside(e, first->exec, e->jobs[first == e->jobs[0]], before_ns);
        }
        if (ddr_first(e, e->n_jobs)->end_ns >= before_ns || !step(e)) {
            break;
        }
    }
    core_advance(&e->core, e->now_ns);
}
