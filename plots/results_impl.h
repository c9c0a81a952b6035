/* Inside results: the CSV half (results_csv.c). */
#ifndef PLOTS_RESULTS_IMPL_H
#define PLOTS_RESULTS_IMPL_H

#include <errno.h>

#include "plots/results.h"

/* The first character that is not blank is a brace. */
bool results_looks_like_json(const char *path);
int results_add_csv(struct results *r, const char *path, struct err *e);

#endif
