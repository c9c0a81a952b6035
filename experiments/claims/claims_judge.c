/* Verdicts from values, by the rules of claims.h. */
#include <gsl/gsl_sort.h>

#include "experiments/claims/claims.h"

const char *const claim_verdict_names[] = {
    "reproduced", "calibrated",     "compatible, not decided",
    "direction",  "not reproduced", "not modellable"};

bool claim_verdict_holds(enum claim_verdict v)
{
    return v == CLAIM_REPRODUCED || v == CLAIM_CALIBRATED;
}

/* Percentage of finite values below v; ties count half. */
static double percentile_of(const double *x, uint32_t n, double v)
{
    double below = 0.0;
    uint32_t finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            finite++;
            below += x[i] < v ? 1.0 : x[i] == v ? 0.5 : 0.0;
        }
    }
    return finite > 0 ? 100.0 * below / finite : (double)NAN;
}

double claim_ranked(const double *sorted, uint32_t n, double p)
{
    double rank = fmin(fmax(p * (n + 1.0), 1.0), n);
    uint32_t below = (uint32_t)rank;
    SIM_ASSERT(below >= 1 && below <= n && sorted[0] <= sorted[n - 1]);
    double left = sorted[below - 1];
    return below < n ? left + (rank - below) * (sorted[below] - left) : left;
}

/* Sets the range of single traces. Values that differ only by rounding have no spread. */
static void range(struct claim_check *k, uint32_t n)
{
    OWNED double *sorted = xcalloc(n + 1, sizeof *sorted);
    uint32_t finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(k->x[i])) {
            sorted[finite++] = k->x[i];
        }
    }
    k->least = k->lowest = (double)INFINITY;
    k->most = k->highest = -(double)INFINITY;
    if (finite > 0) {
        gsl_sort(sorted, 1, finite);
        k->lowest = sorted[0];
        k->highest = sorted[finite - 1];
        k->least = claim_ranked(sorted, finite, (1.0 - CLAIM_RANGE_FRAC) / 2.0);
        k->most = claim_ranked(sorted, finite, (1.0 + CLAIM_RANGE_FRAC) / 2.0);
    }
    if (k->highest - k->lowest <= 1e-12 * fabs(k->mean.mean)) {
        k->mean.sd = 0.0;
        k->mean.low = k->mean.high = k->mean.mean;
        k->least = k->mean.mean - k->tolerance_frac * fabs(k->mean.mean);
        k->most = k->mean.mean + k->tolerance_frac * fabs(k->mean.mean);
    }
}

/* Bounds of the mean; without spread, or for a single value, the value itself. */
static double mean_low(const struct claim_check *k)
{
    return isfinite(k->mean.low) ? k->mean.low : k->mean.mean;
}

static double mean_high(const struct claim_check *k)
{
    return isfinite(k->mean.high) ? k->mean.high : k->mean.mean;
}

static enum claim_verdict judge_number(const struct claim_check *k)
{
    double middle = (k->low + k->high) / 2.0;
    bool right_side = true;
    if (isfinite(k->neutral)) {
        right_side = middle > k->neutral ? mean_low(k) > k->neutral : mean_high(k) < k->neutral;
    }
    /* A paper's number is from one trace, so it is compared with single traces, not with the
     * interval of their mean, which becomes arbitrarily narrow with more replications. */
    bool plausible = k->least <= k->high && k->most >= k->low;
    double effect = fabs(middle - (isfinite(k->neutral) ? k->neutral : 0.0));
    effect = fmax(effect, k->high - k->low);
    if (right_side && plausible) {
        /* A wide range would agree with nearly any number, so it only counts as compatible. */
        bool narrow = k->mean.sd <= 0.0 || k->most - k->least <= CLAIM_WIDTH_FACTOR * effect;
        return narrow ? CLAIM_REPRODUCED : CLAIM_COMPATIBLE;
    }
    return right_side && isfinite(k->neutral) ? CLAIM_DIRECTION : CLAIM_NOT_REPRODUCED;
}

double claim_worst_trace(const struct claim_check *k)
{
    return k->kind == CHECK_ABOVE ? k->lowest : k->highest;
}

static enum claim_verdict judge_order(const struct claim_check *k)
{
    bool above = k->kind == CHECK_ABOVE;
    if (k->every_trace) {
        bool kept = above ? claim_worst_trace(k) > k->low : claim_worst_trace(k) < k->low;
        return kept ? CLAIM_REPRODUCED : CLAIM_NOT_REPRODUCED;
    }
    if (above ? mean_low(k) > k->low : mean_high(k) < k->low) {
        return CLAIM_REPRODUCED;
    }
    return (above ? k->mean.mean > k->low : k->mean.mean < k->low) ? CLAIM_DIRECTION
                                                                   : CLAIM_NOT_REPRODUCED;
}

static void judge_check(struct claim_check *k, uint32_t n)
{
    k->mean = stats_mean(k->x, n, STATS_LEVEL_FRAC);
    range(k, n);
    k->percentile =
        k->kind == CHECK_NUMBER ? percentile_of(k->x, n, (k->low + k->high) / 2.0) : (double)NAN;
    if (!isfinite(k->mean.mean)) {
        k->verdict = CLAIM_NOT_REPRODUCED;
    } else {
        k->verdict = k->kind == CHECK_NUMBER ? judge_number(k) : judge_order(k);
    }
}

/* Writes one line about the check that decided. */
static void explain(struct claim *c, const struct claim_check *k)
{
    char text[200] = "";
    if (!isfinite(k->mean.mean)) {
        (void)snprintf(text, sizeof text, "%.80s: not defined in these runs", k->name);
    } else if (k->verdict == CLAIM_REPRODUCED) {
        (void)snprintf(text, sizeof text, "%s",
                       c->n_checks == 1 ? "as published" : "every check as published");
    } else if (k->verdict == CLAIM_COMPATIBLE) {
        (void)snprintf(text, sizeof text, "%.80s: single traces show %.3g to %.3g, too wide to say",
                       k->name, k->least, k->most);
    } else if (k->kind == CHECK_NUMBER && k->mean.sd > 0.0) {
        (void)snprintf(text, sizeof text, "%.80s: single traces show %.3g to %.3g", k->name,
                       k->least, k->most);
    } else if (k->kind == CHECK_NUMBER) {
        (void)snprintf(text, sizeof text, "%.80s: %.3g where %.3g is published", k->name,
                       k->mean.mean, (k->low + k->high) / 2.0);
    } else if (k->every_trace) {
        (void)snprintf(text, sizeof text, "%.80s: %.3g in the worst of %u trace%s, not %s %.3g",
                       k->name, claim_worst_trace(k), k->mean.n, text_plural(k->mean.n),
                       k->kind == CHECK_ABOVE ? "above" : "below", k->low);
    } else if (k->mean.sd <= 0.0) {
        (void)snprintf(text, sizeof text, "%.80s: %.4g, not %s %.4g", k->name, k->mean.mean,
                       k->kind == CHECK_ABOVE ? "above" : "below", k->low);
    } else {
        (void)snprintf(text, sizeof text, "%.80s: %.3g [%.3g, %.3g], not %s %.3g", k->name,
                       k->mean.mean, mean_low(k), mean_high(k),
                       k->kind == CHECK_ABOVE ? "above" : "below", k->low);
    }
    (void)snprintf(c->reason, sizeof c->reason, "%s%s%.340s", text, c->note != NULL ? "; " : "",
                   c->note != NULL ? c->note : "");
}

void claim_judge(struct claim *c, uint32_t n)
{
    if (c->not_modellable != NULL) {
        c->verdict = CLAIM_NOT_MODELLABLE;
        (void)snprintf(c->reason, sizeof c->reason, "%s", c->not_modellable);
        return;
    }
    const struct claim_check *worst = NULL;
    for (uint32_t i = 0; i < c->n_checks; i++) {
        struct claim_check *k = &c->checks[i];
        judge_check(k, n);
        if (c->set_by != NULL && k->verdict == CLAIM_REPRODUCED) {
            k->verdict = CLAIM_CALIBRATED;
        }
        if (!k->informative && (worst == NULL || k->verdict > worst->verdict)) {
            worst = k;
        }
    }
    worst = worst != NULL ? worst : &c->checks[0];
    c->verdict = worst->verdict;
    explain(c, worst);
    if (c->verdict == CLAIM_CALIBRATED) {
        (void)snprintf(c->reason, sizeof c->reason, "not a test: %.400s", c->set_by);
    }
}
