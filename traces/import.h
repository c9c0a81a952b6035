/* Declarations shared by the importers: rows of a source, before they are sessions. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/api/request.h"
#include "sim/base/csvfile.h"
#include "sim/base/map.h"
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
    bool after_tool; /* a tool ran before it, and nobody thought */
    uint32_t client; /* from 1; 0: its session */
};

#define IMPORT_NONE MAP_NONE /* no row */

struct import {
    const struct trace_import_options *options;
    struct import_row *rows; /* owned */
    size_t n;
    double *blocks; /* owned: what hash_ids name, one after the other */
    size_t n_blocks;
    uint32_t block_tokens; /* 0: the source has no blocks */
    bool clients;          /* rows may have a client */
    bool history;          /* a turn's prompt begins with the prompt and the answer before it */
    bool grows;            /* a turn (row.after) begins with row.prefix tokens, and has no blocks */
    bool rebase;           /* times count from the first request */
    struct import_node *nodes; /* owned, of every row; NULL: sessions are found by keys */
    void *kept;                /* what a reader keeps while it reads; the reader's */
    double clock_s;            /* begin of the last session, where begins are drawn */
    /* Rows and jobs by names, and the first model, while Mooncake's formats are read; owned. */
    struct map names;
    uint32_t n_jobs;
    const char *models;
    struct trace_import_losses lost;
};

/* A row's place in its graph, parallel to the rows, where a source says who waits for whom. */
struct import_node {
    struct trace_parent *parents; /* owned; by row, besides the turn before */
    uint32_t n_parents;
    size_t before; /* row whose next turn it is, or IMPORT_NONE */
    size_t source; /* row that its prompt begins like, or IMPORT_NONE; so many tokens: row.prefix */
    int64_t gap_ns; /* after the last of all parents */
    uint64_t scope; /* blocks of different scopes are different */
    uint32_t job;   /* from 0 */
    int32_t priority;
    bool background;
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
/* Nanoseconds since 1970 of a date and a time of day with a space or T between them, or -1. A zone
 * may follow. */
int64_t import_timestamp_ns(const char *text);
/* A key of a name; never 0. */
uint64_t import_key(const char *name);

/* Adds a request of a graph; takes node->parents. One without output stays, with one token, because
 * others wait for it. */
void import_add_node(struct import *im, const struct import_row *row,
                     const struct import_node *node);
/* Finds the source of every row from `first` on by its blocks, and sets row.prefix. Among
 * equally long beginnings it takes the turn before, or else the earliest request. Cost: blocks. */
void import_sources(struct import *im, size_t first);
/* Rows with nodes into a request graph (import_graph.c). */
int import_graph(struct import *im, const char *path, struct trace *out, struct err *e);

/* Whether a session or a job that begins then is asked for, by --from, --to and --sample. */
bool import_wanted(const struct trace_import_options *o, int64_t start_ns, size_t first);
/* Rows into turns of sessions, cut, thinned, scaled (import_sessions.c). */
int import_sessions(struct import *im, const char *path, struct trace *out, struct err *e);

/* Requests of one agent in their order, and what each waits for where a source does not say it. */

/* A request that later ones of its agent may wait for. */
struct import_sent {
    size_t row;
    int64_t end_ns;
    bool end_known; /* else it is when the request was sent */
    bool continued; /* it has a next turn */
};

struct import_stream {
    struct import_sent *v; /* owned */
    size_t n;
};

/* One edge per parent, the longer of two. */
void import_edge_add(struct import_node *node, size_t parent, int64_t gap_ns);
/* The last request that had ended by then, or NULL. */
const struct import_sent *import_last_before(const struct import_stream *s, int64_t ns);
/* Finds what a request waits for: the turn before, or the last request of the agent, or of the one
 * that started it (`origin`, or NULL). Returns the end of that, or the request's own start. */
int64_t import_place(struct import *im, struct import_stream *s, const struct import_row *r,
                     const struct import_sent *origin, struct import_node *node);
/* Adds the request to the stream and to the rows; takes node->parents. */
void import_stream_add(struct import *im, struct import_stream *s, const struct import_row *r,
                       const struct import_node *node, int64_t end_ns, bool end_known);

/* Requests of agents that name the agent that started them, read in any order: when all are known,
 * they become a request graph by the rules of traces/README.md. */
struct import_record {
    struct import_row row;  /* with its end; row.prefix: prompt tokens that a cache served */
    uint64_t agent, parent; /* keys (import_key); 0: none */
    size_t place;           /* in the source; it and the next one are set by import_record_add */
    bool other_model;
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
