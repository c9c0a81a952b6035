/* A session's KV while a tool runs (clauses.md E.16), for any policy that keeps requests in queues
 * or orders (reqq.h). It is known when an answer ends whether it calls a tool, and not how long the
 * tool takes.
 *
 *   cache      the memory decides: kept, the oldest dropped first
 *   preserve   kept
 *   discard    dropped at once; the next turn prefills its whole prompt
 *   swap       written to flash at once, read back for the next turn
 *   infercept  the least waste of memory over time of the three; kept KV is judged again when the
 *              tool has wasted as much as the cheapest way out
 *   ttl        kept for a time to live, then dropped (Continuum)
 *   reactive   the memory decides, but what proactive work left is dropped first
 *
 * InferCept's waste of C tokens, in token-seconds, with T the time to prefill them in chunks:
 *   preserve  C * the rest of the tool's time
 *   discard   T * C / 2 (its memory grows over the chunks) + T * tokens of others (they wait)
 *   swap      2 * transfer * C (out and in; a transfer makes nobody wait here)
 * States of recurrent layers add their tokens to C, and whole to C / 2: they are there at once.
 * One transfer at a time is the swap budget; the most wasteful has it.
 *
 * Kept KV returns to the cache when nobody could run otherwise, nor when a transfer out has ended.
 * Cost of a decision: O(sessions with
 * a tool running). */
#pragma once

#include "policies/common/reqq.h"
#include "sim/api/policy.h"

#define GAP_HISTORY 64

enum gap_kv {
    GAP_CACHE,
    GAP_PRESERVE,
    GAP_DISCARD,
    GAP_SWAP,
    GAP_INFERCEPT,
    GAP_TTL,
    GAP_REACTIVE
};

extern const char *const gap_kv_choices[];

/* Two rows of a policy's parameters. */
#define GAP_PARAMS(kv, s)                                                                          \
    [kv] = POLICY_CHOICE("gap_kv", GAP_CACHE, gap_kv_choices,                                      \
                         "a session's KV while a tool runs (E.16: InferCept, Continuum)"),         \
    [s] = POLICY_NUMBER(                                                                           \
        "gap_s", 0, 0, 1e6,                                                                        \
        "expected tool time, or time to live, s; 0: infercept expects a call to last as long as "  \
        "it has, ttl learns from those seen")

struct gap_session {
    uint32_t session_id;
    uint32_t tokens, model;
    int64_t since_ns;
    int64_t next_ns; /* when to look again */
    int64_t out_ns;  /* its KV is on its way to flash until then, by isolated times; 0: it is not */
    bool kept;       /* pinned by us; else not yet decided, or decided for good */
    bool done;       /* dropped, on flash or back in the cache */
    bool due;        /* to be judged now */
};

struct gap {
    enum gap_kv rule;
    int64_t expected_ns;    /* of a tool call; 0: unknown */
    struct gap_session *at; /* owned: sessions whose tool runs */
    uint32_t n;
    int64_t timer_ns;                /* the last one set */
    int64_t swap_until_ns;           /* transfers out, by their isolated times */
    int64_t history_ns[GAP_HISTORY]; /* of the last tool calls */
    uint64_t n_history;
    struct reqq back;             /* turns whose KV is on flash (gap_holds) */
    const struct request **fresh; /* owned: reactive arrivals whose KV has no rank yet */
    uint32_t n_fresh;
};

/* Only rules of tool calls remember sessions, and only the ranks' rule has arrivals to rank. */
static inline bool gap_ok(const struct gap *g)
{
    bool by_memory = g->rule == GAP_CACHE || g->rule == GAP_REACTIVE;
    return (g->n == 0 || !by_memory) && (g->n_fresh == 0 || g->rule == GAP_REACTIVE) &&
           (g->swap_until_ns == 0 || g->rule == GAP_SWAP || g->rule == GAP_INFERCEPT) &&
           (g->back.head == NULL || g->back.head->kv_swapped);
}

/* Time to prefill that many tokens from nothing, chunk by chunk, ns. */
typedef int64_t gap_prefill_ns(struct sched *s, uint32_t model, uint32_t tokens);

/* A transfer of that many tokens to flash or back, isolated. */
int64_t gap_transfer_ns(const struct sched *s, uint32_t model, uint32_t tokens);

/* kv, expected_s: numbers of the two parameters (GAP_PARAMS). */
void gap_init(struct sched *s, struct gap *g, uint32_t kv, uint32_t expected_s);
void gap_fini(struct gap *g);
/* From notifications: a request finished, a request arrived. */
void gap_finished(struct sched *s, struct gap *g, const struct request *r);
void gap_arrived(struct sched *s, struct gap *g, const struct request *r);
/* For policies that read no KV back themselves. From request_arrived: true where the turn's KV is
 * on flash. It is then read back from schedule, in order of arrival, and is the policy's when
 * kv_moved comes; reqq_remove where it is cancelled before. */
bool gap_holds(struct gap *g, const struct request *r);
/* From schedule: decides what is due and sets a timer for the rest. */
void gap_schedule(struct sched *s, struct gap *g, gap_prefill_ns *prefill);
/* The session kept longest gives way; false when none is kept, or where a session's KV is on its
 * way out. */
bool gap_yield(struct sched *s, struct gap *g);
/* The last of a queue of prompts that holds KV, because it was read back, computes it again: it is
 * in the way of one that is to begin before it. False where none does, or where a session's KV is
 * on its way out. O(n). */
bool gap_evict_last(struct sched *s, struct gap *g, const struct reqq *prompts);
