/* A model's GGUF file, read as one of this project's LLM files. Shapes come from its tensors, so
 * that most architectures of llama.cpp need no row here. Bytes per weight come from the file,
 * separately for experts, other products and the head. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Returns the LLM file, or NULL with errors that name the file and the property that an LLM file
 * cannot represent. Its number of weights must be that of the tensors within 1 %. */
cJSON *llm_gguf_tree(const char *path, const char *name, struct err *e);
