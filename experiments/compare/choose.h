/* Selects the metrics and counters that a comparison shows, by names and patterns. */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/shell/options.h"
#include "sim/base/base.h"

/* Called before any run. Adds an error for every pattern that matches no metric of the machine and
 * no counter. A policy's own counters (counters.policy.NAME) are known only after a run. */
int choose_check(const struct config *c, const struct option_texts *asked, struct err *e);

/* Matching names of a result, each once, in the order asked; names of a pattern have the result's
 * order. Without names or patterns: the default metrics. 0, or -EINVAL with an error when one
 * matches nothing or more than CHOOSE_MAX match. The caller calls texts_fini in both cases. */
#define CHOOSE_MAX 64
int choose_metrics(const struct compare_result *r, const struct option_texts *asked,
                   struct texts *out, struct err *e);

/* Ablations: variants of a policy that each lack one of its mechanisms. */
struct option_texts;

/* Appends `spec` to `list`, and after it one variant for each mechanism that the policy declares
 * (policy_ops.ablations). It skips a mechanism whose first key `spec` sets, because the user has
 * decided on it. Texts live until the process ends. Returns 0, or -EINVAL with an error if `spec`
 * is no policy, declares no mechanism, or sets all of them. */
int ablate_variants(struct option_texts *list, const char *spec, struct err *e);
