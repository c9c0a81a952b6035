/* Where a running pass stops for a more urgent request, and which stopped one runs next. */
#include "policies/common/blocks.h"
#include "policies/common/iter.h"
#include "policies/common/progress.h"

/* KV tokens that the urgent request finds if the pass stops: free ones, those of waiting requests
 * behind it in memory order, and those that a stopped pass loses. */
static uint64_t room_for(struct sched *s, const struct pass *p, const struct request *top)
{
    const struct iter *it = s->state;
    uint64_t room = sched_kv_free_tokens(s);
    double place = order_node(&it->elders, top)->key;
    for (const struct request *r = order_first(&it->holders);
         r != NULL && order_node(&it->elders, r)->key > place; r = order_next(&it->holders, r)) {
        uint64_t states = sched_kv_state_tokens(s, r->model) - r->kv_state_tokens;
        room += order_has(&it->ready, r) ? r->kv_tokens + states : 0;
    }
    uint64_t states = sched_kv_state_tokens(s, p->shape.model);
    for (uint32_t i = 0; i < p->n_segments && it->it.loses; i++) {
        room += states + p->segments[i].n_tokens + p->segments[i].request->kv_tokens;
    }
    return room;
}

/* A stop must give the urgent request memory. If it destroys work, the members must not have lost
 * ITER_MAX_LOSSES passes. */
static bool worth_stopping(struct sched *s, const struct pass *p, const struct request *top)
{
    const struct iter *it = s->state;
    SIM_ASSERT(order_has(&it->ready, top) && p->state == PASS_STATE_RUNNING);
    uint32_t left = request_prefill_left(top);
    uint32_t budget = (uint32_t)param_int(s, ITER_TOKEN_BUDGET);
    uint32_t later = left > budget ? left - budget : 0;
    uint64_t need = top->kv_swapped ? top->kv_tokens + top->kv_state_tokens
                    : left == 0     ? 1
                                    : blocks_prompt_tokens(s, top) - later;
    bool fits = need <= room_for(s, p, top);
    for (uint32_t i = 0; i < p->n_segments && param_int(s, ITER_KV) != ITER_KV_CHECKPOINT; i++) {
        const struct iter_request *own = p->segments[i].request->own;
        fits = fits && own->losses < ITER_MAX_LOSSES;
    }
    return fits;
}

/* The least present key of a pass's members. O(members) if work done changes keys. */
static double pass_key(struct sched *s, const struct iter *it, const struct iteration_pass *ip)
{
    const struct pass *p = ip->pass;
    double per_ns = it->order->key_per_done_ns;
    /* Each member has done the same fraction of its part as the pass of the whole. */
    SIM_ASSERT(p != NULL);
    int64_t all_ns = per_ns != 0.0 ? progress_ops_ns(s, p, p->n_ops, it->it.device) : 0;
    if (all_ns == 0) {
        return ip->key;
    }
    int64_t done_ns = ip->ran_ns;
    if (ip->launch != NULL && ip->launch->state == LAUNCH_STATE_RUNNING) {
        done_ns += s->now_ns - ip->launch->start_ns;
        done_ns = progress_bounded_ns(s, p, ip->launch->op_end, done_ns, it->it.device);
    }
    SIM_ASSERT(0 <= done_ns && done_ns <= all_ns); /* between none and all */
    double best = (double)INFINITY;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *seg = &p->segments[i];
        double own_ns = (double)progress_segment_ns(s, seg, it->it.device);
        double key = order_node(&it->ready, seg->request)->key +
                     per_ns * own_ns * ((double)done_ns / (double)all_ns);
        best = key < best ? key : best;
    }
    SIM_ASSERT(isfinite(best));
    return best;
}

void iter_launch(struct sched *s, struct launch_spec *spec)
{
    static const enum yield_point yields[] = {YIELD_PASS, YIELD_LAYER, YIELD_KERNEL, YIELD_KERNEL};
    SIM_ASSERT((size_t)param_int(s, ITER_PREEMPT) < sizeof yields / sizeof *yields);
    spec->yield = yields[param_int(s, ITER_PREEMPT)];
    spec->inflight = (uint32_t)param_int(s, ITER_INFLIGHT);
}

bool iter_outranked(struct sched *s, const struct request *top)
{
    const struct iter *it = s->state;
    SIM_ASSERT(it->it.running.launch != NULL && !it->it.running.finish);
    return top != NULL && order_node(&it->ready, top)->key < pass_key(s, it, &it->it.running) &&
           worth_stopping(s, it->it.running.pass, top);
}

void iter_stopped(struct sched *s, const struct launch *l)
{
    struct iter *it = s->state;
    struct iteration_pass *run = &it->it.running;
    const struct pass *p = run->pass;
    SIM_ASSERT(p == l->pass && run->launch == NULL); /* pass_key counts this launch once */
    if (it->order->key_per_done_ns != 0.0 && p->op < p->n_ops) {
        bool lost = l->outcome == LAUNCH_OUTCOME_RESET; /* the running kernel will be repeated */
        run->ran_ns += lost || l->start_ns == TIME_NEVER_NS ? 0 : l->end_ns - l->start_ns;
        run->ran_ns =
            progress_bounded_ns(s, p, lost ? p->op : p->op + 1, run->ran_ns, it->it.device);
        SIM_ASSERT(run->ran_ns >= 0);
    }
}

/* Chooses the paused pass with the least present key; among equals the last stopped. n_paused > 0.
 * If keys fall with work done (srpt), that is always the last stopped one. If they grow (llf), one
 * that was stopped earlier may have become more urgent. */
bool iter_resumes(struct sched *s, const struct request *top, uint32_t *which)
{
    const struct iter *it = s->state;
    SIM_ASSERT(it->it.n_paused > 0 && it->it.running.pass == NULL);
    *which = it->it.n_paused - 1;
    double least = pass_key(s, it, &it->it.paused[*which]);
    for (uint32_t i = *which; i-- > 0;) {
        double key = pass_key(s, it, &it->it.paused[i]);
        if (key < least) {
            *which = i;
            least = key;
        }
    }
    SIM_ASSERT(*which < it->it.n_paused);
    /* A tie goes to the paused pass, or it would alternate with new ones. */
    return top == NULL || order_node(&it->ready, top)->key >= least;
}
