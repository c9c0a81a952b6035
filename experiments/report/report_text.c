/* Texts and numbers of the report page. */
#include <math.h>
#include <string.h>

#include "experiments/report/report_impl.h"
#include "sim/stats/stats.h"

const cJSON *report_member(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

const char *report_text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(report_member(o, key));
    return s != NULL ? s : "";
}

double report_number_of(const cJSON *o, const char *key)
{
    const cJSON *v = report_member(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

static struct stats_interval interval_of(const cJSON *m)
{
    double mean = report_number_of(m, "mean");
    return (struct stats_interval){.mean = mean,
                                   .low = report_number_of(m, "low"),
                                   .high = report_number_of(m, "high"),
                                   .n = isnan(mean) ? 0u : 1u};
}

void report_put_mean(FILE *out, const cJSON *m)
{
    char text[96];
    struct stats_interval s = interval_of(m);
    (void)fputs(s.n > 0 ? stats_format(&s, text, sizeof text) : "&ndash;", out);
}

void report_put_short(FILE *out, const cJSON *m)
{
    char text[96];
    struct stats_interval s = interval_of(m);
    double half = (s.high - s.low) / 2.0;
    if (s.n == 0) {
        (void)fputs("&ndash;", out);
        return;
    }
    (void)stats_format(&s, text, sizeof text);
    char *bracket = strchr(text, '[');
    if (bracket == NULL) {
        (void)fputs(text, out);
        return;
    }
    bracket[-1] = '\0';
    const char *point = strchr(text, '.');
    (void)fprintf(out, "%s&pm;%.*f", text, point != NULL ? (int)strlen(point + 1) : 0, half);
}

void report_put_change(FILE *out, const cJSON *m, const cJSON *base, double relevance_frac)
{
    const char *verdict = report_text_of(m, "verdict");
    double to_percent = 100.0 / fabs(report_number_of(base, "mean"));
    struct stats_interval s = {.mean = to_percent * report_number_of(m, "diff"),
                               .low = to_percent * report_number_of(m, "diff_low"),
                               .high = to_percent * report_number_of(m, "diff_high"),
                               .n = 1};
    bool shown = strncmp(verdict, "lower", 5) == 0 || strncmp(verdict, "higher", 6) == 0;
    if (!shown || !isfinite(s.mean)) {
        markup_put(out, verdict);
        return;
    }
    char text[96];
    (void)fprintf(out, "%s%s %%", s.mean > 0.0 ? "+" : "", stats_format(&s, text, sizeof text));
    if (fabs(s.mean) < 100.0 * relevance_frac) {
        (void)fprintf(out, ": shown, but below the %g %% that matter", 100.0 * relevance_frac);
    }
}

unsigned report_overloaded(const cJSON *tree, const char *policy, unsigned *runs)
{
    const cJSON *v = report_member(report_member(tree, "verdicts"), policy);
    double overloaded = report_number_of(v, "overloaded");
    double all = overloaded + report_number_of(v, "stable") + report_number_of(v, "backlogged");
    *runs = isfinite(all) ? (unsigned)all : 0;
    return isfinite(all) ? (unsigned)overloaded : 0;
}
