/* The best of several candidates on a suite, with as few runs as that takes (compare/select.h). */
#pragma once

#include "experiments/arena/judge.h"
#include "experiments/compare/select.h"

/* A value is the mean clipped gain over the reference in one replication of the suite, and the
 * indifference is ln(1 + percent / 100). So a run of the result is one replication of all points.
 * A candidate that fails or leaves requests is out. select_fini frees. */
void choose_best(const struct suite *s, const struct config_policy *candidates, uint32_t n,
                 const struct config_policy *reference, const struct select_asked *asked,
                 const struct study_how *how, struct select_result *out);
