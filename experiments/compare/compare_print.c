/* A comparison as aligned text and as JSON. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/compare.h"
#include "experiments/shell/table.h"
#include "experiments/shell/term.h"
#include "sim/base/arena.h"
#include "sim/base/hash.h"
#include "sim/stats/stats_intervals.h"
#include "sim/stats/stats_shift.h"

#define MIN_LABEL 16
#define OTHER_COLUMNS 72 /* mean with interval, verdict, gaps */

/* Whether labels cut to so many characters still tell the policies apart. */
static bool tells_apart(const struct compare_plan *plan, size_t width)
{
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strncmp(plan->policies[i].label, plan->policies[k].label, width) == 0) {
                return false;
            }
        }
    }
    return true;
}

/* Characters a policy's label may take: all of it in a file or pipe, what fits on a terminal where
 * that tells the policies apart. */
static int label_width(const struct compare_plan *plan, FILE *out)
{
    int columns = term_width(out);
    int room = columns - OTHER_COLUMNS;
    room = room < MIN_LABEL ? MIN_LABEL : room;
    return columns > 0 && tells_apart(plan, (size_t)room - 3) ? room : INT_MAX;
}

static void put_label(struct table *t, const char *label, int width)
{
    if ((int)strlen(label) <= width) {
        table_cell(t, "%s", label);
    } else {
        table_cell(t, "%.*s...", width - 3, label);
    }
}

static uint64_t bootstrap_key(const struct compare_plan *plan, const char *name)
{
    return hash_string(hash_u64(HASH_INIT, plan->options->seed), name);
}

/* The difference as it is printed and judged. */
static struct stats_paired difference(const struct compare_plan *plan, const double *x,
                                      const double *base, uint32_t n, const char *name)
{
    struct stats_paired d = stats_paired(x, base, n, STATS_LEVEL_FRAC);
    d.relevance_frac = plan->relevance_frac;
    double *differences = xmalloc((n + 1) * sizeof *differences);
    for (uint32_t i = 0; i < n; i++) {
        differences[i] = x[i] - base[i];
    }
    if (stats_is_skewed(differences, n)) {
        d.diff = stats_bootstrap_paired(x, base, n, STATS_LEVEL_FRAC, bootstrap_key(plan, name));
    }
    free(differences);
    return d;
}

/* p of each policy's difference from the baseline; NaN for the baseline. Into p[policy]. */
static void put_p(const struct compare_plan *plan, const struct compare_result *r, const char *name,
                  double *p)
{
    const double *base = compare_values(r, plan->baseline, name);
    for (uint32_t i = 0; i < r->n_policies; i++) {
        struct stats_paired d = {.base_mean = METRIC_UNDEFINED};
        if (base != NULL) {
            d = stats_paired(compare_values(r, i, name), base, r->replications, STATS_LEVEL_FRAC);
        }
        p[i] = i == plan->baseline ? METRIC_UNDEFINED : stats_p(&d);
    }
}

/* The same of one metric, taken together (Holm). */
static double *holm_of(const struct compare_plan *plan, const struct compare_result *r,
                       const char *name)
{
    double *p = xmalloc((r->n_policies + 1) * sizeof *p);
    put_p(plan, r, name, p);
    stats_holm(p, r->n_policies, p);
    return p;
}

/* Of what is printed, [metric][policy]: the first metric is the one that was asked about, and is
 * corrected for its policies alone; the others were looked at as well, and are one family. Without
 * this an A/A comparison finds something in one of ten metrics in every third case. */
static double *holm_of_printed(const struct compare_plan *plan, const struct compare_result *r,
                               const char *const *metrics, uint32_t n_metrics)
{
    uint32_t n = r->n_policies;
    double *p = xmalloc((n_metrics * (size_t)n + 1) * sizeof *p);
    for (uint32_t m = 0; m < n_metrics; m++) {
        put_p(plan, r, metrics[m], p + (size_t)m * n);
    }
    if (n_metrics > 0) {
        stats_holm(p, n, p);
        stats_holm(p + n, (size_t)(n_metrics - 1) * n, p + n);
    }
    return p;
}

static bool is_lost_to_holm(const struct stats_paired *d, double p_holm)
{
    enum stats_finding f = stats_judge(d);
    return (f == STATS_LOWER || f == STATS_HIGHER) && p_holm > 1.0 - STATS_LEVEL_FRAC;
}

/* holm: by policy. together: what it is corrected for. */
static void print_metric(const struct compare_plan *plan, const struct compare_result *r,
                         const char *name, const double *holm, const char *together, FILE *out)
{
    const double *base = compare_values(r, plan->baseline, name);
    if (base == NULL) {
        return;
    }
    (void)fputc('\n', out);
    term_heading(out, name);
    int width = label_width(plan, out);
    struct table t;
    table_init(&t, "lll");
    for (uint32_t p = 0; p < r->n_policies; p++) {
        const double *x = compare_values(r, p, name);
        bool skewed = stats_is_skewed(x, r->replications);
        struct stats_interval s = skewed ? stats_bootstrap(x, r->replications, STATS_LEVEL_FRAC,
                                                           bootstrap_key(plan, name))
                                         : stats_mean(x, r->replications, STATS_LEVEL_FRAC);
        struct stats_paired d = difference(plan, x, base, r->replications, name);
        char buf[96];
        put_label(&t, plan->policies[p].label, width);
        table_cell(&t, "%s%s", stats_format(&s, buf, sizeof buf), skewed ? " (bootstrap-t)" : "");
        table_cell(&t, "%s%s",
                   p == plan->baseline ? "baseline" : stats_verdict(&d, buf, sizeof buf),
                   is_lost_to_holm(&d, holm[p]) ? together : "");
    }
    table_print(&t, out, 2);
    table_fini(&t);
}

/* How many replications of each policy were stable, backlogged, overloaded. */
static void print_verdicts(const struct compare_plan *plan, const struct compare_result *r,
                           FILE *out)
{
    int width = label_width(plan, out);
    struct table t;
    table_init(&t, "lrrrr");
    table_cell(&t, "%s", "");
    for (int v = METRICS_STABLE; v <= METRICS_OVERLOADED; v++) {
        table_cell(&t, "%s", metrics_verdict_names[v]);
    }
    table_cell(&t, "failed");
    for (uint32_t p = 0; p < r->n_policies; p++) {
        const double *x = compare_values(r, p, "backlog.verdict");
        uint32_t count[METRICS_OVERLOADED + 1] = {0};
        uint32_t ok = 0;
        for (uint32_t i = 0; i < r->replications && x != NULL; i++) {
            if (x[i] >= 0.0 && x[i] <= (double)METRICS_OVERLOADED) {
                count[(int)x[i]]++;
                ok++;
            }
        }
        put_label(&t, plan->policies[p].label, width);
        for (int v = METRICS_STABLE; v <= METRICS_OVERLOADED; v++) {
            table_cell(&t, "%u", count[v]);
        }
        table_cell(&t, "%u", r->replications - ok);
    }
    (void)fputc('\n', out);
    term_heading(out, "replications");
    table_print(&t, out, 2);
    table_fini(&t);
}

void compare_print(const struct compare_plan *plan, const struct compare_result *r,
                   const char *const *metrics, uint32_t n_metrics, FILE *out)
{
    print_verdicts(plan, r, out);
    double *holm = holm_of_printed(plan, r, metrics, n_metrics);
    for (uint32_t i = 0; i < n_metrics; i++) {
        print_metric(plan, r, metrics[i], holm + (size_t)i * r->n_policies,
                     i == 0 ? ", not for all policies together (Holm)"
                            : ", not for all metrics but the first together (Holm)",
                     out);
    }
    free(holm);
}

/* Beside Student's interval of the difference: the ratio with Fieller's, and the bootstrap's. */
static void add_difference(const struct compare_plan *plan, const struct compare_result *r,
                           const double *x, const double *base, const char *name, cJSON *o)
{
    struct stats_paired d = stats_paired(x, base, r->replications, STATS_LEVEL_FRAC);
    struct stats_interval ratio = stats_ratio(x, base, r->replications, STATS_LEVEL_FRAC);
    struct stats_interval boot = stats_bootstrap_paired(x, base, r->replications, STATS_LEVEL_FRAC,
                                                        bootstrap_key(plan, name));
    struct stats_paired said = difference(plan, x, base, r->replications, name);
    char buf[96];
    cJSON_AddNumberToObject(o, "diff", d.diff.mean);
    cJSON_AddNumberToObject(o, "diff_low", d.diff.low);
    cJSON_AddNumberToObject(o, "diff_high", d.diff.high);
    cJSON_AddNumberToObject(o, "bootstrap_low", boot.low);
    cJSON_AddNumberToObject(o, "bootstrap_high", boot.high);
    cJSON_AddNumberToObject(o, "ratio", ratio.mean);
    cJSON_AddNumberToObject(o, "ratio_low", ratio.low);
    cJSON_AddNumberToObject(o, "ratio_high", ratio.high);
    cJSON_AddNumberToObject(o, "p", stats_p(&d));
    cJSON_AddStringToObject(o, "verdict", stats_verdict(&said, buf, sizeof buf));
}

static cJSON *metric_to_json(const struct compare_plan *plan, const struct compare_result *r,
                             uint32_t policy, const char *name)
{
    const double *x = compare_values(r, policy, name);
    const double *base = compare_values(r, plan->baseline, name);
    struct stats_interval s = stats_mean(x, r->replications, STATS_LEVEL_FRAC);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "mean", s.mean);
    cJSON_AddNumberToObject(o, "low", s.low);
    cJSON_AddNumberToObject(o, "high", s.high);
    cJSON_AddNumberToObject(o, "n", s.n);
    if (policy != plan->baseline) {
        add_difference(plan, r, x, base, name, o);
        double *holm = holm_of(plan, r, name);
        cJSON_AddNumberToObject(o, "p_holm", holm[policy]);
        free(holm);
    }
    return o;
}

cJSON *compare_to_json(const struct compare_plan *plan, const struct compare_result *r)
{
    cJSON *root = cJSON_CreateObject();
    for (uint32_t p = 0; p < r->n_policies; p++) {
        cJSON *o = cJSON_AddObjectToObject(root, plan->policies[p].label);
        for (size_t k = 0; k < r->n_metrics; k++) {
            cJSON_AddItemToObject(o, r->names[k].name,
                                  metric_to_json(plan, r, p, r->names[k].name));
        }
    }
    return root;
}
