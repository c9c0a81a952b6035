/* A kernel fit as a document. */
#pragma once

#include "experiments/shell/document.h"
#include "hwmodels/kernel_fit.h"

/* Parameters with intervals, lack of fit, forms side by side on held-out shapes, pairs. */
void measure_document(const struct kernel_fit *fit, struct document *d);
