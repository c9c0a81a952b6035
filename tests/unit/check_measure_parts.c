/* Parts of a measurement, each against a second reading of its header: the plan of shapes and
 * pairs, what a row says of its kernel and a file of its rows, and which samples a window keeps. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwmodels/backends/plan.h"
#include "hwmodels/backends/window.h"
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

static void name_of(const struct kernel_spec *s, char name[KERNEL_NAME_BYTES])
{
    (void)kernel_spec_name(s, name, KERNEL_NAME_BYTES);
}

/* By the header: rows double from 2 to 64, 256 or 512 (6, 8 or 9 of them, every other one held
 * out), two tiny products and two of other widths; six products of one row, two of them held out;
 * eight of attention, three held out; two streams of each kind, one held out; intensities 1 to 128,
 * of which 2, 8 and 32 are held out. */
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
        char name[KERNEL_NAME_BYTES];
        name_of(s, name);
        ck_assert_msg(is_of(s, d), "%s", name);
        for (uint32_t k = 0; k < i; k++) {
            char other[KERNEL_NAME_BYTES];
            name_of(&p.kernels[k], other);
            ck_assert_str_ne(name, other);
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
    /* 2, 8, 32, 128, 512 up to the largest. */
    ck_assert_uint_eq(whole & 0x2aau, 0x2aau & ((2u << more) - 1));
    ck_assert_uint_eq(whole & 0x154u, 0);
}
END_TEST

/* Streams of a 2^20-byte cell in the smallest plan, and their longest contexts by the header. */
START_TEST(sizes_are_found_by_name_and_grow)
{
    static struct plan p[3];
    ck_assert_int_eq(plan_size_find("tiny"), PLAN_TINY);
    ck_assert_int_eq(plan_size_find("small"), PLAN_SMALL);
    ck_assert_int_eq(plan_size_find("full"), PLAN_FULL);
    ck_assert_int_eq(plan_size_find("huge"), -1);
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
        char x[2][KERNEL_NAME_BYTES];
        char y[2][KERNEL_NAME_BYTES];
        name_of(&p->pairs[i].side[0], x[0]);
        name_of(&p->pairs[i].side[1], x[1]);
        ck_assert_msg(is_of(&p->pairs[i].side[0], a) && is_of(&p->pairs[i].side[1], b),
                      "%s beside %s", x[0], x[1]);
        for (uint32_t k = 0; k < i; k++) {
            name_of(&p->pairs[k].side[0], y[0]);
            name_of(&p->pairs[k].side[1], y[1]);
            ck_assert_msg(strcmp(x[0], y[0]) != 0 || strcmp(x[1], y[1]) != 0, "twice: %s beside %s",
                          x[0], x[1]);
        }
    }
}

/* Reads together, a copy beside a read, and seven intensities on either side: 16 pairs, of which
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

/* W and Q of the header, counted one (query, key) pair at a time. */
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

static void written_name(const struct kernel_spec *s, char name[KERNEL_NAME_BYTES])
{
    static const char *const ops[] = {"read", "copy", "knob", "gemv", "gemm", "prefill", "decode"};
    if (kernel_op_is_product(s->op)) {
        (void)snprintf(name, KERNEL_NAME_BYTES, "%s-w%u-m%u-n%u-k%u", ops[s->op], s->weight_bits,
                       s->rows, s->n, s->k);
    } else if (kernel_op_is_attention(s->op)) {
        (void)snprintf(name, KERNEL_NAME_BYTES, "%s-kv%u-m%u-c%u-h%ux%u-d%u", ops[s->op],
                       s->weight_bits, s->rows, s->context_tokens, s->heads, s->kv_heads,
                       s->head_dim);
    } else if (s->op == KERNEL_KNOB) {
        (void)snprintf(name, KERNEL_NAME_BYTES, "knob-%u-%lluk", s->intensity_flop_per_byte,
                       (unsigned long long)s->stream_bytes / 1024);
    } else {
        (void)snprintf(name, KERNEL_NAME_BYTES, "%s-%lluk", ops[s->op],
                       (unsigned long long)s->stream_bytes / 1024);
    }
}

START_TEST(a_row_says_what_its_kernel_is)
{
    struct rng r;
    rng_init(&r, rng_key(1, RNG_TEST, 101, 0));
    for (int i = 0; i < 500; i++) {
        struct kernel_spec s = random_spec(&r);
        struct kernel_row row;
        char name[KERNEL_NAME_BYTES];
        double flop = 0.0;
        double bytes = 0.0;
        memset(&row, 0, sizeof row);
        kernel_row_set_spec(&row, &s);
        name_of(&s, name);
        work_of(&s, &flop, &bytes);
        ck_assert_str_eq(row.model, name);
        written_name(&s, name);
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
        (void)snprintf(w->soc, sizeof w->soc, "soc-%u", rng_below(&r, 9));
        (void)snprintf(w->device, sizeof w->device, "dev%u", rng_below(&r, 9));
        (void)snprintf(w->runtime, sizeof w->runtime, "run%u", rng_below(&r, 9));
        (void)snprintf(w->source, sizeof w->source, "from, \"%u\"", rng_below(&r, 9));
        w->kind = (enum device_kind)rng_below(&r, 3);
        w->metric = (enum kernel_metric)rng_below(&r, KERNEL_METRIC_COUNT);
        (void)snprintf(w->partner, sizeof w->partner, "dev:%u", rng_below(&r, 9));
        (void)snprintf(w->flag, sizeof w->flag, "%s", i % 3 == 0 ? "steal" : "");
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
    kernel_rows_init(&rows);
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
    kernel_rows_fini(&rows);
    free(text);
    err_fini(&e);
}
END_TEST

/* ---- windows ---- */

/* A device whose launches were drawn before; tickets count from 1. */
struct backend_device {
    struct backend_stamps at[BACKEND_MAX_INFLIGHT + 2];
    bool lost[BACKEND_MAX_INFLIGHT + 2]; /* nobody knows its stamps */
    int64_t submitted, stays;
    int64_t busy_ns;
    int64_t cancel_after_ns; /* those that have not begun then are withdrawn; -1: it cannot */
};
struct backend_kernel {
    struct backend_device *device;
};
static int64_t clock_ns;
static int64_t waited_ns;

static int64_t refuse_from; /* so many launches are taken; 0: all */
static int fail_wait;

static int64_t fake_submit(struct backend_kernel *k)
{
    if (refuse_from > 0 && k->device->submitted >= refuse_from) {
        return -EAGAIN;
    }
    return k->device->stays = ++k->device->submitted;
}

static int fake_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    ck_assert_int_le(ticket, d->submitted);
    waited_ns = timeout_ns;
    clock_ns = 1000000000;
    d->busy_ns = 250000000;
    return fail_wait;
}

static int fake_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    if (ticket < 1 || ticket > d->stays || d->lost[ticket]) {
        return -EINVAL;
    }
    *out = d->at[ticket];
    return 0;
}

static int64_t fake_cancel(struct backend_device *d, int64_t ticket)
{
    if (d->cancel_after_ns < 0) {
        return -ENOTSUP;
    }
    for (d->stays = ticket - 1;
         d->stays < d->submitted && d->at[d->stays + 1].start_ns < d->cancel_after_ns;) {
        d->stays++;
    }
    return d->stays;
}

static void fake_counters(struct backend_device *d, struct backend_counters *out)
{
    *out = (struct backend_counters){true, d->busy_ns};
}

static int64_t fake_now(struct backend *b)
{
    (void)b;
    return clock_ns;
}

static void fake_host(struct backend *b, struct backend_host *out)
{
    (void)b;
    *out = (struct backend_host){0.125, 0.25};
}

static const struct backend_ops fake = {.submit = fake_submit,
                                        .wait = fake_wait,
                                        .stamps = fake_stamps,
                                        .cancel = fake_cancel,
                                        .counters = fake_counters,
                                        .now_ns = fake_now,
                                        .host = fake_host};

/* Back to back, with a pause, a spike or a lost core now and then. */
static void draw_device(struct backend_device *d, struct rng *r, bool knows_cpu, bool loses)
{
    int64_t t = 1000 + rng_below(r, 5000);
    memset(d, 0, sizeof *d);
    for (uint32_t i = 1; i < BACKEND_MAX_INFLIGHT + 2; i++) {
        int64_t took = 900 + rng_below(r, 200);
        took = rng_below(r, 12) == 0 ? 3 * took : took;
        t += rng_below(r, 10) == 0 ? rng_below(r, 500) : 0;
        d->at[i] = (struct backend_stamps){.start_ns = t, .end_ns = t + took};
        d->at[i].cpu_ns = !knows_cpu             ? -1
                          : rng_below(r, 9) == 0 ? took / 2
                                                 : took - rng_below(r, 60);
        d->lost[i] = loses && i > 1 && rng_below(r, 15) == 0;
        t += took;
    }
    d->cancel_after_ns = -1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool kept(const struct backend_stamps *st)
{
    return st->cpu_ns < 0 || (double)st->cpu_ns >= 0.9 * (double)(st->end_ns - st->start_ns);
}

/* The samples of a side by the header, sorted; other NULL: alone. */
static uint32_t samples_of(const struct backend_device *d, int64_t last,
                           const struct backend_device *other, int64_t other_last, double *out,
                           double *spikes)
{
    int64_t from = d->at[1].start_ns;
    int64_t to = d->at[last].end_ns;
    uint32_t n = 0;
    uint32_t left = 0;
    if (other != NULL) {
        from = other->at[1].start_ns > from ? other->at[1].start_ns : from;
        to = other->at[other_last].end_ns < to ? other->at[other_last].end_ns : to;
    }
    for (int64_t t = 2; t <= last; t++) {
        int64_t begin = d->at[t - 1].end_ns;
        int64_t end = d->at[t].end_ns;
        int64_t lost = 0;
        for (int64_t k = 1; other != NULL && k <= other_last; k++) {
            int64_t a = other->at[k].start_ns > begin ? other->at[k].start_ns : begin;
            int64_t b = other->at[k].end_ns < end ? other->at[k].end_ns : end;
            lost += b > a && !kept(&other->at[k]) ? b - a : 0;
        }
        if (!d->lost[t] && !d->lost[t - 1] && begin >= from && end <= to && kept(&d->at[t]) &&
            (double)lost <= (1.0 - 0.9) * (double)(end - begin)) {
            out[n++] = (double)(end - begin) * 1e-9;
        }
    }
    qsort(out, n, sizeof *out, by_value);
    while (n > 0 && left < n && out[n - left - 1] > 2.0 * out[(n + 1) / 2 - 1]) {
        left++;
    }
    *spikes = n > 0 ? (double)left / n : 0.0;
    return n - left;
}

/* The share of its launches in which the worker had no core, between the ends of two that are
 * known, while all run; -1: of some nobody knows. */
static double idle_of(const struct backend_device *d, int64_t last,
                      const struct backend_device *other, int64_t other_last)
{
    int64_t from = d->at[1].start_ns;
    int64_t to = d->at[last].end_ns;
    double span = 0.0;
    double had = 0.0;
    if (other != NULL) {
        from = other->at[1].start_ns > from ? other->at[1].start_ns : from;
        to = other->at[other_last].end_ns < to ? other->at[other_last].end_ns : to;
    }
    for (int64_t t = 2; t <= last; t++) {
        if (!d->lost[t] && !d->lost[t - 1] && d->at[t - 1].end_ns >= from &&
            d->at[t].end_ns <= to) {
            if (d->at[t].cpu_ns < 0) {
                return -1.0;
            }
            span += (double)(d->at[t].end_ns - d->at[t].start_ns);
            had += (double)d->at[t].cpu_ns;
        }
    }
    return span > 0.0 ? fmax(0.0, 1.0 - had / span) : -1.0;
}

/* What was queued is waited for; a device that does not answer is lost; a launch that was withdrawn
 * is no failure. */
START_TEST(a_window_that_fails_has_no_samples)
{
    static const struct {
        int wait;
        int64_t refuse;
        int rc;
        bool hung;
    } cases[] = {{0, 2, -EIO, false},
                 {-EIO, 0, -EIO, false},
                 {-ETIMEDOUT, 0, -ETIMEDOUT, true},
                 {-ECANCELED, 0, 0, false}};
    static struct backend_device d;
    static struct window_side side;
    struct backend b = {.ops = &fake};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rng r;
        struct backend_kernel k = {&d};
        struct backend_host host = {0};
        struct window_options o = {.backend = &b, .min_samples = 10, .deadline_s = 0.5};
        rng_init(&r, rng_key(i, RNG_TEST, 104, 0));
        draw_device(&d, &r, true, false);
        refuse_from = cases[i].refuse;
        fail_wait = cases[i].wait;
        side = (struct window_side){.device = &d, .kernel = &k, .alone_s = 1e-6};
        side.idle_frac = 7.0;
        side.n = 7;
        waited_ns = 0;
        ck_assert_int_eq(window_run(&o, &side, 1, &host), cases[i].rc);
        ck_assert_uint_eq(side.n, 0);
        ck_assert_double_eq(side.idle_frac, -1.0);
        ck_assert_int_eq(side.hung, cases[i].hung);
        ck_assert_int_gt(waited_ns, 0);
    }
    refuse_from = fail_wait = 0;
}
END_TEST

START_TEST(a_window_keeps_the_samples_of_undisturbed_launches)
{
    static struct backend_device d[2];
    static struct window_side sides[2];
    static double wanted[BACKEND_MAX_INFLIGHT];
    struct backend b = {.ops = &fake};
    uint64_t seen = 0;
    double spikes_seen = 0.0;
    for (uint64_t i = 0; i < 200; i++) {
        struct rng r;
        struct backend_kernel k[2] = {{&d[0]}, {&d[1]}};
        uint32_t n_sides = 1 + (uint32_t)(i % 2);
        rng_init(&r, rng_key(i, RNG_TEST, 103, 0));
        struct window_options o = {
            .backend = &b, .min_samples = 3 + rng_below(&r, 30), .deadline_s = 0.5};
        o.window_s = 1e-6 * rng_below(&r, 60);
        double span_s = o.window_s;
        for (uint32_t s = 0; s < n_sides; s++) {
            draw_device(&d[s], &r, rng_below(&r, 4) > 0, n_sides == 1 && rng_below(&r, 2) > 0);
            sides[s] = (struct window_side){.device = &d[s], .kernel = &k[s]};
            sides[s].alone_s = 1e-6 * (1 + rng_below(&r, 3));
            span_s = fmax(span_s, o.min_samples * sides[s].alone_s);
        }
        for (uint32_t s = 0; s < n_sides; s++) {
            d[s].lost[(int64_t)ceil(span_s / sides[s].alone_s) + 1] = false; /* the last is known */
        }
        if (n_sides > 1 && rng_below(&r, 2) > 0) {
            d[1].cancel_after_ns = d[0].at[(int64_t)ceil(span_s / sides[0].alone_s) + 1].end_ns;
        }
        struct backend_host host = {0};
        clock_ns = 0;
        ck_assert_int_eq(window_run(&o, sides, n_sides, &host), 0);
        ck_assert_double_eq(host.foreign_frac, 0.125);
        ck_assert(fabs(1e-9 * (double)waited_ns - (4.0 * span_s + 0.5)) < 1e-8);
        for (uint32_t s = 0; s < n_sides; s++) {
            ck_assert_int_eq(d[s].submitted, (int64_t)ceil(span_s / sides[s].alone_s) + 1);
        }
        for (uint32_t s = 0; s < n_sides; s++) {
            double spikes = 0.0;
            uint32_t n = samples_of(&d[s], d[s].stays, n_sides > 1 ? &d[1 - s] : NULL,
                                    n_sides > 1 ? d[1 - s].stays : 0, wanted, &spikes);
            qsort(sides[s].samples, sides[s].n, sizeof(double), by_value);
            ck_assert_msg(sides[s].n == n, "window %u, side %u: %u samples, not %u", (unsigned)i, s,
                          sides[s].n, n);
            for (uint32_t x = 0; x < n; x++) {
                ck_assert_double_eq_tol(sides[s].samples[x], wanted[x], 1e-15);
            }
            ck_assert_double_eq_tol(sides[s].spike_frac, spikes, 1e-12);
            ck_assert_double_eq_tol(sides[s].busy_frac, 0.25, 1e-12);
            double idle = idle_of(&d[s], d[s].stays, n_sides > 1 ? &d[1 - s] : NULL,
                                  n_sides > 1 ? d[1 - s].stays : 0);
            ck_assert_double_eq_tol(sides[s].idle_frac, idle, 1e-9);
            seen += n;
            spikes_seen += spikes;
        }
    }
    ck_assert_uint_gt(seen, 1000);
    ck_assert_double_gt(spikes_seen, 1.0);
}
END_TEST

/* ---- what others did to the processor ---- */

static struct host_times times_of(const char *stat)
{
    char folder[] = "/tmp/check_measure.XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/stat", folder);
    FILE *f = stat != NULL ? fopen(path, "w") : NULL;
    if (f != NULL) {
        (void)fputs(stat, f);
        (void)fclose(f);
    }
    struct host_times t = host_times_read(folder);
    (void)unlink(path);
    (void)rmdir(folder);
    return t;
}

/* user nice system idle iowait irq softirq steal: busy are 1 + 2 + 4 + 32 + 64, idle 8 + 16. */
START_TEST(shares_of_a_host_are_of_all_its_time)
{
    struct host_times a = times_of("cpu 1 2 4 8 16 32 64 128 256 512\ncpu0 9 9 9 9\n");
    ck_assert(a.valid);
    ck_assert_double_eq(a.busy_ticks, 103.0);
    ck_assert_double_eq(a.steal_ticks, 128.0);
    ck_assert_double_eq(a.all_ticks, 255.0);
    struct host_times old = times_of("cpu 1 2 4 8\n"); /* of an old system */
    ck_assert(old.valid);
    ck_assert_double_eq(old.busy_ticks, 7.0);
    ck_assert_double_eq(old.all_ticks, 15.0);
    ck_assert(!times_of("cpu 1 2 4\n").valid);
    ck_assert(!times_of("intr 1 2 4 8\n").valid);
    ck_assert(!times_of(NULL).valid);
    /* 200 ticks: 60 busy, of which one's own are 20 and one proves nothing; 30 stolen. */
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    struct host_times b = {
        .valid = true, .busy_ticks = 163.0, .steal_ticks = 158.0, .all_ticks = 455.0};
    a.own_s = 1.0;
    b.own_s = 1.0 + 20.0 * tick_s;
    struct backend_host h = host_times_shares(&a, &b);
    ck_assert_double_eq_tol(h.foreign_frac, 39.0 / 200.0, 1e-12);
    ck_assert_double_eq_tol(h.steal_frac, 30.0 / 200.0, 1e-12);
    b.own_s = 1.0 + 59.5 * tick_s; /* less than nothing is nothing */
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, 0.0);
    b.busy_ticks = 1e6; /* and more than all is all */
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, 1.0);
    b.steal_ticks = 1.0; /* a counter that went back */
    ck_assert_double_eq(host_times_shares(&a, &b).steal_frac, 0.0);
    b.all_ticks = a.all_ticks; /* no time went by */
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, -1.0);
    ck_assert_double_eq(host_times_shares(&a, &b).steal_frac, -1.0);
    b = a;
    b.all_ticks += 1.0;
    a.valid = false;
    ck_assert_double_eq(host_times_shares(&a, &b).foreign_frac, -1.0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(shares_of_a_host_are_of_all_its_time),
    LOOP(a_plan_has_every_shape_once, 9),
    TEST(sizes_are_found_by_name_and_grow),
    LOOP(pairs_have_the_first_device_on_the_first_side, 3),
    TEST(a_row_says_what_its_kernel_is),
    TEST(rows_are_read_as_they_were_written),
    TEST(a_window_that_fails_has_no_samples),
    TEST(a_window_keeps_the_samples_of_undisturbed_launches),
};
SUITE_MAIN("parts of a measurement", suite)
