/* The meaning of *significant* in every table that prints the word. The interval of the paired
 * differences excludes zero, and still does after Holm's correction over its family
 * (docs/concepts/comparison.md). */
#pragma once

#include "experiments/shell/document.h"
#include "sim/stats/stats.h"

/* Adjusts p in place, so that the chance of any false positive among all is at most 5 %. The first
 * n_first are the question and one family; the n_others after them are a second. Holm's correction
 * holds in each, and each has half of the 5 %. The others get all of it when every one of the first
 * is shown (fallback procedure, Wiens 2003). NaN stays NaN and does not count. */
void significance_adjust(double *p, size_t n_first, size_t n_others);

/* stats_judge after the correction: what it takes back is not shown. NaN: not corrected. */
enum stats_finding significance_judge(const struct stats_paired *p, double p_adjusted);
/* "lower by 12 % (significant)", "lower by 1.4 % (not significant after Holm's correction)" */
const char *significance_text(const struct stats_paired *p, double p_adjusted);
