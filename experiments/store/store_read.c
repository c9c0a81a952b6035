/* Reads runs back for analysis. */
#include "experiments/store/store_impl.h"

void store_read(struct store *s, int64_t run, void (*take)(void *ctx, const char *name, double v),
                void *ctx)
{
    if (s->values == NULL) {
        s->values = store_prepare(s, "SELECT * FROM metrics WHERE run_id=?1");
    }
    if (s->values == NULL) {
        return;
    }
    /* There is one statement, so `take` must not read another run. */
    SIM_ASSERT(run > 0 && !sqlite3_stmt_busy(s->values));
    (void)sqlite3_bind_int64(s->values, 1, run);
    if (store_step(s, s->values)) {
        for (int i = 0; i < sqlite3_column_count(s->values); i++) {
            const char *name = sqlite3_column_name(s->values, i);
            bool none = sqlite3_column_type(s->values, i) == SQLITE_NULL;
            if (name != NULL && strcmp(name, "run_id") != 0) {
                take(ctx, name, none ? METRIC_UNDEFINED : sqlite3_column_double(s->values, i));
            }
        }
    }
    (void)sqlite3_reset(s->values);
}

char *store_configuration_text(struct store *s, const char *hash)
{
    SIM_ASSERT(strlen(hash) <= 16); /* from a row of the file, or "" */
    sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM sqlite_master WHERE name='configurations'");
    bool kept = store_ask(s, q, 0) != 0; /* not by earlier versions */
    q = kept ? store_prepare(s, "SELECT tree FROM configurations WHERE hash=?1") : NULL;
    store_bind(q, "t", hash);
    char *text = q != NULL && store_step(s, q) ? xstrdup(store_text(q, 0)) : NULL;
    (void)sqlite3_finalize(q);
    return text;
}

char *store_experiment_spec(struct store *s, int64_t experiment)
{
    sqlite3_stmt *q = store_prepare(s, "SELECT spec FROM experiments WHERE id=?1");
    store_bind(q, "i", experiment);
    char *text = store_step(s, q) ? xstrdup(store_text(q, 0)) : NULL;
    (void)sqlite3_finalize(q);
    return text;
}

static const char replications_sql[] =
    "SELECT e.id, a.point, a.replication, coalesce(a.run_id, 0), e.name, e.revision, p.settings,"
    " a.message, r.fingerprint, r.soc, r.llm, r.workload, r.policy, r.params, r.verdict,"
    " r.config_hash, r.rate_scale, r.seed FROM"
    " (SELECT experiment_id, point, replication, run_id, '' AS message FROM members UNION ALL"
    "  SELECT experiment_id, point, replication, NULL, message FROM failures) a"
    " JOIN experiments e ON e.id=a.experiment_id"
    " JOIN points p ON p.experiment_id=a.experiment_id AND p.point=a.point"
    " LEFT JOIN runs r ON r.id=a.run_id ORDER BY e.id, a.point, a.replication";

void store_replications(struct store *s, void (*take)(void *ctx, const struct store_replication *r),
                        void *ctx)
{
    sqlite3_stmt *q = store_prepare(s, replications_sql);
    SIM_ASSERT(q == NULL || (sqlite3_column_count(q) == 18 && /* indices used below */
                             strcmp(sqlite3_column_name(q, 17), "seed") == 0));
    while (q != NULL && store_step(s, q)) {
        struct store_replication r = {
            .experiment = sqlite3_column_int64(q, 0),
            .point = (uint64_t)sqlite3_column_int64(q, 1),
            .replication = (uint32_t)sqlite3_column_int64(q, 2),
            .run = sqlite3_column_int64(q, 3),
            .name = store_text(q, 4),
            .revision = store_text(q, 5),
            .settings = store_text(q, 6),
            .message = store_text(q, 7),
            .config_hash = store_text(q, 15),
            .of = {.fingerprint = store_text(q, 8),
                   .soc = store_text(q, 9),
                   .llm = store_text(q, 10),
                   .workload = store_text(q, 11),
                   .policy = store_text(q, 12),
                   .params = store_text(q, 13),
                   .verdict = store_text(q, 14),
                   .rate_scale = sqlite3_column_double(q, 16),
                   .seed = (uint64_t)sqlite3_column_int64(q, 17)},
        };
        int64_t replication = sqlite3_column_int64(q, 2);
        if (r.run >= 0 && replication >= 0 && replication < STORE_MAX_REPLICATIONS) {
            take(ctx, &r);
        }
    }
    (void)sqlite3_finalize(q);
}
