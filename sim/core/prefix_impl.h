/* The tree of prefixes, between the files prefix*.c. */
#pragma once

#include "sim/core/kv.h"

/* Blocks up to `end` of a stream, on the way from a root to a row. */
struct step {
    uint32_t stream, end;
};

struct prefixes {
    const struct trace *trace; /* borrowed */
    struct prefix_node **last; /* owned: by stream, its deepest node; NULL: none */
    uint32_t n_texts;          /* streams of the trace */
    uint32_t n_streams;        /* stream s of model m is m n_texts + s */
    struct prefix_node *unused;
    struct ranked_list free;   /* nodes: children before their parents */
    struct step *way;          /* scratch */
    uint32_t n_nodes;          /* ever made */
    uint64_t changes, matched; /* of the tree, and those that waiting requests know of */
};

static inline enum prefix_hold prefix_held(const struct prefix_node *n)
{
    return n->holders[PREFIX_USED] > 0   ? PREFIX_USED
           : n->holders[PREFIX_IDLE] > 0 ? PREFIX_IDLE
                                         : PREFIX_FREE;
}

/* The trace's stream: the same for all models. */
static inline uint32_t prefix_text_of(const struct prefixes *p, uint32_t stream)
{
    return stream < p->n_texts ? stream : stream % p->n_texts;
}

/* The block from which on a stream is its own. */
uint32_t prefix_own_from(const struct core *c, uint32_t stream);
/* The deepest node of the path that begins before a block. */
struct prefix_node *prefix_before(struct prefix_node *n, uint32_t block);
/* Parts a node: the upper one ends at that block. Whoever holds the node holds the lower one. */
struct prefix_node *prefix_split(struct core *c, struct prefix_node *lower, uint32_t at);
/* The streams of a row's blocks [from, to), the last one first. Returns their number. */
uint32_t prefix_way(struct core *c, uint32_t row, uint32_t from, uint32_t to);
/* The next node below `parent` on the way to a block: what is there, or the request's own blocks,
 * which are then the tree's. */
struct prefix_node *prefix_go_down(struct core *c, struct prefix_node *parent, struct step s);
