/* Sets of request ids by number: equal sets have one number. Batches repeat for many launches, so a
 * launch keeps the number. */
#pragma once

#include "sim/base/base.h"

struct sets {
    uint32_t *ids; /* owned: members of all sets, one after the other */
    size_t n_ids, cap_ids;
    size_t *first; /* owned: set i has ids[first[i] .. first[i + 1]) */
    uint32_t n;
    size_t cap;
    uint32_t *slots; /* owned: open addressing; number + 1, 0 free */
    uint32_t mask;
};

void sets_init(struct sets *s);
/* The number of a set; `v` in the order that makes it equal. O(n) expected. */
uint32_t sets_number(struct sets *s, const uint32_t *v, size_t n);
