/* Recorded traces as a sample.
 *
 * A recording is one observation, however often it is simulated: runs of it differ in estimate
 * noise only. Several recordings are a sample, one per replication. Sessions redrawn from
 * one recording approximate a sample; their spread is the standard error (block bootstrap over
 * sessions).
 */
#pragma once

#include "experiments/run/config.h"
#include "traces/traces.h"

/* Adds what one --trace names: a file, the *.csv files of a folder, or the files that a pattern
 * matches (glob), in the order of their names. 0, or -EINVAL with an error. */
int recordings_add(struct config_options *o, const char *arg, struct err *e);

/* How many replications the recordings allow, of `asked`: all of a generated workload, or of
 * redrawn sessions. */
uint32_t recordings_replications(const struct config_options *o, uint32_t asked);

/* A sentence on what the results hold for; NULL of a generated workload. */
const char *recordings_note(const struct config_options *o);
/* "generated", "one recording", "recordings", "redrawn sessions" or "redrawn jobs". */
const char *recordings_sample(const struct config_options *o);

/* The recording of a replication, by the replication's seed (config_seed); redrawn where asked. */
int recordings_read(const struct config_options *o, uint64_t seed, struct trace *out,
                    struct err *e);
