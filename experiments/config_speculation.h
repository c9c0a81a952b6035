/* The `sim.speculation` object: which drafter a run has, and how often it is right. */
#ifndef EXPERIMENTS_CONFIG_SPECULATION_H
#define EXPERIMENTS_CONFIG_SPECULATION_H

#include <cjson/cJSON.h>

#include "hwmodels/speculation_data.h"
#include "sim/base/json.h"
#include "sim/core/run.h"

struct config_speculation {
    bool enabled;
    struct speculation_model model;
    struct speculation_run run; /* borrows model */
};

/* Defaults: method "none". Other members name a cell of the acceptance table. */
cJSON *config_speculation_to_json(void);
/* Reads the object, fits the model. 0 or -EINVAL with errors added. */
int config_speculation_parse(struct json_obj o, struct config_speculation *out);
/* Adds the drafter to a setup that outlives `s`. */
void config_speculation_setup(const struct config_speculation *s, struct sim_setup *setup);

#endif
