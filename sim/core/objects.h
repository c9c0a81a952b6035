/* The core's records of requests, passes, launches, residents and kept KV, beyond what a policy
 * may see of them. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/map.h"
#include "sim/core/prefix.h"

/* A request with the facts that its policy must not see. They are not next to `pub`, and `pub` does
 * not point here: `core` of it is this address, changed by a number of this process. */
struct full_request {
    struct request *pub;            /* owned by core.shown */
    struct full_request *next_free; /* pool and graveyard link */
    struct full_request *prev_live, *next_live;
    uint32_t row; /* of the trace */
    uint32_t output_tokens;
    uint32_t kv_blocks;         /* held, reserved and shared ones included */
    uint32_t kv_rank;           /* of what it leaves in the cache (sched_kv_rank) */
    struct prefix_node *prefix; /* where the shared ones end; NULL: all are its own */
    bool alive;
    bool prefix_idle;    /* its KV is a reused prefix nobody has worked on */
    bool cancel_pending; /* cancelled while in a pass: shed at its end */
    bool kv_moving;      /* swap in progress */
    bool held;           /* the policy does not know of it yet (weights.c) */
    uint64_t draw;       /* decode steps done, with a draft or without; keys hidden draws */
    /* Tokens that the draft model has read, drafted ones too, when there were so many of ours. */
    uint32_t drafted_tokens, drafted_kv;
    void *exec; /* the executor's; NULL at arrival */
};

/* Drawn once per process. */
extern uintptr_t core_way;

/* The ways from what a policy holds to the core's own part of it. NULL stays NULL. */
static inline struct full_request *core_request(const struct request *r)
{
    return r == NULL ? NULL : (struct full_request *)(r->core ^ core_way);
}

/* A segment of a formed pass always has a request. */
static inline struct full_request *core_member(const struct segment *s)
{
    return (struct full_request *)(s->request->core ^ core_way);
}

struct full_pass {
    struct pass *pub; /* as that of a request */
    struct full_pass *next_free;
    struct full_pass *before, *after; /* live ones with the tokens before and after, or NULL */
    struct segment *segments;         /* of pub, capacity kept across reuse */
    uint32_t capacity;
    uint32_t op_devices; /* devices that ran shares of the current op */
    /* Columns of an op that is split by them: those that no launch has, and those of launches. */
    uint32_t columns_todo, columns_active;
    bool served; /* none of its requests waits for its first kernel */
    bool steady; /* its policy would form it again (sched_steady) */
    uint64_t formed_events;
    uint32_t begun_on; /* bit set of devices that suspended a launch in a kernel: */
    struct begun {
        double frac; /* done of the next kernel of that op with so many rows left */
        uint32_t op, rows;
    } begun[MACHINE_MAX_DEVICES];
    void *exec; /* the executor's; NULL when formed */
};

struct full_launch {
    struct launch *pub; /* as that of a request */
    void *exec;         /* the executor's */
    struct full_launch *next_free;
    struct resident *pin; /* kept in memory while the launch lives, or NULL */
};

static inline struct full_pass *core_pass(const struct pass *p)
{
    return p == NULL ? NULL : (struct full_pass *)(p->core ^ core_way);
}

static inline struct full_launch *core_launch_of(const struct launch *l)
{
    return l == NULL ? NULL : (struct full_launch *)(l->core ^ core_way);
}

/* Stays where it is while it is used: executors and launches point to it. */
struct resident {
    struct resident_key key;
    struct resident *next_free;
    enum resident_state state;
    double bytes;
    uint32_t pins;
    void *exec; /* the executor's, while pending */
};

/* KV of a finished turn, kept for the session's next one. */
enum cold_state { COLD_CACHED, COLD_PINNED, COLD_MOVING, COLD_SWAPPED };

struct cold_kv {
    struct ranked place; /* in its list, with the rank of the request that left it */
    struct cold_kv *next_free;
    uint32_t row; /* trace row of the next turn: names it */
    uint32_t session_id;
    uint32_t tokens;
    uint64_t blocks; /* units of the ledger */
    enum cold_state state;
    /* Where prefixes are shared, what a session left is in the tree, and an entry has no blocks: */
    uint32_t left_by;           /* row of the finished turn */
    struct prefix_node *prefix; /* held while it is pinned or moving, else NULL */
};
