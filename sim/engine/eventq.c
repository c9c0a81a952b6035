#include "sim/engine/eventq.h"

#include <stdlib.h>

#include "sim/base/arena.h"

void eventq_init(struct eventq *q)
{
    *q = (struct eventq){.free_slot = EVENTQ_NONE};
    eventq_grow(q);
}

void eventq_fini(struct eventq *q)
{
    free(q->heap);
    free(q->position);
    *q = (struct eventq){.free_slot = EVENTQ_NONE};
}

void eventq_grow(struct eventq *q)
{
    uint32_t cap = q->cap == 0 ? 64 : q->cap * 2;
    q->heap = xrealloc(q->heap, cap * sizeof *q->heap);
    q->position = xrealloc(q->position, cap * sizeof *q->position);
    for (uint32_t slot = cap; slot-- > q->cap;) {
        q->position[slot] = q->free_slot;
        q->free_slot = slot;
    }
    q->cap = cap;
}
