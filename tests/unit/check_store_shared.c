/* A store that several processes open at the same time. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "experiments/store/store.h"
#include "tests/helpers/suite.h"

static char path[64];
static struct err err = ERR_INIT;

static void open_and_close(void)
{
    struct store *s = store_open(path, STORE_USE_CREATE, &err);
    ck_assert_msg(s != NULL, "%s", err.n > 0 ? err.lines[0] : "no message");
    ck_assert_int_eq(store_close(s, &err), 0);
}

static void *commit_soon(void *db)
{
    (void)sqlite3_sleep(200);
    (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return NULL;
}

START_TEST(an_opening_waits_for_who_writes)
{
    sqlite3 *db = NULL;
    pthread_t t;
    (void)snprintf(path, sizeof path, "/tmp/xpusim-store-shared-%ld.db", (long)getpid());
    open_and_close(); /* whose last user leaves it with a journal, not with a log */
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(pthread_create(&t, NULL, commit_soon, db), 0);
    open_and_close();
    (void)pthread_join(t, NULL);
    (void)sqlite3_close(db);
    (void)remove(path);
    err_fini(&err);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("shared", .timeout_s = 60),
    TEST(an_opening_waits_for_who_writes),
};
SUITE_MAIN("store shared", suite)
