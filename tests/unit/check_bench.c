/* The openvino backend against a library that notes what it is asked (tests/helpers/bench), and how
 * libraries are found. check_backends has the real one. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/host.h"
#include "hwmodels/backends/worker.h"
#include "hwmodels/engines/engines.h"
#include "sim/base/text.h"
#include "tests/helpers/bench/fake.h"
#include "tests/helpers/suite.h"

static char folder[64];
static struct fake_bench *fake;
static const int64_t minute_ns = 60 * (int64_t)NS_PER_S;

/* When the process of all tests ends, and not where one of them does. */
static pid_t owner;
static void remove_folder(void)
{
    if (getpid() == owner) {
        char *command = xformat("rm -r %s", folder);
        (void)!system(command);
        free(command);
    }
}

/* Once for all tests. */
static void build(void)
{
    const char *cc = getenv("CC");
    (void)snprintf(folder, sizeof folder, "/tmp/check_bench.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    owner = getpid();
    ck_assert_int_eq(atexit(remove_folder), 0);
    char *command =
        xformat("%s -std=c17 -D_POSIX_C_SOURCE=200809L -I. -shared -fPIC -w -o %s/openvino.so "
                "tests/helpers/bench/fake.c && echo no object >%s/ggml.so",
                cc != NULL ? cc : "gcc", folder, folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
    char *path = xformat("%s/openvino.so", folder);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    fake = dlsym(handle, "fake_bench");
    ck_assert_ptr_nonnull(fake);
    free(path);
}

static void setup(void)
{
    static const struct engine_bench_device all[] = {{"CPU", "Some CPU", DEVICE_KIND_CPU},
                                                     {"GPU.0", "Some GPU", DEVICE_KIND_IGPU},
                                                     {"NPU", "Some NPU", DEVICE_KIND_NPU}};
    memset(fake, 0, sizeof *fake);
    memcpy(fake->devices, all, sizeof all);
    fake->n_devices = 3;
    ck_assert_int_eq(setenv("XPUSIM_ENGINES", folder, 1), 0);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", "/some/caches", 1), 0);
}

static struct backend *start(uint64_t pool_bytes)
{
    struct err e = ERR_INIT;
    struct backend_options o = {.pool_bytes = pool_bytes};
    struct backend *b = backend_openvino.start(&o, &e);
    ck_assert_msg(b != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    return b;
}

static struct backend_device *device(struct backend *b, uint32_t i)
{
    struct err e = ERR_INIT;
    struct backend_device *d = backend_openvino.open(b, i, &e);
    ck_assert_ptr_nonnull(d);
    return d;
}

static const struct kernel_spec gemv = {.op = KERNEL_GEMV,
                                        .weight_bits = 32,
                                        .act_bits = 32,
                                        .rows = 1,
                                        .n = 512,
                                        .k = 512}; /* 1 MiB */

START_TEST(devices_are_the_librarys_in_small_letters)
{
    struct backend_info info[BACKEND_MAX_DEVICES];
    char text[96];
    struct backend *b = start(1u << 20);
    ck_assert_str_eq(fake->cache, "/some/caches/xpusim/kernels");
    ck_assert_uint_eq(fake->n_threads, worker_cores(NULL, 0));
    ck_assert_uint_eq(backend_openvino.enumerate(b, info, BACKEND_MAX_DEVICES), 3);
    (void)snprintf(text, sizeof text, "%u threads, OpenVINO 9.8", worker_cores(NULL, 0));
    static const char *const names[] = {"cpu", "gpu.0", "npu"};
    const char *const described[] = {text, "Some GPU, OpenVINO 9.8", "Some NPU, OpenVINO 9.8"};
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(info[i].name, names[i]);
        ck_assert_str_eq(info[i].description, described[i]);
        ck_assert_int_eq(info[i].kind, fake->devices[i].kind);
        ck_assert(info[i].act_bits == 32 && info[i].kv_bits == 16 && info[i].n_widths == 3);
        ck_assert(info[i].weight_bits[0] == 8 && info[i].weight_bits[1] == 16 &&
                  info[i].weight_bits[2] == 4);
    }
    memset(info, 0, sizeof info);
    ck_assert_uint_eq(backend_openvino.enumerate(b, info, 1), 3);
    ck_assert_str_eq(info[1].name, "");
    backend_openvino.stop(b);
    ck_assert_uint_eq(fake->n_open, 0);
    /* More than there is room for are left out. */
    fake->n_devices = 20;
    b = start(1u << 20);
    ck_assert_uint_eq(backend_openvino.enumerate(b, info, BACKEND_MAX_DEVICES),
                      BACKEND_MAX_DEVICES);
    backend_openvino.stop(b);
}
END_TEST

/* The library computes products of an even length, and attention, but no plain streams. */
START_TEST(what_the_library_computes_is_supported)
{
    struct kernel_spec s = gemv;
    ck_assert(backend_openvino.supports(NULL, &s));
    s.k = 511;
    ck_assert(!backend_openvino.supports(NULL, &s));
    s.op = KERNEL_DECODE;
    ck_assert(backend_openvino.supports(NULL, &s));
    s.op = KERNEL_READ;
    s.k = 512;
    ck_assert(!backend_openvino.supports(NULL, &s));
}
END_TEST

/* Copies of 1 MiB for one and a half caches of the processor, two at least and 16 at most, as far
 * as the pool has room. Where there is not enough room to be out of the cache, one is enough, and
 * the times say nothing of memory. */
START_TEST(weights_are_there_often_enough_to_come_from_memory)
{
    static const uint64_t pools[] = {0, 1, 3, 12, 16, 64, 4000};
    double cache = host_cache_bytes();
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        for (uint32_t which = 0; which < 3; which++) {
            struct backend *b = start(pools[i] << 20);
            struct backend_device *d = device(b, which);
            struct backend_prep prep;
            struct err e = ERR_INIT;
            struct backend_kernel *k = backend_openvino.prepare(d, &gemv, &prep, &e);
            ck_assert_ptr_nonnull(k);
            double room = pools[i] > 16 ? 16.0 : (double)pools[i];
            double own = which == 0 ? cache : 0.0; /* other devices have no such cache */
            double want = 2.0;
            while (want < 1.5 * own / 1048576.0) {
                want += 1.0;
            }
            bool cached = want > room && room * 1048576.0 < own;
            double n = want <= room ? want : cached ? 1.0 : room;
            n = n < 1.0 ? 1.0 : n;
            char note[32];
            (void)snprintf(note, sizeof note, "%.0f copies", n);
            ck_assert_str_eq(prep.note, note);
            ck_assert_uint_eq(fake->last->copies, (uint32_t)n);
            ck_assert_int_eq(prep.cached, cached);
            ck_assert_double_eq(prep.compile_s, 1.5);
            ck_assert_str_eq(fake->last->device, fake->devices[which].name);
            ck_assert_ptr_null(fake->last->weights);
            backend_openvino.release(k);
            backend_openvino.close(d);
            backend_openvino.stop(b);
            ck_assert_uint_eq(fake->n_kernels, 0);
        }
    }
}
END_TEST

/* A launch after another, each with the next copy; one that fails ends the device. */
START_TEST(launches_take_turns_and_a_failure_stays)
{
    struct err e = ERR_INIT;
    struct backend_prep prep;
    struct backend_stamps at;
    struct backend_counters counters = {true, 0};
    struct backend *b = start(64u << 20);
    struct backend_device *d = device(b, 2);
    struct backend_kernel *k = backend_openvino.prepare(d, &gemv, &prep, &e);
    for (int64_t i = 1; i <= 3; i++) {
        ck_assert_int_eq(backend_openvino.submit(k), i);
    }
    ck_assert_int_eq(backend_openvino.wait(d, 3, minute_ns), 0);
    ck_assert_uint_eq(fake->last->n_turns, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(fake->last->turns[i], i);
    }
    ck_assert_int_eq(backend_openvino.stamps(d, 3, &at), 0);
    ck_assert_int_eq(at.cpu_ns, -1);
    ck_assert(at.submit_ns <= at.start_ns && at.start_ns <= at.end_ns);
    ck_assert_int_eq(backend_openvino.stamps(d, 4, &at), -EINVAL);
    backend_openvino.counters(d, &counters);
    ck_assert(!counters.busy_valid);
    ck_assert_int_eq(backend_openvino.cancel(d, 3), 3);
    float x[512] = {2.0f};
    float w[2] = {40.0f, 1.0f};
    float y[512] = {0.0f};
    struct fake_kernel *own = fake->last;
    ck_assert_int_eq(backend_openvino.compute(k, x, w, y), 0);
    ck_assert(y[0] == 42.0f);
    ck_assert_uint_eq(fake->n_kernels, 1); /* the one with these weights is gone */
    ck_assert_uint_eq(own->n_turns, 3);
    fake->no_prepare = true;
    ck_assert_int_eq(backend_openvino.compute(k, x, w, y), -EIO);
    ck_assert_ptr_null(backend_openvino.prepare(d, &gemv, &prep, &e));
    ck_assert_str_eq(e.lines[0], "gemv-w32-m1-n512-k512 on NPU: no such kernel");
    fake->no_prepare = false;
    struct kernel_spec attention = {.op = KERNEL_DECODE,
                                    .weight_bits = 16,
                                    .act_bits = 32,
                                    .rows = 1,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_dim = 16,
                                    .context_tokens = 16};
    struct backend_kernel *other = backend_openvino.prepare(d, &attention, &prep, &e);
    ck_assert_int_eq(backend_openvino.compute(other, x, w, y), -ENOTSUP);
    backend_openvino.release(other);
    fake->fails = true;
    ck_assert_int_eq(backend_openvino.submit(k), 4);
    ck_assert_int_eq(backend_openvino.wait(d, 4, minute_ns), -EIO);
    fake->fails = false;
    ck_assert_int_eq(backend_openvino.submit(k), -EIO);
    ck_assert_int_eq(backend_openvino.wait(d, 3, 0), -EIO);
    backend_openvino.release(k);
    backend_openvino.close(d);
    backend_openvino.stop(b);
    err_fini(&e);
}
END_TEST

START_TEST(a_library_is_found_where_it_is_said_to_be)
{
    struct err e = ERR_INIT;
    const struct engine_ops *ops = engine_find("openvino", &e);
    ck_assert_ptr_nonnull(ops);
    ck_assert_str_eq(ops->version, "9.8");
    ck_assert_ptr_nonnull(engine_bench_find(&e));
    ck_assert_uint_eq(e.n, 0);
    ck_assert_ptr_null(engine_find("other", &e));
    ck_assert_str_eq(e.lines[0], "there is no engine other; there are ggml and openvino");
    fake->abi = 77;
    ck_assert_ptr_null(engine_find("openvino", &e));
    ck_assert_str_eq(
        e.lines[1],
        "engine openvino is not there, built for another version of sim/api/engine.h: `make "
        "engines` fetches and builds it");
    ck_assert_ptr_null(engine_bench_find(&e));
    ck_assert_str_eq(
        e.lines[2],
        "engine openvino is not there, built for another version of hwmodels/engines/bench.h: "
        "`make engines` fetches and builds it");
    ck_assert_ptr_null(engine_find("ggml", &e)); /* a file that is no object */
    ck_assert_ptr_nonnull(strstr(e.lines[3], "engine ggml is not there, "));
    ck_assert_ptr_nonnull(strstr(e.lines[3], "ggml.so"));
    ck_assert_int_eq(setenv("XPUSIM_ENGINES", "/nonexistent", 1), 0);
    ck_assert_ptr_null(engine_find("openvino", &e));
    ck_assert_str_eq(e.lines[4],
                     "engine openvino is not there: `make engines` fetches and builds it");
    ck_assert_ptr_null(engine_bench_find(&e));
    ck_assert_str_eq(e.lines[5],
                     "engine openvino is not there: `make engines` fetches and builds it");
    ck_assert_int_eq(setenv("XPUSIM_ENGINES", folder, 1), 0);
    fake->abi = 0;
    fake->no_open = true;
    struct backend_options o = {.pool_bytes = 1u << 20};
    ck_assert_ptr_null(backend_openvino.start(&o, &e));
    ck_assert_str_eq(e.lines[6], "backend openvino: no library");
    err_fini(&e);
    /* The folder is in the user's folder of caches, else in that of the home folder, else there is
     * none. */
    static const char *const caches[] = {"/c", "", ""};
    static const char *const homes[] = {"/h", "/h", ""};
    static const char *const want[] = {"/c/xpusim/kernels", "/h/.cache/xpusim/kernels", NULL};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(setenv("XDG_CACHE_HOME", caches[i], 1), 0);
        ck_assert_int_eq(setenv("HOME", homes[i], 1), 0);
        char *cache = engine_cache();
        ck_assert(want[i] == NULL ? cache == NULL : cache != NULL && strcmp(cache, want[i]) == 0);
        free(cache);
    }
    ck_assert_int_eq(unsetenv("XDG_CACHE_HOME"), 0);
    ck_assert_int_eq(unsetenv("HOME"), 0);
    ck_assert_ptr_null(engine_cache());
}
END_TEST

static const struct suite_row suite[] = {
    CASE("bench", .setup = setup, .once = build, .timeout_s = 60),
    TEST(devices_are_the_librarys_in_small_letters),
    TEST(what_the_library_computes_is_supported),
    TEST(weights_are_there_often_enough_to_come_from_memory),
    TEST(launches_take_turns_and_a_failure_stays),
    TEST(a_library_is_found_where_it_is_said_to_be),
};
SUITE_MAIN("bench", suite)
