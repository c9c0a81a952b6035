/* Static chunk rows: what a chunk size costs, and the size to choose (agent-xpu-v1 5.1, 5.2; v2
 * 4.2). */
#pragma once

#include "hwmodels/roofline.h"

#define CHUNKS_PROMPT 1024u   /* tokens of the prompt that is priced */
#define CHUNKS_KNEE_FRAC 0.95 /* of the best throughput: where larger chunks stop to pay */

struct chunk {
    double tokens_per_s;
    /* Waiting time of a reactive request that arrives, with preemption at kernels, layers,
     * requests. */
    double kernel_s, layer_s, request_s;
    double activation_bytes;
};

/* A prefill of CHUNKS_PROMPT tokens on a device in chunks of `rows`. */
struct chunk chunks_price(const struct roofline *r, uint8_t device, uint32_t rows);

/* The first device with static shapes, or -1. */
int chunks_device(const struct roofline *r);

/* The smallest power of two from 32 rows on within CHUNKS_KNEE_FRAC of the best throughput on that
 * device; 0 when the machine has none. */
uint32_t chunks_knee(const struct roofline *r);
