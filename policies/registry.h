/* The policies built in, by name. */
#pragma once

#include <stddef.h>

#include "sim/api/policy.h"

/* A system that is another policy with these parameters. */
struct policy_alias {
    const char *name; /* no policy has it */
    const char *policy, *params;
    const char *summary;
};
/* NULL when there is none of that name; NULL name: all of them, ended by one without a name. */
const struct policy_alias *policy_alias_find(const char *name);

/* NULL when there is none of that name. */
const struct policy_ops *policy_find(const char *name);
/* All of them, sorted by name; *n receives how many. Static storage. */
const struct policy_ops *const *policy_list(size_t *n);
