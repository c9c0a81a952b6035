/* An iteration-level scheduler on one device. Four axes are separate (clauses.md 0.3): *order*,
 * *class rule*, *preemption mechanism*, and *the fate of KV*. An order policy supplies one key
 * function and is otherwise this.
 *
 * Each iteration takes requests in key order up to max_batch sequences and token_budget tokens. A
 * decoding request costs one token, a prompt as many as fit (chunked prefill). A request that is
 * not taken keeps its KV and waits. When a request arrives whose key precedes every member of the
 * running pass, the preemption axis says when that pass stops:
 *
 *   iteration  not before its end (what iteration-level batching systems do)
 *   layer, kernel  at the next such boundary; the pass waits, its work is kept
 *   reset      at once; the running kernel is redone later (REEF; needs a device that can)
 *
 * The level axis says what that costs with `inflight` kernels handed over (XSched, clauses.md E.4):
 *
 *   1          all of them run before the pass stops
 *   2          the running one only; the others are taken back
 *   3          nobody waits: the running kernel is interrupted and continues later
 *   device     1 or 2, by what the device can
 *
 * The kv axis says what becomes of the pass: checkpoint (resumed where it stopped), recompute (its
 * requests lose all KV), swap (KV goes to flash and comes back). The KV of a session while a tool
 * runs is in gap.h.
 *
 * Cost of a decision: O(batch * log waiting). */
#pragma once

#include "policies/common/gap.h"
#include "policies/common/iteration.h"
#include "policies/common/order.h"
#include "policies/common/xsched.h"
#include "sim/api/policy.h"
#include "sim/base/map.h"

enum iter_param {
    ITER_DEVICE,
    ITER_MAX_BATCH,
    ITER_TOKEN_BUDGET,
    ITER_CLASS,
    ITER_PREEMPT,
    ITER_KV,
    ITER_INFLIGHT,
    ITER_LEVEL,
    ITER_GAP_KV,
    ITER_GAP_S,
    ITER_PARAM_COUNT
};

enum iter_class { ITER_RT_FIRST, ITER_BLIND, ITER_RT_ALONE, ITER_WINDOW };
enum iter_preempt {
    ITER_PREEMPT_ITERATION,
    ITER_PREEMPT_LAYER,
    ITER_PREEMPT_KERNEL,
    ITER_PREEMPT_RESET
};
enum iter_kv { ITER_KV_CHECKPOINT, ITER_KV_RECOMPUTE, ITER_KV_SWAP };

extern const char *const iter_class_choices[],
    *const iter_preempt_choices[], *const iter_kv_choices[], *const iter_level_choices[];

/* The first entries of an order's parameter table, with these defaults. */
#define ITER_PARAMS_OF(max_batch, class, preempt)                                                  \
    [ITER_DEVICE] =                                                                                \
        POLICY_CHOICE("device", 0, place_choices, "device that runs everything; auto: the iGPU"),  \
    [ITER_MAX_BATCH] = POLICY_INT("max_batch", max_batch, 1, 4096,                                 \
                                  "sequences per iteration (clauses.md E.1: 16 on a SoC)"),        \
    [ITER_TOKEN_BUDGET] =                                                                          \
        POLICY_INT("token_budget", 512, 1, 1e6,                                                    \
                   "tokens per iteration (clauses.md E.1: 256 to 512 on a SoC)"),                  \
    [ITER_CLASS] = POLICY_CHOICE(                                                                  \
        "class", class, iter_class_choices,                                                        \
        "reactive before proactive; the order alone; reactive alone: no proactive work in their "  \
        "iterations; or proactive work only while a window is open (sched_machine_state)"),        \
    [ITER_PREEMPT] = POLICY_CHOICE("preempt", preempt, iter_preempt_choices,                       \
                                   "where a running pass stops for a more urgent request"),        \
    [ITER_KV] =                                                                                    \
        POLICY_CHOICE("kv", ITER_KV_CHECKPOINT, iter_kv_choices, "what a stopped pass keeps"),     \
    [ITER_INFLIGHT] = POLICY_INT("inflight", 1, 1, 64,                                             \
                                 "kernels handed to the device ahead (XSched's threshold, E.4)"),  \
    [ITER_LEVEL] =                                                                                 \
        POLICY_CHOICE("level", XSCHED_LEVEL_DEVICE, iter_level_choices, XSCHED_LEVEL_HELP),        \
    GAP_PARAMS(ITER_GAP_KV, ITER_GAP_S)

#define ITER_PARAMS ITER_PARAMS_OF(16, ITER_RT_FIRST, ITER_PREEMPT_ITERATION)

struct iter;

/* Added to the key of proactive requests but under blind: larger than any key an order gives. */
#define ITER_CLASS_STEP 1e15

/* Functions of an order. All but key are optional. */
struct iter_order {
    /* Smaller goes first. Asked when a request arrives or returns from an iteration, and again when
     * it is about to be taken, unless settled. So a key may grow while its owner waits, at no cost;
     * one that shrinks needs iter_rekey. All above 5e14 are one. Proactive requests are set behind
     * by 1e15, where differences below 0.1 may be lost, so time counts in us or ns. */
    double (*key)(struct sched *s, const struct request *r);
    /* A request took part in an iteration that ran for elapsed_ns. Before its new key is asked. */
    void (*served)(struct sched *s, const struct request *r, const struct segment *seg,
                   int64_t elapsed_ns);
    /* A request is no longer waiting: a pass took it, or its KV moves. Its key is asked when it
     * returns. */
    void (*taken)(struct sched *s, const struct request *r);
    /* A request finished or was dropped. */
    void (*left)(struct sched *s, const struct request *r);
    /* It has other KV than when its key was last asked. Before its first service a cache may have
     * more or less of its prompt. Later it may have lost it. iter_rekey, where the key is work. */
    void (*found)(struct sched *s, const struct request *r);
    /* Called at the start of schedule: orders whose keys move with time re-key here. */
    void (*refresh)(struct sched *s);
    /* Addition to the key of a request for each annotated ns of its work done inside a pass: -1
     * where the key is remaining work in ns. A pass is stopped, and continued, by the keys that its
     * members have by then. */
    double key_per_done_ns;
    /* While all live requests decode in one iteration, the next one is the same (sched_steady), and
     * one call of served for several iterations adds up to what one for each does. */
    bool steady;
    /* While its owner waits, a key changes by iter_rekey alone, and where the core drops a prefix
     * that no pass has used. */
    bool settled;
    /* A key never changes. Where passes stop for a more urgent request, only such an order is
     * steady: a stop compares the members' keys of their last iteration. */
    bool constant;
};

/* How often a request may lose its pass to preemption under recompute or swap: urgency can grow
 * with the loss (least laxity), and two requests would take turns for ever. */
#define ITER_MAX_LOSSES 16

/* Per-request bytes; an order's own follow in a struct that starts with this. */
struct iter_request {
    struct order_node node;
    struct order_node elder;  /* key: the place in memory order */
    struct order_node holder; /* key: minus that */
    uint64_t arrived;         /* from 1, in order of arrival; 0: not yet */
    uint32_t losses;          /* passes stopped and thrown away */
    uint32_t found;           /* reused_tokens that its key knows of */
};

/* First member of every order's state. */
struct iter {
    struct iteration it; /* key of a pass: the best of its members, class rule included */
    const struct iter_order *order;
    struct order ready;   /* live requests in no pass, KV not moving */
    struct order elders;  /* all live requests, the first in memory order on top */
    struct order holders; /* of these, those that returned with KV: the last on top */
    uint64_t arrivals;
    struct map beginnings; /* of prompts, for orders that ask what is found: their first blocks */
    bool shares;           /* two were the same, or a turn found its last one's KV */
    struct gap gap;
    bool stuck; /* nothing could be done for anybody: not even KV is on its way back */
    bool alone; /* the batch under construction is of the first in memory order alone */
};

/* Waiting requests and those that may lose KV are among the live ones. */
static inline bool iter_ok(const struct iter *it)
{
    return it->ready.n <= it->elders.n && it->holders.n <= it->elders.n &&
           it->elders.n <= it->arrivals && it->elders.at == offsetof(struct iter_request, elder) &&
           it->holders.at == offsetof(struct iter_request, holder);
}

/* Hooks an order puts into its policy_ops (init calls iter_init with its order). */
int iter_init(struct sched *s, const struct iter_order *order);
void iter_exit(struct sched *s);
void iter_kv_moved(struct sched *s, const struct request *r);

/* Calls between the files iter*.c (iter_wait.c). */
/* The key of an order, with the class rule in it. */
double iter_full_key(struct sched *s, const struct iter *it, const struct request *r);
/* Puts a request among the waiting ones. */
void iter_wait(struct sched *s, struct iter *it, const struct request *r);
/* Takes it out of them. */
void iter_take(struct sched *s, struct iter *it, const struct request *r);
/* Asks the order again where a cache has more or less of a prompt than the key knows of.
 * O(requests). */
void iter_look_up(struct sched *s, const struct iter *it);
/* Takes KV from the last one in memory order that waits and comes after `first`. It is dropped, not
 * swapped, so that the space is free at once. False where nobody comes after it. */
bool iter_evict_after(struct sched *s, struct iter *it, const struct request *first);
/* The rules of iteration.h about requests. */
void iter_joins(struct sched *s, const struct request *r);
void iter_leaves(struct sched *s, const struct request *r);
void iter_ran(struct sched *s, const struct segment *seg, int64_t elapsed_ns);
void iter_returns(struct sched *s, const struct request *r);
bool iter_make_room(struct sched *s);
void iter_lost(struct sched *s, const struct request *r);

/* Rules of iteration.h (iter_stop.c). top: the first request that waits and may run; NULL: none. */
void iter_launch(struct sched *s, struct launch_spec *spec);
bool iter_outranked(struct sched *s, const struct request *top);
void iter_stopped(struct sched *s, const struct launch *l);
bool iter_resumes(struct sched *s, const struct request *top, uint32_t *which);

/* Does all hold that it relies on? (consistent.c) */
bool iter_is_consistent(const struct iter *it);

/* A waiting request's key changed; the keys of all did, O(waiting). */
void iter_rekey(struct sched *s, const struct request *r);
void iter_rekey_all(struct sched *s);

/* Annotated time a request needs alone on a device: the rest of its prefill, and out_tokens decode
 * iterations of one sequence at its present length. O(1). */
int64_t iter_prefill_ns(struct sched *s, const struct request *r, uint8_t device);
int64_t iter_decode_ns(struct sched *s, const struct request *r, uint8_t device,
                       uint64_t out_tokens);
/* To prefill that many tokens from nothing, a budget at a time. */
int64_t iter_context_ns(struct sched *s, uint32_t model, uint32_t tokens);

/* Members of policy_ops that every order needs; ITER_HOOKS adds those of an order without state. */
#define ITER_HOOKS_BUT_EXIT                                                                        \
    .needs = CAP_SPANS | CAP_KV_MOVE, ITERATION_HOOKS, .kv_moved = iter_kv_moved
#define ITER_HOOKS                                                                                 \
    ITER_HOOKS_BUT_EXIT, .state_size_bytes = sizeof(struct iter),                                  \
                         .request_state_size_bytes = sizeof(struct iter_request),                  \
                         .exit = iter_exit
