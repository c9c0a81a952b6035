/* The headroom certificate of a suite: the best known values at each point.
 *
 *   references   the means of the suite's reference policies
 *   hindsight    the best list schedule found in hindsight (compare/clairvoyant.h)
 *   best         the best of all of these in each replication. No policy knows the future, so this
 *                may be unreachable; but a search should not stop at worse values
 *   bound        the bound that no schedule on the machine beats (compare/bound.h); NaN: unknown
 *
 * It is part of the suite's archive (NAME.archive.json), with the hash of its suite. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/sweep/suite.h"

struct certificate_row {
    double reference[SUITE_MAX_REFERENCES]; /* means over replications */
    double hindsight, best, bound;
};

struct certificate {
    uint32_t replications; /* used to make it; 0: unknown */
    struct certificate_row rows[SUITE_MAX_POINTS * SUITE_MAX_METRICS]; /* by pair (judge.h) */
};

/* Runs references, list schedules and bounds. Cost: seconds per point. Returns 0, or -EINVAL with
 * an error if a reference of the suite is no policy. */
int certificate_make(const struct suite *s, uint32_t replications, const struct study_how *how,
                     struct certificate *out, struct err *e);
/* Adds the table "certificate". */
void certificate_document(const struct suite *s, const struct certificate *c, struct document *d);
/* Reads it from the archive of the suite. False: there is none with the suite's hash. */
bool certificate_read(const struct suite *s, struct certificate *out);
