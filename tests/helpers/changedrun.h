/* Runs of a shipped machine with something changed. */
#pragma once

#include "experiments/run/runner.h"
#include "tests/helpers/suite.h"

/* Runs the policy on the default machine and mix for a minute, from seed 1, after `change`. Asserts
 * that the run ended well and adds up. The caller ends r with runner_result_fini. */
void changed_run(const char *policy, void (*change)(struct config *c, const void *with),
                 const void *with, struct runner_result *r);
/* The value of a metric that there must be. */
double changed_metric(const struct runner_result *r, const char *name);
/* Asserts that b has every metric of a, with the same bits, but for one (NULL: none). */
void changed_same(const struct runner_result *a, const struct runner_result *b, const char *but);
