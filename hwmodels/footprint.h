/* Memory of the process that runs a model: weights, KV, and what the runtime needs next to them.
 *
 *   bytes = fixed + weights x weight bytes + tokenizer x vocabulary
 *           + (activations x width of the model + KV bytes) x tokens
 *           + scores x heads x tokens^2
 *
 * The numbers are those of a device (`footprint` in its SoC file) and the runtime named there. The
 * first four were fitted to published peaks of the resident set (`xpusim calibrate --points
 * reference --memory`). The resident set includes the interpreter, compiled kernels and their
 * blobs. `scores` is not fitted. It is 2 bytes if attention is not fused, because one layer's
 * matrix of scores is in memory then; else 0. */
#pragma once

#include "hwmodels/soc.h"

#define FOOTPRINT_OTHER "other" /* for an unmeasured runtime: the mean of the others */

double footprint_bytes(const struct soc_memory *m, const struct llm *llm, double tokens);

struct footprint_model {
    const struct llm *llm;
    double tokens; /* of its longest prompt, as far as one pass has them */
};
/* The runtime's memory on top of the ledger's weights and KV, >= 0, for one process with n models.
 * Each model has weights and a tokenizer, and one pass at a time has activations. */
double footprint_extra_bytes(const struct soc_memory *m, const struct footprint_model *of,
                             uint32_t n);
