/* Tuning as aligned text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/tune.h"
#include "experiments/shell/table.h"
#include "experiments/shell/term.h"

static void put_value(struct table *t, double x)
{
    if (isnan(x)) {
        table_cell(t, "out");
    } else {
        table_cell(t, "%.4g", x);
    }
}

static void print_choices(const struct compare_plan *plan, const struct tune *t, FILE *out)
{
    (void)fprintf(out,
                  "\n---- tuned: %" PRIu32 " configurations of each policy, %" PRIu32
                  " training replications from seed %" PRIu64 ", chosen by %s\n\n",
                  t->options.budget, t->options.replications, t->seed, t->options.metric);
    struct table table;
    table_init(&table, "lrrrrrl");
    table_cell(&table, "%s", "");
    table_cell(&table, "free");
    table_cell(&table, "tried");
    table_cell(&table, "out");
    table_cell(&table, "as given");
    table_cell(&table, "tuned");
    table_cell(&table, "chosen");
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const struct tune_policy *p = &t->of[i];
        table_cell(&table, "%s", plan->policies[i].label);
        table_cell(&table, "%" PRIu32, p->n_free);
        table_cell(&table, "%" PRIu32, p->n_tried);
        table_cell(&table, "%" PRIu32, p->n_out);
        put_value(&table, p->given_value);
        put_value(&table, p->tuned_value);
        table_cell(&table, "%s", p->changed[0] == '\0' ? "as given" : p->changed);
    }
    table_print(&table, out, 2);
    table_fini(&table);
    (void)fprintf(out, "\nOn the test seeds:\n");
}

static void print_metric(const struct compare_plan *plan, const struct tune *t, const char *name,
                         FILE *out)
{
    const double *base = compare_values(&t->tuned, plan->baseline, name);
    if (base == NULL || compare_values(&t->given, 0, name) == NULL) {
        return;
    }
    (void)fputc('\n', out);
    term_heading(out, name);
    struct table table;
    table_init(&table, "lllll");
    table_cell(&table, "%s", "");
    table_cell(&table, "as given");
    table_cell(&table, "tuned");
    table_cell(&table, "tuned vs as given");
    table_cell(&table, "tuned vs tuned %s", plan->policies[plan->baseline].ops->name);
    uint32_t n = t->tuned.replications;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const double *given = compare_values(&t->given, i, name);
        const double *tuned = compare_values(&t->tuned, i, name);
        struct stats_interval g = stats_mean(given, n, STATS_LEVEL_FRAC);
        struct stats_interval x = stats_mean(tuned, n, STATS_LEVEL_FRAC);
        struct stats_paired d = stats_paired(tuned, given, n, STATS_LEVEL_FRAC);
        struct stats_paired b = stats_paired(tuned, base, n, STATS_LEVEL_FRAC);
        char buf[96];
        table_cell(&table, "%s", plan->policies[i].label);
        table_cell(&table, "%s", stats_format(&g, buf, sizeof buf));
        table_cell(&table, "%s", stats_format(&x, buf, sizeof buf));
        table_cell(&table, "%s", stats_verdict(&d, buf, sizeof buf));
        table_cell(&table, "%s",
                   i == plan->baseline ? "baseline" : stats_verdict(&b, buf, sizeof buf));
    }
    table_print(&table, out, 2);
    table_fini(&table);
}

void tune_print(const struct compare_plan *plan, const struct tune *t, const char *const *metrics,
                uint32_t n_metrics, FILE *out)
{
    print_choices(plan, t, out);
    bool shown = false;
    for (uint32_t i = 0; i < n_metrics; i++) {
        print_metric(plan, t, metrics[i], out);
        shown = shown || strcmp(metrics[i], t->options.metric) == 0;
    }
    if (!shown) {
        print_metric(plan, t, t->options.metric, out);
    }
}

/* ---- JSON ---- */

static void add_difference(cJSON *o, const char *prefix, const double *x, const double *from,
                           uint32_t n)
{
    static const char *const parts[] = {"diff", "diff_low", "diff_high", "verdict"};
    struct stats_paired d = stats_paired(x, from, n, STATS_LEVEL_FRAC);
    double values[] = {d.diff.mean, d.diff.low, d.diff.high};
    char key[64];
    char buf[96];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(key, sizeof key, "%s%s", prefix, parts[i]);
        if (i < 3) {
            cJSON_AddNumberToObject(o, key, values[i]);
        } else {
            cJSON_AddStringToObject(o, key, stats_verdict(&d, buf, sizeof buf));
        }
    }
}

static void add_metric(const struct compare_plan *plan, const struct tune *t, uint32_t policy,
                       const char *name, cJSON *into)
{
    const double *given = compare_values(&t->given, policy, name);
    const double *tuned = compare_values(&t->tuned, policy, name);
    const double *base = compare_values(&t->tuned, plan->baseline, name);
    if (given == NULL || tuned == NULL) {
        return;
    }
    uint32_t n = t->tuned.replications;
    struct stats_interval x = stats_mean(tuned, n, STATS_LEVEL_FRAC);
    cJSON *o = cJSON_AddObjectToObject(into, name);
    cJSON_AddNumberToObject(o, "mean", x.mean);
    cJSON_AddNumberToObject(o, "low", x.low);
    cJSON_AddNumberToObject(o, "high", x.high);
    cJSON_AddNumberToObject(o, "n", x.n);
    cJSON_AddNumberToObject(o, "given_mean", stats_mean(given, n, STATS_LEVEL_FRAC).mean);
    add_difference(o, "", tuned, given, n);
    if (policy != plan->baseline) {
        add_difference(o, "baseline_", tuned, base, n);
    }
}

cJSON *tune_to_json(const struct compare_plan *plan, const struct tune *t)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "metric", t->options.metric);
    cJSON_AddNumberToObject(root, "budget", t->options.budget);
    cJSON_AddNumberToObject(root, "training_replications", t->options.replications);
    cJSON *seeds = cJSON_AddArrayToObject(root, "training_seeds");
    for (uint32_t i = 0; i < t->options.replications; i++) {
        cJSON_AddItemToArray(seeds, cJSON_CreateNumber((double)compare_seed(t->seed, i)));
    }
    cJSON *policies = cJSON_AddObjectToObject(root, "policies");
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const struct tune_policy *p = &t->of[i];
        cJSON *o = cJSON_AddObjectToObject(policies, plan->policies[i].label);
        cJSON_AddNumberToObject(o, "free_parameters", p->n_free);
        cJSON_AddNumberToObject(o, "configurations", p->n_tried);
        cJSON_AddNumberToObject(o, "out", p->n_out);
        cJSON_AddNumberToObject(o, "training_given", p->given_value);
        cJSON_AddNumberToObject(o, "training_tuned", p->tuned_value);
        cJSON_AddStringToObject(o, "changed", p->changed);
        cJSON_AddStringToObject(o, "parameters", p->tuned.params_text);
        cJSON *metrics = cJSON_AddObjectToObject(o, "metrics");
        for (size_t k = 0; k < t->tuned.n_metrics; k++) {
            add_metric(plan, t, i, t->tuned.names[k].name, metrics);
        }
    }
    return root;
}
