#include "tests/helpers/bench/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_bench fake_bench;

static void *bench_open(uint32_t n_threads, const char *cache, char *why)
{
    fake_bench.n_threads = n_threads;
    (void)snprintf(fake_bench.cache, sizeof fake_bench.cache, "%s", cache != NULL ? cache : "none");
    (void)snprintf(why, ENGINE_MESSAGE_BYTES, "no library");
    fake_bench.n_open += !fake_bench.no_open;
    return fake_bench.no_open ? NULL : &fake_bench;
}

static void bench_close(void *bench)
{
    (void)bench;
    fake_bench.n_open--;
}

static uint32_t devices(void *bench, struct engine_bench_device *out, uint32_t cap)
{
    (void)bench;
    for (uint32_t i = 0; i < fake_bench.n_devices && i < cap; i++) {
        out[i] = fake_bench.devices[i];
    }
    return fake_bench.n_devices;
}

static void *prepare(void *bench, const char *device, const struct kernel_spec *s, uint32_t copies,
                     const void *weights, double *compile_s, char *why)
{
    (void)bench;
    if (fake_bench.no_prepare) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "no such kernel");
        return NULL;
    }
    struct fake_kernel *k = calloc(1, sizeof *k);
    (void)snprintf(k->device, sizeof k->device, "%s", device);
    k->spec = *s;
    k->copies = copies;
    k->weights = weights;
    *compile_s = 1.5;
    fake_bench.n_kernels++;
    fake_bench.last = k;
    return k;
}

static void release(void *kernel)
{
    fake_bench.n_kernels--;
    free(kernel);
}

/* y is x and the first weight. */
static int run(void *kernel, uint32_t turn, const float *x, float *y, char *why)
{
    struct fake_kernel *k = kernel;
    k->turns[k->n_turns++ % 16] = turn;
    if (fake_bench.fails) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "it broke");
        return -5;
    }
    if (y != NULL) {
        y[0] = x[0] + *(const float *)k->weights;
    }
    return 0;
}

static struct engine_bench_ops ops = {.abi = ENGINE_BENCH_ABI,
                                      .version = "9.8",
                                      .open = bench_open,
                                      .close = bench_close,
                                      .devices = devices,
                                      .prepare = prepare,
                                      .release = release,
                                      .run = run};

const struct engine_bench_ops *xpusim_engine_bench(void)
{
    ops.abi = fake_bench.abi != 0 ? fake_bench.abi : ENGINE_BENCH_ABI;
    return &ops;
}

static struct engine_ops engine = {.name = "openvino", .version = "9.8"};

const struct engine_ops *xpusim_engine(void)
{
    engine.abi = fake_bench.abi != 0 ? fake_bench.abi : ENGINE_ABI;
    return &engine;
}
