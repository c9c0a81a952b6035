/* Equal tuning: each policy gets the same number of configurations of its documented parameters, on
 * training seeds of their own. The best of them is compared, tuned and as shipped, on the test
 * seeds. A comparison of one tuned and one untuned policy says nothing about either.
 *
 * Configurations are drawn from the parameter table (sim/api/policy.h), Sobol points shifted by the
 * seed:
 *   choice, bool   every value equally likely
 *   number > 0     log-uniform from an eighth to eight times the default, within the legal range;
 *                  a whole number whose default means "unlimited" (from 1e5) from 1 to 4096
 *   default 0      uniform over the range where that is a share (at most 1), else not changed,
 *                  because there is no scale
 * Each configuration changes TUNE_CHANGED parameters on average, and the others keep their
 * defaults. With dozens of parameters and a small budget, points of the whole cube are all far from
 * the default. Parameters stated by `--policy P:key=value` do not change. The first configuration
 * is the policy as given, so tuned is never worse on the training seeds.
 *
 * A configuration that cannot start on the machine (a device it lacks) is not one of the N. One
 * that drops a request, leaves one unfinished or fails in training is one, and is out. A request
 * that ends with its job (ends_with) may be cancelled by that: a faster policy cancels more. */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/compare/select.h"

#define TUNE_CHANGED 3.0
#define TUNE_DRAWS 8 /* points tried per configuration wanted: some cannot start, some repeat */
#define TUNE_DEFAULT_METRIC "reactive.norm_e2e_per_token_s.mean"

struct tune_options {
    uint32_t budget;       /* configurations per policy, the given one included; >= 1 */
    uint32_t replications; /* training runs of each */
    const char *metric;    /* objective: its mean over them; borrowed */
    /* With a confidence, the best is found by selection; `replications` are its first stage. */
    struct select_asked select;
};

struct tune_policy {
    struct config_policy tuned;
    const char *changed;     /* "key=value,..." for --policy; "" when it is as given */
    uint32_t n_free;         /* parameters that could be changed */
    uint32_t n_tried, n_out; /* configurations; those of them that were out */
    /* Training mean of the objective, over the replications of both; NaN: out. */
    double given_value, tuned_value;
};

/* A command has it until it ends. */
struct tune {
    const struct compare_plan *plan; /* borrowed */
    struct tune_options options;
    uint64_t seed; /* of the training replications: config_seed(seed, k) */
    uint32_t n_policies;
    struct tune_policy *of;             /* by policy of the plan */
    const struct compare_result *given; /* borrowed: on the plan's test seeds, as they are */
    struct compare_result tuned;        /* on the same */
};

/* The space of one policy: draws number 0 .. n - 1 as parameter values. Equal draws are given once;
 * returns how many there are. free (n entries of parameters) may be NULL. For tests and
 * tune_run. */
uint32_t tune_draw(const struct config_policy *given, uint64_t seed, uint32_t n,
                   struct policy_params *out, uint32_t *n_free);

/* The workload must be generated (a trace file has no other seeds). 0 or -EINVAL. */
int tune_check(const struct compare_plan *plan, const struct tune_options *o, struct err *e);

/* Trains on seeds of its own, and tests. `given` are the results of the plan's policies as they
 * are. */
void tune_run(struct tune *out, const struct compare_plan *plan, const struct tune_options *o,
              const struct compare_result *given);

/* Adds the chosen configurations, then a block per metric named: given, tuned, their paired
 * difference, and that of the tuned policy and the tuned baseline. Data, for all metrics: {metric,
 * budget, training_replications, training_seeds, policies}. Each policy has {free_parameters,
 * configurations, out, training_given, training_tuned, changed, parameters, metrics}. Each metric
 * has {mean, low, high, n, given_mean, diff, diff_low, diff_high, verdict, p_holm}. All but the
 * baseline also have baseline_diff, baseline_diff_low, baseline_diff_high, baseline_verdict and
 * baseline_p_holm: the distance from the tuned baseline.
 *
 * The metrics named, and the one that was tuned by, are corrected together (significance.h). Other
 * metrics have no p_holm. */
void tune_document(const struct compare_plan *plan, const struct tune *t,
                   const char *const *metrics, uint32_t n_metrics, struct document *d);
