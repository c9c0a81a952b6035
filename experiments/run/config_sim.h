/* The `sim` object of the configuration: defaults to JSON, JSON to settings. */
#ifndef EXPERIMENTS_RUN_CONFIG_SIM_H
#define EXPERIMENTS_RUN_CONFIG_SIM_H

#include "experiments/run/config.h"
#include "sim/base/json.h"

/* A new tree of all settings; the caller owns it. */
cJSON *config_sim_to_json(const struct config_sim *s);
/* Reads and checks every key. String members borrow from the tree. */
void config_sim_parse(struct json_obj o, struct config_sim *out,
                      struct config_speculation *speculation);

#endif
