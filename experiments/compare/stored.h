/* Comparisons in a store. A comparison is stored as an experiment (experiments/sweep/spec.h), and
 * stored experiments are compared without any run or input file. */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/shell/options.h"

/* Creates the plan's experiment in its store, with the points that `xpusim sweep` would make of the
 * rates and policies, the plan's baseline and the loads. Does nothing without a store. loads and
 * rates may be NULL: none. */
void stored_note(struct compare_plan *plan, const double *loads, const double *rates,
                 uint32_t n_rates);

struct stored_options {
    const struct option_texts *metrics; /* names and patterns */
    const char *baseline;               /* NULL: the baseline of the experiment */
    /* The setting to compare: points that differ only in it form a comparison, paired by
     * replication. NULL: "policy", with params.* */
    const char *by;
    double relevance_frac;
    bool every; /* all metrics, as data */
};

/* Adds a document for each comparison to an array `into`, shaped as `compare --json`, with
 * "experiment" and the "settings" that its points share. Returns how many, or -EINVAL with an
 * error. */
int stored_compare(struct store *s, const struct stored_options *o, struct document *into,
                   struct err *e);
