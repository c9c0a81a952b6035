#include "hwmodels/backends/plan.h"

struct scale {
    uint32_t dim;      /* inputs of a matrix */
    uint32_t rows_max; /* of products */
    uint64_t stream_bytes;
    uint32_t heads, kv_heads, head_dim, context_tokens;
};

const char *const plan_sizes[] = {"tiny", "small", "full", NULL};
static const struct scale scales[] = {
    {256, 64, 1u << 20, 8, 2, 64, 128},
    {1024, 256, 16u << 20, 16, 4, 64, 512},
    {4096, 512, 64u << 20, 32, 8, 128, 1024},
};

static struct kernel_spec product(const struct backend_info *d, uint32_t bits, uint32_t rows,
                                  uint32_t n, uint32_t k)
{
    return (struct kernel_spec){.op = rows == 1 ? KERNEL_GEMV : KERNEL_GEMM,
                                .weight_bits = bits,
                                .act_bits = d->act_bits,
                                .rows = rows,
                                .n = n,
                                .k = k};
}

static struct kernel_spec stream(const struct backend_info *d, enum kernel_op op, uint64_t bytes,
                                 uint32_t intensity)
{
    return (struct kernel_spec){.op = op,
                                .weight_bits = 32,
                                .act_bits = d->act_bits,
                                .rows = 1,
                                .stream_bytes = bytes,
                                .intensity_flop_per_byte = intensity};
}

static struct kernel_spec attention(const struct backend_info *d, const struct scale *s,
                                    enum kernel_op op, uint32_t rows, uint32_t context)
{
    return (struct kernel_spec){.op = op,
                                .weight_bits = d->kv_bits,
                                .act_bits = d->act_bits,
                                .rows = rows,
                                .heads = s->heads,
                                .kv_heads = s->kv_heads,
                                .head_dim = s->head_dim,
                                .context_tokens = context};
}

static void add(struct plan *p, struct kernel_spec s, bool held_out)
{
    SIM_REQUIRE(p->n < PLAN_MAX_KERNELS, "room for every shape");
    s.held_out = held_out;
    p->kernels[p->n++] = s;
}

/* Rows 2, 8, 32, ... are fitted; 4, 16, 64, ... are held out to test the fit. */
static void add_products(struct plan *p, const struct backend_info *d, const struct scale *s,
                         uint32_t bits)
{
    uint32_t dim = s->dim;
    uint32_t tiny = dim / 16;
    bool held = false;
    for (uint32_t rows = 2; rows <= s->rows_max; rows *= 2) {
        add(p, product(d, bits, rows, dim, dim), held);
        held = !held;
    }
    /* Tiny products are mostly launch cost. Without them the fit could not separate launch cost
     * from a lower bandwidth. */
    add(p, product(d, bits, 2, tiny, tiny), false);
    add(p, product(d, bits, 8, tiny, tiny), false);
    /* Widths of an FFN, which are not fitted, so that held-out shapes test more than interpolation
     * between rows. */
    add(p, product(d, bits, 24, dim * 11 / 4, dim), true);
    add(p, product(d, bits, 48, dim / 2, dim), true);
    add(p, product(d, bits, 1, dim, dim), false);
    add(p, product(d, bits, 1, 2 * dim, dim), false);
    add(p, product(d, bits, 1, dim / 4, dim), false);
    add(p, product(d, bits, 1, tiny, tiny), false);
    add(p, product(d, bits, 1, dim * 11 / 4, dim), true);
    add(p, product(d, bits, 1, dim / 2, dim), true);
}

static void add_attention(struct plan *p, const struct backend_info *d, const struct scale *s)
{
    uint32_t c = s->context_tokens;
    add(p, attention(d, s, KERNEL_PREFILL, c / 16, c / 2), false);
    add(p, attention(d, s, KERNEL_PREFILL, c / 8, c), false);
    add(p, attention(d, s, KERNEL_PREFILL, c / 16, c * 3 / 4), true);
    add(p, attention(d, s, KERNEL_DECODE, 1, c), false);
    /* A factor of four in context, because decode attention is fitted to the slope. */
    add(p, attention(d, s, KERNEL_DECODE, 1, 4 * c), false);
    add(p, attention(d, s, KERNEL_DECODE, 4, c), false);
    add(p, attention(d, s, KERNEL_DECODE, 1, 2 * c), true);
    add(p, attention(d, s, KERNEL_DECODE, 1, 3 * c), true);
}

void plan_kernels(const struct backend_info *d, enum plan_size size, struct plan *out)
{
    const struct scale *s = &scales[size];
    out->n = 0;
    for (uint32_t i = 0; i < d->n_widths; i++) {
        add_products(out, d, s, d->weight_bits[i]);
    }
    if (d->kv_bits > 0) {
        add_attention(out, d, s);
    }
    add(out, stream(d, KERNEL_READ, s->stream_bytes, 0), false);
    add(out, stream(d, KERNEL_READ, s->stream_bytes / 2, 0), true);
    add(out, stream(d, KERNEL_COPY, s->stream_bytes / 2, 0), false);
    add(out, stream(d, KERNEL_COPY, s->stream_bytes / 4, 0), true);
    bool held = false;
    for (uint32_t intensity = 1; intensity <= 128; intensity *= 2) {
        add(out, stream(d, KERNEL_KNOB, s->stream_bytes / 4, intensity), held);
        /* The highest intensities are all fitted, because they determine the rate. */
        held = !held && intensity < 64;
    }
}

static void pair(struct plan_pairs *p, struct kernel_spec a, struct kernel_spec b, bool held_out)
{
    SIM_REQUIRE(p->n < PLAN_MAX_PAIRS, "room for every pair");
    p->pairs[p->n++] = (struct plan_pair){{a, b}, held_out};
}

static void pair_streams(const struct backend_info *a, const struct backend_info *b,
                         const struct scale *s, struct plan_pairs *out)
{
    uint64_t bytes = s->stream_bytes / 4;
    struct kernel_spec read_a = stream(a, KERNEL_READ, s->stream_bytes, 0);
    struct kernel_spec read_b = stream(b, KERNEL_READ, s->stream_bytes, 0);
    pair(out, read_a, read_b, false);
    pair(out, stream(a, KERNEL_COPY, s->stream_bytes / 2, 0), read_b, true);
    for (uint32_t i = 1; i <= 64; i *= 2) {
        pair(out, stream(a, KERNEL_KNOB, bytes, i), read_b, i == 4);
        pair(out, read_a, stream(b, KERNEL_KNOB, bytes, i), i == 8);
    }
}

void plan_pairs(const struct backend_info *a, const struct backend_info *b, enum plan_size size,
                struct plan_pairs *out)
{
    const struct scale *s = &scales[size];
    uint32_t dim = s->dim;
    uint32_t wa = a->weight_bits[0];
    uint32_t wb = b->weight_bits[0];
    out->n = 0;
    pair_streams(a, b, s, out);
    struct kernel_spec gemv_a = product(a, wa, 1, dim, dim);
    struct kernel_spec gemv_b = product(b, wb, 1, dim, dim);
    struct kernel_spec gemm_a = product(a, wa, s->rows_max / 4, dim, dim);
    struct kernel_spec gemm_b = product(b, wb, s->rows_max / 4, dim, dim);
    for (uint32_t i = 0; i < a->n_widths && i < b->n_widths; i++) {
        pair(out, product(a, a->weight_bits[i], 1, dim, dim),
             product(b, b->weight_bits[i], 1, dim, dim), false);
    }
    pair(out, gemv_a, stream(b, KERNEL_READ, s->stream_bytes, 0), false);
    pair(out, stream(a, KERNEL_READ, s->stream_bytes, 0), gemv_b, true);
    pair(out, gemm_a, gemv_b, false);
    pair(out, gemv_a, gemm_b, true);
    pair(out, gemm_a, gemm_b, true);
    if (a->kv_bits > 0 && b->kv_bits > 0) {
        struct kernel_spec decode_a = attention(a, s, KERNEL_DECODE, 1, 4 * s->context_tokens);
        struct kernel_spec decode_b = attention(b, s, KERNEL_DECODE, 1, 4 * s->context_tokens);
        pair(out, decode_a, decode_b, false);
        pair(out, decode_a, stream(b, KERNEL_READ, s->stream_bytes, 0), false);
        pair(out, gemv_a, decode_b, true);
        pair(out, gemm_a, decode_b, true);
    }
}

#define MAX_KINDS 7

static uint32_t kinds_of(const struct backend_info *d, const struct scale *s,
                         struct kernel_spec out[MAX_KINDS])
{
    uint32_t bits = d->weight_bits[0];
    uint32_t n = 0;
    out[n++] = stream(d, KERNEL_READ, s->stream_bytes, 0);
    out[n++] = stream(d, KERNEL_COPY, s->stream_bytes / 2, 0);
    out[n++] = product(d, bits, 1, s->dim, s->dim);
    out[n++] = product(d, bits, 2, s->dim, s->dim);
    out[n++] = product(d, bits, s->rows_max / 4, s->dim, s->dim);
    if (d->kv_bits > 0) {
        out[n++] = attention(d, s, KERNEL_PREFILL, s->context_tokens / 8, s->context_tokens);
        out[n++] = attention(d, s, KERNEL_DECODE, 1, 4 * s->context_tokens);
    }
    return n;
}

void plan_every_pair(const struct backend_info *a, const struct backend_info *b,
                     enum plan_size size, struct plan_pairs *out)
{
    struct kernel_spec of_a[MAX_KINDS];
    struct kernel_spec of_b[MAX_KINDS];
    uint32_t n_a = kinds_of(a, &scales[size], of_a);
    uint32_t n_b = kinds_of(b, &scales[size], of_b);
    out->n = 0;
    for (uint32_t i = 0; i < n_a; i++) {
        for (uint32_t k = 0; k < n_b; k++) {
            pair(out, of_a[i], of_b[k], false);
        }
    }
}
