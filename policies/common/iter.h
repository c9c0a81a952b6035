/* An iteration-level scheduler on one device, with four independent axes (clauses.md 0.3): *order*,
 * *class rule*, *preemption mechanism*, and *the fate of KV*. A policy on top of it only supplies
 * the key function of the order.
 *
 * Each iteration takes requests in key order up to max_batch sequences and token_budget tokens. A
 * decoding request costs one token, a prompt as many as fit (chunked prefill). A request that is
 * not taken keeps its KV and waits. If a request arrives whose key is before those of all members
 * of the running pass, the preemption axis decides when that pass stops:
 *
 *   iteration  not before its end (what iteration-level batching systems do)
 *   layer, kernel  at the next such boundary; the pass waits, its work is kept
 *   reset      at once; the running kernel is redone later (REEF; needs a device that can)
 *
 * The level axis decides which of `inflight` queued kernels run before the stop (XSched, clauses.md
 * E.4):
 *
 *   1          all of them
 *   2          the running one; the others are withdrawn
 *   3          none: the running one is interrupted and continues later
 *   device     1 or 2, by what the device can
 *
 * The kv axis decides the fate of the pass: checkpoint (it resumes where it stopped), recompute
 * (its requests lose all KV), swap (KV goes to flash and back). For KV during a tool call see
 * gap.h.
 *
 * Cost of a decision: O(batch * log waiting). */
#pragma once

#include "policies/common/gap.h"
#include "policies/common/iteration.h"
#include "policies/common/order.h"
#include "policies/common/xsched.h"
#include "sim/api/policy.h"

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

/* Added to the keys of proactive requests, except with class=blind. Larger than any key of an
 * order. */
#define ITER_CLASS_STEP 1e15

/* Functions of an order. All but key are optional. */
struct iter_order {
    /* Smaller goes first. Called when a request arrives or returns from an iteration, and unless
     * `settled` again when it is about to be taken. So a key may grow while its request waits; if
     * it shrinks, call iter_rekey. Keys above 5e14 count as equal. ITER_CLASS_STEP may absorb
     * differences below 0.1, so use us or ns for times. */
    double (*key)(struct sched *s, const struct request *r);
    /* A request took part in an iteration that ran for elapsed_ns. Called before its new key is
     * computed. */
    void (*served)(struct sched *s, const struct request *r, const struct segment *seg,
                   int64_t elapsed_ns);
    /* A request stops waiting: a pass took it, or its KV moves. Its key is computed again when it
     * returns. */
    void (*taken)(struct sched *s, const struct request *r);
    /* A request finished or was dropped. */
    void (*left)(struct sched *s, const struct request *r);
    /* A waiting request's KV changed: the cache has more or less of its prompt, or it was evicted.
     * If the key depends on remaining work, call iter_rekey. */
    void (*found)(struct sched *s, const struct request *r);
    /* Called at the start of schedule. Orders whose keys change with time call iter_rekey here. */
    void (*refresh)(struct sched *s);
    /* Change of a key for each annotated ns of work done inside a pass: -1 if the key is remaining
     * work in ns. Stops and resumptions of a pass include it. */
    double key_per_done_ns;
    /* While all live requests decode in one iteration, the next one is equal (sched_steady), and
     * one call of `served` for several iterations has the effect of one call for each. */
    bool steady;
    /* While its request waits, a key changes only by iter_rekey, or if the core drops a cached
     * prefix. */
    bool settled;
    /* Keys never change. With preemption only such an order is steady, because a stop compares keys
     * from the members' last iteration. */
    bool constant;
};

/* With recompute or swap, a request loses at most this many passes to preemption. Otherwise two
 * requests could preempt each other for ever if the loss makes them more urgent (least laxity). */
#define ITER_MAX_LOSSES 16

/* request.own. An order with its own members has them in a struct that starts with this one. */
struct iter_request {
    struct order_node node;
    struct order_node elder;  /* in elders; key: place in memory order */
    struct order_node holder; /* in holders; key: minus that */
    uint64_t arrived;         /* number of arrival, from 1; 0: not arrived */
    uint32_t losses;          /* passes that were stopped and lost */
    uint32_t found;           /* reused_tokens at the last computation of its key */
};

/* First member of every order's state. */
struct iter {
    struct iteration it; /* key of a pass: the least of its members, with the class rule */
    const struct iter_order *order;
    struct order ready;   /* waiting requests: live, in no pass, KV not moving */
    struct order elders;  /* all live requests, in memory order */
    struct order holders; /* live requests with KV to lose, in reverse memory order */
    uint64_t arrivals;
    uint64_t reuse_changes; /* of sched, when iter_look_up looked last */
    struct gap gap;
    bool stuck; /* no request could run, and no KV is being read back */
    bool alone; /* the batch has only the first request in memory order */
};

/* Waiting requests and holders are live. */
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

/* Internal functions of iter*.c (iter_wait.c). */
/* The key with the class rule. */
double iter_full_key(struct sched *s, const struct iter *it, const struct request *r);
/* Adds a request to the waiting ones. */
void iter_wait(struct sched *s, struct iter *it, const struct request *r);
/* Removes a request from the waiting ones. */
void iter_take(struct sched *s, struct iter *it, const struct request *r);
/* Calls `found` for waiting requests whose cached prefix has changed. O(requests). */
void iter_look_up(struct sched *s, struct iter *it);
/* Evicts the last waiting request behind `first` in memory order. Its KV is dropped, not swapped,
 * to free the space at once. False if there is none. */
bool iter_evict_after(struct sched *s, struct iter *it, const struct request *first);
/* Rules of iteration.h for requests. */
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

/* Checks invariants (consistent.c). */
bool iter_is_consistent(const struct iter *it);

/* Call these if the key of a waiting request has changed, or those of all, O(waiting). */
void iter_rekey(struct sched *s, const struct request *r);
void iter_rekey_all(struct sched *s);

/* Annotated isolated time of a request on a device: for the rest of its prefill, and for out_tokens
 * decode iterations at its present length. O(1). */
int64_t iter_prefill_ns(struct sched *s, const struct request *r, uint8_t device);
int64_t iter_decode_ns(struct sched *s, const struct request *r, uint8_t device,
                       uint64_t out_tokens);
/* Annotated time to prefill that many tokens without cached KV, in chunks of the token budget. */
int64_t iter_context_ns(struct sched *s, uint32_t model, uint32_t tokens);

/* Members of policy_ops that every order needs; ITER_HOOKS adds those of an order without state. */
#define ITER_HOOKS_BUT_EXIT                                                                        \
    .needs = CAP_SPANS | CAP_KV_MOVE, ITERATION_HOOKS, .kv_moved = iter_kv_moved
#define ITER_HOOKS                                                                                 \
    ITER_HOOKS_BUT_EXIT, .state_size_bytes = sizeof(struct iter),                                  \
                         .request_state_size_bytes = sizeof(struct iter_request),                  \
                         .exit = iter_exit
