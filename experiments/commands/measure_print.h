/* A kernel fit for people and for programs. */
#ifndef EXPERIMENTS_COMMANDS_MEASURE_PRINT_H
#define EXPERIMENTS_COMMANDS_MEASURE_PRINT_H

#include <stdio.h>

#include "hwmodels/kernel_fit.h"

/* Parameters with intervals, lack of fit, forms side by side on held-out shapes, pairs. */
void measure_print_text(const struct kernel_fit *fit, FILE *out);
void measure_print_json(const struct kernel_fit *fit, FILE *out);

#endif
