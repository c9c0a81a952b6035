/* Internals of the ggml engine: the model, and memory for a device's graphs. */
#pragma once

#if __has_include(<ggml.h>) /* without its headers, as a linter may see it, this file is empty */
#include <ggml-cpu.h>
#include <ggml.h>

#include "sim/api/engine.h"

#define GGML_ENGINE_ALIGN 64

struct layer {
    void *weights[ENGINE_HEAD]; /* by tensor, quantised */
};

struct model {
    const struct llm *llm;
    const struct engine_kv *kv;
    enum ggml_type type;
    struct layer *layers;
    void *head;
    uint32_t q_dim, kv_dim;
};

/* Memory of one device's graphs, grown when a kernel needs more. */
struct buffer {
    char *data;
    size_t size, used;
};

struct gdevice {
    struct model *model;
    struct buffer objects, tensors, work;
    struct ggml_threadpool *threads;
    struct ggml_context *ctx; /* of the kernel in progress */
    struct ggml_cgraph *graph;
};

/* engine_ops.kernel (ggml_kernels.c). */
int ggml_engine_kernel(void *device, const struct engine_kernel *k, char *why);

#endif
