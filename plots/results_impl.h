/* Inside results: the CSV half (results_csv.c). */
#pragma once

#include <errno.h>

#include "plots/results.h"

int results_add_csv(struct results *r, const char *path, struct err *e);
