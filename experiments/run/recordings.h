/* Recorded traces as a sample.
 *
 * A recording is one observation, regardless of the number of runs, which differ only in the noise
 * of estimates. Several recordings are a sample, one per replication. Sessions redrawn from one
 * recording approximate a sample; their spread is the standard error (block bootstrap over
 * sessions).
 */
#pragma once

#include "experiments/run/config.h"
#include "traces/traces.h"

/* Adds what one --trace names: a file, the *.csv files of a folder, or files that match a glob
 * pattern, in the order of names. 0, or -EINVAL with an error. */
int recordings_add(struct config_options *o, const char *arg, struct err *e);

/* The number of replications that the recordings allow, at most `asked`. A generated workload and
 * redrawn sessions allow any number. */
uint32_t recordings_replications(const struct config_options *o, uint32_t asked);

/* A sentence that limits the validity of results; NULL for a generated workload. */
const char *recordings_note(const struct config_options *o);
/* "generated", "one recording", "recordings", "redrawn sessions" or "redrawn jobs". */
const char *recordings_sample(const struct config_options *o);

/* Reads the recording of a replication, given its seed (config_seed), and redraws it if requested.
 */
int recordings_read(const struct config_options *o, uint64_t seed, struct trace *out,
                    struct err *e);
