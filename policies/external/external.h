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

/* For trying a run again that took this long, perhaps because its program gave no answer: limit_s
 * becomes a tenth, at least 3 s, where that is less. Returns it; 0 when it stays, or the policy is
 * no program. */
double external_shorten(const struct policy_ops *ops, struct policy_params *p, double took_s);

/* The file that such a specification names: the Python file, or the first word of the command where
 * that is a path; NULL else. The caller frees it. */
char *external_file(const char *spec);
