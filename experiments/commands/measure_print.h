/* A measurement for people: a kernel fit as a document, and how far the times can be trusted. */
#pragma once

#include "experiments/shell/document.h"
#include "hwmodels/kernel_fit.h"
#include "hwmodels/pairs.h"

/* Parameters with intervals, lack of fit, forms side by side on held-out shapes, pairs. */
void measure_document(const struct kernel_fit *fit, struct document *d);
/* Slowdowns of victims, the cap, and what these pairs cannot show. */
void measure_pairs_document(const struct pairs *p, struct document *d);
/* Reads the rows again, and prints how many times can be trusted, and why the others cannot. The
 * exit status: 0, or 1 when fewer than half of the times are trusted. It prints nothing of a file
 * that cannot be read again (a pipe). */
int measure_summary(const char *path, FILE *out, struct err *e);
