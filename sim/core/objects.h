/* The core's records of requests, passes, launches, residents and kept KV, beyond what a policy
 * may see of them. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/map.h"
#include "sim/core/prefix.h"

/* A request with the facts that its policy must not see. They are not next to `pub` in memory, and
 * `pub` does not point here: pub->core is this address xor core_way. */
struct full_request {
    struct request *pub;            /* owned by core.shown */
    struct full_request *next_free; /* in the list of free or ended objects */
    struct full_request *prev_live, *next_live;
    uint32_t row; /* trace row */
    uint32_t output_tokens;
    uint32_t kv_blocks;         /* its blocks, including reserved and shared ones */
    uint32_t kv_rank;           /* rank of the KV that it leaves (sched_kv_rank) */
    struct prefix_node *prefix; /* its deepest shared prefix; NULL: all blocks are its own */
    bool alive;
    bool prefix_idle;    /* its KV is a cached prefix that no pass has used yet */
    bool cancel_pending; /* cancelled in a pass or move: shed at its end */
    bool kv_moving;      /* swap in progress */
    bool held;           /* the policy was not notified of it yet (weights.c) */
    uint64_t draw;       /* decode steps done, with or without a draft; index of hidden draws */
    /* Tokens that the draft model has processed, including drafted ones, and kv_tokens at that
     * time. */
    uint32_t drafted_tokens, drafted_kv;
    void *exec; /* the executor's; NULL at arrival */
};

/* A random number, drawn once per process. */
extern uintptr_t core_way;

/* From an object that a policy sees to the core's part of it. NULL stays NULL. */
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
    struct pass *pub; /* owned by core.shown */
    struct full_pass *next_free;
    struct full_pass *before, *after; /* live passes of the previous and next chunk, or NULL */
    struct segment *segments;         /* pub->segments; its capacity is kept across reuse */
    uint32_t capacity;
    uint32_t op_devices; /* devices that ran shares of the current op */
    /* If the current op is split by columns: columns in no launch, and in launches. */
    uint32_t columns_todo, columns_active;
    bool served; /* all its requests have had their first kernel */
    bool steady; /* sched_steady holds for it */
    uint64_t formed_events;
    uint32_t begun_on; /* bit set of devices that suspended a launch inside a kernel */
    struct begun {
        double frac; /* done part of the next kernel, while the op has `rows` left */
        uint32_t op, rows;
    } begun[MACHINE_MAX_DEVICES];
    void *exec; /* the executor's; NULL when formed */
};

struct full_launch {
    struct launch *pub; /* owned by core.shown */
    void *exec;         /* the executor's */
    struct full_launch *next_free;
    struct resident *pin; /* resident that the launch keeps in memory, or NULL */
};

static inline struct full_pass *core_pass(const struct pass *p)
{
    return p == NULL ? NULL : (struct full_pass *)(p->core ^ core_way);
}

static inline struct full_launch *core_launch_of(const struct launch *l)
{
    return l == NULL ? NULL : (struct full_launch *)(l->core ^ core_way);
}

/* Never moves in memory, because executors and launches point to it. */
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
    struct ranked place; /* position in its list, with the rank of the finished request */
    struct cold_kv *next_free;
    uint32_t row; /* trace row of the next turn, the key of this entry */
    uint32_t session_id;
    uint32_t tokens;
    uint64_t blocks; /* ledger units */
    enum cold_state state;
    /* With shared prefixes the KV is in the tree, and an entry has no blocks of its own. */
    uint32_t left_by;           /* row of the finished turn */
    struct prefix_node *prefix; /* node held while pinned or moving, else NULL */
};
