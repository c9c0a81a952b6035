/* The opencl backend against a driver that notes what it is asked (tests/helpers/opencl): devices,
 * memory, times and results. check_opencl_kernels has grids and arguments, check_backends a real
 * driver. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hwmodels/kernel_numbers.h"
#include "sim/base/arena.h"
#include "sim/base/clock.h"
#include "tests/helpers/driver.h"
#include "tests/helpers/suite.h"

static const struct kernel_spec read_5120 = {
    .op = KERNEL_READ, .weight_bits = 32, .rows = 1, .stream_bytes = 5120};
static const struct kernel_spec copy_4096 = {
    .op = KERNEL_COPY, .weight_bits = 32, .rows = 1, .stream_bytes = 4096};

static struct kernel_spec gemv(uint32_t bits)
{
    return (struct kernel_spec){
        .op = KERNEL_GEMV, .weight_bits = bits, .act_bits = 32, .rows = 1, .n = 64, .k = 80};
}

static void submit(struct backend_kernel *k)
{
    ck_assert_int_eq(backend_opencl.submit(k), k->device->last_ticket);
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
    driver_devices(0, all);
    /* On three platforms: one has no device. */
    driver->n_platforms = 3;
    driver->n_devices[0] = 3;
    memcpy(driver->devices[0], all, 3 * sizeof *all);
    driver->n_devices[2] = 5;
    memcpy(driver->devices[2], all + 3, 5 * sizeof *all);
    struct backend *b = driver_start(1u << 20, 0);
    ck_assert_int_eq(driver->live[FAKE_DEVICE], 6); /* four of six, and two of two */
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
    driver_nothing_lives();
}
END_TEST

/* Memory in common with the host has who says so: of a driver that does not know the question, a
 * GPU is a card. */
START_TEST(what_a_driver_does_not_say_is_not_so)
{
    static const struct fake_device silent = {
        .type = 4, .units = 3, .unified = FAKE_UNSAID, .name = "A card", .driver = "9"};
    struct backend_info info[BACKEND_MAX_DEVICES];
    driver_devices(1, &silent);
    struct backend *b = driver_start(1u << 20, 0);
    ck_assert_uint_eq(backend_opencl.enumerate(b, info, BACKEND_MAX_DEVICES), 1);
    ck_assert_int_eq(info[0].kind, DEVICE_KIND_GPU);
    backend_opencl.stop(b);
    driver_nothing_lives();
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
    driver_devices(5, cpus);
    struct backend *b = driver_start(1u << 20, 0);
    ck_assert_int_eq(driver->live[FAKE_DEVICE], 16);
    ck_assert_uint_eq(backend_opencl.enumerate(b, info, BACKEND_MAX_DEVICES), 16);
    ck_assert_str_eq(info[15].name, "cl3.3");
    backend_opencl.stop(b);
    driver_nothing_lives();
}
END_TEST

START_TEST(without_a_device_a_driver_is_asked_for)
{
    static const char *const fails[] = {NULL, "clGetPlatformIDs", "clGetDeviceIDs"};
    for (int i = 0; i < 3; i++) {
        struct err e = ERR_INIT;
        driver_devices(i > 0, &driver_gpu);
        driver->fails = fails[i];
        struct backend_options o = {.pool_bytes = 1u << 20, .library = driver_library};
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
        struct fake_device d = driver_gpu;
        d.most_bytes = i == 1 ? want[i] + 4095 : most[i];
        driver_devices(1, &d);
        struct backend *b = driver_start(i == 1 ? 4 * (uint64_t)MB : want[i] + 100, 0);
        struct backend_device *o = driver_open(b);
        const struct fake_object *pool = o->pool;
        ck_assert_uint_eq(pool->size, want[i]);
        for (uint64_t at = 0; at < want[i]; at += MB) {
            size_t n = want[i] - at < MB ? (size_t)(want[i] - at) : MB;
            ck_assert_int_eq(memcmp(pool->bytes + at, piece, n), 0);
        }
        backend_opencl.close(o);
        driver_nothing_lives();
        backend_opencl.stop(b);
    }
    free(piece);
}
END_TEST

/* Any call that fails gives a message with the driver's number, and leaves nothing open. */
START_TEST(a_device_that_cannot_be_opened_leaves_nothing)
{
    static const char *const fails[] = {"clCreateContext", "clCreateCommandQueue", "clCreateBuffer",
                                        "clEnqueueWriteBuffer"};
    for (int i = 0; i < 4; i++) {
        struct err e = ERR_INIT;
        driver_devices(1, &driver_gpu);
        struct backend *b = driver_start(5u << 20, 0);
        driver->fails = fails[i];
        driver->works = i == 3 ? 4 : 0; /* the fifth of five pieces */
        ck_assert_ptr_null(backend_opencl.open(b, 0, &e));
        ck_assert_uint_eq(e.n, 1);
        ck_assert_str_eq(e.lines[0],
                         "cl0: the driver refuses a queue with 5 MB (OpenCL error -5): use a "
                         "smaller --pool-mb, or update the driver");
        err_fini(&e);
        driver_nothing_lives();
        backend_opencl.stop(b);
    }
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
    driver_devices(1, &driver_gpu);
    struct backend *b = driver_start(1u << 20, 0);
    struct backend_device *d = driver_open(b);
    struct backend_kernel *k = driver_prepare(d, &read_5120);
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
    driver->device_ns = 1000000000000;
    driver->launch_ns = 7000;
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
    driver->device_ns = 500000000000;
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
    driver->fails = "clGetEventProfilingInfo";
    ck_assert_int_eq(backend_opencl.wait(d, 5, 0), 0);
    ck_assert_int_eq(backend_opencl.stamps(d, 5, &at), -EINVAL);
    ck_assert_int_eq(busy_ns(d), 22000);
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    driver_nothing_lives();
}
END_TEST

START_TEST(a_wait_ends_by_the_launch_its_failure_or_its_time)
{
    driver_devices(1, &driver_gpu);
    struct backend *b = driver_start(1u << 20, 0);
    struct backend_device *d = driver_open(b);
    struct backend_kernel *k = driver_prepare(d, &read_5120);
    submit(k);
    driver->n_pending = 3;
    ck_assert_int_eq(backend_opencl.wait(d, 1, 60 * (int64_t)NS_PER_S), 0);
    ck_assert_uint_eq(driver->n_polls, 4);
    ck_assert_int_eq(backend_opencl.wait(d, 1, 0), 0); /* known already: nobody is asked */
    ck_assert_uint_eq(driver->n_polls, 4);
    submit(k);
    driver->n_pending = 1u << 30;
    int64_t before_ns = clock_now_ns();
    ck_assert_int_eq(backend_opencl.wait(d, 2, 2000000), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns() - before_ns, 2000000);
    driver->n_pending = 0;
    driver->failed_status = -9;
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), -EIO);
    driver->failed_status = 0;
    driver->fails = "clGetEventInfo";
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), -EIO);
    driver->fails = NULL;
    ck_assert_int_eq(backend_opencl.wait(d, 2, 0), 0);
    /* A launch that is refused has no ticket. */
    static const char *const fails[] = {"clSetKernelArg", "clEnqueueNDRangeKernel", "clFlush"};
    for (int i = 0; i < 3; i++) {
        driver->fails = fails[i];
        driver->works = i == 0 ? 3 : 0; /* the last argument */
        ck_assert_int_eq(backend_opencl.submit(k), -EIO);
    }
    driver->fails = NULL;
    ck_assert_int_eq(backend_opencl.submit(k), 3);
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    driver_nothing_lives();
}
END_TEST

START_TEST(a_queue_holds_as_many_as_it_says)
{
    struct backend_stamps at;
    driver_devices(1, &driver_gpu);
    struct backend *b = driver_start(1u << 20, 0);
    struct backend_device *d = driver_open(b);
    struct backend_kernel *k = driver_prepare(d, &read_5120);
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
    ck_assert_int_eq(driver->live[FAKE_EVENT], BACKEND_MAX_INFLIGHT);
    ck_assert_int_eq(busy_ns(d), 2000);
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    driver_nothing_lives();
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
    driver_devices(1, &driver_gpu);
    struct backend *b = driver_start(1u << 20, 0);
    struct backend_device *d = driver_open(b);
    driver->run = stand_in;
    struct backend_kernel *k = driver_prepare(d, &read_5120);
    ck_assert_int_eq(backend_opencl.compute(k, NULL, w, y), 0);
    ck_assert(y[0] == 768.0f * 769.0f / 2.0f); /* 256 workers of three units */
    backend_opencl.release(k);
    k = driver_prepare(d, &copy_4096);
    ck_assert_int_eq(backend_opencl.compute(k, NULL, w, y), 0);
    ck_assert_int_eq(memcmp(w, y, 4096), 0);
    backend_opencl.release(k);
    struct kernel_spec s = gemv(32);
    k = driver_prepare(d, &s);
    ck_assert_int_eq(backend_opencl.compute(k, x, w, y), 0);
    for (int i = 0; i < 64; i++) {
        ck_assert(y[i] == 1001.0f * (float)i);
    }
    static const char *const fails[] = {"clEnqueueWriteBuffer", "clEnqueueWriteBuffer", "clFlush",
                                        "clFinish", "clEnqueueReadBuffer"};
    for (int i = 0; i < 5; i++) {
        driver->fails = fails[i];
        driver->works = i == 1;
        ck_assert_int_eq(backend_opencl.compute(k, x, w, y), -EIO);
    }
    backend_opencl.release(k);
    backend_opencl.close(d);
    backend_opencl.stop(b);
    driver_nothing_lives();
}
END_TEST

static const struct suite_row suite[] = {
    CASE("opencl", .once = driver_build, .timeout_s = 30),
    TEST(every_device_has_its_name_kind_and_description),
    TEST(what_a_driver_does_not_say_is_not_so),
    TEST(more_devices_than_there_is_room_for_are_left_out),
    TEST(without_a_device_a_driver_is_asked_for),
    TEST(the_pool_is_filled_whole),
    TEST(a_device_that_cannot_be_opened_leaves_nothing),
    TEST(stamps_are_on_the_clock_of_the_host),
    TEST(a_wait_ends_by_the_launch_its_failure_or_its_time),
    TEST(a_queue_holds_as_many_as_it_says),
    TEST(results_are_read_from_where_they_are),
};
SUITE_MAIN("opencl", suite)
