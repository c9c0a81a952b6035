/* The likeliest next tokens after each token of a request, for drafters that are calibrated with
 * the model's own distribution (sd.npu 3.3). */
#pragma once

#include "sim/drive/drive_impl.h"

#define TOPK 8

/* After one token; n = 0: nobody computed it. The likeliest comes first. */
struct topk {
    uint32_t n;
    int32_t token[TOPK];
    float probability[TOPK];
};

/* Fills one from the logits of a vocabulary. */
void topk_fill(const float *logits, uint32_t vocab, struct topk *out);
/* Takes what a pass that has ended says after each of its rows. Rows that sample have the engine's
 * logits. For other rows of a prompt the host computes the head, with weights that no engine has
 * quantised: vocabulary x width products a row. Before the pass's tokens are taken. */
void topk_take(struct drive *d, const struct full_pass *full);
/* Writes a line per request that has an answer, as token texts (traces/README.md). */
void topk_write(const struct drive *d);
