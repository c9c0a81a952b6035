/* Policies in any language: a process that speaks docs/policy-protocol.md over its standard input
 * and output. `exec:COMMAND` names one by a shell command, `python:FILE:CLASS` by a class of a
 * Python file (policies/python). Everything after that, from a colon on, is parameters. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

/* Raised when a message comes to mean something else. */
#define EXTERNAL_PROTOCOL 1

/* Length of "exec:COMMAND" or "python:FILE:CLASS" at the start of a policy specification; 0 when it
 * names a policy of another kind. */
size_t external_spec_length(const char *spec);

/* Asks the program of such a specification for its description (name, needs, parameters), and gives
 * a policy that starts it for every run. NULL with an error that names it. The policy lives as long
 * as this process; asking for one twice gives the same. */
const struct policy_ops *external_load(const char *spec, struct err *e);

/* Whether a parameter is the limit_s of a policy that is a program. It bounds the wall clock of the
 * process, and no decision depends on it. */
bool external_is_limit(const struct policy_ops *ops, const struct policy_param *p);

/* For trying a run again that took this long, perhaps because its program gave no answer: limit_s
 * becomes a tenth, at least 3 s, where that is less. Returns it; 0 when it stays, or the policy is
 * no program. */
double external_shorten(const struct policy_ops *ops, struct policy_params *p, double took_s);

/* The file that such a specification names: the Python file, or the first word of the command where
 * that is a path; NULL else. The caller frees it. */
char *external_file(const char *spec);

/* Plug-ins in a process of their own: the hooks of a .so run in a jail (jail.h).
 *
 * The process maps the pages that a policy may read (struct sched, requests, passes, launches) and
 * its own state, at the addresses that they have here. So the plug-in is the same file as one that
 * runs in this process, and decides the same. It can write to its state and to nothing else, and
 * there is nothing else of the simulator in its memory.
 *
 * A hook is a message, and so is a call of the contract; docs/policy-protocol.md has the cost. The
 * simulator checks each answer: a pointer must be one that the policy was given. */

/* The argument of the program that makes it such a process: policy-host FILE.so [ADDRESS]. */
#define HOST_COMMAND "policy-host"

/* Starts a process that loads the file and describes its policy. Gives a policy of that name that
 * has a process of its own for every run; NULL with an error. It lives as long as this process. One
 * run of it at a time. */
const struct policy_ops *hosted_load(const char *path, struct err *e);

/* The memory of a run of such a policy: what it reads, and then what it writes (sim_setup.memory).
 * NULL for other policies. */
const struct arena_source *hosted_memory(const struct policy_ops *ops);

/* In the process. ops: of the plug-in, NULL with the error why there is none. */
void hosted_describe(const struct policy_ops *ops, const struct err *e, FILE *out);
/* Where it is to fork for every run: does, and returns in each fork, with the address for it. Else
 * a copy of what it was given. The caller frees it. */
char *hosted_address(const char *given);
/* Runs hooks until the parent goes away. address: as the parent gave it. */
_Noreturn void hosted_serve(const struct policy_ops *ops, const char *address);
