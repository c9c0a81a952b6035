/* Requests in order of (key, arrival, id), as a treap: the order of every decision that is not
 * FIFO. It can be walked, has both ends, and any member can leave. Every operation is O(log n) in
 * the mean, and nothing is allocated. */
#pragma once

#include "policies/common/reqq.h"
#include "sim/base/rng.h"

struct order {
    const struct request *root;
    uint32_t n;
    size_t at; /* bytes of per-request state before the node */
};

/* First bytes of the per-request state of every policy that orders requests. A request in a second
 * order needs a node of its own for it: `at` is its offset there. */
struct order_node {
    struct reqq_node queue; /* so that a request may be in an order now and in a queue then */
    struct order *of;       /* that holds it, or NULL */
    const struct request *left, *right;
    uint64_t level; /* looks random: whose is greater is above */
    double key;     /* also of one that has left: by it the order knows who went before */
};

/* The order that holds it by the node in front, or NULL. */
static inline struct order *order_of(const struct request *r)
{
    return ((const struct order_node *)r->own)->of;
}

static inline struct order_node *order_node(const struct order *o, const struct request *r)
{
    SIM_ASSERT(o->at % sizeof(void *) == 0); /* offsetof a node */
    return (struct order_node *)(void *)((char *)r->own + o->at);
}

static inline bool order_less(const struct order *o, const struct request *x,
                              const struct request *y)
{
    double kx = order_node(o, x)->key;
    double ky = order_node(o, y)->key;
    SIM_ASSERT(!isnan(kx) && !isnan(ky)); /* a search would lose its way */
    return kx != ky ? kx < ky : request_before(x, y);
}

static inline bool order_above(const struct order *o, const struct request *x,
                               const struct request *y)
{
    return order_node(o, x)->level > order_node(o, y)->level;
}

/* A subtree's root is between its children in the order, and above them by the random numbers. */
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

/* Makes one tree of two, at a link. All of x come before all of y. The root has the greatest of
 * numbers that look random, so that the depth is O(log n). */
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

/* Cuts a tree into what comes before r, which is not in it, and after. */
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

/* Takes r out, or does nothing when it is not in (or there is no order). */
static inline void order_remove(struct order *o, const struct request *r)
{
    if (o == NULL || !order_has(o, r)) {
        return;
    }
    SIM_ASSERT(order_ok(o));
    struct order_node *node = order_node(o, r);
    const struct request **link = &o->root;
    while (*link != r) {
        SIM_ASSERT(*link != NULL); /* its key has not changed since it was added */
        struct order_node *t = order_node(o, *link);
        link = order_less(o, r, *link) ? &t->left : &t->right;
    }
    order_merge(o, link, node->left, node->right);
    node->of = NULL;
    node->left = node->right = NULL;
    o->n--;
    SIM_ASSERT(order_ok(o));
}

/* The key of a member changed. */
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

/* The one after a member, or NULL. */
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

/* The one before a member, or NULL. */
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
