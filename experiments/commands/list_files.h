#pragma once

#include "experiments/shell/document.h"

/* What ships as files. name NULL: all of them, a row each, the measure of each in columns; else
 * every number of one (a shipped name, or a path that ends in .json), with its path in `--set`, its
 * range, its kind and its source. 0 or -EINVAL. */
int list_socs(const char *name, struct document *d, struct err *e);
int list_llms(const char *name, struct document *d, struct err *e);
int list_datasets(const char *name, struct document *d, struct err *e);
