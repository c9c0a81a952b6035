/* The kernel-time model of the 125H and a shipped LLM, and the shapes of plain passes. */
#pragma once

#include <check.h>
#include <math.h>

#include "hwmodels/roofline.h"

enum { MODEL_NPU = 0, MODEL_IGPU = 1, MODEL_CPU = 2 };

struct model {
    struct soc soc;
    struct llm llm;
    struct roofline r;
};

/* Ends the process when a shipped file does not load. soc and llm may be changed afterwards: the
 * model borrows them. */
void model_init(struct model *m, const char *llm, const char *form);

/* A whole prompt, causal; and one token for each of `sequences` with that many keys. */
struct work_shape model_prefill(uint64_t tokens);
struct work_shape model_decode(uint32_t sequences, uint64_t context);

struct kernel_cost model_cost(const struct model *m, int device, enum op_kind op,
                              const struct work_shape *w, uint32_t rows, uint32_t padded_rows);

/* Fails the running test unless got is within the fraction of want. */
static inline void model_near(double got, double want, double frac)
{
    ck_assert_msg(fabs(got - want) <= frac * want, "%.6g, expected %.6g within %.2g", got, want,
                  frac);
}
