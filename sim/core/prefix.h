/* Shared prefixes: KV of a common prefix of several prompts is in memory once.
 *
 * A radix tree over the streams of a trace (sim/api/trace.h, `source`). A node has consecutive
 * blocks of one stream; a path from a root is the beginning of some prompt. Only whole blocks are
 * shared, as in vLLM, so that no request writes into a shared block. A hit ends at a block
 * boundary.
 *
 * Models share nothing: the tree has every stream once for each model.
 *
 * Requests and pinned sessions hold the deepest node of their prefix, and through it the path
 * above. Nodes that nobody holds are cached prefixes. They are dropped by rank, then in LRU order,
 * leaves first, from the end of a path. The policy sets ranks (sched_kv_rank), and pins or drops a
 * session's prefix (sched_kv_move).
 */
#pragma once

#include "sim/base/base.h"
#include "sim/base/ranked.h"

struct core;
struct full_request;
struct prefixes;

/* How a node is held, directly or through its children. The highest value counts. */
enum prefix_hold {
    PREFIX_FREE, /* not held: a cached prefix, in kv_blocks_cold */
    PREFIX_IDLE, /* held by requests that have not started; in kv_blocks_idle */
    PREFIX_USED
};

struct prefix_node {
    struct ranked place; /* in the list of free nodes. The rank is the highest of its users', so no
                            child's is higher */
    struct prefix_node *parent; /* NULL: `from` is 0 */
    uint32_t stream;
    uint32_t from, to;                 /* blocks of the stream */
    uint32_t units;                    /* ledger units per block */
    uint32_t holders[PREFIX_USED + 1]; /* number of holders of each kind, children included */
    uint32_t children;
    uint32_t number; /* from 1, dense: for checks */
    struct prefix_node *next_free;
};

/* NULL if the trace has no trace_graph.source or prefixes are not reused. The caller owns it. */
struct prefixes *prefixes_new(struct core *c);

/* Returns the last node of the longest cached prefix of a row's prompt, or NULL. It has at most
 * most_blocks blocks. Cost: sources between the row and the request that computed it. */
struct prefix_node *prefix_find(struct core *c, uint32_t row, uint32_t most_blocks);
/* Changes how a holder holds a node. */
void prefix_hold(struct core *c, struct prefix_node *node, enum prefix_hold from,
                 enum prefix_hold to);

/* Gives an arrived request the longest cached prefix of its prompt, in whole blocks and without the
 * last token. The request holds it as PREFIX_IDLE. */
void prefix_match(struct core *c, struct full_request *r);
/* Repeats the lookup for requests that wait for first service, if prefixes were added since.
 * Requests that the policy evicted (sched_kv_move) are excluded. */
void prefix_match_waiting(struct core *c);
/* Raises the rank of all nodes that the request holds to its own. */
void prefix_rank(struct full_request *r);
/* Adds the whole blocks that a request has computed to the tree. If the tree has them already, the
 * request's copies become free. */
void prefix_share(struct core *c, struct full_request *r);
/* Reduces a request's shared prefix to its first blocks. */
void prefix_keep(struct core *c, struct full_request *r, uint32_t blocks);
/* A waiting request's prefix was dropped: repeat the lookup, which may find a part of it. */
void prefix_changed(struct core *c);

/* Blocks on the path to a node that are held only by requests that have not started. */
uint64_t prefix_idle_blocks(const struct prefix_node *node);

/* A hash of the first tokens of a row's prompt, made from the stream that has the last of them.
 * Works without a cache, too. Cost: as prefix_find. */
uint64_t prefix_hash(const struct core *c, uint32_t row, uint32_t tokens);

/* Frees that many units of cached prefixes, or all. */
void prefix_evict(struct core *c, uint64_t blocks);
/* Drops a cached prefix from its end: unheld leaves that this session's requests computed. */
void prefix_drop(struct core *c, struct prefix_node *node, uint32_t session_id);

/* Counts the units of the tree in of[], by how they are held, and asserts its invariants. */
bool prefixes_consistent(const struct core *c, uint64_t of[PREFIX_USED + 1]);
