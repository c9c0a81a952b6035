/* Reports a measurement: a kernel fit as a document, and the reliability of the times. */
#pragma once

#include "experiments/shell/document.h"
#include "hwmodels/kernel_fit.h"
#include "hwmodels/pairs.h"

/* Adds parameters with intervals, lack of fit, models compared on held-out shapes, and pairs. */
void measure_document(const struct kernel_fit *fit, struct document *d);
/* Adds slowdowns of victims, the cap, and the numbers that these pairs cannot determine. */
void measure_pairs_document(const struct pairs *p, struct document *d);
/* Reads the rows again, and prints how many times can be trusted, and why the others cannot.
 * Returns the exit status: 1 if fewer than half of the times are trusted, else 0. Prints nothing if
 * the file cannot be read again (a pipe). */
int measure_summary(const char *path, FILE *out, struct err *e);
