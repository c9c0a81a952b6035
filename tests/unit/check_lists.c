/* `xpusim list` must show every row and cell of its table. Rows of files are compared with made-up
 * ones, and those of kernels with the prices of equal shapes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/config_sim.h"
#include "experiments/run/price.h"
#include "hwmodels/soc.h"
#include "policies/params.h"
#include "policies/registry.h"
#include "sim/base/json.h"
#include "sim/base/json_fields.h"
#include "sim/metrics/metric_table.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

static cJSON *listed(const char *kind, const char *name)
{
    struct said s = name != NULL ? COMMANDED(cmd_list, "--json", kind, name)
                                 : COMMANDED(cmd_list, "--json", kind);
    said_is(&s, EXIT_OK, NULL, "");
    cJSON *tree = cJSON_Parse(s.out);
    ck_assert_msg(tree != NULL, "%s", s.out);
    said_fini(&s);
    return tree;
}

static void same(const cJSON *is, const cJSON *want)
{
    OWNED char *a = cJSON_PrintUnformatted(is);
    OWNED char *b = cJSON_PrintUnformatted(want);
    ck_assert_ptr_nonnull(a);
    ck_assert_str_eq(a, b);
}

/* Returns the text as people see it: blanks once, and none at the ends of lines. */
static char *shown(const char *kind, const char *name)
{
    SCOPED(said_fini)
    struct said s =
        name != NULL ? COMMANDED(cmd_list, kind, name) : COMMANDED(cmd_list, "--", kind);
    said_is(&s, EXIT_OK, NULL, "");
    return squeezed(s.out);
}

/* ---- settings ---- */

static char *joined(const char *const *names, const char *between)
{
    struct text t = {0};
    for (; *names != NULL; names++) {
        text_item(&t, between, *names);
    }
    return text_end(&t);
}

enum { MOST_SETTINGS = 256 };
static struct {
    char path[96];
    const struct json_field *f;
} settings[MOST_SETTINGS];
static size_t n_settings;

static void add_setting(void *to, const char *path, const struct json_field *f)
{
    (void)to;
    if (f->kind != JSON_FIELD_OBJECT) {
        ck_assert_uint_lt(n_settings, MOST_SETTINGS);
        (void)snprintf(settings[n_settings].path, sizeof settings[0].path, "%s", path);
        settings[n_settings++].f = f;
    }
}

static void find_settings(void)
{
    n_settings = 0;
    json_fields_each(&config_sim_fields, add_setting, NULL);
    ck_assert_uint_gt(n_settings, 40);
}

START_TEST(every_setting_is_listed)
{
    find_settings();
    SCOPED(json_drop) cJSON *want = cJSON_CreateArray();
    uint32_t of_kind[JSON_FIELD_ARRAY + 1] = {0};
    for (size_t i = 0; i < n_settings; i++) {
        const struct json_field *v = settings[i].f;
        cJSON *row = cJSON_CreateObject();
        OWNED char *path = xformat("sim.%s", settings[i].path);
        OWNED char *usual = NULL;
        OWNED char *range = NULL;
        of_kind[v->kind]++;
        if (v->kind == JSON_FIELD_NUMBER || v->kind == JSON_FIELD_COUNT) {
            usual = xformat("%.10g", v->otherwise);
            range = xformat("%g..%g", v->min, v->max);
        } else if (v->kind == JSON_FIELD_BOOL) {
            usual = xstrdup(v->otherwise == 0.0 ? "false" : "true");
            range = xstrdup("true|false");
        } else if (v->kind == JSON_FIELD_WORD) {
            usual = xstrdup(v->text);
            range = xstrdup("");
        } else {
            ck_assert_int_eq(v->kind, JSON_FIELD_CHOICE);
            usual = xstrdup(v->words[(int)v->otherwise]);
            range = joined(v->words, "|");
        }
        cJSON_AddStringToObject(row, "path", path);
        cJSON_AddStringToObject(row, "default", usual);
        cJSON_AddStringToObject(row, "range", range);
        cJSON_AddStringToObject(row, "unit", v->unit);
        cJSON_AddStringToObject(row, "help", v->about);
        cJSON_AddItemToArray(want, row);
    }
    static const int kinds[] = {JSON_FIELD_NUMBER, JSON_FIELD_COUNT, JSON_FIELD_BOOL,
                                JSON_FIELD_WORD, JSON_FIELD_CHOICE};
    for (int k = 0; k < 5; k++) {
        ck_assert_uint_gt(of_kind[kinds[k]], 1);
    }
    SCOPED(json_drop) cJSON *is = listed("setting", NULL);
    same(is, want);
}
END_TEST

/* A tree of defaults has every setting once, at its path, and reads back as the table says. */
START_TEST(defaults_are_a_tree)
{
    find_settings();
    SCOPED(json_drop) cJSON *tree = config_sim_to_json();
    struct config_sim sim;
    struct err e = ERR_INIT;
    memset(&sim, 0xa5, sizeof sim);
    config_sim_parse(json_root(tree, "defaults", &e), &sim);
    ck_assert_msg(e.n == 0, "%s", e.n > 0 ? e.lines[0] : "");
    for (size_t i = 0; i < n_settings; i++) {
        const struct json_field *v = settings[i].f;
        const char *at = (const char *)&sim + v->offset;
        const cJSON *c = tree;
        for (const char *p = settings[i].path; p != NULL;) {
            OWNED char *key = xformat("%.*s", (int)strcspn(p, "."), p);
            c = cJSON_GetObjectItemCaseSensitive(c, key);
            ck_assert_msg(c != NULL, "%s", settings[i].path);
            p = strchr(p, '.') != NULL ? strchr(p, '.') + 1 : NULL;
        }
        if (v->kind == JSON_FIELD_NUMBER) {
            ck_assert(c->valuedouble == v->otherwise && *(const double *)at == v->otherwise);
        } else if (v->kind == JSON_FIELD_COUNT) {
            ck_assert(c->valuedouble == v->otherwise && *(const uint32_t *)at == v->otherwise);
        } else if (v->kind == JSON_FIELD_BOOL) {
            ck_assert(cJSON_IsTrue(c) == (v->otherwise != 0.0) &&
                      *(const bool *)at == (v->otherwise != 0.0));
        } else if (v->kind == JSON_FIELD_WORD) {
            ck_assert_str_eq(c->valuestring, v->text);
            ck_assert_str_eq(*(const char *const *)at, v->text);
        } else {
            ck_assert_str_eq(c->valuestring, v->words[(int)v->otherwise]);
            ck_assert_int_eq(*(const int *)at, (int)v->otherwise);
        }
    }
}
END_TEST

/* ---- policies ---- */

/* Returns its value in an alias's list, with that list's spelling, else the policy's own. */
static char *usual_of(const struct policy_param *q, const struct policy_alias *alias)
{
    OWNED char *all = xformat(",%s", alias != NULL ? alias->params : "");
    OWNED char *key = xformat(",%s=", q->name);
    const char *at = strstr(all, key);
    if (at != NULL) {
        return xformat("%.*s", (int)strcspn(at + strlen(key), ","), at + strlen(key));
    }
    return q->type == PARAM_CHOICE ? xstrdup(q->choices[(int)q->def])
           : q->type == PARAM_BOOL ? xstrdup(q->def != 0.0 ? "true" : "false")
                                   : xformat("%.10g", q->def);
}

/* Every shipped policy needs an NPU, perhaps with another device, or works on one: only llama-cpp
 * takes the CPU by default. */
static const char *devices_of(const struct policy_ops *p)
{
    bool npu = (p->needs & CAP_NPU) != 0;
    return npu && (p->needs & CAP_IGPU) != 0                      ? "npu+igpu"
           : npu && (p->needs & CAP_DEVICE(DEVICE_KIND_CPU)) != 0 ? "npu+cpu"
           : npu                                                  ? "npu"
           : strcmp(p->name, "llama-cpp") == 0                    ? "cpu"
                                                                  : "one";
}

static cJSON *policy_of(const struct policy_ops *p, const struct policy_alias *alias)
{
    static const char *const types[] = {"number", "integer", "boolean", "choice"};
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", alias != NULL ? alias->name : p->name);
    cJSON_AddStringToObject(o, "summary", alias != NULL ? alias->summary : p->summary);
    cJSON_AddStringToObject(o, "devices", devices_of(p));
    cJSON_AddBoolToObject(o, "oracle", (p->flags & POLICY_F_ORACLE) != 0);
    cJSON *params = cJSON_AddArrayToObject(o, "params");
    for (uint32_t i = 0; p->params != NULL && p->params[i].name != NULL; i++) {
        const struct policy_param *q = &p->params[i];
        cJSON *row = cJSON_CreateObject();
        OWNED char *usual = usual_of(q, alias);
        cJSON_AddStringToObject(row, "name", q->name);
        cJSON_AddStringToObject(row, "type", types[q->type]);
        cJSON_AddStringToObject(row, "default", usual);
        if (q->type == PARAM_NUMBER || q->type == PARAM_INT) {
            cJSON_AddNumberToObject(row, "min", q->min);
            cJSON_AddNumberToObject(row, "max", q->max);
        } else if (q->type == PARAM_CHOICE) {
            int n = 0;
            while (q->choices[n] != NULL) {
                n++;
            }
            cJSON_AddItemToObject(row, "choices", cJSON_CreateStringArray(q->choices, n));
        }
        cJSON_AddStringToObject(row, "help", q->help);
        cJSON_AddItemToArray(params, row);
    }
    if (p->ablations != NULL) {
        cJSON *without = cJSON_AddArrayToObject(o, "ablations");
        for (uint32_t i = 0; p->ablations[i] != NULL; i++) {
            cJSON_AddItemToArray(without, cJSON_CreateString(p->ablations[i]));
        }
    }
    return o;
}

/* Makes the text of a policy for people. It has a line of the policy, of every parameter, and of
 * every choice that changes others. It has one of the mechanisms that can be switched off. */
static void policy_shows(const struct policy_ops *p, const struct policy_alias *alias,
                         const char *before, const char *text)
{
    SCOPED(text_fini) struct text t = {0};
    text_format(&t, "%s%s: %s\n", before, p->name, p->summary);
    for (uint32_t i = 0; p->params != NULL && p->params[i].name != NULL; i++) {
        const struct policy_param *q = &p->params[i];
        OWNED char *range = q->type == PARAM_BOOL     ? xstrdup("true|false")
                            : q->type == PARAM_CHOICE ? joined(q->choices, "|")
                                                      : xformat("%g..%g", q->min, q->max);
        OWNED char *usual = usual_of(q, alias);
        text_format(&t, "%s %s %s %s\n", q->name, usual, range, q->help);
    }
    for (uint32_t k = 0; p->presets != NULL && p->params[0].choices[k] != NULL; k++) {
        text_format(&t, "%s=%s:%s%s\n", p->params[0].name, p->params[0].choices[k],
                    p->presets[k][0] != '\0' ? " " : "", p->presets[k]);
    }
    if (p->ablations != NULL) {
        OWNED char *all = joined(p->ablations, "; ");
        text_format(&t, "without a mechanism (`xpusim ablate %s`): %s\n",
                    alias != NULL ? alias->name : p->name, all);
    }
    ck_assert_str_eq(text, text_end(&t));
}

START_TEST(every_policy_is_listed)
{
    size_t n = 0;
    const struct policy_ops *const *all = policy_list(&n);
    SCOPED(json_drop) cJSON *want = cJSON_CreateArray();
    SCOPED(text_fini) struct text names = {0};
    uint32_t presets = 0;
    for (size_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(want, policy_of(all[i], NULL));
        text_format(&names, "%s %s %s\n", all[i]->name, devices_of(all[i]), all[i]->summary);
        SCOPED(json_drop) cJSON *one = listed("policy", all[i]->name);
        same(one, cJSON_GetArrayItem(want, (int)i));
        OWNED char *text = shown("policy", all[i]->name);
        policy_shows(all[i], NULL, "", text);
        presets += all[i]->presets != NULL;
    }
    ck_assert_uint_gt(presets, 0);
    SCOPED(json_drop) cJSON *is = listed("policy", NULL);
    same(is, want);
    for (const struct policy_alias *a = policy_alias_find(NULL); a->name != NULL; a++) {
        text_format(&names, "%s %s = %s:%s, %s\n", a->name, devices_of(policy_find(a->policy)),
                    a->policy, a->params, a->summary);
        OWNED char *text = shown("policy", a->name);
        OWNED char *before =
            xformat("%s: %s; it is %s:%s\n", a->name, a->summary, a->policy, a->params);
        policy_shows(policy_find(a->policy), a, before, text);
        SCOPED(json_drop) cJSON *one = listed("policy", a->name);
        SCOPED(json_drop) cJSON *own = policy_of(policy_find(a->policy), a);
        same(one, own);
    }
    OWNED char *text = shown("policy", NULL);
    ck_assert_str_eq(text, text_end(&names));
}
END_TEST

/* ---- metrics, names, keys ---- */

START_TEST(every_metric_is_listed)
{
    size_t n = 0;
    const struct metric_descriptor *v = metric_table(&n);
    SCOPED(json_drop) cJSON *want = cJSON_CreateArray();
    SCOPED(text_fini) struct text lines = {0};
    for (size_t i = 0; i < n; i++) {
        static const char *const better[] = {[METRIC_BETTER_LOWER] = "lower",
                                             [METRIC_BETTER_HIGHER] = "higher",
                                             [METRIC_BETTER_NEITHER] = "neither"};
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", v[i].part);
        cJSON_AddStringToObject(row, "title", v[i].title);
        cJSON_AddStringToObject(row, "unit", v[i].unit);
        cJSON_AddStringToObject(row, "better", better[v[i].better]);
        cJSON_AddStringToObject(row, "definition", v[i].definition);
        cJSON_AddItemToArray(want, row);
        bool way = v[i].better != METRIC_BETTER_NEITHER;
        text_format(&lines, "%s %s%s%s%s%s\n", v[i].part, v[i].unit,
                    v[i].unit[0] != '\0' ? " " : "", way ? better[v[i].better] : "", way ? " " : "",
                    v[i].definition);
    }
    SCOPED(json_drop) cJSON *is = listed("metric", NULL);
    same(is, want);
    OWNED char *text = shown("metric", NULL);
    const char *rows = strstr(text, "\n\n");
    ck_assert_ptr_nonnull(rows);
    ck_assert_str_eq(rows + 2, text_end(&lines));
}
END_TEST

static void names_are(const char *kind, const char *const *names)
{
    SCOPED(json_drop) cJSON *want = cJSON_CreateArray();
    for (; *names != NULL; names++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", *names);
        cJSON_AddStringToObject(row, "description", "");
        cJSON_AddItemToArray(want, row);
    }
    ck_assert_int_gt(cJSON_GetArraySize(want), 1);
    SCOPED(json_drop) cJSON *is = listed(kind, NULL);
    same(is, want);
}

static void put_key(void *to, const char *path, const struct json_field *k)
{
    cJSON *row = cJSON_CreateObject();
    OWNED char *range = k->choices != NULL ? joined(k->choices(), "|")
                        : k->max > 0.0     ? xformat("%.10g..%.10g", k->min, k->max)
                                           : xstrdup("");
    cJSON_AddStringToObject(row, "key", path);
    cJSON_AddStringToObject(row, "type", json_field_kind_names[k->kind]);
    cJSON_AddStringToObject(row, "unit", k->unit != NULL ? k->unit : "");
    cJSON_AddStringToObject(row, "range", range);
    cJSON_AddBoolToObject(row, "required", !k->optional);
    cJSON_AddBoolToObject(row, "checked", k->below != NULL);
    cJSON_AddStringToObject(row, "about", k->about);
    cJSON_AddItemToArray(to, row);
}

START_TEST(names_and_keys_are_listed)
{
    names_are("contention", contention_names());
    names_are("hwmodel", hwmodel_names());
    static const char *const kinds[] = {"soc-keys", "llm-keys"};
    for (int i = 0; i < 2; i++) {
        SCOPED(json_drop) cJSON *want = cJSON_CreateArray();
        json_fields_each(i == 0 ? &soc_fields : &llm_fields, put_key, want);
        ck_assert_int_gt(cJSON_GetArraySize(want), 10);
        SCOPED(json_drop) cJSON *is = listed(kinds[i], NULL);
        same(is, want);
    }
}
END_TEST

/* ---- what is refused ---- */

static const char *const kinds[] = {"policy",   "soc",        "llm",      "dataset",
                                    "workload", "contention", "hwmodel",  "metric",
                                    "setting",  "soc-keys",   "llm-keys", "kernels"};

START_TEST(other_kinds_are_refused)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        OWNED char *slip = xformat("%sx", kinds[i]);
        SCOPED(said_fini) struct said s = COMMANDED(cmd_list, slip);
        OWNED char *why = xformat(
            "list %s: must be one of policy, soc, llm, dataset, workload, contention, hwmodel, "
            "metric, setting, soc-keys, llm-keys, kernels; did you mean %s?",
            slip, kinds[i]);
        said_refused(&s, why);
        if (i < 5) {
            SCOPED(said_fini) struct said none = COMMANDED(cmd_list, kinds[i], "no-such-name");
            ck_assert_int_eq(none.status, EXIT_BAD_INPUT);
            ck_assert_ptr_nonnull(strstr(none.err, "no-such-name"));
        } else {
            SCOPED(said_fini) struct said one = COMMANDED(cmd_list, kinds[i], "edf");
            said_refused(
                &one,
                "edf: neither an option nor the value of one; `xpusim list --help` shows them");
        }
    }
    SCOPED(said_fini) struct said p = COMMANDED(cmd_list, "policy", "no-such-name");
    said_refused(&p, "no policy is called no-such-name; `xpusim list policy` shows them");
    SCOPED(said_fini) struct said d = COMMANDED(cmd_list, "dataset", "no-such-name");
    said_refused(&d, "no data set is called no-such-name; `xpusim list dataset` shows them");
    SCOPED(said_fini) struct said w = COMMANDED(cmd_list, "workload", "no-such-name");
    said_refused(&w, "no workload file is called no-such-name; `xpusim list workload` shows them");
}
END_TEST

/* ---- numbers of a file ---- */

/* A shipped machine has two sources of 60 and 61 characters. The first is shown whole, and 57 of
 * the second. All rows of files are in tables.sh. */
START_TEST(numbers_of_a_file_are_listed)
{
#define TEN "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN
    SCOPED(err_fini) struct err e = ERR_INIT;
    SCOPED(json_drop) cJSON *root = json_read_file(soc_path("rk3588"), &e);
    ck_assert_ptr_nonnull(root);
    cJSON *peak = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "ddr"), "peak");
    cJSON *idle = cJSON_GetObjectItem(root, "idle_power");
    (void)cJSON_ReplaceItemInObject(peak, "source", cJSON_CreateString(SIXTY));
    (void)cJSON_ReplaceItemInObject(idle, "source", cJSON_CreateString(SIXTY "x"));
    (void)cJSON_ReplaceItemInObject(root, "name", cJSON_CreateString("n"));
    cJSON_DeleteItemFromObject(root, "note");
    (void)cJSON_AddStringToObject(root, "note", "a note");
    OWNED char *file = json_text(root, false);
    folder_put("m.json", file);
    OWNED char *text = shown("soc", "m.json");
    ck_assert_ptr_eq(strstr(text, "n: a note\n\n"), text);
    ck_assert_ptr_nonnull(strstr(text, "\nnumber value low high kind source\n"));
    ck_assert_ptr_nonnull(strstr(text, " " SIXTY "\n"));
    ck_assert_ptr_nonnull(strstr(text, " " TEN TEN TEN TEN TEN "0123456...\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nsoc.ddr.peak "));
    ck_assert_ptr_nonnull(strstr(text, "\nsoc.devices.npu.inflight_depth "));
    SCOPED(json_drop) cJSON *rows = listed("soc", "m.json");
    ck_assert_int_gt(cJSON_GetArraySize(rows), 40);
}
END_TEST

/* ---- machines and models ---- */

START_TEST(machines_and_models_are_listed)
{
    SCOPED(json_drop) cJSON *socs = listed("soc", NULL);
    ck_assert_int_gt(cJSON_GetArraySize(socs), 5);
    const cJSON *row;
    cJSON_ArrayForEach (row, socs) {
        const char *name = cJSON_GetObjectItem(row, "name")->valuestring;
        struct err e = ERR_INIT;
        const char *path = soc_path(name);
        SCOPED(json_drop) cJSON *root = json_read_file(path, &e);
        OWNED struct soc *soc = xcalloc(1, sizeof *soc);
        ck_assert_int_eq(soc_parse(root, path, soc, &e), 0);
        SCOPED(text_fini) struct text devices = {0};
        for (uint32_t d = 0; d < soc->machine.n_devices; d++) {
            text_format(&devices, "%s%s %.3g", d > 0 ? ", " : "", soc->machine.devices[d].name,
                        soc->devices[d].peak_flop_per_s / 1e12);
        }
        ck_assert_str_eq(cJSON_GetObjectItem(row, "devices")->valuestring, text_end(&devices));
        ck_assert_double_eq_tol(cJSON_GetObjectItem(row, "ddr_gb_per_s")->valuedouble,
                                soc->machine.ddr_peak_bytes_per_s * 1e-9, 1e-9);
        ck_assert_double_eq_tol(cJSON_GetObjectItem(row, "memory_gb")->valuedouble,
                                (double)soc->machine.memory_bytes * 1e-9, 1e-9);
        ck_assert_str_eq(cJSON_GetObjectItem(row, "description")->valuestring, soc->note);
    }
    SCOPED(json_drop) cJSON *llms = listed("llm", NULL);
    ck_assert_int_gt(cJSON_GetArraySize(llms), 5);
    cJSON_ArrayForEach (row, llms) {
        struct err e = ERR_INIT;
        struct llm m;
        const char *path = llm_path(cJSON_GetObjectItem(row, "name")->valuestring);
        SCOPED(json_drop) cJSON *root = json_read_file(path, &e);
        ck_assert_int_eq(llm_parse(root, path, &m, &e), 0);
        const struct {
            const char *key;
            double want;
        } cells[] = {{"weights_1e9", (m.body_weights + m.head_weights) * 1e-9},
                     {"layers", m.n_layers},
                     {"hidden", m.hidden},
                     {"weight_bits", m.weight_bits},
                     {"weight_gb", m.weight_bytes * 1e-9},
                     {"kv_kb_per_token", m.kv_bytes_per_token * 1e-3}};
        for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
            double is = cJSON_GetObjectItem(row, cells[i].key)->valuedouble;
            ck_assert_double_eq_tol(is, cells[i].want, 1e-9 * cells[i].want);
        }
        ck_assert_str_eq(cJSON_GetObjectItem(row, "description")->valuestring,
                         json_string(root, "source"));
    }
}
END_TEST

/* ---- kernels ---- */

static void cell_is(const cJSON *row, const char *key, double want)
{
    const cJSON *c = cJSON_GetObjectItem(row, key);
    ck_assert_msg(cJSON_IsNumber(c), "%s", key);
    ck_assert_msg(fabs(c->valuedouble - want) <= 1e-12 * fabs(want), "%s: %g, not %g", key,
                  c->valuedouble, want);
}

static void word_is(const cJSON *row, const char *key, const char *want)
{
    ck_assert_str_eq(cJSON_GetObjectItem(row, key)->valuestring, want);
}

/* Each device has four operators of a chunk of 256 rows. It has a whole layer and the head of a
 * token at 1024 (1023 before it), and four operators of eight of them. */
START_TEST(kernels_are_the_prices_of_their_shapes)
{
    struct config_options o = config_options_default();
    struct err e = ERR_INIT;
    SCOPED(config_fini) struct config c;
    ck_assert_int_eq(config_load(&c, &o, &e), 0);
    SCOPED(json_drop) cJSON *tree = listed("kernels", NULL);
    static const enum op_kind ops[] = {OP_QKV,  OP_MHA, OP_FFN, OP_HEAD, OP_LAYER,
                                       OP_HEAD, OP_QKV, OP_MHA, OP_FFN,  OP_HEAD};
    static const char *const names[] = {"QKV",  "MHA", "FFN", "HEAD", "LAYER",
                                        "HEAD", "QKV", "MHA", "FFN",  "HEAD"};
    const cJSON *row = cJSON_GetObjectItem(tree, "kernels")->child;
    for (uint8_t i = 0; i < c.soc.machine.n_devices; i++) {
        const struct device *d = &c.soc.machine.devices[i];
        for (int k = 0; k < 10; k++, row = row->next) {
            struct work_shape w = k < 4   ? price_prefill_shape(&c.llm, 256, 1)
                                  : k < 6 ? price_decode_shape(&c.llm, 1023, 1)
                                          : price_decode_shape(&c.llm, 1023, 8);
            struct price_op p = price_op(&c.truth, i, ops[k], &w);
            word_is(row, "device", d->name);
            word_is(row, "op", names[k]);
            word_is(row, "work",
                    k < 4   ? "prefill 256"
                    : k < 6 ? "decode 1 at 1024"
                            : "decode 8 at 1024");
            cell_is(row, "kernels", p.kernels);
            cell_is(row, "time_s", p.seconds);
            cell_is(row, "bytes_per_s", p.bytes / p.seconds);
            cell_is(row, "flop_per_s", p.flop / p.seconds);
            cell_is(row, "padding_flop_per_s", p.padding_flop / p.seconds);
            cell_is(row, "flop_per_byte", p.flop / p.bytes);
            cell_is(row, "memory_bytes", p.bytes);
            cell_is(row, "watts", k < 4 ? d->prefill_watts : d->decode_watts);
        }
    }
    ck_assert_ptr_null(row);
    /* A prompt is cut into chunks of 256 rows, and its attention is not. Each query sees the keys
     * up to its own, or all of them. */
    static const uint32_t lengths[] = {128, 256, 512, 1024, 2048, 4096};
    row = cJSON_GetObjectItem(tree, "longest")->child;
    for (uint8_t i = 0; i < c.soc.machine.n_devices; i++) {
        for (int k = 0; k < 6; k++, row = row->next) {
            uint32_t n = lengths[k];
            struct work_shape all = price_prefill_shape(&c.llm, n, 1);
            struct work_shape chunk = price_prefill_shape(&c.llm, n > 256 ? 256 : n, 1);
            double ffn = price_op(&c.truth, i, OP_FFN, &chunk).longest_s;
            double qkv = price_op(&c.truth, i, OP_QKV, &chunk).longest_s;
            double mha = price_op(&c.truth, i, OP_MHA, &all).longest_s;
            all.attn_pairs = (uint64_t)n * n;
            double whole = price_op(&c.truth, i, OP_MHA, &all).longest_s;
            double longer = ffn > qkv ? ffn : qkv;
            word_is(row, "device", c.soc.machine.devices[i].name);
            cell_is(row, "prompt_tokens", n);
            cell_is(row, "chunk_ms", 1e3 * longer);
            cell_is(row, "mha_ms", 1e3 * mha);
            cell_is(row, "mha_uncut_ms", 1e3 * whole);
            cell_is(row, "longest_ms", 1e3 * (mha > longer ? mha : longer));
        }
    }
    ck_assert_ptr_null(row);
    row = cJSON_GetObjectItem(tree, "roofs")->child;
    for (uint8_t i = 0; i < c.soc.machine.n_devices; i++, row = row->next) {
        word_is(row, "device", c.soc.machine.devices[i].name);
        word_is(row, "runtime", c.truth.runtime[i]->runtime);
        cell_is(row, "flop_per_s", c.truth.runtime[i]->many.flop_per_s);
        cell_is(row, "bytes_per_s", c.truth.runtime[i]->many.bytes_per_s);
    }
    ck_assert_ptr_null(row);
    row = cJSON_GetObjectItem(tree, "intervals")->child;
    for (uint8_t i = 0; i < c.soc.machine.n_devices; i++) {
        for (int k = 0; k < 2; k++, row = row->next) {
            word_is(row, "device", c.soc.machine.devices[i].name);
            word_is(row, "phase", k == 0 ? "prefill" : "decode");
        }
    }
    ck_assert_ptr_null(row);
}
END_TEST

static const struct suite_row rows[] = {
    CASE("lists", .setup = folder_enter, .teardown = folder_leave, .timeout_s = 60),
    TEST(every_setting_is_listed),
    TEST(defaults_are_a_tree),
    TEST(every_policy_is_listed),
    TEST(every_metric_is_listed),
    TEST(names_and_keys_are_listed),
    TEST(other_kinds_are_refused),
    TEST(numbers_of_a_file_are_listed),
    TEST(machines_and_models_are_listed),
    TEST(kernels_are_the_prices_of_their_shapes),
};
SUITE_MAIN("lists", rows)
