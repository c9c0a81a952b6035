#include "sim/metrics/idmap.h"

#define HEAD_BYTES sizeof(struct idmap_slot) /* 8: keeps records 8-byte aligned */
#define FIRST_SLOTS 64u
#define FIRST_SHIFT 26u

/* The first slot of an id (idmap_probe). */
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
    m->slots = xcalloc(FIRST_SLOTS, m->stride);
}

void idmap_fini(struct idmap *m)
{
    free(m->slots);
    m->slots = NULL;
}

/* Does every record stand where a look-up ends that comes for it? */
static bool all_found(const struct idmap *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i <= m->mask; i++) {
        SIM_ASSERT(idmap_slot(m, i)->used == 0 || idmap_probe(m, idmap_slot(m, i)->id) == i);
        n += idmap_slot(m, i)->used != 0;
    }
    return n == m->n && 2 * (uint64_t)n <= (uint64_t)m->mask + 1;
}

static void grow(struct idmap *m)
{
    unsigned char *old = m->slots;
    uint32_t n_old = m->mask + 1;
    m->mask = 2 * n_old - 1;
    m->shift--;
    m->slots = xcalloc(2 * (size_t)n_old, m->stride);
    for (uint32_t i = 0; i < n_old; i++) {
        const struct idmap_slot *s = (const void *)(old + (size_t)i * m->stride);
        if (s->used != 0) {
            memcpy(idmap_slot(m, idmap_probe(m, s->id)), s, m->stride);
        }
    }
    free(old);
    SIM_ASSERT(all_found(m));
}

void *idmap_add(struct idmap *m, uint32_t id)
{
    struct idmap_slot *s = idmap_slot(m, idmap_probe(m, id));
    if (s->used != 0) {
        return s + 1;
    }
    if (2 * (m->n + 1) > m->mask + 1) { /* at most half full */
        grow(m);
        s = idmap_slot(m, idmap_probe(m, id));
    }
    m->n++;
    s->used = 1;
    s->id = id;
    memset(s + 1, 0, m->record_bytes);
    return s + 1;
}

/* Closes the hole by moving back every later record of the run that may stand there. */
void idmap_remove(struct idmap *m, uint32_t id)
{
    uint32_t hole = idmap_probe(m, id);
    /* Else a look-up that passed over it would end too soon, and never find what stands behind. */
    if (idmap_slot(m, hole)->used == 0) {
        return;
    }
    for (uint32_t i = (hole + 1) & m->mask; idmap_slot(m, i)->used != 0; i = (i + 1) & m->mask) {
        uint32_t home = home_of(m, idmap_slot(m, i)->id);
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            memcpy(idmap_slot(m, hole), idmap_slot(m, i), m->stride);
            hole = i;
        }
    }
    idmap_slot(m, hole)->used = 0;
    SIM_ASSERT(m->n > 0);
    m->n--;
    SIM_ASSERT(m->mask >= 4096 ||
               all_found(m)); /* of large ones it would cost too much each time */
}

void *idmap_next(const struct idmap *m, uint32_t *at, uint32_t *id)
{
    while (*at <= m->mask) {
        struct idmap_slot *s = idmap_slot(m, (*at)++);
        if (s->used != 0) {
            *id = s->id;
            return s + 1;
        }
    }
    return NULL;
}
