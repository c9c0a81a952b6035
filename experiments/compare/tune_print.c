/* Prints tuning as a document. */
#include "experiments/compare/compare.h"
#include "experiments/compare/tune.h"
#include "sim/stats/stats.h"
#include "sim/stats/stats_intervals.h"

/* Puts the number of configurations and the chosen one, as data and for people. The metrics of each
 * policy follow. */
static void put_choice(const char *label, const struct tune_policy *p, struct frame *shown,
                       struct document *d)
{
    DOCUMENT_VALUES(d, "free_parameters", p->n_free, "configurations", p->n_tried, "out", p->n_out,
                    "training_given", p->given_value, "training_tuned", p->tuned_value, "changed",
                    p->changed, "parameters", p->tuned.params_text);
    FRAME_ROW(shown, label, p->n_free, p->n_tried, p->n_out, p->given_value, p->tuned_value,
              p->changed[0] == '\0' ? "as given" : p->changed);
}

/* A metric of a policy. */
struct tuned {
    struct stats_interval given, tuned;
    struct stats_paired diff, base_diff; /* from the policy as given, from the tuned baseline */
    const char *verdict, *base_verdict;  /* "baseline" for the baseline itself */
    double p_holm, base_p_holm;          /* NaN: not corrected */
};

/* adjusted: of this metric, [policy][2]; or NULL. False: unknown metric. */
static bool tuned_of(const struct compare_plan *plan, const struct tune *t, uint32_t policy,
                     const char *metric, const double *adjusted, struct tuned *out)
{
    const double *given = compare_values(t->given, policy, metric);
    const double *tuned = compare_values(&t->tuned, policy, metric);
    const double *base = compare_values(&t->tuned, plan->baseline, metric);
    if (given == NULL || tuned == NULL) {
        return false;
    }
    uint32_t n = t->tuned.replications;
    bool is_base = policy == plan->baseline;
    *out = (struct tuned){
        .given = stats_reported(given, n, NULL),
        .tuned = stats_reported(tuned, n, NULL),
        .diff = stats_reported_paired(tuned, given, n),
        .base_diff = stats_reported_paired(tuned, base, n),
        .p_holm = adjusted != NULL ? adjusted[2 * policy] : METRIC_UNDEFINED,
        .base_p_holm = adjusted != NULL ? adjusted[2 * policy + 1] : METRIC_UNDEFINED,
    };
    out->diff.relevance_frac = out->base_diff.relevance_frac = plan->relevance_frac;
    out->verdict = significance_text(&out->diff, out->p_holm);
    out->base_verdict = is_base ? "baseline" : significance_text(&out->base_diff, out->base_p_holm);
    return true;
}

/* Adjusted p of all printed differences, as [metric][policy][2]. Tuning tables have separate
 * families (significance.h). */
static double *adjust(const struct compare_plan *plan, const struct tune *t,
                      const char *const *metrics, uint32_t n_metrics)
{
    size_t n = 2 * (size_t)t->n_policies;
    double *p = xmalloc((n_metrics * n + 1) * sizeof *p);
    for (size_t i = 0; i < n_metrics * n; i++) {
        uint32_t policy = (uint32_t)(i % n / 2);
        struct tuned x;
        bool is_base = i % 2 != 0 && policy == plan->baseline;
        bool there = !is_base && tuned_of(plan, t, policy, metrics[i / n], NULL, &x);
        p[i] = there ? stats_p(i % 2 == 0 ? &x.diff : &x.base_diff) : METRIC_UNDEFINED;
    }
    if (n_metrics > 0) {
        significance_adjust(p, n, (n_metrics - 1) * n);
    }
    return p;
}

/* The adjusted p of a metric; NULL: it is not named. */
static const double *of_metric(const double *p, const struct tune *t, const char *const *metrics,
                               uint32_t n_metrics, const char *name)
{
    for (uint32_t m = 0; m < n_metrics; m++) {
        if (strcmp(metrics[m], name) == 0) {
            return p + 2 * (size_t)t->n_policies * m;
        }
    }
    return NULL;
}

static void put_difference(struct frame *f, const struct stats_interval *s, const char *verdict,
                           double p_holm)
{
    FRAME_CELLS(f, s->mean, s->low, s->high, verdict, p_holm);
}

/* Adds a metric of a policy, as data. */
static void put_metric(struct frame *f, const char *name, const struct tuned *x, bool is_base)
{
    FRAME_CELLS(f, name, x->tuned.mean, x->tuned.low, x->tuned.high, x->tuned.n, x->given.mean);
    put_difference(f, &x->diff.diff, x->verdict, x->p_holm);
    if (is_base) {
        frame_skip(f, 5);
    } else {
        put_difference(f, &x->base_diff.diff, x->base_verdict, x->base_p_holm);
    }
}

/* Adds a metric of all policies, for people. */
static void show_metric(const struct compare_plan *plan, const struct tune *t, const char *name,
                        const double *adjusted, struct document *d)
{
    struct tuned x;
    struct frame *f = NULL;
    for (uint32_t i = 0; i < t->n_policies; i++) {
        if (!tuned_of(plan, t, i, name, adjusted, &x)) {
            return;
        }
        if (f == NULL) {
            document_heading(d, "%s", name);
            f = document_table(
                d, 2, "lllll", "", "as given", "tuned", "tuned vs as given",
                document_format("tuned vs tuned %s", plan->policies[plan->baseline].label));
        }
        FRAME_ROW(f, plan->policies[i].label, stats_format(&x.given), stats_format(&x.tuned),
                  x.verdict, x.base_verdict);
    }
}

void tune_document(const struct compare_plan *plan, const struct tune *t,
                   const char *const *metrics, uint32_t n_metrics, struct document *d)
{
    const bool selected = t->options.select.confidence_frac > 0.0;
    const uint32_t least = selected ? select_first(&t->options.select, t->options.replications)
                                    : t->options.replications;
    document_note(d,
                  "\n---- tuned: %" PRIu32 " configuration%s of each policy, %s%" PRIu32
                  " training replication%s from seed %" PRIu64 ", chosen by %s\n",
                  t->options.budget, text_plural(t->options.budget), selected ? "at least " : "",
                  least, text_plural(least), t->seed, t->options.metric);
    DOCUMENT_VALUES(d, "metric", t->options.metric, "budget", t->options.budget,
                    "training_replications", least);
    struct document *seeds = document_array(d, "training_seeds");
    for (uint32_t i = 0; i < least; i++) {
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
    struct frame *shown = frame_indent(DOCUMENT_FRAME(d, NULL, 0, columns), 2);
    OWNED const char **named = xcalloc((size_t)n_metrics + 1, sizeof(char *));
    uint32_t n = 0;
    bool asked = false;
    for (; n < n_metrics; n++) {
        named[n] = metrics[n];
        asked = asked || strcmp(metrics[n], t->options.metric) == 0;
    }
    if (!asked) {
        named[n++] = t->options.metric;
    }
    OWNED double *p = adjust(plan, t, named, n);
    struct document *policies = document_within(d, "policies");
    for (uint32_t i = 0; i < t->n_policies; i++) {
        const char *label = plan->policies[i].label;
        struct document *of = document_within(policies, label);
        put_choice(label, &t->of[i], shown, of);
        struct frame *f =
            document_data(of, "metrics", 1,
                          "metric mean low high n given_mean diff diff_low diff_high verdict "
                          "p_holm baseline_diff "
                          "baseline_diff_low baseline_diff_high baseline_verdict baseline_p_holm");
        for (size_t k = 0; k < t->tuned.n_metrics; k++) { /* counters only if they are named */
            struct tuned x;
            const char *name = t->tuned.names[k].name;
            const double *own = of_metric(p, t, named, n, name);
            if ((k < t->tuned.n_plain || own != NULL) && tuned_of(plan, t, i, name, own, &x)) {
                put_metric(f, name, &x, i == plan->baseline);
            }
        }
    }
    document_note(d, "\nOn the test seeds:");
    for (uint32_t m = 0; m < n; m++) {
        show_metric(plan, t, named[m], p + 2 * (size_t)t->n_policies * m, d);
    }
}
