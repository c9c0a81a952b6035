/* Which metrics a comparison shows: names and patterns, of counters too. */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/shell/options.h"
#include "sim/base/base.h"

/* Before any run: an error for every pattern that no metric of the machine and no counter matches.
 * counters.policy.NAME are a policy's own, and known only when it ran. */
int choose_check(const struct config *c, const struct option_texts *asked, struct err *e);

/* Matching names of a result, each once, in the order asked; names of a pattern have the result's
 * order. Nothing asked: the usual ones. 0, or -EINVAL with an error when one matches nothing or
 * more than CHOOSE_MAX match. The caller calls texts_fini in both cases. */
#define CHOOSE_MAX 64
int choose_metrics(const struct compare_result *r, const struct option_texts *asked,
                   struct texts *out, struct err *e);

/* The variants of a policy that lack one of its mechanisms each. */
struct option_texts;

/* Appends `spec` to `list`, and after it one variant for each mechanism that the policy declares
 * (policy_ops.ablations). A mechanism whose first key `spec` sets already is left out, since the
 * user has decided about it. The texts live as long as the process. Returns 0; -EINVAL, with an
 * error, where `spec` is no policy, declares no mechanism, or sets all of them. */
int ablate_variants(struct option_texts *list, const char *spec, struct err *e);
