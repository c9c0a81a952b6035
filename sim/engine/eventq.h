/* Pending events, with cancellable handles: the earliest few in a short sorted
 * array, the others in an indexed implicit 4-ary heap.
 *
 * Order: (time_ns, order) lexicographically; `order` makes it total, so equal instants never depend
 * on insertion history. Handles are slot numbers, reused after pop or cancel; using a dead one is a
 * bug of the caller. Every operation is O(log n), and a few instructions on events that come soon:
 * most are ends of host work, which come and go while arrivals and timers wait.
 * Memory doubles and never shrinks. The heap array holds keys with slot numbers, so a sift
 * touches one array (anchors: 16 to 77 ns at our sizes).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/err.h"

#define EVENTQ_NONE UINT32_MAX
#define EVENTQ_NEAR 8
#define EVENTQ_IS_NEAR UINT32_MAX /* instead of a position in the heap */

struct eventq_event {
    int64_t time_ns;
    uint64_t order;
    uint64_t payload;
};

struct eventq_node {
    int64_t time_ns;
    uint64_t order;
    uint64_t payload;
    uint32_t slot;
};

struct eventq {
    struct eventq_node near[EVENTQ_NEAR]; /* the earliest last; all before those of the heap */
    uint32_t n_near;
    struct eventq_node *heap; /* n nodes */
    uint32_t *position;       /* slot -> index in heap; free slots chain here */
    uint32_t n, cap;
    uint32_t free_slot; /* EVENTQ_NONE: none */
};

void eventq_init(struct eventq *q);
void eventq_fini(struct eventq *q);

/* Only for the functions below. */
void eventq_grow(struct eventq *q);
void eventq_heap_push(struct eventq *q, struct eventq_node node);
void eventq_heap_remove(struct eventq *q, uint32_t i);
/* Moves the latest event of a full near array to the heap, or the node itself. */
void eventq_spill(struct eventq *q, struct eventq_node node);

/* For assertions: events are in order, every handle leads to its event and every slot is taken or
 * free. Ends the process at the clause that does not hold. O(cap). */
bool eventq_consistent(const struct eventq *q);

static inline bool eventq_empty(const struct eventq *q)
{
    return q->n_near + q->n == 0;
}

static inline bool eventq_before(const struct eventq_node *a, const struct eventq_node *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->order < b->order);
}

static inline void eventq_insert(struct eventq *q, struct eventq_node node)
{
    if (q->n > 0 && !eventq_before(&node, &q->heap[0])) {
        eventq_heap_push(q, node);
        return;
    }
    if (q->n_near == EVENTQ_NEAR) {
        eventq_spill(q, node);
        return;
    }
    uint32_t i = q->n_near++;
    for (; i > 0 && eventq_before(&q->near[i - 1], &node); i--) {
        q->near[i] = q->near[i - 1];
    }
    q->near[i] = node;
    q->position[node.slot] = EVENTQ_IS_NEAR;
}

/* Where a near event is. */
static inline uint32_t eventq_near_index(const struct eventq *q, uint32_t handle)
{
    SIM_ASSERT(q->n_near > 0 && q->position[handle] == EVENTQ_IS_NEAR);
    uint32_t i = q->n_near - 1;
    while (q->near[i].slot != handle) {
        i--;
    }
    return i;
}

/* Takes out a near event. */
static inline struct eventq_node eventq_near_take(struct eventq *q, uint32_t i)
{
    struct eventq_node node = q->near[i];
    for (q->n_near--; i < q->n_near; i++) {
        q->near[i] = q->near[i + 1];
    }
    return node;
}

static inline void eventq_free(struct eventq *q, uint32_t slot)
{
    q->position[slot] = q->free_slot;
    q->free_slot = slot;
}

/* Adds an event; returns its handle. */
static inline uint32_t eventq_push(struct eventq *q, int64_t time_ns, uint64_t order,
                                   uint64_t payload)
{
    if (q->free_slot == EVENTQ_NONE) {
        eventq_grow(q);
    }
    uint32_t slot = q->free_slot;
    SIM_ASSERT(slot < q->cap && q->n_near + q->n < q->cap);
    q->free_slot = q->position[slot];
    eventq_insert(q, (struct eventq_node){time_ns, order, payload, slot});
    return slot;
}

/* The earliest event; precondition: not empty. Valid until the next change. */
static inline const struct eventq_node *eventq_peek(const struct eventq *q)
{
    SIM_ASSERT(!eventq_empty(q));
    return q->n_near > 0 ? &q->near[q->n_near - 1] : &q->heap[0];
}

/* Takes the earliest event; precondition: not empty. */
static inline struct eventq_event eventq_pop(struct eventq *q)
{
    const struct eventq_node *first = eventq_peek(q);
    struct eventq_event ev = {first->time_ns, first->order, first->payload};
    uint32_t slot = first->slot;
    if (q->n_near > 0) {
        q->n_near--;
    } else {
        eventq_heap_remove(q, 0);
    }
    eventq_free(q, slot);
    return ev;
}

static inline void eventq_cancel(struct eventq *q, uint32_t handle)
{
    if (q->position[handle] == EVENTQ_IS_NEAR) {
        (void)eventq_near_take(q, eventq_near_index(q, handle));
    } else {
        eventq_heap_remove(q, q->position[handle]);
    }
    eventq_free(q, handle);
}
