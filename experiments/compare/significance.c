#include "experiments/compare/significance.h"

#include "sim/stats/stats_shift.h"

void significance_adjust(double *p, size_t n_first, size_t n_others)
{
    stats_holm(p, n_first, p);
    stats_holm(p + n_first, n_others, p + n_first);
    double first = 0.0; /* the chance at which all of the first are shown */
    for (size_t i = 0; i < n_first && n_others > 0; i++) {
        p[i] = p[i] < 0.5 ? 2.0 * p[i] : isnan(p[i]) ? p[i] : 1.0;
        first = p[i] > first ? p[i] : first; /* NaN: no difference */
    }
    for (size_t i = n_first; i < n_first + n_others; i++) {
        double all = p[i] > first ? p[i] : first;
        p[i] = 2.0 * p[i] < all ? 2.0 * p[i] : all;
    }
}

enum stats_finding significance_judge(const struct stats_paired *p, double p_adjusted)
{
    enum stats_finding f = stats_judge(p);
    bool lost = (f == STATS_LOWER || f == STATS_HIGHER) && p_adjusted > 1.0 - STATS_LEVEL_FRAC;
    return lost ? STATS_NOT_SHOWN : f;
}

const char *significance_text(const struct stats_paired *p, double p_adjusted)
{
    const char *text = stats_verdict(p);
    if (significance_judge(p, p_adjusted) == stats_judge(p)) {
        return text;
    }
    int n = (int)strcspn(text, "("); /* "(significant)" is for what the correction leaves */
    return document_format("%.*s(not significant after Holm's correction)", n, text);
}
