/* A kernel to measure: its computation, its work and its bytes.
 *
 * Work W and traffic Q follow Agent.xpu v2, Appendix B. A rows x k times k x n product has W = 2
 * rows k n flop. It reads its weights once, and activations cross DDR once each way. Attention has
 * 4 heads head_dim flop per (query, key) pair, and reads each key's K and V once. */
#pragma once

#include "sim/base/base.h"

enum kernel_op {
    KERNEL_READ,    /* stream through memory */
    KERNEL_COPY,    /* memory to memory */
    KERNEL_KNOB,    /* stream with a chosen number of flop per byte */
    KERNEL_GEMV,    /* one row times a matrix */
    KERNEL_GEMM,    /* several rows times a matrix */
    KERNEL_PREFILL, /* causal attention of several new tokens of one sequence */
    KERNEL_DECODE,  /* attention of one new token in each of several sequences */
    KERNEL_OP_COUNT
};

struct kernel_spec {
    enum kernel_op op;
    uint32_t weight_bits; /* weights; KV cache of attention; 32 for streams */
    uint32_t act_bits;
    /* GEMM; attention: new tokens (decode: sequences); else 1 */
    uint32_t rows;
    uint32_t n, k;                      /* products: outputs, inputs */
    uint32_t heads, kv_heads, head_dim; /* attention */
    uint32_t context_tokens;            /* attention: all keys of one sequence */
    uint32_t intensity_flop_per_byte;   /* KNOB */
    uint64_t stream_bytes;              /* READ, COPY, KNOB: bytes read */
    bool held_out;                      /* only to check a fit */
};

/* "gemm", "decode", ... */
const char *kernel_op_name(enum kernel_op op);
extern const char *const kernel_op_names[KERNEL_OP_COUNT + 1]; /* NULL ends them */
bool kernel_op_is_attention(enum kernel_op op);
bool kernel_op_is_product(enum kernel_op op);

double kernel_spec_flop(const struct kernel_spec *s);
/* DDR traffic. */
double kernel_spec_bytes(const struct kernel_spec *s);
/* The traffic that must not be cached in a measurement: weights, KV, the stream. */
uint64_t kernel_spec_weight_bytes(const struct kernel_spec *s);

/* "gemm-w16-m64-n4096-k4096"; unique for different work. Kept until the command ends. */
const char *kernel_spec_name(const struct kernel_spec *s);
