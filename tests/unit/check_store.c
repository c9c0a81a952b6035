/* The store: what goes in comes out, in an order and with a content that depend on nothing else. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "experiments/compare/stored.h"
#include "experiments/store/store.h"
#include "sim/base/hash.h"
#include "tests/helpers/suite.h"

static char paths[3][64];
static struct err err;

static void remove_stores(void)
{
    for (int i = 0; i < 3; i++) {
        char side[256];
        (void)snprintf(paths[i], sizeof paths[i], "/tmp/xpusim-store-%d-%ld.db", i, (long)getpid());
        (void)remove(paths[i]);
        (void)snprintf(side, sizeof side, "%s-wal", paths[i]);
        (void)remove(side);
        (void)snprintf(side, sizeof side, "%s-shm", paths[i]);
        (void)remove(side);
    }
}

static void setup(void)
{
    err = (struct err)ERR_INIT;
    remove_stores();
}

static void teardown(void)
{
    err_fini(&err);
    remove_stores();
}

static struct store *open_new(int i)
{
    struct store *s = store_open(paths[i], STORE_USE_CREATE, &err);
    ck_assert_msg(s != NULL, "%s", err.n > 0 ? err.lines[0] : "no message");
    return s;
}

static void close_good(struct store *s)
{
    ck_assert_msg(store_close(s, &err) == 0, "%s", err.n > 0 ? err.lines[0] : "no message");
}

/* Run number k: policy p, seed k, metrics a = value and b = 2 * value. */
static int64_t put(struct store *s, int k, double value)
{
    char fingerprint[32];
    (void)snprintf(fingerprint, sizeof fingerprint, "run %d", k);
    struct store_run run = {.fingerprint = fingerprint,
                            .soc = "s",
                            .llm = "m",
                            .workload = "w:x=1,y=2",
                            .policy = "p",
                            .verdict = "STABLE",
                            .rate_scale = 1.5,
                            .seed = (uint64_t)k,
                            .config_hash = 10,
                            .trace_hash = 11};
    static const char *const names[] = {"b.s", "a"};
    const double values[] = {2.0 * value, value};
    return store_put(s, &run, "*", names, values, 2);
}

static char *exported(struct store *s, int64_t experiment, bool json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(f);
    store_export(s, experiment, json ? "json" : "csv", f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

START_TEST(csv_is_as_written_by_hand)
{
    struct store *s = open_new(0);
    int64_t x = store_experiment(s, "e,1", "r", "{}");
    store_point(s, x, 0, "{\"rate\":1.5,\"params.k\":true}");
    store_point(s, x, 1, "{\"rate\":0.1,\"policy\":\"a\\\"b\"}");
    store_member(s, x, 1, 0, put(s, 7, 0.1));
    store_member(s, x, 0, 1, put(s, 8, (double)NAN));
    store_failure(s, x, 0, 0, "died, badly");
    char *text = exported(s, x, false);
    ck_assert_str_eq(
        text, "experiment,point,replication,status,message,set.params.k,set.policy,set.rate,"
              "soc,llm,workload,rate_scale,policy,params,seed,verdict,config_hash,trace_hash,"
              "fingerprint,a,b.s\n"
              "\"e,1\",0,0,failed,\"died, badly\",true,,1.5,,,,,,,,,,,,,\n"
              "\"e,1\",0,1,ok,,true,,1.5,s,m,\"w:x=1,y=2\",1.5,p,,8,STABLE,000000000000000a,"
              "000000000000000b,run 8,,\n"
              "\"e,1\",1,0,ok,,,\"a\"\"b\",0.1,s,m,\"w:x=1,y=2\",1.5,p,,7,STABLE,"
              "000000000000000a,000000000000000b,run 7,0.1,0.2\n");
    free(text);
    close_good(s);
}
END_TEST

START_TEST(json_holds_the_same)
{
    struct store *s = open_new(0);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{\"rate\":1.5}");
    store_member(s, x, 0, 0, put(s, 7, 0.1));
    store_failure(s, x, 0, 1, "died");
    char *text = exported(s, 0, true);
    cJSON *rows = cJSON_Parse(text);
    ck_assert_int_eq(cJSON_GetArraySize(rows), 2);
    const cJSON *good = cJSON_GetArrayItem(rows, 0);
    const cJSON *metrics = cJSON_GetObjectItem(good, "metrics");
    ck_assert(cJSON_GetObjectItem(metrics, "b.s")->valuedouble == 0.2);
    ck_assert(cJSON_GetObjectItem(cJSON_GetObjectItem(good, "settings"), "rate")->valuedouble ==
              1.5);
    ck_assert_str_eq(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 1), "status")->valuestring,
                     "failed");
    cJSON_Delete(rows);
    free(text);
    close_good(s);
}
END_TEST

START_TEST(a_run_is_found_by_fingerprint_and_kept_metrics)
{
    struct store *s = open_new(0);
    int64_t id = put(s, 1, 5.0);
    ck_assert_int_gt(id, 0);
    ck_assert_int_eq(put(s, 1, 5.0), id);
    ck_assert_int_eq(store_find(s, "run 1", "*"), id);
    ck_assert_int_eq(store_find(s, "run 1", "a"), 0);
    ck_assert_int_eq(store_find(s, "run 2", "*"), 0);
    close_good(s);
}
END_TEST

START_TEST(values_come_by_replication)
{
    struct store *s = open_new(0);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 3, "{}");
    store_member(s, x, 3, 2, put(s, 1, 5.0));
    store_member(s, x, 3, 0, put(s, 2, 7.0));
    double v[4];
    store_values(s, x, 3, "a", v, 4);
    ck_assert(v[0] == 7.0 && isnan(v[1]) && v[2] == 5.0 && isnan(v[3]));
    store_values(s, x, 3, "nonesuch", v, 1);
    ck_assert(isnan(v[0]));
    close_good(s);
}
END_TEST

START_TEST(success_removes_a_failure)
{
    struct store *s = open_new(0);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{}");
    store_failure(s, x, 0, 0, "died");
    store_member(s, x, 0, 0, put(s, 1, 1.0));
    char *text = exported(s, x, false);
    ck_assert_ptr_null(strstr(text, "failed"));
    ck_assert_ptr_nonnull(strstr(text, ",ok,"));
    free(text);
    close_good(s);
}
END_TEST

START_TEST(another_revision_is_another_experiment)
{
    struct store *s = open_new(0);
    int64_t x = store_experiment(s, "e", "r1", "{}");
    ck_assert_int_eq(store_experiment(s, "e", "r1", "{}"), x);
    ck_assert_int_ne(store_experiment(s, "e", "r2", "{}"), x);
    ck_assert_int_ne(store_experiment(s, "e", "r1", "{\"a\":1}"), x);
    close_good(s);
}
END_TEST

/* Replications 0..5 of one point, those with k % 2 == part, in rising or falling order. */
static void fill(int store, int part, bool rising)
{
    struct store *s = open_new(store);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{\"rate\":1}");
    for (int i = 0; i < 6; i++) {
        int k = rising ? i : 5 - i;
        if (part < 0 || k % 2 == part) {
            store_member(s, x, 0, (uint32_t)k, put(s, k, (double)k / 3.0));
        }
    }
    close_good(s);
}

START_TEST(merged_parts_export_like_the_whole)
{
    fill(0, -1, true);
    fill(1, 1, false);
    fill(2, 0, true);
    struct store *whole = open_new(0);
    struct store *part = open_new(1);
    ck_assert_int_eq(store_merge(part, paths[2], &err), 0);
    ck_assert_int_eq(store_merge(part, paths[2], &err), 0); /* again: nothing new */
    char *a = exported(whole, 0, false);
    char *b = exported(part, 0, false);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    close_good(whole);
    close_good(part);
}
END_TEST

START_TEST(unlike_runs_are_not_merged)
{
    fill(1, 0, true);
    struct store *s = open_new(2);
    (void)put(s, 2, 99.0); /* run 2 is 2 / 3 there */
    (void)put(s, 50, 1.0);
    close_good(s);
    s = open_new(1);
    ck_assert_int_ne(store_merge(s, paths[2], &err), 0);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "run 2 differs"));
    ck_assert_int_eq(store_find(s, "run 50", "*"), 0);
    close_good(s);
}
END_TEST

/* A run has a fingerprint and the metrics that were kept. A merge has both of two such runs. */
START_TEST(runs_with_other_kept_metrics_are_merged)
{
    const struct store_run run = {.fingerprint = "f"};
    const char *const names[] = {"a"};
    for (int i = 1; i < 3; i++) {
        struct store *s = open_new(i);
        (void)store_put(s, &run, i == 1 ? "*" : "a", names, (double[]){i}, 1);
        ck_assert_int_eq(i == 2 ? store_merge(s, paths[1], &err) : 0, 0);
        ck_assert_int_ne(store_find(s, "f", "*"), 0);
        ck_assert_int_eq(store_find(s, "f", "a") != 0, i == 2);
        close_good(s);
    }
}
END_TEST

START_TEST(metrics_of_other_machines_get_columns)
{
    struct store *s = open_new(0);
    (void)put(s, 1, 1.0);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{}");
    struct store_run run = {.fingerprint = "other"};
    const char *const names[] = {"npu2.busy_frac"};
    store_member(s, x, 0, 0, store_put(s, &run, "*", names, (double[]){0.5}, 1));
    store_member(s, x, 0, 1, put(s, 2, 4.0)); /* and back */
    double v[2];
    store_values(s, x, 0, "npu2.busy_frac", v, 2);
    ck_assert(v[0] == 0.5 && isnan(v[1]));
    store_values(s, x, 0, "a", v, 2);
    ck_assert(isnan(v[0]) && v[1] == 4.0);
    close_good(s);
}
END_TEST

START_TEST(a_column_that_another_sweep_added_is_found)
{
    struct store *one = open_new(0);
    (void)put(one, 1, 1.0);
    store_commit(one, true);
    struct store *two = open_new(0);
    struct store_run run = {.fingerprint = "two"};
    const char *const names[] = {"a", "new", "b.s"};
    (void)store_put(two, &run, "*", names, (double[]){1.0, 2.0, 3.0}, 3);
    store_commit(two, true);
    run.fingerprint = "three";
    int64_t x = store_experiment(one, "e", "r", "{}");
    store_point(one, x, 0, "{}");
    store_member(one, x, 0, 0,
                 store_put(one, &run, "*", &names[1], (double[]){4.0, 5.0}, 2)); /* not a */
    double v[1];
    store_values(one, x, 0, "new", v, 1);
    ck_assert(v[0] == 4.0);
    store_values(one, x, 0, "b.s", v, 1);
    ck_assert(v[0] == 5.0);
    store_values(one, x, 0, "a", v, 1);
    ck_assert(isnan(v[0]));
    close_good(one);
    close_good(two);
}
END_TEST

/* Writes into the file as other programs may, and store.c never does. */
static void spoil(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
    (void)sqlite3_close(db);
}

/* A store of one experiment with two replications of a point, and what SQL makes of it. */
static struct store *spoiled(int i, const char *sql)
{
    struct store *s = open_new(i);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{\"rate\": 1}");
    store_member(s, x, 0, 0, put(s, 1, 1.0));
    store_member(s, x, 0, 1, put(s, 2, 2.0));
    close_good(s);
    spoil(paths[i], sql);
    return store_open(paths[i], STORE_USE_WRITE, &err);
}

START_TEST(replications_that_cannot_be_are_not_read)
{
    struct store *s = spoiled(0, "INSERT INTO members VALUES(1, 0, -40000, 1), (1, 0, -1, 1),"
                                 " (1, 0, 3000000000, 1), (1, 0, 'x', 1), (1, 0, 1.5, 1)");
    double v[4] = {9.0, 9.0, 9.0, 9.0};
    store_values(s, 1, 0, "a", v + 1, 2); /* its neighbours are not written */
    ck_assert(v[0] == 9.0 && v[1] == 1.0 && v[3] == 9.0);
    close_good(s);
}
END_TEST

/* Compared as it is: fine, or refused in words. */
static void compared(struct store *s)
{
    struct option_texts usual = {0};
    struct stored_options o = {.metrics = &usual, .every = true};
    struct document *d = document_new();
    (void)stored_compare(s, &o, document_array(d, ""), &err);
    cJSON_Delete(document_json(d));
}

static void export_survives(const char *sql)
{
    struct store *s = spoiled(0, sql);
    FILE *out = fopen("/dev/null", "w");
    if (s != NULL) { /* refused is fine as well */
        store_export(s, 0, "csv", out);
        store_export(s, 0, "json", out);
        (void)store_check_complete(s, &err);
        compared(s);
        (void)store_close(s, &err);
        s = open_new(1);
        (void)store_merge(s, paths[0], &err);
        (void)store_close(s, &err);
    }
    (void)fclose(out);
    remove_stores();
    err_fini(&err);
}

START_TEST(contents_that_cannot_be_do_no_harm)
{
    static const char *const harm[] = {
        "UPDATE points SET settings='[1, 2]'",
        "UPDATE points SET settings='no JSON'",
        "UPDATE points SET settings=x'00ff'",
        "UPDATE experiments SET name=x'ff', spec=x'00'",
        "UPDATE runs SET soc=NULL, seed='many', policy=x'22', params='\"', fingerprint=x'ff' || id",
        "UPDATE metrics SET a='text', \"b.s\"=x'00'",
        "DELETE FROM metrics",
        "DELETE FROM runs",
        "DROP TABLE metrics; CREATE VIEW metrics AS SELECT 1 AS run_id, 2.0 AS a",
        "DROP TABLE points; CREATE VIEW points AS SELECT 1 experiment_id, 0 point, NULL settings",
        "DROP TABLE members",
        "ALTER TABLE metrics ADD COLUMN \"q\"\"uote,\" REAL",
        "INSERT INTO finished VALUES(1, 0, 0), (1, -3, 7), (7, 1, 0)",
        "CREATE TRIGGER t AFTER INSERT ON experiments BEGIN DELETE FROM runs; END",
        "INSERT INTO failures VALUES(1, 0, -5, 'x'), (9, 9, 9, 'y')",
        "UPDATE members SET replication=900000 WHERE replication=1",
        "UPDATE members SET replication=replication-7, point=-9",
        "INSERT INTO configurations VALUES('000000000000000a', 'no JSON')",
        "DROP TABLE configurations",
        "UPDATE points SET settings='{\"policy\": [1, {\"params.x\": null}], \"params.y\": null}'"};
    for (size_t i = 0; i < sizeof harm / sizeof harm[0]; i++) {
        export_survives(harm[i]);
    }
}
END_TEST

START_TEST(two_that_add_the_same_run_add_it_once)
{
    struct store *a = open_new(0);
    ck_assert_int_eq(store_find(a, "run 1", "*"), 0);
    struct store *b = open_new(0);
    int64_t x = put(b, 1, 1.0); /* while a believes that it is missing */
    store_commit(b, true);
    ck_assert_int_eq(put(a, 1, 1.0), x);
    store_commit(a, true);
    ck_assert(store_ok(a));
    (void)put(a, 2, 2.0);
    close_good(a);
    (void)put(b, 2, 2.0);
    close_good(b);
}
END_TEST

/* Returns size and contents of a file as one number. */
static uint64_t file_hash(const char *path)
{
    uint64_t h = HASH_INIT;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    for (int c; (c = fgetc(f)) != EOF;) {
        h = hash_u64(h, (uint64_t)c);
    }
    (void)fclose(f);
    return h;
}

/* In a folder where nothing can be made, by a user who may not write: as an archive is. */
static void read_as_a_stranger(const char *path)
{
    uint64_t before = file_hash(path);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) {
            _exit(2);
        }
        struct store *s = store_open(path, STORE_USE_READ, &err);
        double v[1] = {0.0};
        if (s != NULL) {
            store_values(s, 1, 0, "a", v, 1);
            store_export(s, 0, "csv", fopen("/dev/null", "w"));
        }
        _exit(s != NULL && v[0] == 1.0 && store_close(s, &err) == 0 ? 0 : 1);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(file_hash(path) == before);
}

START_TEST(reading_changes_nothing_and_needs_no_permission)
{
    char dir[] = "/tmp/xpusim-archive-XXXXXX";
    char path[64];
    char command[128];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a %%41%%?#.db", dir); /* no name is SQLite's syntax */
    struct store *s = store_open(path, STORE_USE_CREATE, &err);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{}");
    store_member(s, x, 0, 0, put(s, 1, 1.0));
    close_good(s);
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(chmod(dir, 0555), 0);
    read_as_a_stranger(path);
    /* An earlier version left this one in WAL mode, and its log is gone. */
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chmod(path, 0644), 0);
    spoil(path, "PRAGMA journal_mode=WAL");
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(chmod(dir, 0555), 0);
    read_as_a_stranger(path);
    uint64_t before = file_hash(path);
    s = open_new(0);
    ck_assert_int_eq(store_merge(s, path, &err), 0);
    close_good(s);
    ck_assert(file_hash(path) == before);
    (void)snprintf(command, sizeof command, "chmod 755 %s && rm -r %s", dir, dir);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(a_closed_store_is_one_file)
{
    struct store *s = open_new(0);
    (void)put(s, 1, 1.0);
    close_good(s);
    char side[80];
    (void)snprintf(side, sizeof side, "%s-wal", paths[0]);
    ck_assert_int_ne(access(side, F_OK), 0);
    (void)snprintf(side, sizeof side, "%s-shm", paths[0]);
    ck_assert_int_ne(access(side, F_OK), 0);
}
END_TEST

START_TEST(other_files_are_refused)
{
    FILE *f = fopen(paths[0], "w");
    ck_assert_int_ge(fputs("no database at all, but long enough to be one", f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_ptr_null(store_open(paths[0], STORE_USE_CREATE, &err));
    ck_assert_ptr_null(store_open(paths[1], STORE_USE_READ, &err));
    ck_assert_uint_eq(err.n, 2);
    ck_assert_int_ne(access(paths[1], F_OK), 0);
}
END_TEST

/* Part 1 lost replication 0 and has 1; part 2 has 0 and lost 1 and 2. Both together have lost 2
 * only, whichever is merged into which. */
START_TEST(a_merge_keeps_the_failures_that_nobody_made_good)
{
    for (int i = 1; i <= 2; i++) {
        struct store *s = open_new(i);
        int64_t x = store_experiment(s, "e", "r", "{}");
        store_point(s, x, 0, "{}");
        store_failure(s, x, 0, i == 1 ? 0 : 1, "died early");
        store_member(s, x, 0, i == 1 ? 1 : 0, put(s, i, 1.0));
        if (i == 2) {
            store_failure(s, x, 0, 2, "died late");
        }
        close_good(s);
    }
    struct store *s = open_new(2 - _i);
    ck_assert_int_eq(store_merge(s, paths[1 + _i], &err), 0);
    char *text = exported(s, 1, false);
    ck_assert_ptr_null(strstr(text, "died early"));
    ck_assert_ptr_nonnull(strstr(text, "died late"));
    free(text);
    close_good(s);
}
END_TEST

/* A store refuses rows, by a trigger that acts as a full disk. The merge says so. */
START_TEST(a_merge_that_cannot_write_fails)
{
    struct store *s = open_new(0);
    (void)store_experiment(s, "e", "r", "{}");
    close_good(s);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(paths[0], &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT "
                                  "RAISE(ABORT, 'database or disk is full'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
    s = open_new(1);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_point(s, x, 0, "{}");
    store_member(s, x, 0, 0, put(s, 1, 1.0));
    close_good(s);
    s = open_new(0);
    ck_assert_int_ne(store_merge(s, paths[1], &err), 0);
    ck_assert_int_ne(store_close(s, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.lines[err.n - 1], "disk is full"));
}
END_TEST

/* One of four shards has finished. Then the sweep began again in two, and both have: the division
 * with the largest part finished counts. Before the second, 1 of 2 is more than 1 of 4. */
START_TEST(a_division_given_up_does_not_make_another_incomplete)
{
    struct store *s = open_new(0);
    int64_t x = store_experiment(s, "e", "r", "{}");
    store_finished(s, x, 1, 4);
    store_finished(s, x, 1, 2);
    ck_assert_int_ne(store_check_complete(s, &err), 0);
    ck_assert_msg(strstr(err.lines[0], "finished shards: 1 of 2") != NULL, "%s", err.lines[0]);
    err_fini(&err);
    err = (struct err)ERR_INIT;
    store_finished(s, x, 0, 2);
    ck_assert_int_eq(store_check_complete(s, &err), 0);
    close_good(s);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(csv_is_as_written_by_hand),
    TEST(json_holds_the_same),
    TEST(a_run_is_found_by_fingerprint_and_kept_metrics),
    TEST(values_come_by_replication),
    TEST(success_removes_a_failure),
    TEST(another_revision_is_another_experiment),
    TEST(merged_parts_export_like_the_whole),
    TEST(unlike_runs_are_not_merged),
    TEST(runs_with_other_kept_metrics_are_merged),
    LOOP(a_merge_keeps_the_failures_that_nobody_made_good, 2),
    TEST(a_merge_that_cannot_write_fails),
    TEST(a_division_given_up_does_not_make_another_incomplete),
    TEST(metrics_of_other_machines_get_columns),
    TEST(a_column_that_another_sweep_added_is_found),
    TEST(replications_that_cannot_be_are_not_read),
    TEST(contents_that_cannot_be_do_no_harm),
    TEST(two_that_add_the_same_run_add_it_once),
    TEST(reading_changes_nothing_and_needs_no_permission),
    TEST(a_closed_store_is_one_file),
    TEST(other_files_are_refused),
};
SUITE_MAIN("store", suite)
