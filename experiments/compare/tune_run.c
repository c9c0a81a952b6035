/* Training and test of tuned policies; tune.c has the space. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/tune.h"
#include "experiments/run/runner.h"
#include "policies/params.h"
#include "sim/base/arena.h"
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
    struct metric_list names = {0};
    runner_metric_names(plan->config, &names);
    if (metric_list_find(&names, o->metric) == NULL) {
        (void)err_add(e, "--tune-metric %s: no metric is called so; `xpusim run --json` shows all",
                      o->metric);
    }
    metric_list_fini(&names);
    return e->n > 0 ? -EINVAL : 0;
}

/* A seed whose replications are none of the test's. */
static uint64_t training_seed(const struct compare_plan *plan, uint32_t replications)
{
    for (uint64_t attempt = 1;; attempt++) {
        uint64_t seed = rng_seed(rng_key(plan->options->seed, RNG_TUNE, 0, attempt));
        bool apart = true;
        for (uint32_t i = 0; i < replications; i++) {
            for (uint32_t k = 0; k < plan->replications; k++) {
                apart = apart &&
                        compare_seed(seed, i) != compare_seed(plan->options->seed, plan->first + k);
            }
        }
        if (apart) {
            return seed;
        }
    }
}

/* ---- which configurations can start ---- */

struct probe {
    const struct compare_plan *plan;
    uint64_t seed;
    uint32_t budget;
};

static bool starts(const struct compare_plan *plan, const struct config_policy *p,
                   const struct trace *t, uint64_t seed)
{
    struct runner_options opt = {0};
    struct runner_result r;
    struct err e = ERR_INIT;
    int rc = runner_run(plan->config, p, t, seed, &opt, &r, &e);
    runner_result_fini(&r);
    err_fini(&e);
    return rc == 0;
}

/* Gives back the first `budget` draws of policy `index` that can start: those that serve the first
 * request of the training workload alone. The policy as given is the first, whether it can or not.
 */
static void probe_one(void *ctx, uint32_t index, struct job_result *out)
{
    const struct probe *b = ctx;
    const struct compare_plan *plan = b->plan;
    struct config_policy p = plan->policies[index];
    uint32_t n = b->budget * TUNE_DRAWS;
    struct policy_params *draws = xmalloc((n + 1) * sizeof *draws);
    uint32_t n_draws = tune_draw(&plan->policies[index], plan->options->seed, n, draws, NULL);
    struct err e = ERR_INIT;
    struct trace t = {0};
    if (config_trace(plan->options, b->seed, plan->arrivals, &t, &e) != 0 || t.n == 0) {
        out->status = -1;
        return; /* the process ends: nothing to free */
    }
    t.n = t.n_first = 1;
    t.rows[0].next = TRACE_NO_ROW;
    uint32_t kept = 1;
    for (uint32_t i = 1; i < n_draws && kept < b->budget; i++) {
        p.params = draws[i];
        if (starts(plan, &p, &t, b->seed)) {
            draws[kept++] = draws[i];
        }
    }
    out->data = draws;
    out->size = kept * sizeof *draws;
}

/* ---- training ---- */

static bool served_all(const struct compare_result *r, uint32_t policy, uint32_t replication)
{
    const double *shed = compare_values(r, policy, "all.shed");
    const double *unfinished = compare_values(r, policy, "all.unfinished");
    return shed != NULL && shed[replication] == 0.0 && unfinished[replication] == 0.0;
}

/* Training mean; NaN when the configuration is out. */
static double objective(const struct compare_result *r, uint32_t policy, const char *metric)
{
    const double *x = compare_values(r, policy, metric);
    double sum = 0.0;
    for (uint32_t i = 0; i < r->replications; i++) {
        bool fine = x != NULL && isfinite(x[i]) && served_all(r, policy, i);
        sum += fine ? x[i] : METRIC_UNDEFINED;
    }
    return sum / r->replications;
}

/* "key=value,...": what differs between two settings of a policy, and what was stated already. */
static void changes(const struct policy_ops *ops, const struct policy_params *given,
                    const struct policy_params *tuned, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (uint32_t i = 0; i < tuned->n; i++) {
        if (given->v[i] == tuned->v[i] && tuned->v[i] == ops->params[i].def) {
            continue;
        }
        char value[64];
        policy_param_format(&ops->params[i], tuned->v[i], value, sizeof value);
        int n = snprintf(buf + used, size - used, "%s%s=%s", used > 0 ? "," : "",
                         ops->params[i].name, value);
        used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    }
    buf[used] = '\0';
}

static void choose(const struct config_policy *tried, uint32_t n, const struct compare_result *r,
                   const char *metric, struct tune_policy *out)
{
    uint32_t best = 0;
    double sign = metric_is_gain(metric) ? -1.0 : 1.0;
    out->n_tried = n;
    out->given_value = objective(r, 0, metric);
    out->tuned_value = out->given_value;
    for (uint32_t i = 0; i < n; i++) {
        double x = objective(r, i, metric);
        out->n_out += isnan(x) ? 1 : 0;
        if (sign * x < sign * out->tuned_value || (isnan(out->tuned_value) && !isnan(x))) {
            out->tuned_value = x; /* equal values: the earliest stays */
            best = i;
        }
    }
    out->tuned = tried[best];
    (void)policy_params_format(out->tuned.ops, &out->tuned.params, out->tuned.params_text,
                               sizeof out->tuned.params_text);
    if (best > 0) {
        changes(out->tuned.ops, &tried[0].params, &out->tuned.params, out->changed,
                sizeof out->changed);
    }
}

static void train(const struct compare_plan *plan, struct tune *t, uint32_t policy,
                  const struct job_result *probed)
{
    struct tune_policy *of = &t->of[policy];
    const struct policy_params *draws = probed->data;
    uint32_t n = (uint32_t)(probed->size / sizeof *draws);
    n = n == 0 ? 1 : n; /* the probe died: as given, which then shows why */
    struct config_policy *tried = xcalloc(n, sizeof *tried);
    for (uint32_t i = 0; i < n; i++) {
        tried[i] = plan->policies[policy];
        tried[i].params = i == 0 ? tried[i].params : draws[i];
    }
    struct policy_params one;
    (void)tune_draw(&plan->policies[policy], plan->options->seed, 1, &one, &of->n_free);
    struct config_options options = *plan->options;
    options.seed = t->seed;
    struct compare_plan p = *plan;
    p.options = &options;
    p.policies = tried;
    p.n_policies = n;
    p.baseline = 0;
    p.first = 0;
    p.replications = t->options.replications;
    struct compare_result r;
    compare_run(&p, &r);
    choose(tried, n, &r, t->options.metric, of);
    compare_result_fini(&r);
    free(tried);
}

static void test(const struct compare_plan *plan, struct tune *t)
{
    struct config_policy *tuned = xcalloc(plan->n_policies, sizeof *tuned);
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        tuned[i] = t->of[i].tuned;
    }
    struct compare_plan p = *plan;
    p.policies = tuned;
    compare_run(&p, &t->tuned);
    free(tuned);
}

void tune_run(const struct compare_plan *plan, const struct tune_options *o,
              struct compare_result *given, struct tune *out)
{
    *out = (struct tune){.options = *o,
                         .seed = training_seed(plan, o->replications),
                         .n_policies = plan->n_policies,
                         .of = xcalloc(plan->n_policies, sizeof *out->of),
                         .given = *given};
    *given = (struct compare_result){0};
    struct probe probe = {plan, out->seed, o->budget};
    struct job_result *probed = xcalloc(plan->n_policies, sizeof *probed);
    struct jobs j = {.n = plan->n_policies,
                     .parallel = plan->parallel,
                     .cpu_limit_s = plan->cpu_limit_s,
                     .progress = plan->progress,
                     .ctx = &probe,
                     .run = probe_one};
    jobs_run(&j, probed);
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        train(plan, out, i, &probed[i]);
        free(probed[i].data);
    }
    free(probed);
    test(plan, out);
}

void tune_fini(struct tune *t)
{
    compare_result_fini(&t->given);
    compare_result_fini(&t->tuned);
    free(t->of);
    *t = (struct tune){0};
}
