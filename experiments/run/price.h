/* The isolated time of one whole pass on a device: kernels of all layers and the LM head, divided
 * as in the simulator, and host costs of one launch and of sampling. So validation and calibration
 * use the costs of runs. */
#pragma once

#include "hwmodels/roofline.h"

struct price {
    double seconds;
    double op_s[OP_KIND_COUNT]; /* the part of each kind of op */
    double bytes;
    bool outside; /* a kernel is outside the calibrated range */
};

/* Shapes of passes for a model, whose window decides what is far (work_shape). This one: `batch`
 * prompts of `tokens` each, without cached KV. */
struct work_shape price_prefill_shape(const struct llm *m, uint32_t tokens, uint32_t batch);
/* One decode token of each of `batch` sequences, after `context` tokens. */
struct work_shape price_decode_shape(const struct llm *m, uint32_t context, uint32_t batch);

/* One verification: `tokens` rows (the drafts and one more) after `context` tokens. */
struct work_shape price_verify_shape(const struct llm *m, uint32_t context, uint32_t tokens);

/* One op of one layer of a pass, as kernels of the device's static shapes. */
struct price_op {
    double seconds, bytes;
    double flop;         /* of the useful rows and keys */
    double padding_flop; /* additional flop due to static shapes */
    double longest_s;    /* longest of its kernels */
    uint32_t kernels;
    bool outside;
};
struct price_op price_op(const struct roofline *r, uint8_t device, enum op_kind op,
                         const struct work_shape *w);

struct price price_pass(const struct roofline *r, uint8_t device, const struct work_shape *w);
