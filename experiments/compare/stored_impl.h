/* The rows of a store that a comparison reads, for stored*.c. */
#pragma once

#include "experiments/compare/stored.h"
#include "sim/base/base.h"

/* A replication; its texts are kept. */
struct stored_row {
    int64_t experiment, run;
    const char *name, *revision;
    const char *shared; /* the other settings, as JSON, which identify a comparison */
    const char *label;  /* value of the compared setting */
    const char *soc, *llm, *workload, *config_hash, *message;
    uint32_t replication;
    uint64_t seed;
    bool grouped; /* a comparison has it */
};

struct stored_rows {
    const char *by;       /* NULL: the policy */
    struct stored_row *v; /* owned */
    size_t n;
    struct texts settings; /* of the points */
    struct store *store;
    int64_t of;         /* experiment whose base was read last */
    const char *policy; /* of its base, kept; NULL: it has none */
};

/* Reads all replications of a store. `by`: the setting that is compared, borrowed; NULL: policies.
 * Returns 0, or -EINVAL if no point has the setting. stored_rows_fini in every case. O(rows). */
int stored_rows_read(struct store *s, const char *by, struct stored_rows *out, struct err *e);
void stored_rows_fini(struct stored_rows *l);
