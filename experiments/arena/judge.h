/* Runs a candidate and the reference of a suite on the same requests, and scores the candidate.
 *
 * Cell (point, replication) has number point * replications + replication; a pair (point, metric)
 * has number point * metrics + metric. */
#pragma once

#include "experiments/arena/certificate.h"
#include "experiments/arena/score.h"
#include "experiments/compare/select.h"
#include "experiments/run/study.h"
#include "experiments/shell/document.h"
#include "experiments/sweep/suite.h"

/* Runs of one policy on every point of a suite. */
struct judge_runs {
    struct study_outcomes outcomes;
    uint32_t replications;
};

/* Runs a policy. how->store: known runs are not repeated. judge_runs_fini frees the result. */
void judge_run(const struct suite *s, const struct config_policy *p, uint32_t replications,
               const struct study_how *how, struct judge_runs *out);
/* Like judge_run, for replications `first` .. first + replications - 1. */
void judge_run_from(const struct suite *s, const struct config_policy *p, uint32_t first,
                    uint32_t replications, const struct study_how *how, struct judge_runs *out);
void judge_runs_fini(struct judge_runs *r);
/* Fills the mean clipped gain of each replication (score.h). `into` belongs to the caller.
 * Infinite: the policy failed or left requests unserved at a point. */
void judge_gains(const struct suite *s, const struct judge_runs *policy,
                 const struct judge_runs *reference, double *into);
/* Fills a metric's values at a point, one per replication; NaN: undefined. `into` belongs to the
 * caller. */
void judge_values(const struct judge_runs *r, uint32_t point, const char *metric, double *into);
/* Whether a policy failed, or left requests unserved that the reference served. */
bool judge_lost(const struct judge_runs *policy, const struct judge_runs *reference, uint32_t point,
                uint32_t replication);

struct judge_result {
    struct score score;
    struct score_cell *cells; /* kept; by pair */
    double *means;            /* kept; means of the policy over its replications, by pair */
    double *reference_means;
    uint32_t
        worst; /* the pair with the lowest gain, scored or not: a regression counts at any point */
    /* Mean ln distance from the certificate's best values, over scored pairs. 0: equally good; NaN:
     * no certificate for this number of replications. */
    double headroom;
    uint32_t n_failed;
    const struct study_outcome *failed; /* the first; NULL: none */
    uint32_t failed_cell;
};

/* c may be NULL: no certificate. */
void judge_result_of(const struct suite *s, const struct judge_runs *policy,
                     const struct judge_runs *reference, const struct certificate *c,
                     struct judge_result *out);

/* ---- the result as a document ---- */

/* Adds {suite, split, hash, frozen, points, scored_points, replications, reference}. */
void judge_document_suite(const struct suite *s, const char *split, uint32_t replications,
                          const char *reference, struct document *d);
/* Adds {policy, score, interval: {low, high}, p_better, headroom_left, failed_runs,
 * significant_regressions: [{name, ratio}], cells: {point: {metric: {value, reference, gain,
 * gain_low, gain_high, best, p_worse, p_holm, scored, lost}}}}. Gains are ratios, above 1 better;
 * headroom_left is a share. c may be NULL. */
void judge_document(const struct suite *s, const char *policy, const struct judge_result *r,
                    const struct certificate *c, struct document *d);

/* ---- the best of several candidates, with few runs (compare/select.h) ---- */

/* Selects the best candidate. A value is the mean clipped gain over the reference in one
 * replication of the suite, and the indifference is ln(1 + percent / 100). So a run of the result
 * is one replication of all points. A candidate that fails or leaves requests unserved is dropped.
 */
void choose_best(const struct suite *s, const struct config_policy *candidates, uint32_t n,
                 const struct config_policy *reference, const struct select_asked *asked,
                 const struct study_how *how, struct select_result *out);

/* ---- texts that help to improve a candidate: why it lost where it lost most ---- */

struct words_of {
    const struct suite *suite; /* borrowed, like all pointers here */
    const struct config_policy *policy, *reference;
    const struct judge_runs *runs, *reference_runs;
    const struct judge_result *result;
    struct study_how how;
    uint32_t falsify; /* scenarios to try (falsify); 0: no search */
};

/* Adds "artefacts": {failure, refused, worst_request, first_difference, worst_scenario}, each a
 * text or null. For the sealed split all are null, so that it stays sealed. Cost: four runs, and
 * the scenarios. */
void words_document(const struct words_of *w, struct document *d);
