/* Traces: the CSV format, generators, importers, statistics (DESIGN section 5).
 *
 * A trace in memory is struct trace (sim/api/trace.h): first turns first, in arrival order, later
 * turns linked from the one before. All functions return 0, or -EINVAL with errors added that name
 * file, line and column, or the spec and its key.
 */
#ifndef TRACES_TRACES_H
#define TRACES_TRACES_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "sim/api/trace.h"
#include "sim/base/err.h"

/* More rows than this is a mistake, not a workload. */
#define TRACE_MAX_ROWS 10000000u

/* ---- building (trace.c) ---- */

/* A trace under construction. Rows are added in any order with `turn` set; `session_id` links them.
 */
struct trace_builder {
    struct trace_row *rows;     /* owned */
    struct trace_extra *extras; /* owned; used when has_extras */
    size_t n, cap;
    bool has_extras;
};

void trace_builder_init(struct trace_builder *b);
void trace_builder_fini(struct trace_builder *b);
void trace_builder_add(struct trace_builder *b, const struct trace_row *row,
                       const struct trace_extra *extra);
/* An extra without anything set. */
struct trace_extra trace_extra_none(void);
/* Sorts, links turns, checks sessions (turns 0, 1, 2, ... without holes), hashes. Takes the
 * builder's arrays. `name` stands in errors. renumber: ids 0.. in arrival order. */
int trace_build(struct trace_builder *b, bool renumber, const char *name, struct trace *out,
                struct err *e);
/* The limit a user states when a trace has none: a power of two, at least 256 and at least twice
 * the output, so that it says little about the true length. */
uint32_t trace_default_limit(uint32_t output_tokens);

/* ---- files (trace_csv.c) ---- */
int trace_read(const char *path, struct trace *out, struct err *e);
/* Writes to a temporary name, then renames: a failed write leaves nothing. */
int trace_write(const char *path, const struct trace *t, struct err *e);
void trace_print(FILE *out, const struct trace *t);

/* ---- generators (workload.c) ---- */

/* `spec`: "mixed:key=value,...", "w1:n=10000", or a JSON file (path ending in .json) with the same
 * keys. rate_scale multiplies both classes' rates (1 normally). */
int trace_generate(const char *spec, uint64_t seed, double rate_scale, struct trace *out,
                   struct err *e);
/* Writes the keys of every generator with their defaults. */
void trace_generator_help(FILE *out);

/* ---- importers (import.c) ---- */
int trace_import(const char *format, const char *path, struct trace *out, struct err *e);
const char *const *trace_formats(void); /* NULL-terminated */

/* ---- datasets (dataset.c) ---- */

struct dataset_row {
    uint32_t input_tokens, output_tokens, prefix_tokens;
    uint32_t session; /* conversation; 0 where rows stand alone */
    uint32_t turn;    /* from 0 within its session */
    bool after_tool;
};

struct dataset {
    struct dataset_row *rows; /* owned */
    size_t n;
    uint32_t n_sessions; /* 0: no conversations */
};

/* A shipped name ("reactive_mixed") or a path to a CSV in the same form. */
int dataset_load(const char *name, struct dataset *out, struct err *e);
void dataset_fini(struct dataset *d);
/* Shipped names, sorted, NULL-terminated. */
const char *const *dataset_names(void);

/* ---- statistics (stats.c) ---- */

struct trace_class_stats {
    size_t n;
    double rate_per_min, gap_cv; /* of first turns */
    double input_mean, input_p50, input_p90, input_p99, input_max;
    double output_mean, output_p50, output_p90, output_p99, output_max;
    double prefix_frac; /* reusable prompt tokens */
};

struct trace_stats {
    size_t n, n_sessions;
    double span_s;
    struct trace_class_stats cls[2];
};

void trace_stats(const struct trace *t, struct trace_stats *out);
void trace_stats_print(FILE *out, const struct trace_stats *s);
cJSON *trace_stats_json(const struct trace_stats *s); /* caller owns */

#endif
