/* Strategies that live in files of their own; graphs.c puts them into the table. */
#pragma once

#include "hwmodels/graphs.h"

void graphs_progressive_solve(const struct graphs_instance *g, struct graphs_result *out);
void graphs_late_start_solve(const struct graphs_instance *g, struct graphs_result *out);
void graphs_farthest_solve(const struct graphs_instance *g, struct graphs_result *out);
void graphs_exact_solve(const struct graphs_instance *g, struct graphs_result *out);
