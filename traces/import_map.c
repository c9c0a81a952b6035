#include "sim/base/hash.h"
#include "traces/import.h"

size_t *import_map_at(struct import_map *m, uint64_t key)
{
    /* At most half full, so that probing stays short. */
    if (2 * m->n >= m->cap) {
        struct import_map bigger = {.cap = m->cap == 0 ? 1024 : 2 * m->cap};
        bigger.key = xcalloc(bigger.cap, sizeof *bigger.key);
        bigger.value = xmalloc(bigger.cap * sizeof *bigger.value);
        for (size_t i = 0; i < bigger.cap; i++) {
            bigger.value[i] = IMPORT_NONE;
        }
        for (size_t i = 0; i < m->cap; i++) {
            if (m->value[i] != IMPORT_NONE) {
                *import_map_at(&bigger, m->key[i]) = m->value[i];
                bigger.n++;
            }
        }
        free(m->key);
        free(m->value);
        *m = bigger;
    }
    size_t i = hash_u64(HASH_INIT, key) & (m->cap - 1);
    while (m->value[i] != IMPORT_NONE && m->key[i] != key) {
        i = (i + 1) & (m->cap - 1);
    }
    m->key[i] = key;
    return &m->value[i];
}

void import_map_put(struct import_map *m, uint64_t key, size_t value)
{
    size_t *at = import_map_at(m, key);
    m->n += *at == IMPORT_NONE;
    *at = value;
}

void import_map_fini(struct import_map *m)
{
    free(m->key);
    free(m->value);
}
