/* Comparisons and the store: a comparison is kept as an experiment (experiments/sweep/spec.h), and
 * experiments are compared from what is stored alone, without a run, a file or a machine. */
#pragma once

#include "experiments/compare/compare.h"
#include "experiments/shell/options.h"

/* Gives the plan its experiment in its store: the loads' rates times its policies, as `xpusim
 * sweep` would have them, with the plan's baseline and the loads. Without a store nothing. loads
 * and rates may be NULL: none. */
void stored_note(struct compare_plan *plan, const double *loads, const double *rates,
                 uint32_t n_rates);

struct stored_options {
    const struct option_texts *metrics; /* names and patterns */
    const char *baseline;               /* NULL: the experiment's own */
    /* The setting to compare: points that differ in it alone are one comparison, paired by
     * replication. NULL: "policy", with its params.* */
    const char *by;
    double relevance_frac;
    bool every; /* metric as data */
};

/* Adds a document for each comparison to an array `into`, shaped as `compare --json`, with
 * "experiment" and the "settings" that its points share. Returns how many, or -EINVAL with an
 * error. */
int stored_compare(struct store *s, const struct stored_options *o, struct document *into,
                   struct err *e);
