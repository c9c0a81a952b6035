/* The head of a GGUF file, as llama.cpp writes it: keys with values, and a list of tensors.
 * Format: gguf.md of ggml-org/ggml. Weights are not read. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

#define GGUF_MAX_DIMS 4
#define GGUF_NAME_BYTES 80 /* llama.cpp has at most 64 */

struct gguf_tensor {
    char name[GGUF_NAME_BYTES];
    uint64_t dim[GGUF_MAX_DIMS]; /* 1 beyond the last one; dim[0]: inputs of a product */
    double weights, bytes;
    uint32_t bits; /* nominal width of a weight */
};

struct gguf {
    cJSON *keys; /* numbers, truth values, texts, and lists of numbers or truth values */
    struct gguf_tensor *tensors;
    size_t n;
};

/* Reads a file, and all parts of a model that is split ("-00001-of-00003.gguf"). 0, or -EINVAL with
 * errors. gguf_fini is needed in both cases. */
int gguf_read(const char *path, struct gguf *out, struct err *e);
void gguf_fini(struct gguf *g);
/* Whether a file begins as GGUF. False if it cannot be opened. */
bool gguf_is(const char *path);
