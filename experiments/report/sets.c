#include "experiments/report/sets.h"

#define FIRST_SLOTS 1024u

void sets_init(struct sets *s)
{
    *s = (struct sets){.mask = FIRST_SLOTS - 1};
    s->slots = xcalloc(FIRST_SLOTS, sizeof *s->slots);
    s->first = xroom(NULL, 1, &s->cap, sizeof *s->first);
    s->first[0] = 0;
}

/* FNV-1a of the ids. */
static uint32_t hash_of(const uint32_t *v, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ v[i]) * 16777619u;
    }
    return h ^ (h >> 15);
}

static bool is_set(const struct sets *s, uint32_t number, const uint32_t *v, size_t n)
{
    return s->first[number + 1] - s->first[number] == n &&
           (n == 0 || memcmp(&s->ids[s->first[number]], v, n * sizeof *v) == 0);
}

static void place(struct sets *s, uint32_t number)
{
    size_t begin = s->first[number];
    uint32_t i = hash_of(&s->ids[begin], s->first[number + 1] - begin) & s->mask;
    while (s->slots[i] != 0) {
        i = (i + 1) & s->mask;
    }
    s->slots[i] = number + 1;
}

static void grow(struct sets *s)
{
    s->mask = 2 * s->mask + 1;
    free(s->slots);
    s->slots = xcalloc((size_t)s->mask + 1, sizeof *s->slots);
    for (uint32_t i = 0; i < s->n; i++) {
        place(s, i);
    }
}

uint32_t sets_number(struct sets *s, const uint32_t *v, size_t n)
{
    for (uint32_t i = hash_of(v, n) & s->mask; s->slots[i] != 0; i = (i + 1) & s->mask) {
        if (is_set(s, s->slots[i] - 1, v, n)) {
            return s->slots[i] - 1;
        }
    }
    s->ids = xroom(s->ids, s->n_ids + n + 1, &s->cap_ids, sizeof *s->ids);
    memcpy(&s->ids[s->n_ids], v, n * sizeof *v);
    s->n_ids += n;
    s->first = xroom(s->first, (size_t)s->n + 2, &s->cap, sizeof *s->first);
    s->first[++s->n] = s->n_ids;
    if (2 * s->n > s->mask) {
        grow(s);
    } else {
        place(s, s->n - 1);
    }
    return s->n - 1;
}
