/* The explanation of one request as a document, and what its time would be otherwise. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/metrics/explain.h"

/* The time under other conditions, in seconds; NaN where the request or job did not finish then,
 * or there is no bound. */
struct explain_whatif {
    double alone_s, uncontended_s, bound_s;
    bool of_job; /* a job has no bound */
};

void explain_print_whatif(const struct explain_whatif *w, double latency_s, struct document *d);
/* first: until the first token. */
void explain_print(const struct explanation *x, const struct explain_whatif *w,
                   const char *fingerprint, bool first, struct document *d);
