/* An intrusive queue of requests: a request is in at most one, so nothing is allocated.
 * All operations are O(1) except the ordered insert, which is O(n) from the tail. */
#pragma once

#include "sim/api/request.h"
#include "sim/base/base.h"

struct reqq {
    const struct request *head, *tail;
    uint32_t n;
};

/* First bytes of request.own in every policy that uses a queue. */
struct reqq_node {
    struct reqq *queue; /* the queue that it is in, or NULL */
    const struct request *prev, *next;
};

static inline struct reqq_node *reqq_node(const struct request *r)
{
    return r->own;
}

/* Head and tail are members, without neighbours beyond them. */
static inline bool reqq_ok(const struct reqq *q)
{
    if (q->n == 0 || q->head == NULL || q->tail == NULL) {
        return q->n == 0 && q->head == NULL && q->tail == NULL;
    }
    const struct reqq_node *head = reqq_node(q->head);
    const struct reqq_node *tail = reqq_node(q->tail);
    return (q->head == q->tail) == (q->n == 1) && head->queue == q && head->prev == NULL &&
           tail->queue == q && tail->next == NULL;
}

/* A member's neighbours are in its queue and link back to it; a request in no queue has none. */
static inline bool reqq_links_ok(const struct request *r)
{
    const struct reqq_node *x = reqq_node(r);
    const struct reqq_node *prev = x->prev == NULL ? NULL : reqq_node(x->prev);
    const struct reqq_node *next = x->next == NULL ? NULL : reqq_node(x->next);
    if (x->queue == NULL) {
        return prev == NULL && next == NULL;
    }
    return (prev == NULL ? x->queue->head == r : prev->queue == x->queue && prev->next == r) &&
           (next == NULL ? x->queue->tail == r : next->queue == x->queue && next->prev == r);
}

static inline bool reqq_empty(const struct reqq *q)
{
    SIM_ASSERT(reqq_ok(q));
    return q->head == NULL;
}

/* The queue that r is in, or NULL. */
static inline const struct reqq *reqq_of(const struct request *r)
{
    SIM_ASSERT(reqq_links_ok(r));
    return reqq_node(r)->queue;
}

/* The member after r, which must be in a queue, else a walk would silently end early. */
static inline const struct request *reqq_next(const struct request *r)
{
    SIM_ASSERT(reqq_of(r) != NULL);
    return reqq_node(r)->next;
}

static inline const struct request *reqq_prev(const struct request *r)
{
    SIM_ASSERT(reqq_of(r) != NULL);
    return reqq_node(r)->prev;
}

/* Inserts r after `before` (NULL: at the head). r must be in no queue. */
static inline void reqq_insert_after(struct reqq *q, const struct request *before,
                                     const struct request *r)
{
    SIM_ASSERT(reqq_ok(q));
    SIM_ASSERT(reqq_of(r) == NULL && (before == NULL || reqq_of(before) == q));
    const struct request *next = before == NULL ? q->head : reqq_next(before);
    *reqq_node(r) = (struct reqq_node){q, before, next};
    *(before == NULL ? &q->head : &reqq_node(before)->next) = r;
    *(next == NULL ? &q->tail : &reqq_node(next)->prev) = r;
    q->n++;
    SIM_ASSERT(reqq_ok(q) && reqq_links_ok(r));
}

static inline void reqq_push(struct reqq *q, const struct request *r)
{
    reqq_insert_after(q, q->tail, r);
    SIM_ASSERT(q->tail == r); /* admissions are undone from the tail */
}

static inline void reqq_push_front(struct reqq *q, const struct request *r)
{
    reqq_insert_after(q, NULL, r);
    SIM_ASSERT(q->head == r);
}

/* Removes r from its queue, if it is in one. */
static inline void reqq_remove(const struct request *r)
{
    struct reqq_node n = *reqq_node(r);
    if (n.queue == NULL) {
        return;
    }
    SIM_ASSERT(reqq_ok(n.queue) && reqq_links_ok(r));
    *(n.prev == NULL ? &n.queue->head : &reqq_node(n.prev)->next) = n.next;
    *(n.next == NULL ? &n.queue->tail : &reqq_node(n.next)->prev) = n.prev;
    n.queue->n--;
    *reqq_node(r) = (struct reqq_node){0};
    SIM_ASSERT(reqq_ok(n.queue) && (n.next == NULL || reqq_links_ok(n.next)));
}

/* request_cancelled of a policy whose requests are only in queues. */
struct sched;
static inline void reqq_leave(struct sched *s UNUSED, const struct request *r)
{
    reqq_remove(r);
}

static inline const struct request *reqq_pop(struct reqq *q)
{
    const struct request *r = q->head;
    if (r != NULL) {
        reqq_remove(r);
        SIM_ASSERT(reqq_of(r) == NULL); /* it may be queued again */
    }
    return r;
}

/* (arrival, id): the tie-break of every FIFO order. */
static inline bool request_before(const struct request *a, const struct request *b)
{
    SIM_ASSERT(a == b || a->id != b->id); /* ids are unique, so the order is total */
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->id < b->id;
}

/* Inserts r in arrival order, even if it is an old request. */
static inline void reqq_insert_by_arrival(struct reqq *q, const struct request *r)
{
    const struct request *at = q->tail;
    while (at != NULL && request_before(r, at)) {
        at = reqq_prev(at);
    }
    reqq_insert_after(q, at, r);
    SIM_ASSERT(at == NULL || request_before(at, r));
    SIM_ASSERT(reqq_next(r) == NULL || request_before(r, reqq_next(r)));
}
