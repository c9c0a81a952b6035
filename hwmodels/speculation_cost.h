/* Costs of speculative decoding: a verification step, and the amortized account of the paper's
 * Table 3. Source: sd.npu sections 2.3, 3.3, 4.4, 4.5. Times are in milliseconds. */
#pragma once

#include "hwmodels/speculation_data.h"

/* Time of a step that verifies `drafted` tokens and the last emitted one on a graph as long as the
 * draft. It is the line through Figure 6's two points for Qwen2.5-1.5B (51.1 ms at 1, 5.7 ms per
 * token at 32). It contradicts static graphs, in which a pass has a constant cost. */
double speculation_linear_ms(const struct speculation_constants *c, uint32_t drafted);

/* Table 3 from the calibrated constants, milliseconds per output token:
 *   U + c [ours] + (passes * pass + draft overhead) / tokens per step,
 * U the amortized prefill and switch, passes = ceil((1 + draft) / graph rows); `ours` sizes its
 * drafts to one pass. A calibration (about as many free values as data), not a prediction. */
double speculation_amortized_ms(const struct speculation_data *data,
                                const struct speculation_amortized *a,
                                enum speculation_system system);
