/* Results of experiments in one SQLite file.
 *
 *   experiments  id, key (of the file's text and the source revision), name, revision, spec
 *   points       experiment_id, point: settings, the varied ones as a JSON object
 *   members      experiment_id, point, replication: run_id
 *   failures     experiment_id, point, replication: message. A failure is no result: the next
 *                sweep tries again, and success removes it
 *   finished     experiment_id, shards, shard: a sweep of that part came to its end
 *   runs         id, fingerprint (version, source revision, configuration, trace, policy,
 *                parameters, seed) and kept (which metrics), unique together, so that runs are
 *                shared between experiments and unlike ones never mix; soc, llm, workload,
 *                rate_scale, policy, params, seed, verdict, config_hash, trace_hash
 *   metrics      run_id and one column per metric, NULL where it is not defined in that run:
 *                SELECT policy, avg("reactive.e2e_s.mean") FROM runs JOIN metrics ON id=run_id
 *                GROUP BY policy
 *   configurations  hash, tree: {soc, llm, sim} of every config_hash, as JSON, so that results can
 *                be judged where the files that they were made from are not
 *
 * Written in WAL mode; writes are gathered into transactions of at most 100 ms, so that a killed
 * process leaves a valid file and loses no more. Several sweeps may share a store. Reading changes
 * nothing, and needs no permission to. Errors stick: after the first, nothing more is written,
 * and store_close reports it. */
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

/* Opens a store, made when missing and STORE_USE_CREATE. NULL with an error that names the file:
 * not there, not a store, not writable. store_close frees; 0 or -EIO with the first error added. */
struct store *store_open(const char *path, enum store_use use, struct err *e);
int store_close(struct store *s, struct err *e);
bool store_ok(const struct store *s);

/* Writes what has been gathered: all of it, or only when it waits for 50 ms. */
void store_commit(struct store *s, bool now);

/* Number of the experiment of that text and revision; made when it is not there (0 when the store
 * is only read). */
int64_t store_experiment(struct store *s, const char *name, const char *revision, const char *spec);
/* Known points are left alone. settings: JSON text. */
void store_point(struct store *s, int64_t experiment, uint64_t point, const char *settings);
bool store_has_point(struct store *s, int64_t experiment, uint64_t point);

/* Number of a run, or 0. */
int64_t store_find(struct store *s, const char *fingerprint, const char *kept);
/* Runs found and added since it was opened. */
uint64_t store_found(const struct store *s);
uint64_t store_added(const struct store *s);
/* Adds a run with its n metrics, or finds the one that is there. */
int64_t store_put(struct store *s, const struct store_run *run, const char *kept,
                  const char *const *names, const double *values, size_t n);
/* The configuration of a hash, in the format of runs: "%016" PRIx64. */
bool store_has_configuration(struct store *s, const char *hash);
void store_configuration(struct store *s, const char *hash, const char *tree);
/* Says which run a replication is; removes its failure. */
void store_member(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                  int64_t run);
void store_failure(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                   const char *message);
/* Values of a metric over replications 0 .. n-1 of a point, NaN where there is none. */
void store_values(struct store *s, int64_t experiment, uint64_t point, const char *metric,
                  double *out, uint32_t n);

/* Calls back for every metric that any run in the store has: NaN where this one has none. */
void store_read(struct store *s, int64_t run, void (*take)(void *ctx, const char *name, double v),
                void *ctx);
/* The text of a configuration, for free(); NULL when it is not there. */
char *store_configuration_text(struct store *s, const char *hash);
/* The text that an experiment was kept with. NULL when there is none; the caller frees it. */
char *store_experiment_spec(struct store *s, int64_t experiment);
/* A replication of an experiment; texts are valid during the call. */
struct store_replication {
    int64_t experiment, run; /* run 0: it failed, and message says why */
    const char *name, *revision, *settings, *message;
    uint64_t point;
    uint32_t replication;
    struct store_run of;     /* empty texts when it failed */
    const char *config_hash; /* as text */
};
/* All of them, by experiment, point and replication. */
void store_replications(struct store *s, void (*take)(void *ctx, const struct store_replication *r),
                        void *ctx);

/* A sweep of this part of an experiment came to its end (0 of 1: all of it). */
void store_finished(struct store *s, int64_t experiment, uint32_t shard, uint32_t shards);
/* Errors for experiments of which a part never came to its end, and -EINVAL; else 0. */
int store_check_complete(struct store *s, struct err *e);

/* Writes one line or object per replication, failures too. Their order depends on the experiments
 * only, so equal results give equal bytes for any origin of the stores. experiment 0: all. The
 * columns are:
 *   experiment, point, replication, status (ok, failed), message
 *   set.X for every varied setting
 *   soc, llm, workload, rate_scale, policy, params, seed, verdict
 *   config_hash, trace_hash, fingerprint
 *   the metrics by name, except those that no run of the export has
 * form: of store_forms; NULL: nothing. */
void store_export(struct store *s, int64_t experiment, const char *form, FILE *out);
extern const char *const store_forms[]; /* "csv", "json", NULL */

/* Adds all that another store holds. A replication or run that both have must be the same: if not,
 * nothing is added, and the error names it. */
int store_merge(struct store *s, const char *path, struct err *e);
