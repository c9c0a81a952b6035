#include "sim/metrics/idmap.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"

#define HEAD_BYTES 8 /* keeps records 8-byte aligned */
#define FIRST_SLOTS 64u
#define FIRST_SHIFT 26u

struct slot_head {
    uint32_t used, id;
};

static struct slot_head *slot_at(const struct idmap *m, uint32_t i)
{
    return (struct slot_head *)(void *)(m->slots + (size_t)i * m->stride);
}

static void *slot_record(struct slot_head *s)
{
    return (unsigned char *)s + HEAD_BYTES;
}

/* Multiplication by 2^32 / golden ratio; the high bits are the slot. */
static uint32_t home_of(const struct idmap *m, uint32_t id)
{
    return (id * 0x9e3779b1u) >> m->shift;
}

void idmap_init(struct idmap *m, size_t record_bytes)
{
    m->record_bytes = record_bytes;
    m->stride = HEAD_BYTES + (record_bytes + 7) / 8 * 8;
    m->mask = FIRST_SLOTS - 1;
    m->shift = FIRST_SHIFT;
    m->n = 0;
    m->version = 0;
    m->slots = xcalloc(FIRST_SLOTS, m->stride);
}

void idmap_fini(struct idmap *m)
{
    free(m->slots);
    m->slots = NULL;
}

/* The slot of an id, or the free slot where it belongs. */
static uint32_t probe(const struct idmap *m, uint32_t id)
{
    uint32_t i = home_of(m, id);
    while (slot_at(m, i)->used != 0 && slot_at(m, i)->id != id) {
        i = (i + 1) & m->mask;
    }
    return i;
}

void *idmap_find(const struct idmap *m, uint32_t id)
{
    struct slot_head *s = slot_at(m, probe(m, id));
    return s->used != 0 ? slot_record(s) : NULL;
}

static void grow(struct idmap *m)
{
    unsigned char *old = m->slots;
    uint32_t n_old = m->mask + 1;
    m->mask = 2 * n_old - 1;
    m->shift--;
    m->slots = xcalloc(2 * (size_t)n_old, m->stride);
    for (uint32_t i = 0; i < n_old; i++) {
        const struct slot_head *s = (const void *)(old + (size_t)i * m->stride);
        if (s->used != 0) {
            memcpy(slot_at(m, probe(m, s->id)), s, m->stride);
        }
    }
    free(old);
}

void *idmap_add(struct idmap *m, uint32_t id)
{
    struct slot_head *s = slot_at(m, probe(m, id));
    if (s->used != 0) {
        return slot_record(s);
    }
    if (2 * (m->n + 1) > m->mask + 1) { /* at most half full */
        grow(m);
        s = slot_at(m, probe(m, id));
    }
    m->n++;
    m->version++;
    s->used = 1;
    s->id = id;
    memset(slot_record(s), 0, m->record_bytes);
    return slot_record(s);
}

/* Closes the hole by moving back every later record of the run that may stand there. */
void idmap_remove(struct idmap *m, uint32_t id)
{
    uint32_t hole = probe(m, id);
    if (slot_at(m, hole)->used == 0) {
        return;
    }
    for (uint32_t i = (hole + 1) & m->mask; slot_at(m, i)->used != 0; i = (i + 1) & m->mask) {
        uint32_t home = home_of(m, slot_at(m, i)->id);
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            memcpy(slot_at(m, hole), slot_at(m, i), m->stride);
            hole = i;
        }
    }
    slot_at(m, hole)->used = 0;
    m->version++;
    m->n--;
}

void *idmap_next(const struct idmap *m, uint32_t *at, uint32_t *id)
{
    while (*at <= m->mask) {
        struct slot_head *s = slot_at(m, (*at)++);
        if (s->used != 0) {
            *id = s->id;
            return slot_record(s);
        }
    }
    return NULL;
}
