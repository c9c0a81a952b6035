/* The policies built in, by name. */
#pragma once

#include <stddef.h>

#include "sim/api/policy.h"

/* A name for a policy with these parameters. */
struct policy_alias {
    const char *name; /* not the name of a policy */
    const char *policy, *params;
    const char *summary;
};
/* Finds an alias by name, or NULL. name NULL: the array of all, ended by one without a name. */
const struct policy_alias *policy_alias_find(const char *name);

/* Finds a policy by name, or NULL. */
const struct policy_ops *policy_find(const char *name);
/* All *n policies, sorted by name. Static storage. */
const struct policy_ops *const *policy_list(size_t *n);
