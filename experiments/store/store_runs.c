/* Runs and their metrics: a row each, and a column for every metric that any run has. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/store/store_impl.h"
#include "sim/base/arena.h"

static int64_t look(struct store *s, const char *fingerprint, const char *kept)
{
    store_bind_text(s->find, 1, fingerprint);
    store_bind_text(s->find, 2, kept);
    int64_t id = store_step(s, s->find) ? sqlite3_column_int64(s->find, 0) : 0;
    (void)sqlite3_reset(s->find);
    return id;
}

int64_t store_find(struct store *s, const char *fingerprint, const char *kept)
{
    int64_t id = look(s, fingerprint, kept);
    s->found += id != 0 ? 1 : 0;
    return id;
}

uint64_t store_found(const struct store *s)
{
    return s->found;
}

uint64_t store_added(const struct store *s)
{
    return s->added;
}

/* ---- metrics: a column each ---- */

bool store_has_column(struct store *s, const char *name)
{
    sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM pragma_table_info('metrics') WHERE name=?1");
    if (q != NULL) {
        store_bind_text(q, 1, name);
    }
    bool there = q != NULL && store_step(s, q);
    (void)sqlite3_finalize(q);
    return there;
}

/* Makes the table with all columns at once, which is quicker than adding each. */
static void create_columns(struct store *s, const struct metric *metrics, size_t n)
{
    sqlite3_str *sql = sqlite3_str_new(s->db);
    sqlite3_str_appendall(sql, "CREATE TABLE metrics(run_id INTEGER PRIMARY KEY");
    for (size_t i = 0; i < n; i++) {
        sqlite3_str_appendf(sql, ",\"%w\" REAL", metrics[i].name);
    }
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    store_exec(s, text);
    sqlite3_free(text);
}

void store_add_column(struct store *s, const char *name)
{
    if (!store_has_column(s, name)) {
        char *text = sqlite3_mprintf("ALTER TABLE metrics ADD COLUMN \"%w\" REAL", name);
        store_exec(s, text);
        sqlite3_free(text);
    }
}

static bool same_names(const struct store *s, const struct metric *metrics, size_t n)
{
    bool same = s->metrics != NULL && n == s->n_last;
    for (size_t i = 0; i < n && same; i++) {
        same = strcmp(s->last[i].name, metrics[i].name) == 0;
    }
    return same;
}

/* The statement for these names; runs on one machine have the same. */
static void prepare_metrics(struct store *s, const struct metric *metrics, size_t n)
{
    if (same_names(s, metrics, n)) {
        return;
    }
    if (!store_has_column(s, "run_id")) {
        create_columns(s, metrics, n);
    }
    sqlite3_str *sql = sqlite3_str_new(s->db);
    sqlite3_str_appendall(sql, "INSERT INTO metrics(run_id");
    for (size_t i = 0; i < n; i++) {
        store_add_column(s, metrics[i].name);
        sqlite3_str_appendf(sql, ",\"%w\"", metrics[i].name);
    }
    sqlite3_str_appendall(sql, ") VALUES(?");
    for (size_t i = 0; i < n; i++) {
        sqlite3_str_appendall(sql, ",?");
    }
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    (void)sqlite3_finalize(s->metrics);
    s->metrics = store_prepare(s, text);
    sqlite3_free(text);
    s->last = xrealloc(s->last, (n + 1) * sizeof *s->last);
    memcpy(s->last, metrics, n * sizeof *s->last);
    s->n_last = n;
}

int64_t store_put(struct store *s, const struct store_run *run, const char *kept,
                  const struct metric *metrics, size_t n)
{
    store_write(s); /* before the look, or another sweep could add the same in between */
    int64_t id = look(s, run->fingerprint, kept);
    if (id != 0 || !store_ok(s)) {
        return id;
    }
    char config_hash[24];
    char trace_hash[24];
    (void)snprintf(config_hash, sizeof config_hash, "%016" PRIx64, run->config_hash);
    (void)snprintf(trace_hash, sizeof trace_hash, "%016" PRIx64, run->trace_hash);
    store_bind_text(s->put, 1, run->fingerprint);
    store_bind_text(s->put, 2, kept);
    store_bind_text(s->put, 3, run->soc);
    store_bind_text(s->put, 4, run->llm);
    store_bind_text(s->put, 5, run->workload);
    (void)sqlite3_bind_double(s->put, 6, run->rate_scale);
    store_bind_text(s->put, 7, run->policy);
    store_bind_text(s->put, 8, run->params);
    (void)sqlite3_bind_int64(s->put, 9, (int64_t)run->seed);
    store_bind_text(s->put, 10, run->verdict);
    store_bind_text(s->put, 11, config_hash);
    store_bind_text(s->put, 12, trace_hash);
    store_once(s, s->put);
    id = sqlite3_last_insert_rowid(s->db);
    s->added++;
    prepare_metrics(s, metrics, n);
    (void)sqlite3_bind_int64(s->metrics, 1, id);
    for (size_t i = 0; i < n; i++) {
        (void)sqlite3_bind_double(s->metrics, (int)i + 2, metrics[i].value); /* NaN is NULL */
    }
    if (s->metrics != NULL) {
        store_once(s, s->metrics);
    }
    return id;
}

/* ---- configurations ---- */

bool store_has_configuration(struct store *s, const char *hash)
{
    sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM configurations WHERE hash=?1");
    store_bind_text(q, 1, hash);
    bool there = q != NULL && store_step(s, q);
    (void)sqlite3_finalize(q);
    return there;
}

void store_configuration(struct store *s, const char *hash, const char *tree)
{
    sqlite3_stmt *q = store_prepare(s, "INSERT OR IGNORE INTO configurations VALUES(?1, ?2)");
    store_write(s);
    if (q != NULL) {
        store_bind_text(q, 1, hash);
        store_bind_text(q, 2, tree);
        store_once(s, q);
    }
    (void)sqlite3_finalize(q);
}
