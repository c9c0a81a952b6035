/* Declarations shared by the importers: rows of a source, before they become sessions. */
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
    int64_t end_ns;   /* end of the answer; TIME_NEVER_NS: unknown */
    uint64_t input, output, prefix;
    /* Keys (import_key; 0 none): `after` is the key of the previous request of its session, and
     * `key` that for the next turn. In named sessions both are the session's. A first turn may lack
     * `after`. */
    uint64_t after, key;
    size_t block, n_blocks; /* of its prompt, in import.blocks */
    uint32_t line;
    uint8_t cls;
    bool after_tool; /* a tool ran before it, without a user's pause */
    uint32_t client; /* from 1; 0: its session is its client */
};

#define IMPORT_NONE MAP_NONE /* no row */

struct import {
    const struct trace_import_options *options;
    struct import_row *rows; /* owned */
    size_t n;
    double *blocks; /* owned; hash_ids of all prompts, concatenated */
    size_t n_blocks;
    uint32_t block_tokens; /* 0: the source has no blocks */
    bool clients;          /* rows may have a client */
    bool history;          /* a turn's prompt begins with the previous prompt and answer */
    bool grows;            /* a turn (row.after) begins with row.prefix tokens, and has no blocks */
    bool rebase;           /* times count from the first request */
    struct import_node *nodes; /* owned, one per row; NULL: sessions are found by keys */
    void *kept;                /* private to the reader */
    double clock_s;            /* begin of the last session, if begins are drawn */
    /* For Mooncake's formats: rows and jobs by names, and the first model; owned. */
    struct map names;
    uint32_t n_jobs;
    const char *models;
    struct trace_import_losses lost;
};

/* A row's node in a request graph, parallel to the rows, if the source has dependencies. */
struct import_node {
    struct trace_parent *parents; /* owned; other than the previous turn, by row */
    uint32_t n_parents;
    size_t before;  /* row of the previous turn, or IMPORT_NONE */
    size_t source;  /* row of which its prompt has row.prefix tokens, or IMPORT_NONE */
    int64_t gap_ns; /* gap after the last parent */
    uint64_t scope; /* blocks of different scopes differ */
    uint32_t job;   /* from 0 */
    int32_t priority;
    bool background;
};

/* A format: how to recognise and read its files. */
struct import_format {
    const char *name;
    /* Whether a file with this begin (first JSON value, or NULL and its first line) has this
     * format. */
    bool (*is)(const struct import_format *f, const cJSON *first, const char *line);
    void (*read)(struct import *im, const struct import_format *f, FILE *in, const char *path,
                 struct err *e);
    const void *source; /* data for these two functions */
};
/* The last has no name. */
extern const struct import_format import_csv_formats[], import_json_formats[];

/* Adds a request. A request without output failed at its source. It is counted, not added, because
 * its length is unknown. So is one without a prompt, from which no output could come. */
void import_add(struct import *im, const struct import_row *row);
/* Nanoseconds since 1970 of a date and time, separated by a space or T, or -1. A zone may follow.
 */
int64_t import_timestamp_ns(const char *text);
/* The key of a name; never 0. */
uint64_t import_key(const char *name);

/* Adds a request of a graph, and takes over node->parents. A request without output gets one token,
 * because others wait for it. */
void import_add_node(struct import *im, const struct import_row *row,
                     const struct import_node *node);
/* Finds the source of every row from `first` on by its blocks, and sets row.prefix. Among equally
 * long prefixes it takes the previous turn, else the earliest request. Cost: blocks. */
void import_sources(struct import *im, size_t first);
/* Makes a request graph from rows with nodes (import_graph.c). */
int import_graph(struct import *im, const char *path, struct trace *out, struct err *e);

/* Whether --from, --to and --sample select a session or a job that begins at start_ns. */
bool import_wanted(const struct trace_import_options *o, int64_t start_ns, size_t first);
/* Makes sessions from rows; cuts, samples and scales them (import_sessions.c). */
int import_sessions(struct import *im, const char *path, struct trace *out, struct err *e);

/* Requests of one agent in order, to find dependencies that a source does not state. */

/* A request that later requests of its agent may depend on. */
struct import_sent {
    size_t row;
    int64_t end_ns;
    bool end_known; /* false: end_ns is when it was sent */
    bool continued; /* it has a next turn */
};

struct import_stream {
    struct import_sent *v; /* owned */
    size_t n;
};

/* Adds an edge; of two edges to one parent the longer gap counts. */
void import_edge_add(struct import_node *node, size_t parent, int64_t gap_ns);
/* The last request that had ended by ns, or NULL. */
const struct import_sent *import_last_before(const struct import_stream *s, int64_t ns);
/* Finds the request that r waits for: the previous turn, or the agent's last request, or `origin`
 * of the agent that started it (may be NULL). Returns its end, or r's own start. */
int64_t import_place(struct import *im, struct import_stream *s, const struct import_row *r,
                     const struct import_sent *origin, struct import_node *node);
/* Adds the request to the stream and to the rows; takes over node->parents. */
void import_stream_add(struct import *im, struct import_stream *s, const struct import_row *r,
                       const struct import_node *node, int64_t end_ns, bool end_known);

/* Requests of agents that name the agent that started them, in any order. When all are read, they
 * become a request graph by the rules of traces/README.md. */
struct import_record {
    struct import_row row;  /* with end_ns; row.prefix: prompt tokens that a cache served */
    uint64_t agent, parent; /* keys (import_key); 0: none */
    size_t place; /* order in the source; import_record_add sets this and the next member */
    bool other_model;
};

struct import_records {
    struct import_record *v; /* owned */
    size_t n;
    const char *model; /* of the first request */
};

void import_record_add(struct import_records *d, const struct import_record *x, const char *model);
void import_records_fini(struct import_records *d);
/* Adds all to the import, ordered by start. Cached tokens that the previous turn cannot have had
 * are counted in lost.prefix_tokens. */
void import_records_build(struct import *im, struct import_records *d);
