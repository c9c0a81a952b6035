/* Long-run means of drafts, from closed forms of the process in hwmodels/speculation.h. Tests
 * compare the simulation of that process with them. */
#pragma once

#include "hwmodels/speculation.h"

double drafts_length_frac(const struct speculation_model *m, uint32_t length); /* P(length) */
double drafts_stationary_hit_frac(const struct speculation_model *m, double history);
/* Mean tokens accepted a step. The first drafts and verifies `draft_tokens` at each step, while
 * reuse follows the model's own lengths. The second verifies the model's own drafts whole. */
double drafts_mean_accepted_of(const struct speculation_model *m, double history,
                               uint32_t draft_tokens);
double drafts_mean_accepted(const struct speculation_model *m, double history);
