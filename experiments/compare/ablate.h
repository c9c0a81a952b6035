/* The variants of a policy that lack one of its mechanisms each. */
#pragma once

#include "sim/base/base.h"

struct option_texts;

/* Appends `spec` to `list`, and after it one variant for each mechanism that the policy declares
 * (policy_ops.ablations). A mechanism whose first key `spec` sets already is left out, since the
 * user has decided about it. The texts live as long as the process. Returns 0; -EINVAL, with an
 * error, where `spec` is no policy, declares no mechanism, or sets all of them. */
int ablate_variants(struct option_texts *list, const char *spec, struct err *e);
