/* The cost of static chunk sizes, and the choice of one (agent-xpu-v1 5.1, 5.2; v2 4.2). */
#pragma once

#include "hwmodels/roofline.h"

#define CHUNKS_PROMPT 1024u /* length of the sample prompt */
/* Share of the best throughput above which larger chunks do not pay. */
#define CHUNKS_KNEE_FRAC 0.95

struct chunk {
    double tokens_per_s;
    /* Waiting time of an arriving reactive request, with preemption at kernels, layers or requests.
     */
    double kernel_s, layer_s, request_s;
    double activation_bytes;
};

/* The cost of a prefill of CHUNKS_PROMPT tokens on a device in chunks of `rows`. */
struct chunk chunks_price(const struct roofline *r, uint8_t device, uint32_t rows);

/* The first device with static shapes, or -1. */
int chunks_device(const struct roofline *r);

/* The smallest power of two, >= 32 rows, that reaches CHUNKS_KNEE_FRAC of the best throughput on
 * chunks_device; 0 if there is no such device. */
uint32_t chunks_knee(const struct roofline *r);
