#include "hwmodels/kernel_spec.h"

const char *const kernel_op_names[KERNEL_OP_COUNT + 1] = {"read", "copy",    "knob",   "gemv",
                                                          "gemm", "prefill", "decode", NULL};

const char *kernel_op_name(enum kernel_op op)
{
    return kernel_op_names[op];
}

bool kernel_op_is_attention(enum kernel_op op)
{
    return op == KERNEL_PREFILL || op == KERNEL_DECODE;
}

bool kernel_op_is_product(enum kernel_op op)
{
    return op == KERNEL_GEMV || op == KERNEL_GEMM;
}

/* (query, key) pairs: the last of `rows` new tokens sees the whole context, the one before it one
 * key less, and so on; a decoding sequence has one query. */
static double attention_pairs(const struct kernel_spec *s)
{
    double rows = s->rows;
    double context = s->context_tokens;
    return s->op == KERNEL_DECODE ? rows * context : rows * context - rows * (rows - 1.0) / 2.0;
}

double kernel_spec_flop(const struct kernel_spec *s)
{
    switch (s->op) {
    case KERNEL_KNOB:
        return (double)s->stream_bytes * s->intensity_flop_per_byte;
    case KERNEL_GEMV:
    case KERNEL_GEMM:
        return 2.0 * s->rows * (double)s->n * s->k;
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
        /* Two products, queries by keys and weights by values, of a multiplication and an addition
         * each. */
        return 4.0 * s->heads * s->head_dim * attention_pairs(s);
    default:
        return 0.0;
    }
}

uint64_t kernel_spec_weight_bytes(const struct kernel_spec *s)
{
    uint64_t sequences = s->op == KERNEL_DECODE ? s->rows : 1;
    switch (s->op) {
    case KERNEL_GEMV:
    case KERNEL_GEMM:
        return (uint64_t)s->n * s->k * s->weight_bits / 8;
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
        /* Keys and values instead of weights: each decode sequence has its own, a prefill has one
         * for all its rows. */
        return 2 * sequences * s->context_tokens * s->kv_heads * s->head_dim * s->weight_bits / 8;
    default:
        return s->stream_bytes;
    }
}

double kernel_spec_bytes(const struct kernel_spec *s)
{
    double fixed = (double)kernel_spec_weight_bytes(s);
    double act_bytes = s->act_bits / 8.0;
    switch (s->op) {
    case KERNEL_COPY:
        return 2.0 * fixed;
    case KERNEL_GEMV:
    case KERNEL_GEMM:
        return fixed + act_bytes * s->rows * ((double)s->n + s->k);
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
        return fixed + act_bytes * s->rows * 2.0 * s->heads * s->head_dim;
    default:
        return fixed;
    }
}

const char *kernel_spec_name(const struct kernel_spec *s)
{
    const char *op = kernel_op_name(s->op);
    switch (s->op) {
    case KERNEL_GEMV:
    case KERNEL_GEMM:
        return xkeep(xformat("%s-w%" PRIu32 "-m%" PRIu32 "-n%" PRIu32 "-k%" PRIu32, op,
                             s->weight_bits, s->rows, s->n, s->k));
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
        return xkeep(xformat(
            "%s-kv%" PRIu32 "-m%" PRIu32 "-c%" PRIu32 "-h%" PRIu32 "x%" PRIu32 "-d%" PRIu32, op,
            s->weight_bits, s->rows, s->context_tokens, s->heads, s->kv_heads, s->head_dim));
    case KERNEL_KNOB:
        return xkeep(xformat("%s-%" PRIu32 "-%" PRIu64 "k", op, s->intensity_flop_per_byte,
                             s->stream_bytes / 1024));
    default:
        return xkeep(xformat("%s-%" PRIu64 "k", op, s->stream_bytes / 1024));
    }
}
