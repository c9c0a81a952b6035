/* The best of several, with as few runs as that takes: sequential ranking and selection.
 *
 * The procedure is KN++ (Kim and Nelson 2006, Operations Research 54(3), 475-488), which is KN
 * (Kim and Nelson 2001, ACM TOMACS 11(3), 251-273) with variances that follow the data. Everybody
 * left has r replications, on common random numbers. i leaves when some l left is ahead:
 *     mean_i < mean_l - W_il,   W_il = max(0, delta / (2 r) (h^2 S_il^2 / delta^2 - r))
 *     h^2 = 2 eta (r - 1),      eta = ((2 alpha / (k - 1))^(-2 / (r - 1)) - 1) / 2
 * with S_il^2 the sample variance of the paired differences, alpha = 1 - confidence, and k
 * alternatives (c = 1 in both papers). The one that is left is the best with the confidence asked,
 * if its true mean is ahead of every other's by delta. Otherwise it is within delta of the best
 * with that confidence.
 *
 * KN++ holds in the limit of small delta. The coverage at the sizes used here is measured
 * (COVERAGE.md). The procedure looks at r in steps of a tenth. Fewer looks err less. */
#pragma once

#include "experiments/compare/compare.h"

#define SELECT_FIRST_MIN 5 /* replications of the first stage */

struct select_options {
    double confidence_frac; /* in (1 / k, 1) */
    double delta;           /* indifference, in units of the values; above 0, or: */
    double delta_frac;      /* delta 0: this share of the mean of `base` in the first stage */
    uint32_t base;          /* an alternative; where it has no value, the first that has one */
    uint32_t first, most;   /* replications of the first stage, and at most */
    bool gain;              /* more is better */
};

/* One alternative. */
struct select_one {
    double *values; /* `n` of them */
    uint32_t n;     /* replications run */
    bool left;      /* not shown to be behind */
    bool failed;    /* it was out at once */
};

struct select_result {
    struct select_one *of; /* k of them */
    uint32_t k, best;      /* best: the first of those ahead; k where all failed */
    uint32_t replications; /* of those left */
    double delta;          /* as used; NaN: nobody has a value, and it ended after that stage */
    bool gain;             /* more is better */
    bool decided;          /* one is left */
    uint32_t empty;        /* replications in which nobody had a workload (select_run) */
    uint64_t runs;
    /* Runs of equal replication with the same guarantee, the lesser of two numbers. One is k times
     * the replications of the last look, as if nobody had left. The other is a fixed number, for
     * which the variances seen are taken as known (Bonferroni, normal). */
    uint64_t equal_runs;
};

/* Fills values[i][from .. to - 1] of every i with left[i]. NaN: not defined there, and the
 * replication does not count for i. Infinite: i failed, and is out. */
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
    bool given;      /* the indifference was */
    bool most_given; /* and so was `most` */
};
extern const struct option_table select_option_table;
/* 0, or -EINVAL with an error where another of the options has no --select. */
int select_asked_check(const struct select_asked *o, struct err *e);

/* Replications of the first stage where so many are asked for. */
uint32_t select_first(const struct select_asked *o, uint32_t replications);
/* Selects among a plan's policies by a metric's mean. The first stage has plan->replications, at
 * most `most`; the indifference is a share of the baseline's mean over it. A policy that fails or
 * leaves requests is out. */
void select_run(const struct compare_plan *plan, const struct select_asked *o, const char *metric,
                struct select_result *out);

/* Adds {metric, confidence_frac, indifference, best, decided, replications, runs, equal_runs,
 * policies: {policy: {state, n, mean, low, high, behind, behind_low, behind_high}}}. `behind` is
 * the paired difference from the best over the replications that both have, above 0 worse. */
void select_document(const struct select_asked *o, const char *metric,
                     const struct config_policy *policies, const struct select_result *r,
                     struct document *d);
