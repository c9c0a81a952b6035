#include "experiments/validation/catalog.h"

#include <ctype.h>

#include "experiments/run/config_sim.h"
#include "experiments/run/folder.h"
#include "experiments/run/interval.h"
#include "hwmodels/llm_hf.h"
#include "sim/base/csv_record.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"

#define RECIPES "hwmodels/points/int4-recipes.csv"
#define LLAMA_BENCH "hwmodels/points/llama-bench.csv"
#define SAME_WEIGHTS                                                                               \
    0.03 /* norms, routers, two decimals of a table, a layer that drafts tokens                    \
          */
#define WINDOWS "hwmodels/points/windows.csv"
#define REFERENCE "hwmodels/points/reference.csv"

/* Words at the end of a model's name that do not change its architecture. */
static const char *const suffixes[] = {
    "chat", "instruct", "it",   "base",  "hf",   "gptq", "awq",  "gguf", "cw",      "sym",
    "sft",  "dpo",      "beta", "fp16",  "bf16", "int8", "int4", "v0",   "v1",      "v2",
    "v3",   "v0.1",     "v0.2", "v0.3",  "v1.0", "v1.5", "4k",   "8k",   "32k",     "128k",
    "1k",   "2k",       "16k",  "multi", "mono", "2407", "2410", "2507", "preview", "quantized",
};

bool catalog_same(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a != '\0' && !isalnum((unsigned char)*a)) {
            a++;
        }
        while (*b != '\0' && !isalnum((unsigned char)*b)) {
            b++;
        }
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) {
            return false;
        }
        if (*a == '\0') {
            return true;
        }
    }
}

static void add_llm(void *ctx, const char *path, const char *name UNUSED, struct err *e)
{
    struct catalog *c = ctx;
    struct llm *m = xkept(xcalloc(1, sizeof *m));
    SCOPED(json_drop) cJSON *root = json_read_file(path, e);
    if (root == NULL || llm_parse(root, path, m, e) != 0) {
        return;
    }
    KEPT_ADD(c->llms, c->n_llms, m);
    KEPT_ADD(c->names, c->n_names, (struct catalog_llm){xkeep(xstrdup(m->name)), m, false});
    for (const char *p = json_string(root, "aliases"); *p != '\0';) {
        size_t n = strcspn(p, ",");
        KEPT_ADD(c->names, c->n_names,
                 (struct catalog_llm){xkeep(xformat("%.*s", (int)n, p)), m, false});
        p += n + (p[n] == ',');
    }
}

void catalog_add_soc(struct catalog *c, struct soc *soc)
{
    KEPT_ADD(c->socs, c->n_socs, soc);
}

static void add_soc(void *ctx, const char *path, const char *name UNUSED, struct err *e)
{
    struct soc *soc = xkept(xmalloc(sizeof *soc));
    SCOPED(json_drop) cJSON *root = json_read_file(path, e);
    if (root != NULL && soc_parse(root, path, soc, e) == 0) {
        catalog_add_soc(ctx, soc);
    }
}

#define RECIPE(member) CSV_MEMBER(struct catalog_recipe, member)
static const struct csv_field recipe_fields[] = {
    {"model", CSV_TEXT, RECIPE(name)},
    {"share_4bit", CSV_NUMBER, RECIPE(share), .max = 1.0},
    {"group", CSV_NUMBER, RECIPE(group), .min = 1.0, .max = 1e6},
    {"zero_points", CSV_NUMBER, RECIPE(zero_points), .max = 1.0},
};
#define WINDOW(member) CSV_MEMBER(struct catalog_window, member)
static const struct csv_field window_fields[] = {
    {"runtime", CSV_TEXT, WINDOW(runtime)},
    {"model", CSV_TEXT, WINDOW(model)},
    {"window", CSV_WHOLE, WINDOW(window), .min = 1.0, .max = 1u << 24},
};

struct other_name {
    const char *name, *model;
};
#define OTHER(member) CSV_MEMBER(struct other_name, member)
static const struct csv_field name_fields[] = {
    {"name", CSV_TEXT, OTHER(name)},
    {"model", CSV_TEXT, OTHER(model)},
};

static void read_names(struct catalog *c, struct err *e)
{
    static const struct csv_table names =
        CSV_TABLE(name_fields, sizeof(struct other_name), .holds = NULL);
    size_t n = 0;
    const struct other_name *v = csv_table_read(&names, datadir_path(LLAMA_BENCH), &n, e);
    for (size_t i = 0; i < n; i++) {
        const struct llm *m = catalog_llm(c, v[i].model);
        if (m == NULL) {
            (void)err_add(e, LLAMA_BENCH ": %s: no such model", v[i].model);
        }
        KEPT_ADD(c->names, c->n_names, (struct catalog_llm){v[i].name, m, false});
    }
}

static void read_tables(struct catalog *c, struct err *e)
{
    read_names(c, e);
    static const struct csv_table recipes =
        CSV_TABLE(recipe_fields, sizeof *c->recipes, .holds = NULL);
    static const struct csv_table windows =
        CSV_TABLE(window_fields, sizeof *c->windows, .holds = NULL);
    c->recipes = csv_table_read(&recipes, datadir_path(RECIPES), &c->n_recipes, e);
    c->windows = csv_table_read(&windows, datadir_path(WINDOWS), &c->n_windows, e);
}

uint32_t catalog_window(const struct catalog *c, const char *runtime, const char *model)
{
    for (size_t i = 0; i < c->n_windows; i++) {
        const struct catalog_window *w = &c->windows[i];
        if (strncmp(runtime, w->runtime, strlen(w->runtime)) == 0 &&
            catalog_same(w->model, model)) {
            return w->window;
        }
    }
    return 0;
}

double catalog_recipe_bytes(const struct catalog *c, const char *name)
{
    for (size_t i = 0; i < c->n_recipes; i++) {
        const struct catalog_recipe *r = &c->recipes[i];
        if (catalog_same(r->name, name)) {
            double four = 0.5 + (2.0 + 0.5 * r->zero_points) / r->group;
            return r->share * four + (1.0 - r->share) * soc_format_of_width(8).body_bytes;
        }
    }
    return 0.0;
}

static void usual_contention(struct catalog *c, struct err *e)
{
    struct config_sim sim;
    SCOPED(json_drop) cJSON *defaults = config_sim_to_json();
    config_sim_parse(json_root(defaults, "sim", e), &sim);
    c->contention = contention_find(sim.contention);
    c->contention_params = sim.contention_params;
}

int catalog_open(struct catalog *c, struct err *e)
{
    memset(c, 0, sizeof *c);
    size_t before = e->n;
    (void)folder_each(datadir_path("hwmodels/soc"), add_soc, c, e);
    (void)folder_each(datadir_path("hwmodels/llm"), add_llm, c, e);
    read_tables(c, e);
    const struct conformal *residuals = interval_table(e);
    c->residuals = residuals != NULL ? *residuals : (struct conformal){0};
    (void)points_read(datadir_path(REFERENCE), &c->reference, e);
    usual_contention(c, e);
    return e->n == before ? 0 : -EINVAL;
}

const struct soc *catalog_soc(const struct catalog *c, const char *name)
{
    for (size_t i = c->n_socs; i-- > 0;) { /* later files take precedence */
        if (catalog_same(name, c->socs[i]->machine.name)) {
            return c->socs[i];
        }
    }
    return NULL;
}

static const struct llm *find_key(const struct catalog *c, const char *name)
{
    for (size_t i = 0; i < c->n_names; i++) {
        if (catalog_same(name, c->names[i].name)) {
            return c->names[i].llm;
        }
    }
    return NULL;
}

/* Removes the last word if it is one of the suffixes. */
static bool cut_suffix(char *name)
{
    char *dash = strrchr(name, '-');
    if (dash == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (catalog_same(dash + 1, suffixes[i])) {
            *dash = '\0';
            return true;
        }
    }
    return false;
}

const struct llm *catalog_llm(const struct catalog *c, const char *name)
{
    OWNED char *text = xstrdup(name);
    for (char *p = text; *p != '\0'; p++) {
        *p = strchr("_ /", *p) != NULL ? '-' : *p;
    }
    const struct llm *m;
    do {
        m = find_key(c, text);
    } while (m == NULL && cut_suffix(text));
    return m;
}

int catalog_add_models(struct catalog *c, const struct points *p, struct err *e)
{
    size_t before = e->n;
    for (size_t i = 0; i < p->n + p->n_asked && e->n == before; i++) {
        const char *path = p->v[i].model;
        if (!text_ends(path, ".json") || find_key(c, path) != NULL) {
            continue;
        }
        struct llm *m = xkept(xcalloc(1, sizeof *m));
        SCOPED(json_drop) cJSON *root = llm_read_file(path, e);
        if (root != NULL && llm_parse(root, path, m, e) == 0) {
            KEPT_ADD(c->llms, c->n_llms, m);
            bool knows = llm_knows(root, "body_bytes_per_weight") &&
                         llm_knows(root, "head_bytes_per_weight");
            KEPT_ADD(c->names, c->n_names, (struct catalog_llm){path, m, knows});
        }
    }
    return e->n == before ? 0 : -EINVAL;
}

bool catalog_knows_bytes(const struct catalog *c, const struct llm *m)
{
    for (size_t i = 0; i < c->n_names; i++) {
        if (c->names[i].llm == m && c->names[i].knows_bytes) {
            return true;
        }
    }
    return false;
}

bool catalog_has_weights(const struct llm *m, double weights)
{
    double once = llm_stored_weights(m);
    double twice = once + (m->tied_head ? m->head_weights : 0.0);
    return fabs(weights / once - 1.0) <= SAME_WEIGHTS ||
           fabs(weights / twice - 1.0) <= SAME_WEIGHTS;
}

char *catalog_of_weights(const struct catalog *c, double weights)
{
    SCOPED(text_fini) struct text t = {0};
    for (size_t i = 0; i < c->n_llms; i++) {
        if (catalog_has_weights(c->llms[i], weights)) {
            text_item(&t, ", ", c->llms[i]->name);
        }
    }
    return xstrdup(text_end(&t)[0] != '\0' ? text_end(&t) : "none");
}
