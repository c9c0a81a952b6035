/* Inside results: the CSV half (results_csv.c). */
#ifndef PLOTS_RESULTS_IMPL_H
#define PLOTS_RESULTS_IMPL_H

#include <errno.h>

#include "plots/results.h"

int results_add_csv(struct results *r, const char *path, struct err *e);

#endif
