/* The practical rules of agent-xpu-v1 that only matter when something goes wrong (A.8): hung
 * kernels and extreme load. */
#include "policies/agent_xpu_v1/agent_xpu_v1.h"

void v1_wake_at(struct sched *s, struct v1 *v, int64_t at_ns)
{
    bool pending = v->timer_ns > s->now_ns;
    if (at_ns > s->now_ns && (!pending || at_ns < v->timer_ns)) {
        v->timer_ns = at_ns;
        (void)sched_set_timer(s, at_ns);
    }
}

/* Stops a kernel that takes far longer than annotated, as if it had failed, and kills it if the
 * device can be reset. Its work is dispatched again, on the other device if possible (token-level
 * ops). sim.hang_frac injects such faults. */
static void recover(struct sched *s, struct v1 *v, int device)
{
    struct v1_active *a = &v->active[device];
    a->hung = true;
    if (a->request != NULL) {
        struct v1_context *c = v1_context(a->request);
        if (c->avoid != 0) {
            return; /* once */
        }
        c->avoid = 1u << device;
        c->avoid_op = c->h.pass->op + 1;
    }
    (void)sched_note(s, "hung_kernels", 1);
    bool reset = s->machine->devices[device].can_reset;
    (void)sched_preempt(s, a->launch, (struct preempt_spec){.now = reset, .discard = reset});
}

void v1_watch(struct sched *s, struct v1 *v)
{
    int64_t least = units_ns_from_s(param_number(s, V1_HANG_S));
    if (least == 0) {
        return;
    }
    for (uint32_t d = 0; d < s->machine->n_devices; d++) {
        struct v1_active *a = &v->active[d];
        if (a->launch == NULL || a->hung) {
            continue;
        }
        int64_t limit = (int64_t)llround(param_number(s, V1_HANG_FACTOR) * (double)a->t_ns);
        int64_t at = a->launch->submit_ns + (limit > least ? limit : least);
        if (s->now_ns >= at) {
            recover(s, v, (int)d);
        } else if (v->hang_timer_ns[d] <= s->now_ns || at < v->hang_timer_ns[d]) {
            v->hang_timer_ns[d] = at;
            (void)sched_set_timer(s, at);
        }
    }
}

/* Extreme load: sheds the newest proactive request that has not begun (A.8). */
void v1_shed(struct sched *s, struct v1 *v)
{
    if (!param_bool(s, V1_SHED)) {
        return;
    }
    /* The wait of a new request if prefills are served sequentially, without decode, whose length
     * is unknown. */
    int64_t wait = 0;
    for (const struct request *r = v->contexts.head; r != NULL; r = reqq_next(r)) {
        wait += v1_etc_ns(s, v, r);
    }
    for (const struct request *r = v->be_queue.q.head; r != NULL; r = reqq_next(r)) {
        wait += v1_etc_ns(s, v, r);
    }
    int64_t most = units_ns_from_s(param_number(s, V1_SHED_WAIT_S));
    while (!reqq_empty(&v->be_queue.q) &&
           (v->be_queue.q.n > (uint32_t)param_int(s, V1_SHED_QUEUE) || wait > most)) {
        /* 6.5 sheds the tasks of lowest priority; of equal ones the newest has waited least. */
        const struct request *r = v->be_queue.q.tail;
        wait -= v1_etc_ns(s, v, r);
        if (sched_shed(s, r) != 0) {
            return;
        }
        v1_leave(v, r);
    }
}
