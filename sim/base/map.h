/* A map from 64-bit keys to records of fixed size: open addressing, linear probing, Fibonacci
 * hashing (it spreads consecutive ids evenly, so a look-up usually touches one slot). Keys may be
 * hashes: among a million names two collide in one of forty million maps. */
#pragma once

#include "sim/base/base.h"

#define MAP_NONE SIZE_MAX

/* {0} is an empty map to numbers (size_t), {.record_bytes = n} to records. */
struct map {
    unsigned char *slots; /* owned; each is a struct map_slot and a record */
    size_t record_bytes, stride;
    uint32_t cap, n; /* number of slots, a power of two; number of records */
    uint32_t shift;  /* 32 - log2(slots) */
};

struct map_slot {
    uint64_t key, used; /* the record follows */
};

static inline struct map_slot *map_slot(const struct map *m, uint32_t i)
{
    return (struct map_slot *)(void *)(m->slots + (size_t)i * m->stride);
}

/* The first slot to try for a key: the high bits of its product with 2^32 / golden ratio. */
static inline uint32_t map_home(const struct map *m, uint64_t key)
{
    return (((uint32_t)key + (uint32_t)(key >> 32) * 0x85ebca6bu) * 0x9e3779b1u) >> m->shift;
}

/* The slot of a key, or the free slot for it. */
static inline uint32_t map_probe(const struct map *m, uint64_t key)
{
    uint32_t i = map_home(m, key);
    while (map_slot(m, i)->used != 0 && map_slot(m, i)->key != key) {
        i = (i + 1) & (m->cap - 1);
    }
    return i;
}

/* The record of a key, or NULL. Valid until the next add or remove. */
static inline void *map_record(const struct map *m, uint64_t key)
{
    if (m->n == 0) { /* most maps are empty */
        return NULL;
    }
    struct map_slot *s = map_slot(m, map_probe(m, key));
    return s->used != 0 ? s + 1 : NULL;
}

/* The record of a key, zeroed if it is new. */
void *map_add(struct map *m, uint64_t key);
void map_remove(struct map *m, uint64_t key); /* no-op without a record */

/* Iteration in slot order: *at starts at 0; NULL at the end. */
void *map_next(const struct map *m, uint32_t *at, uint64_t *key);
void map_fini(struct map *m);

/* ---- numbers ---- */

/* The number of a key; MAP_NONE if it has none. */
static inline size_t map_find(const struct map *m, uint64_t key)
{
    const size_t *number = map_record(m, key);
    return number != NULL ? *number : MAP_NONE;
}

static inline void map_put(struct map *m, uint64_t key, size_t number)
{
    *(size_t *)map_add(m, key) = number;
}

/* The number of a key. A new key gets the number of keys before it, if the map is filled by this
 * function only. */
size_t map_number(struct map *m, uint64_t key);
