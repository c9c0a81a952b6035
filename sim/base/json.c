#include "sim/base/json.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/input.h"
#include "sim/base/output.h"

/* A configuration file is small; a larger one is a mistake (a trace, a log). */
#define MAX_FILE_BYTES ((size_t)8 << 20)

static unsigned long line_of(const char *text, const char *at)
{
    unsigned long line = 1;
    for (; text < at && *text != '\0'; text++) {
        line += *text == '\n';
    }
    return line;
}

static void path_join(char *out, size_t size, const char *path, const char *key)
{
    int n = snprintf(out, size, "%s%s%s", path, path[0] == '\0' ? "" : ".", key);
    if (n < 0 || (size_t)n >= size) {
        out[size - 1] = '\0'; /* a message may end early; nothing else depends on it */
    }
}

/* Duplicate keys and non-finite numbers, anywhere in the tree below `path`. */
static void check_tree(const cJSON *node, const char *path, const char *file, struct err *e)
{
    int index = 0;
    for (const cJSON *c = node->child; c != NULL; c = c->next, index++) {
        char at[192];
        if (c->string != NULL) {
            path_join(at, sizeof at, path, c->string);
        } else {
            (void)snprintf(at, sizeof at, "%.160s[%d]", path, index);
        }
        if (cJSON_IsNumber(c) && !isfinite(c->valuedouble)) {
            err_add(e, "%s: %s: not a finite number", file, at);
        }
        for (const cJSON *d = c->next; d != NULL && c->string != NULL; d = d->next) {
            if (d->string != NULL && strcmp(c->string, d->string) == 0) {
                err_add(e, "%s: %s: stands twice in one object", file, at);
            }
        }
        check_tree(c, at, file, e);
    }
}

cJSON *json_read_file(const char *path, struct err *e)
{
    char *text = input_text(path, MAX_FILE_BYTES, e);
    if (text == NULL) {
        return NULL;
    }
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithOpts(text, &end, 1);
    if (root == NULL) {
        err_add(e, "%s:%lu: malformed JSON", path, line_of(text, end == NULL ? text : end));
    } else {
        size_t before = e->n;
        check_tree(root, "", path, e);
        if (e->n != before) {
            cJSON_Delete(root);
            root = NULL;
        }
    }
    free(text);
    return root;
}

struct json_obj json_root(const cJSON *root, const char *file, struct err *e)
{
    struct json_obj o = {.node = root, .file = file, .err = e};
    if (!cJSON_IsObject(root)) {
        err_add(e, "%s: must be an object {...}", file);
        o.node = NULL;
    }
    return o;
}

/* The child of that name, marked as asked for; NULL with an error when it is missing. */
static const cJSON *get(struct json_obj *o, const char *key, const char *form)
{
    if (o->node == NULL) {
        return NULL;
    }
    uint64_t bit = 1;
    for (const cJSON *c = o->node->child; c != NULL; c = c->next, bit <<= 1) {
        if (c->string != NULL && strcmp(c->string, key) == 0) {
            o->seen |= bit;
            return c;
        }
    }
    char path[256];
    path_join(path, sizeof path, o->path, key);
    err_add(o->err, "%s: %s: missing (%s)", o->file, path, form);
    return NULL;
}

static void complain(struct json_obj *o, const char *key, const char *form)
{
    char path[256];
    path_join(path, sizeof path, o->path, key);
    err_add(o->err, "%s: %s: must be %s", o->file, path, form);
}

static void number_form(char *out, size_t size, const char *what, double min, double max)
{
    if (max >= DBL_MAX) {
        (void)snprintf(out, size, "%s >= %g", what, min);
    } else {
        (void)snprintf(out, size, "%s from %g to %g", what, min, max);
    }
}

double json_get_number(struct json_obj *o, const char *key, double min, double max)
{
    char form[96];
    number_form(form, sizeof form, "a number", min, max);
    const cJSON *c = get(o, key, form);
    if (c == NULL) {
        return min;
    }
    if (!cJSON_IsNumber(c) || c->valuedouble < min || c->valuedouble > max) {
        complain(o, key, form);
        return min;
    }
    return c->valuedouble;
}

uint32_t json_get_u32(struct json_obj *o, const char *key, uint32_t min, uint32_t max)
{
    char form[96];
    number_form(form, sizeof form, "a whole number", min, max);
    const cJSON *c = get(o, key, form);
    if (c == NULL) {
        return min;
    }
    if (!cJSON_IsNumber(c) || c->valuedouble < min || c->valuedouble > max ||
        c->valuedouble != floor(c->valuedouble)) {
        complain(o, key, form);
        return min;
    }
    return (uint32_t)c->valuedouble;
}

bool json_get_bool(struct json_obj *o, const char *key)
{
    const cJSON *c = get(o, key, "true or false");
    if (c != NULL && !cJSON_IsBool(c)) {
        complain(o, key, "true or false");
    }
    return c != NULL && cJSON_IsTrue(c);
}

const char *json_get_string(struct json_obj *o, const char *key)
{
    const cJSON *c = get(o, key, "text");
    if (c == NULL) {
        return "";
    }
    if (!cJSON_IsString(c)) {
        complain(o, key, "text");
        return "";
    }
    return c->valuestring;
}

int json_get_choice(struct json_obj *o, const char *key, const char *const *choices)
{
    char form[256] = "one of";
    for (int i = 0; choices[i] != NULL; i++) {
        size_t n = strlen(form);
        (void)snprintf(form + n, sizeof form - n, "%s %s", i == 0 ? "" : ",", choices[i]);
    }
    const cJSON *c = get(o, key, form);
    if (c == NULL) {
        return 0;
    }
    for (int i = 0; cJSON_IsString(c) && choices[i] != NULL; i++) {
        if (strcmp(choices[i], c->valuestring) == 0) {
            return i;
        }
    }
    complain(o, key, form);
    return 0;
}

static const char *const quantity_kinds[] = {"measured", "fitted", "assumed", NULL};

struct quantity json_get_quantity(struct json_obj *o, const char *key, const char *unit, double min,
                                  double max)
{
    struct quantity q = {.value = min, .low = min, .high = min};
    struct json_obj sub = json_get_object(o, key);
    if (sub.node == NULL) {
        return q;
    }
    size_t before = o->err->n;
    q.value = json_get_number(&sub, "value", min, max);
    q.low = json_has(&sub, "low") ? json_get_number(&sub, "low", min, max) : q.value;
    q.high = json_has(&sub, "high") ? json_get_number(&sub, "high", min, max) : q.value;
    size_t before_unit = o->err->n;
    const char *got = json_get_string(&sub, "unit");
    if (o->err->n == before_unit && strcmp(got, unit) != 0) {
        char form[64];
        (void)snprintf(form, sizeof form, "\"%s\", not \"%.20s\"", unit, got);
        complain(&sub, "unit", form);
    }
    q.kind = (enum quantity_kind)json_get_choice(&sub, "kind", quantity_kinds);
    const char *source = json_get_string(&sub, "source");
    if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(sub.node, "source")) && source[0] == '\0') {
        complain(&sub, "source", "text that says where the number comes from");
    }
    if (o->err->n == before && (q.low > q.value || q.high < q.value)) {
        complain(o, key, "a range: low <= value <= high");
    }
    json_done(&sub);
    q.present = o->err->n == before;
    return q;
}

void json_put_quantity(cJSON *to, const char *key, struct quantity q, const char *unit,
                       const char *source)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "value", q.value);
    cJSON_AddStringToObject(o, "unit", unit);
    cJSON_AddNumberToObject(o, "low", fmin(q.low, q.value));
    cJSON_AddNumberToObject(o, "high", fmax(q.high, q.value));
    cJSON_AddStringToObject(o, "source", source);
    cJSON_AddStringToObject(o, "kind", quantity_kinds[q.kind]);
    if (cJSON_HasObjectItem(to, key)) {
        cJSON_ReplaceItemInObjectCaseSensitive(to, key, o);
    } else {
        cJSON_AddItemToObject(to, key, o);
    }
}

struct json_obj json_get_object(struct json_obj *o, const char *key)
{
    struct json_obj sub = {.file = o->file, .err = o->err};
    path_join(sub.path, sizeof sub.path, o->path, key);
    const cJSON *c = get(o, key, "an object {...}");
    if (c != NULL && !cJSON_IsObject(c)) {
        complain(o, key, "an object {...}");
        c = NULL;
    }
    sub.node = c;
    return sub;
}

int json_get_array_size(struct json_obj *o, const char *key, int min, int max)
{
    char form[96];
    number_form(form, sizeof form, "an array of length", min, max);
    const cJSON *c = get(o, key, form);
    if (c == NULL) {
        return 0;
    }
    int n = cJSON_IsArray(c) ? cJSON_GetArraySize(c) : -1;
    if (n < min || n > max) {
        complain(o, key, form);
        return 0;
    }
    return n;
}

struct json_obj json_array_object(struct json_obj *o, const char *key, int index)
{
    struct json_obj sub = {.file = o->file, .err = o->err};
    char element[64];
    (void)snprintf(element, sizeof element, "%.48s[%d]", key, index);
    path_join(sub.path, sizeof sub.path, o->path, element);
    const cJSON *c = o->node == NULL ? NULL : cJSON_GetObjectItemCaseSensitive(o->node, key);
    c = cJSON_GetArrayItem(c, index);
    if (c != NULL && !cJSON_IsObject(c)) {
        complain(o, element, "an object {...}");
        c = NULL;
    }
    sub.node = c;
    return sub;
}

bool json_has(const struct json_obj *o, const char *key)
{
    return o->node != NULL && cJSON_GetObjectItemCaseSensitive(o->node, key) != NULL;
}

void json_done(struct json_obj *o)
{
    if (o->node == NULL) {
        return;
    }
    uint64_t bit = 1;
    int index = 0;
    for (const cJSON *c = o->node->child; c != NULL; c = c->next, bit <<= 1, index++) {
        if (index >= 64) {
            err_add(o->err, "%s: %s: more than 64 keys in one object", o->file, o->path);
            return;
        }
        if ((o->seen & bit) == 0 && c->string != NULL) {
            char path[256];
            path_join(path, sizeof path, o->path, c->string);
            err_add(o->err, "%s: %s: unknown key", o->file, path);
        }
    }
}

/* ---- overrides ---- */

void json_label(const cJSON *c, char *out, size_t size)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(c, "name");
    const cJSON *runtime = cJSON_GetObjectItemCaseSensitive(c, "runtime");
    const cJSON *bits = cJSON_GetObjectItemCaseSensitive(c, "weight_bits");
    out[0] = '\0';
    if (cJSON_IsString(name)) {
        (void)snprintf(out, size, "%s", name->valuestring);
    } else if (cJSON_IsString(runtime) && cJSON_IsNumber(bits)) {
        (void)snprintf(out, size, "%s/%g", runtime->valuestring, bits->valuedouble);
    }
}

/* The child that the path begins with; *len: how much of the path names it. Labels may hold dots,
 * so they are tried whole. */
static cJSON *step(cJSON *node, const char *path, size_t *len)
{
    char key[128];
    *len = strcspn(path, ".");
    if (*len >= sizeof key) {
        return NULL;
    }
    memcpy(key, path, *len);
    key[*len] = '\0';
    if (cJSON_IsObject(node)) {
        return cJSON_GetObjectItemCaseSensitive(node, key);
    }
    if (!cJSON_IsArray(node)) {
        return NULL;
    }
    char *end = NULL;
    long i = strtol(key, &end, 10);
    if (end != key && *end == '\0' && i >= 0 && i < cJSON_GetArraySize(node)) {
        return cJSON_GetArrayItem(node, (int)i);
    }
    for (cJSON *c = node->child; c != NULL; c = c->next) {
        char label[128];
        json_label(c, label, sizeof label);
        size_t n = strlen(label);
        if (n > 0 && strncmp(path, label, n) == 0 && (path[n] == '.' || path[n] == '\0')) {
            *len = n;
            return c;
        }
    }
    return NULL;
}

/* A quantity takes the number as its value; its range grows to hold it; it is now an assumption. */
static cJSON *quantity_value(cJSON *node, double v)
{
    cJSON *value = cJSON_GetObjectItemCaseSensitive(node, "value");
    if (!cJSON_IsNumber(value) || !cJSON_HasObjectItem(node, "unit")) {
        return NULL;
    }
    cJSON *low = cJSON_GetObjectItemCaseSensitive(node, "low");
    cJSON *high = cJSON_GetObjectItemCaseSensitive(node, "high");
    if (cJSON_IsNumber(low) && v < low->valuedouble) {
        cJSON_SetNumberValue(low, v);
    }
    if (cJSON_IsNumber(high) && v > high->valuedouble) {
        cJSON_SetNumberValue(high, v);
    }
    cJSON *kind = cJSON_GetObjectItemCaseSensitive(node, "kind");
    if (cJSON_IsString(kind)) {
        cJSON_SetValuestring(kind, "assumed");
    }
    return value;
}

cJSON *json_find_path(cJSON *root, const char *path, const char **bad)
{
    cJSON *node = root;
    for (const char *p = path; *p != '\0';) {
        size_t len = 0;
        node = step(node, p, &len);
        *bad = p;
        if (node == NULL) {
            return NULL;
        }
        p += len;
        if (*p == '.' && *++p == '\0') {
            *bad = p;
            return NULL;
        }
    }
    return node;
}

int json_set_path(cJSON *root, const char *path, const char *text, struct err *e)
{
    const char *bad = NULL;
    cJSON *node = json_find_path(root, path, &bad);
    if (node == NULL && *bad == '\0') {
        return err_add(e, "--set %s: ends in a dot", path);
    }
    if (node == NULL) {
        return err_add(e, "--set %s: there is no \"%.*s\" at that place", path,
                       (int)strcspn(bad, "."), bad);
    }
    char *end = NULL;
    double v = strtod(text, &end);
    bool is_number = end != text && *end == '\0' && isfinite(v);
    bool is_bool = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    if (cJSON_IsObject(node) && is_number) {
        node = quantity_value(node, v);
    }
    if (cJSON_IsNumber(node) && is_number) {
        cJSON_SetNumberValue(node, v);
        return 0;
    }
    if (cJSON_IsBool(node) && is_bool) {
        node->type = strcmp(text, "true") == 0 ? cJSON_True : cJSON_False;
        return 0;
    }
    if (cJSON_IsString(node)) {
        cJSON *copy = cJSON_CreateString(text);
        free(node->valuestring);
        node->valuestring = copy->valuestring;
        copy->valuestring = NULL;
        cJSON_Delete(copy);
        return 0;
    }
    return err_add(e, "--set %s: cannot take \"%s\" (wrong type)", path, text);
}

char *json_text(const cJSON *tree, bool spaced)
{
    char *text = tree == NULL ? cJSON_malloc(1)
                 : spaced     ? cJSON_Print(tree)
                              : cJSON_PrintUnformatted(tree);
    SIM_REQUIRE(text != NULL, "a tree that can be printed");
    if (tree == NULL) {
        text[0] = '\0';
    }
    return text;
}

static void put(const cJSON *tree, FILE *out)
{
    char *text = json_text(tree, true);
    (void)fprintf(out, "%s\n", text);
    cJSON_free(text);
}

void json_print(cJSON *owned, FILE *out)
{
    put(owned, out);
    cJSON_Delete(owned);
}

int json_write_file(const char *path, const cJSON *tree, struct err *e)
{
    struct output *out = output_open(path, e);
    if (out == NULL) {
        return -EINVAL;
    }
    put(tree, output_stream(out));
    return output_close(out, true, e);
}
