/* Policies in any language: a process that speaks docs/policy-protocol.md over its standard input
 * and output. `exec:COMMAND` starts a shell command, `python:FILE:CLASS` a class of a Python file
 * (policies/python). Parameters follow after a colon. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Increased when the meaning of a message changes. */
#define EXTERNAL_PROTOCOL 1

/* Length of "exec:COMMAND" or "python:FILE:CLASS" at the start of a policy specification; 0 for
 * other kinds of policies. */
size_t external_spec_length(const char *spec);

/* Asks the program of such a specification for its description (name, needs, parameters). Returns a
 * policy that starts the program for every run, or NULL with an error that names it. The policy
 * lives as long as this process; equal specifications give the same policy. */
const struct policy_ops *external_load(const char *spec, struct err *e);

/* Whether a parameter is limit_s of an external policy. It limits wall-clock time, and does not
 * influence decisions. */
bool external_is_limit(const struct policy_ops *ops, const struct policy_param *p);

/* For a retry of a run that took took_s, perhaps because its program did not answer. If that is at
 * least limit_s, sets limit_s to a tenth of took_s, at least 3 s, and returns it. Returns 0 if that
 * is not less than limit_s, or the policy is not external. */
double external_shorten(const struct policy_ops *ops, struct policy_params *p, double took_s);

/* The file in such a specification: the Python file, or the first word of the command if it is a
 * path; else NULL. The caller frees it. */
char *external_file(const char *spec);

/* Plug-ins in a process of their own: the hooks of a .so run in a jail (jail.h).
 *
 * The process maps the pages that a policy may read (struct sched, requests, passes, launches) and
 * the policy's state, at the addresses that they have here. So the same plug-in file runs in either
 * process, and makes the same decisions. It can write only to its state, and its memory has no
 * other data of the simulator.
 *
 * A call of a hook or of the contract is a message; docs/policy-protocol.md has the cost. The
 * simulator checks each answer: a pointer must be one that the policy got before. */

/* Command of the program that runs such a process: policy-host FILE.so [ADDRESS]. */
#define HOST_COMMAND "policy-host"

/* Starts a process that loads the file and describes its policy. Returns a policy that starts a
 * process for every run; NULL with an error. It lives as long as this process, and serves one run
 * at a time. */
const struct policy_ops *hosted_load(const char *path, struct err *e);

/* Memory for a run of such a policy: what it reads, then what it writes (sim_setup.memory). NULL
 * for other policies. */
const struct arena_source *hosted_memory(const struct policy_ops *ops);

/* In the process: writes the description. ops: the plug-in's, or NULL with an error in e. */
void hosted_describe(const struct policy_ops *ops, const struct err *e, FILE *out);
/* In the process: if `given` asks for forks, forks for every run, and returns in each fork with its
 * address. Otherwise returns a copy of `given`. The caller frees it. */
char *hosted_address(const char *given);
/* Runs hooks until the parent closes its pipe. address: as the parent passed it. */
_Noreturn void hosted_serve(const struct policy_ops *ops, const char *address);
