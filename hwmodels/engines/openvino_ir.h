/* Models for OpenVINO, written node by node: IR text and one blob of constants.
 *
 * A node is (type, opset, attributes, inputs); port types are inferred. The text and the blob must
 * not change while a model compiled from them exists: models of dynamic shape read their constants
 * at the first inference. */
#pragma once

#include "sim/api/engine.h"
#include "sim/base/base.h"

struct ir_text {
    char *data; /* owned */
    size_t n, cap;
};

struct ir {
    struct ir_text layers, edges;
    uint8_t *blob; /* owned, aligned to 64 */
    size_t n_blob, cap_blob;
    int next_id;
    bool failed;  /* out of memory: the model is unusable */
    bool dynamic; /* an input has a dimension "?" */
};

/* An output of a node. */
struct ir_port {
    int node, port;
};

void ir_init(struct ir *ir);
/* Frees the text, and the blob unless the caller has taken it (set to NULL). */
void ir_fini(struct ir *ir);
/* Completes the text; then layers.data is the whole model. */
void ir_end(struct ir *ir);

/* shape: "64,1024", "?,1024". type: "f32", "f16". */
struct ir_port ir_input(struct ir *ir, const char *type, const char *shape);
void ir_result(struct ir *ir, struct ir_port x);
/* y = x W^T with int8 weights and an f16 scale per output, as exporters write them. */
struct ir_port ir_linear(struct ir *ir, struct ir_port x, enum engine_tensor t, uint32_t layer,
                         uint32_t in, uint32_t out);
/* Like ir_matmul, with given weights w[out][in] (NULL: any): floats of 32 or 16 bits, integers of 8
 * or 4 (two to a byte) times 1/64. */
struct ir_port ir_product(struct ir *ir, struct ir_port x, uint32_t bits, const void *weights,
                          uint32_t in, uint32_t out);
struct ir_port ir_norm(struct ir *ir, struct ir_port x);
/* Rows of heads x dim; cosines and sines of shape [rows, 1, dim]. */
struct ir_port ir_rotate(struct ir *ir, struct ir_port x, struct ir_port cosines,
                         struct ir_port sines, uint32_t heads, uint32_t dim);
struct ir_port ir_add(struct ir *ir, struct ir_port a, struct ir_port b);
/* silu(gate) up */
struct ir_port ir_gated(struct ir *ir, struct ir_port gate, struct ir_port up);
/* q [1, rows, heads, dim] f32, k and v [1, keys, kv_heads, dim] f16, mask [1, 1, rows, keys]. */
struct ir_port ir_attention(struct ir *ir, struct ir_port q, struct ir_port k, struct ir_port v,
                            struct ir_port mask, const struct llm *llm);
