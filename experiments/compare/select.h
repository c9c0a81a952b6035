/* Finds the best of several alternatives with few runs: sequential ranking and selection.
 *
 * The procedure is KN++ (Kim and Nelson 2006, Operations Research 54(3), 475-488), which is KN (Kim
 * and Nelson 2001, ACM TOMACS 11(3), 251-273) with variances that are updated with the data. All
 * remaining alternatives have r replications, on common random numbers. Alternative i is dropped if
 * a remaining l has
 *     mean_i < mean_l - W_il,   W_il = max(0, delta / (2 r) (h^2 S_il^2 / delta^2 - r))
 *     h^2 = 2 eta (r - 1),      eta = ((2 alpha / (k - 1))^(-2 / (r - 1)) - 1) / 2
 * with S_il^2 the sample variance of the paired differences, alpha = 1 - confidence, and k
 * alternatives (c = 1 in both papers). With probability 1 - alpha, the last alternative is the best
 * if the best true mean is ahead of all others by delta. Otherwise it is within delta of the best
 * with that probability.
 *
 * KN++ holds in the limit of small delta. The coverage at the sizes used here is measured
 * (COVERAGE.md). The procedure tests each time r has grown by a tenth. Fewer tests err less. */
#pragma once

#include "experiments/compare/compare.h"

#define SELECT_FIRST_MIN 5 /* replications of the first stage */

struct select_options {
    double confidence_frac; /* in (1 / k, 1) */
    double delta;           /* indifference zone, in units of the values; 0: by delta_frac */
    double delta_frac;      /* for delta 0: share of the mean of `base` in the first stage */
    uint32_t base;          /* an alternative; if it has no value, the first one with a value */
    uint32_t first, most;   /* replications of the first stage; largest number */
    bool gain;              /* more is better */
};

/* One alternative. */
struct select_one {
    double *values; /* `n` of them */
    uint32_t n;     /* replications run */
    bool left;      /* not dropped */
    bool failed;    /* it failed and was dropped */
};

struct select_result {
    struct select_one *of; /* k of them */
    uint32_t k, best;      /* best: index of the best mean; k if all failed */
    uint32_t replications; /* of the remaining ones */
    double delta;   /* as used; NaN: no alternative has a value, so the first stage was the last */
    bool gain;      /* more is better */
    bool decided;   /* only one remains */
    uint32_t empty; /* replications without requests (select_run) */
    const char *failure; /* kept; of the first run that failed; NULL: none (select_run) */
    uint64_t runs;
    /* Runs that equal replication would need for the same guarantee, the lesser of two numbers. One
     * is k times the replications of the last test. The other is for a fixed sample size that
     * treats the variances seen as known (Bonferroni, normal). */
    uint64_t equal_runs;
};

/* Fills values[i][from .. to - 1] of every i with left[i]. NaN: not defined, so the replication
 * does not count for i. Infinite: i failed and is dropped. */
typedef void select_measure(void *ctx, const bool *left, uint32_t from, uint32_t to,
                            double *const *values);
void select_by(const struct select_options *o, uint32_t k, select_measure *measure, void *ctx,
               struct select_result *out);
/* Mean of an alternative over its replications; NaN where it failed. */
double select_mean(const struct select_result *r, uint32_t i);

/* --select, --indifference and --at-most of a command. */
struct select_asked {
    double confidence_frac; /* 0: no selection */
    double indifference_percent;
    uint32_t most;
    bool given;      /* on the command line */
    bool most_given; /* the same for `most` */
};
extern const struct option_table select_option_table;
/* Returns 0, or -EINVAL with an error if the other options are given without --select. */
int select_asked_check(const struct select_asked *o, struct err *e);

/* Replications of the first stage if `replications` are asked for. */
uint32_t select_first(const struct select_asked *o, uint32_t replications);
/* Selects among a plan's policies by a metric's mean. The first stage has plan->replications, at
 * most `most`; the indifference is a share of the baseline's mean over it. A policy that fails or
 * leaves requests unserved is dropped. */
void select_run(const struct compare_plan *plan, const struct select_asked *o, const char *metric,
                struct select_result *out);

/* Adds {metric, confidence_frac, indifference, best, decided, replications, runs, equal_runs,
 * policies: {policy: {state, n, mean, low, high, behind, behind_low, behind_high}}}. `behind` is
 * the paired difference from the best over the replications of both; > 0 is worse. */
void select_document(const struct select_asked *o, const char *metric,
                     const struct config_policy *policies, const struct select_result *r,
                     struct document *d);
