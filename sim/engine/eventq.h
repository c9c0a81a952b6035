/* Pending events: an implicit 4-ary heap.
 *
 * Order: (time_ns, order) lexicographically; `order` is unique: it names an event, and ties do not
 * depend on the history of insertion. Operations are O(log n), except eventq_cancel, which is O(n)
 * and which the simulator does not use. Memory doubles and never shrinks. {0} is an empty queue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/halt.h"

#define EVENTQ_NONE UINT64_MAX /* never the order of an event */

struct eventq_event {
    int64_t time_ns;
    uint64_t order;
    uint64_t payload;
};

struct eventq {
    struct eventq_event *heap; /* owned; n events */
    uint32_t n;
    size_t cap;
};

void eventq_fini(struct eventq *q);

/* Checks the heap order, for assertions. Ends the process if it is broken. O(n). */
bool eventq_consistent(const struct eventq *q);

void eventq_push(struct eventq *q, int64_t time_ns, uint64_t order, uint64_t payload);
/* Removes and returns the earliest event; precondition: not empty. */
struct eventq_event eventq_pop(struct eventq *q);
/* Removes the event of that order; precondition: it exists. */
void eventq_cancel(struct eventq *q, uint64_t order);

static inline bool eventq_empty(const struct eventq *q)
{
    return q->n == 0;
}

static inline bool eventq_before(const struct eventq_event *a, const struct eventq_event *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->order < b->order);
}

/* The earliest event; precondition: not empty. Valid until the next change. */
static inline const struct eventq_event *eventq_peek(const struct eventq *q)
{
    SIM_ASSERT(!eventq_empty(q));
    return &q->heap[0];
}
