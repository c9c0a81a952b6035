/* What experiments are made of: points, their replications, failures, and how far shards came. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "experiments/store/store_impl.h"
#include "sim/base/hash.h"

static void bind_place(sqlite3_stmt *q, int64_t experiment, uint64_t point)
{
    (void)sqlite3_bind_int64(q, 1, experiment);
    (void)sqlite3_bind_int64(q, 2, (int64_t)point);
}

static int64_t find_experiment(struct store *s, const char *key)
{
    sqlite3_stmt *q = store_prepare(s, "SELECT id FROM experiments WHERE key=?1");
    if (q != NULL) {
        store_bind_text(q, 1, key);
    }
    int64_t id = q != NULL && store_step(s, q) ? sqlite3_column_int64(q, 0) : 0;
    (void)sqlite3_finalize(q);
    return id;
}

int64_t store_experiment(struct store *s, const char *name, const char *revision, const char *spec)
{
    char key[64];
    /* By content and revision, not by name: a file that was changed is another experiment, and two
     * shards of one file are the same. */
    (void)snprintf(key, sizeof key, "%016" PRIx64 "-%016" PRIx64, hash_string(HASH_INIT, spec),
                   hash_string(HASH_INIT, revision));
    int64_t id = find_experiment(s, key); /* without waiting for another's transaction */
    if (id != 0 || s->reads) {
        return id;
    }
    sqlite3_stmt *q = store_prepare(
        s, "INSERT OR IGNORE INTO experiments(key, name, revision, spec) VALUES(?1,?2,?3,?4)");
    const char *const text[] = {key, name, revision, spec};
    for (int i = 0; i < 4 && q != NULL; i++) {
        store_bind_text(q, i + 1, text[i]);
    }
    store_write(s);
    if (q != NULL) {
        store_once(s, q);
    }
    (void)sqlite3_finalize(q);
    id = find_experiment(s, key);
    store_commit(s, true);
    return id;
}

bool store_has_point(struct store *s, int64_t experiment, uint64_t point)
{
    bind_place(s->has_point, experiment, point);
    bool there = store_step(s, s->has_point);
    (void)sqlite3_reset(s->has_point);
    return there;
}

void store_point(struct store *s, int64_t experiment, uint64_t point, const char *settings)
{
    store_write(s);
    bind_place(s->point, experiment, point);
    store_bind_text(s->point, 3, settings);
    store_once(s, s->point);
}

uint64_t store_count(struct store *s, int64_t experiment)
{
    sqlite3_stmt *q = store_prepare(s, "SELECT count(*) FROM members WHERE experiment_id=?1");
    (void)sqlite3_bind_int64(q, 1, experiment);
    uint64_t n = q != NULL && store_step(s, q) ? (uint64_t)sqlite3_column_int64(q, 0) : 0;
    (void)sqlite3_finalize(q);
    return n;
}

void store_finished(struct store *s, int64_t experiment, uint32_t shard, uint32_t shards)
{
    sqlite3_stmt *q = store_prepare(s, "INSERT OR IGNORE INTO finished VALUES(?1,?2,?3)");
    if (q != NULL) {
        store_write(s);
        bind_place(q, experiment, shards);
        (void)sqlite3_bind_int64(q, 3, shard);
        store_once(s, q);
    }
    (void)sqlite3_finalize(q);
}

int store_check_complete(struct store *s, struct err *e)
{
    /* the division of which most is there speaks for an experiment */
    sqlite3_stmt *q = store_prepare(
        s, "SELECT name, have, shards FROM (SELECT e.name, e.key, coalesce(f.shards, 1) AS shards,"
           " count(f.shard) AS have FROM experiments e LEFT JOIN finished f"
           " ON f.experiment_id=e.id GROUP BY e.id, f.shards) GROUP BY key"
           " HAVING max(1.0 * have / shards) < 1 ORDER BY name, key");
    size_t before = e->n;
    while (q != NULL && store_step(s, q)) {
        (void)err_add(e, "%s: experiment \"%s\": %lld of %lld shards have finished", s->path,
                      store_text(q, 0), (long long)sqlite3_column_int64(q, 1),
                      (long long)sqlite3_column_int64(q, 2));
    }
    (void)sqlite3_finalize(q);
    return e->n > before ? -EINVAL : 0;
}

/* ---- replications ---- */

void store_member(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                  int64_t run)
{
    store_write(s);
    bind_place(s->member, experiment, point);
    (void)sqlite3_bind_int64(s->member, 3, replication);
    (void)sqlite3_bind_int64(s->member, 4, run);
    store_once(s, s->member);
    /* A replication that failed once and succeeds now has not failed. */
    bind_place(s->unfail, experiment, point);
    (void)sqlite3_bind_int64(s->unfail, 3, replication);
    store_once(s, s->unfail);
}

void store_failure(struct store *s, int64_t experiment, uint64_t point, uint32_t replication,
                   const char *message)
{
    store_write(s);
    bind_place(s->failure, experiment, point);
    (void)sqlite3_bind_int64(s->failure, 3, replication);
    store_bind_text(s->failure, 4, message);
    store_once(s, s->failure);
    /* And one that fails now, of the same revision, must not be averaged with what it gave before.
     */
    bind_place(s->unmember, experiment, point);
    (void)sqlite3_bind_int64(s->unmember, 3, replication);
    store_once(s, s->unmember);
}

void store_values(struct store *s, int64_t experiment, uint64_t point, const char *metric,
                  double *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = METRIC_UNDEFINED;
    }
    if (!store_has_column(s, metric)) {
        return;
    }
    char *text = sqlite3_mprintf("SELECT replication, m.\"%w\" FROM members JOIN metrics m"
                                 " USING(run_id) WHERE experiment_id=?1 AND point=?2"
                                 " AND replication>=0 AND replication<?3",
                                 metric);
    sqlite3_stmt *q = store_prepare(s, text);
    bind_place(q, experiment, point);
    (void)sqlite3_bind_int64(q, 3, n);
    while (q != NULL && store_step(s, q)) {
        int64_t at = sqlite3_column_int64(q, 0);
        if (at >= 0 && at < n && sqlite3_column_type(q, 1) != SQLITE_NULL) {
            out[at] = sqlite3_column_double(q, 1);
        }
    }
    (void)sqlite3_finalize(q);
    sqlite3_free(text);
}
