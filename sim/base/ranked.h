/* Intrusive lists in eviction order: by rank, and first in first out within a rank. `struct ranked`
 * is the first member of an object, so that both have the same address. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ranked {
    struct ranked *before, *after; /* NULL at the ends */
    uint32_t rank;                 /* constant while x is in a list */
};

struct ranked_list { /* {0}: empty */
    struct ranked *first, *last;
};

/* Inserts x after `before`, whose rank is not above x's; NULL: at the head. */
static inline void ranked_add_behind(struct ranked_list *l, struct ranked *before, struct ranked *x)
{
    x->before = before;
    struct ranked **link = x->before != NULL ? &x->before->after : &l->first;
    x->after = *link;
    *link = x;
    *(x->after != NULL ? &x->after->before : &l->last) = x;
}

/* Inserts x after all elements of its rank. O(elements of higher rank). */
static inline void ranked_add(struct ranked_list *l, struct ranked *x)
{
    struct ranked *before = l->last;
    while (before != NULL && before->rank > x->rank) {
        before = before->before;
    }
    ranked_add_behind(l, before, x);
}

static inline void ranked_remove(struct ranked_list *l, const struct ranked *x)
{
    *(x->before != NULL ? &x->before->after : &l->first) = x->after;
    *(x->after != NULL ? &x->after->before : &l->last) = x->before;
}
