/* The one function that moves jobs through time.
 *
 * The queue has the events that a policy can see. Between two of them only kernels end, which
 * concerns nothing but their launches. advance() processes these ends for all running launches, and
 * stops before the first that ends its launch or must yield. For an isolated launch at full speed
 * it uses a closed form. `sim.collapse=false` makes every end an instant of the run instead, with
 * the same results. */
#include "sim/engine/ddr.h"
#include "sim/engine/vexec.h"

/* Whether neither a stop nor a frame waits for a kernel of the launch to end. */
static inline bool unawaited(const struct engine *e, const struct vexec *v)
{
    return (!v->l->pub->stop_requested ||
            (v->l->pub->yield == YIELD_PASS && v->in_flight_left == 0)) &&
           (e->frames.phase != FRAMES_WAITING || e->frames.job.device != v->job.device);
}

/* Whether the end of the present kernel concerns only the launch. */
static inline bool kernel_unnoticed(const struct engine *e, const struct vexec *v)
{
    return !vexec_at_last(v) && unawaited(e, v);
}

/* Whether the end of a job's present piece of work concerns only its launch. */
static inline bool unnoticed(const struct engine *e, const struct job *j)
{
    return j->exec != NULL && (j->exec->compute_ns > 0 || kernel_unnoticed(e, j->exec));
}

/* Processes the next ends of kernels, all at one instant. Returns false, without effect, if one
 * concerns more than its launch. */
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

/* Moves an isolated launch at full speed over kernels that end before before_ns. Isolated kernels
 * last whole numbers of ns. */
static void jump(struct engine *e, struct vexec *v, int64_t before_ns)
{
    struct job *j = &v->job;
    SIM_ASSERT(j->rate == 1.0 && j->speed == 1.0 && j->end_ns < before_ns && e->n_jobs == 1);
    int64_t from_ns = j->end_ns + v->compute_ns;
    if (from_ns >= before_ns && step(e)) {
        return;
    }
    ddr_report(e, 1, j->end_ns - e->ddr_since_ns, e->ddr_demand, e->ddr_share);
    v->compute_ns = 0;
    vexec_book_present(e, v);
    vexec_next(v);
    int64_t until_ns = from_ns + vexec_jump(v, before_ns - 1 - from_ns);
    e->now_ns = e->ddr_since_ns = until_ns;
    if (v->op == v->l->pub->op_end) {
        j->end_ns = until_ns;
    } else {
        vexec_kernel_begin(e, v);
        ddr_settle(e);
    }
}

/* ---- all jobs ---- */

static inline bool at_full_speed(const struct job *j)
{
    return j->exec == NULL || (j->share_frac == 1.0 && j->speed == 1.0);
}

/* Whether there are two jobs whose present pieces end at different instants, both at full speed. */
static inline bool is_pair(const struct engine *e)
{
    return e->n_jobs == 2 && !e->kernels_seen && at_full_speed(e->jobs[0]) &&
           at_full_speed(e->jobs[1]) && e->jobs[0]->end_ns != e->jobs[1]->end_ns;
}

void advance(struct engine *e, int64_t before_ns)
{
    SIM_ASSERT(!e->ddr_dirty);
    struct job *first;
    while (e->core.setup->collapse && (first = ddr_first(e, e->n_jobs)) != NULL &&
           first->end_ns < before_ns && unnoticed(e, first)) {
        bool alone = e->n_jobs == 1 && e->may_jump && first->exec != NULL && first->rate == 1.0;
        if (alone && kernel_unnoticed(e, first->exec)) {
            jump(e, first->exec, before_ns);
        } else if (is_pair(e)) {
            struct job *other = e->jobs[first == e->jobs[0]];
            corun_step(e, first->exec, other, e->may_jump && unawaited(e, first->exec), before_ns);
        } else if (!step(e)) {
            break;
        }
    }
    core_advance(&e->core, e->now_ns);
}
