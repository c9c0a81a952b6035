/* Declarations shared by the importers: rows of a source, before they are sessions. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/api/request.h"
#include "sim/base/csvfile.h"
#include "traces/traces.h"

#define IMPORT_MAX_TOKENS 100000000u /* more is a mistake */
#define IMPORT_MAX_S 1e9

struct import_row {
    int64_t start_ns; /* since 1970 or the source's own zero */
    int64_t end_ns;   /* of the answer; TIME_NEVER_NS where the source does not say */
    uint64_t input, output, prefix;
    /* Keys (import_key; 0 none): `after` names the request before it in its session, and `key` is
     * the name that the next turn uses. In named sessions both are that name. A first turn may have
     * no `after`. */
    uint64_t after, key;
    size_t block, n_blocks; /* of its prompt, in import.blocks */
    uint32_t line;
    uint8_t cls;
};

struct import {
    const struct trace_import_options *options;
    struct import_row *rows; /* owned */
    size_t n;
    double *blocks; /* owned: what hash_ids name, one after the other */
    size_t n_blocks;
    uint32_t block_tokens; /* 0: the source has no blocks */
    bool history;          /* a turn's prompt begins with the prompt and the answer before it */
    bool rebase;           /* times count from the first request */
    struct trace_import_losses lost;
};

/* A format: how its files begin, and who reads them. */
struct import_format {
    const char *name;
    /* Does a file that begins so (a JSON value, or NULL and its first line) hold this format? */
    bool (*is)(const struct import_format *f, const cJSON *first, const char *line);
    void (*read)(struct import *im, const struct import_format *f, FILE *in, const char *path,
                 struct err *e);
    const void *source; /* what these two know of it */
};
extern const struct import_format import_csv_formats[], import_json_formats[]; /* end: no name */

/* Adds a request. One without output failed at its source: it is counted, not added, since what a
 * success would have taken is unknown. */
void import_add(struct import *im, const struct import_row *row);
/* A key of a name; never 0. */
uint64_t import_key(const char *name);
/* Adds the blocks of a prompt to im->blocks and says in *row where. */
void import_blocks(struct import *im, const cJSON *ids, struct import_row *row);

/* Rows into turns of sessions, cut, thinned, scaled (import_sessions.c). */
int import_sessions(struct import *im, const char *path, struct trace *out, struct err *e);
