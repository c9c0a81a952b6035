/* Traces: the CSV format, generators, importers, statistics.
 *
 * A trace in memory is struct trace (sim/api/trace.h): first turns first, in arrival order, and
 * later turns linked from the previous one. All functions return 0, or -EINVAL with errors added.
 * These name file, line and column, or the spec and its key. Without requests, trace_read and
 * generators return -ENODATA with an error.
 */
#pragma once

#include <cjson/cJSON.h>

#include "sim/api/request.h"
#include "sim/api/trace.h"
#include "sim/base/base.h"
#include "sim/base/json.h"
#include "sim/base/map.h"

/* More rows are a mistake. */
#define TRACE_MAX_ROWS 10000000u

/* ---- building (trace.c) ---- */

/* The part of a row that only a request graph has. */
struct trace_parent {
    uint32_t request_id;
    int64_t gap_ns;
};
struct trace_node {
    struct trace_parent *parents; /* other than the previous turn */
    uint32_t n_parents;
    uint32_t ends_with; /* a request_id, or UINT32_MAX */
    uint32_t prefix_of; /* request_id whose text begins the prompt, or UINT32_MAX */
    uint32_t model;     /* from trace_builder_model; 0: the default one */
    bool background, starts_job;
};
/* An empty node. */
struct trace_node trace_node_none(void);

/* A trace under construction. Rows are added in any order with `turn` set; `session_id` links them.
 */
struct trace_builder {
    struct trace_built {
        struct trace_row row;
        struct trace_extra extra;
        struct trace_node node;
        uint32_t line;
        uint32_t at; /* position of addition */
    } * v;           /* owned */
    size_t n, cap;
    bool extras, graph;         /* a row has extras; a node */
    struct trace_model *models; /* owned */
    uint32_t n_models;
    struct arena memory; /* for lists of parents */
    uint64_t line; /* set by the caller before adding: line of the next row, for errors; 0: none */
    /* During trace_build: */
    const char *name;
    struct err *err;
};

void trace_builder_init(struct trace_builder *b);
void trace_builder_fini(struct trace_builder *b);
void trace_builder_add(struct trace_builder *b, const struct trace_row *row,
                       const struct trace_extra *extra);
/* Makes the last row that was added part of a request graph; copies node->parents. */
void trace_builder_node(struct trace_builder *b, const struct trace_node *node);
/* During trace_build: adds an error about a row, with "NAME:LINE: " if its line is known. */
void trace_row_error(const struct trace_builder *b, size_t row, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether a text is a valid name of a model: letters, digits and "._-" only. */
bool trace_model_is_name(const char *text);
/* The number of the model of that name, from 1; 0 for an invalid name. Later errors locate its
 * first use by `file`:`line` or by `key`. Copies the texts. Cost: number of models. */
uint32_t trace_builder_model(struct trace_builder *b, const char *name, const char *file,
                             uint64_t line, const char *key);
/* Copies the models of a trace, with their numbers, to an empty builder. */
void trace_builder_models_copy(struct trace_builder *b, const struct trace *t);
/* Moves the models from the builder to the graph. An error names a session with two models. */
void trace_models_build(struct trace_builder *b, struct trace_graph *g);
/* An empty extra. */
struct trace_extra trace_extra_none(void);
/* The default extra of a request, whose session is its client. */
struct trace_extra trace_extra_usual(const struct trace_row *row);
/* Sorts, links turns, checks ids (unique) and sessions (turns 0, 1, 2, ... without gaps), hashes.
 * Takes over the builder's arrays. Errors use `name`. renumber: ids 0.. in arrival order. Cost O(n
 * log n). */
int trace_build(struct trace_builder *b, bool renumber, const char *name, struct trace *out,
                struct err *e);
/* Replaces the events of the machine, takes over the array, and updates the hash. */
void trace_set_machine(struct trace *t, struct machine_event *owned, uint32_t n);
void trace_copy_machine(struct trace *t, const struct trace *from);
/* Sets the texts for the rows' extras, takes a reference, and updates the hash. */
void trace_set_texts(struct trace *t, struct trace_texts *texts);
/* Makes a trace of the rows with keep[row] and all events of the machine; the caller frees it. A
 * row that a row left out would cancel stays. -EINVAL if a session would have a gap (kept turns
 * must be 0, 1, 2, ...), or a row lacks a parent or source. */
int trace_subset(const struct trace *t, const bool *keep, struct trace *out);
/* Merges n traces, with their times, into one that the caller frees. Ids, sessions, clients and
 * groups of the second and later ones are renumbered; models keep their names. -EINVAL if two have
 * events of the machine, or numbers run out. Errors name the trace by `names`. */
int trace_mix(const struct trace *v, const char *const *names, uint32_t n, struct trace *out,
              struct err *e);
/* Builds the graph of sorted rows whose turns are linked. Errors: an unknown or repeated parent, a
 * cycle, a path of over 31 years. The caller frees it by trace_graph_free. Cost O(n log n). */
struct trace_graph *trace_graph_build(struct trace_builder *b);
void trace_graph_free(struct trace_graph *g);
/* The root of i in a forest where up[root] is root; compresses the path. */
uint32_t trace_root_of(uint32_t *up, uint32_t i);
/* The graph as one node per row. The caller frees it, including lists. */
struct trace_node *trace_graph_nodes(const struct trace *t);
/* Fills trace_graph.source from the rows: prefix_of, a prefix_group above 0, or else the previous
 * turn. Errors: a request that is unknown or too short, two sources of one prompt, a prompt that
 * begins with itself. places: rows by request_id. */
void trace_content_build(const struct trace_builder *b, const struct map *places,
                         struct trace_graph *g);
/* The most prompt tokens that a cache of all streams could serve: all but the first use of each
 * text. Fills by_class and returns the total. */
uint64_t trace_shareable_tokens(const struct trace *t, uint64_t by_class[REQUEST_CLASS_COUNT]);
/* Statistics of a graph. */
struct trace_graph_stats {
    uint32_t jobs, joins, forks, background;
    uint32_t depth; /* longest path of a job in requests: maximum and mean */
    double depth_mean;
    uint32_t width; /* requests of a job at one depth: maximum and mean */
    double width_mean;
    /* Gaps on a job's critical path if every request were answered at once: a lower bound of its
     * time. */
    double gaps_s, gaps_s_mean;
};
void trace_graph_stats(const struct trace *t, struct trace_graph_stats *out);
/* Hash of every field of every row: equal traces have equal hashes, regardless of their origin. */
uint64_t trace_hash(const struct trace *t);
/* Makes the rows of a packed trace, if it has none. */
void trace_unpack(struct trace *t);
/* Sets TTFT and TBT targets of requests without any (TIME_NEVER_NS: no change), and updates the
 * hash. */
void trace_set_slos(struct trace *t, int64_t ttft_slo_ns, int64_t tbt_slo_ns);
/* The default of max_output_tokens: the least power of two that is at least twice the output and at
 * least 256, so that it reveals little about the output. */
uint32_t trace_default_limit(uint32_t output_tokens);

/* ---- files (trace_csv.c) ---- */

/* Reads "# xpusim-trace v1"; without that comment a file is v1. Errors have the form "FILE:LINE:
 * column NAME: ...". These are errors:
 *   an unknown column, a value out of range, a class other than reactive or proactive;
 *   prefix_tokens above input_tokens, or on a first turn that names no other text;
 *   a missing or surplus arrival_s or gap_s;
 *   an id or turn twice, a turn without the one before.
 * Times are read to the nanosecond, so a written trace reads back to the same bytes. A missing
 * max_output_tokens becomes trace_default_limit. */
int trace_read(const char *path, struct trace *out, struct err *e);
/* Writes to a temporary name, then renames: a failed write leaves nothing. */
int trace_write(const char *path, const struct trace *t, struct err *e);
void trace_print(FILE *out, const struct trace *t);

/* ---- generators (workload.c, mixed.c, tasks.c) ---- */

/* `spec`: "mixed:key=value,...", "w1:n=10000", a task (tasks.h), or a JSON file (path ending in
 * .json): an object with the keys of mixed. rate_scale multiplies all rates (1 normally). Unknown,
 * repeated and out-of-range keys, zero rates and absurd sizes are errors naming spec and key. */
int trace_generate(const char *spec, uint64_t seed, double rate_scale, struct trace *out,
                   struct err *e);
/* Like trace_generate, but packed where requests are equal. */
int trace_generate_packed(const char *spec, uint64_t seed, double rate_scale, struct trace *out,
                          struct err *e);
/* Whether a spec names a file with clients, so that keys may follow which scale its numbers (rate,
 * turns, prompt, answer, gap). Reads the file. */
bool trace_workload_has_factors(const char *spec);
/* Keys of `mixed` in a spec that have no effect because of its other keys: "cv (needs
 * arrival=gamma), ...", which the caller frees. NULL: none, or an invalid spec. Reads the file, if
 * it is one. */
char *trace_workload_unread(const char *spec);
/* The default of a number of `mixed`; false if there is no such key. */
bool trace_workload_default(const char *key, double *value);
/* Writes the keys of every generator with their defaults. */
void trace_generator_help(FILE *out);

/* ---- importers (import*.c) ---- */

/* Reads another project's trace (traces/README.md has the formats). The format is recognised by the
 * begin of the file. Unknown formats, and formats other than the named one, are refused. Dates and
 * clock times count from the first request. */
struct trace_import_options {
    const char *format;  /* NULL: recognised */
    const char *cls;     /* "reactive" or "proactive", for all requests; NULL: as in the source */
    double from_s, to_s; /* sessions that begin in this window; times count from from_s */
    double rate_scale;   /* factor on the rate of first turns */
    double sample_frac;  /* share of the sessions, drawn by seed */
    uint64_t seed;
    bool link;    /* a prompt that continues all whole blocks of an earlier one is its next turn */
    bool share;   /* prompts of different sessions share leading blocks: a v2 trace */
    bool history; /* every turn's prompt begins with the previous prompt and answer */
    uint32_t block_tokens; /* tokens of a hash_id (mooncake, bailian); 0: the format's default */
    /* For texts without times (sharegpt): */
    double chars_per_token, rate_per_min, think_s;
};
#define TRACE_IMPORT_DEFAULTS                                                                      \
    {                                                                                              \
        .to_s = (double)INFINITY, .rate_scale = 1.0, .sample_frac = 1.0, .seed = 1,                \
        .chars_per_token = 4.0, .think_s = 10.0                                                    \
    }
/* Data of a source that a trace cannot represent. Requests without output tokens (failed ones), or
 * without a prompt, are left out. Prompt tokens that the source's cache served are computed unless
 * an earlier turn of the session left them, because prefixes belong to a session. If the end of an
 * answer is unknown, the gap to the next turn is the time between their arrivals. */
struct trace_import_losses {
    const char *format; /* the format that was used */
    size_t rows; /* requests read, before from_s, to_s and sample_frac; all counts are of these */
    size_t failed, promptless, gaps_from_arrivals, turns;
    size_t empty;       /* request graph: answers without tokens, which get one */
    size_t other_model; /* requests of another model than their session's first */
    size_t overlapping; /* sent while another request of their agent was running */
    size_t early;       /* turns sent before an answer of their session ended; they wait for it */
    size_t untimed;     /* requests without a time, which are left out */
    size_t uncounted;   /* requests without numbers of tokens, which are left out */
    unsigned long long uncounted_line; /* line of the first */
    size_t unsent;     /* requests that start with their answer, so their sending time is unknown */
    size_t grown;      /* turns whose length was only the new part; the conversation was added */
    size_t not_before; /* requests that also wait for an instant, which is ignored */
    uint64_t prefix_tokens, input_tokens;
    const char *unread;         /* unused columns of a plain file and keys, kept; NULL: none */
    const char *without_effect; /* options that changed nothing, kept; NULL: none */
    bool estimated;             /* tokens are counted from texts */
    bool no_times;              /* arrivals are drawn */
};
int trace_import(const struct trace_import_options *o, const char *path, struct trace *out,
                 struct trace_import_losses *lost, struct err *e);
const char *const *trace_formats(void); /* NULL-terminated */
/* The format of a file by its begin, or NULL, also if the file cannot be read. */
const char *trace_format_of(const char *path);

/* Number of requests that are equal in every resampled trace: those of a closed-loop client that is
 * the only one of its class. */
size_t trace_resample_fixed(const struct trace *t);
/* A trace like a recorded one (resample.c): whole sessions, and the gaps between the starts of
 * sessions, are drawn with replacement per class, until the recorded window is full. Sessions with
 * until_ns are clients of closed loops: as many begin as were recorded, at the recorded times.
 * Equal seeds give equal traces. With `jobs` it draws whole jobs of a request graph, with
 * everything that they depend on or share. In other traces a session is a job. -EINVAL also for
 * sessions of a graph, and if all jobs of the recording are connected. */
int trace_resample(const struct trace *t, bool jobs, uint64_t seed, struct trace *out,
                   struct err *e);

/* ---- datasets (dataset.c) ---- */

struct dataset_row {
    uint32_t input_tokens, output_tokens, prefix_tokens;
    uint32_t session; /* conversation; 0: none */
    uint32_t turn;    /* from 0 within its session */
    bool after_tool;
};

struct dataset {
    struct dataset_row *rows; /* owned */
    size_t n;
    uint32_t n_sessions; /* 0: no conversations */
};

/* A shipped name ("reactive_mixed") or a path to a CSV with the same columns: input_tokens,
 * output_tokens, and for conversations session_id, conversation_id or task_id, prefix_tokens,
 * after_tool. Rows of one conversation are consecutive and in order. Other columns are ignored. */
int dataset_load(const char *name, struct dataset *out, struct err *e);
void dataset_fini(struct dataset *d);

/* ---- statistics (trace_stats.c) ---- */

struct trace_class_stats {
    size_t n;
    double rate_per_min, gap_cv; /* over first turns */
    double input_mean, input_p50, input_p90, input_p99, input_max;
    double output_mean, output_p50, output_p90, output_p99, output_max;
    double prefix_frac; /* share of prompt tokens: trace_shareable_tokens */
};

struct trace_stats {
    size_t n, n_sessions;
    double span_s;
    struct trace_class_stats cls[2];
};

void trace_stats(const struct trace *t, struct trace_stats *out);

/* JSON of the events of the machine in a trace (sim/api/trace.h).
 *
 * {"machine": [{"at_s": 30, "memory_mib": 2000}, ...]} is part of a workload, or a file of its own.
 * In a trace file, the list is in the first line, after "machine=". */

/* Reads the key "machine" of an object, and replaces the trace's events. 0, or -EINVAL with errors
 * that name file and key. */
int machine_events_get(struct json_obj *o, struct trace *t);
/* Reads the events from a file. Other keys are ignored, so it may be a workload. */
int machine_events_read(const char *path, struct trace *t, struct err *e);
/* Reads the list from a text. */
int machine_events_of_text(const char *text, const char *path, struct trace *t, struct err *e);
/* The list as a text on one line; the caller frees it by cJSON_free. */
char *machine_events_text(const struct trace *t);
