/* Shared by the store's own files. */
#pragma once

#include <sqlite3.h>

#include "experiments/store/store.h"

#define STORE_APPLICATION_ID 0x78707573 /* "xpus" */
#define STORE_FORMAT 3
#define STORE_MAX_REPLICATIONS (1 << 20) /* more cannot be an experiment of this program */

struct store {
    sqlite3 *db;
    char *path; /* owned */
    char error[512];
    bool reads;            /* only */
    uint64_t found, added; /* numbers of runs */
    bool in_transaction;
    double since_s; /* of the transaction, monotonic clock */
    sqlite3_stmt *find, *put, *member, *unfail, *unmember, *failure, *point, *has_point;
    sqlite3_stmt *values;  /* reads the metrics of a run; NULL before the first */
    sqlite3_stmt *metrics; /* inserts a run's values of `columns`; NULL before the first */
    char **columns; /* owned; of the table of metrics, without its key; others may add some */
    size_t n_columns;
};

/* For assertions, between any two calls: in_transaction agrees with SQLite, a reader has no
 * transaction, the statement of metrics has a parameter per column, and no statement is active. */
bool store_is_sound(const struct store *s);
/* For assertions: the state of a replication in the file; 0: absent. */
enum { STORE_IS_MEMBER = 1, STORE_IS_FAILURE = 2 };
int store_state(const struct store *s, int64_t experiment, uint64_t point, uint32_t replication);

/* Prepares a statement. Returns NULL on failure, and keeps the error. */
sqlite3_stmt *store_prepare(struct store *s, const char *sql);
/* Executes one step; true: there is a row. Errors are kept. */
bool store_step(struct store *s, sqlite3_stmt *q);
/* A column's text, "" for NULL; valid while the row is current. */
const char *store_text(sqlite3_stmt *q, int column);
/* The SQLite URI of the file, for sqlite3_free; reads: a read-only one. */
char *store_uri(const char *path, bool reads);
/* Binds a statement's parameters in order, by letters: t a text, i an int64_t, d a double. Here and
 * below, a statement may be NULL: then nothing is done. */
void store_bind(sqlite3_stmt *q, const char *kinds, ...);
/* Binds and runs a statement without results, and resets it. */
#define STORE_ONCE(s, q, ...) (store_bind((q), __VA_ARGS__), store_once((s), (q)))
void store_once(struct store *s, sqlite3_stmt *q);
/* The number in the first row of a statement, which is then reset; `none` without a row. */
int64_t store_number(struct store *s, sqlite3_stmt *q, int64_t none);
/* Like store_number, but finalizes the statement. */
int64_t store_ask(struct store *s, sqlite3_stmt *q, int64_t none);
/* Runs statements without results, possibly several in one text. */
void store_exec(struct store *s, const char *sql);
/* Begins a transaction unless one is open. */
void store_write(struct store *s);

/* Whether the table of metrics has a column; false also if there is no table. */
bool store_has_column(struct store *s, const char *name);
void store_add_column(struct store *s, const char *name);
void store_forget_columns(struct store *s);
