/* Requests in order of (key, arrival, id), as a treap: for all decisions that are not FIFO. Every
 * operation, including removal of any member and steps to neighbours, is O(log n) on average.
 * Nothing is allocated. */
#pragma once

#include "policies/common/reqq.h"
#include "sim/base/rng.h"

struct order {
    const struct request *root;
    uint32_t n;
    size_t at; /* offset of the node in request.own */
};

/* First bytes of request.own in every policy that orders requests. Membership in a second order
 * needs another node, whose offset is order.at. */
struct order_node {
    struct reqq_node queue; /* for policies with both orders and queues */
    struct order *of;       /* the order that it is in, or NULL */
    const struct request *left, *right;
    uint64_t level; /* pseudo-random priority of the treap */
    double key;     /* also valid after the request left */
};

/* The order that r is in by its first node, or NULL. */
static inline struct order *order_of(const struct request *r)
{
    return ((const struct order_node *)r->own)->of;
}

static inline struct order_node *order_node(const struct order *o, const struct request *r)
{
    SIM_ASSERT(o->at % sizeof(void *) == 0); /* offset of a node */
    return (struct order_node *)(void *)((char *)r->own + o->at);
}

static inline bool order_less(const struct order *o, const struct request *x,
                              const struct request *y)
{
    double kx = order_node(o, x)->key;
    double ky = order_node(o, y)->key;
    SIM_ASSERT(!isnan(kx) && !isnan(ky)); /* NaN has no order */
    return kx != ky ? kx < ky : request_before(x, y);
}

static inline bool order_above(const struct order *o, const struct request *x,
                               const struct request *y)
{
    return order_node(o, x)->level > order_node(o, y)->level;
}

/* Checks the root of a subtree against its children: order of keys, and levels. */
static inline bool order_root_ok(const struct order *o, const struct request *r)
{
    const struct order_node *x = order_node(o, r);
    return x->of == o &&
           (x->left == NULL || (order_less(o, x->left, r) && order_above(o, r, x->left))) &&
           (x->right == NULL || (order_less(o, r, x->right) && order_above(o, r, x->right)));
}

static inline bool order_ok(const struct order *o)
{
    return o->root == NULL ? o->n == 0 : o->n > 0 && order_root_ok(o, o->root);
}

/* Merges two trees at a link. All of x are before all of y. The root has the greatest pseudo-random
 * level, so that the depth is O(log n). */
static inline void order_merge(struct order *o, const struct request **link,
                               const struct request *x, const struct request *y)
{
    while (x != NULL && y != NULL) {
        SIM_ASSERT(order_less(o, x, y));
        if (order_above(o, x, y)) {
            *link = x;
            link = &order_node(o, x)->right;
            x = *link;
        } else {
            *link = y;
            link = &order_node(o, y)->left;
            y = *link;
        }
    }
    *link = x != NULL ? x : y;
}

/* Splits a tree into members before and after r, which is not in it. */
static inline void order_split(struct order *o, const struct request *tree, const struct request *r,
                               const struct request **before, const struct request **after)
{
    while (tree != NULL) {
        SIM_ASSERT(tree != r);
        struct order_node *t = order_node(o, tree);
        if (order_less(o, tree, r)) {
            *before = tree;
            before = &t->right;
            tree = t->right;
        } else {
            *after = tree;
            after = &t->left;
            tree = t->left;
        }
    }
    *before = *after = NULL;
}

static inline void order_add(struct order *o, const struct request *r, double key)
{
    struct order_node *node = order_node(o, r);
    SIM_ASSERT(node->of == NULL && order_ok(o));
    node->of = o;
    node->key = key;
    node->level = rng_mix64(r->id);
    const struct request **link = &o->root;
    while (*link != NULL && order_above(o, *link, r)) {
        struct order_node *t = order_node(o, *link);
        link = order_less(o, r, *link) ? &t->left : &t->right;
    }
    order_split(o, *link, r, &node->left, &node->right);
    *link = r;
    o->n++;
    SIM_ASSERT(order_ok(o) && order_root_ok(o, r));
}

static inline bool order_has(const struct order *o, const struct request *r)
{
    return order_node(o, r)->of == o;
}

/* Removes r. Does nothing if r is not in the order, or o is NULL. */
static inline void order_remove(struct order *o, const struct request *r)
{
    if (o == NULL || !order_has(o, r)) {
        return;
    }
    SIM_ASSERT(order_ok(o));
    struct order_node *node = order_node(o, r);
    const struct request **link = &o->root;
    while (*link != r) {
        SIM_ASSERT(*link != NULL); /* else its key was changed while in the order */
        struct order_node *t = order_node(o, *link);
        link = order_less(o, r, *link) ? &t->left : &t->right;
    }
    order_merge(o, link, node->left, node->right);
    node->of = NULL;
    node->left = node->right = NULL;
    o->n--;
    SIM_ASSERT(order_ok(o));
}

/* Changes the key of a member. */
static inline void order_rekey(struct order *o, const struct request *r, double key)
{
    SIM_ASSERT(order_has(o, r));
    order_remove(o, r);
    order_add(o, r, key);
}

static inline const struct request *order_first(const struct order *o)
{
    SIM_ASSERT(order_ok(o));
    const struct request *r = o->root;
    while (r != NULL && order_node(o, r)->left != NULL) {
        r = order_node(o, r)->left;
    }
    return r;
}

static inline const struct request *order_last(const struct order *o)
{
    SIM_ASSERT(order_ok(o));
    const struct request *r = o->root;
    while (r != NULL && order_node(o, r)->right != NULL) {
        r = order_node(o, r)->right;
    }
    return r;
}

/* The member after r, or NULL. */
static inline const struct request *order_next(const struct order *o, const struct request *r)
{
    SIM_ASSERT(order_node(o, r)->of == o);
    const struct request *next = NULL;
    for (const struct request *t = o->root; t != NULL;) {
        bool later = order_less(o, r, t);
        next = later ? t : next;
        t = later ? order_node(o, t)->left : order_node(o, t)->right;
    }
    SIM_ASSERT((next == NULL) == (r == order_last(o)));
    return next;
}

/* The member before r, or NULL. */
static inline const struct request *order_prev(const struct order *o, const struct request *r)
{
    SIM_ASSERT(order_node(o, r)->of == o);
    const struct request *prev = NULL;
    for (const struct request *t = o->root; t != NULL;) {
        bool earlier = order_less(o, t, r);
        prev = earlier ? t : prev;
        t = earlier ? order_node(o, t)->right : order_node(o, t)->left;
    }
    SIM_ASSERT((prev == NULL) == (r == order_first(o)));
    return prev;
}
