/* Shared prefixes: KV that several prompts begin with is in memory once.
 *
 * A radix tree over the streams of a trace (sim/api/trace.h, `source`). A node has consecutive
 * blocks of one stream; a path from a root is the beginning of some prompt. Only whole blocks are
 * shared, as in vLLM, so that nobody writes into a shared one: a hit ends at a whole block.
 *
 * Models share nothing: the tree has every stream once for each, and a row goes by its own.
 *
 * Requests and pinned sessions hold the deepest node of their prefix, and through it the path
 * above. Nodes that nobody holds are cached prefixes. They give way by rank, then in order of their
 * last use, leaves first, from the end of a path. The policy sets ranks (sched_kv_rank), and pins
 * or drops what a session left (sched_kv_move).
 */
#pragma once

#include "sim/base/base.h"
#include "sim/base/ranked.h"

struct core;
struct full_request;
struct prefixes;

/* How somebody holds a node, and through its children: the highest counts. */
enum prefix_hold {
    PREFIX_FREE, /* nobody: a cached prefix, counted in kv_blocks_cold */
    PREFIX_IDLE, /* requests that have not started: it gives way too, counted in kv_blocks_idle */
    PREFIX_USED
};

struct prefix_node {
    struct ranked place; /* among the free ones. Its rank is the highest of those that used it: no
                            child's is higher */
    struct prefix_node *parent; /* NULL: `from` is 0 */
    uint32_t stream;
    uint32_t from, to;                 /* blocks of the stream */
    uint32_t units;                    /* of the ledger that a block is */
    uint32_t holders[PREFIX_USED + 1]; /* who holds it idle or used, children included */
    uint32_t children;
    uint32_t number; /* from 1, dense: for checks */
    struct prefix_node *next_free;
};

/* NULL where the trace states no content, or prefixes are not reused. The caller owns it. */
struct prefixes *prefixes_new(struct core *c);

/* The cached beginning of a row's prompt: the node where it ends, after at most so many blocks.
 * NULL: nothing. Cost: requests between the row and the one that left it. */
struct prefix_node *prefix_find(struct core *c, uint32_t row, uint32_t most_blocks);
/* Somebody who held the node so holds it otherwise. */
void prefix_hold(struct core *c, struct prefix_node *node, enum prefix_hold from,
                 enum prefix_hold to);

/* An arrived request takes the longest cached prefix of its prompt, whole blocks without the last
 * token. It holds it idle. */
void prefix_match(struct core *c, struct full_request *r);
/* Requests that wait for their first service look again, where prefixes have come since. A request
 * that the policy took KV from (sched_kv_move) computes it again instead. */
void prefix_match_waiting(struct core *c);
/* Raises all that the request holds to its rank. */
void prefix_rank(struct full_request *r);
/* The whole blocks that a request has computed can be shared from now on. Where they are in the
 * tree already, its own copies become free. */
void prefix_share(struct core *c, struct full_request *r);
/* A request keeps the first blocks of what it holds. */
void prefix_keep(struct core *c, struct full_request *r, uint32_t blocks);
/* A prefix of a waiting request has been dropped: what is left may be found again. */
void prefix_changed(struct core *c);

/* Blocks of the path to a node that only requests hold that have not started. */
uint64_t prefix_idle_blocks(const struct prefix_node *node);

/* A hash of the first tokens of a row's prompt: of the stream that the last of them belongs to.
 * Also without a cache. Cost: as prefix_find. */
uint64_t prefix_hash(const struct core *c, uint32_t row, uint32_t tokens);

/* Frees so many blocks of cached prefixes, or all there are. */
void prefix_evict(struct core *c, uint64_t blocks);
/* Drops a cached prefix from its end, as far as only requests of the session left it. */
void prefix_drop(struct core *c, struct prefix_node *node, uint32_t session_id);

/* Blocks of the tree, by how they are held, into of[]; asserts its invariants. */
bool prefixes_consistent(const struct core *c, uint64_t of[PREFIX_USED + 1]);
