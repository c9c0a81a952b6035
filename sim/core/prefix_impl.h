/* The tree of prefixes, for the files prefix*.c. */
#pragma once

#include "sim/core/kv.h"

/* One step on the path from a root to a row: blocks up to `end` of a stream. */
struct step {
    uint32_t stream, end;
};

struct prefixes {
    const struct trace *trace; /* borrowed */
    struct prefix_node **last; /* owned; the deepest node of each stream, or NULL */
    uint32_t n_texts;          /* streams of the trace */
    uint32_t n_streams;        /* stream s of model m is m n_texts + s */
    struct prefix_node *unused;
    struct ranked_list free;   /* free nodes, children before their parents */
    struct step *way;          /* scratch */
    uint32_t n_nodes;          /* nodes ever created */
    uint64_t changes, matched; /* changes of the tree, now and at the last prefix_match_waiting */
};

static inline enum prefix_hold prefix_held(const struct prefix_node *n)
{
    return n->holders[PREFIX_USED] > 0   ? PREFIX_USED
           : n->holders[PREFIX_IDLE] > 0 ? PREFIX_IDLE
                                         : PREFIX_FREE;
}

/* The trace's stream, without the model. */
static inline uint32_t prefix_text_of(const struct prefixes *p, uint32_t stream)
{
    return stream < p->n_texts ? stream : stream % p->n_texts;
}

/* The first block of a stream that is not from its source. */
uint32_t prefix_own_from(const struct core *c, uint32_t stream);
/* The deepest node on the path to n that begins before the block. */
struct prefix_node *prefix_before(struct prefix_node *n, uint32_t block);
/* Splits a node at that block. Returns the upper part; holders of the node hold the lower part. */
struct prefix_node *prefix_split(struct core *c, struct prefix_node *lower, uint32_t at);
/* Fills `way` with the streams of a row's blocks [from, to), last first. Returns their number. */
uint32_t prefix_way(struct core *c, uint32_t row, uint32_t from, uint32_t to);
/* Returns the child of `parent` on the path s. If there is none, adds the request's blocks as one.
 */
struct prefix_node *prefix_go_down(struct core *c, struct prefix_node *parent, struct step s);
