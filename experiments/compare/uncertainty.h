/* Does A beat B on every machine within the known ranges?
 *
 * Every policy runs on N sampled machines (machines.h), twice on each, on common random numbers:
 * the same machine, requests and noise for all. The difference of two policies on machine i,
 * averaged over its two runs, is D_i = M_i + noise. The spread within a machine is sampling; the
 * rest of the spread between machines is the model's. The effect of a run's requests on the file's
 * machine, known from the plain comparison, is removed first (a control variate). M_i is D_i shrunk
 * towards the median until the variance of the noise is gone. Scales are of the middle of the
 * machines, so a few overwhelmed ones do not move the others.
 *
 *   probability  share of machines on which A is better, with its standard error
 *   intervals    of the difference on the file's machine over R replications (sampling only), and
 *                of M over machines (model only)
 *   shares       first-order Sobol index of each factor, Var(E[y | x]) / Var(y). y is the normal
 *                score of M's rank, so that a few overloaded machines do not decide it. E is a
 *                quadratic in the factor's score, adjusted for its degrees of freedom, with a
 *                bootstrap interval over machines
 *   flip point   how far a factor alone has to go, within its range, before the order turns: found
 *                by running at both ends and halving. A factor whose two ends give the same
 *                difference, to the last digit, cannot matter: the next one takes its place
 *   next         the factor whose measurement would lower the probability of a wrong order most:
 *                that probability now, min(P, 1 - P), less its expectation when x is known
 */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/compare/machines.h"
#include "experiments/shell/document.h"

#define UNCERTAINTY_REPEATS 2     /* runs of a policy on a machine */
#define UNCERTAINTY_TOP 3         /* factors shown */
#define UNCERTAINTY_CANDIDATES 12 /* of which they are the first that change anything */
#define UNCERTAINTY_LIST_MIN 64   /* machines: with fewer, chance names the factors */
#define UNCERTAINTY_FLIP_RUNS 3
#define UNCERTAINTY_FLIP_STEPS 4
#define UNCERTAINTY_MIN 16

struct uncertainty_share {
    uint32_t factor;
    double share, low, high; /* of the variance between machines */
    double wrong_after;      /* expected probability of a wrong order once it is known */
    bool flips;
    double holds_at, turns_at; /* values of the factor: the order still holds, has turned; run */
    double difference_holds, difference_turns;
    double difference_file, difference_low, difference_high; /* with the factor alone there, run */
    double middle, difference_middle;                        /* halfway between those two, run */
    bool idle;      /* both ends of its range change nothing */
    uint32_t round; /* steps of the flip point so far */
};

struct uncertainty_pair { /* a policy against the baseline in one metric */
    uint32_t policy, metric;
    bool gain;              /* more is better */
    double better_frac, se; /* probability that the policy is better */
    double not_worse_frac;  /* that it is not worse by more than the plan's relevance */
    double nominal;         /* on the file's machine, mean of all replications */
    double sampling_low, sampling_high;
    double model_low, model_high;
    double model_var_frac; /* of the variance between single runs on different machines */
    struct uncertainty_share top[UNCERTAINTY_CANDIDATES]; /* in the end those shown */
    uint32_t n_top, n_idle;
    int next; /* index in top; -1: nothing that is known of helps */
};

/* A command has it until it ends. */
struct uncertainty {
    /* The question; borrowed. */
    const struct compare_plan *plan;
    const struct compare_result *nominal; /* the plain comparison, which has run */
    const char *const *metrics;
    uint32_t n_metrics;
    struct machines machines; /* drawn for the plan's configuration */
    /* The results. */
    uint32_t n_policies, n_failed, runs;
    uint32_t n_cut;                 /* of the machines' runs: they left requests unserved */
    double *value;                  /* [machine][repeat][policy][metric] */
    struct uncertainty_pair *pairs; /* policy by policy, metric by metric */
    uint32_t n_pairs;
    double *best_frac; /* [metric][policy]: share of machines on which it is best */
    /* [metric][policy]: middle of its means over the machines, NaN where it ran on none; kept. */
    struct uncertainty_range {
        double low, high;
    } * means;
};

/* Runs the machines, then looks for the flip points of the first metric. */
void uncertainty_run(struct uncertainty *u);

/* Adds the results to a document of the caller's. */
void uncertainty_document(const struct compare_plan *plan, const struct uncertainty *u,
                          struct document *d);
