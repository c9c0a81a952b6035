/* Requests of agents that name the agent that started them, read in any order: when all are known,
 * they become a request graph by the rules of traces/README.md. */
#pragma once

#include "traces/import.h"

struct import_record {
    struct import_row row;  /* with its end; row.prefix: prompt tokens that a cache served */
    uint64_t agent, parent; /* keys (import_key); 0: none */
    bool other_model;       /* set by import_record_add */
};

struct import_records {
    struct import_record *v; /* owned */
    size_t n;
    const char *model; /* of the first request */
};

void import_record_add(struct import_records *d, const struct import_record *x, const char *model);
void import_records_fini(struct import_records *d);
/* Adds all to the import, by their start. Cached tokens that the turn before cannot have had are
 * counted in lost.prefix_tokens. */
void import_records_build(struct import *im, struct import_records *d);
