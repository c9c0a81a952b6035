/* Texts and numbers of the report page. */
#include <math.h>
#include <string.h>

#include "experiments/report/report_impl.h"

/* ---- text ---- */

const char *report_text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return s != NULL ? s : "";
}

double report_number_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

/* Digits by the width of the interval: what it leaves open is not printed. */
void report_put_mean(FILE *out, const cJSON *m)
{
    double mean = report_number_of(m, "mean");
    double half = (report_number_of(m, "high") - report_number_of(m, "low")) / 2.0;
    if (isnan(mean)) {
        (void)fputs("&ndash;", out);
        return;
    }
    int digits = 4;
    if (half > 0.0 && fabs(mean) > 0.0) {
        digits = (int)ceil(log10(fabs(mean) / half)) + 2;
        digits = digits < 2 ? 2 : digits > 6 ? 6 : digits;
    }
    (void)fprintf(out, "%.*g", digits, mean);
    if (half > 0.0) {
        (void)fprintf(out, " <small>&plusmn; %.2g</small>", half);
    }
}

const cJSON *report_metric_of(const cJSON *policy, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(policy, name);
}

void report_put_change(FILE *out, const cJSON *m, const cJSON *base)
{
    double change = report_number_of(m, "diff") / report_number_of(base, "mean");
    if (isnan(change)) {
        return;
    }
    (void)fprintf(out, "%+.0f %% [%+.0f, %+.0f]", 100.0 * change,
                  100.0 * report_number_of(m, "diff_low") / report_number_of(base, "mean"),
                  100.0 * report_number_of(m, "diff_high") / report_number_of(base, "mean"));
}
