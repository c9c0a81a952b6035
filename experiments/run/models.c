#include "experiments/run/models.h"

#include "experiments/run/config.h"
#include "experiments/run/config_files.h"
#include "hwmodels/footprint.h"
#include "hwmodels/llm_hf.h"
#include "sim/core/run.h"
#include "traces/traces.h"

#define WIDTH ":bits="

/* Keys of the tree with several models. */
#define MODELS "models"
#define DEFAULT "default"   /* name of the first */
#define AT_START "at_start" /* weights are in memory at the start */
#define MORE "more"         /* the others by name */

/* The name of a file, without folder and ending. */
static const char *name_of(const char *model)
{
    char *name = xstrdup(text_base(model));
    char *end = strstr(name, ".json");
    if (end != NULL && end[strlen(".json")] == '\0') {
        *end = '\0';
    }
    return xkeep(name);
}

static struct model_option option_of(const char *part)
{
    struct model_option m = {.name = NULL};
    const char *equals = strchr(part, '=');
    OWNED char *name = equals != NULL ? xformat("%.*s", (int)(equals - part), part) : xstrdup("");
    bool named = trace_model_is_name(name); /* not the '=' of a width or a path */
    m.text = xkeep(xstrdup(named ? equals + 1 : part));
    m.bits = strstr(m.text, WIDTH);
    size_t n = m.bits != NULL ? (size_t)(m.bits - m.text) : strlen(m.text);
    m.model = xkeep(xformat("%.*s", (int)n, m.text));
    m.bits = m.bits != NULL ? m.bits + strlen(WIDTH) : NULL;
    m.name = named ? xkeep(xstrdup(name)) : name_of(m.model);
    return m;
}

int models_parse(const char *llm, struct model_option **out, uint32_t *n, struct err *e)
{
    size_t before = e->n;
    OWNED char *copy = xstrdup(llm);
    *out = NULL;
    *n = 0;
    for (char *part = copy, *comma; part != NULL; part = comma != NULL ? comma + 1 : NULL) {
        comma = strchr(part, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        *out = xgrow(*out, *n, sizeof **out);
        struct model_option *m = &(*out)[(*n)++];
        *m = option_of(part);
        for (uint32_t i = 0; i + 1 < *n; i++) {
            if (strcmp((*out)[i].name, m->name) == 0) {
                (void)err_add(e, "--llm %s: two models are called '%s'; name them: --llm NAME=%s",
                              part, m->name, m->text);
            }
        }
    }
    if (*n > SIM_MAX_MODELS) {
        (void)err_add(e, "--llm: %u models, a run has at most %d", *n, SIM_MAX_MODELS);
    }
    return e->n == before ? 0 : -EINVAL;
}

/* Whether the options name at most one model. `observe` names none. */
static bool is_one(const struct config_options *o)
{
    return o->llm == NULL || strchr(o->llm, ',') == NULL;
}

static void bind_one(const struct model_option *m, uint32_t n, struct trace_model *x, struct err *e)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(m[i].name, x->name) == 0) {
            x->is = (uint8_t)i;
            return;
        }
    }
    SCOPED(text_fini) struct text names = {0};
    for (uint32_t i = 0; i < n; i++) {
        text_item(&names, ", ", m[i].name);
    }
    (void)err_add(e,
                  "%s: no model of the run is called '%s'; there are %s (--llm %s=MODEL adds it)",
                  x->where, x->name, text_end(&names), x->name);
}

int models_bind(const struct config_options *o, struct trace *t, struct err *e)
{
    struct model_option *m = NULL;
    uint32_t n = 0;
    if (t->graph == NULL || t->graph->n_models == 0 || is_one(o)) {
        return 0;
    }
    size_t before = e->n;
    if (models_parse(o->llm, &m, &n, e) == 0) {
        for (uint32_t i = 0; i < t->graph->n_models; i++) {
            bind_one(m, n, &t->graph->models[i], e);
        }
    }
    free(m);
    return e->n == before ? 0 : -EINVAL;
}

/* Prints which models no row names. The first is for rows without a name, and `draft` for drafts.
 */
static void note_unnamed(const struct config_options *o, const struct trace *t)
{
    struct model_option *m = NULL;
    uint32_t n = 0;
    SCOPED(err_fini) struct err none = ERR_INIT;
    SCOPED(text_fini) struct text names = {0};
    (void)models_parse(o->llm, &m, &n, &none);
    for (uint32_t i = 1; i < n; i++) {
        bool named = strcmp(m[i].name, "draft") == 0;
        for (uint32_t k = 0; t->graph != NULL && k < t->graph->n_models; k++) {
            named = named || t->graph->models[k].is == i;
        }
        if (!named) {
            text_item(&names, ", ", m[i].name);
        }
    }
    free(m);
    if (text_end(&names)[0] != '\0') {
        (void)fprintf(stderr, "xpusim: note: models of --llm that no request %snames: %s\n",
                      o->several ? "of the first replication " : "", text_end(&names));
    }
}

void models_note(const struct config_options *o, const struct trace *t)
{
    static bool said; /* a process checks many traces */
    if (said || t->n == 0) {
        return;
    }
    said = true;
    if (!is_one(o)) {
        note_unnamed(o, t);
    }
    if (t->graph == NULL || t->graph->n_models == 0 || !is_one(o)) {
        return;
    }
    SCOPED(text_fini) struct text names = {0};
    for (uint32_t i = 0; i < t->graph->n_models; i++) {
        text_item(&names, ", ", t->graph->models[i].name);
    }
    (void)fprintf(stderr,
                  "xpusim: note: requests name the models %s; this run has one, which all of them "
                  "use (--llm NAME=MODEL, once for each, gives them their own)\n",
                  text_end(&names));
}

int models_refuse_several(const struct config_options *o, const char *what, struct err *e)
{
    return is_one(o) ? 0 : err_add(e, "%s takes one --llm, not several", what);
}

char *models_add_files(cJSON *tree, const char *llm, struct err *e)
{
    struct model_option *m = NULL;
    uint32_t n = 0;
    char *first = NULL;
    cJSON *more = NULL;
    (void)models_parse(llm, &m, &n, e);
    if (n > 1) {
        cJSON *models = cJSON_AddObjectToObject(tree, MODELS);
        JSON_MEMBERS(models, DEFAULT, m[0].name, AT_START, (bool)true);
        more = cJSON_AddObjectToObject(models, MORE);
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *path = llm_path(m[i].model);
        SCOPED(json_drop) cJSON *one = cJSON_CreateObject();
        config_add_file(one, "llm", m[i].model, path, llm_read_file, e);
        cJSON *part = cJSON_DetachItemFromObjectCaseSensitive(one, "llm");
        if (m[i].bits != NULL) {
            config_set_width(part, m[i].text, m[i].bits, e);
        }
        if (part != NULL) {
            cJSON_AddItemToObject(i == 0 ? tree : more, i == 0 ? "llm" : m[i].name, part);
        }
        first = i == 0 ? xstrdup(path) : first; /* a copy: path may be the name, which is freed */
    }
    free(m);
    return first;
}

void models_price(struct config *c)
{
    for (uint32_t i = 0; i < c->n_more; i++) {
        struct config_model *m = &c->more[i];
        roofline_init(&m->truth, c->truth.model.ops, &c->soc, &m->llm);
        if (c->sim.nonlinear != CONFIG_NONLINEAR_FUSED) {
            bool offload = c->sim.nonlinear == CONFIG_NONLINEAR_OFFLOAD;
            roofline_unfuse(&m->truth, offload ? (double)c->soc.machine.sync_ns / 1e9 : 0.0);
        }
        m->truth.machine = c->soc.machine;
        c->setup_more[i] = (struct sim_model){&m->llm, &m->truth.model};
    }
}

const struct roofline *models_roofline(const struct config *c, uint32_t model)
{
    return model == 0 ? &c->truth : &c->more[model - 1].truth;
}

const struct llm *models_llm(const struct config *c, uint32_t model)
{
    return model == 0 ? &c->llm : &c->more[model - 1].llm;
}

void models_read(struct config *c, struct err *e)
{
    const cJSON *models = json_member(c->tree, MODELS);
    const cJSON *more = json_member(models, MORE);
    const cJSON *name = json_member(models, DEFAULT);
    const cJSON *at_start = json_member(models, AT_START);
    uint32_t n = more != NULL ? (uint32_t)cJSON_GetArraySize(more) : 0;
    c->more = xcalloc(n + 1, sizeof *c->more);
    c->setup_more = xcalloc(n + 1, sizeof *c->setup_more);
    c->weights_at_start = at_start == NULL || cJSON_IsTrue(at_start);
    if (at_start != NULL && !cJSON_IsBool(at_start)) {
        (void)err_add(e, MODELS "." AT_START ": must be true or false");
    }
    struct text all = {0};
    text_item(&all, "", c->llm.name);
    if (n > 0 && cJSON_IsString(name) && strcmp(name->valuestring, c->llm.name) != 0) {
        text_fini(&all);
        text_format(&all, "%s=%s", name->valuestring, c->llm.name);
    }
    for (const cJSON *m = n > 0 ? more->child : NULL; m != NULL; m = m->next) {
        struct llm *llm = &c->more[c->n_more++].llm;
        c->draft_model = strcmp(m->string, "draft") == 0 ? c->n_more : c->draft_model;
        (void)llm_parse(m, m->string, llm, e);
        bool same = strcmp(m->string, llm->name) == 0;
        text_format(&all, ",%s%s%s", same ? "" : m->string, same ? "" : "=", llm->name);
    }
    c->models = xkeep(text_end(&all));
}

/* Tokens of the longest prompt of each model; a draft model processes all prompts. */
static void longest_prompts(const struct config *c, const struct trace *t, uint32_t longest[])
{
    for (uint32_t i = 0; t != NULL && i < t->n; i++) {
        uint32_t prompt = trace_row_at(t, i).input_tokens;
        uint32_t *of[] = {&longest[trace_graph_model(t->graph, i)], &longest[c->draft_model]};
        for (int k = 0; k < (c->draft_model > 0 ? 2 : 1); k++) {
            *of[k] = prompt > *of[k] ? prompt : *of[k];
        }
    }
}

double models_runtime_bytes(const struct config *c, const struct trace *t)
{
    uint32_t longest[SIM_MAX_MODELS] = {0};
    longest_prompts(c, t, longest);
    double most = 0.0;
    double budgets = 0.0;
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        const struct soc_memory *m = &c->soc.devices[d].memory;
        uint32_t chunk = c->soc.machine.devices[d].chunk_rows;
        struct footprint_model of[SIM_MAX_MODELS];
        for (uint32_t i = 0; i <= c->n_more; i++) {
            of[i].llm = models_llm(c, i);
            of[i].tokens = chunk > 0 && chunk < longest[i] ? chunk : longest[i];
        }
        most = fmax(most, m->counted ? footprint_extra_bytes(m, of, c->n_more + 1) : 0.0);
        budgets += c->soc.devices[d].kernels.budget_bytes;
    }
    return most + budgets;
}
