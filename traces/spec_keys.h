/* Parses "key=value,..." of a workload: numbers and texts, by a generator's table of keys. */
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
    const char *const *texts; /* names, NULL-terminated; NULL: none */
    double *v;                /* values of the numbers; borrowed */
    const char **t;           /* values of the texts, parallel to `texts` */
    uint64_t seen;            /* bit set of numbers, then texts, that were set */
};

/* Sets every number to its default; clears `seen`. */
void spec_keys_init(struct spec_keys *k);
/* Index of a key, numbers first, then texts; -1: unknown. */
int spec_keys_find(const struct spec_keys *k, const char *key);
/* Sets a key. Errors name spec and key: unknown, repeated, no number, out of range, no text. */
void spec_keys_set(struct spec_keys *k, const char *spec, const char *key, const char *value,
                   struct err *e);
/* Parses "key=value,..." and reports all errors. */
void spec_keys_parse(struct spec_keys *k, const char *spec, const char *list, struct err *e);
/* Prints a line per number: name, default and meaning. */
void spec_keys_help(const struct spec_key *numbers, uint32_t n, FILE *out);
