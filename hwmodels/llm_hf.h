/* A model's config.json as Hugging Face hosts it, read as one of this project's LLM files.
 *
 * The key `model_type` names the architecture. A model with a picture or sound part is read as its
 * text part (`text_config`). A property that an LLM file cannot represent is refused with its key,
 * never left out silently. Examples are an encoder, and layers that share their KV.
 */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Whether a tree is a config.json, not an LLM file. */
bool llm_hf_is(const cJSON *root);

/* The LLM file, or NULL with errors that name `file` and the key. With weight_bits 4, 8 or 16 it
 * has the format soc_format_of_width. With 0 it has the stored weights (`quantization_config`,
 * `dtype`), and a 16-bit head if the quantisation excludes it. If name is NULL, the model has the
 * name of the file or its folder. */
cJSON *llm_hf_tree(const cJSON *root, const char *file, const char *name, uint32_t weight_bits,
                   struct err *e);

/* Gives a model file another width of weights, 1 to 32 bits: the format soc_format_of_width, 16-bit
 * activations. */
void llm_tree_width(cJSON *to, uint32_t bits);

/* An LLM file of either kind, as a tree (cJSON_Delete); NULL with errors. */
cJSON *llm_read_file(const char *path, struct err *e);
