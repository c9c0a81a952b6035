/* Parts of a measurement, each against a second reading of its header: the plan of shapes and
 * pairs, what a row says of its kernel and a file of its rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/backends/plan.h"
#include "hwmodels/kernel_rows.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

/* ---- plans ---- */

/* Two devices that differ in every width, so that a shape says whose it is. */
static const struct backend_info npu = {
    .n_widths = 2, .weight_bits = {4, 8}, .kv_bits = 8, .act_bits = 16};
static const struct backend_info cpu = {.n_widths = 1, .weight_bits = {32}, .act_bits = 32};
static const struct backend_info gpu = {
    .n_widths = 3, .weight_bits = {2, 6, 12}, .kv_bits = 24, .act_bits = 64};

static bool is_of(const struct kernel_spec *s, const struct backend_info *d)
{
    bool width = s->weight_bits == 32;
    for (uint32_t i = 0; kernel_op_is_product(s->op) && i < d->n_widths; i++) {
        width = (i > 0 && width) || s->weight_bits == d->weight_bits[i];
    }
    width = kernel_op_is_attention(s->op) ? s->weight_bits == d->kv_bits : width;
    return width && s->act_bits == d->act_bits;
}

static uint32_t count(const struct plan *p, enum kernel_op op, int held_out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        n += p->kernels[i].op == op && (held_out < 0 || p->kernels[i].held_out == (held_out > 0));
    }
    return n;
}

/* By the header rows double from 2 to 64, 256 or 512 (6, 8 or 9 of them, every other one held out).
 * There are two tiny products and two of other widths. Six products have one row, and two of them
 * are held out. There are eight of attention, three held out, and two streams of each kind, one
 * held out. Intensities are 1 to 128, and 2, 8 and 32 of them are held out. */
START_TEST(a_plan_has_every_shape_once)
{
    static const uint32_t doublings[] = {6, 8, 9};
    static struct plan p;
    const struct backend_info *d = _i % 3 == 0 ? &npu : _i % 3 == 1 ? &cpu : &gpu;
    enum plan_size size = (enum plan_size)(_i / 3);
    uint32_t more = doublings[size];
    plan_kernels(d, size, &p);
    ck_assert_uint_eq(count(&p, KERNEL_GEMM, -1), d->n_widths * (more + 4));
    ck_assert_uint_eq(count(&p, KERNEL_GEMM, 1), d->n_widths * (more / 2 + 2));
    ck_assert_uint_eq(count(&p, KERNEL_GEMV, -1), d->n_widths * 6);
    ck_assert_uint_eq(count(&p, KERNEL_GEMV, 1), d->n_widths * 2);
    ck_assert_uint_eq(count(&p, KERNEL_PREFILL, -1), d->kv_bits > 0 ? 3 : 0);
    ck_assert_uint_eq(count(&p, KERNEL_PREFILL, 1), d->kv_bits > 0 ? 1 : 0);
    ck_assert_uint_eq(count(&p, KERNEL_DECODE, -1), d->kv_bits > 0 ? 5 : 0);
    ck_assert_uint_eq(count(&p, KERNEL_DECODE, 1), d->kv_bits > 0 ? 2 : 0);
    ck_assert_uint_eq(count(&p, KERNEL_READ, -1), 2);
    ck_assert_uint_eq(count(&p, KERNEL_READ, 1), 1);
    ck_assert_uint_eq(count(&p, KERNEL_COPY, -1), 2);
    ck_assert_uint_eq(count(&p, KERNEL_COPY, 1), 1);
    ck_assert_uint_eq(count(&p, KERNEL_KNOB, -1), 8);
    uint32_t intensity = 1;
    uint32_t whole = 0; /* bits of the rows of products of the first width that are fitted */
    for (uint32_t i = 0; i < p.n; i++) {
        const struct kernel_spec *s = &p.kernels[i];
        const char *name = kernel_spec_name(s);
        ck_assert_msg(is_of(s, d), "%s", name);
        for (uint32_t k = 0; k < i; k++) {
            ck_assert_str_ne(name, kernel_spec_name(&p.kernels[k]));
        }
        if (s->op == KERNEL_KNOB) {
            ck_assert_uint_eq(s->intensity_flop_per_byte, intensity);
            ck_assert_int_eq(s->held_out, intensity == 2 || intensity == 8 || intensity == 32);
            intensity *= 2;
        }
        bool square = s->op == KERNEL_GEMM && s->n == s->k && s->n >= 256 &&
                      s->weight_bits == d->weight_bits[0];
        whole |= square && !s->held_out ? s->rows : 0;
        ck_assert(s->op != KERNEL_PREFILL || s->rows < s->context_tokens);
        ck_assert(s->op == KERNEL_GEMM || s->op == KERNEL_PREFILL || s->op == KERNEL_DECODE ||
                  s->rows == 1);
    }
    /* The rows are 2, 8, 32, 128, 512 up to the largest. */
    ck_assert_uint_eq(whole & 0x2aau, 0x2aau & ((2u << more) - 1));
    ck_assert_uint_eq(whole & 0x154u, 0);
}
END_TEST

/* The longest stream has 2^20 bytes in the smallest plan, and 16 and 64 times that in the others.
 * The widest product has 11/4 of the plan's width. */
START_TEST(sizes_are_found_by_name_and_grow)
{
    static struct plan p[3];
    ck_assert_str_eq(plan_sizes[PLAN_TINY], "tiny");
    ck_assert_str_eq(plan_sizes[PLAN_SMALL], "small");
    ck_assert_str_eq(plan_sizes[PLAN_FULL], "full");
    ck_assert_ptr_null(plan_sizes[PLAN_FULL + 1]);
    static const uint64_t streams[] = {1, 16, 64};
    for (int i = 0; i < 3; i++) {
        uint64_t longest = 0;
        double largest = 0.0;
        plan_kernels(&npu, (enum plan_size)i, &p[i]);
        for (uint32_t k = 0; k < p[i].n; k++) {
            const struct kernel_spec *s = &p[i].kernels[k];
            longest = s->stream_bytes > longest ? s->stream_bytes : longest;
            largest = fmax(largest, s->op == KERNEL_GEMM ? (double)s->n : 0.0);
        }
        ck_assert_uint_eq(longest, streams[i] << 20);
        ck_assert_double_eq(largest, (i == 0 ? 256 : i == 1 ? 1024 : 4096) * 11 / 4);
    }
}
END_TEST

static void check_sides(const struct plan_pairs *p, const struct backend_info *a,
                        const struct backend_info *b)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const char *x[2] = {kernel_spec_name(&p->pairs[i].side[0]),
                            kernel_spec_name(&p->pairs[i].side[1])};
        ck_assert_msg(is_of(&p->pairs[i].side[0], a) && is_of(&p->pairs[i].side[1], b),
                      "%s beside %s", x[0], x[1]);
        for (uint32_t k = 0; k < i; k++) {
            const char *y[2] = {kernel_spec_name(&p->pairs[k].side[0]),
                                kernel_spec_name(&p->pairs[k].side[1])};
            ck_assert_msg(strcmp(x[0], y[0]) != 0 || strcmp(x[1], y[1]) != 0, "twice: %s beside %s",
                          x[0], x[1]);
        }
    }
}

/* Reads together, a copy next to a read, and seven intensities on either side: 16 pairs, of which
 * three are held out. Products of one row by width, five more with products, three held out; and
 * four with attention where both have it, two held out. */
START_TEST(pairs_have_the_first_device_on_the_first_side)
{
    static const struct backend_info *const all[] = {&npu, &cpu, &gpu};
    static struct plan_pairs p;
    for (int i = 0; i < 9; i++) {
        const struct backend_info *a = all[i / 3];
        const struct backend_info *b = all[i % 3];
        uint32_t widths = a->n_widths < b->n_widths ? a->n_widths : b->n_widths;
        bool attention = a->kv_bits > 0 && b->kv_bits > 0;
        plan_pairs(a, b, (enum plan_size)_i, &p);
        uint32_t held = 0;
        for (uint32_t k = 0; k < p.n; k++) {
            held += p.pairs[k].held_out;
        }
        ck_assert_uint_eq(p.n, 16 + widths + 5 + (attention ? 4 : 0));
        ck_assert_uint_eq(held, 3 + 3 + (attention ? 2u : 0u));
        check_sides(&p, a, b);
        plan_every_pair(a, b, (enum plan_size)_i, &p);
        ck_assert_uint_eq(p.n, (a->kv_bits > 0 ? 7u : 5u) * (b->kv_bits > 0 ? 7u : 5u));
        check_sides(&p, a, b);
    }
}
END_TEST

/* ---- rows ---- */

static struct kernel_spec random_spec(struct rng *r)
{
    struct kernel_spec s = {.op = (enum kernel_op)rng_below(r, KERNEL_OP_COUNT),
                            .weight_bits = 4u << rng_below(r, 4),
                            .act_bits = 8u << rng_below(r, 3),
                            .rows = 1,
                            .held_out = rng_below(r, 2) > 0};
    if (kernel_op_is_attention(s.op)) {
        s.rows = 2 + rng_below(r, 30);
        s.kv_heads = 1 + rng_below(r, 8);
        s.heads = s.kv_heads * (1 + rng_below(r, 4));
        s.head_dim = 16 * (1 + rng_below(r, 8));
        s.context_tokens = 40 + rng_below(r, 1000);
    } else if (kernel_op_is_product(s.op)) {
        s.rows = s.op == KERNEL_GEMV ? 1 : 2 + rng_below(r, 500);
        s.n = 8 * (1 + rng_below(r, 500));
        s.k = 8 * (1 + rng_below(r, 500));
    } else {
        s.stream_bytes = 64 * (1 + (uint64_t)rng_below(r, 1000000));
        s.intensity_flop_per_byte = s.op == KERNEL_KNOB ? 1 + rng_below(r, 128) : 0;
    }
    return s;
}

/* Computes W and Q of the header, counting one (query, key) pair at a time. */
static void work_of(const struct kernel_spec *s, double *flop, double *bytes)
{
    double act = s->act_bits / 8.0;
    double weight = s->weight_bits / 8.0;
    if (kernel_op_is_product(s->op)) {
        *flop = 2.0 * s->rows * s->k * s->n;
        *bytes = weight * s->k * s->n + act * s->rows * s->k + act * s->rows * s->n;
    } else if (kernel_op_is_attention(s->op)) {
        uint64_t pairs = 0;
        for (uint32_t row = 0; row < s->rows; row++) {
            pairs += s->op == KERNEL_DECODE ? s->context_tokens : s->context_tokens - row;
        }
        double keys =
            s->op == KERNEL_DECODE ? (double)s->rows * s->context_tokens : s->context_tokens;
        *flop = 4.0 * s->heads * s->head_dim * (double)pairs;
        *bytes = 2.0 * keys * s->kv_heads * s->head_dim * weight +
                 2.0 * act * s->rows * s->heads * s->head_dim;
    } else {
        *flop = s->op == KERNEL_KNOB ? (double)s->stream_bytes * s->intensity_flop_per_byte : 0.0;
        *bytes = (s->op == KERNEL_COPY ? 2.0 : 1.0) * (double)s->stream_bytes;
    }
}

static char *written_name(const struct kernel_spec *s)
{
    static const char *const ops[] = {"read", "copy", "knob", "gemv", "gemm", "prefill", "decode"};
    if (kernel_op_is_product(s->op)) {
        return xformat("%s-w%u-m%u-n%u-k%u", ops[s->op], s->weight_bits, s->rows, s->n, s->k);
    }
    if (kernel_op_is_attention(s->op)) {
        return xformat("%s-kv%u-m%u-c%u-h%ux%u-d%u", ops[s->op], s->weight_bits, s->rows,
                       s->context_tokens, s->heads, s->kv_heads, s->head_dim);
    }
    unsigned long long kib = s->stream_bytes / 1024;
    return s->op == KERNEL_KNOB ? xformat("knob-%u-%lluk", s->intensity_flop_per_byte, kib)
                                : xformat("%s-%lluk", ops[s->op], kib);
}

START_TEST(a_row_says_what_its_kernel_is)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 101, 0));
    for (int i = 0; i < 500; i++) {
        struct kernel_spec s = random_spec(&r);
        struct kernel_row row;
        double flop = 0.0;
        double bytes = 0.0;
        memset(&row, 0, sizeof row);
        kernel_row_set_spec(&row, &s);
        OWNED char *name = written_name(&s);
        work_of(&s, &flop, &bytes);
        ck_assert_str_eq(row.model, name);
        ck_assert_int_eq(row.op, s.op);
        ck_assert_uint_eq(row.weight_bits, s.weight_bits);
        ck_assert_uint_eq(row.act_bits, s.act_bits);
        ck_assert_uint_eq(row.rows, s.rows);
        ck_assert_uint_eq(row.batch, s.op == KERNEL_DECODE ? s.rows : 1);
        ck_assert_uint_eq(row.tokens, kernel_op_is_product(s.op) ? s.rows : s.context_tokens);
        ck_assert_int_eq(row.held_out, s.held_out);
        ck_assert_msg(fabs(row.flop - flop) <= 1e-12 * flop, "%s: %g, not %g", name, row.flop,
                      flop);
        ck_assert_msg(fabs(row.bytes - bytes) <= 1e-12 * bytes, "%s: %g, not %g", name, row.bytes,
                      bytes);
    }
}
END_TEST

/* A file read twice has its rows twice, and the second ones' repetitions follow the first ones'. */
START_TEST(rows_are_read_as_they_were_written)
{
    enum { N = 60, REPETITIONS = 7 };
    static const char *const about[] = {"a line", "and another"};
    struct rng r;
    struct err e = ERR_INIT;
    struct kernel_rows rows;
    static struct kernel_row wrote[N];
    char *text = NULL;
    size_t size = 0;
    rng_init(&r, rng_key(2, RNG_TEST, 101, 0));
    FILE *out = open_memstream(&text, &size);
    kernel_rows_write_head(out, 123456789.0, about, 2);
    for (uint32_t i = 0; i < N; i++) {
        struct kernel_spec s = random_spec(&r);
        struct kernel_row *w = &wrote[i];
        kernel_row_set_spec(w, &s);
        w->soc = xkeep(xformat("soc-%u", rng_below(&r, 9)));
        w->device = xkeep(xformat("dev%u", rng_below(&r, 9)));
        w->runtime = xkeep(xformat("run%u", rng_below(&r, 9)));
        w->source = xkeep(xformat("from, \"%u\"", rng_below(&r, 9)));
        w->kind = (enum device_kind)rng_below(&r, 3);
        w->metric = (enum kernel_metric)rng_below(&r, KERNEL_METRIC_COUNT);
        w->partner = xkeep(xformat("dev:%u", rng_below(&r, 9)));
        w->flag = xkeep(xstrdup(i % 3 == 0 ? "steal" : ""));
        w->repetition = i % REPETITIONS;
        w->samples = rng_below(&r, 1000);
        w->value = 0.5 + rng_below(&r, 1000);
        w->p10 = 0.25 * rng_below(&r, 1000);
        w->p90 = 0.25 * rng_below(&r, 1000);
        w->foreign_frac = i % 4 == 0 ? -1.0 : 0.125 * rng_below(&r, 8);
        w->steal_frac = i % 5 == 0 ? -1.0 : 0.0625 * rng_below(&r, 16);
        kernel_row_write(out, w);
    }
    ck_assert_int_eq(fclose(out), 0);
    rows = (struct kernel_rows){.n = 0};
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(kernel_rows_read_stream(&rows, fmemopen(text, size, "r"), "rows", &e), 0);
    }
    ck_assert_double_eq(rows.memory_bytes, 123456789.0);
    ck_assert_uint_eq(rows.n, 2 * N);
    for (uint32_t i = 0; i < 2 * N; i++) {
        const struct kernel_row *w = &wrote[i % N];
        const struct kernel_row *x = &rows.v[i];
        ck_assert_str_eq(x->soc, w->soc);
        ck_assert_str_eq(x->device, w->device);
        ck_assert_str_eq(x->runtime, w->runtime);
        ck_assert_str_eq(x->model, w->model);
        ck_assert_str_eq(x->partner, w->partner);
        ck_assert_str_eq(x->source, w->source);
        ck_assert_str_eq(x->flag, w->flag);
        ck_assert_int_eq(x->kind, w->kind);
        ck_assert_int_eq(x->op, w->op);
        ck_assert_int_eq(x->metric, w->metric);
        ck_assert_uint_eq(x->weight_bits, w->weight_bits);
        ck_assert_uint_eq(x->act_bits, w->act_bits);
        ck_assert_uint_eq(x->tokens, w->tokens);
        ck_assert_uint_eq(x->rows, w->rows);
        ck_assert_uint_eq(x->batch, w->batch);
        ck_assert_uint_eq(x->samples, w->samples);
        ck_assert_uint_eq(x->repetition, w->repetition + (i < N ? 0 : REPETITIONS));
        ck_assert_int_eq(x->held_out, w->held_out);
        ck_assert_double_eq(x->flop, w->flop);
        ck_assert_double_eq(x->bytes, w->bytes);
        ck_assert_double_eq(x->value, w->value);
        ck_assert_double_eq(x->p10, w->p10);
        ck_assert_double_eq(x->p90, w->p90);
        ck_assert_double_eq(x->foreign_frac, w->foreign_frac);
        ck_assert_double_eq(x->steal_frac, w->steal_frac);
    }
    free(text);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(a_plan_has_every_shape_once, 9),
    TEST(sizes_are_found_by_name_and_grow),
    LOOP(pairs_have_the_first_device_on_the_first_side, 3),
    TEST(a_row_says_what_its_kernel_is),
    TEST(rows_are_read_as_they_were_written),
};
SUITE_MAIN("parts of a measurement", suite)
