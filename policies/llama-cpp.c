/* llama-cpp: llama.cpp on the CPU as the two Agent.xpu papers model it (clauses.md C.1).
 *
 *   server  continuous batching of the public server (agent-xpu-v2): requests wait in arrival order
 *           for one of a few slots; a step is one token for every generating slot, then prompt
 *           tokens slot by slot, by number, up to n_batch; it runs in micro-batches of n_ubatch
 *           tokens. free_slot and leave_in_order follow the server's loop: after a burst at a new
 *           server the newest request is served first
 *   ps      no batching (agent-xpu-v1): up to `slots` requests share the CPU's time
 *
 * No classes in either. Generating slots are in a step's last micro-batch, because the server
 * returns a step's tokens at its end; a prompt that is complete in an earlier micro-batch answers
 * too early by that time. If KV is full, the last request that entered a slot starts over (the
 * server refuses all).
 */
#include "policies/common/iteration.h"
#include "policies/common/reqq.h"
#include "policies/common/share.h"

enum {
    PARAM_FORM,
    PARAM_SLOTS,
    PARAM_N_BATCH,
    PARAM_N_UBATCH,
    PARAM_CONT_BATCHING,
    PARAM_SIMILARITY,
    PARAM_QUANTUM,
    PARAM_DEVICE
};
enum { FORM_SERVER, FORM_PS };

static const char *const forms[] = {"server", "ps", NULL};
static const struct policy_param params[] = {
    [PARAM_FORM] =
        POLICY_CHOICE("form", FORM_SERVER, forms, "server (agent-xpu-v2) or ps (agent-xpu-v1 8.1)"),
    [PARAM_SLOTS] =
        POLICY_INT("slots", 4, 1, MACHINE_MAX_SHARED,
                   "requests in service at once: the server's automatic default; C.1 [S] for ps"),
    [PARAM_N_BATCH] = POLICY_INT("n_batch", 2048, 1, 1e6, "tokens of a step; default of llama.cpp"),
    [PARAM_N_UBATCH] =
        POLICY_INT("n_ubatch", 512, 1, 1e6, "tokens of a micro-batch; default of llama.cpp"),
    [PARAM_CONT_BATCHING] =
        POLICY_BOOL("cont_batching", 1,
                    "prompts join the steps of generating slots; off: they wait until "
                    "no slot generates (--no-cont-batching)"),
    [PARAM_SIMILARITY] = POLICY_NUMBER("similarity", 0.1, 0, 1,
                                       "share of a prompt that a free slot must hold to be "
                                       "chosen for it (--slot-prompt-similarity)"),
    [PARAM_QUANTUM] =
        POLICY_NUMBER("quantum_ms", 5, 0, 1e6,
                      "ps on a serial device: turn, ms, rounded up to whole ops (ours); 0: one op"),
    [PARAM_DEVICE] = POLICY_CHOICE("device", 3, place_choices, "device that runs everything"),
    {.name = NULL},
};

/* A request's slot, and its work in the present step. */
struct llama_slot {
    struct reqq_node node;
    uint32_t prompt_tokens; /* prompt tokens left in this step */
    bool generates;
    uint32_t number;  /* slot number, from 1; 0: none */
    uint64_t entered; /* n_entered at that time */
    bool deferred;    /* found no free slot at an earlier step */
};

/* The history of a slot, which decides the next request in it. */
struct llama_past {
    uint64_t left; /* n_left at that time; 0: unused so far */
    bool left_now; /* at the end of this step */
    bool holds;    /* still has KV of `session`, until any slot is entered */
    uint32_t session;
};

struct llama {
    struct iteration it; /* `server`; an iteration is a micro-batch */
    struct share ps;     /* `ps` */
    struct reqq waiting; /* `server`: requests that wait for a slot */
    struct reqq slots;   /* requests in slots, by number */
    struct llama_past past[MACHINE_MAX_SHARED];
    uint64_t n_entered, n_left;
    bool full; /* a request was evicted and none has ended since: no slot may be entered */
};

static struct llama_slot *slot_of(const struct request *r)
{
    return r->own;
}

/* A later turn gets the free slot that has KV of the previous turn, if that is enough of the
 * prompt. Otherwise a request gets the slot that was left first, or the last unused one. */
static uint32_t free_slot(struct sched *s, const struct llama *l, const struct request *r)
{
    uint32_t n = (uint32_t)param_int(s, PARAM_SLOTS);
    bool taken[MACHINE_MAX_SHARED] = {false};
    for (const struct request *q = l->slots.head; q != NULL; q = reqq_next(q)) {
        taken[slot_of(q)->number - 1] = true;
    }
    bool similar = r->reused_tokens > param_number(s, PARAM_SIMILARITY) * r->input_tokens;
    uint32_t best = 0;
    for (uint32_t i = 1; i <= n; i++) {
        const struct llama_past *past = &l->past[i - 1];
        if (taken[i - 1]) {
            continue;
        }
        if (similar && past->holds && past->session == r->session_id) {
            return i;
        }
        if (best == 0 || past->left <= l->past[best - 1].left) {
            best = i;
        }
    }
    return best;
}

static void enter_slot(struct llama *l, const struct request *r, uint32_t number)
{
    const struct request *before = l->slots.tail;
    while (before != NULL && slot_of(before)->number > number) {
        before = reqq_prev(before);
    }
    *slot_of(r) = (struct llama_slot){.number = number, .entered = ++l->n_entered};
    reqq_insert_after(&l->slots, before, r);
    for (uint32_t i = 0; i < MACHINE_MAX_SHARED; i++) {
        l->past[i].holds = false; /* KV of idle slots moves to the cache in main memory */
    }
}

static void leave_slot(struct llama *l, const struct request *r)
{
    reqq_remove(r);
    if (slot_of(r)->number > 0) {
        l->past[slot_of(r)->number - 1] = (struct llama_past){
            .left_now = true,
            .holds = r->state == REQUEST_STATE_FINISHED,
            .session = r->session_id,
        };
        *slot_of(r) = (struct llama_slot){0};
    }
}

/* Most tokens of a step, which the server limits to the size of its KV cache. */
static uint32_t step_most(struct sched *s)
{
    uint64_t n_batch = (uint64_t)param_int(s, PARAM_N_BATCH);
    uint64_t cells = sched_kv_capacity_tokens(s);
    return (uint32_t)(n_batch < cells ? n_batch : cells);
}

static bool is_ps(const struct sched *s)
{
    return param_int(s, PARAM_FORM) == FORM_PS;
}

static void server_joins(struct sched *s, const struct request *r)
{
    struct llama *l = s->state;
    reqq_push(&l->waiting, r);
}

static void server_leaves(struct sched *s, const struct request *r)
{
    struct llama *l = s->state;
    leave_slot(l, r);
    l->full = false;
}

/* Remaining rows of the present step, and prompt tokens among them. */
static uint32_t step_left(const struct llama *l, uint32_t *prompt_tokens)
{
    uint32_t generating = 0;
    *prompt_tokens = 0;
    for (const struct request *r = l->slots.head; r != NULL; r = reqq_next(r)) {
        *prompt_tokens += slot_of(r)->prompt_tokens;
        generating += slot_of(r)->generates ? 1 : 0;
    }
    return *prompt_tokens + generating;
}

/* After a step, requests leave slots in the order of their numbers. Each departure moves the first
 * deferred request to the head of the server's queue, so several end up in reverse order. */
static void leave_in_order(struct llama *l, uint32_t n_slots)
{
    const struct request *last = NULL; /* last one moved */
    bool more = true;
    for (uint32_t i = 0; i < n_slots; i++) {
        if (!l->past[i].left_now) {
            continue;
        }
        l->past[i].left_now = false;
        l->past[i].left = ++l->n_left;
        const struct request *next = last == NULL ? l->waiting.head : reqq_next(last);
        more = more && next != NULL && slot_of(next)->deferred;
        last = more ? next : last;
    }
    while (last != NULL && last != l->waiting.head) {
        const struct request *first = reqq_pop(&l->waiting);
        reqq_insert_after(&l->waiting, last, first);
    }
}

static void fill_slots(struct sched *s, struct llama *l)
{
    uint32_t n_slots = (uint32_t)param_int(s, PARAM_SLOTS);
    leave_in_order(l, n_slots);
    while (!reqq_empty(&l->waiting) && l->slots.n < n_slots && !l->full) {
        const struct request *r = reqq_pop(&l->waiting);
        enter_slot(l, r, free_slot(s, l, r));
    }
    for (const struct request *r = l->waiting.head; r != NULL; r = reqq_next(r)) {
        slot_of(r)->deferred = true;
    }
}

/* Starts a step: one token of each generating slot, then prompts up to n_batch. */
static void step_begin(struct sched *s, struct llama *l)
{
    fill_slots(s, l);
    uint32_t n_batch = step_most(s);
    uint32_t used = 0;
    for (const struct request *r = l->slots.head; r != NULL; r = reqq_next(r)) {
        bool generates = r->state == REQUEST_STATE_DECODE;
        slot_of(r)->generates = generates;
        slot_of(r)->prompt_tokens = 0;
        used += generates ? 1 : 0;
    }
    if (used > 0 && !param_bool(s, PARAM_CONT_BATCHING)) {
        return;
    }
    for (const struct request *r = l->slots.head; r != NULL && used < n_batch; r = reqq_next(r)) {
        uint32_t left = request_prefill_left(r);
        uint32_t n = left < n_batch - used ? left : n_batch - used;
        slot_of(r)->prompt_tokens = n;
        used += n;
    }
}

/* Composes the next micro-batch: prompt tokens slot by slot, and in the last one also generating
 * slots. */
static void server_fill(struct sched *s, struct llama *l)
{
    uint32_t most = (uint32_t)param_int(s, PARAM_N_UBATCH);
    uint32_t prompt_tokens;
    bool last = step_left(l, &prompt_tokens) <= most || prompt_tokens == 0;
    batch_clear(&l->it.batch);
    for (const struct request *r = l->slots.head; r != NULL; r = reqq_next(r)) {
        struct llama_slot *slot = slot_of(r);
        uint32_t room = most - l->it.batch.tokens;
        uint32_t n = slot->prompt_tokens < room ? slot->prompt_tokens : room;
        if (n > 0) {
            batch_add(&l->it.batch, r, SEGMENT_PREFILL, n);
        } else if (slot->generates && last) {
            batch_add(&l->it.batch, r, SEGMENT_DECODE, 1);
        }
        if (l->it.batch.tokens == most) {
            return;
        }
    }
}

/* Tokens of a prefix that was cached since the step began need not be computed. */
static void step_shrink(struct llama *l)
{
    for (const struct request *r = l->slots.head; r != NULL; r = reqq_next(r)) {
        uint32_t left = request_prefill_left(r);
        struct llama_slot *slot = slot_of(r);
        slot->prompt_tokens = slot->prompt_tokens < left ? slot->prompt_tokens : left;
    }
}

static void server_compose(struct sched *s)
{
    struct llama *l = s->state;
    uint32_t prompt_tokens;
    step_shrink(l);
    if (step_left(l, &prompt_tokens) == 0) {
        step_begin(s, l);
    }
    server_fill(s, l);
}

/* Removes the batch from the remaining work of the step. */
static void server_formed(struct sched *s)
{
    struct llama *l = s->state;
    for (uint32_t i = 0; i < l->it.batch.n; i++) {
        const struct segment *seg = &l->it.batch.segments[i];
        struct llama_slot *slot = slot_of(seg->request);
        if (seg->role == SEGMENT_DECODE) {
            slot->generates = false;
        } else {
            slot->prompt_tokens -= seg->n_tokens;
        }
    }
}

/* Evicts the request that entered a slot last. It may enter again after another one has ended.
 * False if only one is left. */
static bool server_make_room(struct sched *s)
{
    struct llama *l = s->state;
    if (l->slots.n < 2) {
        return false;
    }
    const struct request *last = l->slots.head;
    for (const struct request *r = l->slots.head; r != NULL; r = reqq_next(r)) {
        last = slot_of(r)->entered > slot_of(last)->entered ? r : last;
    }
    if (last->kv_tokens > 0) {
        (void)sched_kv_move(s, kv_of(last), KV_NOWHERE);
    }
    leave_slot(l, last);
    reqq_push_front(&l->waiting, last);
    l->full = true;
    server_compose(s);
    return true;
}

static const struct iteration_rules server = {.joins = server_joins,
                                              .leaves = server_leaves,
                                              .compose = server_compose,
                                              .formed = server_formed,
                                              .make_room = server_make_room};

/* ---- both modes ---- */

static int llama_init(struct sched *s)
{
    struct llama *l = s->state;
    int rc = iteration_init(s, &server, param_int(s, PARAM_DEVICE));
    if (rc == 0) {
        share_init(s, &l->ps, l->it.device, (uint32_t)param_int(s, PARAM_SLOTS),
                   units_ns_from_ms(param_number(s, PARAM_QUANTUM)), 1.0);
    }
    return rc;
}

static void llama_request_arrived(struct sched *s, const struct request *r)
{
    struct llama *l = s->state;
    if (is_ps(s)) {
        reqq_push(&l->ps.waiting, r);
    } else {
        iteration_request_arrived(s, r);
    }
}

static void llama_request_cancelled(struct sched *s, const struct request *r)
{
    struct llama *l = s->state;
    if (is_ps(s)) {
        share_request_cancelled(&l->ps, r);
    } else {
        iteration_request_cancelled(s, r);
    }
}

static void llama_launch_done(struct sched *s, const struct launch *launch)
{
    struct llama *l = s->state;
    if (is_ps(s)) {
        share_launch_done(&l->ps, launch);
    } else {
        iteration_launch_done(s, launch);
    }
}

static void llama_pass_done(struct sched *s, const struct pass *p)
{
    struct llama *l = s->state;
    if (is_ps(s)) {
        share_pass_done(&l->ps, p);
    } else {
        iteration_pass_done(s, p);
    }
}

static void llama_schedule(struct sched *s)
{
    struct llama *l = s->state;
    if (is_ps(s)) {
        share_schedule(s, &l->ps);
    } else {
        iteration_schedule(s);
    }
}

const struct policy_ops policy_llama_cpp_ops = {
    .name = "llama-cpp",
    .summary = "llama.cpp on the CPU: server with slots, or processor sharing (llama.cpp; "
               "agent-xpu-v1 8.1)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_SPANS | CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct llama),
    .request_state_size_bytes = sizeof(struct llama_slot),
    .params = params,
    .init = llama_init,
    .exit = iteration_exit,
    .request_arrived = llama_request_arrived,
    .launch_done = llama_launch_done,
    .pass_done = llama_pass_done,
    .request_cancelled = llama_request_cancelled,
    .schedule = llama_schedule,
};
