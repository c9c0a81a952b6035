/* Compares policies on the same requests: replicated runs, and statistics of their differences.
 *
 * Replication k of every policy has the same trace and the same noise (common random numbers): its
 * seed is config_seed(seed, k). So differences between policies are paired. */
#pragma once

#include "experiments/run/config.h"
#include "experiments/run/study.h"
#include "experiments/run/warnings.h"
#include "experiments/shell/document.h"
#include "sim/metrics/metrics.h"
#include "sim/stats/stats.h"

struct compare_plan {
    const struct config *config;          /* borrowed, like all pointers here */
    const struct config_options *options; /* workload and seed */
    const struct config_policy *policies;
    uint32_t n_policies, baseline, replications;
    uint32_t first; /* number of the first replication; later ones have first + 1, ... */
    struct study_how how;
    double relevance_frac; /* smaller differences count as equality (stats.h); 0: none does */
    struct config_arrivals arrivals;
    enum runner_samples samples;
    /* Number of its experiment in the store (stored.h); 0: its runs belong to none. first_point:
     * the point of its first policy. */
    int64_t experiment;
    uint32_t first_point;
    const char *where;            /* "load 0.5 of fcfs", for LaTeX tables; NULL or "": nothing */
    const struct texts *warnings; /* about machines and models other than `config`; NULL: none */
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
    uint32_t n_not_run; /* runs that a store lacks: a sweep was stopped, or is not finished */
    uint32_t *not_run;  /* owned; [policy], its share of n_not_run */
    bool *empty;        /* owned; [replication]: it has no requests, and counts for nobody */
    uint32_t n_empty;
};

/* Runs every policy on every replication. Failed runs are listed. */
void compare_run(const struct compare_plan *plan, struct compare_result *out);
/* Makes the result from existing runs. Run number: replication * n_policies + policy. */
void compare_take(const struct compare_plan *plan, const struct study_outcomes *runs,
                  struct compare_result *out);
void compare_result_fini(struct compare_result *r);
/* Prints each failed run to stderr. */
void compare_report_failures(const struct compare_plan *plan, const struct compare_result *r);

/* The study cell of a policy in a replication, counted from plan->first. */
struct study_cell compare_cell(const struct compare_plan *plan, uint32_t policy,
                               uint32_t replication);

/* Mean share of a policy's kernel time outside the calibrated range, over replications. */
struct extrapolated compare_extrapolated(const struct compare_result *r, uint32_t policy);

/* A plan with only this policy. */
struct compare_plan compare_alone(const struct compare_plan *plan, uint32_t policy);

/* Values of a metric over the replications; NULL: unknown name. */
const double *compare_values(const struct compare_result *r, uint32_t policy, const char *metric);
/* Whether the run ended with an empty battery, so that requests may be missing or unfinished. */
bool compare_battery_gave_out(const struct compare_result *r, uint32_t policy,
                              uint32_t replication);
/* Whether the run served all requests but those that ended with their job (study_left). False for a
 * failed run. */
bool compare_served_all(const struct compare_result *r, uint32_t policy, uint32_t replication);

/* Description of a comparison. */
struct compare_head {
    const char *command; /* command line that made it; NULL: unknown */
    const char *kind;    /* kind of figures to draw from it (plots/about.h) */
    const char *version, *soc, *llm, *workload, *baseline;
    uint64_t config_hash, seed;
    const struct cJSON *config; /* {soc, llm, sim}; NULL: unknown */
    uint32_t replications;
    double relevance_frac;
    const char *sample; /* recordings_sample */
    const char *note;   /* recordings_note, or NULL */
};
void compare_head_document(const struct compare_head *h, struct document *d);

/* Adds a comparison's results: the outcomes of the replications, and the named metrics (every: all
 * metrics). As data they are "policies": {policy: {metric: {mean, low, high, method, n, diff,
 * diff_low, diff_high, ratio, ratio_low, ratio_high, p, verdict, p_holm}}}. The baseline has no
 * members from diff on. p_holm covers all policies and all named metrics; the first metric is the
 * primary one. Other metrics have no p_holm, and their verdicts are not corrected. */
void compare_document(const struct compare_plan *plan, const struct compare_result *r,
                      const char *const *metrics, uint32_t n_metrics, bool every,
                      struct document *d);

/* Sums of requests and of arrival time over replications. Their quotient is the offered rate. A
 * mean of the replications' rates would be dominated by those whose few requests arrived close
 * together. */
struct compare_offered {
    double requests, time_s;
};
/* Adds a replication with `arrived` requests, the last window_s after the first. A generator draws
 * first turns for a fixed time, so that is the time. Otherwise n first turns span n - 1 gaps; fewer
 * than two, or a closed loop, give no rate. One without requests (arrived: NaN) adds its time only.
 * Returns 0, or -EINVAL with an error. */
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
 * differences excludes zero, and Student's p of them is at most 5 %, also after Holm's correction
 * over its family (docs/concepts/comparison.md). */

/* Adjusts p in place, so that the chance of any false positive among all is at most 5 %. The first
 * n_first are the question and one family; the n_others after them are a second. Holm's correction
 * holds in each, and each has half of the 5 %. The others get all of it when every one of the first
 * is shown (fallback procedure, Wiens 2003). NaN stays NaN and does not count. */
void significance_adjust(double *p, size_t n_first, size_t n_others);

/* stats_judge after the correction: what it takes back is not shown. NaN: not corrected. */
enum stats_finding significance_judge(const struct stats_paired *p, double p_adjusted);
/* "lower by 12 % (significant)", "lower by 1.4 % (not significant after Holm's correction)"; "lower
 * by 0.9 % (not significant)" where p is above 5 % without a correction. */
const char *significance_text(const struct stats_paired *p, double p_adjusted);
