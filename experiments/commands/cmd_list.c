/* `xpusim list KIND`: what there is to choose from. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/commands/commands.h"
#include "experiments/commands/list_kernels.h"
#include "experiments/run/config.h"
#include "experiments/run/plugin.h"
#include "experiments/shell/table.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/metrics/metric_table.h"

#define PATH_BYTES 4096
#define DESCRIPTION_WIDTH 76

struct list_options {
    struct config_options config;
    struct option_output output;
    struct option_texts words;
    const char *kind, *name; /* name: one policy */
};

/* Prints an array of flat objects: as JSON, or one row each, the first two keys as columns. */
static int print_rows(cJSON *rows, const struct list_options *o)
{
    if (o->output.json) {
        json_print(rows, stdout);
        return EXIT_OK;
    }
    struct table t;
    table_init(&t, "ll");
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, rows)
    {
        table_cell(&t, "%s", row->child->valuestring);
        table_cell(&t, "%s", row->child->next->valuestring);
    }
    table_print(&t, stdout, 0);
    table_fini(&t);
    cJSON_Delete(rows);
    return EXIT_OK;
}

/* ---- policies ---- */

static cJSON *params_to_json(const struct policy_ops *p)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < policy_params_count(p); i++) {
        static const char *const types[] = {"number", "integer", "boolean", "choice"};
        const struct policy_param *q = &p->params[i];
        char value[128];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", q->name);
        cJSON_AddStringToObject(o, "type", types[q->type]);
        policy_param_format(q, q->def, value, sizeof value);
        cJSON_AddStringToObject(o, "default", value);
        if (q->type == PARAM_NUMBER || q->type == PARAM_INT) {
            cJSON_AddNumberToObject(o, "min", q->min);
            cJSON_AddNumberToObject(o, "max", q->max);
        }
        if (q->type == PARAM_CHOICE) {
            cJSON *c = cJSON_AddArrayToObject(o, "choices");
            for (uint32_t k = 0; q->choices[k] != NULL; k++) {
                cJSON_AddItemToArray(c, cJSON_CreateString(q->choices[k]));
            }
        }
        cJSON_AddStringToObject(o, "help", q->help);
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static cJSON *policy_to_json(const struct policy_ops *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", p->name);
    cJSON_AddStringToObject(o, "summary", p->summary);
    cJSON_AddBoolToObject(o, "oracle", (p->flags & POLICY_F_ORACLE) != 0);
    cJSON_AddItemToObject(o, "params", params_to_json(p));
    return o;
}

/* What a parameter accepts, in words. */
static void describe_range(const struct policy_param *q, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    switch (q->type) {
    case PARAM_BOOL:
        (void)snprintf(buf, size, "true|false");
        return;
    case PARAM_CHOICE:
        for (uint32_t k = 0; q->choices[k] != NULL && used < size; k++) {
            used +=
                (size_t)snprintf(buf + used, size - used, "%s%s", k > 0 ? "|" : "", q->choices[k]);
        }
        return;
    case PARAM_INT:
    case PARAM_NUMBER:
        (void)snprintf(buf, size, "%g..%g", q->min, q->max);
        return;
    }
}

static void print_params(const struct policy_ops *p)
{
    (void)printf("%s: %s\n", p->name, p->summary);
    struct table t;
    table_init(&t, "llll");
    for (uint32_t i = 0; i < policy_params_count(p); i++) {
        char text[256];
        policy_param_format(&p->params[i], p->params[i].def, text, sizeof text);
        table_cell(&t, "%s", p->params[i].name);
        table_cell(&t, "%s", text);
        describe_range(&p->params[i], text, sizeof text);
        table_cell(&t, "%s", text);
        table_cell(&t, "%s", p->params[i].help);
    }
    table_print(&t, stdout, 2);
    table_fini(&t);
    for (uint32_t k = 0; p->presets != NULL && p->params[0].choices[k] != NULL; k++) {
        (void)printf("  %s=%s: %s\n", p->params[0].name, p->params[0].choices[k], p->presets[k]);
    }
}

static int list_policies(const struct list_options *o, struct err *e)
{
    if (o->name != NULL) {
        bool plugin = plugin_path_length(o->name) > 0;
        const struct policy_ops *p = plugin ? plugin_load(o->name, e) : policy_find(o->name);
        if (p == NULL && plugin) {
            return -EINVAL;
        }
        if (p == NULL) {
            return err_add(e, "no policy is called %s; `xpusim list policy` shows them", o->name);
        }
        if (o->output.json) {
            json_print(policy_to_json(p), stdout);
        } else {
            print_params(p);
        }
        return EXIT_OK;
    }
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(rows, policy_to_json(all[i]));
    }
    return print_rows(rows, o);
}

/* ---- files ---- */

/* What a data set says of itself, in the comment after its format line; shortened to `width`. */
static void describe_csv(const char *path, char *buf, size_t size, size_t width)
{
    FILE *f = input_try(path);
    bool ok = f != NULL && fgets(buf, (int)size, f) != NULL && fgets(buf, (int)size, f) != NULL;
    if (f != NULL) {
        (void)fclose(f);
    }
    if (!ok || buf[0] != '#') {
        buf[0] = '\0';
        return;
    }
    buf[strcspn(buf, "\r\n")] = '\0';
    size_t skip = strspn(buf, "# ");
    memmove(buf, buf + skip, strlen(buf + skip) + 1);
    if (strlen(buf) > width) {
        memcpy(buf + width - 3, "...", 4);
    }
}

/* A SoC's or model's own name. */
static void describe_json(const char *path, char *buf, size_t size, struct err *e)
{
    cJSON *root = json_read_file(path, e);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(root, "name");
    (void)snprintf(buf, size, "%s", cJSON_IsString(name) ? name->valuestring : "");
    cJSON_Delete(root);
}

static int is_data_file(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return d->d_name[0] != '.' && dot != NULL &&
           (strcmp(dot, ".json") == 0 || strcmp(dot, ".csv") == 0);
}

static int list_files(const struct list_options *o, const char *folder, struct err *e)
{
    char path[PATH_BYTES];
    (void)datadir_path(path, sizeof path, folder);
    struct dirent **files = NULL;
    int n = scandir(path, &files, is_data_file, alphasort);
    if (n < 0) {
        return err_add(e, "%s: %s", path, strerror(errno));
    }
    cJSON *rows = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        char file[PATH_BYTES + 300];
        char about[1024];
        char *name = files[i]->d_name;
        (void)snprintf(file, sizeof file, "%s/%s", path, name);
        char *dot = strrchr(name, '.');
        if (strcmp(dot, ".csv") == 0) {
            describe_csv(file, about, sizeof about,
                         o->output.json ? sizeof about : DESCRIPTION_WIDTH);
        } else {
            describe_json(file, about, sizeof about, e);
        }
        *dot = '\0';
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", name);
        cJSON_AddStringToObject(row, "description", about);
        cJSON_AddItemToArray(rows, row);
        free(files[i]);
    }
    free(files);
    return print_rows(rows, o);
}

static int list_names(const struct list_options *o, const char *const *names)
{
    cJSON *rows = cJSON_CreateArray();
    for (; *names != NULL; names++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", *names);
        cJSON_AddStringToObject(row, "description", "");
        cJSON_AddItemToArray(rows, row);
    }
    return print_rows(rows, o);
}

/* ---- what there is ---- */

static int list_socs(const struct list_options *o, struct err *e)
{
    return list_files(o, "hwmodels/soc", e);
}

static int list_llms(const struct list_options *o, struct err *e)
{
    return list_files(o, "hwmodels/llm", e);
}

static int list_datasets(const struct list_options *o, struct err *e)
{
    return list_files(o, "traces/datasets", e);
}

static int list_contention(const struct list_options *o, struct err *e)
{
    (void)e;
    return list_names(o, contention_names());
}

static int list_hwmodels(const struct list_options *o, struct err *e)
{
    (void)e;
    return list_names(o, hwmodel_names());
}

/* The glossary: every part of a name, with unit, direction and definition. */
static int list_metrics(const struct list_options *o, struct err *e)
{
    size_t n = 0;
    const struct metric_descriptor *v = metric_table(&n);
    struct table t;
    table_init(&t, "llll");
    cJSON *rows = cJSON_CreateArray();
    (void)e;
    for (size_t i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", v[i].part);
        cJSON_AddStringToObject(row, "title", v[i].title);
        cJSON_AddStringToObject(row, "unit", v[i].unit);
        cJSON_AddStringToObject(row, "better", metric_better_names[v[i].better]);
        cJSON_AddStringToObject(row, "definition", v[i].definition);
        cJSON_AddItemToArray(rows, row);
        table_cell(&t, "%s", v[i].part);
        table_cell(&t, "%s", v[i].unit);
        table_cell(&t, "%s",
                   v[i].better == METRIC_BETTER_NEITHER ? "" : metric_better_names[v[i].better]);
        table_cell(&t, "%s", v[i].definition);
    }
    if (o->output.json) {
        json_print(rows, stdout);
    } else {
        (void)puts(
            "A metric is [truncated.][WHO.]NAME[.STATISTIC]: WHO reactive, proactive, all, a "
            "device\n"
            "or a part of the machine; STATISTIC mean, p50, p90, p99, max, n. Better: lower or "
            "higher.\n");
        table_print(&t, stdout, 0);
        cJSON_Delete(rows);
    }
    table_fini(&t);
    return EXIT_OK;
}

static int list_kernel_times(const struct list_options *o, struct err *e)
{
    return list_kernels(&o->config, o->output.json, e);
}

static const char *const kinds[] = {"policy",  "soc",    "llm",     "dataset", "contention",
                                    "hwmodel", "metric", "kernels", NULL};
static int (*const listers[])(const struct list_options *, struct err *) = {
    list_policies,   list_socs,     list_llms,    list_datasets,
    list_contention, list_hwmodels, list_metrics, list_kernel_times};

static int run(void *values, struct err *e)
{
    struct list_options *o = values;
    o->kind = o->words.v[0];
    o->name = o->words.n > 1 ? o->words.v[1] : NULL;
    if (o->name != NULL && strcmp(o->kind, kinds[0]) != 0) {
        return err_add(e, "%s: not an option", o->name);
    }
    for (size_t i = 0; kinds[i] != NULL; i++) {
        if (strcmp(o->kind, kinds[i]) == 0) {
            return listers[i](o, e);
        }
    }
    return err_add(
        e,
        "list %s: must be one of policy, soc, llm, dataset, contention, hwmodel, metric, kernels",
        o->kind);
}

#define OPTIONS struct list_options

static const struct option_child children[] = {
    {&option_json_table, offsetof(OPTIONS, output), NULL, false},
    {&config_option_table, offsetof(OPTIONS, config), NULL, false},
    {0},
};
const struct command cmd_list = {
    .name = "list",
    .summary = "policies, SoCs, models, datasets, kernels",
    .usage = "policy|soc|llm|dataset|contention|hwmodel|metric|kernels [--json]",
    .about = "  policy      scheduling policies; `xpusim list policy NAME` shows one's parameters\n"
             "  soc, llm    shipped machines and models\n"
             "  dataset     shipped token lengths and arrivals\n"
             "  contention  forms of sharing the DDR bandwidth\n"
             "  hwmodel     forms of kernel times\n"
             "  metric      the glossary: unit, direction and definition of every metric\n"
             "  kernels     times of one layer's kernels on each device; takes --soc, --llm, "
             "--hwmodel, --set",
    .children = children,
    .operands = {"KIND", 1, 2, offsetof(OPTIONS, words)},
    .bytes = sizeof(OPTIONS),
    .run = run,
};
