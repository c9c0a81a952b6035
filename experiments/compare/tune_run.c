/* Training and test of tuned policies; tune.c has the space. */
#include "experiments/compare/tune.h"
#include "experiments/run/runner.h"
#include "policies/params.h"
#include "sim/base/rng.h"
#include "sim/metrics/metric_table.h"

int tune_check(const struct compare_plan *plan, const struct tune_options *o, struct err *e)
{
    if (plan->options->trace != NULL) {
        (void)err_add(e, "--tune: a trace file has one workload, and tuning on what is tested "
                         "proves nothing; use --workload");
    }
    if (plan->config->sim.horizon_s > 0.0) {
        (void)err_add(e, "--tune: with sim.horizon_s requests stay unfinished, and the fastest "
                         "configuration is the one that drops most");
    }
    (void)runner_check_metric(plan->config, "tune-metric", o->metric, e);
    return e->n > 0 ? -EINVAL : 0;
}

/* A seed whose replications differ from the test's. */
static uint64_t training_seed(const struct compare_plan *plan, uint32_t replications)
{
    for (uint64_t attempt = 1;; attempt++) {
        uint64_t seed = rng_seed(rng_key(plan->options->seed, RNG_TUNE, 0, attempt));
        bool apart = true;
        for (uint32_t i = 0; i < replications; i++) {
            for (uint32_t k = 0; k < plan->replications; k++) {
                apart = apart &&
                        config_seed(seed, i) != config_seed(plan->options->seed, plan->first + k);
            }
        }
        if (apart) {
            return seed;
        }
    }
}

/* ---- configurations that can start ---- */

/* A draw of a policy's space. */
static struct config_policy drawn(const struct config_policy *given, const struct policy_params *at)
{
    struct config_policy p = *given;
    p.params = *at;
    p.params_text = policy_params_format(p.ops, &p.params);
    return p;
}

/* The draws of a policy, first the policy as given. Kept draws are moved to the front. */
struct probe {
    struct policy_params *draws; /* owned */
    uint32_t n, n_tried, n_kept;
};

/* Tries as many draws of every policy as it still lacks. False: none are left or lacking. A draw
 * can start if it serves the first request of the training workload. */
static bool try_draws(const struct tune *t, struct probe *probes)
{
    uint32_t most = t->n_policies * t->options.budget;
    OWNED struct study_cell *cells = xcalloc(most + 1, sizeof *cells);
    OWNED struct config_policy *tried = xcalloc(most + 1, sizeof *tried);
    OWNED struct probe **of = xcalloc(most + 1, sizeof(struct probe *));
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        struct probe *b = &probes[i];
        for (uint32_t k = b->n_kept; k < t->options.budget && b->n_tried < b->n; k++, n++) {
            tried[n] = drawn(&t->plan->policies[i], &b->draws[b->n_tried++]);
            cells[n] = compare_cell(t->plan, i, 0);
            cells[n].policy = &tried[n];
            cells[n].seed = t->seed;
            cells[n].samples = RUNNER_SAMPLES_AUTO;
            cells[n].only_first = true;
            of[n] = b;
        }
    }
    SCOPED(study_outcomes_fini) struct study_outcomes runs = study_run(cells, n, &t->plan->how);
    for (uint32_t i = 0; i < n; i++) {
        if (runs.v[i].status == 0) {
            of[i]->draws[of[i]->n_kept++] = tried[i].params;
        }
    }
    return n > 0;
}

/* ---- training ---- */

/* Training mean; NaN: the configuration cannot be chosen. A replication that has no request, or
 * none of the class, does not count: all are served, and the metric has no value. */
static double objective(const struct compare_result *r, uint32_t policy, const char *metric)
{
    const double *x = compare_values(r, policy, metric);
    double sum = 0.0;
    uint32_t counted = 0;
    for (uint32_t i = 0; i < r->replications && x != NULL; i++) {
        bool served = compare_served_all(r, policy, i);
        bool none = r->empty[i] || (served && isnan(x[i]));
        sum += none ? 0.0 : served ? x[i] : METRIC_UNDEFINED;
        counted += !none;
    }
    return sum / counted;
}

/* "key=value,...": the differences between two settings of a policy, and keys given before. */
static const char *changes(const struct policy_ops *ops, const struct policy_params *given,
                           const struct policy_params *tuned)
{
    struct text t = {0};
    for (uint32_t i = 0; i < tuned->n; i++) {
        if (given->v[i] == tuned->v[i] && tuned->v[i] == ops->params[i].def) {
            continue;
        }
        text_item(&t, ",", ops->params[i].name);
        text_char(&t, '=');
        policy_param_add(&t, &ops->params[i], tuned->v[i]);
    }
    return xkeep(text_end(&t));
}

static void take(const struct config_policy *tried, uint32_t best, struct tune_policy *out)
{
    out->tuned = tried[best];
    out->tuned.params_text = policy_params_format(out->tuned.ops, &out->tuned.params);
    out->changed = best > 0 ? changes(out->tuned.ops, &tried[0].params, &out->tuned.params) : "";
}

/* Chooses the best of n configurations. Their results begin at `first`. */
static void choose(const struct config_policy *tried, uint32_t n, const struct compare_result *r,
                   uint32_t first, const char *metric, struct tune_policy *out)
{
    uint32_t best = 0;
    double sign = metric_is_gain(metric) ? -1.0 : 1.0;
    out->n_tried = n;
    out->given_value = objective(r, first, metric);
    out->tuned_value = out->given_value;
    for (uint32_t i = 0; i < n; i++) {
        double x = objective(r, first + i, metric);
        out->n_out += isnan(x) ? 1 : 0;
        if (sign * x < sign * out->tuned_value || (isnan(out->tuned_value) && !isnan(x))) {
            out->tuned_value = x; /* for equal values the earliest remains */
            best = i;
        }
    }
    take(tried, best, out);
}

/* Chooses by selection: each configuration runs until it is dropped. */
static void select_among(const struct tune *t, const struct compare_plan *all, uint32_t first,
                         uint32_t n, struct tune_policy *out)
{
    struct compare_plan plan = *all;
    plan.policies = &all->policies[first];
    plan.n_policies = n;
    struct select_result r;
    select_run(&plan, &t->options.select, t->options.metric, &r);
    out->n_tried = n;
    for (uint32_t i = 0; i < n; i++) {
        out->n_out += r.of[i].failed ? 1 : 0;
    }
    uint32_t best = r.best < n ? r.best : 0;
    /* Over the replications of both, because others would be a different sample. */
    uint32_t both = r.of[0].n < r.of[best].n ? r.of[0].n : r.of[best].n;
    r.of[0].n = r.of[best].n = both;
    out->given_value = select_mean(&r, 0);
    out->tuned_value = select_mean(&r, best);
    take(plan.policies, best, out);
}

/* Runs all policies' configurations on the training seeds. The first is the policy as given, even
 * if it cannot start. `tried` has room for all. */
static void train(struct tune *t, const struct probe *probes, struct config_policy *tried)
{
    struct config_options options = *t->plan->options;
    options.seed = t->seed;
    struct compare_plan plan = *t->plan;
    plan.options = &options;
    plan.policies = tried;
    plan.n_policies = plan.baseline = plan.first = 0;
    plan.replications = t->options.replications;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const struct config_policy *given = &t->plan->policies[i];
        for (uint32_t k = 0; k < probes[i].n_kept; k++) {
            tried[plan.n_policies++] = drawn(given, k == 0 ? &given->params : &probes[i].draws[k]);
        }
    }
    if (t->options.select.confidence_frac > 0.0) {
        for (uint32_t i = 0, first = 0; i < t->n_policies; first += probes[i++].n_kept) {
            select_among(t, &plan, first, probes[i].n_kept, &t->of[i]);
        }
        return;
    }
    SCOPED(compare_result_fini) struct compare_result r;
    compare_run(&plan, &r);
    for (uint32_t i = 0, first = 0; i < t->n_policies; first += probes[i++].n_kept) {
        choose(&tried[first], probes[i].n_kept, &r, first, t->options.metric, &t->of[i]);
    }
}

/* Runs the chosen configurations on the test seeds. */
static void test(struct tune *t, struct config_policy *tried)
{
    struct compare_plan plan = *t->plan;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        tried[i] = t->of[i].tuned;
    }
    plan.policies = tried;
    compare_run(&plan, &t->tuned);
}

void tune_run(struct tune *out, const struct compare_plan *plan, const struct tune_options *o,
              const struct compare_result *given)
{
    *out =
        (struct tune){.plan = plan,
                      .options = *o,
                      .seed = training_seed(
                          plan, o->select.confidence_frac > 0.0 ? o->select.most : o->replications),
                      .n_policies = plan->n_policies,
                      .of = xcalloc(plan->n_policies, sizeof *out->of),
                      .given = given};
    OWNED struct probe *probes = xcalloc(plan->n_policies, sizeof *probes);
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        struct probe *b = &probes[i];
        uint32_t n = o->budget * TUNE_DRAWS;
        b->draws = xmalloc((n + 1) * sizeof *b->draws);
        b->n = tune_draw(&plan->policies[i], plan->options->seed, n, b->draws, &out->of[i].n_free);
        b->n_tried = b->n_kept = 1;
    }
    while (try_draws(out, probes)) {
    }
    OWNED struct config_policy *tried =
        xcalloc((size_t)plan->n_policies * o->budget + 1, sizeof *tried);
    train(out, probes, tried);
    test(out, tried);
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        free(probes[i].draws);
    }
}
