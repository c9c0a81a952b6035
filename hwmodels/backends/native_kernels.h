/* Own CPU kernels, one set per instruction set. The backend starts with the best set that the
 * processor has. All sets compute the same within rounding.
 *
 * Layouts: weights w[n][k], activations x[rows][k], results y[rows][n]; attention queries and
 * results [row][head][dim], keys and values [kv_head][key][dim] in half precision, one after the
 * other. Lengths k, head_dim and streams are multiples of 16 elements, and n of 4. */
#pragma once

#include <stdint.h>

#define NATIVE_MAX_GROUP 16 /* query heads that share one key head */

struct native_attention {
    uint32_t rows;                      /* new tokens, the last at the end of the context */
    uint32_t context_tokens;            /* keys */
    uint32_t heads, kv_heads, head_dim; /* heads <= NATIVE_MAX_GROUP kv_heads */
};

struct native_product {
    uint32_t rows, n, k;
    const void *library; /* of sets that call one (blas.c); borrowed */
};

struct native_kernels {
    const char *name; /* "avx512", "avx2", "scalar" */
    /* Sum of all elements: touches every byte. */
    float (*read)(const float *x, uint64_t n);
    /* Sum over elements of a polynomial chain: flop_per_element / 2 dependent multiply-adds. */
    float (*knob)(const float *x, uint64_t n, uint32_t flop_per_element);
    void (*product_f32)(const struct native_product *p, const float *x, const void *w, float *y);
    void (*product_f16)(const struct native_product *p, const float *x, const void *w, float *y);
    void (*product_i8)(const struct native_product *p, const float *x, const void *w, float *y);
    /* scratch: heads / kv_heads * context_tokens floats. */
    void (*attention)(const struct native_attention *a, const float *q, const uint16_t *keys,
                      const uint16_t *values, float *out, float *scratch);
};

extern const struct native_kernels native_scalar;
/* NULL functions where the compiler's target has no such instructions. */
extern const struct native_kernels native_avx2, native_avx512;

/* The best set this processor runs. */
const struct native_kernels *native_kernels_best(void);
/* All sets this processor runs, best first; NULL-terminated. */
const struct native_kernels *const *native_kernels_usable(void);
