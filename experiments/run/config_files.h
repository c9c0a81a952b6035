/* Reads SoC and LLM files into the tree of a configuration. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* Checks that the file of --OPTION exists. If `what` is no shipped name of `list KEY`, returns
 * -EINVAL with an error that names a similar one. A missing path that ends in .json is reported by
 * its reader. */
int config_file_known(const char *option, const char *key, const char *what, const char *file,
                      struct err *e);
/* Reads a file by `read` and adds its tree under `key`. If `what` is no shipped name, the error
 * names a similar one. */
void config_add_file(cJSON *tree, const char *key, const char *what, const char *file,
                     cJSON *(*read)(const char *path, struct err *e), struct err *e);
/* Sets the width of the weights, a text. `what` is the option, for errors. The model's name becomes
 * "NAME:bits=N". llm NULL: only checks the text. */
void config_set_width(cJSON *llm, const char *what, const char *width, struct err *e);
/* Sets bytes of weights and KV of all models from the machine's entries for their widths. Different
 * values of two devices are an error, because a run has one copy. */
void config_store_models(cJSON *tree, struct err *e);
