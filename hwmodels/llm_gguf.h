/* A model's GGUF file, read as one of this project's LLM files. Shapes are those of its tensors, so
 * that most architectures of llama.cpp need no row here. Bytes per weight are the file's own, for
 * experts, the other products and the head apart. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* The LLM file, or NULL with errors that name the file and what an LLM file cannot say. The weights
 * that it says must be those of the tensors, within a hundredth. */
cJSON *llm_gguf_tree(const char *path, const char *name, struct err *e);
