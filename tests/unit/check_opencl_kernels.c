/* Kernels of the opencl backend: grids, arguments, pieces of the pool, the choice between products,
 * and every call of the driver that can fail. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/clock.h"
#include "tests/helpers/driver.h"
#include "tests/helpers/suite.h"

static const struct kernel_spec read_5120 = {
    .op = KERNEL_READ, .weight_bits = 32, .rows = 1, .stream_bytes = 5120};
static const struct kernel_spec copy_4096 = {
    .op = KERNEL_COPY, .weight_bits = 32, .rows = 1, .stream_bytes = 4096};
static const struct kernel_spec knob_2048 = {.op = KERNEL_KNOB,
                                             .weight_bits = 32,
                                             .rows = 1,
                                             .stream_bytes = 2048,
                                             .intensity_flop_per_byte = 7};
static const struct kernel_spec gemm = {
    .op = KERNEL_GEMM, .weight_bits = 32, .act_bits = 32, .rows = 21, .n = 36, .k = 48};
static const struct kernel_spec prefill = {.op = KERNEL_PREFILL,
                                           .weight_bits = 16,
                                           .act_bits = 32,
                                           .rows = 5,
                                           .heads = 6,
                                           .kv_heads = 2,
                                           .head_dim = 32,
                                           .context_tokens = 50};

static struct kernel_spec gemv(uint32_t bits)
{
    return (struct kernel_spec){
        .op = KERNEL_GEMV, .weight_bits = bits, .act_bits = 32, .rows = 1, .n = 64, .k = 80};
}

static const struct fake_launch *last(void)
{
    return &driver->launches[(driver->n_launches - 1) % FAKE_LAUNCHES];
}

/* The last launch: its kernel, grid, and arguments from the third on, of 4 or 8 bytes. */
static void expect_launch(const struct backend_device *d, const char *name, uint32_t dims,
                          size_t global0, size_t global1, bool tiled, uint64_t at, uint32_t n_args,
                          const uint64_t *args)
{
    const struct fake_launch *l = last();
    ck_assert_str_eq(l->name, name);
    ck_assert_uint_eq(l->dims, dims);
    ck_assert_uint_eq(l->global[0], global0);
    ck_assert_uint_eq(dims > 1 ? l->global[1] : 1, global1);
    ck_assert_int_eq(l->has_local, tiled);
    ck_assert(!tiled || (l->local[0] == 16 && l->local[1] == 16));
    ck_assert(l->args[0] == (uintptr_t)d->pool && l->arg_sizes[0] == sizeof(void *));
    ck_assert_uint_eq(l->args[1], at);
    ck_assert_uint_eq(l->arg_sizes[1], 8);
    for (uint32_t i = 0; i < FAKE_ARGS - 2; i++) {
        ck_assert_msg(i < n_args ? l->args[2 + i] == args[i] : l->arg_sizes[2 + i] == 0,
                      "%s: argument %u", name, 2 + i);
    }
}

static void submit(struct backend_kernel *k)
{
    ck_assert_int_eq(backend_opencl.submit(k), k->device->last_ticket);
}

static uint64_t handle(const void *object)
{
    return (uintptr_t)object;
}

/* 256 workers a unit of a GPU and 4 of a CPU read streams. Products of one row have a work-item for
 * four outputs; of many rows one for 4 x 4, or groups of 16 x 16. */
START_TEST(kernels_have_their_grids_and_arguments)
{
    for (int cpu = 0; cpu < 2; cpu++) {
        for (uint32_t variant = 1; variant <= 2; variant++) {
            struct fake_device one = driver_gpu;
            one.type = cpu ? 2 : 4;
            driver_devices(1, &one); /* a CPU of no parts: whole */
            struct backend *b = driver_start(1u << 20, variant);
            struct backend_device *d = driver_open(b);
            size_t workers = cpu ? 4 * 3 : 256 * 3;
            struct backend_kernel *k = driver_prepare(d, &read_5120);
            submit(k);
            expect_launch(d, "stream_read", 1, workers, 1, false, 0, 2,
                          (uint64_t[]){80, handle(k->y)});
            ck_assert_uint_eq(last()->arg_sizes[2], 8);
            ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 1024 * 4);
            backend_opencl.release(k);
            k = driver_prepare(d, &copy_4096); /* behind the two pages that were read */
            submit(k);
            expect_launch(d, "stream_copy", 1, workers, 1, false, 8192 / 4, 2,
                          (uint64_t[]){64, handle(k->y)});
            backend_opencl.release(k);
            k = driver_prepare(
                d, &knob_2048); /* two steps of a flop each for an element's four bytes */
            submit(k);
            expect_launch(d, "stream_knob", 1, workers, 1, false, 16384 / 4, 3,
                          (uint64_t[]){32, handle(k->y), 14});
            ck_assert_uint_eq(last()->arg_sizes[4], 4);
            backend_opencl.release(k);
            static const uint32_t bits[] = {32, 16, 8};
            static const char *const names[] = {"gemv_f32", "gemv_f16", "gemv_i8"};
            uint64_t at = 20480;
            for (int i = 0; i < 3; i++) {
                struct kernel_spec s = gemv(bits[i]);
                k = driver_prepare(d, &s);
                submit(k);
                expect_launch(d, names[i], 1, 16, 1, false, at / (bits[i] / 8), 5,
                              (uint64_t[]){handle(k->x), handle(k->y), 1, 64, 80});
                ck_assert_uint_eq(((const struct fake_object *)k->x)->size, 4 * 80);
                ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 64);
                at += (64 * 80 * bits[i] / 8 + 4095) / 4096 * 4096;
                backend_opencl.release(k);
            }
            k = driver_prepare(d, &gemm); /* 36 x 21: 48 x 32 in tiles, 9 x 6 in blocks */
            submit(k);
            expect_launch(d, variant == 1 ? "gemm_tiled" : "gemm_blocked", 2, variant == 1 ? 48 : 9,
                          variant == 1 ? 32 : 6, variant == 1, at / 4, 5,
                          (uint64_t[]){handle(k->x), handle(k->y), 21, 36, 48});
            ck_assert_uint_eq(((const struct fake_object *)k->x)->size, 4 * 21 * 48);
            ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 21 * 36);
            backend_opencl.release(k);
            at += 8192; /* 36 x 48 x 4 = 6912 bytes */
            for (int decode = 0; decode < 2; decode++) {
                struct kernel_spec s = prefill;
                s.op = decode ? KERNEL_DECODE : KERNEL_PREFILL;
                k = driver_prepare(d, &s);
                submit(k);
                expect_launch(
                    d, "attention", 2, 6, 5, false, at / 2, 7,
                    (uint64_t[]){handle(k->x), handle(k->y), 5, 6, 2, 50, decode ? 1 : 0});
                ck_assert_uint_eq(((const struct fake_object *)k->x)->size, 4 * 5 * 6 * 32);
                ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 5 * 6 * 32);
                at += (kernel_spec_weight_bytes(&s) + 4095) / 4096 * 4096;
                backend_opencl.release(k);
            }
            /* There is one program for products and streams (of head dimension 64), and one for
             * heads of 32. */
            ck_assert_uint_eq(d->n_programs, 2);
            char options[64];
            (void)snprintf(options, sizeof options, "-cl-std=CL1.2 -DDIM=64 -DSTRIDED=%d", !cpu);
            ck_assert_str_eq(((const struct fake_object *)d->programs[0].program)->text, options);
            (void)snprintf(options, sizeof options, "-cl-std=CL1.2 -DDIM=32 -DSTRIDED=%d", !cpu);
            ck_assert_str_eq(((const struct fake_object *)d->programs[1].program)->text, options);
            ck_assert_int_eq(driver->live[FAKE_KERNEL], 0);
            ck_assert_int_eq(driver->live[FAKE_BUFFER], 1); /* the pool */
            backend_opencl.close(d);
            backend_opencl.stop(b);
            driver_nothing_lives();
        }
    }
}
END_TEST

/* Launches walk through the pool by whole pages, and begin again where the rest is too small. */
START_TEST(launches_read_another_piece_each)
{
    static const uint64_t reads[] = {0, 8192, 16384, 0, 8192};
    static const uint64_t copies[] = {0, 8192, 16384 - 16384, 8192};
    driver_devices(1, &driver_gpu);
    struct backend *b =
        driver_start(5 * 4096 + 2048, 0); /* five pages: 5120 bytes fit at 0, 8192, 16384 - no */
    struct backend_device *d = driver_open(b);
    d->pool_bytes = 16384 + 5120; /* the third read ends with the pool */
    struct backend_kernel *k = driver_prepare(d, &read_5120);
    for (int i = 0; i < 5; i++) {
        submit(k);
        ck_assert_uint_eq(last()->args[1], reads[i] / 4);
    }
    backend_opencl.release(k);
    k = driver_prepare(d, &copy_4096); /* each two pages: read and written */
    d->cursor = 0;
    for (int i = 0; i < 4; i++) {
        submit(k);
        ck_assert_uint_eq(last()->args[1], copies[i] / 4);
    }
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    driver_nothing_lives();
}
END_TEST

static const char *slow;      /* a variant, of which each run takes 3 ms */
static const char *slow_once; /* another, of which the first run does */
static bool was_slow;

static void pause_for(const struct fake_object *k, size_t workers)
{
    (void)workers;
    bool once = slow_once != NULL && strcmp(k->text, slow_once) == 0 && !was_slow;
    was_slow = was_slow || once;
    if (once || strcmp(k->text, slow) == 0) {
        const struct timespec span = {.tv_nsec = 3000000};
        (void)nanosleep(&span, NULL);
    }
}

/* The kernel that is chosen of a fast product and a slow one. A busy machine may keep the fast one
 * waiting: then again. */
static struct backend_kernel *choose(struct backend_device *d, const char *fast,
                                     const char *slow_one)
{
    slow = slow_one;
    slow_once = fast;
    for (int attempt = 0;; attempt++) {
        was_slow = false;
        driver->n_launches = 0;
        struct backend_kernel *k = driver_prepare(d, &gemm);
        ck_assert_uint_eq(driver->n_launches, 4); /* two of each */
        if (attempt == 9 || strcmp(((const struct fake_object *)k->kernel)->text, fast) == 0) {
            return k;
        }
        backend_opencl.release(k);
    }
}

START_TEST(the_faster_product_is_taken_by_its_second_run)
{
    static const char *const names[] = {"gemm_tiled", "gemm_blocked"};
    for (int i = 0; i < 2; i++) {
        driver_devices(1, &driver_gpu);
        struct backend *b = driver_start(1u << 20, 0);
        struct backend_device *d = driver_open(b);
        driver->run = pause_for;
        struct backend_kernel *k = choose(d, names[1 - i], names[i]);
        ck_assert_int_eq(driver->live[FAKE_KERNEL], 1);
        submit(k);
        ck_assert_str_eq(last()->name, names[1 - i]);
        backend_opencl.release(k);
        backend_opencl.close(d);
        /* A device without groups of 256 always has blocks. */
        d = driver_open(b);
        d->group_max = 255;
        slow = "gemm_blocked";
        k = driver_prepare(d, &gemm);
        submit(k);
        ck_assert_str_eq(last()->name, "gemm_blocked");
        backend_opencl.release(k);
        d->group_max =
            256; /* so has one that cannot run tiles; one that runs no blocks has tiles */
        slow = "none";
        driver->run = NULL;
        for (int tiles = 0; tiles < 2; tiles++) {
            driver->fails = "clEnqueueNDRangeKernel";
            driver->works = tiles ? 2 : 0;
            /* Each later call fails, too. The chosen kernel is launched when the driver works
             * again. */
            struct backend_prep prep;
            struct err e = ERR_INIT;
            k = backend_opencl.prepare(d, &gemm, &prep, &e);
            driver->fails = NULL;
            ck_assert_str_eq(prep.note, tiles ? "gemm_tiled" : "gemm_blocked");
            backend_opencl.release(k);
        }
        backend_opencl.close(d);
        backend_opencl.stop(b);
        driver_nothing_lives();
    }
}
END_TEST

/* Each refused kernel breaks one condition. */
START_TEST(what_has_no_kernel_is_refused)
{
    struct kernel_spec v8 = gemv(8);
    struct kernel_spec v4 = gemv(4);
    struct kernel_spec n = gemv(32);
    struct kernel_spec k = gemv(32);
    struct kernel_spec act = gemv(32);
    struct kernel_spec many = gemm;
    struct kernel_spec half = gemm;
    struct kernel_spec many_n = gemm;
    struct kernel_spec many_k = gemm;
    struct kernel_spec attention[7];
    struct kernel_spec lines = read_5120;
    const struct kernel_spec *taken[] = {&v8, &many, &prefill, &read_5120, &copy_4096, &knob_2048};
    n.n = 66;
    k.k = 72;
    act.act_bits = 16;
    half.weight_bits = 16;
    many_n.n = 38;
    many_k.k = 56;
    for (int i = 0; i < 7; i++) {
        attention[i] = prefill;
    }
    attention[0].weight_bits = 8;
    attention[1].head_dim = 40;
    attention[2].head_dim = 272;
    attention[3].kv_heads = 0;
    attention[4].kv_heads = 4;
    attention[5].rows = 51;
    attention[6].rows = 50; /* as many as there are: taken */
    lines.stream_bytes = 5120 + 64;
    const struct kernel_spec *refused[] = {&v4,
                                           &n,
                                           &k,
                                           &act,
                                           &half,
                                           &many_n,
                                           &many_k,
                                           &attention[0],
                                           &attention[1],
                                           &attention[2],
                                           &attention[3],
                                           &attention[4],
                                           &attention[5],
                                           &lines};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        ck_assert_msg(backend_opencl.supports(NULL, taken[i]), "%zu", i);
    }
    ck_assert(backend_opencl.supports(NULL, &attention[6]));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ck_assert_msg(!backend_opencl.supports(NULL, refused[i]), "%zu", i);
    }
    /* So is what is larger than the pool: a copy is there twice. */
    driver_devices(1, &driver_gpu);
    struct backend *b = driver_start(8192, 0);
    struct backend_device *d = driver_open(b);
    struct kernel_spec copy = copy_4096;
    backend_opencl.release(driver_prepare(d, &copy));
    copy.stream_bytes += 256;
    struct backend_prep prep;
    struct err e = ERR_INIT;
    ck_assert_ptr_null(backend_opencl.prepare(d, &copy, &prep, &e));
    ck_assert_ptr_nonnull(strstr(e.lines[0], "not supported, or larger than the pool of 0 MB"));
    err_fini(&e);
    backend_opencl.close(d);
    backend_opencl.stop(b);
}
END_TEST

START_TEST(a_kernel_that_cannot_be_made_leaves_nothing)
{
    static const struct {
        const char *fails, *says;
        uint32_t works;
        bool program; /* is left for the next kernel */
    } rows[] = {
        {"clCreateProgramWithSource", "cannot compile the kernels (error -5): ", 0, false},
        {"clBuildProgram", "cannot compile the kernels (error -5): line 3: what?", 0, false},
        {"clCreateBuffer", "gemv-w8-m1-n64-k80: the driver refuses it (OpenCL error -5)", 0, true},
        {"clCreateBuffer once", "gemv-w8-m1-n64-k80: the driver refuses it (OpenCL error -5)", 0,
         true},
        {"clCreateBuffer", "gemv-w8-m1-n64-k80: the driver refuses it (OpenCL error -5)", 1, true},
        {"clEnqueueWriteBuffer", "gemv-w8-m1-n64-k80: the driver refuses it (OpenCL error -5)", 0,
         true},
        {"clCreateKernel", "gemv-w8-m1-n64-k80: the driver refuses it (OpenCL error -5)", 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err e = ERR_INIT;
        struct backend_prep prep;
        struct kernel_spec s = gemv(8);
        driver_devices(1, &driver_gpu);
        driver->log = "line 3: what?";
        struct backend *b = driver_start(1u << 20, 0);
        struct backend_device *d = driver_open(b);
        driver->fails = rows[i].fails;
        driver->works = rows[i].works;
        ck_assert_ptr_null(backend_opencl.prepare(d, &s, &prep, &e));
        ck_assert_uint_eq(e.n, 1);
        ck_assert_msg(strstr(e.lines[0], rows[i].says) != NULL, "%s: %s", rows[i].fails,
                      e.lines[0]);
        err_fini(&e);
        ck_assert_int_eq(driver->live[FAKE_PROGRAM], rows[i].program);
        ck_assert_uint_eq(d->n_programs, rows[i].program);
        ck_assert_int_eq(driver->live[FAKE_KERNEL], 0);
        ck_assert_int_eq(driver->live[FAKE_BUFFER], 1);
        backend_opencl.close(d);
        backend_opencl.stop(b);
        driver_nothing_lives();
    }
}
END_TEST

START_TEST(eight_head_dimensions_have_a_program)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    driver_devices(1, &driver_gpu);
    struct backend *b = driver_start(1u << 20, 0);
    struct backend_device *d = driver_open(b);
    struct kernel_spec s = prefill;
    for (uint32_t i = 1; i <= 8; i++) {
        s.head_dim = 16 * i;
        backend_opencl.release(driver_prepare(d, &s));
    }
    backend_opencl.release(driver_prepare(d, &prefill)); /* 32 has one already */
    ck_assert_int_eq(driver->live[FAKE_PROGRAM], 8);
    s.head_dim = 256;
    ck_assert_ptr_null(backend_opencl.prepare(d, &s, &prep, &e));
    ck_assert_str_eq(e.lines[0], "backend opencl: more than 8 head dimensions");
    err_fini(&e);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    driver_nothing_lives();
}
END_TEST

static const struct suite_row suite[] = {
    CASE("kernels", .once = driver_build, .timeout_s = 30),
    TEST(kernels_have_their_grids_and_arguments),
    TEST(launches_read_another_piece_each),
    TEST(the_faster_product_is_taken_by_its_second_run),
    TEST(what_has_no_kernel_is_refused),
    TEST(a_kernel_that_cannot_be_made_leaves_nothing),
    TEST(eight_head_dimensions_have_a_program),
};
SUITE_MAIN("kernels of opencl", suite)
