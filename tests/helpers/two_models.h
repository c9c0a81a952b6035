/* Scenarios with two models: the scenario's own, and another with costs of its own. */
#pragma once

#include "tests/helpers/scenario.h"

struct two_models {
    struct scenario other; /* its llm and its costs are the second model's */
    struct sim_model more;
};

/* Gives an initialised scenario the second model, equal to the first one so far. */
void two_models_init(struct scenario *sc, struct two_models *two);
/* Runs it with a model (0 or 1) for each request, or 2 where the test has added a third. Sessions
 * have one. group: whose shared text the prompt's prefix_tokens are, by request; NULL: nobody's.
 * kernels: record every one. Returns result.status. two_models_fini is needed. */
int two_models_run(struct scenario *sc, const struct scenario_request *q, const uint8_t *model,
                   const uint32_t *group, uint32_t n, bool kernels);
void two_models_fini(struct scenario *sc);
