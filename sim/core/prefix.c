#include "sim/core/prefix.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/core/core.h"

/* Blocks up to `end` of a stream, on the way from a root to a row. */
struct step {
    uint32_t stream, end;
};

struct prefixes {
    const struct trace *trace;           /* borrowed */
    struct prefix_node **last;           /* owned: by stream, its deepest node; NULL: none */
    uint32_t n_texts;                    /* streams of the trace */
    uint32_t n_streams;                  /* stream s of model m is m n_texts + s */
    struct prefix_node *unused;          /* by parent */
    struct prefix_node *oldest, *newest; /* of the free ones: children before their parents */
    struct step *way;                    /* owned; scratch */
    uint32_t cap_way;
    uint32_t n_nodes;          /* ever made */
    uint64_t changes, matched; /* of the tree, and those that waiting requests know of */
};

struct prefixes *prefixes_new(struct core *c)
{
    const struct trace *t = c->setup->trace;
    if (t->graph == NULL || t->graph->source == NULL || !c->setup->prefix_reuse) {
        return NULL;
    }
    struct prefixes *p = xcalloc(1, sizeof *p);
    p->trace = t;
    p->n_texts = (uint32_t)t->n + t->graph->n_groups;
    p->n_streams = p->n_texts * c->n_models;
    p->last = xcalloc(p->n_streams + 1, sizeof(struct prefix_node *));
    return p;
}

void prefixes_free(struct prefixes *p)
{
    if (p != NULL) {
        free(p->last);
        free(p->way);
        free(p);
    }
}

/* The trace's stream: the same for all models. */
static inline uint32_t text_of(const struct prefixes *p, uint32_t stream)
{
    return stream < p->n_texts ? stream : stream % p->n_texts;
}

/* A row's prompt and answer, in its model. */
static uint32_t stream_of(const struct core *c, uint32_t row)
{
    return row + c->prefixes->n_texts * trace_graph_model(c->prefixes->trace->graph, row);
}

/* The stream that a stream begins with, in the same model; TRACE_NO_ROW: none. */
static uint32_t source_of(const struct prefixes *p, uint32_t stream)
{
    uint32_t text = text_of(p, stream);
    uint32_t source = text < p->trace->n ? p->trace->graph->source[text] : TRACE_NO_ROW;
    return source != TRACE_NO_ROW ? source + (stream - text) : TRACE_NO_ROW;
}

/* The block from which on a stream is its own. */
static uint32_t own_from(const struct core *c, uint32_t stream)
{
    const struct prefixes *p = c->prefixes;
    bool begins = source_of(p, stream) != TRACE_NO_ROW;
    uint32_t text = text_of(p, stream);
    return begins ? p->trace->rows[text].prefix_tokens / c->setup->kv_block_tokens : 0;
}

/* ---- nodes ---- */

static enum prefix_hold held(const struct prefix_node *n)
{
    return n->holders[PREFIX_USED] > 0   ? PREFIX_USED
           : n->holders[PREFIX_IDLE] > 0 ? PREFIX_IDLE
                                         : PREFIX_FREE;
}

/* A node that nobody holds gives way after the others of its rank. */
static void link_free(struct prefixes *p, struct prefix_node *n)
{
    struct prefix_node *after = p->newest;
    while (after != NULL && after->rank > n->rank) {
        after = after->older;
    }
    n->older = after;
    n->newer = after != NULL ? after->newer : p->oldest;
    *(n->older != NULL ? &n->older->newer : &p->oldest) = n;
    *(n->newer != NULL ? &n->newer->older : &p->newest) = n;
}

static void unlink_free(struct prefixes *p, struct prefix_node *n)
{
    *(n->older != NULL ? &n->older->newer : &p->oldest) = n->newer;
    *(n->newer != NULL ? &n->newer->older : &p->newest) = n->older;
}

/* Counts a node's blocks as held otherwise than before. */
static void count_as(struct core *c, struct prefix_node *n, enum prefix_hold was,
                     enum prefix_hold is)
{
    uint64_t blocks = (uint64_t)(n->to - n->from) * n->units;
    c->kv_blocks_cold -= was == PREFIX_FREE ? blocks : 0;
    c->kv_blocks_idle -= was == PREFIX_IDLE ? blocks : 0;
    c->kv_blocks_cold += is == PREFIX_FREE ? blocks : 0;
    c->kv_blocks_idle += is == PREFIX_IDLE ? blocks : 0;
    if (was == PREFIX_FREE) {
        unlink_free(c->prefixes, n);
    } else if (is == PREFIX_FREE) {
        link_free(c->prefixes, n);
    }
}

/* Up the path, as far as anything changes. A parent is let go after its children and has at least
 * their rank. It gives way after them, so that the first free node is a leaf. */
void prefix_hold(struct core *c, struct prefix_node *node, enum prefix_hold from,
                 enum prefix_hold to)
{
    for (struct prefix_node *n = node; n != NULL && from != to; n = n->parent) {
        enum prefix_hold was = held(n);
        SIM_ASSERT(from == PREFIX_FREE || n->holders[from] > 0);
        n->holders[from] -= from != PREFIX_FREE;
        n->holders[to] += to != PREFIX_FREE;
        enum prefix_hold is = held(n);
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
    struct prefix_node *n = p->unused;
    uint32_t number = n != NULL ? n->number : p->n_nodes++;
    if (n != NULL) {
        p->unused = n->parent;
    } else {
        n = arena_alloc(&c->arena, sizeof *n);
    }
    SIM_ASSERT(from < to && (parent != NULL ? parent->to == from : from == 0));
    *n = (struct prefix_node){.parent = parent,
                              .stream = stream,
                              .from = from,
                              .to = to,
                              .units = c->models[stream / p->n_texts].kv_units,
                              .number = number};
    return n;
}

/* Parts a node: the upper one ends at that block. Whoever holds the node holds the lower one. */
static struct prefix_node *split(struct core *c, struct prefix_node *lower, uint32_t at)
{
    SIM_ASSERT(lower->from < at && at < lower->to);
    struct prefix_node *upper = node_new(c, lower->stream, lower->from, at, lower->parent);
    lower->from = at;
    lower->parent = upper;
    upper->children = 1;
    upper->rank = lower->rank;
    enum prefix_hold how = held(lower);
    if (how == PREFIX_FREE) {
        link_free(c->prefixes, upper); /* for a moment: whoever asked for it takes it */
    } else {
        upper->holders[how] = 1;
    }
    return upper;
}

/* Takes blocks from the end of a free leaf, and the leaf where it has no more. */
static void trim(struct core *c, struct prefix_node *n, uint32_t blocks)
{
    struct prefixes *p = c->prefixes;
    SIM_ASSERT(held(n) == PREFIX_FREE && n->children == 0 && blocks <= n->to - n->from);
    n->to -= blocks;
    c->kv_blocks_cold -= (uint64_t)blocks * n->units;
    c->kv_blocks_free += (uint64_t)blocks * n->units;
    if (n->from == n->to) {
        struct prefix_node *parent = n->parent;
        unlink_free(p, n);
        p->last[n->stream] = parent != NULL && parent->stream == n->stream ? parent : NULL;
        if (parent != NULL) {
            parent->children--;
        }
        n->parent = p->unused;
        p->unused = n;
    }
    core_count(c, COUNTER_KV_COLD_DROPS);
}

void prefix_evict(struct core *c, uint64_t blocks)
{
    while (blocks > 0 && c->prefixes->oldest != NULL) {
        struct prefix_node *n = c->prefixes->oldest;
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
    while (node != NULL && held(node) == PREFIX_FREE && node->children == 0 &&
           text_of(c->prefixes, node->stream) < t->n &&
           t->rows[text_of(c->prefixes, node->stream)].session_id == session_id) {
        struct prefix_node *parent = node->parent;
        trim(c, node, node->to - node->from);
        node = parent;
    }
}

/* ---- prefixes ---- */

/* The deepest node of the path that begins before a block. */
static struct prefix_node *before(struct prefix_node *n, uint32_t block)
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
    /* Blocks are cached with all before them: the first stream that has any has the whole path. */
    while (stream != TRACE_NO_ROW && p->last[stream] == NULL) {
        uint32_t from = own_from(c, stream);
        most = from < most ? from : most;
        stream = source_of(p, stream);
    }
    struct prefix_node *n = stream != TRACE_NO_ROW ? before(p->last[stream], most) : NULL;
    return n != NULL && n->to > most ? split(c, n, most) : n;
}

void prefix_rank(struct full_request *r)
{
    for (struct prefix_node *n = r->prefix; n != NULL && n->rank < r->kv_rank; n = n->parent) {
        n->rank = r->kv_rank; /* it is held, and so in no order yet */
    }
}

uint64_t prefix_hash(const struct core *c, uint32_t row, uint32_t tokens)
{
    const struct trace *t = c->setup->trace;
    uint32_t stream = row;
    while (t->graph != NULL && t->graph->source != NULL && stream < t->n &&
           t->graph->source[stream] != TRACE_NO_ROW && tokens <= t->rows[stream].prefix_tokens) {
        stream = t->graph->source[stream];
    }
    return hash_u64(hash_u64(HASH_INIT, stream), tokens);
}

/* The request holds this node instead. */
static void take(struct core *c, struct full_request *r, struct prefix_node *node)
{
    enum prefix_hold how = r->prefix_idle ? PREFIX_IDLE : PREFIX_USED;
    prefix_hold(c, node, PREFIX_FREE, how); /* first: the old one may be on its path */
    prefix_hold(c, r->prefix, how, PREFIX_FREE);
    r->prefix = node;
    prefix_rank(r);
}

void prefix_match(struct core *c, struct full_request *r)
{
    uint32_t block_tokens = c->setup->kv_block_tokens;
    SIM_ASSERT(r->pub->kv_tokens == 0 || r->prefix_idle || r->pub->kv_swapped);
    struct prefix_node *node = prefix_find(c, r->row, (r->pub->input_tokens - 1) / block_tokens);
    uint32_t blocks = node != NULL ? node->to : 0;
    uint32_t tokens = blocks * block_tokens;
    /* What is on flash is read back only where it is more. */
    if (tokens > r->pub->kv_tokens || (r->pub->kv_swapped && tokens == r->pub->kv_tokens)) {
        r->prefix_idle = true;
        take(c, r, node);
        r->kv_blocks = blocks;
        r->pub->kv_tokens = tokens;
        r->pub->reused_tokens = tokens;
        r->pub->kv_swapped = false;
    }
}

void prefix_match_waiting(struct core *c)
{
    struct prefixes *p = c->prefixes;
    if (p->matched == p->changes) {
        return;
    }
    p->matched = p->changes;
    for (struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        /* Neither served, nor made to give up what it had found. */
        bool waits = r->pub->first_service_ns == TIME_NEVER_NS && r->pub->pass == NULL &&
                     r->pub->preemptions == 0;
        if (waits && !r->pub->kv_swapped && !r->kv_moving &&
            (r->prefix_idle || r->pub->kv_tokens == 0)) {
            prefix_match(c, r);
        }
    }
}

void prefix_changed(struct core *c)
{
    c->prefixes->changes++;
}

/* The streams of a row's blocks [from, to), the last one first. Returns their number. */
static uint32_t way_of(struct core *c, uint32_t row, uint32_t from, uint32_t to)
{
    struct prefixes *p = c->prefixes;
    uint32_t n = 0;
    uint32_t end = to;
    for (uint32_t stream = stream_of(c, row); end > from; stream = source_of(p, stream)) {
        uint32_t begin = own_from(c, stream);
        if (end > begin) {
            if (n == p->cap_way) {
                p->cap_way = p->cap_way == 0 ? 64 : 2 * p->cap_way;
                p->way = xrealloc(p->way, p->cap_way * sizeof *p->way);
            }
            p->way[n++] = (struct step){stream, end};
            end = begin;
        }
        SIM_ASSERT(end <= from || text_of(p, stream) < p->trace->n);
    }
    return n;
}

/* The stream's node that begins at a block, or NULL. */
static struct prefix_node *node_at(const struct core *c, uint32_t stream, uint32_t block)
{
    struct prefix_node *n = before(c->prefixes->last[stream], block + 1);
    bool there = n != NULL && n->stream == stream && n->to > block;
    SIM_ASSERT(!there || n->from == block);
    return there ? n : NULL;
}

/* The next node below `parent` on the way to a block: what is there, or the request's own blocks,
 * which are then the tree's. */
static struct prefix_node *go_down(struct core *c, struct prefix_node *parent, struct step s)
{
    uint32_t at = parent != NULL ? parent->to : 0;
    struct prefix_node *n = node_at(c, s.stream, at);
    if (n != NULL) {
        n = n->to > s.end ? split(c, n, s.end) : n;
        c->kv_blocks_free +=
            (uint64_t)(n->to - at) * n->units; /* there are two: the request's copy goes */
        return n;
    }
    n = node_new(c, s.stream, at, s.end, parent);
    c->prefixes->last[s.stream] = n;
    c->prefixes->changes++;
    if (parent != NULL) {
        parent->children++;
    }
    /* for a moment: whoever computed it holds it */
    c->kv_blocks_cold += (uint64_t)(s.end - at) * n->units;
    link_free(c->prefixes, n);
    return n;
}

void prefix_share(struct core *c, struct full_request *r)
{
    uint32_t full = r->pub->kv_tokens / c->setup->kv_block_tokens;
    uint32_t shared = kv_blocks_shared(r);
    if (full <= shared || r->pub->kv_swapped || r->kv_moving) {
        return;
    }
    SIM_ASSERT(full <= r->kv_blocks && !r->prefix_idle);
    struct prefix_node *n = r->prefix;
    for (uint32_t k = way_of(c, r->row, shared, full); k-- > 0;) {
        const struct step s = c->prefixes->way[k];
        while ((n != NULL ? n->to : 0) < s.end) {
            n = go_down(c, n, s);
        }
    }
    take(c, r, n);
}

void prefix_keep(struct core *c, struct full_request *r, uint32_t blocks)
{
    struct prefix_node *n = before(r->prefix, blocks);
    take(c, r, n != NULL && n->to > blocks ? split(c, n, blocks) : n);
}

/* ---- checks ---- */

/* What holds every node: counted from requests, pinned sessions and children. */
static uint32_t *holders_of(const struct core *c)
{
    const struct prefixes *p = c->prefixes;
    uint32_t *n = xcalloc(3 * (size_t)p->n_nodes + 3, sizeof *n);
    for (const struct full_request *r = c->live_head; r != NULL; r = r->next_live) {
        if (r->prefix != NULL) {
            n[3 * r->prefix->number + (r->prefix_idle ? PREFIX_IDLE : PREFIX_USED)]++;
        }
    }
    for (uint32_t i = c->cold_held.oldest; i != KV_NO_COLD; i = c->cold[i].next) {
        if (c->cold[i].prefix != NULL) {
            n[3 * c->cold[i].prefix->number + PREFIX_USED]++;
        }
    }
    for (uint32_t s = 0; s < p->n_streams; s++) {
        for (const struct prefix_node *x = p->last[s]; x != NULL && x->stream == s; x = x->parent) {
            if (x->parent != NULL) {
                n[3 * x->parent->number + held(x)]++;
            }
        }
    }
    return n;
}

bool prefixes_consistent(const struct core *c, uint64_t of[PREFIX_USED + 1])
{
    const struct prefixes *p = c->prefixes;
    memset(of, 0, (PREFIX_USED + 1) * sizeof *of);
    if (p == NULL) {
        return true;
    }
    uint32_t *n = holders_of(c);
    uint64_t free_nodes = 0;
    for (uint32_t s = 0; s < p->n_streams; s++) {
        for (const struct prefix_node *x = p->last[s]; x != NULL && x->stream == s; x = x->parent) {
            const uint32_t *by = &n[(size_t)3 * x->number];
            SIM_ASSERT(x->from < x->to && x->to > own_from(c, s));
            SIM_ASSERT(x->parent != NULL ? x->parent->to == x->from : x->from == 0);
            SIM_ASSERT(x->parent == NULL || x->parent->rank >= x->rank);
            SIM_ASSERT(x->holders[PREFIX_IDLE] == by[PREFIX_IDLE]);
            SIM_ASSERT(x->holders[PREFIX_USED] == by[PREFIX_USED]);
            SIM_ASSERT(held(x) != PREFIX_FREE || x->children == by[PREFIX_FREE]);
            of[held(x)] += (uint64_t)(x->to - x->from) * x->units;
            free_nodes += held(x) == PREFIX_FREE;
        }
    }
    free(n);
    const struct prefix_node *older = NULL;
    for (const struct prefix_node *x = p->oldest; x != NULL; x = x->newer) {
        SIM_ASSERT(x->older == older && held(x) == PREFIX_FREE && free_nodes > 0);
        SIM_ASSERT(older != NULL ? older->rank <= x->rank : x->children == 0);
        older = x;
        free_nodes--;
    }
    SIM_ASSERT(p->newest == older && free_nodes == 0);
    return true;
}
