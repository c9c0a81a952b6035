/* Interference between classes in a run: how long each delays each, and the causes of each class's
 * latency. It sums the explanations of all requests by class. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/api/trace.h"
#include "sim/metrics/explain.h"

/* Indices are enum request_class. Times are sums over the victims. */
struct interference {
    uint32_t requests[2];                     /* requests that left the system */
    int64_t latency_ns[2];                    /* arrival to the end */
    int64_t cause_ns[2][EXPLAIN_CAUSE_COUNT]; /* sums to latency_ns */
    /* [victim][aggressor]: the victim waited for the rest of the aggressor's kernel; for its
     * launches. Row sums are kernel_tail; batching and the two queues. */
    int64_t tail_ns[2][2], queue_ns[2][2];
    int64_t shared_ns[2][2]; /* extra time of passes shared with the aggressor */
};

/* Sums the run observed by x (EXPLAIN_ALL). O(requests x log requests + blockers). */
void interference_collect(const struct explain *x, const struct trace *t, struct interference *out);

/* Adds {"interference": {class: {requests, latency_s, causes_s: {..}, by: {class: {wait_s, tail_s,
 * shared_s}}}}}. Text shows means per request. */
void interference_document(const struct interference *m, struct document *d);
