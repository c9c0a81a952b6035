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
#include "sim/base/text.h"
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

/* A seed whose replications are none of the test's. */
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

/* The draws that are kept of a policy's space. */
struct probe {
    struct policy_params *draws; /* owned; the first n_kept are those kept */
    uint32_t n, n_tried, n_kept;
};

/* Three stages: which configurations can start (as many rounds as that takes), training, test. */
struct tune_rounds {
    enum { STARTING, TRAINING, TESTING } stage;
    struct probe *probes; /* owned; by policy */
    uint32_t *policy;     /* owned; by cell of a round of STARTING */
    uint32_t *draw;       /* owned, likewise */
    uint32_t n_cells;
    struct config_policy *tried; /* owned; by policy, the kept draws of each */
    struct config_options options;
    struct compare_plan plan; /* of training, of the test */
};

/* ---- which configurations can start ---- */

/* A configuration that serves the first request of the training workload alone can start. */
static int first_request(void *ctx, uint64_t index, struct study_cell *out, struct err *e)
{
    const struct tune *t = ctx;
    const struct tune_rounds *r = t->rounds;
    uint32_t policy = r->policy[index];
    struct config_policy *p = xmalloc(sizeof *p); /* the process ends: nothing is freed */
    (void)e;
    *p = t->plan->policies[policy];
    p->params = r->probes[policy].draws[r->draw[index]];
    p->params_text = policy_params_format(p->ops, &p->params);
    *out = (struct study_cell){.config = t->plan->config,
                               .options = t->plan->options,
                               .policy = p,
                               .seed = t->seed,
                               .arrivals = t->plan->arrivals,
                               .only_first = true};
    return 0;
}

/* As many draws of every policy as it still lacks. False when none is left or lacking. */
static bool ask_starting(struct tune *t, struct study *next)
{
    struct tune_rounds *r = t->rounds;
    r->n_cells = 0;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        struct probe *b = &r->probes[i];
        for (uint32_t k = b->n_kept; k < t->options.budget && b->n_tried < b->n; k++) {
            r->policy[r->n_cells] = i;
            r->draw[r->n_cells++] = b->n_tried++;
        }
    }
    *next = (struct study){.n = r->n_cells, .how = t->plan->how, .ctx = t, .cell = first_request};
    return r->n_cells > 0;
}

static void take_starting(struct tune_rounds *r, const struct study_outcomes *came)
{
    for (uint32_t i = 0; i < r->n_cells; i++) { /* in the order of draws */
        struct probe *b = &r->probes[r->policy[i]];
        if (came->v[i].status == 0) {
            b->draws[b->n_kept++] = b->draws[r->draw[i]];
        }
    }
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

/* Of n tried ones, which are the result's from `first` on. */
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
            out->tuned_value = x; /* equal values: the earliest stays */
            best = i;
        }
    }
    out->tuned = tried[best];
    out->tuned.params_text = policy_params_format(out->tuned.ops, &out->tuned.params);
    out->changed = best > 0 ? changes(out->tuned.ops, &tried[0].params, &out->tuned.params) : "";
}

/* Every policy's configurations, on the training seeds. The policy as given is the first of its
 * own, whether it can start or not. */
static void ask_training(struct tune *t, struct study *next)
{
    struct tune_rounds *r = t->rounds;
    uint32_t n = 0;
    r->tried = xcalloc((size_t)t->n_policies * t->options.budget, sizeof *r->tried);
    for (uint32_t i = 0; i < t->n_policies; i++) {
        for (uint32_t k = 0; k < r->probes[i].n_kept; k++, n++) {
            struct config_policy *p = &r->tried[n];
            *p = t->plan->policies[i];
            p->params = k == 0 ? p->params : r->probes[i].draws[k];
            p->params_text = policy_params_format(p->ops, &p->params);
        }
    }
    r->options = *t->plan->options;
    r->options.seed = t->seed;
    r->plan = *t->plan;
    r->plan.options = &r->options;
    r->plan.policies = r->tried;
    r->plan.n_policies = n;
    r->plan.baseline = 0;
    r->plan.first = 0;
    r->plan.replications = t->options.replications;
    compare_ask(&r->plan, next);
}

static void take_training(struct tune *t, const struct study_outcomes *came)
{
    struct tune_rounds *r = t->rounds;
    struct compare_result result;
    compare_take(&r->plan, came, &result);
    for (uint32_t i = 0, first = 0; i < t->n_policies; first += r->probes[i++].n_kept) {
        choose(&r->tried[first], r->probes[i].n_kept, &result, first, t->options.metric, &t->of[i]);
    }
    compare_result_fini(&result);
}

/* ---- test ---- */

static void ask_test(struct tune *t, struct study *next)
{
    struct tune_rounds *r = t->rounds;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        r->tried[i] = t->of[i].tuned;
    }
    r->plan = *t->plan;
    r->plan.policies = r->tried;
    compare_ask(&r->plan, next);
}

/* ---- all of it ---- */

void tune_open(struct tune *out, const struct compare_plan *plan, const struct tune_options *o,
               struct compare_result *given)
{
    uint32_t most = plan->n_policies * o->budget;
    struct tune_rounds *r = xcalloc(1, sizeof *r);
    *out = (struct tune){.plan = plan,
                         .options = *o,
                         .seed = training_seed(plan, o->replications),
                         .n_policies = plan->n_policies,
                         .of = xcalloc(plan->n_policies, sizeof *out->of),
                         .given = *given,
                         .rounds = r};
    *given = (struct compare_result){0};
    *r = (struct tune_rounds){.probes = xcalloc(plan->n_policies, sizeof *r->probes),
                              .policy = xcalloc(most + 1, sizeof *r->policy),
                              .draw = xcalloc(most + 1, sizeof *r->draw)};
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        struct probe *b = &r->probes[i];
        uint32_t n = o->budget * TUNE_DRAWS;
        b->draws = xmalloc((n + 1) * sizeof *b->draws);
        b->n = tune_draw(&plan->policies[i], plan->options->seed, n, b->draws, &out->of[i].n_free);
        b->n_tried = b->n_kept = 1;
    }
}

bool tune_judge(void *ctx, const struct study_outcomes *came, struct study *next)
{
    struct tune *t = ctx;
    struct tune_rounds *r = t->rounds;
    if (r->stage == STARTING) {
        if (came != NULL) {
            take_starting(r, came);
        }
        if (!ask_starting(t, next)) {
            r->stage = TRAINING;
            ask_training(t, next);
        }
        return true;
    }
    if (r->stage == TRAINING) {
        take_training(t, came);
        r->stage = TESTING;
        ask_test(t, next);
        return true;
    }
    compare_take(&r->plan, came, &t->tuned);
    return false;
}

void tune_fini(struct tune *t)
{
    for (uint32_t i = 0; i < t->n_policies; i++) {
        free(t->rounds->probes[i].draws);
    }
    free(t->rounds->probes);
    free(t->rounds->policy);
    free(t->rounds->draw);
    free(t->rounds->tried);
    free(t->rounds);
    compare_result_fini(&t->given);
    compare_result_fini(&t->tuned);
    free(t->of);
    *t = (struct tune){0};
}
