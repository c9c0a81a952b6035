/* Memory of the process that runs a model: weights, KV, and what the runtime needs next to them.
 *
 *   bytes = fixed + weights x weight bytes + tokenizer x vocabulary
 *           + (activations x width of the model + KV bytes) x tokens
 *           + scores x heads x tokens^2
 *
 * The numbers are a device's (`footprint` in its SoC file), of the runtime that they name. The
 * first four were fitted to published peaks of the resident set (`xpusim calibrate --points
 * reference --memory`). The resident set has the interpreter, compiled kernels and their blobs in
 * it. `scores` is the device's own and is not fitted. It is 2 bytes where attention is not fused:
 * one layer's matrix of scores is whole there. Elsewhere it is 0. */
#pragma once

#include "hwmodels/soc.h"

#define FOOTPRINT_OTHER "other" /* numbers of a runtime that nobody measured: a mean of others */

double footprint_bytes(const struct soc_memory *m, const struct llm *llm, double tokens);

struct footprint_model {
    const struct llm *llm;
    double tokens; /* of its longest prompt that one pass holds */
};
/* The runtime's addition to the ledger's weights and KV, at least 0, where one process holds n
 * models: each has weights and a tokenizer, and one pass at a time has activations. */
double footprint_extra_bytes(const struct soc_memory *m, const struct footprint_model *of,
                             uint32_t n);
