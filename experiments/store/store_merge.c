/* Merges a store into another. Numbers differ between stores, so rows are matched by names and
 * keys. */
#include "experiments/store/store_impl.h"

/* Replications of both stores with different runs. */
static const char unlike_members_sql[] =
    "SELECT 'experiment ' || e.name || ', point ' || a.point || ', replication ' || a.replication"
    " || ': two different runs' FROM other.members a"
    " JOIN other.experiments e ON e.id=a.experiment_id JOIN main.experiments f USING(key)"
    " JOIN main.members b ON b.experiment_id=f.id AND b.point=a.point"
    "  AND b.replication=a.replication"
    " JOIN other.runs r ON r.id=a.run_id JOIN main.runs q ON q.id=b.run_id"
    " WHERE r.fingerprint<>q.fingerprint LIMIT 1";

/* Runs of both stores with different metrics; %s: the other's columns. */
static const char unlike_runs_sql[] =
    "SELECT 'run ' || fingerprint || ' differs' FROM (SELECT fingerprint, kept%s"
    " FROM other.runs r JOIN other.metrics m ON m.run_id=r.id WHERE EXISTS"
    "  (SELECT 1 FROM main.runs q WHERE q.fingerprint=r.fingerprint AND q.kept=r.kept)"
    " EXCEPT SELECT fingerprint, kept%s FROM main.runs r JOIN main.metrics m ON m.run_id=r.id)"
    " LIMIT 1";

static const char copy_sql[] =
    "CREATE TEMP TABLE fresh AS SELECT a.id FROM other.runs a WHERE NOT EXISTS"
    " (SELECT 1 FROM main.runs b WHERE b.fingerprint=a.fingerprint AND b.kept=a.kept);"
    "INSERT OR IGNORE INTO main.experiments(key, name, revision, spec)"
    " SELECT key, name, revision, spec FROM other.experiments ORDER BY id;"
    "INSERT INTO main.runs(fingerprint, kept, soc, llm, workload, rate_scale, policy, params, seed,"
    " verdict, config_hash, trace_hash) SELECT fingerprint, kept, soc, llm, workload, rate_scale,"
    " policy, params, seed, verdict, config_hash, trace_hash FROM other.runs"
    " WHERE id IN (SELECT id FROM fresh) ORDER BY id;"
    "INSERT OR IGNORE INTO main.points SELECT f.id, p.point, p.settings FROM other.points p"
    " JOIN other.experiments e ON e.id=p.experiment_id JOIN main.experiments f USING(key);"
    "INSERT OR IGNORE INTO main.members SELECT f.id, a.point, a.replication, b.id"
    " FROM other.members a JOIN other.experiments e ON e.id=a.experiment_id"
    " JOIN main.experiments f USING(key) JOIN other.runs r ON r.id=a.run_id"
    " JOIN main.runs b USING(fingerprint, kept);"
    "INSERT OR IGNORE INTO main.finished SELECT f.id, a.shards, a.shard FROM other.finished a"
    " JOIN other.experiments e ON e.id=a.experiment_id JOIN main.experiments f USING(key);"
    "INSERT OR REPLACE INTO main.failures SELECT f.id, a.point, a.replication, a.message"
    " FROM other.failures a JOIN other.experiments e ON e.id=a.experiment_id"
    " JOIN main.experiments f USING(key);"
    "DELETE FROM main.failures WHERE EXISTS (SELECT 1 FROM main.members m WHERE"
    " m.experiment_id=failures.experiment_id AND m.point=failures.point"
    " AND m.replication=failures.replication);";

/* %s: the other's columns, without and with their table. */
static const char copy_metrics_sql[] =
    "INSERT INTO main.metrics(run_id%s) SELECT b.id%s FROM temp.fresh JOIN other.runs a USING(id)"
    " JOIN main.runs b USING(fingerprint, kept) JOIN other.metrics m ON m.run_id=a.id";

struct columns {
    /* owned, by sqlite3_malloc: ,"a","b" and ,m."a",m."b"; NULL: no columns */
    char *bare, *qualified;
};

/* Finds the other's metrics, and adds missing columns to this store. */
static struct columns share_columns(struct store *s)
{
    SIM_ASSERT(s->in_transaction || !store_ok(s)); /* a refused merge also removes the columns */
    sqlite3_str *bare = sqlite3_str_new(s->db);
    sqlite3_str *qualified = sqlite3_str_new(s->db);
    /* Also if this store has no runs yet, because columns are added one by one. */
    store_exec(s, "CREATE TABLE IF NOT EXISTS main.metrics(run_id INTEGER PRIMARY KEY)");
    sqlite3_stmt *q = store_prepare(
        s, "SELECT name FROM pragma_table_info('metrics', 'other') WHERE name<>'run_id'");
    while (q != NULL && store_step(s, q)) {
        const char *name = store_text(q, 0);
        sqlite3_str_appendf(bare, ",\"%w\"", name);
        sqlite3_str_appendf(qualified, ",m.\"%w\"", name);
        store_add_column(s, name);
    }
    (void)sqlite3_finalize(q);
    char *b = sqlite3_str_finish(bare);
    char *m = sqlite3_str_finish(qualified);
    SIM_ASSERT((b == NULL) == (m == NULL)); /* the same columns, once with their table */
    return (struct columns){b, m};
}

static int refuse_unlike(struct store *s, const char *sql, const char *path, struct err *e)
{
    SIM_ASSERT(s->in_transaction || !store_ok(s)); /* no other process writes during the merge */
    sqlite3_stmt *q = store_prepare(s, sql);
    int rc = 0;
    if (q != NULL && store_step(s, q)) {
        rc = err_add(e, "%s: not the same as in %s: %s", path, s->path, store_text(q, 0));
    }
    (void)sqlite3_finalize(q);
    return rc;
}

static bool other_has(struct store *s, const char *table)
{
    /* the merged store stays unchanged */
    SIM_ASSERT(!store_ok(s) || sqlite3_db_readonly(s->db, "other") == 1);
    sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM other.sqlite_master WHERE name=?1");
    store_bind(q, "t", table);
    return store_ask(s, q, 0) != 0;
}

/* For assertions: no replication has both a failure and a run. */
static bool have_one_state(const struct store *s)
{
    sqlite3_stmt *q = NULL;
    bool both = sqlite3_prepare_v2(s->db,
                                   "SELECT 1 FROM main.members JOIN main.failures"
                                   " USING(experiment_id, point, replication)",
                                   -1, &q, NULL) == SQLITE_OK &&
                sqlite3_step(q) == SQLITE_ROW;
    (void)sqlite3_finalize(q);
    return !both;
}

/* Merges within the transaction. Returns 0 or -errno. */
static int take_over(struct store *s, const char *path, struct err *e)
{
    SIM_ASSERT(s->in_transaction || !store_ok(s)); /* all or nothing */
    bool has_metrics = other_has(s, "metrics");
    /* Checked before copying: equal runs with different numbers are from different programs, and
     * neither may silently replace the other. */
    int rc = refuse_unlike(s, unlike_members_sql, path, e);
    struct columns c = {NULL, NULL};
    if (rc == 0 && has_metrics) {
        c = share_columns(s);
        char *sql = sqlite3_mprintf(unlike_runs_sql, c.qualified, c.qualified);
        rc = refuse_unlike(s, sql, path, e);
        sqlite3_free(sql);
    }
    if (rc == 0) {
        store_exec(s, copy_sql);
    }
    if (rc == 0 && other_has(s, "configurations")) { /* earlier versions kept none */
        store_exec(s, "INSERT OR IGNORE INTO main.configurations SELECT hash, tree"
                      " FROM other.configurations");
    }
    if (rc == 0 && has_metrics) {
        char *sql = sqlite3_mprintf(copy_metrics_sql, c.bare, c.qualified);
        store_exec(s, sql);
        sqlite3_free(sql);
    }
    if (rc == 0) {
        store_exec(s, "DROP TABLE temp.fresh");
        SIM_ASSERT(!store_ok(s) || have_one_state(s));
    }
    sqlite3_free(c.bare);
    sqlite3_free(c.qualified);
    return rc;
}

int store_merge(struct store *s, const char *path, struct err *e)
{
    store_commit(s, true);
    SIM_ASSERT(!s->in_transaction); /* SQLite cannot attach within a transaction */
    sqlite3_stmt *q = store_prepare(s, "ATTACH ?1 AS other");
    char *uri = store_uri(path, true);
    store_bind(q, "t", uri);
    (void)store_ask(s, q, 0);
    sqlite3_free(uri);
    /* One transaction, so a refused merge leaves the store unchanged. */
    store_write(s);
    int rc = take_over(s, path, e);
    if (s->in_transaction) {
        bool good = rc == 0 && store_ok(s);
        (void)sqlite3_exec(s->db, good ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
        s->in_transaction = false;
    }
    store_exec(s, "DETACH other");
    SIM_ASSERT(store_is_sound(s) && !s->in_transaction);
    SIM_ASSERT(!store_ok(s) ||
               sqlite3_db_readonly(s->db, "other") == -1); /* the next merge uses this name */
    return rc != 0 ? rc : store_ok(s) ? 0 : -EIO;
}
