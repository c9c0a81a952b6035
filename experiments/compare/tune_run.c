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

/* The space of a policy, and the draws that are kept of it. */
struct probe {
    struct policy_params *draws; /* owned; the first n_kept are those kept */
    uint32_t n, n_tried, n_kept;
};

struct probes {
    const struct compare_plan *plan;
    uint64_t seed;
    struct probe *of; /* owned; by policy */
    uint32_t *policy; /* owned; by cell of the round */
    uint32_t *draw;   /* owned, likewise */
    uint32_t n_cells;
};

/* A configuration that serves the first request of the training workload alone can start. */
static int first_request(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct probes *q = ctx;
    const struct compare_plan *plan = q->plan;
    uint32_t policy = q->policy[index];
    struct config_policy *p = xmalloc(sizeof *p); /* the process ends: nothing is freed */
    (void)e;
    *p = plan->policies[policy];
    p->params = q->of[policy].draws[q->draw[index]];
    (void)policy_params_format(p->ops, &p->params, p->params_text, sizeof p->params_text);
    *out = (struct study_cell){.config = plan->config,
                               .options = plan->options,
                               .policy = p,
                               .seed = q->seed,
                               .arrivals = plan->arrivals,
                               .only_first = true};
    return 0;
}

/* As many draws of every policy as it still lacks. False when none is left or lacking. */
static bool next_draws(struct probes *q, uint32_t budget)
{
    q->n_cells = 0;
    for (uint32_t i = 0; i < q->plan->n_policies; i++) {
        struct probe *b = &q->of[i];
        for (uint32_t k = b->n_kept; k < budget && b->n_tried < b->n; k++) {
            q->policy[q->n_cells] = i;
            q->draw[q->n_cells++] = b->n_tried++;
        }
    }
    return q->n_cells > 0;
}

/* Finds the first `budget` draws of each policy that can start. The policy as given is the first,
 * whether it can or not. */
static struct probe *find_starting(const struct compare_plan *plan, uint64_t seed, uint32_t budget)
{
    uint32_t most = plan->n_policies * budget;
    struct probes q = {.plan = plan,
                       .seed = seed,
                       .of = xcalloc(plan->n_policies, sizeof *q.of),
                       .policy = xcalloc(most + 1, sizeof *q.policy),
                       .draw = xcalloc(most + 1, sizeof *q.draw)};
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        struct probe *b = &q.of[i];
        uint32_t n = budget * TUNE_DRAWS;
        b->draws = xmalloc((n + 1) * sizeof *b->draws);
        b->n = tune_draw(&plan->policies[i], plan->options->seed, n, b->draws, NULL);
        b->n_tried = b->n_kept = 1;
    }
    while (next_draws(&q, budget)) {
        struct study s = {.n = q.n_cells, .how = plan->how, .ctx = &q, .cell = first_request};
        struct study_outcomes o;
        study_run(&s, &o);
        for (uint32_t i = 0; i < q.n_cells; i++) { /* in the order of draws */
            struct probe *b = &q.of[q.policy[i]];
            if (o.v[i].status == 0) {
                b->draws[b->n_kept++] = b->draws[q.draw[i]];
            }
        }
        study_outcomes_fini(&o);
    }
    free(q.policy);
    free(q.draw);
    return q.of;
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
                  const struct probe *probe)
{
    struct tune_policy *of = &t->of[policy];
    uint32_t n = probe->n_kept;
    struct config_policy *tried = xcalloc(n, sizeof *tried);
    for (uint32_t i = 0; i < n; i++) {
        tried[i] = plan->policies[policy];
        tried[i].params = i == 0 ? tried[i].params : probe->draws[i];
        (void)policy_params_format(tried[i].ops, &tried[i].params, tried[i].params_text,
                                   sizeof tried[i].params_text);
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
    struct probe *probes = find_starting(plan, out->seed, o->budget);
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        train(plan, out, i, &probes[i]);
        free(probes[i].draws);
    }
    free(probes);
    test(plan, out);
}

void tune_fini(struct tune *t)
{
    compare_result_fini(&t->given);
    compare_result_fini(&t->tuned);
    free(t->of);
    *t = (struct tune){0};
}
