/* Equal tuning: for each policy, the same number of configurations of its documented parameters is
 * tried on training seeds. The best one and the policy as shipped are then compared on the test
 * seeds. A comparison of a tuned with an untuned policy would not be fair.
 *
 * Configurations are drawn from the parameter table (sim/api/policy.h), Sobol points shifted by the
 * seed:
 *   choice, bool   every value equally likely
 *   number > 0     log-uniform from an eighth to eight times the default, within the legal range;
 *                  a whole number whose default means "unlimited" (from 1e5) from 1 to 4096
 *   default 0      uniform over the range if that is a share (at most 1), else not changed, because
 *                  there is no scale
 * Each configuration changes TUNE_CHANGED parameters on average, and the others keep their
 * defaults. With dozens of parameters and a small budget, points of the whole cube are all far from
 * the default. Parameters stated by `--policy P:key=value` do not change. The first configuration
 * is the policy as given, so tuned is never worse on the training seeds.
 *
 * A configuration that cannot start on the machine (it needs a device that is missing) does not
 * count. One that drops a request, leaves one unfinished or fails in training counts, but cannot be
 * chosen. A request that ends with its job (ends_with) may be cancelled for that reason, because a
 * faster policy cancels more of these. */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/compare/select.h"

#define TUNE_CHANGED 3.0
#define TUNE_DRAWS 8 /* draws per wanted configuration: some cannot start, some are equal */
#define TUNE_DEFAULT_METRIC "reactive.norm_e2e_per_token_s.mean"

struct tune_options {
    uint32_t budget;       /* configurations per policy, including the given one; >= 1 */
    uint32_t replications; /* training runs of each configuration */
    const char *metric;    /* its mean is the objective; borrowed */
    /* With a confidence, the best is found by selection; `replications` are its first stage. */
    struct select_asked select;
};

struct tune_policy {
    struct config_policy tuned;
    const char *changed;     /* "key=value,..." for --policy; "": nothing */
    uint32_t n_free;         /* parameters that could be changed */
    uint32_t n_tried, n_out; /* configurations; those that cannot be chosen */
    /* Training mean of the objective, over replications that both have; NaN: it failed. */
    double given_value, tuned_value;
};

/* Kept by the command until it ends. */
struct tune {
    const struct compare_plan *plan; /* borrowed */
    struct tune_options options;
    uint64_t seed; /* of the training replications: config_seed(seed, k) */
    uint32_t n_policies;
    struct tune_policy *of;             /* by policy of the plan */
    const struct compare_result *given; /* borrowed: policies as given, on the test seeds */
    struct compare_result tuned;        /* on the same seeds */
};

/* Draws configurations 0 .. n - 1 of a policy. Equal ones are returned once. Returns how many there
 * are. n_free receives the number of parameters that may change; it may be NULL. */
uint32_t tune_draw(const struct config_policy *given, uint64_t seed, uint32_t n,
                   struct policy_params *out, uint32_t *n_free);

/* Checks that tuning is possible: the workload must be generated, because a trace file has no other
 * seeds. Returns 0 or -EINVAL. */
int tune_check(const struct compare_plan *plan, const struct tune_options *o, struct err *e);

/* Trains on separate seeds, and tests. `given`: results of the plan's policies as given. */
void tune_run(struct tune *out, const struct compare_plan *plan, const struct tune_options *o,
              const struct compare_result *given);

/* Adds the chosen configurations, then a block per named metric: given, tuned, their paired
 * difference, and that between the tuned policy and the tuned baseline. Data, for all metrics:
 * {metric, budget, training_replications, training_seeds, policies}. Each policy has
 * {free_parameters, configurations, out, training_given, training_tuned, changed, parameters,
 * metrics}. Each metric has {mean, low, high, n, given_mean, diff, diff_low, diff_high, verdict,
 * p_holm}. All but the baseline also have baseline_diff, baseline_diff_low, baseline_diff_high,
 * baseline_verdict and baseline_p_holm: the distance from the tuned baseline.
 *
 * The named metrics and the objective are corrected together (significance.h). Other metrics have
 * no p_holm. */
void tune_document(const struct compare_plan *plan, const struct tune *t,
                   const char *const *metrics, uint32_t n_metrics, struct document *d);
