/* Shared by the store's own files. */
#pragma once

#include <sqlite3.h>

#include "experiments/store/store.h"

#define STORE_APPLICATION_ID 0x78707573 /* "xpus" */
#define STORE_FORMAT 3
#define STORE_MAX_REPLICATIONS (1 << 20) /* more is no experiment of ours */

struct store {
    sqlite3 *db;
    char *path; /* owned */
    char error[512];
    bool reads;            /* only */
    uint64_t found, added; /* runs */
    bool in_transaction;
    double since_s; /* of the transaction, monotonic clock */
    sqlite3_stmt *find, *put, *member, *unfail, *unmember, *failure, *point, *has_point;
    sqlite3_stmt *values;  /* reads the metrics of a run; NULL before the first */
    sqlite3_stmt *metrics; /* inserts a run's values of `columns`; NULL before the first */
    char **columns;        /* owned: of the table of metrics, but its key; others may add some */
    size_t n_columns;
};

/* For assertions, between any two calls: the open transaction is the one that SQLite has open, a
 * reader has none, the statement of metrics has a place per column, and all statements are at rest.
 */
bool store_is_sound(const struct store *s);
/* For assertions: what a replication is in the file, 0 for nothing. */
enum { STORE_IS_MEMBER = 1, STORE_IS_FAILURE = 2 };
int store_state(const struct store *s, int64_t experiment, uint64_t point, uint32_t replication);

/* Prepares one statement; NULL and the error kept when that fails. */
sqlite3_stmt *store_prepare(struct store *s, const char *sql);
/* One step: true on a row. Errors are kept. */
bool store_step(struct store *s, sqlite3_stmt *q);
/* A column's text, "" for NULL, while the row is the current one. */
const char *store_text(sqlite3_stmt *q, int column);
/* SQLite's name for the file; reads: so that nothing is changed. For sqlite3_free. */
char *store_uri(const char *path, bool reads);
/* Binds a statement's places from the first on, by a letter each: t a text, i an int64_t, d a
 * double. A statement that is NULL is left alone, here as below. */
void store_bind(sqlite3_stmt *q, const char *kinds, ...);
/* Binds, and runs a statement without results, once; it may be run again. */
#define STORE_ONCE(s, q, ...) (store_bind((q), __VA_ARGS__), store_once((s), (q)))
void store_once(struct store *s, sqlite3_stmt *q);
/* The number in the first row of a statement, which may be run again; `none` without a row. */
int64_t store_number(struct store *s, sqlite3_stmt *q, int64_t none);
/* Like store_number, for a statement that is asked once. */
int64_t store_ask(struct store *s, sqlite3_stmt *q, int64_t none);
/* Statements without results, several in one text. */
void store_exec(struct store *s, const char *sql);
/* Opens a transaction unless one is open. */
void store_write(struct store *s);

/* Columns of the table of metrics; false, too, while there is no such table. */
bool store_has_column(struct store *s, const char *name);
void store_add_column(struct store *s, const char *name);
void store_forget_columns(struct store *s);
