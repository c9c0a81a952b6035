/* The state of a run just before one of its decisions, printed for people: waiting requests, and
 * the launches of each device.
 *
 * The decision is identified by its position in the decision log. The run is repeated with the
 * snapshot as an observer. It reads the length of the log, so the core needs no support for it. */
#pragma once

#include "sim/api/observer.h"
#include "sim/base/base.h"

struct snapshot;

/* log: the decision log that the run writes, with a heading. `offset`: bytes before the decision,
 * without the heading. since_ns: the instant of the previous decision; earlier ones are not
 * checked. All borrowed until snapshot_free. */
struct snapshot *snapshot_new(const struct machine *machine, FILE *log, long offset,
                              int64_t since_ns);
void snapshot_free(struct snapshot *s);
struct observer *snapshot_observer(struct snapshot *s);

/* Called after the run. Returns sorted lines of text, one per live request and launch; "": the
 * decision was not reached. Borrowed. */
const char *snapshot_text(const struct snapshot *s);
