/* Several policies on the same requests, replicated: runs, and what the numbers allow to say.
 *
 * Replication k of every policy meets the same trace and the same noise (common random numbers):
 * its seed is config_seed(seed, k). So differences between policies are taken pair by pair. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/run/study.h"
#include "experiments/run/warnings.h"
#include "experiments/shell/document.h"
#include "sim/metrics/metrics.h"
#include "sim/stats/stats.h"

struct compare_plan {
    const struct config *config;          /* borrowed, as all of these */
    const struct config_options *options; /* workload and seed */
    const struct config_policy *policies;
    uint32_t n_policies, baseline, replications;
    uint32_t first; /* the replications are first, first + 1, ... (0: all from the start) */
    struct study_how how;
    double
        relevance_frac; /* differences within are equality (stats.h); 0: there is no such thing */
    struct config_arrivals arrivals;
    enum runner_samples samples;
    /* As which experiment the store keeps it (stored.h), and the point of its first policy; 0: as
     * runs that belong to none. */
    int64_t experiment;
    uint32_t first_point;
    const char *where; /* "load 0.5 of fcfs": in the tables of LaTeX; NULL or "": nothing */
    const struct texts *warnings; /* of other machines and models than `config`; NULL: none */
};

struct compare_failure {
    uint32_t policy, replication;
    char message[JOBS_MESSAGE_BYTES];
};

struct compare_result {
    uint32_t n_policies, replications;
    size_t n_metrics, n_plain; /* the first n_plain are no counters */
    struct metric *names;      /* owned; values unused */
    double *values;            /* owned; [policy][metric][replication], NaN where the run failed */
    struct compare_failure *failures; /* owned */
    uint32_t n_failures;
    uint32_t n_not_run; /* that a store does not have: a sweep stopped earlier, or is not done */
    uint32_t *not_run;  /* owned; [policy], how many of these are its own */
    double *verdicts;   /* owned; [policy][replication], by enum metrics_verdict; NaN: it failed */
};

/* Runs every policy on every replication. Failed runs are listed. Where sessions are redrawn, every
 * value moves away from its metric's mean by sqrt(replications). More draws of one recording know
 * no more than the recording: the error of their mean is the spread of one. */
void compare_run(const struct compare_plan *plan, struct compare_result *out);
/* Makes the result of runs that exist: number replication * n_policies + policy. */
void compare_take(const struct compare_plan *plan, const struct study_outcomes *runs,
                  struct compare_result *out);
void compare_result_fini(struct compare_result *r);
/* Prints each failed run to stderr. */
void compare_report_failures(const struct compare_plan *plan, const struct compare_result *r);

/* The cell of one of its policies in one replication, counted from plan->first. */
struct study_cell compare_cell(const struct compare_plan *plan, uint32_t policy,
                               uint32_t replication);

/* How far a policy's kernels lie outside the calibrated range, in the mean over replications. */
struct extrapolated compare_extrapolated(const struct compare_result *r, uint32_t policy);

/* The plan of one of its policies alone. */
struct compare_plan compare_alone(const struct compare_plan *plan, uint32_t policy);

/* Values of one metric over the replications, or NULL when there is none of that name. */
const double *compare_values(const struct compare_result *r, uint32_t policy, const char *metric);
/* Did a battery end that run? Requests may then be unfinished, and others never came. */
bool compare_battery_gave_out(const struct compare_result *r, uint32_t policy,
                              uint32_t replication);

/* Description of a comparison. */
struct compare_head {
    const char *command; /* that made it; NULL: not known */
    const char *kind;    /* what figures are drawn of it (plots/about.h) */
    const char *version, *soc, *llm, *workload, *baseline;
    uint64_t config_hash, seed;
    const struct cJSON *config; /* {soc, llm, sim}; NULL: not known */
    uint32_t replications;
    double relevance_frac;
    const char *sample; /* recordings_sample */
    const char *note;   /* recordings_note, or NULL */
};
void compare_head_document(const struct compare_head *h, struct document *d);

/* Adds a comparison's results: how the replications went, and the metrics named (every: all there
 * are). As data they are "policies": {policy: {metric: {mean, low, high, method, n, diff,
 * diff_low, diff_high, ratio, ratio_low, ratio_high, p, verdict, p_holm}}}.
 * The baseline has no members from diff on. All policies and metrics named enter p_holm; the first
 * metric is the question. A metric not named has no p_holm, and its verdict is not corrected. */
void compare_document(const struct compare_plan *plan, const struct compare_result *r,
                      const char *const *metrics, uint32_t n_metrics, bool every,
                      struct document *d);

/* Requests that workloads ask for, and the time for which they do. Their quotient is a rate: the
 * mean of quotients would be that of replications whose few requests came close together. */
struct compare_offered {
    double requests, time_s;
};
/* Adds a replication, of which so many requests arrived, the last of them so long after the first.
 * A generator draws first turns for a time, and each brings its later ones. Otherwise n first turns
 * span n - 1 gaps; fewer than two say nothing, nor does a closed loop. 0, or -EINVAL with an
 * error. */
int compare_offered(const struct compare_plan *plan, uint32_t replication, double arrived,
                    double window_s, struct compare_offered *sum, struct err *e);

/* How much a machine can do under a policy, by which loads are stated (compare --load). */
struct capacity {
    double req_per_min;         /* of the baseline when it never waits for work */
    double offered_req_per_min; /* of the workload as it is, later turns included */
};

/* Saturated runs of the baseline: its completions per minute over the busy period, and the rate at
 * which the workload asks, of a few replications. 0, or -EINVAL with an error. */
int capacity_measure(const struct compare_plan *plan, struct capacity *out, struct err *e);

/* The meaning of *significant* in every table that prints the word. The interval of the paired
 * differences excludes zero, and still does after Holm's correction over its family
 * (docs/concepts/comparison.md). */

/* Adjusts p in place, so that the chance of any false positive among all is at most 5 %. The first
 * n_first are the question and one family; the n_others after them are a second. Holm's correction
 * holds in each, and each has half of the 5 %. The others get all of it when every one of the first
 * is shown (fallback procedure, Wiens 2003). NaN stays NaN and does not count. */
void significance_adjust(double *p, size_t n_first, size_t n_others);

/* stats_judge after the correction: what it takes back is not shown. NaN: not corrected. */
enum stats_finding significance_judge(const struct stats_paired *p, double p_adjusted);
/* "lower by 12 % (significant)", "lower by 1.4 % (not significant after Holm's correction)" */
const char *significance_text(const struct stats_paired *p, double p_adjusted);
