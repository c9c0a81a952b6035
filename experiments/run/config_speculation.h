/* The `sim.speculation` object: the drafter of a run, and its accuracy.
 *
 * A policy that is a whole system has its own drafter: a choice parameter `drafter` with the names
 * below. `run` means sim.speculation.method; the other names use their own method with the dataset,
 * model, draft lengths and history of sim.speculation. So one comparison can have systems with
 * different drafters. */
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
/* Drafters on token texts follow: "lookup" and "suffix" (hwmodels/drafters.h). */

/* The object as read by config_sim.h. A method other than "none" selects a cell of the acceptance
 * table. */
struct config_drafts {
    int method; /* 0: none; then 1 + enum speculation_method; then enum trace_drafter */
    const char *dataset, *model;
    bool ours;
    int length; /* enum speculation_length */
    uint32_t max_draft_tokens;
    double reuse_frac;
    int history; /* enum speculation_history */
    bool proactive;
};

/* Has pointers into itself: never copy it. */
struct config_speculation {
    struct speculation_model model[CONFIG_DRAFTERS];
    struct speculation_run run[CONFIG_DRAFTERS]; /* without models it drafts nothing */
    struct drafter texts[TRACE_DRAFTERS];
    int run_texts; /* the run's drafter on texts, or -1 */
};

/* Fits the models of all drafters. 0 or -EINVAL with errors added. */
int config_speculation_fit(const struct config_drafts *d, struct config_speculation *out,
                           struct err *e);
/* The drafter on token texts that a policy has in this run, or NULL. */
const struct drafter *config_speculation_texts(const struct config_speculation *s,
                                               const struct policy_ops *ops,
                                               const struct policy_params *params);
/* Adds the drafter of the setup's policy to the setup. `s` must outlive the setup. */
void config_speculation_setup(const struct config_speculation *s, struct sim_setup *setup);
