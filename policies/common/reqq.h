/* An intrusive queue of requests: a request is in at most one, so nothing is allocated.
 * All operations are O(1) except the ordered insert, which is O(n) from the tail. */
#pragma once

#include "sim/api/request.h"
#include "sim/base/base.h"

struct reqq {
    const struct request *head, *tail;
    uint32_t n;
};

/* First bytes of the per-request state of every policy that uses a queue. */
struct reqq_node {
    struct reqq *queue; /* that holds it, or NULL */
    const struct request *prev, *next;
};

static inline struct reqq_node *reqq_node(const struct request *r)
{
    return r->own;
}

static inline bool reqq_empty(const struct reqq *q)
{
    return q->head == NULL;
}

/* The queue that holds it, or NULL. */
static inline const struct reqq *reqq_of(const struct request *r)
{
    return reqq_node(r)->queue;
}

static inline const struct request *reqq_next(const struct request *r)
{
    return reqq_node(r)->next;
}

static inline const struct request *reqq_prev(const struct request *r)
{
    return reqq_node(r)->prev;
}

/* Puts r after `before` (NULL: at the head). r must be in no queue. */
static inline void reqq_insert_after(struct reqq *q, const struct request *before,
                                     const struct request *r)
{
    SIM_ASSERT(reqq_of(r) == NULL && (before == NULL || reqq_of(before) == q));
    const struct request *next = before == NULL ? q->head : reqq_next(before);
    *reqq_node(r) = (struct reqq_node){q, before, next};
    *(before == NULL ? &q->head : &reqq_node(before)->next) = r;
    *(next == NULL ? &q->tail : &reqq_node(next)->prev) = r;
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

/* Takes r out of the queue that holds it; nothing when none does. */
static inline void reqq_remove(const struct request *r)
{
    struct reqq_node n = *reqq_node(r);
    if (n.queue == NULL) {
        return;
    }
    SIM_ASSERT(n.queue->n > 0 && (n.prev != NULL || n.queue->head == r));
    *(n.prev == NULL ? &n.queue->head : &reqq_node(n.prev)->next) = n.next;
    *(n.next == NULL ? &n.queue->tail : &reqq_node(n.next)->prev) = n.prev;
    n.queue->n--;
    *reqq_node(r) = (struct reqq_node){0};
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
        at = reqq_prev(at);
    }
    reqq_insert_after(q, at, r);
}
