/* Serving runs measured on real machines: arrivals, and the begin and end of each answer.
 *
 * The CSV has the columns request_id, arrival_s (from any origin), input_tokens, output_tokens.
 * Counted from the arrival, it has ttft_s (first token) and e2e_s (last token). A first line "#
 * xpusim-run v1" may name the version. If there is a column status, only rows with `ok` count
 * (`xpusim observe` writes the others too). A column prefix_tokens says how much of a prompt a
 * cache may have had. Further columns are ignored. */
#pragma once

#include "sim/api/trace.h"
#include "sim/base/base.h"

struct measured_latency {
    double ttft_s, e2e_s;
};

/* Equal machines behind one queue that served the run. A request never moves to another machine. */
enum measured_queue { MEASURED_ROUND_ROBIN, MEASURED_LEAST_OUTSTANDING };
struct measured_replicas {
    uint32_t n; /* 0 and 1: one machine */
    int queue;  /* enum measured_queue */
};

struct measured_run {
    struct measured_replicas replicas; /* set by the caller; not in the file */
    struct trace trace;                /* reactive single requests, numbered in order of arrival */
    struct measured_latency *measured; /* kept; parallel to trace.rows */
    uint32_t *ids;                     /* kept; request_id in the file */
    size_t n_prompts_unknown;          /* rows whose input_tokens the server did not count */
    size_t n_prefixes;                 /* rows with prefix_tokens */
};

/* `name`: a shipped run, or a path (with a slash, or ending in .csv). 0, or -EINVAL with errors
 * "FILE:LINE: column NAME: ...": values that are no numbers, not positive or absurd, a last token
 * before the first, an id twice, no rows. The caller owns the trace in both cases. */
int measured_run_read(const char *name, struct measured_run *out, struct err *e);
