/* Policies from outside the tree: a shared object that exports xpusim_policy (sim/api/policy.h), or
 * a process that speaks docs/policy-protocol.md (policies/external). */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Length of "PATH.so", "exec:COMMAND" or "python:FILE:CLASS" at the begin of a policy
 * specification, before ":key=value,..."; 0 for a built-in policy. */
size_t plugin_path_length(const char *spec);

/* Whether it names a shared object, whose code runs in this process unless jailed. */
bool plugin_is_code(const char *spec);

/* Loads the plug-in of such a specification and checks its exports: version, name, required hooks,
 * parameter table. NULL with an error that names the file. The object stays loaded until the
 * process ends, because results and worker processes still use its code and strings. A second load
 * returns the same policy. */
const struct policy_ops *plugin_load(const char *spec, struct err *e);

/* Hash of the file that such a specification names; 0 if there is none. */
uint64_t plugin_code_hash(const char *spec);

/* Like plugin_load, but always in a jailed process of its own, regardless of XPUSIM_JAIL. For
 * shared objects. */
const struct policy_ops *plugin_load_confined(const char *spec, struct err *e);

/* From now on plug-ins are loaded in jailed processes (policies/external/external.h), as with
 * XPUSIM_JAIL=on. If the kernel allows no jail, they run in this process, with a note. */
void plugin_confine(void);

/* Main function of that process: xpusim policy-host FILE.so [ADDRESS]. Returns an exit status, if
 * at all. */
int plugin_host(int argc, char **argv);
