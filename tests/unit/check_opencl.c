/* The opencl backend against a driver that notes what it is asked (tests/helpers/opencl): devices,
 * memory, grids and arguments, times, and every call that can fail. check_backends has a real
 * driver. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hwmodels/backends/opencl_impl.h"
#include "hwmodels/kernel_numbers.h"
#include "sim/base/arena.h"
#include "sim/base/clock.h"
#include "tests/helpers/opencl/fake.h"
#include "tests/helpers/suite.h"

static char library[64];
static struct fake_opencl *fake;

/* Once for all tests. */
static void build(void)
{
    char command[400];
    const char *cc = getenv("CC");
    (void)snprintf(library, sizeof library, "/tmp/check_opencl.%d.so", (int)getpid());
    (void)snprintf(command, sizeof command,
                   "%s -std=c17 -D_POSIX_C_SOURCE=200809L -I. -shared -fPIC -w -o %s "
                   "tests/helpers/opencl/fake.c",
                   cc != NULL ? cc : "gcc", library);
    ck_assert_int_eq(system(command), 0);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    fake = dlsym(handle, "fake_opencl");
    ck_assert_ptr_nonnull(fake);
    (void)unlink(library); /* the name leads to what is loaded as long as this process lives */
}

static const struct fake_device gpu = {.type = 4,
                                       .units = 3,
                                       .unified = 1,
                                       .group_max = 256,
                                       .most_bytes = 1u << 30,
                                       .name = "Some GPU",
                                       .driver = "1.2.3"};

static void devices(uint32_t n, const struct fake_device *d)
{
    memset(fake, 0, sizeof *fake);
    fake->n_platforms = 1;
    fake->n_devices[0] = n;
    memcpy(fake->devices[0], d, n * sizeof *d);
    fake->log = "no log";
    fake->launch_ns = 1000;
}

static struct backend *start(uint64_t pool_bytes, uint32_t variant)
{
    struct backend_options o = {
        .pool_bytes = pool_bytes, .library = library, .gemm_variant = variant};
    struct err e = ERR_INIT;
    struct backend *b = backend_opencl.start(&o, &e);
    ck_assert_msg(b != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return b;
}

static struct backend_device *open_first(struct backend *b)
{
    struct err e = ERR_INIT;
    struct backend_device *d = backend_opencl.open(b, 0, &e);
    ck_assert_msg(d != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return d;
}

static struct backend_kernel *prepare(struct backend_device *d, const struct kernel_spec *s)
{
    struct backend_prep prep;
    struct err e = ERR_INIT;
    struct backend_kernel *k = backend_opencl.prepare(d, s, &prep, &e);
    ck_assert_msg(k != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_str_eq(prep.note, ((const struct fake_object *)k->kernel)->text);
    return k;
}

/* Whatever was made has been released once. */
static void nothing_lives(void)
{
    for (int i = 0; i < FAKE_KINDS; i++) {
        ck_assert_msg(fake->live[i] == 0, "%d objects of kind %d are left", fake->live[i], i);
    }
}

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

/* ---- devices ---- */

/* A CPU of 2 to 64 units is cut into parts, of which four are taken; one that cannot be cut is
 * whole. Memory in common with the host makes a GPU integrated; what is neither is an accelerator.
 */
START_TEST(every_device_has_its_name_kind_and_description)
{
    static const struct fake_device all[] = {
        {.type = 2, .units = 6, .n_parts = 6, .name = "Some CPU", .driver = "7"},
        {.type = 4, .units = 3, .unified = 1, .name = "Some GPU", .driver = "8"},
        {.type = 4, .units = 3, .unified = 0, .name = "A card", .driver = "9"},
        {.type = 8, .units = 1, .unified = 1, .name = "Some NPU", .driver = "10"},
        {.type = 2, .units = 1, .n_parts = 1, .name = "One core", .driver = "11"},
        {.type = 2, .units = 65, .n_parts = 5, .name = "A server", .driver = "12"},
        {.type = 2, .units = 4, .n_parts = 0, .name = "Uncut", .driver = "13"},
        {.type = 2, .units = 64, .n_parts = 2, .name = "Two halves", .driver = "14"},
    };
    static const struct {
        const char *name, *description;
        enum device_kind kind;
    } want[] = {
        {"cl0.0", "Some CPU, driver 7", DEVICE_KIND_CPU},
        {"cl0.1", "Some CPU, driver 7", DEVICE_KIND_CPU},
        {"cl0.2", "Some CPU, driver 7", DEVICE_KIND_CPU},
        {"cl0.3", "Some CPU, driver 7", DEVICE_KIND_CPU},
        {"cl1", "Some GPU, driver 8", DEVICE_KIND_IGPU},
        {"cl2", "A card, driver 9", DEVICE_KIND_GPU},
        {"cl3", "Some NPU, driver 10", DEVICE_KIND_NPU},
        {"cl4", "One core, driver 11", DEVICE_KIND_CPU},
        {"cl5", "A server, driver 12", DEVICE_KIND_CPU},
        {"cl6", "Uncut, driver 13", DEVICE_KIND_CPU},
        {"cl7.0", "Two halves, driver 14", DEVICE_KIND_CPU},
        {"cl7.1", "Two halves, driver 14", DEVICE_KIND_CPU},
    };
    enum { N = sizeof want / sizeof want[0] };
    struct backend_info info[N + 1];
    devices(0, all);
    /* On three platforms: one has no device. */
    fake->n_platforms = 3;
    fake->n_devices[0] = 3;
    memcpy(fake->devices[0], all, 3 * sizeof *all);
    fake->n_devices[2] = 5;
    memcpy(fake->devices[2], all + 3, 5 * sizeof *all);
    struct backend *b = start(1u << 20, 0);
    ck_assert_int_eq(fake->live[FAKE_DEVICE], 6); /* four of six, and two of two */
    memset(info, 0, sizeof info);
    ck_assert_uint_eq(backend_opencl.enumerate(b, info, 2), N); /* how many there are */
    ck_assert_str_eq(info[1].name, want[1].name);
    ck_assert_str_eq(info[2].name, "");
    ck_assert_uint_eq(backend_opencl.enumerate(b, info, N + 1), N);
    for (int i = 0; i < N; i++) {
        ck_assert_str_eq(info[i].name, want[i].name);
        ck_assert_str_eq(info[i].description, want[i].description);
        ck_assert_int_eq(info[i].kind, want[i].kind);
        ck_assert_uint_eq(info[i].n_widths, 3);
        ck_assert_uint_eq(info[i].weight_bits[0], 32);
        ck_assert_uint_eq(info[i].weight_bits[1], 16);
        ck_assert_uint_eq(info[i].weight_bits[2], 8);
        ck_assert_uint_eq(info[i].act_bits, 32);
        ck_assert_uint_eq(info[i].kv_bits, 16);
    }
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

/* 16 devices have room: of five CPUs of four parts the last one's are released again. */
START_TEST(more_devices_than_there_is_room_for_are_left_out)
{
    struct fake_device cpus[5];
    struct backend_info info[BACKEND_MAX_DEVICES + 1];
    for (int i = 0; i < 5; i++) {
        cpus[i] =
            (struct fake_device){.type = 2, .units = 4, .n_parts = 4, .name = "CPU", .driver = "1"};
    }
    devices(5, cpus);
    struct backend *b = start(1u << 20, 0);
    ck_assert_int_eq(fake->live[FAKE_DEVICE], 16);
    ck_assert_uint_eq(backend_opencl.enumerate(b, info, BACKEND_MAX_DEVICES), 16);
    ck_assert_str_eq(info[15].name, "cl3.3");
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

START_TEST(without_a_device_a_driver_is_asked_for)
{
    static const char *const fails[] = {NULL, "clGetPlatformIDs", "clGetDeviceIDs"};
    for (int i = 0; i < 3; i++) {
        struct err e = ERR_INIT;
        devices(i > 0, &gpu);
        fake->fails = fails[i];
        struct backend_options o = {.pool_bytes = 1u << 20, .library = library};
        ck_assert_ptr_null(backend_opencl.start(&o, &e));
        ck_assert_uint_eq(e.n, 1);
        ck_assert_ptr_nonnull(strstr(e.lines[0], "backend opencl: no device: install a driver"));
        err_fini(&e);
    }
}
END_TEST

/* ---- memory ---- */

/* As much as is asked for, but no more than a buffer may have, in whole pages; filled in pieces of
 * 1 MiB with the numbers that every kernel can work on. */
START_TEST(the_pool_is_filled_whole)
{
    enum { MB = 1 << 20 };
    static const uint64_t most[] = {8 * MB, 3 * MB - 5000, 3 * MB};
    static const uint64_t want[] = {2 * MB + 12288, 2 * MB + 12288, 2 * MB + 12288};
    uint8_t *piece = xmalloc(MB);
    kernel_fill(piece, MB);
    for (int i = 0; i < 3; i++) {
        struct fake_device d = gpu;
        d.most_bytes = i == 1 ? want[i] + 4095 : most[i];
        devices(1, &d);
        struct backend *b = start(i == 1 ? 4 * (uint64_t)MB : want[i] + 100, 0);
        struct backend_device *o = open_first(b);
        const struct fake_object *pool = o->pool;
        ck_assert_uint_eq(pool->size, want[i]);
        for (uint64_t at = 0; at < want[i]; at += MB) {
            size_t n = want[i] - at < MB ? (size_t)(want[i] - at) : MB;
            ck_assert_int_eq(memcmp(pool->bytes + at, piece, n), 0);
        }
        backend_opencl.close(o);
        nothing_lives();
        backend_opencl.stop(b);
    }
    free(piece);
}
END_TEST

/* Whatever call fails: a message with the driver's number, and nothing is left. */
START_TEST(a_device_that_cannot_be_opened_leaves_nothing)
{
    static const char *const fails[] = {"clCreateContext", "clCreateCommandQueue", "clCreateBuffer",
                                        "clEnqueueWriteBuffer"};
    for (int i = 0; i < 4; i++) {
        struct err e = ERR_INIT;
        devices(1, &gpu);
        struct backend *b = start(5u << 20, 0);
        fake->fails = fails[i];
        fake->works = i == 3 ? 4 : 0; /* the fifth of five pieces */
        ck_assert_ptr_null(backend_opencl.open(b, 0, &e));
        ck_assert_uint_eq(e.n, 1);
        ck_assert_str_eq(e.lines[0],
                         "cl0: the driver refuses a queue with 5 MB (OpenCL error -5): use a "
                         "smaller --pool-mb, or update the driver");
        err_fini(&e);
        nothing_lives();
        backend_opencl.stop(b);
    }
}
END_TEST

/* ---- kernels ---- */

static const struct fake_launch *last(void)
{
    return &fake->launches[(fake->n_launches - 1) % FAKE_LAUNCHES];
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
            struct fake_device one = gpu;
            one.type = cpu ? 2 : 4;
            devices(1, &one); /* a CPU of no parts: whole */
            struct backend *b = start(1u << 20, variant);
            struct backend_device *d = open_first(b);
            size_t workers = cpu ? 4 * 3 : 256 * 3;
            struct backend_kernel *k = prepare(d, &read_5120);
            submit(k);
            expect_launch(d, "stream_read", 1, workers, 1, false, 0, 2,
                          (uint64_t[]){80, handle(k->y)});
            ck_assert_uint_eq(last()->arg_sizes[2], 8);
            ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 1024 * 4);
            backend_opencl.release(k);
            k = prepare(d, &copy_4096); /* behind the two pages that were read */
            submit(k);
            expect_launch(d, "stream_copy", 1, workers, 1, false, 8192 / 4, 2,
                          (uint64_t[]){64, handle(k->y)});
            backend_opencl.release(k);
            k = prepare(d, &knob_2048); /* two steps of a flop each for an element's four bytes */
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
                k = prepare(d, &s);
                submit(k);
                expect_launch(d, names[i], 1, 16, 1, false, at / (bits[i] / 8), 5,
                              (uint64_t[]){handle(k->x), handle(k->y), 1, 64, 80});
                ck_assert_uint_eq(((const struct fake_object *)k->x)->size, 4 * 80);
                ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 64);
                at += (64 * 80 * bits[i] / 8 + 4095) / 4096 * 4096;
                backend_opencl.release(k);
            }
            k = prepare(d, &gemm); /* 36 x 21: 48 x 32 in tiles, 9 x 6 in blocks */
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
                k = prepare(d, &s);
                submit(k);
                expect_launch(
                    d, "attention", 2, 6, 5, false, at / 2, 7,
                    (uint64_t[]){handle(k->x), handle(k->y), 5, 6, 2, 50, decode ? 1 : 0});
                ck_assert_uint_eq(((const struct fake_object *)k->x)->size, 4 * 5 * 6 * 32);
                ck_assert_uint_eq(((const struct fake_object *)k->y)->size, 4 * 5 * 6 * 32);
                at += (kernel_spec_weight_bytes(&s) + 4095) / 4096 * 4096;
                backend_opencl.release(k);
            }
            /* One program for products and streams (of head dimension 64), one for heads of 32. */
            ck_assert_uint_eq(d->n_programs, 2);
            char options[64];
            (void)snprintf(options, sizeof options, "-cl-std=CL1.2 -DDIM=64 -DSTRIDED=%d", !cpu);
            ck_assert_str_eq(((const struct fake_object *)d->programs[0].program)->text, options);
            (void)snprintf(options, sizeof options, "-cl-std=CL1.2 -DDIM=32 -DSTRIDED=%d", !cpu);
            ck_assert_str_eq(((const struct fake_object *)d->programs[1].program)->text, options);
            ck_assert_int_eq(fake->live[FAKE_KERNEL], 0);
            ck_assert_int_eq(fake->live[FAKE_BUFFER], 1); /* the pool */
            backend_opencl.close(d);
            backend_opencl.stop(b);
            nothing_lives();
        }
    }
}
END_TEST

/* Launches walk through the pool by whole pages, and begin again where the rest is too small. */
START_TEST(launches_read_another_piece_each)
{
    static const uint64_t reads[] = {0, 8192, 16384, 0, 8192};
    static const uint64_t copies[] = {0, 8192, 16384 - 16384, 8192};
    devices(1, &gpu);
    struct backend *b =
        start(5 * 4096 + 2048, 0); /* five pages: 5120 bytes fit at 0, 8192, 16384 - no */
    struct backend_device *d = open_first(b);
    d->pool_bytes = 16384 + 5120; /* the third read ends with the pool */
    struct backend_kernel *k = prepare(d, &read_5120);
    for (int i = 0; i < 5; i++) {
        submit(k);
        ck_assert_uint_eq(last()->args[1], reads[i] / 4);
    }
    backend_opencl.release(k);
    k = prepare(d, &copy_4096); /* each two pages: read and written */
    d->cursor = 0;
    for (int i = 0; i < 4; i++) {
        submit(k);
        ck_assert_uint_eq(last()->args[1], copies[i] / 4);
    }
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    nothing_lives();
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

START_TEST(the_faster_product_is_taken_by_its_second_run)
{
    static const char *const names[] = {"gemm_tiled", "gemm_blocked"};
    for (int i = 0; i < 2; i++) {
        devices(1, &gpu);
        struct backend *b = start(1u << 20, 0);
        struct backend_device *d = open_first(b);
        slow = names[i];
        slow_once = names[1 - i];
        was_slow = false;
        fake->run = pause_for;
        struct backend_kernel *k = prepare(d, &gemm);
        ck_assert_uint_eq(fake->n_launches, 4); /* two of each */
        ck_assert_int_eq(fake->live[FAKE_KERNEL], 1);
        submit(k);
        ck_assert_str_eq(last()->name, names[1 - i]);
        backend_opencl.release(k);
        backend_opencl.close(d);
        /* A device without groups of 256 has blocks, whatever they take. */
        d = open_first(b);
        d->group_max = 255;
        slow = "gemm_blocked";
        k = prepare(d, &gemm);
        submit(k);
        ck_assert_str_eq(last()->name, "gemm_blocked");
        backend_opencl.release(k);
        d->group_max =
            256; /* so has one that cannot run tiles; one that runs no blocks has tiles */
        slow = "none";
        fake->run = NULL;
        for (int tiles = 0; tiles < 2; tiles++) {
            fake->fails = "clEnqueueNDRangeKernel";
            fake->works = tiles ? 2 : 0;
            /* Each later call fails, too: what was chosen is launched when the driver works again.
             */
            struct backend_prep prep;
            struct err e = ERR_INIT;
            k = backend_opencl.prepare(d, &gemm, &prep, &e);
            fake->fails = NULL;
            ck_assert_str_eq(prep.note, tiles ? "gemm_tiled" : "gemm_blocked");
            backend_opencl.release(k);
        }
        backend_opencl.close(d);
        backend_opencl.stop(b);
        nothing_lives();
    }
}
END_TEST

/* What a device has no kernel for, by one condition each. */
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
    devices(1, &gpu);
    struct backend *b = start(8192, 0);
    struct backend_device *d = open_first(b);
    struct kernel_spec copy = copy_4096;
    backend_opencl.release(prepare(d, &copy));
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
        devices(1, &gpu);
        fake->log = "line 3: what?";
        struct backend *b = start(1u << 20, 0);
        struct backend_device *d = open_first(b);
        fake->fails = rows[i].fails;
        fake->works = rows[i].works;
        ck_assert_ptr_null(backend_opencl.prepare(d, &s, &prep, &e));
        ck_assert_uint_eq(e.n, 1);
        ck_assert_msg(strstr(e.lines[0], rows[i].says) != NULL, "%s: %s", rows[i].fails,
                      e.lines[0]);
        err_fini(&e);
        ck_assert_int_eq(fake->live[FAKE_PROGRAM], rows[i].program);
        ck_assert_uint_eq(d->n_programs, rows[i].program);
        ck_assert_int_eq(fake->live[FAKE_KERNEL], 0);
        ck_assert_int_eq(fake->live[FAKE_BUFFER], 1);
        backend_opencl.close(d);
        backend_opencl.stop(b);
        nothing_lives();
    }
}
END_TEST

START_TEST(eight_head_dimensions_have_a_program)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    devices(1, &gpu);
    struct backend *b = start(1u << 20, 0);
    struct backend_device *d = open_first(b);
    struct kernel_spec s = prefill;
    for (uint32_t i = 1; i <= 8; i++) {
        s.head_dim = 16 * i;
        backend_opencl.release(prepare(d, &s));
    }
    backend_opencl.release(prepare(d, &prefill)); /* 32 has one already */
    ck_assert_int_eq(fake->live[FAKE_PROGRAM], 8);
    s.head_dim = 256;
    ck_assert_ptr_null(backend_opencl.prepare(d, &s, &prep, &e));
    ck_assert_str_eq(e.lines[0], "backend opencl: more than 8 head dimensions");
    err_fini(&e);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

/* ---- time ---- */

static int64_t busy_ns(struct backend_device *d)
{
    struct backend_counters c = {false, 0};
    backend_opencl.counters(d, &c);
    ck_assert(c.busy_valid);
    return c.busy_ns;
}

/* The device's clock is placed on the host's by the tightest bound: an end that was seen is over.
 */
START_TEST(stamps_are_on_the_clock_of_the_host)
{
    struct backend_stamps at;
    devices(1, &gpu);
    struct backend *b = start(1u << 20, 0);
    struct backend_device *d = open_first(b);
    struct backend_kernel *k = prepare(d, &read_5120);
    int64_t before_ns = clock_now_ns();
    submit(k); /* 1: 0 to 1000 of the device */
    int64_t between_ns = clock_now_ns();
    ck_assert_int_eq(backend_opencl.stamps(d, 1, &at), -EINVAL); /* nobody saw it end */
    ck_assert_int_eq(backend_opencl.wait(d, 1, 0), 0);
    int64_t seen_ns = clock_now_ns();
    ck_assert_int_eq(busy_ns(d), 1000);
    ck_assert_int_eq(backend_opencl.stamps(d, 1, &at), 0);
    ck_assert(before_ns <= at.submit_ns && at.submit_ns <= between_ns);
    ck_assert(between_ns <= at.end_ns && at.end_ns <= seen_ns);
    ck_assert(at.start_ns == at.end_ns - 1000 || at.start_ns == at.submit_ns);
    ck_assert_int_eq(at.cpu_ns, -1);
    /* Its clock runs ahead: what was thought of it before was too late. */
    fake->device_ns = 1000000000000;
    fake->launch_ns = 7000;
    before_ns = clock_now_ns();
    submit(k);
    submit(k); /* 3 ends 14000 behind, and with it 2 */
    between_ns = clock_now_ns();
    ck_assert_int_eq(backend_opencl.wait(d, 3, 0), 0);
    seen_ns = clock_now_ns();
    ck_assert_int_eq(busy_ns(d), 15000);
    struct backend_stamps two;
    ck_assert_int_eq(backend_opencl.stamps(d, 3, &at), 0);
    ck_assert_int_eq(backend_opencl.stamps(d, 2, &two), 0);
    ck_assert(between_ns <= at.end_ns && at.end_ns <= seen_ns);
    int64_t end_ns = at.end_ns;
    ck_assert(two.end_ns == end_ns - 7000 || two.end_ns == two.start_ns);
    ck_assert_int_le(before_ns, two.submit_ns);
    ck_assert_int_le(two.submit_ns, at.submit_ns);
    /* The first one's end is long before its own submission there: no stamp is before another. */
    ck_assert_int_eq(backend_opencl.stamps(d, 1, &at), 0);
    ck_assert_int_eq(at.start_ns, at.submit_ns);
    ck_assert_int_eq(at.end_ns, at.submit_ns);
    /* A clock that fell behind gives a later bound, which says nothing. */
    fake->device_ns = 500000000000;
    submit(k);
    ck_assert_int_eq(backend_opencl.wait(d, 4, 0), 0);
    ck_assert_int_eq(busy_ns(d), 22000);
    ck_assert_int_eq(backend_opencl.stamps(d, 3, &at), 0);
    ck_assert_int_eq(at.end_ns, end_ns);
    ck_assert_int_eq(backend_opencl.stamps(d, 0, &at), -EINVAL);
    ck_assert_int_eq(backend_opencl.stamps(d, 5, &at), -EINVAL);
    ck_assert_int_eq(backend_opencl.cancel(d, 4), -ENOTSUP);
    /* One whose times the driver does not tell is done, without any. */
    submit(k);
    fake->fails = "clGetEventProfilingInfo";
    ck_assert_int_eq(backend_opencl.wait(d, 5, 0), 0);
    ck_assert_int_eq(backend_opencl.stamps(d, 5, &at), -EINVAL);
    ck_assert_int_eq(busy_ns(d), 22000);
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

START_TEST(a_wait_ends_by_the_launch_its_failure_or_its_time)
{
    devices(1, &gpu);
    struct backend *b = start(1u << 20, 0);
    struct backend_device *d = open_first(b);
    struct backend_kernel *k = prepare(d, &read_5120);
    submit(k);
    fake->n_pending = 3;
    ck_assert_int_eq(backend_opencl.wait(d, 1, 60 * (int64_t)NS_PER_S), 0);
    ck_assert_uint_eq(fake->n_polls, 4);
    ck_assert_int_eq(backend_opencl.wait(d, 1, 0), 0); /* known already: nobody is asked */
    ck_assert_uint_eq(fake->n_polls, 4);
    submit(k);
    fake->n_pending = 1u << 30;
    int64_t before_ns = clock_now_ns();
    ck_assert_int_eq(backend_opencl.wait(d, 2, 2000000), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns() - before_ns, 2000000);
    fake->n_pending = 0;
    fake->failed_status = -9;
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), -EIO);
    fake->failed_status = 0;
    fake->fails = "clGetEventInfo";
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), -EIO);
    fake->fails = NULL;
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), 0);
    /* A launch that is refused has no ticket. */
    static const char *const fails[] = {"clSetKernelArg", "clEnqueueNDRangeKernel", "clFlush"};
    for (int i = 0; i < 3; i++) {
        fake->fails = fails[i];
        fake->works = i == 0 ? 3 : 0; /* the last argument */
        ck_assert_int_eq(backend_opencl.submit(k), -EIO);
    }
    fake->fails = NULL;
    ck_assert_int_eq(backend_opencl.submit(k), 3);
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

START_TEST(a_queue_holds_as_many_as_it_says)
{
    struct backend_stamps at;
    devices(1, &gpu);
    struct backend *b = start(1u << 20, 0);
    struct backend_device *d = open_first(b);
    struct backend_kernel *k = prepare(d, &read_5120);
    for (int64_t i = 1; i <= BACKEND_MAX_INFLIGHT; i++) {
        ck_assert_int_eq(backend_opencl.submit(k), i);
    }
    ck_assert_int_eq(backend_opencl.submit(k), -EAGAIN);
    ck_assert_int_eq(backend_opencl.wait(d, 1, 0), 0);
    ck_assert_int_eq(backend_opencl.stamps(d, 1, &at), 0);
    ck_assert_int_eq(backend_opencl.submit(k), BACKEND_MAX_INFLIGHT + 1);
    ck_assert_int_eq(backend_opencl.submit(k), -EAGAIN);
    ck_assert_int_eq(backend_opencl.stamps(d, 1, &at), -EINVAL); /* another is in its place */
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), 0);
    ck_assert_int_eq(backend_opencl.stamps(d, 2, &at), 0);
    ck_assert_int_eq(fake->live[FAKE_EVENT], BACKEND_MAX_INFLIGHT);
    ck_assert_int_eq(busy_ns(d), 2000);
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

/* ---- results ---- */

/* Each worker of a stream leaves its number; a product adds an input to a weight. */
static void stand_in(const struct fake_object *k, size_t workers)
{
    struct fake_object *pool = (void *)(uintptr_t)k->args[0];
    const float *w = (const void *)pool->bytes;
    if (strcmp(k->text, "stream_copy") == 0) {
        memcpy(pool->bytes + 4096, pool->bytes, 4096);
        return;
    }
    bool stream = strncmp(k->text, "stream", 6) == 0;
    float *y = (void *)((struct fake_object *)(uintptr_t)k->args[3])->bytes;
    const float *x = stream ? NULL : (void *)((struct fake_object *)(uintptr_t)k->args[2])->bytes;
    for (size_t i = 0; i < (stream ? workers : 64); i++) {
        y[i] = stream ? (float)(i + 1) : x[i] + w[i];
    }
}

START_TEST(results_are_read_from_where_they_are)
{
    float w[64 * 80];
    float x[80];
    float y[1024];
    for (int i = 0; i < 64 * 80; i++) {
        w[i] = (float)i;
    }
    for (int i = 0; i < 80; i++) {
        x[i] = 1000.0f * (float)i;
    }
    devices(1, &gpu);
    struct backend *b = start(1u << 20, 0);
    struct backend_device *d = open_first(b);
    fake->run = stand_in;
    struct backend_kernel *k = prepare(d, &read_5120);
    ck_assert_int_eq(backend_opencl.compute(k, NULL, w, y), 0);
    ck_assert(y[0] == 768.0f * 769.0f / 2.0f); /* 256 workers of three units */
    backend_opencl.release(k);
    k = prepare(d, &copy_4096);
    ck_assert_int_eq(backend_opencl.compute(k, NULL, w, y), 0);
    ck_assert_int_eq(memcmp(w, y, 4096), 0);
    backend_opencl.release(k);
    struct kernel_spec s = gemv(32);
    k = prepare(d, &s);
    ck_assert_int_eq(backend_opencl.compute(k, x, w, y), 0);
    for (int i = 0; i < 64; i++) {
        ck_assert(y[i] == 1001.0f * (float)i);
    }
    static const char *const fails[] = {"clEnqueueWriteBuffer", "clEnqueueWriteBuffer", "clFlush",
                                        "clFinish", "clEnqueueReadBuffer"};
    for (int i = 0; i < 5; i++) {
        fake->fails = fails[i];
        fake->works = i == 1;
        ck_assert_int_eq(backend_opencl.compute(k, x, w, y), -EIO);
    }
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    nothing_lives();
}
END_TEST

static const struct suite_row suite[] = {
    CASE("opencl", .once = build, .timeout_s = 30),
    TEST(every_device_has_its_name_kind_and_description),
    TEST(more_devices_than_there_is_room_for_are_left_out),
    TEST(without_a_device_a_driver_is_asked_for),
    TEST(the_pool_is_filled_whole),
    TEST(a_device_that_cannot_be_opened_leaves_nothing),
    TEST(kernels_have_their_grids_and_arguments),
    TEST(launches_read_another_piece_each),
    TEST(the_faster_product_is_taken_by_its_second_run),
    TEST(what_has_no_kernel_is_refused),
    TEST(a_kernel_that_cannot_be_made_leaves_nothing),
    TEST(eight_head_dimensions_have_a_program),
    TEST(stamps_are_on_the_clock_of_the_host),
    TEST(a_wait_ends_by_the_launch_its_failure_or_its_time),
    TEST(a_queue_holds_as_many_as_it_says),
    TEST(results_are_read_from_where_they_are),
};
SUITE_MAIN("opencl", suite)
