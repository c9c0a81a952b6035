#include "experiments/arena/judge.h"

struct choosing {
    const struct suite *s;
    const struct config_policy *candidates, *reference;
    uint32_t n;
    const struct study_how *how;
};

static void measure(void *ctx, const bool *left, uint32_t from, uint32_t to, double *const *values)
{
    const struct choosing *c = ctx;
    SCOPED(judge_runs_fini) struct judge_runs reference;
    judge_run_from(c->s, c->reference, from, to - from, c->how, &reference);
    for (uint32_t i = 0; i < c->n; i++) {
        if (left[i]) {
            SCOPED(judge_runs_fini) struct judge_runs runs;
            judge_run_from(c->s, &c->candidates[i], from, to - from, c->how, &runs);
            judge_gains(c->s, &runs, &reference, &values[i][from]);
        }
    }
}

void choose_best(const struct suite *s, const struct config_policy *candidates, uint32_t n,
                 const struct config_policy *reference, const struct select_asked *asked,
                 const struct study_how *how, struct select_result *out)
{
    struct choosing c = {s, candidates, reference, n, how};
    struct select_options o = {.confidence_frac = asked->confidence_frac,
                               .delta = log1p(asked->indifference_percent / 100.0),
                               .first = SELECT_FIRST_MIN,
                               .most = asked->most,
                               .gain = true};
    select_by(&o, n, measure, &c, out);
}
