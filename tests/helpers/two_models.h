/* Scenarios with two models: the scenario's own, and another with costs of its own. */
#pragma once

#include "tests/helpers/script.h"

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

/* The pair that tests compute by hand. The first model has one layer and takes 4 ms for the
 * attention of a pass, on any device; the second has three layers of 2 ms. Other kernels take 1 ns
 * each: a prompt's pass is 4 ms + 3 ns (QKV, FFN, head), or 6 ms + 7 ns (three QKV and FFN, and the
 * head). A decode pass has fused layers of 4 ms or 2 ms: 4 ms + 1 ns, or 6 ms + 1 ns. */
void two_models_by_hand(struct scenario *sc, struct two_models *two);
/* Runs it under a script, whose run must be clean. SHOW in the environment prints it. */
void two_models_script(struct scenario *sc, struct script *x, const struct scenario_request *q,
                       const uint8_t *model, const uint32_t *group, uint32_t n,
                       void (*step)(struct sched *s, struct script *x));
