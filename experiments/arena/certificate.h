/* The headroom certificate of a suite: what is known to be possible at each point.
 *
 *   references   the means of the suite's reference policies
 *   hindsight    the best list schedule found in hindsight (compare/clairvoyant.h)
 *   best         the best of all of these, replication by replication. No policy knows the
 *                future, so this may be out of reach; but no search should stop above it
 *   bound        what no schedule on the machine beats (compare/bound.h); NaN: not known
 *
 * It is part of the suite's archive (NAME.archive.json), with the hash that it was made for. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/sweep/suite.h"

struct certificate_row {
    double reference[SUITE_MAX_REFERENCES]; /* means over replications */
    double hindsight, best, bound;
};

struct certificate {
    uint32_t replications; /* that it was made with; 0: unknown */
    struct certificate_row rows[SUITE_MAX_POINTS * SUITE_MAX_METRICS]; /* by pair (judge.h) */
};

/* Makes it: runs references, list schedules and bounds. Takes seconds for each point. 0, or -EINVAL
 * with an error where the suite names a reference that is no policy. */
int certificate_make(const struct suite *s, uint32_t replications, const struct study_how *how,
                     struct certificate *out, struct err *e);
/* Adds the table "certificate". */
void certificate_document(const struct suite *s, const struct certificate *c, struct document *d);
/* Reads it from the archive of the suite. False where there is none, or of another hash. */
bool certificate_read(const struct suite *s, struct certificate *out);
