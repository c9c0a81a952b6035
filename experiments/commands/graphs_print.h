/* Output of `xpusim graphs`: the Gantt chart, and the study on random instances. */
#pragma once

#include "experiments/shell/document.h"
#include "hwmodels/graphs.h"

/* Three lines on one time axis of at most 96 characters: G1 computes, G2 computes, loads. A
 * character is the block (1-9, a-z, A-Z) that is busy at the start of its time interval. */
void graphs_gantt(const struct graphs_instance *g, const struct graphs_result *r,
                  struct document *d);

#define GRAPHS_STUDY_MAX 100000 /* instances */

/* Random instances: N 3 to 6, C 1 to 6, p 5 to 15, d = p + 0 to 4, s 5 to 40, all uniform integers.
 * Adds the ratio of each switching strategy to the optimum, overall and by number of chunks.
 * Instances that the search does not finish are left out, and counted. Deterministic in (n, seed).
 */
void graphs_study(uint32_t n, uint64_t seed, bool keep_old, struct document *d);
