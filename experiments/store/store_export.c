/* Exports a store as CSV and JSON. */
#include "experiments/store/store_impl.h"
#include "sim/base/csv_record.h"
#include "sim/base/json.h"

static const char rows_sql[] =
    "SELECT e.name, a.point, a.replication, a.message, p.settings, r.id, r.soc AS soc, r.llm AS"
    " llm, r.workload AS workload, r.rate_scale AS rate_scale, r.policy AS policy, r.params AS"
    " params, r.seed AS seed, r.verdict AS verdict, r.config_hash AS config_hash, r.trace_hash AS"
    " trace_hash, r.fingerprint AS fingerprint FROM"
    " (SELECT experiment_id, point, replication, run_id, NULL AS message FROM members UNION ALL"
    "  SELECT experiment_id, point, replication, NULL, message FROM failures) a"
    " JOIN experiments e ON e.id=a.experiment_id"
    " JOIN points p ON p.experiment_id=a.experiment_id AND p.point=a.point"
    " LEFT JOIN runs r ON r.id=a.run_id WHERE ?1=0 OR a.experiment_id=?1"
    " ORDER BY e.name, e.key, a.point, a.replication";

/* Columns of rows_sql; from ROW_OF_RUN on they are those of the run, by name. */
enum {
    ROW_EXPERIMENT,
    ROW_POINT,
    ROW_REPLICATION,
    ROW_MESSAGE,
    ROW_SETTINGS,
    ROW_RUN_ID,
    ROW_OF_RUN
};

struct export
{
    struct store *store;
    int64_t experiment;
    struct texts settings, metrics; /* sorted */
    double *values;                 /* owned; of the current run, by metric; NaN: none */
    sqlite3_stmt *metrics_of;
};

static bool are_in_order(const struct texts *l)
{
    bool in_order = true;
    for (size_t i = 1; i < l->n; i++) {
        in_order = in_order && strcmp(l->v[i - 1], l->v[i]) < 0;
    }
    return in_order;
}

/* The statement has a column for each metric, after one that always exists. */
static bool export_is_sound(const struct export *x)
{
    return x->metrics_of == NULL || (size_t)sqlite3_column_count(x->metrics_of) == x->metrics.n + 1;
}

/* ---- names of columns ---- */

static void learn_settings(struct export *x)
{
    sqlite3_stmt *q =
        store_prepare(x->store, "SELECT settings FROM points WHERE ?1=0 OR experiment_id=?1");
    store_bind(q, "i", x->experiment);
    while (q != NULL && store_step(x->store, q)) {
        SCOPED(json_drop) cJSON *o = cJSON_Parse(store_text(q, 0));
        for (const cJSON *c = cJSON_IsObject(o) ? o->child : NULL; c != NULL; c = c->next) {
            (void)texts_index(&x->settings, c->string);
        }
    }
    (void)sqlite3_finalize(q);
    texts_sort(&x->settings);
    SIM_ASSERT(are_in_order(&x->settings)); /* each once, for points in any order */
}

/* Finds columns with a value in a run of the export, because other experiments must not matter. */
static void learn_metrics(struct export *x)
{
    struct texts all = {0};
    sqlite3_stmt *q = store_prepare(
        x->store, "SELECT name FROM pragma_table_info('metrics') WHERE name<>'run_id'");
    while (q != NULL && store_step(x->store, q)) {
        texts_add(&all, store_text(q, 0));
    }
    (void)sqlite3_finalize(q);
    texts_sort(&all);
    sqlite3_str *sql = sqlite3_str_new(x->store->db);
    sqlite3_str_appendall(sql, "SELECT 0");
    for (size_t i = 0; i < all.n; i++) {
        sqlite3_str_appendf(sql, ",count(m.\"%w\")", all.v[i]);
    }
    sqlite3_str_appendall(
        sql, " FROM members JOIN metrics m USING(run_id) WHERE ?1=0 OR experiment_id=?1");
    char *text = sqlite3_str_finish(sql);
    q = all.n > 0 ? store_prepare(x->store, text) : NULL;
    store_bind(q, "i", x->experiment);
    if (q != NULL && store_step(x->store, q)) {
        for (size_t i = 0; i < all.n; i++) {
            if (sqlite3_column_int64(q, (int)i + 1) > 0) {
                texts_add(&x->metrics, all.v[i]);
            }
        }
    }
    (void)sqlite3_finalize(q);
    sqlite3_free(text);
    texts_fini(&all);
    SIM_ASSERT(are_in_order(&x->metrics)); /* regardless of the order in the store */
}

/* Prepares the statement that reads x->metrics of a run. */
static void prepare_metrics_of(struct export *x)
{
    sqlite3_str *sql = sqlite3_str_new(x->store->db);
    sqlite3_str_appendall(sql, "SELECT 0");
    for (size_t i = 0; i < x->metrics.n; i++) {
        sqlite3_str_appendf(sql, ",m.\"%w\"", x->metrics.v[i]);
    }
    sqlite3_str_appendall(sql, " FROM metrics m WHERE run_id=?1");
    char *text = sqlite3_str_finish(sql);
    x->metrics_of = x->metrics.n > 0 ? store_prepare(x->store, text) : NULL;
    sqlite3_free(text);
    SIM_ASSERT(export_is_sound(x));
}

static void export_init(struct export *x, struct store *s, int64_t experiment)
{
    *x = (struct export){.store = s, .experiment = experiment};
    store_commit(s, true);
    learn_settings(x);
    learn_metrics(x);
    SIM_ASSERT(!s->in_transaction); /* exports only what is in the file */
    x->values = xcalloc(x->metrics.n + 1, sizeof *x->values);
    prepare_metrics_of(x);
}

static void export_fini(struct export *x)
{
    texts_fini(&x->settings);
    texts_fini(&x->metrics);
    free(x->values);
    (void)sqlite3_finalize(x->metrics_of);
}

/* Reads the metrics of a run into x->values. */
static void load_values(struct export *x, int64_t run)
{
    for (size_t i = 0; i < x->metrics.n; i++) {
        x->values[i] = METRIC_UNDEFINED;
    }
    if (x->metrics_of == NULL) {
        return;
    }
    SIM_ASSERT(export_is_sound(x) && !sqlite3_stmt_busy(x->metrics_of));
    (void)sqlite3_bind_int64(x->metrics_of, 1, run);
    if (store_step(x->store, x->metrics_of)) {
        for (size_t i = 0; i < x->metrics.n; i++) {
            if (sqlite3_column_type(x->metrics_of, (int)i + 1) != SQLITE_NULL) {
                x->values[i] = sqlite3_column_double(x->metrics_of, (int)i + 1);
            }
        }
    }
    (void)sqlite3_reset(x->metrics_of);
}

/* ---- CSV ---- */

static void put_text(const char *text, FILE *out)
{
    csv_write_text(out, text != NULL ? text : "", false);
}

/* Writes the shortest decimal that reads back to the same bits. */
static void put_number(double v, FILE *out)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    SIM_ASSERT(strtod(text, NULL) == v); /* 17 digits are enough; NaN is NULL in a store */
    (void)fputs(text, out);
}

static void put_column(sqlite3_stmt *q, int at, FILE *out)
{
    SIM_ASSERT(at >= ROW_OF_RUN); /* put_row writes the others */
    if (sqlite3_column_type(q, at) == SQLITE_FLOAT) {
        put_number(sqlite3_column_double(q, at), out);
    } else {
        put_text((const char *)sqlite3_column_text(q, at), out);
    }
}

static void put_settings(const struct export *x, const char *settings, FILE *out)
{
    SCOPED(json_drop) cJSON *o = cJSON_Parse(settings);
    for (size_t i = 0; i < x->settings.n; i++) {
        (void)fputc(',', out);
        const cJSON *v = json_member(o, x->settings.v[i]);
        if (cJSON_IsNumber(v)) {
            put_number(v->valuedouble, out);
        } else if (cJSON_IsBool(v)) {
            (void)fputs(cJSON_IsTrue(v) ? "true" : "false", out);
        } else if (cJSON_IsString(v)) {
            put_text(v->valuestring, out);
        }
    }
}

static void put_header(const struct export *x, sqlite3_stmt *q, FILE *out)
{
    SIM_ASSERT(export_is_sound(x)); /* a row has a value for each of its metrics */
    (void)fputs("experiment,point,replication,status,message", out);
    for (size_t i = 0; i < x->settings.n; i++) {
        (void)fputs(",set.", out);
        put_text(x->settings.v[i], out);
    }
    for (int i = ROW_OF_RUN; i < sqlite3_column_count(q); i++) {
        (void)fprintf(out, ",%s", sqlite3_column_name(q, i));
    }
    for (size_t i = 0; i < x->metrics.n; i++) {
        (void)fputc(',', out);
        put_text(x->metrics.v[i], out);
    }
    (void)fputc('\n', out);
}

static const char *status_of(sqlite3_stmt *q)
{
    return sqlite3_column_type(q, ROW_RUN_ID) != SQLITE_NULL ? "ok"
           : store_text(q, ROW_MESSAGE)[0] != '\0'           ? "failed"
                                                             : "empty";
}

static void put_row(struct export *x, sqlite3_stmt *q, FILE *out)
{
    SIM_ASSERT(sqlite3_data_count(q) == sqlite3_column_count(q)); /* there is a current row */
    put_text((const char *)sqlite3_column_text(q, ROW_EXPERIMENT), out);
    (void)fprintf(out, ",%" PRId64 ",%" PRId64, (int64_t)sqlite3_column_int64(q, ROW_POINT),
                  (int64_t)sqlite3_column_int64(q, ROW_REPLICATION));
    (void)fprintf(out, ",%s,", status_of(q));
    put_text((const char *)sqlite3_column_text(q, ROW_MESSAGE), out);
    put_settings(x, store_text(q, ROW_SETTINGS), out);
    for (int i = ROW_OF_RUN; i < sqlite3_column_count(q); i++) {
        (void)fputc(',', out);
        put_column(q, i, out);
    }
    load_values(x, sqlite3_column_int64(q, ROW_RUN_ID));
    for (size_t i = 0; i < x->metrics.n; i++) {
        (void)fputc(',', out);
        if (!isnan(x->values[i])) {
            put_number(x->values[i], out);
        }
    }
    (void)fputc('\n', out);
}

/* ---- JSON ---- */

static void add_column(cJSON *o, const char *name, sqlite3_stmt *q, int at)
{
    int type = sqlite3_column_type(q, at);
    if (type == SQLITE_FLOAT || type == SQLITE_INTEGER) {
        cJSON_AddNumberToObject(o, name, sqlite3_column_double(q, at));
    } else if (type == SQLITE_TEXT) {
        cJSON_AddStringToObject(o, name, store_text(q, at));
    }
}

static cJSON *row_to_json(struct export *x, sqlite3_stmt *q)
{
    SIM_ASSERT(sqlite3_data_count(q) == sqlite3_column_count(q));
    bool ok = sqlite3_column_type(q, ROW_RUN_ID) != SQLITE_NULL;
    cJSON *o = cJSON_CreateObject();
    add_column(o, "experiment", q, ROW_EXPERIMENT);
    add_column(o, "point", q, ROW_POINT);
    add_column(o, "replication", q, ROW_REPLICATION);
    cJSON_AddStringToObject(o, "status", status_of(q));
    add_column(o, "message", q, ROW_MESSAGE);
    cJSON_AddItemToObject(o, "settings", cJSON_Parse(store_text(q, ROW_SETTINGS)));
    for (int i = ROW_OF_RUN; i < sqlite3_column_count(q); i++) {
        add_column(o, sqlite3_column_name(q, i), q, i);
    }
    if (ok) {
        load_values(x, sqlite3_column_int64(q, ROW_RUN_ID));
        cJSON *metrics = cJSON_AddObjectToObject(o, "metrics");
        for (size_t i = 0; i < x->metrics.n; i++) {
            cJSON_AddItemToObject(metrics, x->metrics.v[i],
                                  isnan(x->values[i]) ? cJSON_CreateNull()
                                                      : cJSON_CreateNumber(x->values[i]));
        }
    }
    return o;
}

/* ---- both ---- */

/* Whether the columns of rows_sql are in the order of the enum. */
static bool are_rows(sqlite3_stmt *q)
{
    static const char *const names[] = {
        [ROW_EXPERIMENT] = "name", [ROW_POINT] = "point",       [ROW_REPLICATION] = "replication",
        [ROW_MESSAGE] = "message", [ROW_SETTINGS] = "settings", [ROW_RUN_ID] = "id",
        [ROW_OF_RUN] = "soc"};
    bool all = sqlite3_column_count(q) == ROW_OF_RUN + 11; /* soc ... fingerprint (store.h) */
    for (int i = 0; i <= ROW_OF_RUN; i++) {
        all = all && strcmp(sqlite3_column_name(q, i), names[i]) == 0;
    }
    return all;
}

const char *const store_forms[] = {"csv", "json", NULL};

void store_export(struct store *s, int64_t experiment, const char *form, FILE *out)
{
    if (form == NULL) {
        return;
    }
    SCOPED(export_fini) struct export x;
    bool json = strcmp(form, "json") == 0;
    export_init(&x, s, experiment);
    sqlite3_stmt *q = store_prepare(s, rows_sql);
    store_bind(q, "i", experiment);
    SIM_ASSERT(q == NULL || are_rows(q));
    json ? (void)fputc('[', out) : put_header(&x, q, out);
    for (const char *before = ""; q != NULL && store_step(s, q); before = ",") {
        if (!json) {
            put_row(&x, q, out);
            continue;
        }
        SCOPED(json_drop) cJSON *o = row_to_json(&x, q);
        OWNED char *text = json_text(o, false);
        (void)fprintf(out, "%s\n%s", before, text);
    }
    (void)fputs(json ? "\n]\n" : "", out);
    (void)sqlite3_finalize(q);
}
