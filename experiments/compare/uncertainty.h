/* Whether policy A beats policy B on every machine within the known ranges.
 *
 * Every policy runs on N sampled machines (machines.h), twice on each, on common random numbers:
 * the same machine, requests and noise for all. The difference of two policies on machine i,
 * averaged over its two runs, is D_i = M_i + noise. The spread within a machine is sampling error;
 * the rest of the spread between machines is the uncertainty of the model. The effect of a run's
 * requests on the file's machine, known from the plain comparison, is removed first (a control
 * variate). M_i is D_i shrunk towards the median, which removes the variance of the noise. Scales
 * are robust (from the middle of the machines), so a few overloaded machines do not move the
 * others.
 *
 *   probability  share of machines on which A is better, with its standard error: that of a share
 *                of N, or that of bootstraps over machines if noise within machines makes it larger
 *   intervals    of the difference on the file's machine over R replications (sampling only), and
 *                of M over machines (model only)
 *   shares       first-order Sobol index of each factor, Var(E[y | x]) / Var(y). y is the normal
 *                score of M's rank, so that a few overloaded machines do not decide it. E is a
 *                quadratic in the factor's score, adjusted for its degrees of freedom, with a
 *                bootstrap interval over machines
 *   flip point   the change of a single factor, within its range, that reverses the order: found by
 *                runs at both ends and bisection. A factor whose ends give exactly the same
 *                difference cannot matter, so the next one replaces it
 *   next         the factor whose measurement would lower the probability of a wrong order most:
 *                min(P, 1 - P) now, minus its expectation once x is known */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/compare/machines.h"
#include "experiments/shell/document.h"

#define UNCERTAINTY_REPEATS 2     /* runs of a policy on a machine */
#define UNCERTAINTY_TOP 3         /* factors shown */
#define UNCERTAINTY_CANDIDATES 12 /* factors tried; the first ones with an effect are shown */
#define UNCERTAINTY_LIST_MIN 64   /* machines; with fewer, the ranking is mostly chance */
#define UNCERTAINTY_FLIP_RUNS 3
#define UNCERTAINTY_FLIP_STEPS 4
#define UNCERTAINTY_MIN 16

struct uncertainty_share {
    uint32_t factor;
    double share, low, high; /* of the variance between machines */
    double wrong_after;      /* expected probability of a wrong order once the factor is known */
    bool flips;
    double holds_at, turns_at; /* values of the factor: order holds, is reversed; run */
    double difference_holds, difference_turns;
    double difference_file, difference_low, difference_high; /* only this factor changed; run */
    double middle, difference_middle; /* halfway between holds_at and turns_at; run */
    bool idle;                        /* neither end of its range changes the difference */
    uint32_t round;                   /* steps of the flip point so far */
};

struct uncertainty_pair { /* a policy against the baseline in one metric */
    uint32_t policy, metric;
    bool gain;              /* more is better */
    double better_frac, se; /* probability that the policy is better; its standard error */
    double not_worse_frac;  /* probability that it is not worse by more than the plan's relevance */
    double nominal;         /* on the file's machine, mean of all replications */
    double sampling_low, sampling_high;
    double model_low, model_high;
    double model_var_frac; /* share of the variance between single runs on different machines */
    struct uncertainty_share top[UNCERTAINTY_CANDIDATES]; /* finally those shown */
    uint32_t n_top, n_idle;
    int next; /* index in top; -1: no factor helps */
};

/* Kept by the command until it ends. */
struct uncertainty {
    /* Inputs; borrowed. */
    const struct compare_plan *plan;
    const struct compare_result *nominal; /* the result of the plain comparison */
    const char *const *metrics;
    uint32_t n_metrics;
    struct machines machines; /* drawn for the plan's configuration */
    /* The results. */
    uint32_t n_policies, n_failed, runs;
    uint32_t n_cut;                 /* runs on drawn machines that left requests unserved */
    double *value;                  /* [machine][repeat][policy][metric] */
    struct uncertainty_pair *pairs; /* policy by policy, metric by metric */
    uint32_t n_pairs;
    /* [metric][policy]: share of machines on which its two runs are best. Their noise counts,
     * unlike in better_frac. */
    double *best_frac;
    /* [metric][policy]: central range of its means over the machines; NaN: it ran on none. Kept. */
    struct uncertainty_range {
        double low, high;
    } * means;
};

/* Runs on all drawn machines, then searches for the flip points of the first metric. */
void uncertainty_run(struct uncertainty *u);

void uncertainty_document(const struct compare_plan *plan, const struct uncertainty *u,
                          struct document *d);
