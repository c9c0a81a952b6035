/* The least total, by best-first search (A*).
 *
 * Loads may start only at compute boundaries and at ends of loads. With single residency any
 * schedule can be shifted left onto those instants without getting longer. There the search never
 * loads the very block that would compute next: compute would wait for all of the load, and loading
 * it after the prefill costs no more. With keep_old a later start can be better. A load that ends
 * just after its block started leaves one more fast G1 compute. The optimum is then over
 * left-shifted schedules.
 *
 * The search visits states in which the loader is idle: (position, rest of the running compute,
 * switched blocks). The cost is the time so far. The bound on the time left is max(computes left
 * under the present graphs, loads left). It never overestimates, and never falls by more than the
 * time spent. So each state is expanded at most once, with its least cost, and the first complete
 * state taken is optimal. */
#include "hwmodels/graphs_machine.h"
#include "sim/base/hash.h"

#define NO_NODE UINT32_MAX
#define ACTION_IDLE UINT8_MAX /* to the next compute boundary; other values: load this block */

struct state {
    uint32_t position;
    int64_t rest; /* of the running compute; 0 at a boundary, before the next one starts */
    uint64_t switched;
};

struct node {
    struct state at;
    int64_t cost; /* least time known to reach it */
    uint32_t parent;
    uint8_t action; /* that led here from the parent */
    bool closed;
};

struct entry {
    int64_t bound; /* cost + least time left */
    int64_t cost;
    uint32_t node;
};

struct search {
    const struct graphs_instance *g;
    uint32_t n_positions;
    struct node *nodes;
    uint32_t n_nodes, max_nodes;
    uint32_t *table; /* open addressing over node numbers; a power of two */
    uint32_t table_size;
    struct entry *heap;
    size_t n_heap, heap_capacity;
    int64_t best; /* total of the best complete schedule known */
};

/* Orders by lower bound, then by progress, then by age. */
static bool before(const struct entry *a, const struct entry *b)
{
    if (a->bound != b->bound) {
        return a->bound < b->bound;
    }
    return a->cost != b->cost ? a->cost > b->cost : a->node < b->node;
}

static void heap_push(struct search *x, struct entry e)
{
    x->heap = xroom(x->heap, x->n_heap + 1, &x->heap_capacity, sizeof *x->heap);
    size_t i = x->n_heap++;
    while (i > 0 && before(&e, &x->heap[(i - 1) / 2])) {
        x->heap[i] = x->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    x->heap[i] = e;
}

static struct entry heap_pop(struct search *x)
{
    struct entry top = x->heap[0];
    struct entry e = x->heap[--x->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= x->n_heap) {
            break;
        }
        if (child + 1 < x->n_heap && before(&x->heap[child + 1], &x->heap[child])) {
            child++;
        }
        if (!before(&x->heap[child], &e)) {
            break;
        }
        x->heap[i] = x->heap[child];
        i = child;
    }
    x->heap[i] = e;
    return top;
}

static uint32_t slot_of(const struct search *x, const struct state *s)
{
    uint64_t h = hash_u64(hash_u64(s->position, (uint64_t)s->rest), s->switched);
    uint32_t i = (uint32_t)h & (x->table_size - 1);
    while (x->table[i] != NO_NODE) {
        const struct state *o = &x->nodes[x->table[i]].at;
        if (o->switched == s->switched && o->rest == s->rest && o->position == s->position) {
            break;
        }
        i = (i + 1) & (x->table_size - 1);
    }
    return i;
}

static void table_grow(struct search *x)
{
    x->table_size = x->table_size == 0 ? 4096 : 2 * x->table_size;
    x->table = xrealloc(x->table, (size_t)x->table_size * sizeof(*x->table));
    memset(x->table, 0xff, (size_t)x->table_size * sizeof(*x->table)); /* NO_NODE */
    for (uint32_t n = 0; n < x->n_nodes; n++) {
        x->table[slot_of(x, &x->nodes[n].at)] = n;
    }
}

static int64_t compute_time(const struct search *x, uint32_t block, uint64_t switched)
{
    return (switched >> block & 1) != 0 ? x->g->d[block] : x->g->p[block];
}

/* Sum of the remaining loads. */
static int64_t loads_left(const struct search *x, uint64_t switched)
{
    int64_t sum = 0;
    for (uint32_t b = 0; b < x->g->n_blocks; b++) {
        sum += (switched >> b & 1) != 0 ? 0 : x->g->s[b];
    }
    return sum;
}

/* Sum of the remaining computes without further switches. */
static int64_t computes_left(const struct search *x, const struct state *s)
{
    uint32_t n = x->g->n_blocks;
    uint32_t next = s->position + (s->rest > 0 ? 1 : 0); /* first one that has not started */
    int64_t sum = s->rest;
    for (uint32_t b = 0; b < n; b++) {
        uint32_t passed = next / n + (next % n > b ? 1 : 0);
        sum += (int64_t)(x->g->n_chunks - passed) * compute_time(x, b, s->switched);
    }
    return sum;
}

static int64_t least_left(const struct search *x, const struct state *s)
{
    int64_t computes = computes_left(x, s);
    int64_t loads = loads_left(x, s->switched);
    return computes > loads ? computes : loads;
}

/* Without blocks to load or computes to do, least_left is exact. */
static bool is_complete(const struct search *x, const struct state *s)
{
    return s->position == x->n_positions || s->switched == (UINT64_C(1) << x->g->n_blocks) - 1;
}

/* The state when the load of `block` ends, started at `s`. */
static struct state after_load(const struct search *x, const struct state *s, uint32_t block)
{
    struct state to = *s;
    int64_t left = x->g->s[block];
    while (left > 0 && to.position < x->n_positions) {
        if (to.rest == 0) {
            uint32_t b = to.position % x->g->n_blocks;
            if (b == block && !x->g->keep_old) {
                break; /* stall to the end of the load */
            }
            to.rest = compute_time(x, b, to.switched);
        }
        if (to.rest > left) {
            to.rest -= left;
            break;
        }
        left -= to.rest;
        to.rest = 0;
        to.position++;
    }
    to.switched |= UINT64_C(1) << block;
    return to;
}

/* Records that `to` can be reached at `cost`. False: the node budget is used up. */
static bool reach(struct search *x, const struct state *to, int64_t cost, uint32_t parent,
                  uint8_t action)
{
    int64_t bound = cost + least_left(x, to);
    /* The heuristics' schedule is at least as good. If nothing better remains the heap becomes
     * empty, which proves that schedule optimal. */
    if (bound >= x->best) {
        return true;
    }
    uint32_t slot = slot_of(x, to);
    uint32_t n = x->table[slot];
    if (n != NO_NODE && (x->nodes[n].closed || x->nodes[n].cost <= cost)) {
        return true;
    }
    if (n == NO_NODE) {
        if (x->n_nodes == x->max_nodes) {
            return false;
        }
        x->nodes = xgrow(x->nodes, x->n_nodes, sizeof *x->nodes);
        n = x->n_nodes++;
        x->table[slot] = n;
    }
    x->nodes[n] = (struct node){*to, cost, parent, action, false};
    /* An older entry of the node remains in the heap, and is skipped later because its cost
     * differs. That is cheaper than finding it. */
    heap_push(x, (struct entry){bound, cost, n});
    /* At most half full, so that linear probing is short. */
    if (x->n_nodes > x->table_size / 2) {
        table_grow(x);
    }
    return true;
}

/* Adds the results of all decisions in a state. False: the node budget is used up. */
static bool expand(struct search *x, uint32_t n)
{
    struct node from = x->nodes[n]; /* a copy: the array may move */
    uint32_t here = from.at.position % x->g->n_blocks;
    for (uint32_t b = 0; b < x->g->n_blocks; b++) {
        if ((from.at.switched >> b & 1) != 0 || (b == here && !x->g->keep_old)) {
            continue;
        }
        struct state to = after_load(x, &from.at, b);
        if (!reach(x, &to, from.cost + x->g->s[b], n, (uint8_t)b)) {
            return false;
        }
    }
    struct state to = {from.at.position + 1, 0, from.at.switched};
    int64_t rest = from.at.rest > 0 ? from.at.rest : compute_time(x, here, from.at.switched);
    return reach(x, &to, from.cost + rest, n, ACTION_IDLE);
}

/* Replays the decisions that lead to a node, so that the machine confirms the search. */
static void replay(const struct search *x, uint32_t n, struct graphs_result *out)
{
    uint32_t count = 0;
    for (uint32_t i = n; x->nodes[i].parent != NO_NODE; i = x->nodes[i].parent) {
        count++;
    }
    OWNED uint8_t *actions = xcalloc((size_t)count + 1, sizeof(*actions));
    uint32_t at = count;
    for (uint32_t i = n; x->nodes[i].parent != NO_NODE; i = x->nodes[i].parent) {
        actions[--at] = x->nodes[i].action;
    }
    struct graphs_machine m;
    graphs_machine_init(&m, x->g, out, true);
    for (uint32_t i = 0; i < count; i++) {
        if (actions[i] == ACTION_IDLE) {
            graphs_machine_run_to(&m, m.position + 1);
            continue;
        }
        graphs_machine_load(&m, actions[i]);
        while (m.loading != GRAPHS_NO_BLOCK) {
            graphs_machine_step(&m);
        }
    }
    graphs_machine_finish(&m);
}

/* The best schedule of the heuristics, which is the result unless the search finds a better one. */
static void incumbent(const struct graphs_instance *g, struct graphs_result *out)
{
    static void (*const solve[])(const struct graphs_instance *, struct graphs_result *) = {
        graphs_farthest_solve, graphs_late_start_solve};
    solve[0](g, out);
    struct graphs_result other;
    solve[1](g, &other);
    if (other.total < out->total) {
        graphs_result_fini(out);
        *out = other;
    } else {
        graphs_result_fini(&other);
    }
    out->start = 0;
}

/* Node of the optimal schedule, or NO_NODE if the incumbent is optimal, or the best found so far;
 * then *bound is the proven lower bound. */
static uint32_t search(struct search *x, uint64_t *expanded, int64_t *bound)
{
    struct state root = {0, 0, 0};
    table_grow(x);
    bool within = reach(x, &root, 0, NO_NODE, ACTION_IDLE);
    *bound = x->best;
    while (within && x->n_heap > 0) {
        struct entry e = heap_pop(x);
        struct node *n = &x->nodes[e.node];
        if (n->closed || n->cost != e.cost) {
            continue; /* reached more cheaply since */
        }
        /* The bounds taken from the heap never fall, so the last one is a proven lower bound,
         * reported if the node budget ends the search. */
        *bound = e.bound;
        if (is_complete(x, &n->at)) {
            return e.node;
        }
        n->closed = true;
        ++*expanded;
        within = expand(x, e.node);
    }
    if (within) {
        *bound = x->best;
    }
    return NO_NODE;
}

void graphs_exact_solve(const struct graphs_instance *g, struct graphs_result *out)
{
    incumbent(g, out);
    struct search x = {.g = g, .n_positions = g->n_blocks * g->n_chunks, .best = out->total};
    uint64_t budget = g->max_nodes == 0 ? GRAPHS_DEFAULT_NODES : g->max_nodes;
    x.max_nodes = budget < NO_NODE / 2 ? (uint32_t)budget : NO_NODE / 2;
    uint64_t expanded = 0;
    int64_t bound;
    uint32_t n = search(&x, &expanded, &bound);
    if (n != NO_NODE) {
        graphs_result_fini(out);
        replay(&x, n, out);
        SIM_REQUIRE(out->total == bound, "replay of the optimal schedule takes another time");
    }
    out->nodes = expanded;
    out->lower_bound = bound;
    out->label = out->total == bound ? GRAPHS_OPTIMAL : GRAPHS_UNFINISHED;
    if (g->keep_old) {
        /* The proof holds for left-shifted schedules; only the bound at the start holds for all. */
        out->lower_bound = least_left(&x, &(struct state){0, 0, 0});
        out->label = out->total == out->lower_bound ? GRAPHS_OPTIMAL
                     : out->label == GRAPHS_OPTIMAL ? GRAPHS_LEFT_SHIFTED
                                                    : GRAPHS_UNFINISHED;
    }
    free(x.nodes);
    free(x.table);
    free(x.heap);
}
