/* One store into another. Both sides number their own things; names and keys carry over. */
#include <errno.h>
#include <string.h>

#include "experiments/store_impl.h"

/* Runs that both have, with a metric that differs; then replications that are unlike runs. */
static const char conflict_sql[] =
    "SELECT 'run ' || a.fingerprint || ': ' || n.name || ' differs' FROM other.runs a"
    " JOIN main.runs b USING(fingerprint, kept)"
    " JOIN other.metrics x ON x.run_id=a.id JOIN other.metric_names n ON n.id=x.metric_id"
    " JOIN main.metric_names m ON m.name=n.name"
    " JOIN main.metrics y ON y.run_id=b.id AND y.metric_id=m.id WHERE x.value IS NOT y.value"
    " UNION ALL "
    "SELECT 'experiment ' || e.name || ', point ' || a.point || ', replication ' || a.replication"
    " || ': two different runs' FROM other.members a"
    " JOIN other.experiments e ON e.id=a.experiment_id JOIN main.experiments f USING(key)"
    " JOIN main.members b ON b.experiment_id=f.id AND b.point=a.point"
    "  AND b.replication=a.replication"
    " JOIN other.runs r ON r.id=a.run_id JOIN main.runs q ON q.id=b.run_id"
    " WHERE r.fingerprint<>q.fingerprint LIMIT 1";

static const char copy_sql[] =
    "CREATE TEMP TABLE fresh AS SELECT a.id FROM other.runs a WHERE NOT EXISTS"
    " (SELECT 1 FROM main.runs b WHERE b.fingerprint=a.fingerprint AND b.kept=a.kept);"
    "INSERT OR IGNORE INTO main.experiments(key, name, revision, spec)"
    " SELECT key, name, revision, spec FROM other.experiments ORDER BY id;"
    "INSERT OR IGNORE INTO main.metric_names(name) SELECT name FROM other.metric_names ORDER BY id;"
    "INSERT INTO main.runs(fingerprint, kept, soc, llm, workload, rate_scale, policy, params, seed,"
    " verdict, config_hash, trace_hash) SELECT fingerprint, kept, soc, llm, workload, rate_scale,"
    " policy, params, seed, verdict, config_hash, trace_hash FROM other.runs"
    " WHERE id IN (SELECT id FROM fresh) ORDER BY id;"
    "INSERT INTO main.metrics SELECT b.id, m.id, x.value FROM fresh"
    " JOIN other.runs a USING(id) JOIN main.runs b USING(fingerprint, kept)"
    " JOIN other.metrics x ON x.run_id=a.id JOIN other.metric_names n ON n.id=x.metric_id"
    " JOIN main.metric_names m ON m.name=n.name;"
    "INSERT OR IGNORE INTO main.points SELECT f.id, p.point, p.settings FROM other.points p"
    " JOIN other.experiments e ON e.id=p.experiment_id JOIN main.experiments f USING(key);"
    "INSERT OR IGNORE INTO main.members SELECT f.id, a.point, a.replication, b.id"
    " FROM other.members a JOIN other.experiments e ON e.id=a.experiment_id"
    " JOIN main.experiments f USING(key) JOIN other.runs r ON r.id=a.run_id"
    " JOIN main.runs b USING(fingerprint, kept);"
    "INSERT OR REPLACE INTO main.failures SELECT f.id, a.point, a.replication, a.message"
    " FROM other.failures a JOIN other.experiments e ON e.id=a.experiment_id"
    " JOIN main.experiments f USING(key);"
    "DELETE FROM main.failures WHERE EXISTS (SELECT 1 FROM main.members m WHERE"
    " m.experiment_id=failures.experiment_id AND m.point=failures.point"
    " AND m.replication=failures.replication);"
    "DROP TABLE fresh;";

static int conflict(struct store *s, const char *path, struct err *e)
{
    sqlite3_stmt *q = store_prepare(s, conflict_sql);
    int rc = 0;
    if (q != NULL && store_step(s, q)) {
        rc = err_add(e, "%s: not the same as in %s: %s", path, s->path,
                     (const char *)sqlite3_column_text(q, 0));
    }
    (void)sqlite3_finalize(q);
    return rc;
}

int store_merge(struct store *s, const char *path, struct err *e)
{
    store_commit(s, true);
    sqlite3_stmt *q = store_prepare(s, "ATTACH ?1 AS other");
    if (q != NULL) {
        (void)sqlite3_bind_text(q, 1, path, -1, SQLITE_TRANSIENT);
        (void)store_step(s, q);
    }
    (void)sqlite3_finalize(q);
    store_write(s);
    int rc = conflict(s, path, e);
    if (rc == 0) {
        store_exec(s, copy_sql);
    }
    if (s->in_transaction) {
        bool good = rc == 0 && store_ok(s);
        (void)sqlite3_exec(s->db, good ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
        s->in_transaction = false;
    }
    store_exec(s, "DETACH other");
    return rc != 0 ? rc : store_ok(s) ? 0 : -EIO;
}
