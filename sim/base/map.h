/* A map from 64-bit keys to numbers: open addressing, at most half full. A key may be a hash of
 * what it names: two of a million things have one hash once in forty million maps. */
#pragma once

#include "sim/base/base.h"

#define MAP_NONE SIZE_MAX

/* {0} is an empty one. */
struct map {
    uint64_t *key; /* owned */
    size_t *value; /* owned; MAP_NONE: free */
    size_t n, cap; /* cap: a power of two */
};

/* MAP_NONE where nobody has put one. */
size_t map_find(const struct map *m, uint64_t key);
void map_put(struct map *m, uint64_t key, size_t value);
/* In a map that this alone fills, keys are numbered as they come, from 0. */
size_t map_number(struct map *m, uint64_t key);
void map_fini(struct map *m);
