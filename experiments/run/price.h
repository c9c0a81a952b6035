/* The isolated time of one whole pass on a device: the kernels of every layer and the LM head, cut
 * as the simulator cuts them, with the host costs of one launch and of sampling. So validation and
 * calibration compare the costs that runs use. */
#pragma once

#include "hwmodels/roofline.h"

struct price {
    double seconds;
    double op_s[OP_KIND_COUNT]; /* of which in each kind of kernel */
    double bytes;
    bool outside; /* some kernel lies outside the validity envelope */
};

/* Shapes for a model, whose window decides what is far (work_shape).
 * `batch` prompts of `tokens` each, from an empty cache. */
struct work_shape price_prefill_shape(const struct llm *m, uint32_t tokens, uint32_t batch);
/* One token of `batch` sequences that each hold `context` tokens before it. */
struct work_shape price_decode_shape(const struct llm *m, uint32_t context, uint32_t batch);

/* One verification: `tokens` rows (the drafts and one more) of a sequence with `context` before. */
struct work_shape price_verify_shape(const struct llm *m, uint32_t context, uint32_t tokens);

/* One layer's op of a pass, in the kernels that its device's static shapes make of it. */
struct price_op {
    double seconds, bytes;
    double flop;         /* of the rows and keys that were asked for */
    double padding_flop; /* computed beyond them, because shapes are static */
    double longest_s;    /* of its kernels */
    uint32_t kernels;
    bool outside;
};
struct price_op price_op(const struct roofline *r, uint8_t device, enum op_kind op,
                         const struct work_shape *w);

struct price price_pass(const struct roofline *r, uint8_t device, const struct work_shape *w);
