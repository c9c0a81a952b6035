#include "experiments/store/store.h"

#include <unistd.h>

#include "experiments/store/store_impl.h"
#include "sim/base/clock.h"
#include "sim/base/input.h"

#define COMMIT_S 0.05 /* with the 50 ms between two polls (pool.h): at most 100 ms are lost */
#define PATH_BYTES 4096
#define BUSY_MS 60000 /* longest wait for another sweep that holds the file */
#define BUSY_STEP_MS 5

static const char schema[] =
    "CREATE TABLE experiments(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " revision TEXT NOT NULL, spec TEXT NOT NULL);"
    "CREATE TABLE points(experiment_id INTEGER, point INTEGER, settings TEXT NOT NULL,"
    " PRIMARY KEY(experiment_id, point)) WITHOUT ROWID;"
    "CREATE TABLE members(experiment_id INTEGER, point INTEGER, replication INTEGER,"
    " run_id INTEGER NOT NULL, PRIMARY KEY(experiment_id, point, replication)) WITHOUT ROWID;"
    "CREATE TABLE failures(experiment_id INTEGER, point INTEGER, replication INTEGER,"
    " message TEXT NOT NULL, PRIMARY KEY(experiment_id, point, replication)) WITHOUT ROWID;"
    "CREATE TABLE finished(experiment_id INTEGER, shards INTEGER, shard INTEGER,"
    " PRIMARY KEY(experiment_id, shards, shard)) WITHOUT ROWID;"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, kept TEXT NOT NULL,"
    " soc TEXT, llm TEXT, workload TEXT, rate_scale REAL, policy TEXT, params TEXT, seed INTEGER,"
    " verdict TEXT, config_hash TEXT, trace_hash TEXT, UNIQUE(fingerprint, kept));";

/* Stores of earlier versions get this table at their next write. */
static const char configurations[] =
    "CREATE TABLE IF NOT EXISTS configurations(hash TEXT PRIMARY KEY, tree TEXT NOT NULL)"
    " WITHOUT ROWID";

/* ---- statements ---- */

/* The system's reason for an error of SQLite; 0 when there is none. "disk I/O error" alone may be a
 * full disk, a quota or a broken disk. It is that of the last operation, else of the files. */
static int system_reason(sqlite3 *db)
{
    int primary = sqlite3_errcode(db) & 0xff;
    if (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN) {
        return 0;
    }
    static const int files[] = {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER};
    int why = sqlite3_system_errno(db);
    for (size_t i = 0; why == 0 && i < sizeof files / sizeof files[0]; i++) {
        sqlite3_file *f = NULL;
        if (sqlite3_file_control(db, "main", files[i], &f) == SQLITE_OK && f != NULL &&
            f->pMethods != NULL) {
            (void)f->pMethods->xFileControl(f, SQLITE_FCNTL_LAST_ERRNO, &why);
        }
    }
    return why;
}

static void store_fail(struct store *s)
{
    /* Else the message would be "not an error". */
    SIM_ASSERT(sqlite3_errcode(s->db) != SQLITE_OK && sqlite3_errcode(s->db) < SQLITE_ROW);
    /* Keeps the first error, because later ones are its consequences. */
    if (s->error[0] == '\0') {
        const char *said = sqlite3_errmsg(s->db);
        int why = system_reason(s->db);
        (void)snprintf(s->error, sizeof s->error, "%s: %s%s%s", s->path, said, why != 0 ? ": " : "",
                       why != 0 ? strerror(why) : "");
    }
}

bool store_ok(const struct store *s)
{
    return s->error[0] == '\0';
}

static bool are_at_rest(const struct store *s)
{
    return !sqlite3_stmt_busy(s->find) && !sqlite3_stmt_busy(s->put) &&
           !sqlite3_stmt_busy(s->metrics) && !sqlite3_stmt_busy(s->member) &&
           !sqlite3_stmt_busy(s->unfail) && !sqlite3_stmt_busy(s->unmember) &&
           !sqlite3_stmt_busy(s->failure) && !sqlite3_stmt_busy(s->point) &&
           !sqlite3_stmt_busy(s->has_point);
}

bool store_is_sound(const struct store *s)
{
    if (!store_ok(s)) { /* SQLite may have rolled back by itself */
        return true;
    }
    return s->in_transaction == (sqlite3_get_autocommit(s->db) == 0) &&
           !(s->reads && s->in_transaction) && are_at_rest(s) &&
           (s->metrics == NULL ||
            (size_t)sqlite3_bind_parameter_count(s->metrics) == s->n_columns + 1);
}

sqlite3_stmt *store_prepare(struct store *s, const char *sql)
{
    sqlite3_stmt *q = NULL;
    const char *rest = NULL;
    if (store_ok(s) && sqlite3_prepare_v2(s->db, sql, -1, &q, &rest) != SQLITE_OK) {
        store_fail(s);
    }
    SIM_ASSERT(q == NULL || *rest == '\0'); /* a second statement would never run */
    return q;
}

bool store_step(struct store *s, sqlite3_stmt *q)
{
    if (!store_ok(s)) {
        return false;
    }
    SIM_ASSERT(sqlite3_db_handle(q) ==
               s->db); /* of this store, not of one that it is merged with */
    int rc = sqlite3_step(q);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_fail(s);
    }
    return rc == SQLITE_ROW;
}

const char *store_text(sqlite3_stmt *q, int column)
{
    SIM_ASSERT(column < sqlite3_data_count(q)); /* without a current row there is none */
    const char *text = (const char *)sqlite3_column_text(q, column);
    return text != NULL ? text : "";
}

void store_exec(struct store *s, const char *sql)
{
    SIM_ASSERT(!s->reads); /* a reader changes nothing */
    if (store_ok(s) && sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        store_fail(s);
    }
}

void store_bind(sqlite3_stmt *q, const char *kinds, ...)
{
    /* An unbound parameter is NULL, and a running statement takes no values. */
    SIM_ASSERT(q == NULL || (size_t)sqlite3_bind_parameter_count(q) == strlen(kinds));
    SIM_ASSERT(!sqlite3_stmt_busy(q));
    va_list values;
    va_start(values, kinds);
    for (int at = 1; q != NULL && kinds[at - 1] != '\0'; at++) {
        if (kinds[at - 1] == 't') {
            /* SQLite copies it, because the caller may free the text before the statement runs. */
            (void)sqlite3_bind_text(q, at, va_arg(values, const char *), -1, SQLITE_TRANSIENT);
        } else if (kinds[at - 1] == 'd') {
            (void)sqlite3_bind_double(q, at, va_arg(values, double));
        } else {
            (void)sqlite3_bind_int64(q, at, va_arg(values, int64_t));
        }
    }
    va_end(values);
}

void store_once(struct store *s, sqlite3_stmt *q)
{
    SIM_ASSERT(sqlite3_column_count(q) == 0); /* or its results would be lost */
    (void)store_number(s, q, 0);
}

int64_t store_number(struct store *s, sqlite3_stmt *q, int64_t none)
{
    /* Otherwise the row is not the first, or has several columns. */
    SIM_ASSERT(!sqlite3_stmt_busy(q) && sqlite3_column_count(q) <= 1);
    int64_t v = q != NULL && store_step(s, q) ? sqlite3_column_int64(q, 0) : none;
    (void)sqlite3_reset(q);
    return v;
}

int64_t store_ask(struct store *s, sqlite3_stmt *q, int64_t none)
{
    int64_t v = store_number(s, q, none);
    (void)sqlite3_finalize(q);
    return v;
}

void store_write(struct store *s)
{
    SIM_ASSERT(store_is_sound(s));
    if (!s->in_transaction && store_ok(s)) {
        store_exec(s, "BEGIN IMMEDIATE");
        /* Many runs share a transaction: a commit for each would wait for the disk thousands of
         * times. */
        s->in_transaction = store_ok(s);
        s->since_s = clock_now_s();
    }
    SIM_ASSERT(store_is_sound(s));
}

void store_commit(struct store *s, bool now)
{
    SIM_ASSERT(!s->in_transaction || clock_now_s() >= s->since_s);
    if (s->in_transaction && (now || clock_now_s() - s->since_s >= COMMIT_S)) {
        store_exec(s, "COMMIT");
        s->in_transaction = false;
    }
    SIM_ASSERT(store_is_sound(s));
}

/* ---- life ---- */

/* -1 on error. */
static int64_t pragma(struct store *s, const char *sql)
{
    return store_ask(s, store_prepare(s, sql), -1);
}

/* Makes the tables in an empty file; any other must be a store of this format. */
static void check_format(struct store *s)
{
    int64_t tables = pragma(s, "SELECT count(*) FROM sqlite_master");
    if (store_ok(s) && tables == 0 && !s->reads) {
        char text[128];
        (void)snprintf(text, sizeof text, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
                       STORE_APPLICATION_ID, STORE_FORMAT);
        store_exec(s, "BEGIN IMMEDIATE");
        if (pragma(s, "SELECT count(*) FROM sqlite_master") == 0) { /* no other was faster */
            store_exec(s, schema);
            store_exec(s, text);
        }
        store_exec(s, "COMMIT");
    } else if (store_ok(s) && (pragma(s, "PRAGMA application_id") != STORE_APPLICATION_ID ||
                               pragma(s, "PRAGMA user_version") != STORE_FORMAT)) {
        (void)snprintf(s->error, sizeof s->error,
                       "%s: a database, but not a store of results of format %d", s->path,
                       STORE_FORMAT);
    }
    SIM_ASSERT(!store_ok(s) || sqlite3_get_autocommit(s->db)); /* its transaction is over */
}

static void prepare_all(struct store *s)
{
    s->find = store_prepare(s, "SELECT id FROM runs WHERE fingerprint=?1 AND kept=?2");
    s->put = store_prepare(
        s, "INSERT INTO runs(fingerprint, kept, soc, llm, workload, rate_scale, policy, params,"
           " seed, verdict, config_hash, trace_hash)"
           " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)");
    s->member = store_prepare(s, "INSERT INTO members VALUES(?1,?2,?3,?4) ON CONFLICT DO UPDATE SET"
                                 " run_id=excluded.run_id WHERE run_id<>excluded.run_id");
    s->unfail = store_prepare(
        s, "DELETE FROM failures WHERE experiment_id=?1 AND point=?2 AND replication=?3");
    s->unmember = store_prepare(
        s, "DELETE FROM members WHERE experiment_id=?1 AND point=?2 AND replication=?3");
    s->failure = store_prepare(s, "INSERT OR REPLACE INTO failures VALUES(?1,?2,?3,?4)");
    s->point = store_prepare(s, "INSERT OR IGNORE INTO points VALUES(?1,?2,?3)");
    s->has_point = store_prepare(s, "SELECT 1 FROM points WHERE experiment_id=?1 AND point=?2");
    /* Reading does not wait for another writer. */
    SIM_ASSERT(!store_ok(s) ||
               (sqlite3_stmt_readonly(s->find) && sqlite3_stmt_readonly(s->has_point)));
}

/* Whether the file is in WAL mode without a log file. Then no process has it open, and SQLite may
 * read it as an immutable file. Normal opening would create the log, or fail to. */
static bool left_alone(const char *path)
{
    char log[PATH_BYTES];
    char head[20] = "";
    SCOPED(input_drop) FILE *f = input_try(path);
    size_t n = f != NULL ? fread(head, 1, sizeof head, f) : 0;
    (void)snprintf(log, sizeof log, "%s-wal", path);
    return n == sizeof head && head[18] == 2 && access(log, F_OK) != 0;
}

char *store_uri(const char *path, bool reads)
{
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, "file:");
    for (const char *p = path; *p != '\0'; p++) {
        /* In a URI these begin options, a fragment or an escape. */
        bool plain = strchr("?#%", *p) == NULL;
        sqlite3_str_appendf(uri, plain ? "%c" : "%%%02X", (unsigned char)*p);
    }
    sqlite3_str_appendall(uri, reads ? left_alone(path) ? "?immutable=1" : "?mode=ro" : "");
    return sqlite3_str_finish(uri);
}

/* A failed allocation of SQLite ends the process like everything else (memory.h). */
static sqlite3_mem_methods plain_memory;

static void *give(int bytes)
{
    SIM_ASSERT(plain_memory.xMalloc != NULL && bytes > 0); /* so NULL means out of memory */
    void *p = plain_memory.xMalloc(bytes);
    if (p == NULL) {
        out_of_memory((size_t)bytes);
    }
    return p;
}

static void *give_again(void *old, int bytes)
{
    SIM_ASSERT(plain_memory.xRealloc != NULL && bytes > 0);
    void *p = plain_memory.xRealloc(old, bytes);
    if (p == NULL) {
        out_of_memory((size_t)bytes);
    }
    return p;
}

/* SQLite refuses this if it is already initialised; then it is not needed. */
static void guard_memory(void)
{
    sqlite3_mem_methods guarded;
    if (plain_memory.xMalloc == NULL &&
        sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain_memory) == SQLITE_OK) {
        guarded = plain_memory;
        guarded.xMalloc = give;
        guarded.xRealloc = give_again;
        (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &guarded);
    }
}

/* SQLite changes the mode as a reader that becomes a writer, without its busy timeout: this fails
 * at once if another process writes, such as one that opens the same file. */
static void log_writes(struct store *s)
{
    /* Within a transaction SQLite would not change the mode. */
    SIM_ASSERT(!store_ok(s) || (sqlite3_get_autocommit(s->db) && !s->reads));
    double until_s = clock_now_s() + BUSY_MS / 1e3;
    int rc = SQLITE_OK;
    while (store_ok(s) &&
           (rc = sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL)) == SQLITE_BUSY &&
           clock_now_s() < until_s) {
        (void)sqlite3_sleep(BUSY_STEP_MS);
    }
    if (rc != SQLITE_OK) {
        store_fail(s);
    }
}

struct store *store_open(const char *path, enum store_use use, struct err *e)
{
    guard_memory();
    if (use != STORE_USE_CREATE && access(path, R_OK) != 0) {
        return err_null(e, "%s: %s", path, strerror(errno));
    }
    struct store *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    s->reads = use == STORE_USE_READ;
    int flags = SQLITE_OPEN_URI | (s->reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                (use == STORE_USE_CREATE ? SQLITE_OPEN_CREATE : 0);
    char *uri = store_uri(path, s->reads);
    if (sqlite3_open_v2(uri, &s->db, flags, NULL) != SQLITE_OK) {
        store_fail(s);
    }
    sqlite3_free(uri);
    (void)sqlite3_busy_timeout(s->db, BUSY_MS);
    /* foreign files may have views and triggers, which may only use built-in functions */
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    check_format(s);
    if (!s->reads) {
        log_writes(s);
        store_exec(s, "PRAGMA synchronous=NORMAL");
        store_exec(s, configurations);
    }
    prepare_all(s);
    if (!store_ok(s)) {
        (void)store_close(s, e);
        return NULL;
    }
    /* A reader cannot write, and a writer can. */
    SIM_ASSERT(s->reads == (sqlite3_db_readonly(s->db, "main") == 1));
    SIM_ASSERT(store_is_sound(s) && !s->in_transaction);
    return s;
}

void store_forget_columns(struct store *s)
{
    for (size_t i = 0; i < s->n_columns; i++) {
        free(s->columns[i]);
    }
    s->n_columns = 0;
}

int store_close(struct store *s, struct err *e)
{
    if (s == NULL) {
        return 0;
    }
    store_commit(s, true);
    sqlite3_stmt *all[] = {s->find,     s->put,     s->metrics, s->member,    s->unfail,
                           s->unmember, s->failure, s->point,   s->has_point, s->values};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)sqlite3_finalize(all[i]);
    }
    SIM_ASSERT(sqlite3_next_stmt(s->db, NULL) == NULL); /* or the file would stay open */
    int rc = store_ok(s) ? 0 : -EIO;
    if (!s->reads) { /* the last process to close it leaves a single file */
        /* Without waiting: if another process has it open, that one leaves the single file. */
        (void)sqlite3_busy_timeout(s->db, 0);
        (void)sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    }
    int closed = sqlite3_close(s->db);
    SIM_ASSERT(closed == SQLITE_OK); /* else it would hold its locks until the process ends */
    if (rc != 0) {
        /* A full disk has no room to move the log into the file, and the log has results. */
        OWNED char *log = xformat("%s-wal", s->path);
        bool split = !s->reads && access(log, F_OK) == 0;
        (void)err_add(e,
                      split ? "%s; finished results are in it and in %s: keep both, and the same "
                              "command continues when there is room"
                            : "%s",
                      s->error, log);
    }
    store_forget_columns(s);
    free(s->columns);
    free(s->path);
    free(s);
    return rc;
}
