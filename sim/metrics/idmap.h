/* A map from 32-bit ids to fixed-size records: open addressing, linear probing, Fibonacci hashing
 * (it spreads runs of successive ids evenly, so a look-up usually touches one slot). */
#ifndef SIM_METRICS_IDMAP_H
#define SIM_METRICS_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap {
    unsigned char *slots; /* owned; each: uint32 used, uint32 id, record */
    size_t record_bytes, stride;
    uint32_t mask, n; /* slots - 1, records */
    uint32_t shift;   /* 32 - log2(slots) */
    uint32_t version; /* of where records are: adding and removing change it */
};

void idmap_init(struct idmap *m, size_t record_bytes);
void idmap_fini(struct idmap *m);
/* The record of an id, or NULL. Pointers hold until the next add or remove. */
void *idmap_find(const struct idmap *m, uint32_t id);
/* The record of an id, zeroed when it is new. */
void *idmap_add(struct idmap *m, uint32_t id);
void idmap_remove(struct idmap *m, uint32_t id); /* nothing when there is none */
/* Iteration in slot order: *at starts at 0; NULL at the end. */
void *idmap_next(const struct idmap *m, uint32_t *at, uint32_t *id);

#endif
