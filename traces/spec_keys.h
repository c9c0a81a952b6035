/* "key=value,..." of a workload: a generator's numbers and texts by one table of its keys. */
#pragma once

#include "sim/base/base.h"

struct spec_key {
    const char *name;
    double def, min, max;
    bool whole; /* whole numbers only */
    const char *help;
};

struct spec_keys {
    const struct spec_key *numbers; /* borrowed */
    uint32_t n_numbers;
    const char *const *texts; /* names; NULL at their end, or NULL for none */
    double *v;                /* of the numbers: borrowed */
    const char **t; /* of the texts, parallel to the keys; nobody frees what they point to */
    uint64_t seen;  /* bit per number, then per text, that was set */
};

/* Every number its default; nothing seen. */
void spec_keys_init(struct spec_keys *k);
/* Index of a key: numbers, then texts; -1: unknown. */
int spec_keys_find(const struct spec_keys *k, const char *key);
/* Errors name spec and key: unknown, twice, no number, out of range, no text. */
void spec_keys_set(struct spec_keys *k, const char *spec, const char *key, const char *value,
                   struct err *e);
/* "key=value,...": every problem is an error. */
void spec_keys_parse(struct spec_keys *k, const char *spec, const char *list, struct err *e);
/* A line per number: its name, default and meaning. */
void spec_keys_help(const struct spec_key *numbers, uint32_t n, FILE *out);
