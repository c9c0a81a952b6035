/* The `sim` object of the configuration, one row per setting: from it come the default in the tree,
 * the reader with its range, and `xpusim list setting`. A further setting is a member of struct
 * config_sim and a row of the table. */
#pragma once

#include "experiments/run/config.h"
#include "sim/base/json_fields.h"

/* All of them, in the order of the tree. Every one has a default, and a unit: "1" of shares and
 * factors, "" of what is no quantity. */
extern const struct json_fields config_sim_fields;

/* A new tree of all defaults; the caller owns it. */
cJSON *config_sim_to_json(void);
/* Reads and checks every key. Texts borrow from the tree. */
void config_sim_parse(struct json_obj o, struct config_sim *out);
