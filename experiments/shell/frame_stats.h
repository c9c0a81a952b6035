/* Statistics as texts of a document. */
#pragma once

#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

/* "5.27 [4.2, 6.3]" */
const char *document_interval(const struct stats_interval *s);
/* "lower by 12 % (significant)" */
const char *document_verdict(const struct stats_paired *p);
