/* The `sim` object of the configuration, one row per setting. The row gives the default in the
 * tree, the range for the reader, and the line of `xpusim list setting`. A new setting is a member
 * of struct config_sim and a row of the table. */
#pragma once

#include "experiments/run/config.h"
#include "sim/base/json_fields.h"

/* All settings, in the order of the tree. Each has a default and a unit: "1" for shares and
 * factors, "" if it is no quantity. */
extern const struct json_fields config_sim_fields;

/* Returns a tree of all defaults; the caller owns it. */
cJSON *config_sim_to_json(void);
/* Reads and checks every key. Texts borrow from the tree. */
void config_sim_parse(struct json_obj o, struct config_sim *out);
