/* Things in the order in which they give way: by rank, and of one rank the oldest first. A thing
 * has its place as its first member, so that the place's address is its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ranked {
    struct ranked *before, *after; /* NULL at the ends */
    uint32_t rank;                 /* does not change while it is in a list */
};

struct ranked_list { /* {0}: empty */
    struct ranked *first, *last;
};

/* Puts it right behind another one, which has its rank or less; NULL: first. */
static inline void ranked_add_behind(struct ranked_list *l, struct ranked *before, struct ranked *x)
{
    x->before = before;
    struct ranked **link = x->before != NULL ? &x->before->after : &l->first;
    x->after = *link;
    *link = x;
    *(x->after != NULL ? &x->after->before : &l->last) = x;
}

/* Puts it behind those of its rank. O(things of higher rank). */
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
