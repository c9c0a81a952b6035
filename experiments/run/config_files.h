/* SoC and LLM files on their way into the tree of a configuration. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/base.h"

/* -EINVAL with an error where a file is not there that --OPTION names by `what`, a shipped name of
 * `list KEY`: it says which is near. The reader of a path that ends in .json says so itself. */
int config_file_known(const char *option, const char *key, const char *what, const char *file,
                      struct err *e);
/* Puts the tree of a file, as `read` reads it, under `key`. An error says that `what` is no shipped
 * name, and which is near. */
void config_add_file(cJSON *tree, const char *key, const char *what, const char *file,
                     cJSON *(*read)(const char *path, struct err *e), struct err *e);
/* Another width of the weights, a text; `what` is the option in errors. The model is called so from
 * then on: "NAME:bits=N". llm NULL: only the text is checked. */
void config_set_width(cJSON *llm, const char *what, const char *width, struct err *e);
/* Bytes of weights and KV as the machine's entries for the models' widths state them, for all
 * models of a configuration. Two devices that state different ones are an error: a run has one
 * copy. */
void config_store_models(cJSON *tree, struct err *e);
