/* A map from a 32-bit id (client, session) to a fixed-size record: open addressing, no deletion.
 * The memory of policies that remember agents or flows. Expected O(1). */
#pragma once

#include "sim/base/base.h"

struct table_entry {
    uint32_t id;
    bool used;
    uint32_t live;   /* for the owner: members present */
    double value[2]; /* for the owner */
};

struct table {
    struct table_entry *e; /* owned */
    uint32_t cap, n;       /* cap a power of two */
};

/* At most half full, so every search ends soon at a free place. */
static inline bool table_ok(const struct table *t)
{
    return t->cap == 0 ? t->n == 0 && t->e == NULL
                       : (t->cap & (t->cap - 1)) == 0 && t->n * 2 <= t->cap;
}

static inline struct table_entry *table_slot(const struct table *t, uint32_t id)
{
    SIM_ASSERT(t->cap > 0 && table_ok(t));
    uint32_t i = (id * 2654435761u) & (t->cap - 1); /* Knuth's multiplicative hash */
    while (t->e[i].used && t->e[i].id != id) {
        i = (i + 1) & (t->cap - 1);
    }
    return &t->e[i];
}

/* The record of an id, zeroed when new. Valid until the next table_get of a new id. */
static inline struct table_entry *table_get(struct table *t, uint32_t id)
{
    if ((t->n + 1) * 2 > t->cap) {
        struct table bigger = {xcalloc(t->cap == 0 ? 64 : t->cap * 2, sizeof *t->e),
                               t->cap == 0 ? 64 : t->cap * 2, t->n};
        for (uint32_t i = 0; i < t->cap; i++) {
            if (t->e[i].used) {
                *table_slot(&bigger, t->e[i].id) = t->e[i];
            }
        }
        free(t->e);
        *t = bigger;
        SIM_ASSERT(table_ok(t));
    }
    struct table_entry *e = table_slot(t, id);
    if (!e->used) {
        SIM_ASSERT(e->live == 0 && e->value[0] == 0.0 && e->value[1] == 0.0); /* none is deleted */
        e->used = true;
        e->id = id;
        t->n++;
    }
    SIM_ASSERT(table_slot(t, id) == e);
    return e;
}

static inline void table_fini(struct table *t)
{
    free(t->e);
    *t = (struct table){0};
}
