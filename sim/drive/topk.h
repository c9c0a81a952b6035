/* The likeliest next tokens after each token of a request, to calibrate drafters with the model's
 * own distribution (sd.npu 3.3). */
#pragma once

#include "sim/drive/drive_impl.h"

#define TOPK 8

/* The tokens after one position, the likeliest first. n = 0: not computed. */
struct topk {
    uint32_t n;
    int32_t token[TOPK];
    float probability[TOPK];
};

/* Computes them from the logits of one row. */
void topk_fill(const float *logits, uint32_t vocab, struct topk *out);
/* Records the next tokens for all rows of an ended pass, before state_sample. Rows that are sampled
 * have the engine's logits. For the other rows of a prompt the host computes the head, with
 * unquantised weights: vocabulary x width products per row. */
void topk_take(struct drive *d, const struct full_pass *full);
/* Writes a line per request with generated tokens (traces/README.md). */
void topk_write(const struct drive *d);
