/* Scenarios (experiments/conformance/scenario.h) in tests: what they assert. */
#pragma once

#include "experiments/conformance/scenario.h"

/* The toy times of the tests of Agent.xpu. An NPU chunk of 256 rows takes 4 ms for QKV and 8 for
 * FFN, and the iGPU as long for so many rows. Attention takes 10 ms and the head 1 on the iGPU. A
 * fused layer of a decode takes decode_layer_ms. */
void scenario_agent_xpu(struct scenario *sc, double decode_layer_ms);
/* One layer on the iGPU. A pass of n rows takes 0.03 n + 1 ms, and 1 ms more when it yields tokens.
 * A decode of one sequence takes 3 ms. */
void scenario_batching(struct scenario *sc);
/* Runs it with every kernel recorded, and asserts that the run is well and its audit clean. Prints
 * it when it is not, and where the environment has SHOW. */
void scenario_check(struct scenario *sc, const struct scenario_request *requests, uint32_t n);
/* Asserts a request's tokens: these, to the nanosecond. */
void scenario_tokens_at(const struct scenario *sc, uint32_t request, uint32_t n, const double *ms);
/* A kernel that ran: first match of (request, device, op, layer) from index `from` on, or NULL. */
const struct scenario_kernel *scenario_kernel_find(const struct scenario *sc, uint32_t from,
                                                   uint32_t request, int device, enum op_kind op);
/* Prints records and kernels: for reading a failed scenario. */
void scenario_print(const struct scenario *sc, FILE *out);
