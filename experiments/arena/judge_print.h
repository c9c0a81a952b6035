/* A judgement as a document. */
#pragma once

#include "experiments/arena/judge.h"
#include "experiments/shell/document.h"

/* Adds {suite, split, hash, frozen, points, scored_points, replications, reference}. */
void judge_document_suite(const struct suite *s, const char *split, uint32_t replications,
                          struct document *d);
/* Adds {policy, score, interval: {low, high}, p_better, headroom_left, failed_runs,
 * significant_regressions: [{name, ratio}], cells: {point: {metric: {value, reference, gain,
 * gain_low, gain_high, best, p_worse, p_holm, scored, lost}}}}. Gains are ratios, above 1 better;
 * headroom_left is a share. c may be NULL. */
void judge_document(const struct suite *s, const char *policy, const struct judge_result *r,
                    const struct certificate *c, struct document *d);
