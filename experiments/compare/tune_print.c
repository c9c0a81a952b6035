/* Tuning as a document. */
#include <inttypes.h>
#include <string.h>

#include "experiments/compare/tune.h"
#include "experiments/shell/frame_stats.h"

/* What was tried and chosen, as data and for people; the metrics of each policy follow it. */
static void put_choice(const char *label, const struct tune_policy *p, struct frame *shown,
                       struct document *d)
{
    DOCUMENT_VALUES(d, "free_parameters", p->n_free, "configurations", p->n_tried, "out", p->n_out,
                    "training_given", p->given_value, "training_tuned", p->tuned_value, "changed",
                    p->changed, "parameters", p->tuned.params_text);
    FRAME_ROW(shown, label, p->n_free, p->n_tried, p->n_out, p->given_value, p->tuned_value,
              p->changed[0] == '\0' ? "as given" : p->changed);
}

static void put_difference(struct frame *f, const struct stats_paired *p, struct document *d)
{
    FRAME_CELL(f, p->diff.mean);
    FRAME_CELL(f, p->diff.low);
    FRAME_CELL(f, p->diff.high);
    FRAME_CELL(f, document_verdict(d, p));
}

/* All metrics of a policy. */
static void put_metrics(const struct compare_plan *plan, const struct tune *t, uint32_t policy,
                        struct document *d)
{
    uint32_t n = t->tuned.replications;
    struct frame *f = document_data(
        d, "metrics", 1,
        "metric mean low high n given_mean diff diff_low diff_high verdict baseline_diff "
        "baseline_diff_low baseline_diff_high baseline_verdict");
    for (size_t k = 0; k < t->tuned.n_plain; k++) {
        const char *name = t->tuned.names[k].name;
        const double *given = compare_values(t->given, policy, name);
        const double *tuned = compare_values(&t->tuned, policy, name);
        const double *base = compare_values(&t->tuned, plan->baseline, name);
        if (given == NULL || tuned == NULL) {
            continue;
        }
        struct stats_interval x = stats_mean(tuned, n, STATS_LEVEL_FRAC);
        struct stats_paired from_given = stats_paired(tuned, given, n, STATS_LEVEL_FRAC);
        struct stats_paired from_base = stats_paired(tuned, base, n, STATS_LEVEL_FRAC);
        FRAME_CELL(f, name);
        FRAME_CELL(f, x.mean);
        FRAME_CELL(f, x.low);
        FRAME_CELL(f, x.high);
        FRAME_CELL(f, x.n);
        FRAME_CELL(f, stats_mean(given, n, STATS_LEVEL_FRAC).mean);
        put_difference(f, &from_given, d);
        if (policy != plan->baseline) {
            put_difference(f, &from_base, d);
        } else {
            frame_skip(f, 4);
        }
    }
}

/* One metric of all policies, for people. */
static void show_metric(const struct compare_plan *plan, const struct tune *t, const char *name,
                        struct document *d)
{
    const double *base = compare_values(&t->tuned, plan->baseline, name);
    if (base == NULL || compare_values(t->given, 0, name) == NULL) {
        return;
    }
    document_heading(d, "%s", name);
    struct frame *f = document_table(
        d, 2, "lllll", "", "as given", "tuned", "tuned vs as given",
        document_format(d, "tuned vs tuned %s", plan->policies[plan->baseline].ops->name));
    uint32_t n = t->tuned.replications;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const double *given = compare_values(t->given, i, name);
        const double *tuned = compare_values(&t->tuned, i, name);
        struct stats_interval before = stats_mean(given, n, STATS_LEVEL_FRAC);
        struct stats_interval after = stats_mean(tuned, n, STATS_LEVEL_FRAC);
        struct stats_paired from_given = stats_paired(tuned, given, n, STATS_LEVEL_FRAC);
        struct stats_paired from_base = stats_paired(tuned, base, n, STATS_LEVEL_FRAC);
        FRAME_ROW(f, plan->policies[i].label, document_interval(d, &before),
                  document_interval(d, &after), document_verdict(d, &from_given),
                  i == plan->baseline ? "baseline" : document_verdict(d, &from_base));
    }
}

void tune_document(const struct compare_plan *plan, const struct tune *t,
                   const char *const *metrics, uint32_t n_metrics, struct document *d)
{
    document_note(d,
                  "\n---- tuned: %" PRIu32 " configurations of each policy, %" PRIu32
                  " training replications from seed %" PRIu64 ", chosen by %s\n",
                  t->options.budget, t->options.replications, t->seed, t->options.metric);
    DOCUMENT_VALUES(d, "metric", t->options.metric, "budget", t->options.budget,
                    "training_replications", t->options.replications);
    struct document *seeds = document_array(d, "training_seeds");
    for (uint32_t i = 0; i < t->options.replications; i++) {
        DOCUMENT_VALUES(seeds, NULL, config_seed(t->seed, i));
    }
    static const struct frame_column columns[] = {
        {.name = "", .kind = FRAME_TEXT},
        {.name = "free"},
        {.name = "tried"},
        {.name = "out"},
        {.name = "as given", .missing = "out"},
        {.name = "tuned", .missing = "out"},
        {.name = "chosen", .kind = FRAME_TEXT},
    };
    struct frame *shown = DOCUMENT_FRAME(d, NULL, 0, columns);
    frame_indent(shown, 2);
    struct document *policies = document_within(d, "policies");
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const char *label = plan->policies[i].label;
        struct document *of = document_within(policies, label);
        put_choice(label, &t->of[i], shown, of);
        put_metrics(plan, t, i, of);
    }
    document_note(d, "\nOn the test seeds:");
    bool asked = false;
    for (uint32_t i = 0; i < n_metrics; i++) {
        show_metric(plan, t, metrics[i], d);
        asked = asked || strcmp(metrics[i], t->options.metric) == 0;
    }
    if (!asked) {
        show_metric(plan, t, t->options.metric, d);
    }
}
