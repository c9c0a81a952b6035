/* Single kernels of a backend's library, for `xpusim measure`. A shared object of an inference
 * backend may export these in addition to its model kernels (sim/api/engine.h). */
#pragma once

#include <stdint.h>

#include "hwmodels/kernel_spec.h"
#include "sim/api/device.h"
#include "sim/api/engine.h" /* ENGINE_MESSAGE_BYTES, of every reason */

#define ENGINE_BENCH_ABI 1

struct engine_bench_device {
    char name[16];        /* the library's word: "CPU", "GPU.0", "NPU" */
    char description[64]; /* hardware */
    enum device_kind kind;
};

struct engine_bench_ops {
    uint32_t abi; /* ENGINE_BENCH_ABI */
    const char *version;
    /* n_threads: of devices that are the processor. NULL with a reason. */
    void *(*open)(uint32_t n_threads, char *why);
    void (*close)(void *bench);
    /* Fills at most cap; returns how many there are. */
    uint32_t (*devices)(void *bench, struct engine_bench_device *out, uint32_t cap);
    /* Compiles `copies` kernels, each with weights of its own; weights NULL: any. Products only:
     * of 8 bits w[n][k] times 1/64, of 16 IEEE halves, of 4 two to a byte, of 32 floats; attention
     * has inputs instead. NULL with a reason. */
    void *(*prepare)(void *bench, const char *device, const struct kernel_spec *s, uint32_t copies,
                     const void *weights, char *why);
    void (*release)(void *kernel);
    /* One inference of copy `turn` modulo copies on the calling thread; x, y may be NULL. 0 or
     * -EIO with a reason. */
    int (*run)(void *kernel, uint32_t turn, const float *x, float *y, char *why);
};

/* The function that the shared object exports. */
const struct engine_bench_ops *xpusim_engine_bench(void);
