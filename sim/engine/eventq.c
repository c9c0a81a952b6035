#include "sim/engine/eventq.h"

#include <stdlib.h>

#include "sim/base/arena.h"

void eventq_fini(struct eventq *q)
{
    free(q->heap);
    *q = (struct eventq){0};
}

static void up(struct eventq *q, uint32_t i, struct eventq_event event)
{
    for (; i > 0 && eventq_before(&event, &q->heap[(i - 1) / 4]); i = (i - 1) / 4) {
        q->heap[i] = q->heap[(i - 1) / 4];
    }
    q->heap[i] = event;
}

static void down(struct eventq *q, uint32_t i, struct eventq_event event)
{
    for (;;) {
        uint32_t first = 4 * i + 1;
        uint32_t end = first + 4 < q->n ? first + 4 : q->n;
        uint32_t best = first;
        for (uint32_t c = first + 1; c < end; c++) {
            if (eventq_before(&q->heap[c], &q->heap[best])) {
                best = c;
            }
        }
        if (first >= q->n || !eventq_before(&q->heap[best], &event)) {
            break;
        }
        q->heap[i] = q->heap[best];
        i = best;
    }
    q->heap[i] = event;
}

void eventq_push(struct eventq *q, int64_t time_ns, uint64_t order, uint64_t payload)
{
    q->heap = xroom(q->heap, q->n + 1, &q->cap, sizeof *q->heap);
    up(q, q->n++, (struct eventq_event){time_ns, order, payload});
}

/* Removes event i. */
static void take(struct eventq *q, uint32_t i)
{
    SIM_ASSERT(i < q->n);
    struct eventq_event last = q->heap[--q->n];
    if (i == q->n) {
        return;
    }
    /* The last event is from another branch, so it may have to move up or down. */
    if (i > 0 && eventq_before(&last, &q->heap[(i - 1) / 4])) {
        up(q, i, last);
    } else {
        down(q, i, last);
    }
}

struct eventq_event eventq_pop(struct eventq *q)
{
    struct eventq_event first = *eventq_peek(q);
    take(q, 0);
    return first;
}

void eventq_cancel(struct eventq *q, uint64_t order)
{
    uint32_t i = 0;
    while (q->heap[i].order != order) {
        i++;
    }
    take(q, i);
}

bool eventq_consistent(const struct eventq *q)
{
    SIM_ASSERT(q->n <= q->cap);
    for (uint32_t i = 1; i < q->n; i++) {
        SIM_ASSERT(!eventq_before(&q->heap[i], &q->heap[(i - 1) / 4]));
    }
    return true;
}
