/* Texts and numbers of the report page. */
#include "experiments/report/report_impl.h"
#include "sim/stats/stats.h"

static struct stats_interval interval_of(const cJSON *m)
{
    double mean = json_number(m, "mean");
    return (struct stats_interval){.mean = mean,
                                   .low = json_number(m, "low"),
                                   .high = json_number(m, "high"),
                                   .n = isnan(mean) ? 0u : 1u};
}

void report_put_mean(FILE *out, const cJSON *m)
{
    struct stats_interval s = interval_of(m);
    (void)fputs(s.n > 0 ? stats_format(&s) : "&ndash;", out);
}

bool report_is_shown(const char *verdict)
{
    bool differs = strncmp(verdict, "lower", 5) == 0 || strncmp(verdict, "higher", 6) == 0;
    return differs && strstr(verdict, "not significant") == NULL &&
           strstr(verdict, "no interval") == NULL;
}

void report_put_change(FILE *out, const cJSON *m, const cJSON *base, double relevance_frac)
{
    const char *verdict = json_string(m, "verdict");
    double diff = json_number(m, "diff");
    /* The percentage is of the baseline's mean over the pairs. The baseline's own mean also covers
     * runs without a pair. */
    double per_unit = fabs((json_number(m, "ratio") - 1.0) / diff);
    double percent =
        100.0 * diff * (isfinite(per_unit) ? per_unit : 1.0 / fabs(json_number(base, "mean")));
    struct stats_interval s = {.mean = diff,
                               .low = json_number(m, "diff_low"),
                               .high = json_number(m, "diff_high"),
                               .n = 1};
    if (!report_is_shown(verdict) || !isfinite(percent)) {
        markup_put(out, verdict);
        return;
    }
    /* The interval is that of the difference. As a share of an uncertain mean, it could reach below
     * -100 %. */
    const char *sign = diff > 0.0 ? "+" : "";
    int decimals = fabs(percent) >= 9.95 ? 0 : fabs(percent) >= 0.995 ? 1 : 2;
    (void)fprintf(out, "%s%s (%s%.*f %%)", sign, stats_format(&s), sign, decimals, percent);
    if (fabs(percent) < 100.0 * relevance_frac) {
        (void)fprintf(out, ": shown, but below the %g %% that matter", 100.0 * relevance_frac);
    }
    if (cJSON_IsNull(json_member(m, "p_holm"))) {
        (void)fputs(" (not corrected)", out);
    }
}

static unsigned of_status(const cJSON *tree, const char *policy, const char *status, unsigned *runs)
{
    const cJSON *v = json_member(json_member(tree, "verdicts"), policy);
    double empty = json_number(v, "battery_empty"); /* present only if a run ended so */
    double all =
        json_number(v, "overloaded") + json_number(v, "stable") + json_number(v, "undecided");
    all += isfinite(empty) ? empty : 0.0;
    double n = json_number(v, status);
    *runs = isfinite(all) ? (unsigned)all : 0;
    return isfinite(all) && isfinite(n) ? (unsigned)n : 0;
}

unsigned report_overloaded(const cJSON *tree, const char *policy, unsigned *runs)
{
    return of_status(tree, policy, "overloaded", runs);
}

unsigned report_battery_empty(const cJSON *tree, const char *policy, unsigned *runs)
{
    return of_status(tree, policy, "battery_empty", runs);
}
