/* preempt-and-resume: one device, first come first served in each class. A reactive request stops
 * the pass of a proactive one, which continues later from the operator at which it stopped.
 *
 * There are three things to get right:
 *   - Keep the pointer to the pass yourself, because request.pass is const.
 *   - Do nothing with a pass between its last launch_done and its pass_done.
 *   - Give up the KV of the stopped request when the other one finds none. */
#include <errno.h>

#include "policies/common/place.h"
#include "policies/common/reqq.h"

enum { PARAM_DEVICE };

static const struct policy_param params[] = {
    POLICY_CHOICE("device", 0, place_choices, "device that runs all; auto: the iGPU"),
    {.name = NULL},
};

struct state {
    struct reqq waiting[2]; /* by class */
    struct line {
        const struct request *request; /* that is being served, NULL: none */
        struct pass *pass;             /* its live one, running or stopped; NULL: none */
    } line[2];
    const struct launch *running; /* NULL: the device is free */
    uint8_t device;
};

static int init(struct sched *s)
{
    struct state *p = s->state;
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    p->device = (uint8_t)d;
    return d < 0 ? d : 0;
}

static void request_arrived(struct sched *s, const struct request *r)
{
    struct state *p = s->state;
    reqq_push(&p->waiting[r->cls], r);
}

static void launch_done(struct sched *s, const struct launch *l)
{
    struct state *p = s->state;
    (void)l; /* YIELDED or DONE: the device is free; the cursor of the pass says what is left */
    p->running = NULL;
}

static void pass_done(struct sched *s, const struct pass *done)
{
    struct state *p = s->state;
    const struct request *r = done->segments[0].request;
    p->line[r->cls].pass = NULL;
    if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
        p->line[r->cls].request = NULL;
    }
}

/* One that waits, or that is between two passes. */
static void request_cancelled(struct sched *s, const struct request *r)
{
    struct state *p = s->state;
    reqq_remove(r);
    if (p->line[r->cls].request == r) {
        p->line[r->cls].request = NULL;
    }
}

/* The proactive request gives back its KV and, if its pass is stopped, the pass with the memory
 * that it reserved. The request is then QUEUED, and all its tokens are prefilled again. Returns
 * false if this freed nothing. */
static bool give_up_proactive(struct sched *s, struct state *p)
{
    struct line *v = &p->line[REQUEST_CLASS_PROACTIVE];
    bool still = v->pass != NULL && v->pass->state == PASS_STATE_READY;
    bool gave = still && sched_pass_cancel(s, v->pass) == 0;
    if (gave) {
        v->pass = NULL;
        if (v->request->state == REQUEST_STATE_SHED) { /* its user had left it in the pass */
            v->request = NULL;
        }
    }
    bool holds = v->request != NULL && v->pass == NULL && v->request->kv_tokens > 0;
    return (holds && sched_kv_move(s, kv_of(v->request), KV_NOWHERE) == 0) || gave;
}

static int form(struct sched *s, const struct request *r, struct pass **out)
{
    struct segment segment = {.request = r, .role = SEGMENT_DECODE, .n_tokens = 1};
    if (r->state == REQUEST_STATE_QUEUED) {
        segment.role = SEGMENT_PREFILL;
        segment.n_tokens = request_prefill_left(r);
    }
    struct pass_spec spec = {.segments = &segment, .n_segments = 1};
    return sched_pass_form(s, &spec, out);
}

/* Puts work of a class on the free device. False: there is none, or none that can begin now. */
static bool serve(struct sched *s, struct state *p, enum request_class cls)
{
    struct line *v = &p->line[cls];
    if (v->request == NULL) {
        v->request = reqq_pop(&p->waiting[cls]);
    }
    if (v->request == NULL || (v->pass != NULL && v->pass->op == v->pass->n_ops)) {
        return false; /* idle, or the host samples: pass_done will come */
    }
    int rc = 0;
    if (v->pass == NULL) {
        rc = form(s, v->request, &v->pass);
        if (rc == -ENOMEM && cls == REQUEST_CLASS_REACTIVE && give_up_proactive(s, p)) {
            rc = form(s, v->request, &v->pass);
        }
    }
    if (rc != 0) {
        v->pass = NULL;
        return false;
    }
    /* From the cursor on: all of a new pass, what is left of a stopped one. */
    struct launch_spec rest = sched_launch_rest(s, v->pass, p->device, YIELD_OP);
    return sched_launch(s, &rest, &p->running) == 0;
}

static bool reactive_waits(const struct state *p)
{
    const struct line *v = &p->line[REQUEST_CLASS_REACTIVE];
    return v->request != NULL ? v->pass == NULL : !reqq_empty(&p->waiting[REQUEST_CLASS_REACTIVE]);
}

static void schedule(struct sched *s)
{
    struct state *p = s->state;
    if (p->running != NULL) {
        const struct request *r = p->running->pass->segments[0].request;
        if (r->cls == REQUEST_CLASS_PROACTIVE && !p->running->stop_requested && reactive_waits(p)) {
            (void)sched_preempt(s, p->running, (struct preempt_spec){0}); /* at its next op */
        }
        return;
    }
    if (!serve(s, p, REQUEST_CLASS_REACTIVE)) {
        (void)serve(s, p, REQUEST_CLASS_PROACTIVE);
    }
}

static const struct policy_ops ops = {
    .name = "preempt-and-resume",
    .summary = "recipe: a reactive request stops a proactive pass, which continues later",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS,
    .state_size_bytes = sizeof(struct state),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = init,
    .request_arrived = request_arrived,
    .launch_done = launch_done,
    .pass_done = pass_done,
    .request_cancelled = request_cancelled,
    .schedule = schedule,
};

const struct policy_ops *xpusim_policy(void)
{
    return &ops;
}
