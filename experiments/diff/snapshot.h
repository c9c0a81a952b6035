/* The state of a run just before one of its decisions, printed for people: waiting requests, and
 * the launches of each device.
 *
 * The decision is named by its place in the decision log. The run is repeated with the snapshot as
 * an observer. It reads the length of the log, so it needs nothing of the core. */
#pragma once

#include "sim/api/observer.h"
#include "sim/base/base.h"

struct snapshot;

/* log: the run's decision log, being written; heading included, `offset` bytes (heading not
 * counted) come before the decision. since_ns: the instant of the decision before it, from when on
 * looking is worth it. All borrowed until snapshot_free. */
struct snapshot *snapshot_new(const struct machine *machine, FILE *log, long offset,
                              int64_t since_ns);
void snapshot_free(struct snapshot *s);
struct observer *snapshot_observer(struct snapshot *s);

/* After the run: lines of text, one per live request and launch, sorted; "" when the decision was
 * never reached. Borrowed. */
const char *snapshot_text(const struct snapshot *s);
