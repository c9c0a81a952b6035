/* recompute-preempt: scheme (a) of the Agent.xpu papers' motivation (clauses.md C.4 a), instant
 * preemption without context on one device. A reactive arrival kills the proactive work in progress
 * at its next kernel boundary (or at once), and what was killed starts over later: its KV is gone,
 * prompt and generated tokens are prefilled again. Reactive requests run alone; proactive ones only
 * when there is no reactive one. Arrival order inside each class. */
#include <errno.h>

#include "policies/common/batch.h"
#include "policies/common/place.h"
#include "policies/common/reqq.h"
#include "policies/common/room.h"

enum { PARAM_DEVICE, PARAM_KILL, PARAM_KEEP, PARAM_MAX_BATCH };
enum { KILL_KERNEL, KILL_IMMEDIATE, KILL_NEVER };

static const char *const kills[] = {"kernel", "immediate", "never", NULL};
static const struct policy_param params[] = {
    [PARAM_DEVICE] = POLICY_CHOICE("device", 0, place_choices,
                                   "device that runs everything; auto: the iGPU (C.4)"),
    [PARAM_KILL] = POLICY_CHOICE(
        "kill", KILL_KERNEL, kills,
        "when proactive work stops for a reactive request: at the next kernel boundary "
        "(C.4 a), immediately (needs a device that can reset), never (ablation)"),
    [PARAM_KEEP] =
        POLICY_BOOL("keep_context", false,
                    "keep KV of finished passes across a kill (ablation; the scheme has none)"),
    [PARAM_MAX_BATCH] =
        POLICY_INT("max_batch", 1, 1, 1024,
                   "requests of one class that decode together; 1: unbatched (the scheme's "
                   "figure shows one task of each class)"),
    {.name = NULL},
};

struct recompute {
    struct reqq waiting[REQUEST_CLASS_COUNT]; /* without KV of their own */
    struct reqq running;                      /* of one class, in progress */
    struct batch batch;
    uint64_t short_epoch;        /* instant at which KV was last short: none is admitted then */
    struct pass *pass;           /* NULL: none */
    const struct launch *launch; /* NULL: stopped or ended */
    uint8_t device;
};

static int recompute_init(struct sched *s)
{
    struct recompute *c = s->state;
    int d = place_device(s->machine, param_int(s, PARAM_DEVICE));
    if (d < 0) {
        return d;
    }
    c->device = (uint8_t)d;
    bool reset = param_int(s, PARAM_KILL) == KILL_IMMEDIATE;
    return reset && !s->machine->devices[d].can_reset ? -EPERM : 0;
}

static void recompute_exit(struct sched *s)
{
    struct recompute *c = s->state;
    if (c != NULL) {
        batch_fini(&c->batch);
    }
}

static void recompute_request_arrived(struct sched *s, const struct request *r)
{
    struct recompute *c = s->state;
    reqq_push(&c->waiting[r->cls], r);
}

static void recompute_launch_done(struct sched *s, const struct launch *l)
{
    struct recompute *c = s->state;
    if (c->launch == l) {
        c->launch = NULL;
    }
}

static void recompute_pass_done(struct sched *s, const struct pass *p)
{
    struct recompute *c = s->state;
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct request *r = p->segments[i].request;
        if (r->state == REQUEST_STATE_FINISHED || r->state == REQUEST_STATE_SHED) {
            reqq_remove(r);
        }
    }
    c->pass = NULL;
}

static void recompute_request_cancelled(struct sched *s, const struct request *r)
{
    (void)s;
    reqq_remove(r);
}

/* All of the class that runs loses what it holds and waits again, in arrival order. */
static void drop_running(struct sched *s, struct recompute *c)
{
    /* From the head and inserted by arrival: they stand before those of their class that came
     * later, as if they had never begun. */
    while (!reqq_empty(&c->running)) {
        const struct request *r = reqq_pop(&c->running);
        if (r->state == REQUEST_STATE_SHED) {
            continue;
        }
        if (r->kv_tokens > 0 && !param_bool(s, PARAM_KEEP)) {
            (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
        }
        reqq_insert_by_arrival(&c->waiting[r->cls], r);
    }
}

/* A reactive request waits and proactive work is in progress. Returns whether the device is free.
 */
static bool kill_proactive(struct sched *s, struct recompute *c)
{
    bool immediate = param_int(s, PARAM_KILL) == KILL_IMMEDIATE;
    /* Asked once; the device stays its own until the launch has ended. */
    if (c->launch != NULL) {
        if (!c->launch->stop_requested) {
            (void)sched_preempt(s, c->launch,
                                (struct preempt_spec){.now = immediate, .discard = immediate});
        }
        return false;
    }
    if (c->pass != NULL && sched_pass_cancel(s, c->pass) != 0) {
        return false; /* its tokens are on their way out: the next instant decides */
    }
    c->pass = NULL;
    drop_running(s, c);
    return true;
}

/* KV that an admission must leave to each running request, so that the one that gave way is not
 * taken back before somebody has ended: a few blocks. */
#define HEADROOM_TOKENS 64

static bool fits(struct sched *s, const struct recompute *c, const struct request *r)
{
    uint64_t need = request_prefill_left(r) + (uint64_t)HEADROOM_TOKENS * (c->running.n + 1);
    return c->running.n == 0 || need <= sched_kv_free_tokens(s);
}

/* Whole prompts go one at a time, in arrival order; then all of the class decode together. */
static void fill(struct sched *s, struct recompute *c)
{
    enum request_class cls = REQUEST_CLASS_REACTIVE;
    if (reqq_empty(&c->running)) {
        cls = reqq_empty(&c->waiting[cls]) ? REQUEST_CLASS_PROACTIVE : cls;
    } else {
        cls = c->running.head->cls;
    }
    batch_clear(&c->batch);
    bool yields =
        cls == REQUEST_CLASS_PROACTIVE && !reqq_empty(&c->waiting[REQUEST_CLASS_REACTIVE]);
    uint32_t most = yields ? 0 : (uint32_t)param_int(s, PARAM_MAX_BATCH);
    /* One may always run: alone it fits. */
    most = c->short_epoch == s->epoch && most > 1 ? 1 : most;
    while (!reqq_empty(&c->waiting[cls]) && c->running.n < most &&
           fits(s, c, c->waiting[cls].head)) {
        reqq_push(&c->running, reqq_pop(&c->waiting[cls]));
    }
    for (const struct request *r = c->running.head; r != NULL; r = reqq_next(r)) {
        /* The scheme's figure has whole prompts (3.2): a prompt is not mixed with anybody's
         * decodes. */
        if (r->state == REQUEST_STATE_QUEUED) {
            batch_add_next(&c->batch, r, UINT32_MAX);
            return;
        }
    }
    for (const struct request *r = c->running.head; r != NULL; r = reqq_next(r)) {
        batch_add(&c->batch, r, SEGMENT_DECODE, 1);
    }
}

/* KV is full: the youngest of the batch starts over when there is room; with one left, the waiting
 * give up what they hold. */
static bool give_way(struct sched *s, struct recompute *c)
{
    const struct request *r = c->running.tail;
    c->short_epoch = s->epoch;
    /* The one that is left must fit: what those who wait still hold goes (a reused prefix; with
     * keep_context what they had). */
    if (c->running.n < 2) {
        return room_evict_last(s, &c->waiting[REQUEST_CLASS_PROACTIVE], NULL) != NULL ||
               room_evict_last(s, &c->waiting[REQUEST_CLASS_REACTIVE], NULL) != NULL;
    }
    if (r->kv_tokens > 0) {
        (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
    }
    reqq_remove(r);
    reqq_push_front(&c->waiting[r->cls], r);
    return true;
}

static void recompute_schedule(struct sched *s)
{
    struct recompute *c = s->state;
    bool reactive_waits = !reqq_empty(&c->waiting[REQUEST_CLASS_REACTIVE]);
    bool proactive_runs =
        !reqq_empty(&c->running) && c->running.head->cls == REQUEST_CLASS_PROACTIVE;
    if (reactive_waits && proactive_runs && param_int(s, PARAM_KILL) != KILL_NEVER &&
        !kill_proactive(s, c)) {
        return;
    }
    if (c->pass != NULL) {
        return;
    }
    fill(s, c);
    while (c->batch.n > 0 && batch_form(s, &c->batch, &c->pass) != 0) {
        c->pass = NULL;
        if (!give_way(s, c)) {
            return;
        }
        fill(s, c);
    }
    if (c->pass == NULL) {
        return;
    }
    /* Reactive passes yield at kernels too, but nobody asks them to. */
    struct launch_spec spec = sched_launch_rest(s, c->pass, c->device, YIELD_KERNEL);
    (void)sched_launch(s, &spec, &c->launch);
}

const struct policy_ops policy_recompute_preempt_ops = {
    .name = "recompute-preempt",
    .summary = "instant preemption without context on one device (agent-xpu-v1 3.2, scheme a)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS | CAP_YIELD_KERNEL | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct recompute),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = recompute_init,
    .exit = recompute_exit,
    .request_arrived = recompute_request_arrived,
    .launch_done = recompute_launch_done,
    .pass_done = recompute_pass_done,
    .request_cancelled = recompute_request_cancelled,
    .schedule = recompute_schedule,
};
