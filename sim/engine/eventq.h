/* Pending events: an indexed implicit 4-ary heap with cancellable, reschedulable handles.
 *
 * Order: (time_ns, order) lexicographically; `order` makes it total, so equal instants never depend
 * on insertion history. Handles are slot numbers, reused after pop or cancel; using a dead one is a
 * bug of the caller. Every operation is O(log n); memory doubles and never shrinks. The heap array
 * holds keys beside slot numbers, so a sift touches one array (anchors: 16 to 77 ns at our sizes).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EVENTQ_NONE UINT32_MAX

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
    struct eventq_node *heap; /* n nodes */
    uint32_t *position;       /* slot -> index in heap; free slots chain here */
    uint32_t n, cap;
    uint32_t free_slot; /* EVENTQ_NONE: none */
};

void eventq_init(struct eventq *q);
void eventq_fini(struct eventq *q);
void eventq_grow(struct eventq *q); /* by eventq_push only */

static inline bool eventq_empty(const struct eventq *q)
{
    return q->n == 0;
}

static inline bool eventq_before(const struct eventq_node *a, const struct eventq_node *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->order < b->order);
}

static inline void eventq_place(struct eventq *q, uint32_t i, struct eventq_node node)
{
    q->heap[i] = node;
    q->position[node.slot] = i;
}

static inline void eventq_up(struct eventq *q, uint32_t i, struct eventq_node node)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / 4;
        if (!eventq_before(&node, &q->heap[parent])) {
            break;
        }
        eventq_place(q, i, q->heap[parent]);
        i = parent;
    }
    eventq_place(q, i, node);
}

static inline void eventq_down(struct eventq *q, uint32_t i, struct eventq_node node)
{
    for (;;) {
        uint32_t first = 4 * i + 1;
        if (first >= q->n) {
            break;
        }
        uint32_t end = first + 4 < q->n ? first + 4 : q->n;
        uint32_t best = first;
        for (uint32_t c = first + 1; c < end; c++) {
            if (eventq_before(&q->heap[c], &q->heap[best])) {
                best = c;
            }
        }
        if (!eventq_before(&q->heap[best], &node)) {
            break;
        }
        eventq_place(q, i, q->heap[best]);
        i = best;
    }
    eventq_place(q, i, node);
}

/* Adds an event; returns its handle. */
static inline uint32_t eventq_push(struct eventq *q, int64_t time_ns, uint64_t order,
                                   uint64_t payload)
{
    if (q->free_slot == EVENTQ_NONE) {
        eventq_grow(q);
    }
    uint32_t slot = q->free_slot;
    q->free_slot = q->position[slot];
    eventq_up(q, q->n++, (struct eventq_node){time_ns, order, payload, slot});
    return slot;
}

/* Removes the node at index i. */
static inline void eventq_remove_at(struct eventq *q, uint32_t i)
{
    uint32_t slot = q->heap[i].slot;
    struct eventq_node last = q->heap[--q->n];
    if (i < q->n) {
        if (i > 0 && eventq_before(&last, &q->heap[(i - 1) / 4])) {
            eventq_up(q, i, last);
        } else {
            eventq_down(q, i, last);
        }
    }
    q->position[slot] = q->free_slot;
    q->free_slot = slot;
}

/* The earliest event; precondition: not empty. Valid until the next change. */
static inline const struct eventq_node *eventq_peek(const struct eventq *q)
{
    return &q->heap[0];
}

/* When the earliest event but those two is; `none_ns` when there is none. It is among the first
 * three levels of the heap. */
static inline int64_t eventq_time_but(const struct eventq *q, uint32_t a, uint32_t b,
                                      int64_t none_ns)
{
    uint32_t end = q->n < 1 + 4 + 16 ? q->n : 1 + 4 + 16;
    int64_t at_ns = none_ns;
    for (uint32_t i = 0; i < end; i++) {
        const struct eventq_node *node = &q->heap[i];
        if (node->slot != a && node->slot != b && node->time_ns < at_ns) {
            at_ns = node->time_ns;
        }
    }
    return at_ns;
}

/* Takes the earliest event; precondition: not empty. */
static inline struct eventq_event eventq_pop(struct eventq *q)
{
    struct eventq_event ev = {q->heap[0].time_ns, q->heap[0].order, q->heap[0].payload};
    eventq_remove_at(q, 0);
    return ev;
}

static inline void eventq_cancel(struct eventq *q, uint32_t handle)
{
    eventq_remove_at(q, q->position[handle]);
}

/* Moves an event in time; its order key stays. */
static inline void eventq_reschedule(struct eventq *q, uint32_t handle, int64_t time_ns)
{
    uint32_t i = q->position[handle];
    struct eventq_node node = q->heap[i];
    node.time_ns = time_ns;
    if (i > 0 && eventq_before(&node, &q->heap[(i - 1) / 4])) {
        eventq_up(q, i, node);
    } else {
        eventq_down(q, i, node);
    }
}
