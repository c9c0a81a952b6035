/* Artefacts that help the next try, in words: why a candidate lost where it lost most. */
#pragma once

#include "experiments/arena/judge.h"
#include "experiments/shell/document.h"

struct words_of {
    const struct suite *suite; /* borrowed, as all of these */
    const struct config_policy *policy, *reference;
    const struct judge_runs *runs, *reference_runs;
    const struct judge_result *result;
    struct study_how how;
    uint32_t falsify; /* scenarios to try; 0: no search */
};

/* Adds "artefacts": {failure, refused, worst_request, first_difference, worst_scenario}, each a
 * text or null. The sealed split gives none, or it would not be sealed. Costs four runs, and the
 * scenarios. */
void words_document(const struct words_of *w, struct document *d);
