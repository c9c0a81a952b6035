/* What drafts come to in the long run, by closed forms of hwmodels/speculation.h's process: what
 * its simulation must agree with. */
#pragma once

#include "hwmodels/speculation.h"

double drafts_length_frac(const struct speculation_model *m, uint32_t length); /* P(length) */
double drafts_stationary_hit_frac(const struct speculation_model *m, double history);
/* Mean accepted when `draft_tokens` are drafted and verified at each step (reuse follows the
 * model's own lengths), and when the model's own drafts are verified whole. */
double drafts_mean_accepted_of(const struct speculation_model *m, double history,
                               uint32_t draft_tokens);
double drafts_mean_accepted(const struct speculation_model *m, double history);
