/* Why a job took as long as it did: its critical path, from the last foreground request that ended
 * back to the first. Each step goes to the parent whose end and gap came last. So a step's request
 * arrived exactly one gap after the end of the step before. When several parents come at one
 * instant, it is the first in the trace. The job's time is the sum of the latencies on the path and
 * of the gaps between them. Explanations split latencies into causes. The sum is exact to the
 * nanosecond.
 *
 * A job is one of the request graph, or without a graph a session with its turns. */
#pragma once

#include "sim/api/trace.h"
#include "sim/metrics/explain.h"

/* A gap before a step: a tool ran, a user thought, or (first step) the job had begun with another
 * request. */
enum critical_gap { CRITICAL_GAP_TOOL, CRITICAL_GAP_THINK, CRITICAL_GAP_START, CRITICAL_GAPS };
extern const char *const critical_gap_names[CRITICAL_GAPS]; /* "tool", "think", "start" */
extern const char *const critical_gap_texts[CRITICAL_GAPS]; /* for people */

#define CRITICAL_NONE UINT32_MAX

struct critical_request {
    uint32_t row;
    const struct explanation *why; /* borrowed; NULL: still in the system, or never arrived */
    int64_t arrival_ns, end_ns;    /* if it never arrived, both are when it was due */
    uint32_t after; /* index in v of the request that it waited for last, or CRITICAL_NONE */
    bool background, on_path;
};

/* Indices in v, and the gap between the end of `from` and the arrival of `to`. */
struct critical_edge {
    uint32_t from, to;
    int64_t gap_ns;
};

struct critical_path {
    struct critical_request *v;  /* kept, as all lists; the job's requests by row */
    struct critical_edge *edges; /* dependencies */
    uint32_t *steps;             /* indices in v, the first step first */
    size_t n, n_edges, n_steps;
    /* The job's first arrival, and the end of its last foreground request. */
    int64_t first_ns, end_ns;
    int64_t ns[EXPLAIN_CAUSE_COUNT]; /* sums over the path; with gap_ns the job's time */
    int64_t gap_ns[CRITICAL_GAPS];
    bool complete; /* all its foreground requests have finished */
};

/* Finds the critical path of a request's job. x has explained all requests of a run of t; both are
 * borrowed. Returns 0, or -ENOENT if there is no such request or no foreground request of its job
 * has ended. Cost: rows of the trace, and requests of the job times what x has explained. */
int critical_find(const struct trace *t, const struct explain *x, uint32_t request_id,
                  struct critical_path *out);
/* The gap before a step, and its kind. */
int64_t critical_gap_of(const struct critical_path *p, const struct trace *t, size_t step,
                        enum critical_gap *kind);
