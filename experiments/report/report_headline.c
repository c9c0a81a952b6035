/* Writes the first paragraph of a comparison's section. */
#include "experiments/report/report_impl.h"

/* Returns the policy with the best mean of a metric. */
static const cJSON *best_of(const cJSON *policies, const char *metric)
{
    const cJSON *best = NULL;
    const cJSON *p;
    cJSON_ArrayForEach (p, policies) {
        double v = json_number(json_member(p, metric), "mean");
        double other = json_number(json_member(best, metric), "mean");
        if (!isnan(v) && (best == NULL || (metric_is_gain(metric) ? v > other : v < other))) {
            best = p;
        }
    }
    return best;
}

/* Lists policies whose intervals overlap that of the best. The intervals alone do not distinguish
 * them. */
static void write_close_ones(const cJSON *policies, const cJSON *best, FILE *out)
{
    const cJSON *b = json_member(best, METRIC_PRIMARY);
    const cJSON *p;
    bool any = false;
    cJSON_ArrayForEach (p, policies) {
        const cJSON *m = json_member(p, METRIC_PRIMARY);
        if (p != best && json_number(m, "low") <= json_number(b, "high")) {
            (void)fputs(any ? ", " : " Intervals that meet its own: ", out);
            markup_format(out, "%s (", p->string);
            report_put_mean(out, m);
            (void)fputs(" s)", out);
            any = true;
        }
    }
    (void)fputs(any ? "." : "", out);
}

static void write_status(const cJSON *tree, const char *status,
                         unsigned (*count)(const cJSON *, const char *, unsigned *),
                         const char *why, FILE *out)
{
    const cJSON *p;
    bool any = false;
    cJSON_ArrayForEach (p, json_member(tree, "policies")) {
        unsigned runs;
        unsigned n = count(tree, p->string, &runs);
        if (n == 0) {
            continue;
        }
        if (any) {
            (void)fputs(", ", out);
        } else {
            markup_format(out, "<p class=overloaded>%s: ", status);
        }
        markup_format(out, "%s in %u of %u replication%s", p->string, n, runs, text_plural(runs));
        any = true;
    }
    if (any) {
        markup_format(out, ". %s</p>\n", why);
    }
}

/* Warns of runs whose means mislead: the queue grew to their end, or a battery was empty. */
static void write_statuses(const cJSON *tree, FILE *out)
{
    write_status(tree, "OVERLOADED", report_overloaded,
                 "Its queue grew to the end of those runs, so a mean over them grows with their "
                 "length and is no property of the policy.",
                 out);
    write_status(tree, "BATTERY_EMPTY", report_battery_empty,
                 "The battery was empty before all requests were served, so means cover those that "
                 "were.",
                 out);
}

static void write_winner(const cJSON *tree, const cJSON *best, FILE *out)
{
    const cJSON *base = json_member(json_member(tree, "policies"), json_string(tree, "baseline"));
    double relevance = json_number(tree, "relevance_frac");
    const cJSON *m = json_member(best, METRIC_PRIMARY);
    const cJSON *energy = json_member(best, "energy_j_per_token");
    markup_format(out, "<b>%s", best->string);
    if (best == base) {
        (void)fputs("</b>, the baseline, answers reactive requests soonest: ", out);
        report_put_mean(out, m);
        (void)fputs(" s.", out);
        return;
    }
    (void)fputs("</b> answers reactive requests soonest: ", out);
    report_put_mean(out, m);
    (void)fputs(" s to the last token, against ", out);
    report_put_mean(out, json_member(base, METRIC_PRIMARY));
    markup_format(out, " s of <b>%s</b>: ", base->string);
    report_put_change(out, m, json_member(base, METRIC_PRIMARY), relevance);
    (void)fputs(".", out);
    if (energy != NULL) { /* an experiment may not keep energy */
        (void)fputs(" Joules per token, idle power included: ", out);
        report_put_change(out, energy, json_member(base, "energy_j_per_token"), relevance);
        (void)fputs(".", out);
    }
}

/* A reader would check these metrics of a policy that wins by one mean. */
static const char *const others[] = {"reactive.ttft_s.mean", "proactive.e2e_s.mean",
                                     "all.throughput_req_per_min", "energy_j_per_token", NULL};

/* Lists metrics in which the winner is significantly worse than the baseline. */
static void write_price(const cJSON *tree, const cJSON *best, FILE *out)
{
    const cJSON *base = json_member(json_member(tree, "policies"), json_string(tree, "baseline"));
    double relevance = json_number(tree, "relevance_frac");
    bool any = false;
    for (const char *const *name = others; *name != NULL && best != base; name++) {
        const cJSON *m = json_member(best, *name);
        const char *verdict = json_string(m, "verdict");
        const char *worse = metric_is_gain(*name) ? "lower" : "higher";
        if (report_is_shown(verdict) && strncmp(verdict, worse, strlen(worse)) == 0) {
            (void)fprintf(out, "%s%s: ", any ? "; " : " <b>It pays with</b> ", metric_title(*name));
            report_put_change(out, m, json_member(base, *name), relevance);
            any = true;
        }
    }
    (void)fputs(any ? "." : "", out);
}

/* Lists policies that are first by another metric, if their interval does not overlap the
 * winner's. */
static void write_other_firsts(const cJSON *policies, const cJSON *best, FILE *out)
{
    bool any = false;
    for (const char *const *name = others; *name != NULL; name++) {
        const cJSON *first = best_of(policies, *name);
        const cJSON *a = json_member(first, *name);
        const cJSON *b = json_member(best, *name);
        bool apart = json_number(a, "high") < json_number(b, "low") ||
                     json_number(b, "high") < json_number(a, "low");
        if (first != best && apart) {
            (void)fputs(any ? ", " : " First by other means: ", out);
            markup_format(out, "%s (%s)", first->string, metric_title(*name));
            any = true;
        }
    }
    (void)fputs(any ? "." : "", out);
}

void report_write_headline(const cJSON *tree, FILE *out)
{
    const cJSON *policies = json_member(tree, "policies");
    const cJSON *best = best_of(policies, METRIC_PRIMARY);
    (void)fputs("<p class=headline>", out);
    if (best == NULL) {
        (void)fputs("No reactive request finished under any policy.", out);
    } else {
        write_winner(tree, best, out);
        write_close_ones(policies, best, out);
        write_price(tree, best, out);
        write_other_firsts(policies, best, out);
    }
    (void)fputs("</p>\n", out);
    write_statuses(tree, out);
    double failed = json_number(tree, "failed_runs");
    if (failed > 0) {
        (void)fprintf(out, "<p class=overloaded>%.0f run%s failed: missing from every mean.</p>\n",
                      failed, text_plural((uint64_t)failed));
    }
}
