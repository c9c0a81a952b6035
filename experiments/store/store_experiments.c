/* Stores experiments: points, their replications, failures, and finished shards. */
#include "experiments/store/store_impl.h"
#include "sim/base/hash.h"

static int64_t find_experiment(struct store *s, const char *key)
{
    SIM_ASSERT(strlen(key) == 33 && key[16] == '-'); /* two hashes; a shorter key finds nothing */
    sqlite3_stmt *q = store_prepare(s, "SELECT id FROM experiments WHERE key=?1");
    store_bind(q, "t", key);
    return store_ask(s, q, 0);
}

int64_t store_experiment(struct store *s, const char *name, const char *revision, const char *spec)
{
    char key[64];
    /* By content and revision, not by name: a changed file is another experiment, and shards of a
     * file have the same one. */
    (void)snprintf(key, sizeof key, "%016" PRIx64 "-%016" PRIx64, hash_string(HASH_INIT, spec),
                   hash_string(HASH_INIT, revision));
    int64_t id = find_experiment(s, key); /* without waiting for another's transaction */
    if (id != 0 || s->reads) {
        return id;
    }
    sqlite3_stmt *q = store_prepare(
        s, "INSERT OR IGNORE INTO experiments(key, name, revision, spec) VALUES(?1,?2,?3,?4)");
    store_write(s);
    STORE_ONCE(s, q, "tttt", key, name, revision, spec);
    (void)sqlite3_finalize(q);
    id = find_experiment(s, key);
    store_commit(s, true);
    /* Committed, so other shards see it before its first run. */
    SIM_ASSERT(!store_ok(s) || (id > 0 && !s->in_transaction));
    return id;
}

bool store_has_point(struct store *s, int64_t experiment, uint64_t point)
{
    SIM_ASSERT(experiment > 0); /* 0: the experiment is not in a store opened for reading */
    store_bind(s->has_point, "ii", experiment, (int64_t)point);
    return store_number(s, s->has_point, 0) != 0;
}

void store_point(struct store *s, int64_t experiment, uint64_t point, const char *settings)
{
    SIM_ASSERT(experiment > 0 && settings[0] == '{'); /* an object, as the export reads it */
    store_write(s);
    STORE_ONCE(s, s->point, "iit", experiment, (int64_t)point, settings);
    /* OR IGNORE ignores every violated constraint, not only an existing row. */
    SIM_ASSERT(!store_ok(s) || store_has_point(s, experiment, point));
}

void store_finished(struct store *s, int64_t experiment, uint32_t shard, uint32_t shards)
{
    SIM_ASSERT(experiment > 0 && shard < shards);
    sqlite3_stmt *q = store_prepare(s, "INSERT OR IGNORE INTO finished VALUES(?1,?2,?3)");
    store_write(s);
    STORE_ONCE(s, q, "iii", experiment, (int64_t)shards, (int64_t)shard);
    (void)sqlite3_finalize(q);
}

int store_check_complete(struct store *s, struct err *e)
{
    /* an experiment counts by its most complete division into shards */
    sqlite3_stmt *q = store_prepare(
        s, "SELECT name, have, shards FROM (SELECT e.name, e.key, coalesce(f.shards, 1) AS shards,"
           " count(f.shard) AS have FROM experiments e LEFT JOIN finished f"
           " ON f.experiment_id=e.id GROUP BY e.id, f.shards) GROUP BY key"
           " HAVING max(1.0 * have / shards) < 1 ORDER BY name, key");
    size_t before = e->n;
    while (q != NULL && store_step(s, q)) {
        (void)err_add(e, "%s: experiment \"%s\": finished shards: %lld of %lld", s->path,
                      store_text(q, 0), (long long)sqlite3_column_int64(q, 1),
                      (long long)sqlite3_column_int64(q, 2));
    }
    (void)sqlite3_finalize(q);
    return e->n > before ? -EINVAL : 0;
}

/* ---- replications ---- */

int store_state(const struct store *s, int64_t experiment, uint64_t point, uint32_t replication)
{
    static const char *const tables[] = {"members", "failures"};
    int state = 0;
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *q = NULL;
        char *text = sqlite3_mprintf("SELECT 1 FROM %s WHERE experiment_id=?1 AND point=?2"
                                     " AND replication=?3",
                                     tables[i]);
        if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) == SQLITE_OK) {
            store_bind(q, "iii", experiment, (int64_t)point, (int64_t)replication);
            state |= sqlite3_step(q) == SQLITE_ROW ? 1 << i : 0;
        }
        (void)sqlite3_finalize(q);
        sqlite3_free(text);
    }
    return state;
}

void store_member(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                  int64_t run)
{
    int64_t at = (int64_t)point;
    SIM_ASSERT(experiment > 0 && replication < STORE_MAX_REPLICATIONS);
    SIM_ASSERT(run > 0 || !store_ok(s)); /* no run has id 0 */
    store_write(s);
    STORE_ONCE(s, s->member, "iiii", experiment, at, (int64_t)replication, run);
    /* A replication that succeeds now no longer counts as failed. */
    STORE_ONCE(s, s->unfail, "iii", experiment, at, (int64_t)replication);
    SIM_ASSERT(!store_ok(s) || store_state(s, experiment, point, replication) == STORE_IS_MEMBER);
}

void store_failure(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                   const char *message)
{
    int64_t at = (int64_t)point;
    SIM_ASSERT(experiment > 0 && replication < STORE_MAX_REPLICATIONS);
    store_write(s);
    STORE_ONCE(s, s->failure, "iiit", experiment, at, (int64_t)replication, message);
    /* A replication that fails now must not be averaged with its earlier result. */
    STORE_ONCE(s, s->unmember, "iii", experiment, at, (int64_t)replication);
    SIM_ASSERT(!store_ok(s) || store_state(s, experiment, point, replication) == STORE_IS_FAILURE);
}

void store_values(struct store *s, int64_t experiment, uint64_t point, const char *metric,
                  double *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = METRIC_UNDEFINED;
    }
    SIM_ASSERT(n <= STORE_MAX_REPLICATIONS); /* the most that a point can have */
    if (!store_has_column(s, metric)) {
        return;
    }
    char *text = sqlite3_mprintf("SELECT replication, m.\"%w\" FROM members JOIN metrics m"
                                 " USING(run_id) WHERE experiment_id=?1 AND point=?2"
                                 " AND replication>=0 AND replication<?3",
                                 metric);
    sqlite3_stmt *q = store_prepare(s, text);
    store_bind(q, "iii", experiment, (int64_t)point, (int64_t)n);
    while (q != NULL && store_step(s, q)) {
        int64_t at = sqlite3_column_int64(q, 0);
        if (at >= 0 && at < n && sqlite3_column_type(q, 1) != SQLITE_NULL) {
            out[at] = sqlite3_column_double(q, 1);
        }
    }
    (void)sqlite3_finalize(q);
    sqlite3_free(text);
}
