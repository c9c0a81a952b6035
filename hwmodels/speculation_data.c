#include "hwmodels/speculation_data.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/csvfile.h"

#define PATH_BYTES 512
#define MAX_MS 10000.0
#define MAX_TOKENS 1000.0

static const char *const METHODS[] = {"pld", "sam", NULL};
static const char *const SYSTEMS[] = {"npu", "npu+g", "npu+sd", "npu+g+sd", "ours", NULL};

/* A file of a fixed set of columns, read row by row into an array. */
struct table {
    const char *name;
    const char *columns[6]; /* NULL-terminated */
    uint32_t max_rows;
    void (*row)(struct csvfile *f, const int *column, struct speculation_data *out, uint32_t n,
                const char *path, struct err *e);
};

static void get_name(struct csvfile *f, int column, char *name, const char *path, struct err *e)
{
    const char *text = csvfile_text(f, column);
    if (text[0] == '\0' || strlen(text) >= SPECULATION_NAME_BYTES) {
        err_add(e, "%s:%llu: column %s: \"%s\" is not a name of 1 to %d characters", path,
                (unsigned long long)csvfile_line(f), csvfile_column_name(f, column), text,
                SPECULATION_NAME_BYTES - 1);
        return;
    }
    strcpy(name, text); /* fits: checked above */
}

static int get_choice(struct csvfile *f, int column, const char *const *choices, const char *path,
                      struct err *e)
{
    const char *text = csvfile_text(f, column);
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0) {
            return i;
        }
    }
    err_add(e, "%s:%llu: column %s: unknown \"%s\"; the first known one is \"%s\"", path,
            (unsigned long long)csvfile_line(f), csvfile_column_name(f, column), text, choices[0]);
    return 0;
}

static void acceptance_row(struct csvfile *f, const int *column, struct speculation_data *out,
                           uint32_t n, const char *path, struct err *e)
{
    struct speculation_acceptance *row = &out->acceptance[n];
    get_name(f, column[0], row->dataset, path, e);
    get_name(f, column[1], row->model, path, e);
    row->method =
        get_choice(f, column[2], METHODS, path, e) == 0 ? SPECULATION_PLD : SPECULATION_SAM;
    row->ours = csvfile_u64(f, column[3], 0, 1, e) == 1;
    row->accepted_tokens = csvfile_number(f, column[4], 0, MAX_TOKENS, e);
    out->n_acceptance = n + 1;
}

static void ablation_row(struct csvfile *f, const int *column, struct speculation_data *out,
                         uint32_t n, const char *path, struct err *e)
{
    struct speculation_ablation *row = &out->ablation[n];
    get_name(f, column[0], row->model, path, e);
    row->system = (enum speculation_system)get_choice(f, column[1], SYSTEMS, path, e);
    row->latency_ms = csvfile_number(f, column[2], 0, MAX_MS, e);
    out->n_ablation = n + 1;
}

static void cause_row(struct csvfile *f, const int *column, struct speculation_data *out,
                      uint32_t n, const char *path, struct err *e)
{
    struct speculation_cause *row = &out->causes[n];
    get_name(f, column[0], row->name, path, e);
    row->share_frac = csvfile_number(f, column[1], 0, 1, e);
    row->reusable = csvfile_u64(f, column[2], 0, 1, e) == 1;
    out->n_causes = n + 1;
}

static const struct table TABLES[] = {
    {"acceptance.csv",
     {"dataset", "model", "method", "ours", "accepted_tokens", NULL},
     SPECULATION_MAX_ROWS,
     acceptance_row},
    {"ablation.csv", {"model", "system", "latency_ms", NULL}, SPECULATION_MAX_ROWS, ablation_row},
    {"rejection_causes.csv",
     {"cause", "share_frac", "reusable", NULL},
     SPECULATION_MAX_MODELS,
     cause_row},
};

static void join(char *path, const char *dir, const char *name)
{
    (void)snprintf(path, PATH_BYTES, "%s/%s", dir, name);
}

static void read_table(const struct table *t, const char *dir, struct speculation_data *out,
                       struct err *e)
{
    char path[PATH_BYTES];
    int column[6] = {0};
    join(path, dir, t->name);
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return;
    }
    bool whole = csvfile_require(f, "source", e) >= 0;
    for (int i = 0; t->columns[i] != NULL; i++) {
        column[i] = csvfile_require(f, t->columns[i], e);
        whole = whole && column[i] >= 0;
    }
    uint32_t n = 0;
    while (whole && csvfile_next(f, e) == 1) {
        if (n == t->max_rows) {
            err_add(e, "%s: more than %u rows", path, t->max_rows);
            break;
        }
        t->row(f, column, out, n++, path, e);
    }
    if (whole && n == 0) {
        err_add(e, "%s: no rows", path);
    }
    csvfile_close(f);
}

static void read_drafters(struct json_obj *root, struct speculation_constants *c)
{
    struct json_obj o = json_get_object(root, "drafters");
    double max = SPECULATION_MAX_DRAFT;
    c->pld_draft_tokens = json_get_quantity(&o, "pld_draft_tokens", "tokens", 1, max);
    c->sam_draft_tokens = json_get_quantity(&o, "sam_draft_tokens", "tokens", 1, max);
    c->sam_tokens_per_match = json_get_quantity(&o, "sam_tokens_per_match", "tokens", 1, max);
    c->eagle_accepted_tokens = json_get_quantity(&o, "eagle_accepted_tokens", "tokens", 0, max);
    c->retrieval_ms = json_get_quantity(&o, "retrieval_ms", "ms", 0, MAX_MS);
    c->ours_ms = json_get_quantity(&o, "ours_ms", "ms", 0, MAX_MS);
    json_done(&o);
    o = json_get_object(root, "lengths");
    c->short_tokens = json_get_quantity(&o, "short_tokens", "tokens", 1, max);
    c->short_frac = json_get_quantity(&o, "short_frac", "frac", 0, 1);
    c->friendly_tokens = json_get_quantity(&o, "friendly_tokens", "tokens", 1, max);
    c->unfriendly_frac = json_get_quantity(&o, "unfriendly_frac", "frac", 0, 1);
    json_done(&o);
}

static void read_costs(struct json_obj *root, struct speculation_constants *c)
{
    struct json_obj o = json_get_object(root, "history");
    c->history_cold_frac = json_get_quantity(&o, "cold_frac", "frac", 0, 1);
    c->history_half_requests = json_get_quantity(&o, "half_requests", "requests", 1e-3, 1e6);
    json_done(&o);
    o = json_get_object(root, "calibration");
    c->calibration_ms_per_input_token =
        json_get_quantity(&o, "ms_per_input_token", "ms", 0, MAX_MS);
    c->calibration_ms_per_output_token =
        json_get_quantity(&o, "ms_per_output_token", "ms", 0, MAX_MS);
    c->calibration_memory_mb = json_get_quantity(&o, "memory_mb", "MB", 0, 1e6);
    json_done(&o);
    o = json_get_object(root, "verification");
    c->length_1_ms_per_token = json_get_quantity(&o, "length_1_ms_per_token", "ms", 0, MAX_MS);
    c->long_tokens = json_get_quantity(&o, "long_tokens", "tokens", 2, MAX_TOKENS);
    c->length_long_ms_per_token =
        json_get_quantity(&o, "length_long_ms_per_token", "ms", 0, MAX_MS);
    c->cpu_extra_frac_per_token = json_get_quantity(&o, "cpu_extra_frac_per_token", "frac", 0, 1);
    json_done(&o);
}

static void read_amortized(struct json_obj *root, struct speculation_data *out, const char *path,
                           struct err *e)
{
    int n = json_get_array_size(root, "amortized", 1, SPECULATION_MAX_MODELS);
    for (int i = 0; i < n; i++) {
        struct json_obj o = json_array_object(root, "amortized", i);
        struct speculation_amortized *a = &out->amortized[i];
        const char *name = json_get_string(&o, "model");
        if (strlen(name) >= SPECULATION_NAME_BYTES) {
            err_add(e, "%s: amortized[%d].model: more than %d characters", path, i,
                    SPECULATION_NAME_BYTES - 1);
            name = "";
        }
        strcpy(a->model, name); /* fits: checked above */
        a->prefill_ms = json_get_quantity(&o, "prefill_ms", "ms", 0, MAX_MS);
        a->prefill_graph_ms = json_get_quantity(&o, "prefill_graph_ms", "ms", 0, MAX_MS);
        a->pass_ms = json_get_quantity(&o, "pass_ms", "ms", 0, MAX_MS);
        a->graph_tokens = json_get_quantity(&o, "graph_tokens", "tokens", 1, MAX_TOKENS);
        a->sam_tokens_per_step = json_get_quantity(&o, "sam_tokens_per_step", "tokens", 1, 100);
        a->ours_tokens_per_step = json_get_quantity(&o, "ours_tokens_per_step", "tokens", 1, 100);
        json_done(&o);
        out->n_amortized++;
    }
}

int speculation_data_read(const char *dir, struct speculation_data *out, struct err *e)
{
    size_t before = e->n;
    char path[PATH_BYTES];
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(TABLES) / sizeof(TABLES[0]); i++) {
        read_table(&TABLES[i], dir, out, e);
    }
    join(path, dir, "constants.json");
    cJSON *tree = json_read_file(path, e);
    if (tree != NULL) {
        struct json_obj root = json_root(tree, path, e);
        read_drafters(&root, &out->constants);
        read_costs(&root, &out->constants);
        read_amortized(&root, out, path, e);
        json_done(&root);
        cJSON_Delete(tree);
    }
    return e->n == before ? 0 : -EINVAL;
}
