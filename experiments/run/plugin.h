/* Policies from outside the tree: a shared object that exports xpusim_policy (sim/api/policy.h), or
 * a process that speaks docs/policy-protocol.md (policies/external). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/api/policy.h"
#include "sim/base/err.h"

/* Length of what starts a policy specification before its ":key=value,...": "PATH.so",
 * "exec:COMMAND" or "python:FILE:CLASS"; 0 when it names a built-in policy instead. */
size_t plugin_path_length(const char *spec);

/* Loads the plug-in of such a specification and checks its exports: version, name, required hooks,
 * parameter table. NULL with an error that names the file. The object stays loaded until the
 * process ends, because results and worker processes still use its code and strings. Loading one
 * twice gives the same policy. */
const struct policy_ops *plugin_load(const char *spec, struct err *e);

/* A hash of the file that such a specification names; 0 when there is none. */
uint64_t plugin_code_hash(const char *spec);
