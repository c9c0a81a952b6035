/* An intrusive queue of requests: a request is in at most one, so nothing is allocated.
 * All operations are O(1) except the ordered insert, which is O(n) from the tail. */
#ifndef POLICIES_COMMON_REQQ_H
#define POLICIES_COMMON_REQQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/request.h"

struct reqq {
    const struct request *head, *tail;
    uint32_t n;
};

static inline bool reqq_empty(const struct reqq *q)
{
    return q->head == NULL;
}

static inline const struct request *reqq_next(const struct request *r)
{
    return r->slot->next;
}

/* Puts r after `before` (NULL: at the head). r must be in no queue. */
static inline void reqq_insert_after(struct reqq *q, const struct request *before,
                                     const struct request *r)
{
    const struct request *next = before == NULL ? q->head : before->slot->next;
    r->slot->queue = q;
    r->slot->prev = before;
    r->slot->next = next;
    if (before == NULL) {
        q->head = r;
    } else {
        before->slot->next = r;
    }
    if (next == NULL) {
        q->tail = r;
    } else {
        next->slot->prev = r;
    }
    q->n++;
}

static inline void reqq_push(struct reqq *q, const struct request *r)
{
    reqq_insert_after(q, q->tail, r);
}

static inline void reqq_push_front(struct reqq *q, const struct request *r)
{
    reqq_insert_after(q, NULL, r);
}

/* Takes r out of whatever queue holds it; nothing when none does. */
static inline void reqq_remove(const struct request *r)
{
    struct reqq *q = r->slot->queue;
    if (q == NULL) {
        return;
    }
    if (r->slot->prev == NULL) {
        q->head = r->slot->next;
    } else {
        r->slot->prev->slot->next = r->slot->next;
    }
    if (r->slot->next == NULL) {
        q->tail = r->slot->prev;
    } else {
        r->slot->next->slot->prev = r->slot->prev;
    }
    r->slot->queue = NULL;
    r->slot->prev = NULL;
    r->slot->next = NULL;
    q->n--;
}

static inline const struct request *reqq_pop(struct reqq *q)
{
    const struct request *r = q->head;
    if (r != NULL) {
        reqq_remove(r);
    }
    return r;
}

/* (arrival, id): the tie-break of every FIFO order. */
static inline bool request_before(const struct request *a, const struct request *b)
{
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->id < b->id;
}

/* Keeps a queue in arrival order even when an old request returns. */
static inline void reqq_insert_by_arrival(struct reqq *q, const struct request *r)
{
    const struct request *at = q->tail;
    while (at != NULL && request_before(r, at)) {
        at = at->slot->prev;
    }
    reqq_insert_after(q, at, r);
}

#endif
