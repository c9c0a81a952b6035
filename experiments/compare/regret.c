#include "experiments/compare/regret.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/bound.h"
#include "experiments/shell/table.h"
#include "experiments/shell/term.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/metrics/metric_table.h"
#include "sim/stats/stats_intervals.h"

static const char class_text[] = "list schedules: any order of the requests, any pair of a prefill "
                                 "and a decode device, decoding one by one or all in a batch";

int regret_check(const struct compare_plan *plan, struct err *e)
{
    if (plan->config->sim.truth_sigma > 0.0) {
        (void)err_add(e, "--regret: with sim.truth_sigma > 0 kernels take random times, and there "
                         "is no bound");
    }
    if (plan->config->sim.horizon_s > 0.0) {
        (void)err_add(e, "--regret: with sim.horizon_s requests stay unfinished, and there is no "
                         "bound of the others");
    }
    struct trace t = {0};
    if (config_trace(plan->options, plan->options->seed, plan->arrivals, &t, e) == 0) {
        for (size_t i = 0; i < t.n && t.extras != NULL; i++) {
            bool cancels = t.extras[i].cancel_ns != TIME_NEVER_NS;
            if (cancels || (t.rows[i].turn > 0 && t.extras[i].until_ns != TIME_NEVER_NS)) {
                (void)err_add(e, "--regret: request %u may %s, and there is no bound of the others",
                              t.rows[i].request_id,
                              cancels ? "be cancelled (cancel_s)" : "never arrive (until_s)");
                break;
            }
        }
    }
    trace_fini(&t);
    return e->n > 0 ? -EINVAL : 0;
}

/* ---- references ---- */

struct search {
    const struct compare_plan *plan;
    struct clairvoyant_plan plans[CLAIRVOYANT_MAX_PLANS];
    uint32_t n_plans;
};

/* Job number replication * n_plans + plan. */
static void search_one(void *ctx, uint32_t index, struct job_result *out)
{
    const struct search *s = ctx;
    const struct compare_plan *p = s->plan;
    uint64_t seed = compare_seed(p->options->seed, p->first + index / s->n_plans);
    struct err e = ERR_INIT;
    struct trace t = {0};
    if (config_trace(p->options, seed, p->arrivals, &t, &e) != 0) {
        out->status = -1;
        return; /* the process ends: nothing to free */
    }
    struct clairvoyant_best *best = xmalloc(sizeof *best);
    clairvoyant_search(p->config, &t, seed, &s->plans[index % s->n_plans], best);
    out->data = best;
    out->size = sizeof *best;
}

static void search_all(const struct compare_plan *plan, struct regret *g)
{
    struct search s = {.plan = plan};
    s.n_plans = clairvoyant_plans(&plan->config->soc.machine, s.plans);
    uint32_t n = s.n_plans * plan->replications;
    struct job_result *done = xcalloc((size_t)n + 1, sizeof *done);
    struct jobs j = {.n = n,
                     .parallel = plan->parallel,
                     .cpu_limit_s = plan->cpu_limit_s,
                     .progress = plan->progress,
                     .ctx = &s,
                     .run = search_one};
    jobs_run(&j, done);
    for (uint32_t rep = 0; rep < plan->replications; rep++) {
        struct clairvoyant_best best = clairvoyant_nothing();
        for (uint32_t i = rep * s.n_plans; i < (rep + 1) * s.n_plans; i++) {
            if (done[i].status == 0 && done[i].size == sizeof best) {
                clairvoyant_merge(&best, done[i].data);
            } else {
                best.exhaustive = false; /* a worker died or ran out of time */
            }
            free(done[i].data);
        }
        g->n_exhaustive += best.exhaustive ? 1 : 0;
        g->n_schedules += best.schedules;
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            g->best[m * plan->replications + rep] = best.value[m];
        }
    }
    free(done);
}

/* One bound for all: with the longest drafts that any of the policies has. */
static int bound_of_all(const struct compare_plan *plan, struct bound *out)
{
    int rc = bound_of_config(out, plan->config, &plan->policies[0]);
    for (uint32_t p = 1; p < plan->n_policies && rc == 0; p++) {
        struct bound b;
        rc = bound_of_config(&b, plan->config, &plan->policies[p]);
        if (rc == 0 && b.tokens_per_pass > out->tokens_per_pass) {
            *out = b;
        }
    }
    return rc;
}

static void bound_all(const struct compare_plan *plan, struct regret *g)
{
    struct bound b;
    int rc = bound_of_all(plan, &b);
    for (uint32_t rep = 0; rep < plan->replications; rep++) {
        struct err e = ERR_INIT;
        struct trace t = {0};
        struct bound_workload w;
        uint64_t seed = compare_seed(plan->options->seed, plan->first + rep);
        bool ok = rc == 0 && config_trace(plan->options, seed, plan->arrivals, &t, &e) == 0;
        if (ok) {
            bound_trace(&b, &t, &w);
        }
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            double x = ok ? bound_metric(&w, clairvoyant_metrics[m]) : METRIC_UNDEFINED;
            g->bound[m * plan->replications + rep] = x;
        }
        trace_fini(&t);
        err_fini(&e);
    }
}

void regret_run(const struct compare_plan *plan, struct regret *out)
{
    size_t n = (size_t)CLAIRVOYANT_METRICS * plan->replications;
    *out = (struct regret){.replications = plan->replications,
                           .bound = xcalloc(n, sizeof *out->bound),
                           .best = xcalloc(n, sizeof *out->best)};
    bound_all(plan, out);
    search_all(plan, out);
}

void regret_fini(struct regret *r)
{
    free(r->bound);
    free(r->best);
    *r = (struct regret){0};
}

/* ---- distances ---- */

/* Values of a policy, NaN where it left requests unserved: what it dropped took no time. */
static double *values_of(const struct compare_result *r, uint32_t policy, const char *metric)
{
    const double *x = compare_values(r, policy, metric);
    const double *shed = compare_values(r, policy, "all.shed");
    const double *unfinished = compare_values(r, policy, "all.unfinished");
    double *out = xmalloc((r->replications + 1) * sizeof *out);
    for (uint32_t i = 0; i < r->replications; i++) {
        bool all = x != NULL && shed[i] == 0.0 && unfinished[i] == 0.0;
        out[i] = all ? x[i] : METRIC_UNDEFINED;
    }
    return out;
}

static struct stats_interval distance(const double *x, const double *reference, uint32_t n,
                                      bool gain)
{
    return gain ? stats_paired(reference, x, n, STATS_LEVEL_FRAC).diff
                : stats_paired(x, reference, n, STATS_LEVEL_FRAC).diff;
}

/* "+1.5 [1.2, 1.8], x2.1" */
static void put_distance(struct table *t, const double *x, const double *reference, uint32_t n,
                         bool gain)
{
    struct stats_interval d = distance(x, reference, n, gain);
    struct stats_interval ratio = stats_ratio(x, reference, n, STATS_LEVEL_FRAC);
    char buf[96];
    if (isnan(d.mean)) {
        table_cell(t, "-");
    } else {
        table_cell(t, "%s, x%.3g", stats_format(&d, buf, sizeof buf), ratio.mean);
    }
}

static void print_reference(struct table *t, const char *label, const double *x, uint32_t n)
{
    struct stats_interval s = stats_mean(x, n, STATS_LEVEL_FRAC);
    char buf[96];
    table_cell(t, "%s", label);
    table_cell(t, "%s", stats_format(&s, buf, sizeof buf));
    table_end_row(t);
}

static void print_metric(const struct compare_plan *plan, const struct compare_result *r,
                         const struct regret *g, uint32_t metric, FILE *out)
{
    const double *bound = &g->bound[metric * g->replications];
    const double *best = &g->best[metric * g->replications];
    bool gain = metric_is_gain(clairvoyant_metrics[metric]);
    if (isnan(stats_mean(bound, g->replications, STATS_LEVEL_FRAC).mean)) {
        return; /* the workload has no request of this class */
    }
    (void)fputc('\n', out);
    term_heading(out, clairvoyant_metrics[metric]);
    struct table t;
    table_init(&t, "llll");
    table_cell(&t, "%s", "");
    table_cell(&t, "mean");
    table_cell(&t, "regret vs oracle-lb");
    table_cell(&t, "regret vs clairvoyant");
    print_reference(&t, "oracle-lb", bound, g->replications);
    print_reference(&t, "clairvoyant", best, g->replications);
    for (uint32_t p = 0; p < r->n_policies; p++) {
        double *x = values_of(r, p, clairvoyant_metrics[metric]);
        struct stats_interval s = stats_mean(x, r->replications, STATS_LEVEL_FRAC);
        char buf[96];
        table_cell(&t, "%s", plan->policies[p].label);
        table_cell(&t, "%s", stats_format(&s, buf, sizeof buf));
        put_distance(&t, x, bound, r->replications, gain);
        put_distance(&t, x, best, r->replications, gain);
        free(x);
    }
    table_print(&t, out, 2);
    table_fini(&t);
}

void regret_print(const struct compare_plan *plan, const struct compare_result *r,
                  const struct regret *g, FILE *out)
{
    (void)fprintf(out, "\n---- regret: distance [95 %% interval] and ratio, over all requests\n");
    (void)fprintf(out, "oracle-lb: roofline and shared-bandwidth bound; no schedule beats it\n");
    (void)fprintf(out, "clairvoyant: best of %u %s\n", g->n_schedules, class_text);
    if (g->n_exhaustive == g->replications) {
        (void)fprintf(out, "  (exhaustive: every order, in all replications)\n");
    } else {
        (void)fprintf(out,
                      "  (exhaustive in %u of %u replications; elsewhere HEURISTIC: shortest "
                      "remaining time first, lengths known)\n",
                      g->n_exhaustive, g->replications);
    }
    for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
        print_metric(plan, r, g, m, out);
    }
}

/* ---- JSON ---- */

static void add_reference(cJSON *into, const char *name, const double *values, uint32_t n)
{
    cJSON *o = cJSON_AddObjectToObject(into, name);
    for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
        struct stats_interval s = stats_mean(&values[m * n], n, STATS_LEVEL_FRAC);
        cJSON *v = cJSON_AddObjectToObject(o, clairvoyant_metrics[m]);
        cJSON_AddNumberToObject(v, "mean", s.mean);
        cJSON_AddNumberToObject(v, "low", s.low);
        cJSON_AddNumberToObject(v, "high", s.high);
        cJSON_AddNumberToObject(v, "n", s.n);
    }
}

static void add_distance(cJSON *into, const char *name, const double *x, const double *reference,
                         uint32_t n, bool gain)
{
    struct stats_interval d = distance(x, reference, n, gain);
    struct stats_interval ratio = stats_ratio(x, reference, n, STATS_LEVEL_FRAC);
    cJSON *o = cJSON_AddObjectToObject(into, name);
    cJSON_AddNumberToObject(o, "diff", d.mean);
    cJSON_AddNumberToObject(o, "diff_low", d.low);
    cJSON_AddNumberToObject(o, "diff_high", d.high);
    cJSON_AddNumberToObject(o, "ratio", ratio.mean);
    cJSON_AddNumberToObject(o, "ratio_low", ratio.low);
    cJSON_AddNumberToObject(o, "ratio_high", ratio.high);
    cJSON_AddNumberToObject(o, "n", d.n);
}

cJSON *regret_to_json(const struct compare_plan *plan, const struct compare_result *r,
                      const struct regret *g)
{
    uint32_t n = g->replications;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "class", class_text);
    cJSON_AddNumberToObject(root, "replications", n);
    cJSON_AddNumberToObject(root, "exhaustive_replications", g->n_exhaustive);
    cJSON_AddNumberToObject(root, "schedules", g->n_schedules);
    add_reference(root, "oracle_lb", g->bound, n);
    add_reference(root, "clairvoyant", g->best, n);
    cJSON *policies = cJSON_AddObjectToObject(root, "policies");
    for (uint32_t p = 0; p < r->n_policies; p++) {
        cJSON *of = cJSON_AddObjectToObject(policies, plan->policies[p].label);
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            double *x = values_of(r, p, clairvoyant_metrics[m]);
            bool gain = metric_is_gain(clairvoyant_metrics[m]);
            cJSON *o = cJSON_AddObjectToObject(of, clairvoyant_metrics[m]);
            add_distance(o, "oracle_lb", x, &g->bound[m * n], n, gain);
            add_distance(o, "clairvoyant", x, &g->best[m * n], n, gain);
            free(x);
        }
    }
    return root;
}
