/* An engine that has devices and runs nothing: compiled by a test (madeengines.h) with its NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/engines/bench.h"

#ifndef NAME
#define NAME "made"
#endif

static void *open_bench(uint32_t n_threads, const char *cache, char *why)
{
    static int it;
    (void)cache;
    (void)why;
    return n_threads == 1 ? &it : NULL;
}

static void close_bench(void *bench)
{
    (void)bench;
}

/* CHECK_DEVICES names them, by blanks. */
static uint32_t devices(void *bench, struct engine_bench_device *out, uint32_t cap)
{
    char list[256];
    uint32_t n = 0;
    (void)bench;
    (void)snprintf(list, sizeof list, "%s", getenv("CHECK_DEVICES"));
    for (char *w = strtok(list, " "); w != NULL && n < cap; w = strtok(NULL, " "), n++) {
        memset(&out[n], 0, sizeof out[n]);
        (void)snprintf(out[n].name, sizeof out[n].name, "%s", w);
        out[n].kind = w[0] == 'N'   ? DEVICE_KIND_NPU
                      : w[0] == 'G' ? DEVICE_KIND_IGPU
                      : w[0] == 'D' ? DEVICE_KIND_GPU
                                    : DEVICE_KIND_CPU;
    }
    return n;
}

static uint32_t facts(void *bench, const char *device, struct engine_fact *out, uint32_t cap)
{
    uint32_t n = 0;
    (void)bench;
    for (; device[0] == 'N' && n < 2 && n < cap; n++) {
        (void)snprintf(out[n].name, sizeof out[n].name, "F%u", n);
        (void)snprintf(out[n].value, sizeof out[n].value, "%s says %u", device, n);
    }
    return n;
}

static const struct engine_bench_ops bench_ops = {.abi = ENGINE_BENCH_ABI,
                                                  .version = "1",
                                                  .open = open_bench,
                                                  .close = close_bench,
                                                  .devices = devices,
                                                  .facts = facts};
static const struct engine_ops ops = {.abi = ENGINE_ABI, .name = NAME, .version = "1." NAME};

const struct engine_bench_ops *xpusim_engine_bench(void)
{
    return &bench_ops;
}

const struct engine_ops *xpusim_engine(void)
{
    return &ops;
}
