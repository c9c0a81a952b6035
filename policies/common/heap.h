/* A binary heap of requests by (key, arrival, id), smallest first. The order of every decision that
 * is not FIFO. O(log n) per operation; the owner keeps `index` (in its per-request bytes) so that
 * any member can be removed. */
#pragma once

#include "policies/common/reqq.h"

#define HEAP_NONE UINT32_MAX

/* First bytes of the per-request state of every policy that uses a heap. A request in a second heap
 * needs a node of its own for it: `at` is its offset there. */
struct heap_node {
    struct reqq_node queue; /* so that a request may be in a heap now and in a queue then */
    double key;
    uint32_t index; /* + 1; 0: in no heap */
};

struct heap {
    const struct request **a; /* owned */
    uint32_t n;
    size_t cap;
    size_t at; /* bytes of per-request state before the node */
};

static inline struct heap_node *heap_node(const struct request *r)
{
    return r->own;
}

static inline struct heap_node *heap_node_in(const struct heap *h, const struct request *r)
{
    SIM_ASSERT(h->at % sizeof(void *) == 0); /* offsetof a node */
    return (struct heap_node *)(void *)((char *)r->own + h->at);
}

static inline bool heap_before(const struct heap *h, const struct request *x,
                               const struct request *y)
{
    double kx = heap_node_in(h, x)->key;
    double ky = heap_node_in(h, y)->key;
    SIM_ASSERT(!isnan(kx) && !isnan(ky)); /* it would go before nobody, wherever it is */
    return kx != ky ? kx < ky : request_before(x, y);
}

/* Member i has its place, and goes not before the one above it. */
static inline bool heap_above_ok(const struct heap *h, uint32_t i)
{
    return i < h->n && heap_node_in(h, h->a[i])->index == i + 1 &&
           (i == 0 || !heap_before(h, h->a[i], h->a[(i - 1) / 2]));
}

/* Neither of the two below member i goes before it. */
static inline bool heap_below_ok(const struct heap *h, uint32_t i)
{
    return i < h->n && (2 * i + 1 >= h->n || !heap_before(h, h->a[2 * i + 1], h->a[i])) &&
           (2 * i + 2 >= h->n || !heap_before(h, h->a[2 * i + 2], h->a[i]));
}

static inline bool heap_placed(const struct heap *h, uint32_t i)
{
    return heap_above_ok(h, i) && heap_below_ok(h, i);
}

/* The first and the last, between whom every change happens, are where they belong. */
static inline bool heap_ok(const struct heap *h)
{
    return h->n <= h->cap && (h->n == 0 || (heap_placed(h, 0) && heap_placed(h, h->n - 1)));
}

static inline void heap_put(struct heap *h, uint32_t i, const struct request *r)
{
    SIM_ASSERT(i < h->n);
    h->a[i] = r;
    heap_node_in(h, r)->index = i + 1;
}

static inline void heap_up(struct heap *h, uint32_t i)
{
    const struct request *r = h->a[i];
    while (i > 0 && heap_before(h, r, h->a[(i - 1) / 2])) {
        heap_put(h, i, h->a[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(h, i, r);
    SIM_ASSERT(heap_above_ok(h, i));
}

static inline void heap_down(struct heap *h, uint32_t i)
{
    const struct request *r = h->a[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n) {
            break;
        }
        if (child + 1 < h->n && heap_before(h, h->a[child + 1], h->a[child])) {
            child++;
        }
        if (!heap_before(h, h->a[child], r)) {
            break;
        }
        heap_put(h, i, h->a[child]);
        i = child;
    }
    heap_put(h, i, r);
    SIM_ASSERT(heap_below_ok(h, i)); /* not above: iter_rekey_all builds from the bottom */
}

static inline void heap_push(struct heap *h, const struct request *r, double key)
{
    SIM_ASSERT(heap_node_in(h, r)->index == 0);
    h->a = xroom(h->a, h->n + 1, &h->cap, sizeof *h->a);
    heap_node_in(h, r)->key = key;
    h->a[h->n] = r;
    heap_up(h, h->n++);
    SIM_ASSERT(heap_placed(h, heap_node_in(h, r)->index - 1) && heap_ok(h));
}

static inline bool heap_contains(const struct request *r)
{
    return heap_node(r)->index != 0;
}

/* The node is this heap's alone. */
static inline bool heap_has(const struct heap *h, const struct request *r)
{
    uint32_t i = heap_node_in(h, r)->index;
    SIM_ASSERT(i == 0 || (i <= h->n && h->a[i - 1] == r));
    return i != 0;
}

static inline void heap_remove(struct heap *h, const struct request *r)
{
    uint32_t i = heap_node_in(h, r)->index;
    if (i == 0) {
        return;
    }
    i--;
    SIM_ASSERT(i < h->n && h->a[i] == r); /* else another heap has it */
    heap_node_in(h, r)->index = 0;
    const struct request *last = h->a[--h->n];
    if (last != r) {
        h->a[i] = last;
        heap_node_in(h, last)->index = i + 1;
        heap_up(h, i);
        heap_down(h, heap_node_in(h, last)->index - 1);
        SIM_ASSERT(heap_placed(h, heap_node_in(h, last)->index - 1));
    }
    SIM_ASSERT(heap_ok(h));
}

static inline const struct request *heap_top(const struct heap *h)
{
    SIM_ASSERT(heap_ok(h)); /* whoever changed a key in place has moved its owner */
    return h->n == 0 ? NULL : h->a[0];
}

static inline const struct request *heap_pop(struct heap *h)
{
    const struct request *r = heap_top(h);
    if (r != NULL) {
        heap_remove(h, r);
        SIM_ASSERT(h->n == 0 || heap_before(h, r, h->a[0]));
    }
    return r;
}

/* The key of a member changed. */
static inline void heap_rekey(struct heap *h, const struct request *r, double key)
{
    SIM_ASSERT(heap_has(h, r));
    heap_node_in(h, r)->key = key;
    heap_up(h, heap_node_in(h, r)->index - 1);
    heap_down(h, heap_node_in(h, r)->index - 1);
    SIM_ASSERT(heap_placed(h, heap_node_in(h, r)->index - 1));
}

static inline void heap_fini(struct heap *h)
{
    free(h->a);
    *h = (struct heap){0};
}
