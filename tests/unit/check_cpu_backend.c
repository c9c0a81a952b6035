/* Cores as devices, over kernels that note what they are given. */
#define _GNU_SOURCE /* affinity */
#include <sched.h>
#include <string.h>

#include "hwmodels/backends/cpu.h"
#include "hwmodels/backends/worker.h"
#include "tests/helpers/suite.h"

static const int64_t minute_ns = 60 * (int64_t)NS_PER_S;

/* ---- cores as devices ---- */

static struct {
    int n;
    const uint8_t *w[32];
    uint64_t count[32]; /* of elements, or outputs */
    uint32_t flop[32];
} seen;

static float see(const void *w, uint64_t count, uint32_t flop)
{
    seen.w[seen.n] = w;
    seen.flop[seen.n] = flop;
    seen.count[seen.n++] = count;
    return 0.0f;
}

static float see_read(const float *x, uint64_t n)
{
    return see(x, n, 0);
}

static float see_knob(const float *x, uint64_t n, uint32_t flop)
{
    return see(x, n, flop);
}

static void see_product(const struct native_product *p, const float *x, const void *w, float *y)
{
    (void)x, (void)y;
    (void)see(w, p->n, p->rows);
}

static void see_attention(const struct native_attention *a, const float *q, const uint16_t *keys,
                          const uint16_t *values, float *out, float *scratch)
{
    (void)q, (void)out, (void)scratch;
    (void)see(keys, (uint64_t)((const uint8_t *)values - (const uint8_t *)keys), a->rows);
}

static struct cpu_backend noting = {{.name = "noting",
                                     .read = see_read,
                                     .knob = see_knob,
                                     .product_f32 = see_product,
                                     .product_f16 = see_product,
                                     .product_i8 = see_product,
                                     .attention = see_attention},
                                    .description = "kernels that note"};

static struct backend noting_backend = {.options = {.pool_bytes = 5 * 4096 - 100},
                                        .state = &noting};

static void only_cores(uint32_t n)
{
    cpu_set_t all;
    cpu_set_t set;
    CPU_ZERO(&set);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; i < CPU_SETSIZE && n > 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &set);
            n--;
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
}

/* One core is one device. Several cores are one device more: all of them. A set has the widths that
 * it has kernels of. */
START_TEST(cores_are_devices_and_so_are_all_of_them)
{
    uint32_t cores[CPU_SETSIZE];
    uint32_t n = worker_cores(cores, CPU_SETSIZE);
    struct backend_info info[BACKEND_MAX_DEVICES];
    uint32_t have = cpu_enumerate(&noting_backend, info, BACKEND_MAX_DEVICES);
    char name[32];
    char text[64];
    ck_assert_uint_eq(have, n > 1 ? n + 1 : 1);
    for (uint32_t i = 0; i < have && i < BACKEND_MAX_DEVICES; i++) {
        (void)snprintf(name, sizeof name, "cpu%u", i < n ? cores[i] : 0);
        (void)snprintf(text, sizeof text, "%u threads, kernels that note", n);
        ck_assert_str_eq(info[i].name, i < n ? name : "cpu");
        ck_assert_str_eq(info[i].description, i < n ? "one core, kernels that note" : text);
        ck_assert_int_eq(info[i].kind, DEVICE_KIND_CPU);
        ck_assert_uint_eq(info[i].act_bits, 32);
        ck_assert_uint_eq(info[i].kv_bits, 16);
        ck_assert_uint_eq(info[i].n_widths, 3);
        ck_assert(info[i].weight_bits[0] == 32 && info[i].weight_bits[1] == 16 &&
                  info[i].weight_bits[2] == 8);
    }
    memset(info, 0, sizeof info);
    ck_assert_uint_eq(cpu_enumerate(&noting_backend, info, 1), have); /* how many there are */
    ck_assert_str_eq(info[1].name, "");
    only_cores(1);
    struct cpu_backend few = {{.name = "few", .product_i8 = see_product}, .description = "few"};
    struct backend b = {.options = {.pool_bytes = 4096}, .state = &few};
    ck_assert_uint_eq(cpu_enumerate(&b, info, BACKEND_MAX_DEVICES), 1);
    ck_assert_uint_eq(info[0].kv_bits, 0);
    ck_assert_uint_eq(info[0].n_widths, 2);
    ck_assert(info[0].weight_bits[0] == 32 && info[0].weight_bits[1] == 8);
    struct err e = ERR_INIT;
    ck_assert_ptr_null(cpu_open(&b, 1, &e));
    ck_assert_str_eq(e.lines[0], "device 1: there are 1 cores");
    b.options.pool_bytes = UINT64_MAX / 2;
    ck_assert_ptr_null(cpu_open(&b, 0, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[1], "no 8796093022208 MB of memory for weights"));
    err_fini(&e);
}
END_TEST

static const struct kernel_spec gemv8 = {
    .op = KERNEL_GEMV, .weight_bits = 8, .act_bits = 32, .rows = 1, .n = 84, .k = 64};
static const struct kernel_spec decode = {.op = KERNEL_DECODE,
                                          .weight_bits = 16,
                                          .act_bits = 32,
                                          .rows = 3,
                                          .heads = 6,
                                          .kv_heads = 2,
                                          .head_dim = 16,
                                          .context_tokens = 20};
static const struct kernel_spec stream = {
    .op = KERNEL_READ, .weight_bits = 32, .act_bits = 32, .rows = 1, .stream_bytes = 4160};

static bool takes(struct kernel_spec s, struct backend_device *d)
{
    return cpu_supports(d, &s);
}

/* Each refused shape breaks one condition. */
START_TEST(what_has_no_kernel_is_refused)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_device *d = cpu_open(&noting_backend, 0, &e);
    ck_assert_ptr_nonnull(d);
    struct kernel_spec s = gemv8;
    ck_assert(takes(s, d));
    s.act_bits = 16;
    ck_assert(!takes(s, d));
    s = gemv8;
    s.n = 86;
    ck_assert(!takes(s, d));
    s = gemv8;
    s.k = 72;
    ck_assert(!takes(s, d));
    for (uint32_t bits = 4; bits <= 32; bits *= 2) {
        s = gemv8;
        s.weight_bits = bits;
        ck_assert_int_eq(takes(s, d), bits > 4);
        noting.kernels.product_f32 = bits == 32 ? NULL : see_product;
        noting.kernels.product_f16 = bits == 16 ? NULL : see_product;
        noting.kernels.product_i8 = bits == 8 ? NULL : see_product;
        ck_assert(!takes(s, d));
    }
    noting.kernels.product_f32 = see_product;
    s = decode;
    ck_assert(takes(s, d));
    s.weight_bits = 8;
    ck_assert(!takes(s, d));
    s = decode;
    s.head_dim = 24;
    ck_assert(!takes(s, d));
    s = decode;
    s.kv_heads = 0;
    ck_assert(!takes(s, d));
    s.kv_heads = 4;
    ck_assert(!takes(s, d));
    s = decode;
    s.heads = 32;
    ck_assert(takes(s, d)); /* 16 to a key head */
    s.heads = 34;
    ck_assert(!takes(s, d));
    s = decode;
    s.rows = 20;
    ck_assert(takes(s, d));
    s.rows = 21;
    ck_assert(!takes(s, d));
    noting.kernels.attention = NULL;
    ck_assert(!takes(decode, d));
    noting.kernels.attention = see_attention;
    s = stream;
    ck_assert(takes(s, d));
    s.stream_bytes += 32;
    ck_assert(!takes(s, d));
    ck_assert_ptr_null(cpu_prepare(d, &s, &prep, &e));
    ck_assert_str_eq(e.lines[0], "read-4k: not supported by this backend");
    /* The pool has five pages: a copy is there twice. */
    s = (struct kernel_spec){
        .op = KERNEL_COPY, .weight_bits = 32, .act_bits = 32, .rows = 1, .stream_bytes = 10240};
    struct backend_kernel *k = cpu_prepare(d, &s, &prep, &e);
    ck_assert_ptr_nonnull(k);
    ck_assert_str_eq(prep.note, "noting");
    ck_assert(prep.compile_s == 0.0 && !prep.cached);
    cpu_release(k);
    s.stream_bytes += 64;
    ck_assert_ptr_null(cpu_prepare(d, &s, &prep, &e));
    ck_assert_str_eq(e.lines[1], "copy-10k: needs 1 MB of weights: use a larger --pool-mb");
    err_fini(&e);
    cpu_close(d);
}
END_TEST

/* Five launches, one after the other; then all that they were given. */
static void five(struct backend_device *d, const struct kernel_spec *s)
{
    static int64_t tickets; /* of the one device */
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_counters c = {false, 0};
    struct backend_kernel *k = cpu_prepare(d, s, &prep, &e);
    ck_assert_ptr_nonnull(k);
    seen.n = 0;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(cpu_submit(k), ++tickets);
    }
    ck_assert_int_eq(cpu_wait(d, tickets, minute_ns), 0);
    cpu_counters(d, &c);
    ck_assert(c.busy_valid && c.busy_ns >= 0);
    cpu_release(k);
}

/* Launches walk through the pool by whole pages, and begin again where the rest is too small. */
START_TEST(launches_read_another_piece_each)
{
    static const uint32_t at[] = {0, 2, 0, 2, 0}; /* pages; of five pages the fifth is too little */
    struct err e = ERR_INIT;
    struct backend_device *d = cpu_open(&noting_backend, 0, &e);
    ck_assert_ptr_nonnull(d);
    five(d, &stream); /* 4160 bytes: two pages */
    const uint8_t *pool = seen.w[0];
    ck_assert_int_eq(seen.n, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(seen.w[i] - pool, at[i] * 4096);
        ck_assert_uint_eq(seen.count[i], 1040);
    }
    struct kernel_spec s = stream;
    s.op = KERNEL_KNOB;
    s.stream_bytes = 4096;
    s.intensity_flop_per_byte = 3;
    five(d, &s); /* behind the last one's two pages: 2, 3, 4, 0, 1 */
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(seen.w[i] - pool, (i + 2) % 5 * 4096);
        ck_assert_uint_eq(seen.count[i], 1024);
        ck_assert_uint_eq(seen.flop[i], 12); /* an element has four bytes */
    }
    s = gemv8; /* 5376 bytes: two pages, from the third on */
    five(d, &s);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(seen.w[i] - pool, i % 2 == 0 ? 8192 : 0);
        ck_assert_uint_eq(seen.count[i], 84);
    }
    /* Three sequences have 2 x 20 x 16 keys in half precision, 1280 bytes each, and then all
     * values. */
    s = decode;
    five(d, &s);
    ck_assert_int_eq(seen.n, 15);
    for (int i = 0; i < 15; i++) {
        ck_assert_int_eq(seen.w[i] - seen.w[i / 3 * 3], i % 3 * 1280);
        ck_assert_uint_eq(seen.count[i], 3 * 1280);
        ck_assert_uint_eq(seen.flop[i], 1); /* a row each */
    }
    s.op = KERNEL_PREFILL;
    five(d, &s);
    ck_assert_int_eq(seen.n, 5);
    ck_assert_uint_eq(seen.flop[0], 3);
    ck_assert_uint_eq(seen.count[0], 1280);
    cpu_close(d);
    err_fini(&e);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("cores", .timeout_s = 60),
    TEST(cores_are_devices_and_so_are_all_of_them),
    TEST(what_has_no_kernel_is_refused),
    TEST(launches_read_another_piece_each),
};
SUITE_MAIN("cores as devices", suite)
