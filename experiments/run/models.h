/* The models of a run: `--llm`, given once for each, and the names that requests ask for.
 *
 * The text of options is a list "NAME=MODEL:bits=N,MODEL,...", so that everything that keeps or
 * passes on an --llm has all of them. Without NAME= a model has the name of its file. A single
 * model serves every request, regardless of its name. With several, each request must name one of
 * them.
 */
#pragma once

#include <cjson/cJSON.h>

#include "sim/api/trace.h"
#include "sim/base/base.h"

struct config;
struct config_options;
struct llm;
struct roofline;

struct model_option {
    const char *name;  /* name in requests */
    const char *model; /* shipped name or path */
    const char *text;  /* as given, without the name: "qwen3-4b:bits=4" */
    const char *bits;  /* in `text`; NULL: the file's */
};

/* Parses the list into *out, which the caller frees, also after an error. Duplicates and more than
 * SIM_MAX_MODELS are errors. */
int models_parse(const char *llm, struct model_option **out, uint32_t *n, struct err *e);

/* Reads the models' files into a configuration's tree: the first as `llm`, others under
 * `models.more` by name. Returns the path of the first, for errors; the caller frees it. */
char *models_add_files(cJSON *tree, const char *llm, struct err *e);
/* models_read fills the further models of a configuration from its tree. Then models_price sets
 * their kernel times, on the machine as changed by the default model's runtimes. */
void models_read(struct config *c, struct err *e);
void models_price(struct config *c);
/* A model of the run, and its kernel-time model; 0: the default one. */
const struct llm *models_llm(const struct config *c, uint32_t model);
const struct roofline *models_roofline(const struct config *c, uint32_t model);

/* Memory of the runtime next to weights and KV, with the budgets of kernels (hwmodels/footprint.h):
 * that of the device whose runtime needs most. A pass of static kernels has a chunk of a prompt. t
 * may be NULL. */
double models_runtime_bytes(const struct config *c, const struct trace *t);

/* Binds the models that rows name to those of the options. Returns 0, or -EINVAL with an error that
 * locates a name without --llm. */
int models_bind(const struct config_options *o, struct trace *t, struct err *e);
/* Prints on stderr, once per process, that rows name models although the run has one, or which of
 * several models no row names. A command that replicates has other rows in other replications. */
void models_note(const struct config_options *o, const struct trace *t);
/* Returns 0 if the options have one model, else -EINVAL with an error that `what` takes one. */
int models_refuse_several(const struct config_options *o, const char *what, struct err *e);
