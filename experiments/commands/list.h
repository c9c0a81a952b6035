/* Kinds of `xpusim list` that have separate source files. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/shell/document.h"

/* Lists shipped files. With name NULL it adds a row per file, with its main numbers in columns.
 * With a name (as for `--soc` and `--llm`) it adds every number, with its path in `--set`, its
 * range, its kind and its source. 0 or -EINVAL. */
int list_socs(const char *name, struct document *d, struct err *e);
int list_llms(const char *name, struct document *d, struct err *e);
/* Weights, bytes and KV of a model, in a line. The caller frees it. */
char *list_llm_text(const struct llm *m);
int list_datasets(const char *name, struct document *d, struct err *e);
int list_workloads(const char *name, struct document *d, struct err *e);

/* Adds time, DDR demand and intensity of each op on each device, for a prefill of 256 tokens and a
 * decode step at a context of 1024. 0 or -EINVAL. */
int list_kernels(const struct config_options *o, struct document *d, struct err *e);
