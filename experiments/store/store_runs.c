/* Stores runs and their metrics. A run is a row, and every metric of any run has a column. */
#include "experiments/store/store_impl.h"

static int64_t look(struct store *s, const char *fingerprint, const char *kept)
{
    SIM_ASSERT(fingerprint[0] != '\0' && kept[0] != '\0'); /* a run without a key is not stored */
    store_bind(s->find, "tt", fingerprint, kept);
    return store_number(s, s->find, 0);
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
    SIM_ASSERT(s->added == 0 || !s->reads);
    return s->added;
}

/* ---- columns of metrics ---- */

bool store_has_column(struct store *s, const char *name)
{
    sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM pragma_table_info('metrics') WHERE name=?1");
    store_bind(q, "t", name);
    return store_ask(s, q, 0) != 0;
}

/* Makes the table with all columns at once, which is faster than adding each. */
static void create_columns(struct store *s, const char *const *names, size_t n)
{
    SIM_ASSERT(s->in_transaction || !store_ok(s)); /* so no other sweep makes the table first */
    sqlite3_str *sql = sqlite3_str_new(s->db);
    sqlite3_str_appendall(sql, "CREATE TABLE metrics(run_id INTEGER PRIMARY KEY");
    for (size_t i = 0; i < n; i++) {
        sqlite3_str_appendf(sql, ",\"%w\" REAL", names[i]);
    }
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    store_exec(s, text);
    sqlite3_free(text);
}

void store_add_column(struct store *s, const char *name)
{
    SIM_ASSERT(s->in_transaction || !store_ok(s)); /* so no other sweep adds the column first */
    if (!store_has_column(s, name)) {
        char *text = sqlite3_mprintf("ALTER TABLE metrics ADD COLUMN \"%w\" REAL", name);
        store_exec(s, text);
        sqlite3_free(text);
    }
}

static bool are_unlike(char *const *names, size_t n)
{
    bool unlike = true;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            unlike = unlike && strcmp(names[i], names[j]) != 0;
        }
    }
    return unlike;
}

/* Reads the names of columns, and prepares the statement that fills them. */
static void prepare_metrics(struct store *s)
{
    store_forget_columns(s);
    sqlite3_str *sql = sqlite3_str_new(s->db);
    sqlite3_str *places = sqlite3_str_new(s->db);
    sqlite3_str_appendall(sql, "INSERT INTO metrics(run_id");
    sqlite3_stmt *q = store_prepare(s, "SELECT name FROM pragma_table_info('metrics')"
                                       " WHERE name<>'run_id'");
    while (q != NULL && store_step(s, q)) {
        s->columns = xgrow(s->columns, s->n_columns, sizeof *s->columns);
        s->columns[s->n_columns] = xstrdup(store_text(q, 0));
        sqlite3_str_appendf(sql, ",\"%w\"", s->columns[s->n_columns++]);
        sqlite3_str_appendall(places, ",?");
    }
    (void)sqlite3_finalize(q);
    char *end = sqlite3_str_finish(places);
    sqlite3_str_appendf(sql, ") VALUES(?%s)", end != NULL ? end : "");
    sqlite3_free(end);
    char *text = sqlite3_str_finish(sql);
    (void)sqlite3_finalize(s->metrics);
    s->metrics = store_prepare(s, text);
    sqlite3_free(text);
    SIM_ASSERT(store_is_sound(s) && are_unlike(s->columns, s->n_columns));
}

/* Finds a column by name, from index `from` on, then from the first; SIZE_MAX: none. Runs have
 * similar metrics in the same order, so `from` is mostly right. */
static size_t column_of(const struct store *s, const char *name, size_t from)
{
    for (size_t i = 0; i < s->n_columns; i++, from++) {
        from = from < s->n_columns ? from : 0;
        if (strcmp(s->columns[from], name) == 0) {
            return from;
        }
    }
    return SIZE_MAX;
}

/* Binds values; missing metrics and NaN are NULL. False: a column is missing or unknown. */
static bool bind_metrics(struct store *s, const char *const *names, const double *values, size_t n)
{
    /* Otherwise a metric that this run lacks would keep the value of the previous run. */
    SIM_ASSERT(store_is_sound(s)); /* the place of column i is i + 2 */
    (void)sqlite3_clear_bindings(s->metrics);
    size_t at = 0;
    for (size_t i = 0; i < n; i++, at++) {
        at = column_of(s, names[i], at);
        if (at == SIZE_MAX) {
            return false;
        }
        (void)sqlite3_bind_double(s->metrics, (int)at + 2, values[i]);
    }
    SIM_ASSERT(n <= s->n_columns); /* metrics of a run have different names */
    return true;
}

/* For assertions: the run has that value under that name; NaN is NULL. */
static bool has_value(const struct store *s, int64_t id, const char *name, double value)
{
    sqlite3_stmt *q = NULL;
    char *text = sqlite3_mprintf("SELECT \"%w\" FROM metrics WHERE run_id=?1", name);
    bool has = false;
    if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) == SQLITE_OK) {
        store_bind(q, "i", id);
        has = sqlite3_step(q) == SQLITE_ROW;
        bool none = has && sqlite3_column_type(q, 0) == SQLITE_NULL;
        has = has && (none ? isnan(value) : sqlite3_column_double(q, 0) == value);
    }
    (void)sqlite3_finalize(q);
    sqlite3_free(text);
    return has;
}

/* Ensures a column for each metric, also in the statement. */
static void need_columns(struct store *s, const char *const *names, size_t n)
{
    if (!store_has_column(s, "run_id")) {
        create_columns(s, names, n);
    }
    prepare_metrics(s);
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        if (column_of(s, names[i], i) == SIZE_MAX) {
            store_add_column(s, names[i]);
            all = false;
        }
    }
    if (!all) {
        prepare_metrics(s);
    }
    SIM_ASSERT(!store_ok(s) || n == 0 || column_of(s, names[n - 1], n - 1) != SIZE_MAX);
}

static void put_metrics(struct store *s, int64_t id, const char *const *names, const double *values,
                        size_t n)
{
    SIM_ASSERT(id > 0 && s->in_transaction); /* a run without its metrics is never committed */
    bool bound = s->metrics != NULL && bind_metrics(s, names, values, n);
    if (!bound) {
        need_columns(s, names, n);
        bound = s->metrics != NULL && bind_metrics(s, names, values, n);
    }
    SIM_ASSERT(bound || !store_ok(s));
    if (bound) {
        (void)sqlite3_bind_int64(s->metrics, 1, id);
        store_once(s, s->metrics);
    }
    /* Columns may be in another order: check those at both ends. */
    SIM_ASSERT(
        !store_ok(s) || n == 0 ||
        (has_value(s, id, names[0], values[0]) && has_value(s, id, names[n - 1], values[n - 1])));
}

int64_t store_put(struct store *s, const struct store_run *run, const char *kept,
                  const char *const *names, const double *values, size_t n)
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
    STORE_ONCE(s, s->put, "tttttdttittt", run->fingerprint, kept, run->soc, run->llm, run->workload,
               run->rate_scale, run->policy, run->params, (int64_t)run->seed, run->verdict,
               config_hash, trace_hash);
    id = sqlite3_last_insert_rowid(s->db);
    s->added++;
    put_metrics(s, id, names, values, n);
    SIM_ASSERT(!store_ok(s) || look(s, run->fingerprint, kept) == id); /* the next look finds it */
    return id;
}

/* ---- configurations ---- */

bool store_has_configuration(struct store *s, const char *hash)
{
    SIM_ASSERT(strlen(hash) == 16);
    sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM configurations WHERE hash=?1");
    store_bind(q, "t", hash);
    return store_ask(s, q, 0) != 0;
}

void store_configuration(struct store *s, const char *hash, const char *tree)
{
    SIM_ASSERT(strlen(hash) == 16 && tree[0] == '{'); /* an object, as readers expect */
    sqlite3_stmt *q = store_prepare(s, "INSERT OR IGNORE INTO configurations VALUES(?1, ?2)");
    store_write(s);
    STORE_ONCE(s, q, "tt", hash, tree);
    (void)sqlite3_finalize(q);
    SIM_ASSERT(!store_ok(s) || store_has_configuration(s, hash)); /* now, or before */
}
