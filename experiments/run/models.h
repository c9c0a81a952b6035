/* The models of a run: `--llm`, given once for each, and the names that requests ask for.
 *
 * The text of options is a list "NAME=MODEL:bits=N,MODEL,...", so that everything that keeps or
 * passes on an --llm has all of them. A model without NAME= is called as its file. With one model
 * every request uses it, and names mean nothing. With several, each name must be one of theirs. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/api/trace.h"
#include "sim/base/base.h"

struct config;
struct config_options;

struct model_option {
    const char *name;  /* that requests use */
    const char *model; /* shipped name or path */
    const char *text;  /* as given, without the name: "qwen3-4b:bits=4" */
    const char *bits;  /* in `text`; NULL: the file's */
};

/* The list's models into *out, which the caller frees, also after an error. An error names a model
 * that is there twice, or more than SIM_MAX_MODELS. */
int models_parse(const char *llm, struct model_option **out, uint32_t *n, struct err *e);

/* Reads the models' files into a configuration's tree: the first as `llm`, others under
 * `models.more` by their names. Returns the path of the first, for errors,
 * which the caller frees. */
char *models_add_files(cJSON *tree, const char *llm, struct err *e);
/* Fills the further models of a configuration from its tree, and then their kernel times on the
 * machine as the default model's runtimes make it. */
void models_read(struct config *c, struct err *e);
void models_price(struct config *c);
/* Returns the price of kernels of a model of the run; 0: the default one. */
const struct hwmodel *models_truth(const struct config *c, uint32_t model);

/* Memory of the runtime next to weights and KV, with the budgets of kernels (hwmodels/footprint.h):
 * of the device whose runtime needs most, among those that count. A pass of static kernels holds a
 * chunk of a prompt. t may be NULL. */
double models_runtime_bytes(const struct config *c, const struct trace *t);

/* Binds the models that rows name to those of the options. 0 or -EINVAL with an error that says
 * where a name is that no --llm has. */
int models_bind(const struct config_options *o, struct trace *t, struct err *e);
/* Says on stderr, once a process, that rows name models and the run has one, or which of several
 * models no row names. */
void models_note(const struct config_options *o, const struct trace *t);
/* An error that `what` takes one model, unless the options have one. 0 or -EINVAL. */
int models_refuse_several(const struct config_options *o, const char *what, struct err *e);
