/* The tree of prefixes: streams, nodes, their holders, and the order of eviction. */
#include "sim/core/prefix_impl.h"

struct prefixes *prefixes_new(struct core *c)
{
    const struct trace *t = c->setup->trace;
    if (t->graph == NULL || t->graph->source == NULL || !c->setup->prefix_reuse) {
        return NULL;
    }
    struct prefixes *p = arena_alloc(&c->arena, sizeof *p);
    p->trace = t;
    p->n_texts = (uint32_t)t->n + t->graph->n_groups;
    p->n_streams = p->n_texts * c->n_models;
    p->last = arena_alloc(&c->arena, (p->n_streams + 1) * sizeof(struct prefix_node *));
    p->way = arena_alloc(&c->arena, p->n_texts * sizeof *p->way); /* no text is twice on a path */
    return p;
}

/* The stream of a row (its prompt and answer), in its model. */
static uint32_t stream_of(const struct core *c, uint32_t row)
{
    return row + c->prefixes->n_texts * trace_graph_model(c->prefixes->trace->graph, row);
}

/* The source of a stream, in the same model, or TRACE_NO_ROW. */
static uint32_t source_of(const struct prefixes *p, uint32_t stream)
{
    uint32_t text = prefix_text_of(p, stream);
    uint32_t source = text < p->trace->n ? p->trace->graph->source[text] : TRACE_NO_ROW;
    return source != TRACE_NO_ROW ? source + (stream - text) : TRACE_NO_ROW;
}

uint32_t prefix_own_from(const struct core *c, uint32_t stream)
{
    const struct prefixes *p = c->prefixes;
    bool begins = source_of(p, stream) != TRACE_NO_ROW;
    uint32_t text = prefix_text_of(p, stream);
    return begins ? p->trace->rows[text].prefix_tokens / c->setup->kv_block_tokens : 0;
}

/* Moves a node's blocks from one count to another. */
static void count_as(struct core *c, struct prefix_node *n, enum prefix_hold was,
                     enum prefix_hold is)
{
    uint64_t blocks = (uint64_t)(n->to - n->from) * n->units;
    c->kv_blocks_cold -= was == PREFIX_FREE ? blocks : 0;
    c->kv_blocks_idle -= was == PREFIX_IDLE ? blocks : 0;
    c->kv_blocks_cold += is == PREFIX_FREE ? blocks : 0;
    c->kv_blocks_idle += is == PREFIX_IDLE ? blocks : 0;
    if (was == PREFIX_FREE) {
        ranked_remove(&c->prefixes->free, &n->place);
    } else if (is == PREFIX_FREE) {
        ranked_add(&c->prefixes->free, &n->place);
    }
}

/* Walks up the path while anything changes. A parent becomes free after its children and has at
 * least their rank, so it is behind them in the list, and the first free node is a leaf. */
void prefix_hold(struct core *c, struct prefix_node *node, enum prefix_hold from,
                 enum prefix_hold to)
{
    for (struct prefix_node *n = node; n != NULL && from != to; n = n->parent) {
        enum prefix_hold was = prefix_held(n);
        SIM_ASSERT(from == PREFIX_FREE || n->holders[from] > 0);
        n->holders[from] -= from != PREFIX_FREE;
        n->holders[to] += to != PREFIX_FREE;
        enum prefix_hold is = prefix_held(n);
        if (was != is) {
            count_as(c, n, was, is);
        }
        from = was;
        to = is;
    }
}

static struct prefix_node *node_new(struct core *c, uint32_t stream, uint32_t from, uint32_t to,
                                    struct prefix_node *parent)
{
    struct prefixes *p = c->prefixes;
    struct prefix_node *n;
    FREE_TAKE(p->unused, &c->arena, n);
    uint32_t number = n->number > 0 ? n->number : ++p->n_nodes;
    SIM_ASSERT(from < to && (parent != NULL ? parent->to == from : from == 0));
    *n = (struct prefix_node){.parent = parent,
                              .stream = stream,
                              .from = from,
                              .to = to,
                              .units = c->models[stream / p->n_texts].kv_units,
                              .number = number};
    return n;
}

struct prefix_node *prefix_split(struct core *c, struct prefix_node *lower, uint32_t at)
{
    SIM_ASSERT(lower->from < at && at < lower->to);
    struct prefix_node *upper = node_new(c, lower->stream, lower->from, at, lower->parent);
    lower->from = at;
    lower->parent = upper;
    upper->children = 1;
    upper->place.rank = lower->place.rank;
    enum prefix_hold how = prefix_held(lower);
    if (how == PREFIX_FREE) {
        /* The lower part stays before its parent. The caller need not take the upper one. */
        ranked_add_behind(&c->prefixes->free, &lower->place, &upper->place);
    } else {
        upper->holders[how] = 1;
    }
    return upper;
}

/* Frees blocks at the end of a free leaf, and the leaf if it has no more. */
static void trim(struct core *c, struct prefix_node *n, uint32_t blocks)
{
    struct prefixes *p = c->prefixes;
    SIM_ASSERT(prefix_held(n) == PREFIX_FREE && n->children == 0 && blocks <= n->to - n->from);
    n->to -= blocks;
    c->kv_blocks_cold -= (uint64_t)blocks * n->units;
    c->kv_blocks_free += (uint64_t)blocks * n->units;
    if (n->from == n->to) {
        struct prefix_node *parent = n->parent;
        ranked_remove(&p->free, &n->place);
        p->last[n->stream] = parent != NULL && parent->stream == n->stream ? parent : NULL;
        if (parent != NULL) {
            parent->children--;
        }
        FREE_PUT(p->unused, n);
    }
    core_count(c, COUNTER_KV_COLD_DROPS);
}

void prefix_evict(struct core *c, uint64_t blocks)
{
    while (blocks > 0 && c->prefixes->free.first != NULL) {
        struct prefix_node *n = (struct prefix_node *)c->prefixes->free.first;
        uint32_t there = n->to - n->from;
        uint64_t want = (blocks + n->units - 1) / n->units;
        uint32_t some = want < there ? (uint32_t)want : there;
        uint64_t units = (uint64_t)some * n->units;
        trim(c, n, some);
        blocks -= units < blocks ? units : blocks;
    }
}

void prefix_drop(struct core *c, struct prefix_node *node, uint32_t session_id)
{
    const struct trace *t = c->prefixes->trace;
    while (node != NULL && prefix_held(node) == PREFIX_FREE && node->children == 0 &&
           prefix_text_of(c->prefixes, node->stream) < t->n &&
           t->rows[prefix_text_of(c->prefixes, node->stream)].session_id == session_id) {
        struct prefix_node *parent = node->parent;
        trim(c, node, node->to - node->from);
        node = parent;
    }
}

struct prefix_node *prefix_before(struct prefix_node *n, uint32_t block)
{
    while (n != NULL && n->from >= block) {
        n = n->parent;
    }
    return n;
}

struct prefix_node *prefix_find(struct core *c, uint32_t row, uint32_t most_blocks)
{
    const struct prefixes *p = c->prefixes;
    uint32_t most = most_blocks;
    uint32_t stream = stream_of(c, row);
    /* A cached block implies all earlier ones, so the first stream with nodes has the path. */
    while (stream != TRACE_NO_ROW && p->last[stream] == NULL) {
        uint32_t from = prefix_own_from(c, stream);
        most = from < most ? from : most;
        stream = source_of(p, stream);
    }
    struct prefix_node *n = stream != TRACE_NO_ROW ? prefix_before(p->last[stream], most) : NULL;
    return n != NULL && n->to > most ? prefix_split(c, n, most) : n;
}

uint32_t prefix_way(struct core *c, uint32_t row, uint32_t from, uint32_t to)
{
    struct prefixes *p = c->prefixes;
    uint32_t n = 0;
    uint32_t end = to;
    for (uint32_t stream = stream_of(c, row); end > from; stream = source_of(p, stream)) {
        uint32_t begin = prefix_own_from(c, stream);
        if (end > begin) {
            SIM_ASSERT(n < p->n_texts);
            p->way[n++] = (struct step){stream, end};
            end = begin;
        }
        SIM_ASSERT(end <= from || prefix_text_of(p, stream) < p->trace->n);
    }
    return n;
}

/* The node of a stream that begins at a block, or NULL. */
static struct prefix_node *node_at(const struct core *c, uint32_t stream, uint32_t block)
{
    struct prefix_node *n = prefix_before(c->prefixes->last[stream], block + 1);
    bool there = n != NULL && n->stream == stream && n->to > block;
    SIM_ASSERT(!there || n->from == block);
    return there ? n : NULL;
}

struct prefix_node *prefix_go_down(struct core *c, struct prefix_node *parent, struct step s)
{
    uint32_t at = parent != NULL ? parent->to : 0;
    struct prefix_node *n = node_at(c, s.stream, at);
    if (n != NULL) {
        n = n->to > s.end ? prefix_split(c, n, s.end) : n;
        c->kv_blocks_free += (uint64_t)(n->to - at) * n->units; /* the request's copy is freed */
        return n;
    }
    n = node_new(c, s.stream, at, s.end, parent);
    c->prefixes->last[s.stream] = n;
    c->prefixes->changes++;
    if (parent != NULL) {
        parent->children++;
    }
    /* Free until the caller, whose request computed it, holds it. */
    c->kv_blocks_cold += (uint64_t)(s.end - at) * n->units;
    ranked_add(&c->prefixes->free, &n->place);
    return n;
}
