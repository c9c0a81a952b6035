/* Policy parameters as text: "key=value,key=value". */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Number of parameters in a policy's table (NULL: 0). */
uint32_t policy_params_count(const struct policy_ops *ops);

/* Defaults, overridden by the preset of the first parameter's choice (policy_ops.presets), both
 * overridden by text (NULL or "": none). Strict: an unknown or repeated key is an error, and so is
 * a value of the wrong type, out of range or not among the choices. The error names policy, key and
 * the accepted values; all errors of the text are added. Returns 0 or -EINVAL. Booleans: true,
 * false, 1, 0. */
int policy_params_parse(const struct policy_ops *ops, const char *text, struct policy_params *out,
                        struct err *e);

/* Merges two lists: entries of `defaults` whose keys are not in text, then text. The caller frees
 * the result. */
char *policy_params_with(const char *defaults, const char *text);

/* Appends one value, in the syntax of policy_params_parse. */
void policy_param_add(struct text *t, const struct policy_param *p, double value);

/* All values, "key=value,...", in table order, for fingerprints. "" without parameters. The result
 * is kept until the command ends (xkept, sim/base/arena.h). */
const char *policy_params_format(const struct policy_ops *ops, const struct policy_params *params);
