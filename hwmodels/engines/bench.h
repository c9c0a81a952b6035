/* Single kernels of a backend's library, for `xpusim measure`. A shared object of an inference
 * backend may export these in addition to its model kernels (sim/api/engine.h). */
#pragma once

#include "hwmodels/kernel_spec.h"
#include "sim/api/device.h"
#include "sim/api/engine.h" /* ENGINE_MESSAGE_BYTES, the size of every `why` */

#define ENGINE_BENCH_ABI 2

struct engine_bench_device {
    char name[16];        /* name in the library: "CPU", "GPU.0", "NPU" */
    char description[64]; /* hardware */
    enum device_kind kind;
};

/* A property of a device, as texts of the library: "NPU_DRIVER_VERSION", "1688". */
struct engine_fact {
    char name[32], value[96];
};

#define ENGINE_PROBE_STEPS 3

/* The test of a kernel of a model on a device. Numbers are NaN if it failed. */
struct engine_probe {
    char what[32]; /* "FFN, 64 rows" */
    bool ok, cached;
    char by[16];                        /* compiler: "driver", "plug-in"; "": there is only one */
    double compile_s, first_s, again_s; /* compilation; first and second inference */
    double off_frac; /* RMS of the difference from the device CPU's result, over its RMS */
    char why[ENGINE_MESSAGE_BYTES]; /* reason of a failure */
};

struct engine_bench_ops {
    uint32_t abi; /* ENGINE_BENCH_ABI */
    const char *version;
    /* n_threads: for CPU devices. cache: folder of compiled kernels, or NULL. Returns NULL with a
     * reason. */
    void *(*open)(uint32_t n_threads, const char *cache, char *why);
    void (*close)(void *bench);
    /* Fills at most cap. Returns the number of devices. */
    uint32_t (*devices)(void *bench, struct engine_bench_device *out, uint32_t cap);
    /* Fills the device's facts, at most cap. Returns their number. */
    uint32_t (*facts)(void *bench, const char *device, struct engine_fact *out, uint32_t cap);
    /* Tests kernel `step` (< ENGINE_PROBE_STEPS) of a model: an FFN of static rows, one of one row,
     * attention of a prompt. */
    void (*probe)(void *bench, const char *device, const struct llm *llm, uint32_t rows,
                  uint32_t step, struct engine_probe *out);
    /* Compiles `copies` kernels, each with separate weights; weights NULL: any. Weights are for
     * products: with 8 bits w[n][k] times 1/64, with 16 IEEE halves, with 4 two per byte, with 32
     * floats. Attention has inputs instead. *compile_s: of the first copy, or -1 if it was in the
     * cache. Returns NULL with a reason. */
    void *(*prepare)(void *bench, const char *device, const struct kernel_spec *s, uint32_t copies,
                     const void *weights, double *compile_s, char *why);
    void (*release)(void *kernel);
    /* One inference of copy `turn` modulo copies on the calling thread; x, y may be NULL. 0 or
     * -EIO with a reason. */
    int (*run)(void *kernel, uint32_t turn, const float *x, float *y, char *why);
};

/* The function that the shared object exports. */
const struct engine_bench_ops *xpusim_engine_bench(void);
