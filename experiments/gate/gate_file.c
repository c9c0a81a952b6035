/* The baseline file: strict reading, and writing with new results. */
#include <unistd.h>

#include "experiments/gate/gate.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/portable.h"
#include "sim/metrics/metric_table.h"

#define MAX_REPLICATIONS 100000
#define FRESH_DIGITS 6 /* for values that are only tested, never compared */
#define UNDEFINED ((double)NAN)

static const char *const tests[] = {"exact", "fresh", NULL};

/* The default metrics of a group. */
static const char *const usual_metrics[] = {
    "reactive.ttft_s.p90",           "reactive.e2e_s.p90",
    "reactive.tpot_s.mean",          "proactive.e2e_s.mean",
    "all.norm_e2e_per_token_s.mean", "energy_active_j_per_token",
};

/* ---- groups ---- */

static void read_metrics(struct json_obj *o, struct gate_group *g)
{
    double tolerance_frac = g->fresh ? GATE_FRESH_TOLERANCE_FRAC : GATE_EXACT_TOLERANCE_FRAC;
    if (!json_has(o, "metrics")) {
        g->n_metrics = sizeof usual_metrics / sizeof usual_metrics[0];
        for (uint32_t i = 0; i < g->n_metrics; i++) {
            const char *name = usual_metrics[i];
            g->metrics[i] = (struct gate_metric){name, metric_better(name), tolerance_frac};
        }
        return;
    }
    int n = json_get_array_size(o, "metrics", 1, GATE_MAX_METRICS);
    for (int i = 0; i < n; i++) {
        struct json_obj m = json_array_object(o, "metrics", i);
        struct gate_metric *out = &g->metrics[g->n_metrics++];
        out->name = json_get_string(&m, "name");
        out->better = json_has(&m, "better")
                          ? (enum metric_better)json_get_choice(&m, "better", metric_better_names)
                          : metric_better(out->name != NULL ? out->name : "");
        out->tolerance_frac = json_number_or(&m, "tolerance_frac", 0.0, 1.0, tolerance_frac);
        for (uint32_t k = 0; k + 1 < g->n_metrics; k++) {
            if (strcmp(g->metrics[k].name, out->name) == 0) {
                (void)err_add(o->err, "%s: %s: metric '%s' is given twice", o->file, m.path,
                              out->name);
            }
        }
        json_done(&m);
    }
}

/* A trace is the path of a file, or one shipped with the program. */
static void read_trace(struct json_obj *o, struct gate_group *g)
{
    const char *name = json_get_string(o, "trace");
    g->trace = access(name, R_OK) == 0 ? name : datadir_path(name);
}

static void read_group(struct json_obj *o, struct gate_baseline *b)
{
    struct gate_group *g = &b->groups[b->n_groups++];
    g->name = json_get_string(o, "name");
    g->soc = json_get_string(o, "soc");
    g->llm = json_get_string(o, "llm");
    if (json_has(o, "trace") == json_has(o, "workload")) {
        json_refuse(o, NULL, "must have either workload or trace");
    }
    if (json_has(o, "trace")) {
        read_trace(o, g);
    } else {
        g->workload = json_get_string(o, "workload");
    }
    if (json_has(o, "set")) {
        g->n_sets = json_get_strings(o, "set", 0, GATE_MAX_SETS, g->sets);
    }
    g->fresh = json_get_choice(o, "test", tests) == 1;
    g->seed = json_get_u32(o, "seed", 0, UINT32_MAX);
    g->replications = g->fresh ? GATE_FRESH_REPLICATIONS : GATE_EXACT_REPLICATIONS;
    if (json_has(o, "replications")) {
        /* A test needs more values than covariates. */
        g->replications =
            json_get_u32(o, "replications", g->fresh ? GATE_COVARIATES : 1, MAX_REPLICATIONS);
    }
    g->n_policies = json_get_strings(o, "policies", 1, GATE_MAX_POLICIES, g->policies);
    read_metrics(o, g);
    json_done(o);
    for (uint32_t i = 0; i + 1 < b->n_groups; i++) {
        if (strcmp(b->groups[i].name, g->name) == 0) {
            json_refuse(o, NULL, "group '%s' is given twice", g->name);
        }
    }
}

/* ---- results ---- */

/* Reads n numbers or nulls into out. */
static void read_values(const struct json_obj *o, const cJSON *list, const char *name, int n,
                        double *out)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != n) {
        json_refuse(o, name, "must be an array of %d numbers or nulls", n);
        return;
    }
    const cJSON *v = NULL;
    cJSON_ArrayForEach (v, list) {
        if (!cJSON_IsNumber(v) && !cJSON_IsNull(v)) {
            json_refuse(o, name, "must hold numbers or nulls");
            return;
        }
        *out++ = cJSON_IsNumber(v) ? v->valuedouble : UNDEFINED;
    }
}

static void read_result_metrics(struct json_obj *o, struct gate_cell *c)
{
    struct json_obj m = json_get_object(o, "metrics");
    int n = m.node != NULL ? cJSON_GetArraySize(m.node) : 0;
    c->names = xkept(xcalloc((size_t)n + 1, sizeof *c->names));
    c->values = xkept(xcalloc((size_t)n * c->replications + 1, sizeof *c->values));
    const cJSON *list = m.node != NULL ? m.node->child : NULL;
    for (; list != NULL; list = list->next) {
        (void)snprintf(c->names[c->n_metrics], sizeof c->names[0], "%s", list->string);
        read_values(&m, list, list->string, (int)c->replications,
                    &c->values[(size_t)c->n_metrics * c->replications]);
        c->n_metrics++;
    }
}

static void read_covariates(struct json_obj *o, struct gate_cell *c)
{
    c->covariates =
        xkept(xcalloc((size_t)c->replications * GATE_COVARIATES, sizeof *c->covariates));
    if (json_get_array_size(o, "covariates", (int)c->replications, (int)c->replications) !=
        (int)c->replications) {
        return;
    }
    const cJSON *row = NULL;
    double *out = c->covariates;
    cJSON_ArrayForEach (row, json_member(o->node, "covariates")) {
        read_values(o, row, "covariates[..]", GATE_COVARIATES, out);
        out += GATE_COVARIATES;
    }
}

static void read_hash(struct json_obj *o, struct gate_cell *c)
{
    const char *text = json_get_string(o, "traces");
    char *end = NULL;
    errno = 0;
    c->trace_hash = strtoull(text, &end, 16);
    if (strlen(text) != 16 || *end != '\0' || errno != 0) {
        json_refuse(o, "traces", "must be 16 hexadecimal digits");
    }
}

static void read_result(struct json_obj *o, struct gate_cells *all)
{
    struct gate_cell *c = &all->v[all->n];
    c->group = xkept(xstrdup(json_get_string(o, "group")));
    c->policy = xkept(xstrdup(json_get_string(o, "policy")));
    c->present = true;
    c->replications = json_get_u32(o, "replications", 1, MAX_REPLICATIONS);
    c->failed = json_get_u32(o, "failed", 0, c->replications);
    c->empty = json_has(o, "empty") ? json_get_u32(o, "empty", 0, c->replications) : 0;
    (void)snprintf(c->message, sizeof c->message, "%s", json_get_string(o, "message"));
    double verdicts[3] = {0.0, 0.0, 0.0};
    const cJSON *list = o->node != NULL ? json_member(o->node, "verdicts") : NULL;
    (void)json_get_array_size(o, "verdicts", 3, 3);
    read_values(o, list, "verdicts", 3, verdicts);
    for (int i = 0; i < 3; i++) {
        bool ok = verdicts[i] >= 0.0 && verdicts[i] <= c->replications;
        c->verdicts[i] = ok ? (uint32_t)verdicts[i] : 0;
    }
    /* Every replication ended in one of these ways. This detects most results that were merged by
     * hand. */
    if (c->verdicts[0] + c->verdicts[1] + c->verdicts[2] + c->failed + c->empty !=
        c->replications) {
        json_refuse(o, NULL, "verdicts, failed and empty do not add up to replications");
    }
    read_hash(o, c);
    read_result_metrics(o, c);
    if (json_has(o, "covariates")) {
        read_covariates(o, c);
    }
    json_done(o);
    if (gate_cell_find(all, c->group, c->policy) != NULL) {
        json_refuse(o, NULL, "'%s' of '%s' is given twice", c->policy, c->group);
    }
    all->n++;
}

static void read_parameters(struct json_obj *root, struct gate_cells *all)
{
    int n = json_get_array_size(root, GATE_PARAMETERS, 0, GATE_MAX_GROUPS * GATE_MAX_POLICIES);
    for (int i = 0; i < n; i++) {
        struct json_obj o = json_array_object(root, GATE_PARAMETERS, i);
        const char *policy = json_get_string(&o, "policy");
        const char *text = json_get_string(&o, "values");
        if (gate_parameters_find(all, policy) != NULL) {
            json_refuse(&o, NULL, "'%s' is given twice", policy);
        }
        gate_parameters_add(all, policy, text);
        json_done(&o);
    }
}

int gate_baseline_read(const char *path, struct gate_baseline *b, struct err *e)
{
    memset(b, 0, sizeof *b);
    size_t before = e->n;
    b->tree = xkept(json_read_file(path, e));
    if (b->tree == NULL) {
        return -EINVAL;
    }
    struct json_obj root = json_root(b->tree, path, e);
    (void)json_get_u32(&root, "format", 1, 1);
    int n = json_get_array_size(&root, "groups", 1, GATE_MAX_GROUPS);
    for (int i = 0; i < n; i++) {
        struct json_obj g = json_array_object(&root, "groups", i);
        read_group(&g, b);
    }
    if (json_has(&root, "results")) {
        n = json_get_array_size(&root, "results", 0, GATE_MAX_GROUPS * GATE_MAX_POLICIES);
        b->recorded.v = xkept(xcalloc((size_t)n + 1, sizeof *b->recorded.v));
        for (int i = 0; i < n; i++) {
            struct json_obj r = json_array_object(&root, "results", i);
            read_result(&r, &b->recorded);
        }
    }
    if (json_has(&root, GATE_PARAMETERS)) {
        read_parameters(&root, &b->recorded);
    }
    json_done(&root);
    return e->n > before ? -EINVAL : 0;
}

/* ---- cells ---- */

const struct gate_cell *gate_cell_find(const struct gate_cells *c, const char *group,
                                       const char *policy)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (strcmp(c->v[i].group, group) == 0 && strcmp(c->v[i].policy, policy) == 0) {
            return &c->v[i];
        }
    }
    return NULL;
}

const double *gate_cell_values(const struct gate_cell *c, const char *metric)
{
    for (uint32_t i = 0; i < c->n_metrics; i++) {
        if (strcmp(c->names[i], metric) == 0) {
            return &c->values[(size_t)i * c->replications];
        }
    }
    return NULL;
}

/* ---- writing ---- */

static cJSON *numbers(const double *x, uint32_t n, bool rounded)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++) {
        double v = rounded ? portable_digits(x[i], FRESH_DIGITS) : x[i];
        cJSON_AddItemToArray(list, isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
    }
    return list;
}

static cJSON *cell_to_json(const struct gate_cell *c)
{
    cJSON *o =
        JSON_MEMBERS(cJSON_CreateObject(), "group", c->group, "policy", c->policy, "replications",
                     c->replications, "failed", c->failed, "message", c->message);
    if (c->empty > 0) {
        cJSON_AddNumberToObject(o, "empty", c->empty);
    }
    double verdicts[3] = {c->verdicts[0], c->verdicts[1], c->verdicts[2]};
    cJSON_AddItemToObject(o, "verdicts", numbers(verdicts, 3, false));
    OWNED char *text = xformat("%016" PRIx64, c->trace_hash);
    cJSON_AddStringToObject(o, "traces", text);
    bool fresh = c->covariates != NULL;
    cJSON *metrics = cJSON_AddObjectToObject(o, "metrics");
    for (uint32_t i = 0; i < c->n_metrics; i++) {
        cJSON_AddItemToObject(
            metrics, c->names[i],
            numbers(&c->values[(size_t)i * c->replications], c->replications, fresh));
    }
    if (fresh) {
        cJSON *rows = cJSON_AddArrayToObject(o, "covariates");
        for (uint32_t i = 0; i < c->replications; i++) {
            cJSON_AddItemToArray(
                rows, numbers(&c->covariates[(size_t)i * GATE_COVARIATES], GATE_COVARIATES, true));
        }
    }
    return o;
}

int gate_baseline_write(const char *path, const struct gate_baseline *b,
                        const struct gate_cells *now, struct err *e)
{
    /* Groups are written as read; only results are new. */
    SCOPED(json_drop) cJSON *tree = cJSON_Duplicate(b->tree, true);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "results");
    cJSON_DeleteItemFromObjectCaseSensitive(tree, GATE_PARAMETERS);
    cJSON *parameters = cJSON_AddArrayToObject(tree, GATE_PARAMETERS);
    for (uint32_t i = 0; i < now->n_parameters; i++) {
        const struct gate_parameters *p = &now->parameters[i];
        cJSON_AddItemToArray(
            parameters, JSON_MEMBERS(cJSON_CreateObject(), "policy", p->policy, "values", p->text));
    }
    cJSON *results = cJSON_AddArrayToObject(tree, "results");
    for (uint32_t i = 0; i < now->n; i++) {
        cJSON_AddItemToArray(results, cell_to_json(&now->v[i]));
    }
    return json_write_file(path, tree, e);
}
