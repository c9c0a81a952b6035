/* The characterisation studies of the papers, as data: one value per row, for any plotting tool.
 *
 *   affinity  TFLOP/s and TFLOP/s per watt of one layer's ops against rows, per device. If
 *             attention is compiled per prompt length, also with the layer's share of the
 *             compilation time (Agent.xpu v1 3.1, 5.1; v2 3.1)
 *   corun     slowdown of GEMM and GEMV next to either, and the combined throughput (v1 Fig. 3)
 *   batch     time of a prefill and of a decode step against the number of sequences (v2 Fig. 4)
 *   prompt    time of a prefill against its length, per device
 *   mixed     a decode batch with a prefill chunk in it (v1 3.2)
 *   chunk     prefill throughput, waiting time of a reactive request at the three preemption
 *             granularities (request, op group = layer, sub-op = kernel), and activation footprint
 *             against static chunk rows: the exploration of v1 5.1, 5.2 and v2 4.2. `knee`: the
 *             smallest chunk within CHUNKS_KNEE_FRAC of the best throughput
 *   verify    time of verifying drafts against their number (sd.npu 3.3, 4.4)
 *   schemes   the four co-scheduling schemes a to d of v1 3.2, simulated
 *   interval  95 % intervals of predicted times, by length of the prompt or context */
#pragma once

#include "experiments/compare/compare.h"
#include "sim/base/frame.h"

/* The columns of all studies: study, device, what, x_name, x, metric, value, unit. */
void characterize_columns(struct frame *f);

/* One study. */
struct characterize {
    const char *study; /* borrowed, like all pointers here */
    const struct config *config;
    const struct config_options *options;
    uint32_t replications; /* for schemes */
    struct study_how how;  /* for schemes */
};
/* Adds its rows. Errors: no such study, a run that failed. */
void characterize_run(const struct characterize *k, struct frame *rows, struct err *e);

#define CHARACTERIZE_SCHEMES "schemes" /* the study that simulates */
/* The i-th study, in the order above, or NULL. */
const char *characterize_study(size_t i);
