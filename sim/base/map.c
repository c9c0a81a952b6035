#include "sim/base/map.h"

#include "sim/base/rng.h"

#define FIRST_CAP 64

/* Where the key is, or would be. */
static size_t place_of(const struct map *m, uint64_t key)
{
    size_t i = rng_mix64(key) & (m->cap - 1);
    while (m->value[i] != MAP_NONE && m->key[i] != key) {
        i = (i + 1) & (m->cap - 1);
    }
    return i;
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->cap = old.cap == 0 ? FIRST_CAP : 2 * old.cap;
    m->key = xmalloc(m->cap * sizeof *m->key);
    m->value = xmalloc(m->cap * sizeof *m->value);
    memset(m->value, 0xff, m->cap * sizeof *m->value); /* MAP_NONE */
    m->n = 0;
    for (size_t i = 0; i < old.cap; i++) {
        if (old.value[i] != MAP_NONE) {
            map_put(m, old.key[i], old.value[i]);
        }
    }
    map_fini(&old);
}

size_t map_find(const struct map *m, uint64_t key)
{
    return m->n > 0 ? m->value[place_of(m, key)] : MAP_NONE;
}

void map_put(struct map *m, uint64_t key, size_t value)
{
    if (2 * m->n >= m->cap) {
        grow(m);
    }
    size_t i = place_of(m, key);
    m->n += m->value[i] == MAP_NONE;
    m->key[i] = key;
    m->value[i] = value;
}

size_t map_number(struct map *m, uint64_t key)
{
    size_t number = map_find(m, key);
    if (number == MAP_NONE) {
        number = m->n;
        map_put(m, key, number);
    }
    return number;
}

void map_fini(struct map *m)
{
    free(m->key);
    free(m->value);
}
