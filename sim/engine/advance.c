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

/* Is the end of the present kernel no more than that? */
static inline bool kernel_unnoticed(const struct engine *e, const struct vexec *v)
{
    return !vexec_at_last(v) &&
           (!v->l->pub->stop_requested ||
            (v->l->pub->yield == YIELD_PASS && v->in_flight_left == 0)) &&
           (e->frames.phase != FRAMES_WAITING || e->frames.job.device != v->job.device);
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

static inline bool is_plain(const struct engine *e, const struct job *j)
{
    return j->exec == NULL || (j->share_frac == 1.0 && j->speed == 1.0 && !e->kernels_seen);
}

/* The kernel computes, or the next one begins, at the rate of its pair. Its place in the order of
 * one instant stays: nobody else is on its device. */
static inline void next_of_pair(struct engine *e, struct vexec *v)
{
    struct job *j = &v->job;
    j->left_ns = (double)v->compute_ns;
    j->demand_bytes_per_s = 0.0;
    if (v->compute_ns > 0) {
        v->compute_ns = 0;
    } else {
        vexec_book(e, v, v->kernels, v->k, 1);
        vexec_next(v);
        v->kernel_begin_ns = e->now_ns;
        const struct kernel_cost *c = vexec_kernel(v->kernels, v->k);
        v->compute_ns = c->t_ns - c->load_ns;
        j->left_ns = (double)c->load_ns;
        j->demand_bytes_per_s = vexec_demand(c);
    }
    j->updated_ns = e->now_ns;
}

static inline void set_end(struct engine *e, struct job *j, double rate)
{
    j->rate = rate;
    j->end_ns = engine_after(e, j->left_ns / rate);
}

/* The same steps as above, of two jobs at full speed: most boundaries are of two launches, or of
 * one and the loader. False: both end at once, before that instant. */
static bool step_pair(struct engine *e, int64_t before_ns)
{
    struct job *x = e->jobs[0];
    struct job *y = e->jobs[1];
    double demand[2] = {x->demand_bytes_per_s, y->demand_bytes_per_s};
    const uint64_t devices = ddr_pair_devices(e);
    const struct ddr_pair *p = ddr_pair(e, devices, demand);
    for (;;) {
        const uint32_t i = y->end_ns < x->end_ns;
        struct job *first = i == 1 ? y : x;
        struct job *other = i == 1 ? x : y;
        if (first->end_ns >= before_ns || !unnoticed(e, first) || other->end_ns == first->end_ns) {
            break;
        }
        e->now_ns = first->end_ns;
        ddr_report(e, 1, e->now_ns - e->ddr_since_ns, p->sums.demand, p->sums.share);
        e->ddr_since_ns = e->now_ns;
        next_of_pair(e, first->exec);
        if (first->demand_bytes_per_s != demand[i]) {
            demand[i] = first->demand_bytes_per_s;
            p = ddr_pair(e, devices, demand);
        }
        set_end(e, first, p->rate[i]);
        double rate = p->rate[1 - i];
        if (rate != other->rate) {
            job_progress(e, other);
            set_end(e, other, rate);
        }
    }
    e->ddr_demand = p->sums.demand;
    e->ddr_share = p->sums.share;
    return x->end_ns != y->end_ns || x->end_ns >= before_ns;
}

void advance(struct engine *e, int64_t before_ns)
{
    SIM_ASSERT(!e->ddr_dirty);
    const struct job *first;
    while (e->may_advance && e->behind == NULL && (first = ddr_first(e, e->n_jobs)) != NULL &&
           first->end_ns < before_ns) {
        bool alone = e->n_jobs == 1 && e->may_jump && first->exec != NULL && first->rate == 1.0;
        if (alone && kernel_unnoticed(e, first->exec)) {
            leave_behind(e, first->exec);
        } else if (e->n_jobs == 2 && is_plain(e, e->jobs[0]) && is_plain(e, e->jobs[1]) &&
                   step_pair(e, before_ns)) {
            break;
        } else if (!step(e)) {
            break;
        }
    }
    core_advance(&e->core, e->now_ns);
}
