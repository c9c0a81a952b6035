#include "hwmodels/speculation_data.h"

#include "sim/base/csv_record.h"
#include "sim/base/datadir.h"

#define MAX_MS 10000.0
#define MAX_TOKENS 1000.0

static const char *const METHODS[] = {"pld", "sam", NULL};
static const char *const SYSTEMS[] = {"npu", "npu+g", "npu+sd", "npu+g+sd", "ours", NULL};

#define OF(type, member) CSV_MEMBER(struct speculation_##type, member)
static const struct csv_field acceptance[] = {
    {"dataset", CSV_TEXT, OF(acceptance, dataset), .min = 1},
    {"model", CSV_TEXT, OF(acceptance, model), .min = 1},
    {"method", CSV_CHOICE, OF(acceptance, method), .choices = METHODS},
    {"ours", CSV_WHOLE, OF(acceptance, ours), .max = 1},
    {"accepted_tokens", CSV_NUMBER, OF(acceptance, accepted_tokens), .max = MAX_TOKENS},
    {"source", CSV_TEXT, OF(acceptance, source)},
};
static const struct csv_field ablation[] = {
    {"model", CSV_TEXT, OF(ablation, model), .min = 1},
    {"system", CSV_CHOICE, OF(ablation, system), .choices = SYSTEMS},
    {"latency_ms", CSV_NUMBER, OF(ablation, latency_ms), .max = MAX_MS},
    {"source", CSV_TEXT, OF(ablation, source)},
};
static const struct csv_field causes[] = {
    {"cause", CSV_TEXT, OF(cause, name), .min = 1},
    {"share_frac", CSV_NUMBER, OF(cause, share_frac), .max = 1},
    {"reusable", CSV_WHOLE, OF(cause, reusable), .max = 1},
    {"source", CSV_TEXT, OF(cause, source)},
};

static void *read_table(const char *dir, const char *name, const struct csv_table *t, size_t *n,
                        struct err *e)
{
    OWNED char *path = xformat("%s/%s", dir, name);
    return csv_table_read(t, path, n, e);
}

#define TABLE(rows) CSV_TABLE(rows, sizeof *out->rows, .holds = "rows")
static void read_tables(const char *dir, struct speculation_data *out, struct err *e)
{
    static const struct csv_table tables[] = {TABLE(acceptance), TABLE(ablation), TABLE(causes)};
    out->acceptance = read_table(dir, "acceptance.csv", &tables[0], &out->n_acceptance, e);
    out->ablation = read_table(dir, "ablation.csv", &tables[1], &out->n_ablation, e);
    out->causes = read_table(dir, "rejection_causes.csv", &tables[2], &out->n_causes, e);
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

static void read_amortized(struct json_obj *root, struct speculation_data *out)
{
    int n = json_get_array_size(root, "amortized", 1, SPECULATION_MAX_MODELS);
    for (int i = 0; i < n; i++) {
        struct json_obj o = json_array_object(root, "amortized", i);
        struct speculation_amortized *a = &out->amortized[i];
        a->model = xkeep(xstrdup(json_get_string(&o, "model")));
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
    memset(out, 0, sizeof(*out));
    read_tables(dir, out, e);
    OWNED char *path = xformat("%s/constants.json", dir);
    cJSON *tree = json_read_file(path, e);
    if (tree != NULL) {
        struct json_obj root = json_root(tree, path, e);
        read_drafters(&root, &out->constants);
        read_costs(&root, &out->constants);
        read_amortized(&root, out);
        json_done(&root);
        cJSON_Delete(tree);
    }
    return e->n == before ? 0 : -EINVAL;
}

const struct speculation_data *speculation_data_shipped(struct err *e)
{
    static struct speculation_data data; /* large; constant after reading, so it may be shared */
    static const char *read_from;
    const char *dir = datadir_path(SPECULATION_DIR);
    if (dir != read_from) {
        read_from = NULL;
        if (speculation_data_read(dir, &data, e) != 0) {
            return NULL;
        }
        read_from = dir;
    }
    return &data;
}
