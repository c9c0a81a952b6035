#include "experiments/commands/commands.h"
#include "experiments/commands/compare_asked.h"
#include "experiments/run/runner.h"

bool compare_selects(const struct compare_options *o)
{
    return o->select.confidence_frac > 0.0 && o->tune.budget == 0;
}

static const char *selected_by(const struct compare_options *o)
{
    return o->metrics.n > 0 ? o->metrics.v[0] : TUNE_DEFAULT_METRIC;
}

int compare_select(const struct compare_options *o, struct compare_plan *plan,
                   struct select_result *r, struct err *e)
{
    const char *metric = selected_by(o);
    if (runner_check_metric(plan->config, "metric", metric, e) != 0) {
        return -EINVAL;
    }
    struct compare_plan alone = *plan;
    alone.experiment = 0; /* different numbers of replications make no experiment */
    select_run(&alone, &o->select, metric, r);
    if (r->best < r->k && isnan(r->delta)) {
        return err_add(e, "--metric %s: no run has it", metric);
    }
    plan->replications = 0;
    for (uint32_t i = 0; i < r->k; i++) {
        plan->replications = r->of[i].n > plan->replications ? r->of[i].n : plan->replications;
    }
    return 0;
}

int compare_put_selection(const struct compare_options *o, const struct compare_plan *plan,
                          const struct select_result *r, struct document *d)
{
    select_document(&o->select, selected_by(o), plan->policies, r, document_within(d, "selection"));
    return r->decided ? EXIT_OK : EXIT_CHECK_FAILED;
}
