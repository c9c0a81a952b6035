#include "sim/base/map.h"

#define FIRST_CAP 64u
#define FIRST_SHIFT 26u

/* Whether a look-up of every record's key finds that record. */
static bool all_found(const struct map *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->cap; i++) {
        SIM_ASSERT(map_slot(m, i)->used == 0 || map_probe(m, map_slot(m, i)->key) == i);
        n += map_slot(m, i)->used != 0;
    }
    return n == m->n && 2 * (uint64_t)n <= (uint64_t)m->cap;
}

static void grow(struct map *m)
{
    struct map old = *m;
    size_t bytes = m->record_bytes > 0 ? m->record_bytes : sizeof(size_t);
    m->stride = sizeof(struct map_slot) + (bytes + 7) / 8 * 8; /* records are 8-byte aligned */
    m->cap = old.cap == 0 ? FIRST_CAP : 2 * old.cap;
    m->shift = old.cap == 0 ? FIRST_SHIFT : old.shift - 1;
    m->slots = xcalloc(m->cap, m->stride);
    for (uint32_t i = 0; i < old.cap; i++) {
        const struct map_slot *s = map_slot(&old, i);
        if (s->used != 0) {
            memcpy(map_slot(m, map_probe(m, s->key)), s, m->stride);
        }
    }
    free(old.slots);
    SIM_ASSERT(all_found(m));
}

void *map_add(struct map *m, uint64_t key)
{
    void *known = map_record(m, key);
    if (known != NULL) {
        return known;
    }
    if (2 * (m->n + 1) > m->cap) { /* at most half full */
        grow(m);
    }
    struct map_slot *s = map_slot(m, map_probe(m, key));
    memset(s, 0, m->stride);
    *s = (struct map_slot){key, 1};
    m->n++;
    return s + 1;
}

/* A look-up stops at the first free slot, so a hole would hide the records after it. Each later
 * record of the run that may be in the hole therefore moves into it, which leaves a new hole. */
void map_remove(struct map *m, uint64_t key)
{
    if (map_record(m, key) == NULL) {
        return;
    }
    uint32_t mask = m->cap - 1;
    uint32_t hole = map_probe(m, key);
    for (uint32_t i = (hole + 1) & mask; map_slot(m, i)->used != 0; i = (i + 1) & mask) {
        uint32_t home = map_home(m, map_slot(m, i)->key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            memcpy(map_slot(m, hole), map_slot(m, i), m->stride);
            hole = i;
        }
    }
    map_slot(m, hole)->used = 0;
    m->n--;
    SIM_ASSERT(mask >= 4096 || all_found(m)); /* too slow in large maps to do at each removal */
}

void *map_next(const struct map *m, uint32_t *at, uint64_t *key)
{
    while (*at < m->cap) {
        struct map_slot *s = map_slot(m, (*at)++);
        if (s->used != 0) {
            *key = s->key;
            return s + 1;
        }
    }
    return NULL;
}

size_t map_number(struct map *m, uint64_t key)
{
    uint32_t n = m->n;
    size_t *number = map_add(m, key);
    if (m->n > n) {
        *number = n;
    }
    return *number;
}

void map_fini(struct map *m)
{
    free(m->slots);
}
