/* recompute-preempt: scheme (a) of the Agent.xpu papers' motivation (clauses.md C.4 a), instant
 * preemption without context on one device. A reactive arrival kills the running proactive work at
 * its next kernel boundary (or at once). Killed requests lose their KV and start over later: prompt
 * and generated tokens are prefilled again. Proactive requests run only without reactive ones.
 * Arrival order inside each class. */
#include "policies/common/blocks.h"
#include "policies/common/iteration.h"
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
    struct iteration it;
    struct reqq waiting[REQUEST_CLASS_COUNT]; /* without KV, except cached prefixes */
    struct reqq running;                      /* in progress, all of one class */
    uint64_t short_epoch; /* epoch in which KV was last short: nothing is admitted then */
};

static void recompute_joins(struct sched *s, const struct request *r)
{
    struct recompute *c = s->state;
    reqq_insert_by_arrival(&c->waiting[r->cls], r); /* its weights may have been late */
}

/* Evicts all running requests, which wait again in arrival order. */
static void drop_running(struct sched *s, struct recompute *c)
{
    /* Insert by arrival, so that they precede later requests of their class. */
    while (!reqq_empty(&c->running)) {
        const struct request *r = reqq_pop(&c->running);
        if (r->kv_tokens > 0 && !param_bool(s, PARAM_KEEP)) {
            (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
        }
        reqq_insert_by_arrival(&c->waiting[r->cls], r);
    }
}

static void recompute_lost(struct sched *s, const struct request *r UNUSED)
{
    drop_running(s, s->state);
}

/* Whether a reactive request waits while proactive work runs. */
static bool recompute_kills(struct sched *s)
{
    const struct recompute *c = s->state;
    return !reqq_empty(&c->waiting[REQUEST_CLASS_REACTIVE]) && !reqq_empty(&c->running) &&
           c->running.head->cls == REQUEST_CLASS_PROACTIVE &&
           param_int(s, PARAM_KILL) != KILL_NEVER;
}

/* KV that an admission must leave to each running request, a few blocks, so that a victim is not
 * admitted again before another request ends. */
#define HEADROOM_TOKENS 64

static bool fits(struct sched *s, const struct recompute *c, const struct request *r)
{
    uint64_t need = blocks_prompt_tokens(s, r) + (uint64_t)HEADROOM_TOKENS * (c->running.n + 1);
    return c->running.n == 0 || need <= sched_kv_free_tokens(s);
}

/* Whole prompts one at a time, in arrival order; then decodes of all running requests together. */
static void fill(struct sched *s, struct recompute *c)
{
    enum request_class cls = REQUEST_CLASS_REACTIVE;
    if (reqq_empty(&c->running)) {
        cls = reqq_empty(&c->waiting[cls]) ? REQUEST_CLASS_PROACTIVE : cls;
    } else {
        cls = c->running.head->cls;
    }
    batch_clear(&c->it.batch);
    bool yields =
        cls == REQUEST_CLASS_PROACTIVE && !reqq_empty(&c->waiting[REQUEST_CLASS_REACTIVE]);
    uint32_t most = yields ? 0 : (uint32_t)param_int(s, PARAM_MAX_BATCH);
    /* A single request always fits. */
    most = c->short_epoch == s->epoch && most > 1 ? 1 : most;
    /* Up to the first request with a prompt to compute, whose KV must be reserved before the next
     * one is checked. */
    bool prompt = false;
    while (!prompt && !reqq_empty(&c->waiting[cls]) && c->running.n < most &&
           fits(s, c, c->waiting[cls].head)) {
        prompt = c->waiting[cls].head->state == REQUEST_STATE_QUEUED;
        reqq_push(&c->running, reqq_pop(&c->waiting[cls]));
    }
    for (const struct request *r = c->running.head; r != NULL; r = reqq_next(r)) {
        /* The scheme's figure has whole prompts (3.2), so a prompt is not mixed with decodes. */
        if (r->state == REQUEST_STATE_QUEUED) {
            batch_add_next(&c->it.batch, r, UINT32_MAX);
            return;
        }
    }
    for (const struct request *r = c->running.head; r != NULL; r = reqq_next(r)) {
        batch_add(&c->it.batch, r, SEGMENT_DECODE, 1);
    }
}

static void recompute_compose(struct sched *s)
{
    if (recompute_kills(s)) {
        drop_running(s, s->state);
    }
    fill(s, s->state);
}

/* Frees KV: the youngest of the batch starts over later; if only one runs, waiting requests are
 * evicted. */
static bool recompute_make_room(struct sched *s)
{
    struct recompute *c = s->state;
    const struct request *r = c->running.tail;
    c->short_epoch = s->epoch;
    /* The only running request must fit, so evict waiting requests, which may have a cached prefix,
     * or with keep_context what they had computed. */
    if (c->running.n < 2) {
        if (room_evict_last(s, &c->waiting[REQUEST_CLASS_PROACTIVE], NULL) == NULL &&
            room_evict_last(s, &c->waiting[REQUEST_CLASS_REACTIVE], NULL) == NULL) {
            return false;
        }
    } else {
        if (r->kv_tokens > 0) {
            (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
        }
        reqq_remove(r);
        reqq_push_front(&c->waiting[r->cls], r);
    }
    fill(s, c);
    return true;
}

static void recompute_launch(struct sched *s UNUSED, struct launch_spec *spec)
{
    spec->yield = YIELD_KERNEL; /* for reactive passes, too, which are never stopped */
}

static const struct iteration_rules rules = {.joins = recompute_joins,
                                             .leaves = reqq_leave,
                                             .compose = recompute_compose,
                                             .make_room = recompute_make_room,
                                             .launch = recompute_launch,
                                             .outranked = recompute_kills,
                                             .lost = recompute_lost};

static int recompute_init(struct sched *s)
{
    struct recompute *c = s->state;
    int rc = iteration_init(s, &rules, param_int(s, PARAM_DEVICE));
    bool reset = param_int(s, PARAM_KILL) == KILL_IMMEDIATE;
    c->it.loses = true;
    c->it.stop = (struct preempt_spec){.now = reset, .discard = reset};
    return rc == 0 && reset && !s->machine->devices[c->it.device].can_reset ? -EPERM : rc;
}

static const char *const ablations[] = {"kill=never", NULL};

const struct policy_ops policy_recompute_preempt_ops = {
    .name = "recompute-preempt",
    .summary = "instant preemption without context on one device (agent-xpu-v1 3.2, scheme a)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS | CAP_YIELD_KERNEL | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct recompute),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .ablations = ablations,
    .init = recompute_init,
    .exit = iteration_exit,
    ITERATION_HOOKS,
};
