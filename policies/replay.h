/* Replaying a decision log: the same actions at the same instants, without the policy that took
 * them.
 *
 * A run under replay reproduces the recorded run exactly, or says where it parts: a result code
 * that differs, or an action whose instant never comes, counts as policy.replay_mismatch. For
 * bisecting a change of the core, and for decisions taken elsewhere. */
#pragma once

#include "sim/api/policy.h"
#include "sim/base/base.h"

struct replay; /* a parsed log */

/* Reads a log written by `run --decisions`. NULL with errors added. Free with replay_free. */
struct replay *replay_read(const char *path, struct err *e);
void replay_free(struct replay *r);
/* A hash of its lines, for fingerprints. */
uint64_t replay_hash(const struct replay *r);
/* The policy that replays it: put it into the setup with r as policy_context. */
const struct policy_ops *replay_policy(const struct replay *r);
