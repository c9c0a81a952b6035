/* The critical path of a job as a document: its steps, the causes of their time, and the requests
 * that delayed them. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/metrics/critical.h"

/* Adds the tables for people, and the data that `plot job` draws: requests, edges, causes_ns,
 * gaps_ns, blockers. t is the trace of the path. */
void job_path_document(const struct critical_path *p, const struct trace *t, struct document *d);
