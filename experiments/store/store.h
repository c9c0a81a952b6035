/* Results of experiments in one SQLite file.
 *
 *   experiments  id, key (of the file's text and the source revision), name, revision, spec
 *   points       experiment_id, point: settings, the varied ones as a JSON object
 *   members      experiment_id, point, replication: run_id
 *   failures     experiment_id, point, replication: message. A failure is no result: the next sweep
 *                repeats the run, and success removes it
 *   finished     experiment_id, shards, shard: a sweep of that shard was completed
 *   runs         id, fingerprint (version, source revision, configuration, trace, policy,
 *                parameters, seed) and kept (stored metrics), unique together, so that equal runs
 *                are shared between experiments and different ones never mixed; soc, llm, workload,
 *                rate_scale, policy, params, seed, verdict, config_hash, trace_hash
 *   metrics      run_id and one column per metric, NULL where it is not defined in that run:
 *                SELECT policy, avg("reactive.e2e_s.mean") FROM runs JOIN metrics ON id=run_id
 *                GROUP BY policy
 *   configurations  hash, tree: {soc, llm, sim} of every config_hash, as JSON, so that results can
 *                be analysed without the original files
 *
 * The file is written in WAL mode, in transactions of at most 100 ms, so a killed process leaves a
 * valid file and loses at most that. Several sweeps may share a store. Reading needs no write
 * permission and changes nothing. After the first error nothing more is written, and store_close
 * reports it. */
#pragma once

#include "sim/metrics/metrics.h"

struct store; /* opaque */

/* Description of a run; borrowed texts. */
struct store_run {
    const char *fingerprint, *soc, *llm, *workload, *policy, *params, *verdict;
    double rate_scale;
    uint64_t seed, config_hash, trace_hash;
};

enum store_use { STORE_USE_READ, STORE_USE_WRITE, STORE_USE_CREATE };

/* Opens a store; STORE_USE_CREATE creates a missing one. Returns NULL with an error that names the
 * file: missing, not a store, not writable. store_close frees it, and returns 0, or -EIO with the
 * first error added. */
struct store *store_open(const char *path, enum store_use use, struct err *e);
int store_close(struct store *s, struct err *e);
bool store_ok(const struct store *s);

/* Commits the open transaction: now, or only if it is older than 50 ms. */
void store_commit(struct store *s, bool now);

/* Number of the experiment with this text and revision, created if missing (0 if the store is open
 * for reading). */
int64_t store_experiment(struct store *s, const char *name, const char *revision, const char *spec);
/* Adds a point unless it exists. settings: JSON text. */
void store_point(struct store *s, int64_t experiment, uint64_t point, const char *settings);
bool store_has_point(struct store *s, int64_t experiment, uint64_t point);

/* Number of a run, or 0. */
int64_t store_find(struct store *s, const char *fingerprint, const char *kept);
/* Number of runs found and added since the store was opened. */
uint64_t store_found(const struct store *s);
uint64_t store_added(const struct store *s);
/* Adds a run with its n metrics, or finds the existing one. Returns its number. */
int64_t store_put(struct store *s, const struct store_run *run, const char *kept,
                  const char *const *names, const double *values, size_t n);
/* The configuration of a hash, in the format of runs: "%016" PRIx64. */
bool store_has_configuration(struct store *s, const char *hash);
void store_configuration(struct store *s, const char *hash, const char *tree);
/* Sets the run of a replication, and removes its failure. */
void store_member(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                  int64_t run);
/* Sets the reason why a replication has no run, and removes its run. "": it has no requests, which
 * is no failure. */
void store_failure(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                   const char *message);
/* Fills the values of a metric over replications 0 .. n-1 of a point; NaN: none. */
void store_values(struct store *s, int64_t experiment, uint64_t point, const char *metric,
                  double *out, uint32_t n);

/* Calls take for every metric in the store; NaN: the run does not have it. */
void store_read(struct store *s, int64_t run, void (*take)(void *ctx, const char *name, double v),
                void *ctx);
/* The text of a configuration, for free(); NULL: unknown hash. */
char *store_configuration_text(struct store *s, const char *hash);
/* The text of an experiment, for free(); NULL: unknown experiment. */
char *store_experiment_spec(struct store *s, int64_t experiment);
/* A replication of an experiment; texts are valid during the call. */
struct store_replication {
    int64_t experiment, run; /* run 0: it failed, and message says why; "": it has no requests */
    const char *name, *revision, *settings, *message;
    uint64_t point;
    uint32_t replication;
    struct store_run of;     /* empty texts if it failed */
    const char *config_hash; /* as text */
};
/* Calls take for all replications, ordered by experiment, point and replication. */
void store_replications(struct store *s, void (*take)(void *ctx, const struct store_replication *r),
                        void *ctx);

/* Records that a sweep of this shard of an experiment was completed (0 of 1: the whole experiment).
 */
void store_finished(struct store *s, int64_t experiment, uint32_t shard, uint32_t shards);
/* Returns 0, or -EINVAL with an error for each experiment with an incomplete shard. */
int store_check_complete(struct store *s, struct err *e);

/* Writes one line or object per replication, including failures. Their order depends on the
 * experiments only, so equal results give equal bytes for any origin of the stores. experiment 0:
 * all. The columns are:
 *   experiment, point, replication, status (ok, failed, empty: without requests), message
 *   set.X for every varied setting
 *   soc, llm, workload, rate_scale, policy, params, seed, verdict
 *   config_hash, trace_hash, fingerprint
 *   the metrics by name, except those that no run of the export has
 * form: of store_forms; NULL: nothing. */
void store_export(struct store *s, int64_t experiment, const char *form, FILE *out);
extern const char *const store_forms[]; /* "csv", "json", NULL */

/* Adds all content of another store. Replications and runs in both must be equal: otherwise nothing
 * is added, and the error names the difference. */
int store_merge(struct store *s, const char *path, struct err *e);
