/* Compiled models of the OpenVINO engine: one per (layer, op, shape), each with its own weights. */
#pragma once

#include <pthread.h>

#include "hwmodels/engines/openvino_ir.h"
#include "sim/api/engine.h"
#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */
#include <openvino/c/openvino.h>

#define MAX_VARIANTS 2 /* of a token-level kernel: the chunk, one row */

struct compiled {
    ov_compiled_model_t *model;
    ov_infer_request_t *request;
    uint8_t *blob; /* its constants: must stay */
    uint32_t rows; /* static rows, 0: any */
};

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
    ov_core_t *core;
    char scratch[256];
    uint32_t q_dim, kv_dim;
};

struct odevice {
    struct engine *engine;
    char name[32];
    uint32_t n_variants;
    struct compiled *qkv, *ffn; /* layer x variant */
    struct compiled head[MAX_VARIANTS];
    struct compiled mha; /* any shape; no model where the device takes static ones only */
    pthread_mutex_t mutex;
    struct attention *attention; /* these three under the mutex */
    struct graph_block *graphs;
    ov_infer_request_t *running;
    char folder[300];  /* of prepared graph blocks; "": none is */
    uint32_t versions; /* of graphs there */
    float *scratch;
    size_t n_scratch;
};

/* Writes OpenVINO's message after `what`. Returns -EIO. */
int openvino_failure(char *why, const char *what);
const char *openvino_version(void);
/* Compiles a model, which is ended and freed; its constants go to *out. 0, or -errno with a reason
 * and nothing to free. */
int openvino_compile(ov_core_t *core, const char *device, struct ir *ir, struct compiled *out,
                     char *why);
/* Sets an input by pointer. False where it is refused. */
bool openvino_input(const struct compiled *c, size_t index, ov_element_type_e type,
                    const void *data, int64_t rank, const int64_t *dims);

/* rows 0: any number. 0, or -errno with a reason. */
int compile_qkv(const struct odevice *v, uint32_t layer, uint32_t rows, struct compiled *out,
                char *why);
int compile_ffn(const struct odevice *v, uint32_t layer, uint32_t rows, struct compiled *out,
                char *why);
int compile_head(const struct odevice *v, uint32_t rows, struct compiled *out, char *why);
/* tokens 0: any number of rows and keys; else both are that many. */
int compile_mha(const struct odevice *v, uint32_t tokens, struct compiled *out, char *why);
void compiled_free(struct compiled *c);

/* openvino_kernels.c */
int openvino_kernel(void *device, const struct engine_kernel *k, char *why);
void openvino_interrupt(void *device);

/* openvino_residents.c: compiled attention and graph blocks, which come and go during a run. */
int openvino_resident(void *device, const struct engine_resident *r, enum engine_step step,
                      char *why);
/* NULL: there is none. */
const struct compiled *attention_find(struct odevice *v, uint32_t tokens);
const struct compiled *graph_find(struct odevice *v, const struct engine_kernel *k);
void residents_close(struct odevice *v);

#endif
