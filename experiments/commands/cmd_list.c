/* `xpusim list KIND`: lists what options can name. */
#include "experiments/commands/commands.h"
#include "experiments/commands/list.h"
#include "experiments/run/config.h"
#include "experiments/run/config_sim.h"
#include "experiments/run/plugin.h"
#include "experiments/shell/cli.h"
#include "experiments/shell/document.h"
#include "hwmodels/soc.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/nearest.h"
#include "sim/metrics/metric_table.h"

struct list_options {
    struct config_options config;
    struct option_output output;
    struct option_texts words; /* the kind, and the name of one */
};

/* ---- policies ---- */

/* Describes the values that a parameter accepts. */
static void add_range(struct text *t, const struct policy_param *q)
{
    switch (q->type) {
    case PARAM_BOOL:
        text_string(t, "true|false");
        return;
    case PARAM_CHOICE:
        for (uint32_t k = 0; q->choices[k] != NULL; k++) {
            text_item(t, "|", q->choices[k]);
        }
        return;
    case PARAM_INT:
    case PARAM_NUMBER:
        text_format(t, "%g..%g", q->min, q->max);
        return;
    }
}

static void put_param(const struct policy_param *q, double usual, struct frame *shown,
                      struct document *d)
{
    static const char *const types[] = {"number", "integer", "boolean", "choice"};
    bool ranged = q->type == PARAM_NUMBER || q->type == PARAM_INT;
    SCOPED(text_fini) struct text value = {0};
    SCOPED(text_fini) struct text range = {0};
    policy_param_add(&value, q, usual);
    add_range(&range, q);
    DOCUMENT_VALUES(d, "name", q->name, "type", types[q->type], "default", text_end(&value), "min",
                    FRAME_IF(ranged, q->min), "max", FRAME_IF(ranged, q->max));
    if (q->type == PARAM_CHOICE) {
        struct document *choices = document_array(d, "choices");
        for (uint32_t k = 0; q->choices[k] != NULL; k++) {
            DOCUMENT_VALUES(choices, NULL, q->choices[k]);
        }
    }
    DOCUMENT_VALUES(d, "help", q->help);
    FRAME_ROW(shown, q->name, text_end(&value), text_end(&range), q->help);
}

/* "npu+igpu": all devices that it needs. Without needs: the default of its parameter `device`,
 * such as "cpu"; "one": any device. Kept. */
static const char *devices_of(const struct policy_ops *p)
{
    struct text t = {0};
    for (uint32_t k = 0; k < DEVICE_KIND_COUNT; k++) {
        if ((p->needs & CAP_DEVICE(k)) != 0) {
            text_item(&t, "+", device_kind_names()[k]);
        }
    }
    for (const struct policy_param *q = p->params; q != NULL && q->name != NULL && t.n == 0; q++) {
        if (strcmp(q->name, "device") == 0 && q->type == PARAM_CHOICE) {
            const char *usual = q->choices[(size_t)q->def];
            text_string(&t, strcmp(usual, "auto") == 0 ? "one" : usual);
        }
    }
    return xkeep(text_end(&t));
}

/* alias: an alias of the policy to put instead, or NULL. shown: table of parameters for people. */
static void put_policy(const struct policy_ops *p, const struct policy_alias *alias,
                       struct frame *shown, struct document *d)
{
    DOCUMENT_VALUES(d, "name", alias != NULL ? alias->name : p->name, "summary",
                    alias != NULL ? alias->summary : p->summary, "devices", devices_of(p), "oracle",
                    (bool)((p->flags & POLICY_F_ORACLE) != 0));
    struct document *params = document_array(d, "params");
    struct policy_params usual;
    struct err e = ERR_INIT;
    int rc = policy_params_parse(p, alias != NULL ? alias->params : "", &usual, &e);
    SIM_REQUIRE(rc == 0, "%s: its own values are refused", p->name);
    for (uint32_t i = 0; i < usual.n; i++) {
        put_param(&p->params[i], usual.v[i], shown, document_within(params, NULL));
    }
    if (p->ablations != NULL) {
        struct document *without = document_array(d, "ablations");
        for (uint32_t i = 0; p->ablations[i] != NULL; i++) {
            DOCUMENT_VALUES(without, NULL, p->ablations[i]);
        }
    }
}

static int list_policy(const char *name, struct document *d, struct err *e)
{
    bool plugin = plugin_path_length(name) > 0;
    const struct policy_alias *alias = plugin ? NULL : policy_alias_find(name);
    const struct policy_ops *p = plugin          ? plugin_load(name, e)
                                 : alias != NULL ? policy_find(alias->policy)
                                                 : policy_find(name);
    if (p == NULL) {
        return plugin ? -EINVAL
                      : err_add(e, "no policy is called %s; `xpusim list policy` shows them", name);
    }
    if (alias != NULL) {
        document_note(d, "%s: %s; it is %s:%s", name, alias->summary, alias->policy, alias->params);
    }
    document_note(d, "%s: %s", p->name, p->summary);
    put_policy(p, alias, document_table(d, 2, "llll", NULL), d);
    for (uint32_t k = 0; p->presets != NULL && p->params[0].choices[k] != NULL; k++) {
        document_note(d, "  %s=%s: %s", p->params[0].name, p->params[0].choices[k], p->presets[k]);
    }
    SCOPED(text_fini) struct text without = {0};
    for (const char *const *a = p->ablations; a != NULL && *a != NULL; a++) {
        text_item(&without, "; ", *a);
    }
    if (without.n > 0) {
        document_note(d, "  without a mechanism (`xpusim ablate %s`): %s",
                      alias != NULL ? alias->name : p->name, text_end(&without));
    }
    return 0;
}

static int list_policies(const char *name, struct document *d, struct err *e)
{
    if (name != NULL) {
        return list_policy(name, d, e);
    }
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    struct document *list = document_array(d, "");
    struct frame *names = document_table(d, 0, "lll", NULL);
    struct document *unseen = document_new();
    struct frame *params = document_table(unseen, 0, "llll", NULL);
    for (size_t i = 0; i < n; i++) {
        put_policy(all[i], NULL, params, document_within(list, NULL));
        FRAME_ROW(names, all[i]->name, devices_of(all[i]), all[i]->summary);
    }
    for (const struct policy_alias *a = policy_alias_find(NULL); a->name != NULL; a++) {
        FRAME_ROW(names, a->name, devices_of(policy_find(a->policy)),
                  xkeep(xformat("= %s:%s, %s", a->policy, a->params, a->summary)));
    }
    return 0;
}

/* A table of names and descriptions. */
static struct frame *described(struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "name", .title = "", .kind = FRAME_TEXT},
        {.name = "description", .title = "", .kind = FRAME_TEXT},
    };
    return DOCUMENT_FRAME(d, "", 0, columns);
}

/* ---- names, metrics and settings ---- */

/* Puts names that need no description. */
static void put_names(const char *const *names, struct document *d)
{
    struct frame *f = described(d);
    for (; *names != NULL; names++) {
        FRAME_ROW(f, *names, "");
    }
}

/* Lists the parts of metrics' names, with unit, direction and definition. */
static void list_metrics(struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "name", .title = "", .kind = FRAME_TEXT},
        {.name = "title", .kind = FRAME_TEXT, .only_data = true},
        {.name = "unit", .title = "", .kind = FRAME_TEXT},
        {.name = "better", .kind = FRAME_TEXT, .only_data = true},
        {.name = "", .kind = FRAME_TEXT, .only_text = true},
        {.name = "definition", .title = "", .kind = FRAME_TEXT},
    };
    size_t n = 0;
    const struct metric_descriptor *v = metric_table(&n);
    document_note(
        d,
        "A metric is [truncated.][GROUP.]NAME[.STATISTIC]: GROUP reactive, proactive, all, "
        "a device\n"
        "or a part of the machine; STATISTIC mean, p50, p90, p95, p99, max, n. Better: "
        "lower or higher.\n"
        "A percentile is the nearest rank, value number ceil(p n) of n: the lower middle one for "
        "p50 and an even n.\n"
        "truncated is over what finished by the last arrival, or by the horizon.\n"
        "What is only counted is counters.NAME (`run --json` shows all), a policy's own "
        "counters.policy.NAME.\n");
    struct frame *f = DOCUMENT_FRAME(d, "", 0, columns);
    for (size_t i = 0; i < n; i++) {
        const char *better = metric_better_names[v[i].better];
        FRAME_ROW(f, v[i].part, v[i].title, v[i].unit, better,
                  v[i].better == METRIC_BETTER_NEITHER ? "" : better, v[i].definition);
    }
}

/* "a|b|c" */
static const char *joined(const char *const *words)
{
    const char *all = words[0];
    for (size_t k = 1; words[k] != NULL; k++) {
        all = document_format("%s|%s", all, words[k]);
    }
    return all;
}

static void put_setting(void *to, const char *path, const struct json_field *k)
{
    const char *const *words = json_field_words(k);
    const char *range = words != NULL                ? joined(words)
                        : k->kind == JSON_FIELD_BOOL ? "true|false"
                        : k->kind == JSON_FIELD_WORD ? ""
                                                     : document_format("%g..%g", k->min, k->max);
    const char *preset = words != NULL                ? words[(size_t)k->otherwise]
                         : k->kind == JSON_FIELD_BOOL ? (k->otherwise != 0.0 ? "true" : "false")
                         : k->kind == JSON_FIELD_WORD ? k->text
                                                      : document_format("%.10g", k->otherwise);
    if (k->below == NULL) {
        FRAME_ROW(to, document_format("sim.%s", path), preset, range, k->unit, k->about);
    }
}

/* Lists the settings that --set takes below `sim`. */
static void list_settings(struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "path", .kind = FRAME_TEXT},  {.name = "default", .kind = FRAME_TEXT},
        {.name = "range", .kind = FRAME_TEXT}, {.name = "unit", .kind = FRAME_TEXT},
        {.name = "help", .kind = FRAME_TEXT},
    };
    json_fields_each(&config_sim_fields, put_setting, DOCUMENT_FRAME(d, "", 0, columns));
}

/* ---- keys of files ---- */

static void put_key(void *to, const char *path, const struct json_field *k)
{
    const char *const *words = json_field_words(k);
    const char *range = words != NULL  ? joined(words)
                        : k->max > 0.0 ? document_format("%.10g..%.10g", k->min, k->max)
                                       : "";
    FRAME_ROW(to, document_format("%s", path), json_field_kind_names[k->kind],
              k->unit != NULL ? k->unit : "", range, !k->optional, k->below != NULL, k->about);
}

static void list_keys(const struct json_fields *t, struct document *d)
{
    static const struct frame_column columns[] = {
        {.name = "key", .kind = FRAME_TEXT},
        {.name = "type", .kind = FRAME_TEXT},
        {.name = "unit", .kind = FRAME_TEXT},
        {.name = "range", .kind = FRAME_TEXT},
        {.name = "required", .kind = FRAME_FLAG},
        {.name = "checked", .kind = FRAME_FLAG, .only_data = true},
        {.name = "about", .kind = FRAME_TEXT},
    };
    json_fields_each(t, put_key, DOCUMENT_FRAME(d, "", 0, columns));
}

static const struct {
    const char *name;
    /* Each kind has one of these: a function that shows all or one by name, a list of names, a
     * function that shows all, keys of a file, or a function of the configuration. */
    int (*of_name)(const char *name, struct document *d, struct err *e);
    const char *const *(*names)(void);
    void (*all)(struct document *d);
    const struct json_fields *keys;
    int (*with)(const struct config_options *c, struct document *d, struct err *e);
} kinds[] = {
    {"policy", .of_name = list_policies},    {"soc", .of_name = list_socs},
    {"llm", .of_name = list_llms},           {"dataset", .of_name = list_datasets},
    {"workload", .of_name = list_workloads}, {"contention", .names = contention_names},
    {"hwmodel", .names = hwmodel_names},     {"metric", .all = list_metrics},
    {"setting", .all = list_settings},       {"soc-keys", .keys = &soc_fields},
    {"llm-keys", .keys = &llm_fields},       {"kernels", .with = list_kernels},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static int run(void *values, struct err *e)
{
    const struct list_options *o = values;
    const char *kind = o->words.v[0];
    const char *name = o->words.n > 1 ? o->words.v[1] : NULL;
    struct nearest near;
    nearest_init(&near, kind);
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strcmp(kind, kinds[i].name) != 0) {
            nearest_look(&near, kinds[i].name);
            continue;
        }
        if (name != NULL && kinds[i].of_name == NULL) {
            return err_add(e,
                           "%s: neither an option nor the value of one; `xpusim list --help` shows "
                           "them",
                           name);
        }
        OWNED char *task = xformat("list %s", kind);
        if (options_only(task, kinds[i].with != NULL ? "soc llm set" : "", e) != 0) {
            return EXIT_BAD_INPUT;
        }
        struct document *d = document_new();
        int rc = 0;
        if (kinds[i].of_name != NULL) {
            rc = kinds[i].of_name(name, d, e);
        } else if (kinds[i].with != NULL) {
            rc = kinds[i].with(&o->config, d, e);
        } else if (kinds[i].names != NULL) {
            put_names(kinds[i].names(), d);
        } else if (kinds[i].keys != NULL) {
            list_keys(kinds[i].keys, d);
        } else {
            kinds[i].all(d);
        }
        if (rc == 0) {
            document_print(d, &o->output, stdout);
        }
        return rc == 0 ? EXIT_OK : EXIT_BAD_INPUT;
    }
    return err_add(
        e,
        "list %s: must be one of policy, soc, llm, dataset, workload, contention, hwmodel, "
        "metric, setting, soc-keys, llm-keys, kernels%s",
        kind, nearest_hint(&near));
}

#define OPTIONS struct list_options

const struct command cmd_list = {
    .name = "list",
    .summary = "list policies, SoCs, models, datasets, workloads, settings, kernels",
    .usage = "policy|soc|llm|dataset|workload|contention|hwmodel|metric|setting|soc-keys|llm-keys|"
             "kernels "
             "[--json]\n"
             "policy|soc|llm|dataset|workload NAME [--json]",
    .about =
        "  policy      scheduling policies, and the devices that they need (one: any); `xpusim "
        "list "
        "policy NAME` shows its parameters\n  soc, "
        "llm    shipped machines and models; with NAME (as of --soc, --llm) every number with its "
        "path in "
        "--set, range, kind and source\n  dataset     shipped token lengths and arrivals, with "
        "rows, means and licences\n  workload    shipped files of clients with jobs; with NAME "
        "what it is\n  contention  contention models\n  hwmodel     kernel-time "
        "models\n  metric      unit, direction and definition of every metric\n  setting     "
        "settings for --set below sim: default, range, unit and meaning\n  soc-keys    keys of a "
        "SoC file: type, unit, range and meaning; llm-keys: of a model file\n  kernels     times "
        "of one layer's kernels on each device; takes --soc, --llm, --set",
    COMMAND_TAKES(OPTION_CHILD(option_output_table, output),
                  OPTION_CHILD(config_option_table, config)),
    .operands = {"KIND", 1, 2, offsetof(OPTIONS, words)},
    .run = run,
};
