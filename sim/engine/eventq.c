#include "sim/engine/eventq.h"

#include <stdlib.h>

#include "sim/base/arena.h"

static void grow(struct eventq *q)
{
    uint32_t cap = q->cap == 0 ? 64 : q->cap * 2;
    q->heap = xrealloc(q->heap, cap * sizeof *q->heap);
    q->position = xrealloc(q->position, cap * sizeof *q->position);
    /* Backwards, so that low slots are used first. */
    for (uint32_t slot = cap; slot-- > q->cap;) {
        q->position[slot] = q->free_slot;
        q->free_slot = slot;
    }
    q->cap = cap;
}

void eventq_init(struct eventq *q)
{
    *q = (struct eventq){.free_slot = EVENTQ_NONE};
    grow(q);
}

void eventq_fini(struct eventq *q)
{
    free(q->heap);
    free(q->position);
    *q = (struct eventq){.free_slot = EVENTQ_NONE};
}

static void place(struct eventq *q, uint32_t i, struct eventq_node node)
{
    q->heap[i] = node;
    q->position[node.slot] = i;
}

static void up(struct eventq *q, uint32_t i, struct eventq_node node)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / 4;
        if (!eventq_before(&node, &q->heap[parent])) {
            break;
        }
        place(q, i, q->heap[parent]);
        i = parent;
    }
    place(q, i, node);
}

static void down(struct eventq *q, uint32_t i, struct eventq_node node)
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
        place(q, i, q->heap[best]);
        i = best;
    }
    place(q, i, node);
}

uint32_t eventq_push(struct eventq *q, int64_t time_ns, uint64_t order, uint64_t payload)
{
    if (q->free_slot == EVENTQ_NONE) {
        grow(q);
    }
    uint32_t slot = q->free_slot;
    SIM_ASSERT(slot < q->cap && q->n < q->cap);
    q->free_slot = q->position[slot];
    up(q, q->n++, (struct eventq_node){time_ns, order, payload, slot});
    return slot;
}

/* Takes out node i, whose slot is free from now on. */
static void take(struct eventq *q, uint32_t i)
{
    SIM_ASSERT(i < q->n);
    uint32_t slot = q->heap[i].slot;
    struct eventq_node last = q->heap[--q->n];
    if (i < q->n) {
        /* It comes from another branch, and may be before its parent here, or after its children.
         */
        if (i > 0 && eventq_before(&last, &q->heap[(i - 1) / 4])) {
            up(q, i, last);
        } else {
            down(q, i, last);
        }
    }
    q->position[slot] = q->free_slot;
    q->free_slot = slot;
}

struct eventq_event eventq_pop(struct eventq *q)
{
    const struct eventq_node *first = eventq_peek(q);
    struct eventq_event ev = {first->time_ns, first->order, first->payload};
    take(q, 0);
    return ev;
}

void eventq_cancel(struct eventq *q, uint32_t handle)
{
    take(q, q->position[handle]);
}

bool eventq_consistent(const struct eventq *q)
{
    uint32_t slots = q->n;
    for (uint32_t i = 0; i < q->n; i++) {
        SIM_ASSERT(q->heap[i].slot < q->cap && q->position[q->heap[i].slot] == i);
        SIM_ASSERT(i == 0 || !eventq_before(&q->heap[i], &q->heap[(i - 1) / 4]));
    }
    for (uint32_t slot = q->free_slot; slot != EVENTQ_NONE; slot = q->position[slot]) {
        SIM_ASSERT(slot < q->cap && slots < q->cap);
        slots++;
    }
    SIM_ASSERT(slots == q->cap);
    return true;
}
