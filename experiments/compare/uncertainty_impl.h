/* The statistics of uncertainty.h, from completed runs. */
#pragma once

#include "experiments/compare/uncertainty.h"

#define BOOTSTRAPS 200

/* A pair during its analysis. */
struct uncertainty_work {
    const struct uncertainty *u;
    uint32_t n;        /* machines on which all runs of the pair succeeded */
    uint32_t *machine; /* [n] */
    double *run;       /* [n][UNCERTAINTY_REPEATS] differences of the runs on a machine */
    double *m;         /* [n] mean differences without sampling noise */
    double *sorted;    /* [n] scratch */
    double *noise;     /* [n][UNCERTAINTY_REPEATS] scratch */
    double *y;         /* [n] normal score of its rank */
    double *score;     /* [n] of the current factor */
    double *trace;     /* [replication] difference on the file's machine, less the mean */
    double kept_frac;  /* of the variance of d that is the model's */
};

/* Fills pairs and best_frac from value and the machines' scores. */
void uncertainty_analyse(struct uncertainty *u);

/* Fills the pair's factors with the largest shares, from w->m. */
void uncertainty_shares(struct uncertainty_work *w, uint64_t seed, struct uncertainty_pair *p);

/* Keeps the factors to show: the first UNCERTAINTY_TOP that are not idle. Finds the one whose
 * measurement helps most. */
void uncertainty_conclude(struct uncertainty_pair *p);

/* The replication that run `repeat` on a machine uses. Replications take turns. */
static inline uint32_t uncertainty_replication(const struct compare_plan *plan, uint32_t machine,
                                               uint32_t repeat)
{
    /* These are the replications of the plain comparison, whose differences on the file's machine
     * are known and serve as a control variate. */
    return (machine * UNCERTAINTY_REPEATS + repeat) % plan->replications;
}

/* First-order index of x for y (n pairs): adjusted R^2 of a quadratic, at least 0. `fit` (n values,
 * or NULL) receives E[y | x]. */
double uncertainty_first_order(const double *x, const double *y, const size_t *pick, size_t n,
                               double *fit);
