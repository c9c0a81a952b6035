/* The policies built in, by name. */
#pragma once

#include <stddef.h>

#include "sim/api/policy.h"

/* NULL when there is none of that name. */
const struct policy_ops *policy_find(const char *name);
/* All of them, sorted by name; *n receives how many. Static storage. */
const struct policy_ops *const *policy_list(size_t *n);
