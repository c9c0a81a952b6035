#include "experiments/compare/stored.h"

#include <cjson/cJSON.h>

#include "experiments/compare/choose.h"
#include "experiments/compare/stored_impl.h"
#include "experiments/run/recordings.h"
#include "experiments/run/warnings.h"
#include "sim/base/json.h"

/* ---- keeping ---- */

static cJSON *texts_of(const struct compare_plan *plan)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < plan->n_policies; i++) {
        cJSON_AddItemToArray(list, cJSON_CreateString(plan->policies[i].label));
    }
    return list;
}

/* Adds what the runs measure, where it is more or other than usual. */
static void add_asked(const struct compare_plan *plan, cJSON *base)
{
    const struct metrics_asked *a = &plan->options->asked;
    if (a->n_percents > 0) {
        cJSON_AddItemToObject(base, "quantile",
                              cJSON_CreateDoubleArray(a->percent, (int)a->n_percents));
    }
    if (a->n_limits > 0) {
        cJSON_AddItemToObject(base, "below", cJSON_CreateDoubleArray(a->limit, (int)a->n_limits));
    }
    if (a->reader.tokens_per_s > 0.0) {
        const double qoe[] = {a->reader.ttft_s, a->reader.tokens_per_s};
        cJSON_AddItemToObject(base, "qoe", cJSON_CreateDoubleArray(qoe, 2));
    }
    if (plan->samples != RUNNER_SAMPLES_AUTO) {
        bool sketch = plan->samples == RUNNER_SAMPLES_SKETCH;
        cJSON_AddStringToObject(base, "samples", sketch ? "sketch" : "exact");
    }
}

static cJSON *base_of(const struct compare_plan *plan)
{
    const struct config_options *o = plan->options;
    cJSON *base = JSON_MEMBERS(cJSON_CreateObject(), "soc", o->soc, "llm", o->llm,
                               o->trace != NULL ? "trace" : "workload", plan->config->workload,
                               "seed", o->seed, "machine", FRAME_IF(o->machine != NULL, o->machine),
                               "ttft_slo_s", FRAME_IF(o->ttft_slo_s > 0.0, o->ttft_slo_s),
                               "tpot_slo_s", FRAME_IF(o->tpot_slo_s > 0.0, o->tpot_slo_s));
    add_asked(plan, base);
    for (uint32_t i = 0; i < o->n_sets; i++) {
        const char *value = strchr(o->sets[i], '=') + 1;
        OWNED char *path = xformat("%.*s", (int)(value - 1 - o->sets[i]), o->sets[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(base, path); /* the last value counts */
        cJSON_AddStringToObject(base, path, value);
    }
    return base;
}

void stored_note(struct compare_plan *plan, const double *loads, const double *rates,
                 uint32_t n_rates)
{
    if (plan->how.store == NULL) {
        return;
    }
    const double own = plan->arrivals.rate_scale; /* of a suite's point */
    if (n_rates == 0 && own != 1.0) {
        rates = &own;
        n_rates = 1;
    }
    SCOPED(json_drop) cJSON *spec = cJSON_CreateObject();
    cJSON_AddStringToObject(spec, "name", "compare");
    cJSON_AddItemToObject(spec, "base", base_of(plan));
    cJSON *axes = cJSON_AddObjectToObject(spec, "axes");
    if (n_rates > 0) {
        cJSON_AddItemToObject(axes, "rate", cJSON_CreateDoubleArray(rates, (int)n_rates));
    }
    cJSON_AddItemToObject(axes, "policy", texts_of(plan));
    cJSON_AddNumberToObject(spec, "replications", plan->replications);
    if (plan->baseline > 0) { /* else it is the first, as in `xpusim sweep` */
        cJSON_AddStringToObject(spec, "baseline", plan->policies[plan->baseline].label);
    }
    if (loads != NULL) { /* in the order of the rates */
        cJSON_AddItemToObject(spec, "loads", cJSON_CreateDoubleArray(loads, (int)n_rates));
    }
    char *text = json_text(spec, false);
    const char *version = config_version() + strlen("xpusim ");
    plan->experiment = store_experiment(plan->how.store, "compare", version, text);
    cJSON_free(text);
    for (uint32_t i = 0; i < (n_rates > 0 ? n_rates : 1) * plan->n_policies; i++) {
        double rate = n_rates > 0 ? rates[i / plan->n_policies] : 0.0;
        SCOPED(json_drop)
        cJSON *settings = JSON_MEMBERS(cJSON_CreateObject(), "rate", FRAME_IF(n_rates > 0, rate),
                                       "policy", plan->policies[i % plan->n_policies].label);
        text = json_text(settings, false);
        store_point(plan->how.store, plan->experiment, i, text);
        cJSON_free(text);
    }
}

/* ---- one comparison ---- */

/* Limit of replication numbers per result, which are sparse for a single shard. */
#define SPARSE_MOST 1000u

struct group {
    const struct stored_rows *rows;
    const struct stored_row *first; /* the others have its experiment and shared settings */
    cJSON *spec, *shared;           /* owned: the experiment, and the shared settings */
    struct config_policy *labels;   /* owned; only their labels */
    uint32_t n_labels, replications;
    size_t n_rows;
    struct study_outcomes outcomes; /* number replication * n_labels + label */
};

static bool is_of(const struct group *g, const struct stored_row *r)
{
    return r->experiment == g->first->experiment && strcmp(r->shared, g->first->shared) == 0;
}

static uint32_t label_index(const struct group *g, const char *label)
{
    uint32_t i = 0;
    while (i < g->n_labels && strcmp(g->labels[i].label, label) != 0) {
        i++;
    }
    return i;
}

/* The experiment's baseline if it is one of the labels, else the first. */
static uint32_t own_baseline(const struct group *g)
{
    const cJSON *own = json_member(g->spec, "baseline");
    uint32_t at = cJSON_IsString(own) ? label_index(g, own->valuestring) : 0;
    return at < g->n_labels ? at : 0;
}

/* The load of `compare --load` for the group's rate; NaN: none. */
static double load_of(const struct group *g)
{
    const cJSON *rate = json_member(g->shared, "rate");
    const cJSON *rates = json_member(json_member(g->spec, "axes"), "rate");
    int i = 0;
    while (i < cJSON_GetArraySize(rates) &&
           !cJSON_Compare(cJSON_GetArrayItem(rates, i), rate, true)) {
        i++;
    }
    const cJSON *load = cJSON_GetArrayItem(json_member(g->spec, "loads"), i);
    return cJSON_IsNumber(load) ? load->valuedouble : (double)NAN;
}

/* Whether settings occur twice: from two versions of xpusim, or two texts of one name. */
static bool is_of_several(const struct group *g)
{
    bool several = false;
    for (size_t i = 0; i < g->rows->n && !several; i++) {
        const struct stored_row *r = &g->rows->v[i];
        several = r->experiment != g->first->experiment && strcmp(r->name, g->first->name) == 0 &&
                  strcmp(r->shared, g->first->shared) == 0;
    }
    return several;
}

static void group_open(struct group *g, struct stored_rows *rows, const struct stored_row *first,
                       struct store *s)
{
    OWNED char *spec = store_experiment_spec(s, first->experiment);
    *g = (struct group){.rows = rows,
                        .first = first,
                        .spec = spec != NULL ? cJSON_Parse(spec) : NULL,
                        .shared = cJSON_Parse(first->shared)};
    if (is_of_several(g)) {
        static const char *const asked[] = {"quantile", "below", "qoe", "samples"}; /* add_asked */
        for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
            const cJSON *v = json_member(json_member(g->spec, "base"), asked[i]);
            if (v != NULL) {
                cJSON_AddItemToObject(g->shared, asked[i], cJSON_Duplicate(v, true));
            }
        }
        OWNED char *which =
            xformat("%lld, xpusim %s", (long long)first->experiment, first->revision);
        cJSON_AddStringToObject(g->shared, "experiment", which);
    }
    for (size_t i = 0; i < rows->n; i++) {
        struct stored_row *r = &rows->v[i];
        if (r->grouped || !is_of(g, r)) {
            continue;
        }
        r->grouped = true;
        g->n_rows++;
        if (label_index(g, r->label) == g->n_labels) {
            LIST_ADD(g->labels, g->n_labels, (struct config_policy){.label = r->label});
        }
        g->replications = r->replication >= g->replications ? r->replication + 1 : g->replications;
    }
}

/* The experiment's replications count, even if runs of the last ones are missing. */
static void group_read(struct group *g, struct store *s)
{
    double asked = json_number(g->spec, "replications");
    bool more = asked > g->replications && asked <= (double)SPARSE_MOST * (double)g->n_rows;
    g->replications = more ? (uint32_t)asked : g->replications;
    uint32_t n = g->n_labels * g->replications;
    study_outcomes_open(&g->outcomes, n);
    for (uint32_t i = 0; i < n; i++) { /* missing ones have not run */
        g->outcomes.v[i].status = -ENOENT;
        g->outcomes.v[i].not_run = true;
        (void)snprintf(g->outcomes.v[i].message, sizeof g->outcomes.v[i].message,
                       "the store does not have it");
    }
    for (size_t i = 0; i < g->rows->n; i++) {
        const struct stored_row *r = &g->rows->v[i];
        if (is_of(g, r)) {
            uint32_t at = r->replication * g->n_labels + label_index(g, r->label);
            g->outcomes.v[at].not_run = false;
            if (r->run != 0) {
                study_outcomes_read(&g->outcomes, at, s, r->run);
            } else if (r->message[0] == '\0') {
                g->outcomes.v[at].status = STUDY_NO_REQUESTS;
            } else {
                (void)snprintf(g->outcomes.v[at].message, sizeof g->outcomes.v[at].message, "%s",
                               r->message);
            }
        }
    }
}

static void group_fini(struct group *g)
{
    free(g->labels);
    cJSON_Delete(g->spec);
    cJSON_Delete(g->shared);
    study_outcomes_fini(&g->outcomes);
}

/* The first row with a run, of the baseline if it has one. */
static const struct stored_row *representative(const struct group *g, uint32_t baseline)
{
    const struct stored_row *found = NULL;
    for (size_t i = 0; i < g->rows->n; i++) {
        const struct stored_row *r = &g->rows->v[i];
        bool best = r->replication == 0 && strcmp(r->label, g->labels[baseline].label) == 0;
        if (r->run != 0 && (found == NULL || best) && is_of(g, r)) {
            found = r;
            if (best) {
                break;
            }
        }
    }
    return found;
}

/* Whether its requests are recorded and not generated: its experiment or settings name a trace. */
static bool is_recorded(const struct group *g)
{
    return cJSON_HasObjectItem(g->shared, "trace") ||
           cJSON_HasObjectItem(json_member(g->spec, "base"), "trace") ||
           cJSON_HasObjectItem(json_member(g->spec, "axes"), "trace");
}

/* Seed of the baseline's first replication, from which the others are derived; without that run,
 * the seed of the experiment. */
static uint64_t first_seed(const struct group *g, uint32_t baseline, const struct stored_row *of)
{
    const cJSON *seed = json_member(g->shared, "seed");
    seed = seed != NULL ? seed : json_member(json_member(g->spec, "base"), "seed");
    return of->replication == 0 ? of->seed
           : g->rows->by != NULL && strcmp(g->rows->by, "seed") == 0
               ? strtoull(g->labels[baseline].label, NULL, 10)
           : cJSON_IsNumber(seed) ? (uint64_t)seed->valuedouble
                                  : config_options_default().seed;
}

/* Text with the load and the settings that the points share, or "". */
static const char *where_of(const struct group *g)
{
    SCOPED(json_drop) cJSON *rest = cJSON_Duplicate(g->shared, true);
    struct text t = {0};
    double load = load_of(g);
    if (isfinite(load)) {
        text_format(&t, "load %g of %s (arrival rates times %.4g)", load,
                    g->labels[own_baseline(g)].label, json_number(rest, "rate"));
        cJSON_DeleteItemFromObjectCaseSensitive(rest, "rate");
    }
    if (rest->child != NULL) {
        OWNED char *settings = json_text(rest, false);
        text_item(&t, ", ", settings);
    }
    return xkeep(text_end(&t));
}

/* Whether the store has another experiment, so that the name matters. */
static bool has_others(const struct group *g)
{
    bool others = false;
    for (size_t i = 0; i < g->rows->n; i++) {
        others = others || g->rows->v[i].experiment != g->first->experiment;
    }
    return others;
}

static void put_head(const struct group *g, const struct compare_plan *plan,
                     const struct stored_row *of, struct store *s, struct document *d)
{
    OWNED char *tree = store_configuration_text(s, of->config_hash);
    SCOPED(json_drop) cJSON *config = tree != NULL ? cJSON_Parse(tree) : NULL;
    const struct config_options recordings = {.trace = is_recorded(g) ? of->workload : NULL,
                                              .n_recordings = g->replications};
    struct compare_head head = {.command = "xpusim compare --store FILE.db",
                                .kind = "compare",
                                .relevance_frac = plan->relevance_frac,
                                .sample = recordings_sample(&recordings),
                                .note = recordings_note(&recordings),
                                .version = document_format("xpusim %s", of->revision),
                                .config_hash = strtoull(of->config_hash, NULL, 16),
                                .config = config,
                                .soc = document_format("%s", of->soc),
                                .llm = document_format("%s", of->llm),
                                .workload = document_format("%s", of->workload),
                                .baseline =
                                    document_format("%s", plan->policies[plan->baseline].label),
                                .seed = plan->options->seed,
                                .replications = g->replications};
    DOCUMENT_VALUES(d, "experiment", document_format("%s", of->name));
    document_tree(d, "settings", g->shared);
    double load = load_of(g);
    DOCUMENT_VALUES(d, "load", FRAME_IF(isfinite(load), load), "rate_scale",
                    FRAME_IF(isfinite(load), json_number(g->shared, "rate")), "where", plan->where);
    if (plan->where[0] != '\0' || has_others(g)) {
        document_heading(d, "==== %s%s%s", of->name[0] != '\0' ? of->name : "experiment",
                         plan->where[0] != '\0' ? ": " : "", plan->where);
    }
    compare_head_document(&head, d);
}

/* The configuration of a row's run; NULL: it was not stored, or is of another version. */
static struct config *stored_config(struct store *s, const struct stored_row *of)
{
    OWNED char *tree = store_configuration_text(s, of->config_hash);
    struct config *c = xcalloc(1, sizeof *c);
    SCOPED(err_fini) struct err why = ERR_INIT;
    if (tree == NULL || config_of_text(c, tree, &why) != 0) {
        config_fini(c);
        free(c);
        c = NULL;
    }
    return c;
}

/* Adds warnings for machines and models other than the baseline's. */
static void add_warnings(const struct group *g, const struct stored_row *of, struct store *s,
                         struct texts *out)
{
    for (uint32_t p = 0; p < g->n_labels; p++) {
        const struct stored_row *r = representative(g, p);
        bool other = strcmp(r->label, g->labels[p].label) == 0 &&
                     (strcmp(r->soc, of->soc) != 0 || strcmp(r->llm, of->llm) != 0);
        OWNED struct config *c = other ? stored_config(s, r) : NULL;
        if (c != NULL) {
            struct document *own = document_new();
            warnings_machine(c, warnings_of(own));
            SCOPED(json_drop) cJSON *tree = document_json(own);
            const cJSON *text;
            cJSON_ArrayForEach (text, json_member(tree, "warnings")) {
                OWNED char *whose = xformat("%s: %s", g->labels[p].label, text->valuestring);
                texts_add(out, whose);
            }
            config_fini(c);
        }
    }
}

static int put_group(struct group *g, struct store *s, const struct stored_options *o,
                     struct document *into, struct err *e)
{
    uint32_t baseline = o->baseline != NULL ? label_index(g, o->baseline) : own_baseline(g);
    if (baseline == g->n_labels) {
        return err_add(e, "--baseline %s: not in experiment \"%s\" %s", o->baseline, g->first->name,
                       g->first->shared);
    }
    const struct stored_row *of = representative(g, baseline);
    if (of == NULL) {
        return err_add(e, "experiment \"%s\" %s: no run of it has a result", g->first->name,
                       g->first->shared);
    }
    if (g->replications > SPARSE_MOST * g->n_rows) { /* the file is damaged, or not a store */
        return err_add(e, "experiment \"%s\" %s: %zu result%s, numbered up to %" PRIu32,
                       g->first->name, g->first->shared, g->n_rows, text_plural(g->n_rows),
                       g->replications);
    }
    group_read(g, s);
    struct config_options options = {.seed = first_seed(g, baseline, of)};
    struct compare_plan plan = {.options = &options,
                                .policies = g->labels,
                                .n_policies = g->n_labels,
                                .baseline = baseline,
                                .replications = g->replications,
                                .where = where_of(g),
                                .relevance_frac = o->relevance_frac};
    SCOPED(compare_result_fini) struct compare_result r;
    SCOPED(texts_fini) struct texts chosen;
    compare_take(&plan, &g->outcomes, &r);
    int rc = choose_metrics(&r, o->metrics, &chosen, e);
    if (rc == 0) {
        struct document *d = document_within(into, NULL);
        OWNED struct config *c = stored_config(s, of);
        SCOPED(texts_fini) struct texts warnings = {0};
        add_warnings(g, of, s, &warnings);
        plan.config = c; /* its warnings are part of the result */
        plan.warnings = &warnings;
        put_head(g, &plan, of, s, d);
        compare_document(&plan, &r, (const char *const *)chosen.v, (uint32_t)chosen.n, o->every, d);
        DOCUMENT_VALUES(d, "failed_runs", r.n_failures);
        if (c != NULL) {
            config_fini(c);
        }
    }
    return rc;
}

int stored_compare(struct store *s, const struct stored_options *o, struct document *into,
                   struct err *e)
{
    struct stored_rows rows;
    int rc = stored_rows_read(s, o->by, &rows, e);
    int n = 0;
    for (size_t i = 0; i < rows.n && rc == 0; i++) {
        if (!rows.v[i].grouped) { /* the first row of a comparison */
            SCOPED(group_fini) struct group g;
            group_open(&g, &rows, &rows.v[i], s);
            rc = put_group(&g, s, o, into, e);
            n += rc == 0 ? 1 : 0;
        }
    }
    stored_rows_fini(&rows);
    return rc == 0 ? n : rc;
}
