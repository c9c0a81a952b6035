/* orca: continuous batching at iteration level, scheme (c) of the Agent.xpu papers' motivation
 * (clauses.md C.4 c and E.1, Orca form). At each iteration boundary every running request gets one
 * token, then waiting requests are admitted in arrival order while there is a place and their
 * largest possible KV (prompt and output limit) can be reserved. A new request's whole prompt runs
 * in the same iteration. There are no chunks, classes or preemption. */
#include "policies/common/blocks.h"
#include "policies/common/iteration.h"
#include "policies/common/reqq.h"

enum { PARAM_DEVICE, PARAM_MAX_SEQS, PARAM_RESERVE };

static const struct policy_param params[] = {
    [PARAM_DEVICE] = POLICY_CHOICE("device", 0, place_choices,
                                   "device that runs everything; auto: the iGPU (C.4)"),
    [PARAM_MAX_SEQS] = POLICY_INT("max_num_seqs", 16, 1, 1e6,
                                  "requests in progress at once (clauses.md E.1: 16 on a SoC)"),
    [PARAM_RESERVE] =
        POLICY_BOOL("reserve", true,
                    "reserve the largest possible KV at admission (E.1); false: admit while the "
                    "prompt fits"),
    {.name = NULL},
};

struct orca {
    struct iteration it;
    struct reqq waiting, running; /* arrival order */
    uint64_t reserved_blocks;
};

static uint64_t most_kv_blocks(const struct sched *s, const struct request *r)
{
    /* The length of the answer is unknown, so Orca reserves for the longest that the request
     * allows. So KV cannot run out during a request. */
    uint64_t states = sched_kv_state_tokens(s, r->model);
    return blocks_of(s, states + r->input_tokens + r->max_output_tokens);
}

static void orca_joins(struct sched *s, const struct request *r)
{
    struct orca *o = s->state;
    reqq_push(&o->waiting, r);
}

static void orca_leaves(struct sched *s, const struct request *r)
{
    struct orca *o = s->state;
    if (reqq_of(r) == &o->running) {
        o->reserved_blocks -= most_kv_blocks(s, r);
    }
    reqq_remove(r);
}

/* A request whose reservation never fits runs by itself. */
static bool fits(struct sched *s, const struct orca *o, const struct request *r)
{
    if (o->running.n == 0) {
        return true;
    }
    if (!param_bool(s, PARAM_RESERVE)) {
        return blocks_prompt_tokens(s, r) + o->it.batch.tokens <= sched_kv_free_tokens(s);
    }
    uint64_t blocks = o->reserved_blocks + most_kv_blocks(s, r);
    return blocks * s->kv_block_tokens <= sched_kv_capacity_tokens(s);
}

static void orca_compose(struct sched *s)
{
    struct orca *o = s->state;
    batch_clear(&o->it.batch);
    for (const struct request *r = o->running.head; r != NULL; r = reqq_next(r)) {
        /* No token budget: selective batching joins prompts of any length with decodes. */
        batch_add_next(&o->it.batch, r, UINT32_MAX);
    }
    /* Admission is first come, first served: it ends at a request that does not fit. */
    while (!reqq_empty(&o->waiting) && o->running.n < (uint64_t)param_int(s, PARAM_MAX_SEQS) &&
           batch_takes(&o->it.batch, o->waiting.head) && fits(s, o, o->waiting.head)) {
        const struct request *r = reqq_pop(&o->waiting);
        reqq_push(&o->running, r);
        o->reserved_blocks += most_kv_blocks(s, r);
        batch_add_next(&o->it.batch, r, UINT32_MAX);
    }
}

/* KV ran out (without reservation, or with a request beyond capacity): the youngest request starts
 * over later. */
static bool orca_make_room(struct sched *s)
{
    struct orca *o = s->state;
    const struct request *r = o->running.tail;
    if (o->running.n < 2) {
        return false;
    }
    if (r->kv_tokens > 0) {
        (void)sched_kv_move(s, kv_of(r), KV_NOWHERE);
    }
    orca_leaves(s, r);
    reqq_push_front(&o->waiting, r);
    /* Its segment is the last. */
    o->it.batch.tokens -= o->it.batch.segments[--o->it.batch.n].n_tokens;
    return true;
}

static const struct iteration_rules rules = {.joins = orca_joins,
                                             .leaves = orca_leaves,
                                             .compose = orca_compose,
                                             .make_room = orca_make_room};

static int orca_init(struct sched *s)
{
    sched_steady(s, TIME_NEVER_NS, 0);
    return iteration_init(s, &rules, param_int(s, PARAM_DEVICE));
}

const struct policy_ops policy_orca_ops = {
    .name = "orca",
    .summary = "iteration-level continuous batching, whole prompts, maximum KV reserved (Orca)",
    .contract = POLICY_CONTRACT,
    .needs = CAP_KV_MOVE,
    .state_size_bytes = sizeof(struct orca),
    .request_state_size_bytes = sizeof(struct reqq_node),
    .params = params,
    .init = orca_init,
    .exit = iteration_exit,
    ITERATION_HOOKS,
};
