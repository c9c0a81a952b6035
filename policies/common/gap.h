/* A session's KV while a tool runs (clauses.md E.16), for any policy that keeps requests in queues
 * or orders (reqq.h). When an answer ends, it is known whether it calls a tool, but not how long
 * the tool takes.
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
 * States of recurrent layers add their tokens to C, and all of them to C / 2, because they do not
 * grow. The swap budget is one transfer at a time; the most wasteful session gets it.
 *
 * Kept KV returns to the cache if no request can run otherwise and no transfer to flash is under
 * way. Cost of a decision: O(sessions with a running tool). */
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

/* Two rows of a policy's parameter table. */
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
    int64_t next_ns; /* when to decide again */
    int64_t out_ns;  /* estimated end of its transfer to flash; 0: none */
    bool kept;       /* its KV is pinned */
    bool done;       /* final: dropped, on flash or back in the cache */
    bool due;        /* to be decided now */
};

struct gap {
    enum gap_kv rule;
    int64_t expected_ns;    /* expected duration of a tool call; 0: unknown */
    struct gap_session *at; /* owned; sessions whose tool runs */
    uint32_t n;
    int64_t timer_ns;                /* the last timer that was set */
    int64_t swap_until_ns;           /* estimated end of all transfers to flash */
    int64_t history_ns[GAP_HISTORY]; /* durations of the last tool calls */
    uint64_t n_history;
    struct reqq back;             /* turns that wait for KV on flash (gap_holds) */
    const struct request **fresh; /* owned; reactive arrivals whose KV has no rank yet */
    uint32_t n_fresh;
};

/* Only rules of tool calls have sessions, and only the rule `reactive` has arrivals to rank. */
static inline bool gap_ok(const struct gap *g)
{
    bool by_memory = g->rule == GAP_CACHE || g->rule == GAP_REACTIVE;
    return (g->n == 0 || !by_memory) && (g->n_fresh == 0 || g->rule == GAP_REACTIVE) &&
           (g->swap_until_ns == 0 || g->rule == GAP_SWAP || g->rule == GAP_INFERCEPT) &&
           (g->back.head == NULL || g->back.head->kv_swapped);
}

/* Time to prefill that many tokens without cached KV, chunk by chunk, ns. */
typedef int64_t gap_prefill_ns(struct sched *s, uint32_t model, uint32_t tokens);

/* Isolated time of a transfer of that many tokens to or from flash. */
int64_t gap_transfer_ns(const struct sched *s, uint32_t model, uint32_t tokens);

/* kv, expected_s: indices of the two parameters (GAP_PARAMS). */
void gap_init(struct sched *s, struct gap *g, uint32_t kv, uint32_t expected_s);
void gap_fini(struct gap *g);
/* Call these in hooks, when a request finished or arrived. */
void gap_finished(struct sched *s, struct gap *g, const struct request *r);
void gap_arrived(struct sched *s, struct gap *g, const struct request *r);
/* For policies that do not read back KV themselves. Call it in request_arrived. True: the turn's KV
 * is on flash. gap_schedule then reads it back, in order of arrival, and the policy gets the
 * request in kv_moved. If it is cancelled before, call reqq_remove. */
bool gap_holds(struct gap *g, const struct request *r);
/* Call it in `schedule`: makes due decisions, and sets a timer for the others. */
void gap_schedule(struct sched *s, struct gap *g, gap_prefill_ns *prefill);
/* Unpins the session kept longest. False if none is kept, or if a transfer to flash will free
 * memory. */
bool gap_yield(struct sched *s, struct gap *g);
/* Drops KV that was read back for the last such prompt of a queue, so that an earlier prompt can
 * begin. False if there is none, or if a transfer to flash will free memory. O(n). */
bool gap_evict_last(struct sched *s, struct gap *g, const struct reqq *prompts);
