/* Quantities of graph switching and speculative decoding that need no simulated machine. */
#include "experiments/claims/quantities_impl.h"
#include "hwmodels/drafters.h"
#include "hwmodels/graphs.h"
#include "hwmodels/speculation_cost.h"
#include "sim/base/datadir.h"
#include "traces/texts.h"

#define PATH_BYTES 4096
#define ACCEPTANCE_STEPS 5000 /* per replication: a standard error of about 0.1 tokens */

/* The published tables, which the caller frees; NULL with an error at the path of o. */
static const struct speculation_data *read_data(const struct json_obj *o)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    const struct speculation_data *data = speculation_data_shipped(&e);
    if (data == NULL) {
        json_refuse(o, NULL, "%s", e.lines[0]);
    }
    return data;
}

struct speculation_model *quantity_acceptance(struct json_obj *o)
{
    static const char *const methods[] = {"pld", "sam", "eagle", NULL};
    const char *dataset = json_get_string(o, "dataset");
    const char *model = json_get_string(o, "model");
    int method = json_get_choice(o, "method", methods);
    bool ours = json_flag(o, "ours");
    const struct speculation_data *data = o->err->n > 0 ? NULL : read_data(o);
    struct speculation_model *m = NULL;
    SCOPED(err_fini) struct err e = ERR_INIT;
    if (data != NULL) {
        m = xmalloc(sizeof *m);
        if (speculation_model_fit(data, dataset, model, (enum speculation_method)method, ours,
                                  SPECULATION_EXCLUSIVE, m, &e) != 0) {
            json_refuse(o, NULL, "%s", e.lines[0]);
        }
    }
    return m;
}

double quantity_acceptance_draw(const struct speculation_model *m, uint64_t seed,
                                uint32_t replication)
{
    uint64_t key = speculation_key(config_seed(seed, replication), 0);
    uint64_t sum = 0;
    for (uint64_t step = 0; step < ACCEPTANCE_STEPS; step++) {
        sum += speculation_accept(m, key, step, 0.0, m->max_draft_tokens);
    }
    return (double)sum / ACCEPTANCE_STEPS;
}

double quantity_amortized(struct json_obj *o)
{
    static const char *const systems[] = {"npu", "npu+g", "npu+sd", "npu+g+sd", "sd-npu", NULL};
    const char *model = json_get_string(o, "model");
    int system = json_get_choice(o, "system", systems);
    const struct speculation_data *data = o->err->n > 0 ? NULL : read_data(o);
    double ms = (double)NAN;
    for (uint32_t i = 0; data != NULL && i < data->n_amortized; i++) {
        if (strcmp(data->amortized[i].model, model) == 0) {
            ms = speculation_amortized_ms(data, &data->amortized[i],
                                          (enum speculation_system)system);
        }
    }
    if (data != NULL && isnan(ms)) {
        json_refuse(o, "model", "no amortized account of %s", model);
    }
    return ms;
}

double quantity_verification(struct json_obj *o)
{
    uint32_t length = json_get_u32(o, "drafted_tokens", 1, SPECULATION_MAX_DRAFT);
    const struct speculation_data *data = o->err->n > 0 ? NULL : read_data(o);
    double ms = (double)NAN;
    if (data != NULL) {
        ms = speculation_linear_ms(&data->constants, length) / length;
    }
    return ms;
}

double quantity_drafts(struct json_obj *o)
{
    uint32_t from = json_get_u32(o, "from", 0, SPECULATION_MAX_DRAFT);
    uint32_t below = json_get_u32(o, "below", from + 1, SPECULATION_MAX_DRAFT + 1);
    OWNED struct speculation_model *m = quantity_acceptance(o);
    double share = (double)NAN;
    if (m != NULL && o->err->n == 0) {
        m->length = SPECULATION_EMPIRICAL;
        uint64_t key = speculation_key(1, 0);
        uint32_t within = 0;
        for (uint64_t step = 0; step < ACCEPTANCE_STEPS; step++) {
            uint32_t n = speculation_draft(m, key, step);
            within += n >= from && n < below;
        }
        share = 100.0 * within / ACCEPTANCE_STEPS;
    }
    return share;
}

/* Chains the texts in the order of their file, as if from one user. Takes ownership. */
static struct trace_texts *after_answers(struct trace_texts *texts)
{
    OWNED uint32_t *number = xmalloc(texts->n * sizeof *number);
    for (uint32_t i = 0; i < texts->n; i++) {
        number[i] = i;
    }
    struct trace_texts *after = texts_after_answers(texts, number, texts->n, 1);
    texts_release(texts);
    return after;
}

double quantity_texts(struct json_obj *o)
{
    static const char *const drafters[] = {"lookup", "suffix", NULL};
    static const char *const fields[] = {"drafted", "accepted",  "missing",
                                         "synonym", "redundant", NULL};
    const char *file = json_get_string(o, "file");
    struct drafter d = {.kind = (enum trace_drafter)json_get_choice(o, "drafter", drafters),
                        .proactive = true};
    int field = json_get_choice(o, "field", fields);
    bool history = json_u32_or(o, "history", 0, 1, 0) == 1;
    const struct speculation_data *data = o->err->n > 0 ? NULL : read_data(o);
    struct trace_texts *texts = data != NULL ? texts_read(file, o->err) : NULL;
    texts = history && texts != NULL ? after_answers(texts) : texts;
    struct drafter_account a = {0};
    for (uint32_t i = 0; texts != NULL && i < texts->n; i++) {
        const struct speculation_constants *k = &data->constants;
        d.max_draft_tokens =
            (uint32_t)(d.kind == TRACE_LOOKUP ? k->pld_draft_tokens : k->sam_draft_tokens).value;
        drafter_count(&d, &texts->texts[i], &a);
    }
    texts_release(texts);
    const uint64_t counts[] = {a.drafted, a.accepted, a.missing, a.synonym,
                               a.rejected - a.missing - a.synonym};
    return field < 2 ? (double)counts[field] / (double)a.verifications
                     : 100.0 * (double)counts[field] / (double)a.rejected;
}

static uint32_t read_times(struct json_obj *o, const char *key, int64_t *out)
{
    uint32_t n = (uint32_t)json_get_array_size(o, key, 1, GRAPHS_MAX_BLOCKS);
    const cJSON *list = json_member(o->node, key);
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *x = cJSON_GetArrayItem(list, (int)i);
        if (!cJSON_IsNumber(x) || x->valuedouble != floor(x->valuedouble) ||
            fabs(x->valuedouble) > (double)GRAPHS_MAX_TIME) {
            json_refuse(o, key, "must hold whole numbers");
            return 0;
        }
        out[i] = (int64_t)x->valuedouble;
    }
    return n;
}

double quantity_graphs(struct json_obj *o)
{
    int64_t p[GRAPHS_MAX_BLOCKS], d[GRAPHS_MAX_BLOCKS], s[GRAPHS_MAX_BLOCKS];
    struct graphs_instance g = {.p = p, .d = d, .s = s};
    g.n_blocks = read_times(o, "p", p);
    uint32_t n_d = read_times(o, "d", d);
    uint32_t n_s = read_times(o, "s", s);
    g.n_chunks = json_get_u32(o, "chunks", 1, GRAPHS_MAX_POSITIONS);
    const char *name = json_get_string(o, "strategy");
    const struct graphs_strategy *st = name != NULL ? graphs_strategy_find(name) : NULL;
    if (o->err->n == 0 && (n_d != g.n_blocks || n_s != g.n_blocks || st == NULL)) {
        json_refuse(o, NULL,
                    "p, d and s must be of one length, and strategy one of `xpusim "
                    "graphs --help`");
    }
    if (o->err->n > 0 || graphs_instance_check(&g, o->path, o->err) != 0) {
        return (double)NAN;
    }
    SCOPED(graphs_result_fini) struct graphs_result r;
    st->solve(&g, &r);
    return (double)r.total;
}
