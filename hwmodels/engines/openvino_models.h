/* Compiled models of the OpenVINO engine: one per (layer, op, shape), each with its own weights. */
#pragma once

#include <pthread.h>

#include "hwmodels/engines/bench.h"
#include "hwmodels/engines/openvino_device.h"
#include "sim/api/engine.h"
#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

#define MAX_VARIANTS 2 /* of a token-level kernel: chunk, one row */

/* Attention of one prompt length. */
struct attention {
    struct attention *next;
    struct compiled c;
};

/* A graph block: its kernels of one static shape, QKV and FFN by layer. */
struct graph_block {
    struct graph_block *next;
    struct engine_resident of;
    struct compiled *qkv, *ffn; /* owned arrays of of.n_layers */
    struct compiled head;
};

struct engine {
    const struct llm *llm;
    const struct engine_kv *kv;
    struct openvino openvino;
    char scratch[256];
    uint32_t q_dim, kv_dim;
};

struct odevice {
    struct engine *engine;
    char name[32];
    uint32_t n_variants;
    struct compiled *qkv, *ffn; /* layer x variant */
    struct compiled head[MAX_VARIANTS];
    struct compiled mha; /* any shape; none if the device needs static shapes */
    pthread_mutex_t mutex;
    struct attention *attention; /* these three are protected by the mutex */
    struct graph_block *graphs;
    ov_infer_request_t *running;
    char folder[300];  /* with prepared graph blocks; "": none */
    uint32_t versions; /* of graphs in it */
    float *scratch;
    size_t n_scratch;
};

/* rows 0: any number. 0, or -errno with a reason. */
int compile_qkv(const struct odevice *v, uint32_t layer, uint32_t rows, struct compiled *out,
                char *why);
int compile_ffn(const struct odevice *v, uint32_t layer, uint32_t rows, struct compiled *out,
                char *why);
int compile_head(const struct odevice *v, uint32_t rows, struct compiled *out, char *why);
/* tokens: number of rows and keys; 0: any. */
int compile_mha(const struct odevice *v, uint32_t tokens, struct compiled *out, char *why);

/* openvino_probe.c: engine_bench_ops.probe. */
void openvino_probe(struct openvino *o, const char *device, const struct llm *llm, uint32_t rows,
                    uint32_t step, struct engine_probe *out);

/* openvino_kernels.c */
int openvino_kernel(void *device, const struct engine_kernel *k, char *why);
void openvino_interrupt(void *device);

/* openvino_residents.c: compiled attention and graph blocks, loaded and dropped during a run. */
int openvino_resident(void *device, const struct engine_resident *r, enum engine_step step,
                      char *why);
/* Attention for this length, or NULL. */
const struct compiled *attention_find(struct odevice *v, uint32_t tokens);
const struct compiled *graph_find(struct odevice *v, const struct engine_kernel *k);
void residents_close(struct odevice *v);

#endif
