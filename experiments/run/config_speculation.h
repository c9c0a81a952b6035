/* The `sim.speculation` object: which drafter a run has, and how often it is right.
 *
 * A policy that is a whole system brings its own drafter: a choice parameter called `drafter` with
 * the names below. `run` leaves it to sim.speculation.method; the others take the dataset, model,
 * draft lengths and history of sim.speculation, and their own method. So systems with different
 * drafters meet in one comparison. */
#pragma once

#include "hwmodels/drafters.h"
#include "hwmodels/speculation_data.h"
#include "sim/core/run.h"

enum config_drafter {
    CONFIG_DRAFTER_RUN,
    CONFIG_DRAFTER_NONE,
    CONFIG_DRAFTER_PLD,
    CONFIG_DRAFTER_SAM,
    CONFIG_DRAFTER_OURS, /* SAM with the calibration and draft reuse of sd.npu */
    CONFIG_DRAFTER_EAGLE,
    CONFIG_DRAFTERS
};
/* Those that draft on token texts follow: "lookup" and "suffix" (hwmodels/drafters.h). */

/* The object as it was read (config_sim.h's table). A method but "none" names a cell of the
 * acceptance table. */
struct config_drafts {
    int method; /* 0: none, else 1 + enum speculation_method, or after those a trace_drafter */
    const char *dataset, *model;
    bool ours;
    int length; /* enum speculation_length */
    uint32_t max_draft_tokens;
    double reuse_frac;
    int history; /* enum speculation_history */
    bool proactive;
};

/* Holds pointers into itself: never copy one. */
struct config_speculation {
    struct speculation_model model[CONFIG_DRAFTERS];
    struct speculation_run run[CONFIG_DRAFTERS]; /* a run without models drafts nothing */
    struct drafter texts[TRACE_DRAFTERS];
    int run_texts; /* method: which of them the run has; -1: none */
};

/* Fits the models of all drafters. 0 or -EINVAL with errors added. */
int config_speculation_fit(const struct config_drafts *d, struct config_speculation *out,
                           struct err *e);
/* Which drafter of token texts a policy has here; NULL: none. */
const struct drafter *config_speculation_texts(const struct config_speculation *s,
                                               const struct policy_ops *ops,
                                               const struct policy_params *params);
/* Adds the drafter of the setup's policy to it. `s` must outlive the setup. */
void config_speculation_setup(const struct config_speculation *s, struct sim_setup *setup);
