/* A model's config.json as Hugging Face hosts it, read as one of this project's LLM files.
 *
 * Architectures are told by `model_type`; of a model with a picture or sound part the text part is
 * read (`text_config`). What the form of an LLM file cannot say (latent attention, shared experts,
 * layers that differ) is refused with the key that says it, never left out silently. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/err.h"

/* Whether a tree is such a file, and not one of this project's. */
bool llm_hf_is(const cJSON *root);

/* The LLM file, or NULL with errors that name `file` and the key. weight_bits 0: as the weights are
 * stored (`quantization_config`, `dtype`), with a 16-bit head where that leaves it; else 4, 8 or
 * 16, in the format soc_format_of_width. The name is `name`, or when that is NULL what the file or
 * its folder is called. */
cJSON *llm_hf_tree(const cJSON *root, const char *file, const char *name, uint32_t weight_bits,
                   struct err *e);

/* Gives a model file another width of weights, 1 to 32 bits: the format soc_format_of_width, 16-bit
 * activations. */
void llm_tree_width(cJSON *to, uint32_t bits);

/* An LLM file of either kind, as a tree (cJSON_Delete); NULL with errors. */
cJSON *llm_read_file(const char *path, struct err *e);
