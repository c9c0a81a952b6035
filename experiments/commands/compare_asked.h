/* The options of `compare` and `ablate`, and two of their modes: the best policy
 * (compare_select.c), and the runs of a store (compare_stored.c). */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/compare/select.h"
#include "experiments/compare/tune.h"
#include "experiments/run/job_options.h"

struct compare_options {
    struct config_options config;
    struct job_options work;
    struct option_output output;
    struct option_texts policies, metrics;
    const char *baseline;
    struct option_numbers loads;
    uint32_t replications;
    bool replications_given;
    const char *resample;
    double relevance_percent;
    const char *by; /* for stored runs */
    struct sample_options samples;
    bool regret, tune_given;
    struct tune_options tune; /* budget 0: none */
    struct select_asked select;
    uint32_t uncertainty; /* machines; 0: none */
    const char *suite;    /* NULL: the configuration of the options */
    const struct suite_point *point;
};

/* Whether --select only finds the best policy, by the first metric. With --tune, tuning uses it. */
bool compare_selects(const struct compare_options *o);
/* Runs the selection. Sets the plan's replications to the most that a policy had. 0 or -EINVAL. */
int compare_select(const struct compare_options *o, struct compare_plan *plan,
                   struct select_result *r, struct err *e);
/* Returns the exit status. */
int compare_put_selection(const struct compare_options *o, const struct compare_plan *plan,
                          const struct select_result *r, struct document *d);

/* Without --policy: compares the experiments of the store. Returns the exit status. */
int compare_stored(const struct compare_options *o, struct err *e);
