/* A map from 32-bit ids to fixed-size records: open addressing, linear probing, Fibonacci hashing
 * (it spreads runs of successive ids evenly, so a look-up usually touches one slot). */
#pragma once

#include "sim/base/base.h"

struct idmap {
    unsigned char *slots; /* owned; each: uint32 used, uint32 id, record */
    size_t record_bytes, stride;
    uint32_t mask, n; /* slots - 1, records */
    uint32_t shift;   /* 32 - log2(slots) */
};

struct idmap_slot {
    uint32_t used, id; /* the record follows */
};

static inline struct idmap_slot *idmap_slot(const struct idmap *m, uint32_t i)
{
    return (struct idmap_slot *)(void *)(m->slots + (size_t)i * m->stride);
}

/* The slot of an id, or the free slot where it belongs. The first one tried is the high bits of its
 * product with 2^32 / golden ratio. */
static inline uint32_t idmap_probe(const struct idmap *m, uint32_t id)
{
    uint32_t i = (id * 0x9e3779b1u) >> m->shift;
    while (idmap_slot(m, i)->used != 0 && idmap_slot(m, i)->id != id) {
        i = (i + 1) & m->mask;
    }
    return i;
}

/* The record of an id, or NULL. Pointers hold until the next add or remove. */
static inline void *idmap_find(const struct idmap *m, uint32_t id)
{
    if (m->n == 0) { /* the usual map of what few requests have */
        return NULL;
    }
    struct idmap_slot *s = idmap_slot(m, idmap_probe(m, id));
    return s->used != 0 ? s + 1 : NULL;
}

void idmap_init(struct idmap *m, size_t record_bytes);
void idmap_fini(struct idmap *m);
/* The record of an id, zeroed when it is new. */
void *idmap_add(struct idmap *m, uint32_t id);
void idmap_remove(struct idmap *m, uint32_t id); /* nothing when there is none */
/* Iteration in slot order: *at starts at 0; NULL at the end. */
void *idmap_next(const struct idmap *m, uint32_t *at, uint32_t *id);
