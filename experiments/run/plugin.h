/* Policies from outside the tree: a shared object that exports xpusim_policy (sim/api/policy.h), or
 * a process that speaks docs/policy-protocol.md (policies/external). */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Length of what starts a policy specification before its ":key=value,...": "PATH.so",
 * "exec:COMMAND" or "python:FILE:CLASS"; 0 when it names a built-in policy instead. */
size_t plugin_path_length(const char *spec);

/* Whether it names a shared object: code that this process would run, if no jail does. */
bool plugin_is_code(const char *spec);

/* Loads the plug-in of such a specification and checks its exports: version, name, required hooks,
 * parameter table. NULL with an error that names the file. The object stays loaded until the
 * process ends, because results and worker processes still use its code and strings. Loading one
 * twice gives the same policy. */
const struct policy_ops *plugin_load(const char *spec, struct err *e);

/* A hash of the file that such a specification names; 0 when there is none. */
uint64_t plugin_code_hash(const char *spec);

/* As plugin_load, of a shared object in a jailed process of its own, regardless of XPUSIM_JAIL. */
const struct policy_ops *plugin_load_confined(const char *spec, struct err *e);

/* From now on plug-ins are loaded by a process of their own in a jail
 * (policies/external/external.h), as with XPUSIM_JAIL=on. Where the kernel allows none they run
 * here, and a note says so. */
void plugin_confine(void);

/* That process: xpusim policy-host FILE.so [ADDRESS]. Returns an exit status, if at all. */
int plugin_host(int argc, char **argv);
