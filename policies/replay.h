/* Replaying a decision log: the same actions at the same instants, without the policy that took
 * them.
 *
 * A replay reproduces the recorded run exactly, or counts differences in policy.replay_mismatch: a
 * different result code, or an action whose epoch never comes. Uses: to bisect a change of the
 * core, and to replay decisions made elsewhere. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

struct replay; /* parsed log */

/* Reads a log written by `run --decisions`. NULL with errors added. Free with replay_free. */
struct replay *replay_read(const char *path, struct err *e);
void replay_free(struct replay *r);
/* Hash of its lines, for fingerprints. */
uint64_t replay_hash(const struct replay *r);
/* The policy for sim_setup.policy; sim_setup.policy_context must be r. */
const struct policy_ops *replay_policy(const struct replay *r);
