#include "sim/base/json.h"

#include <float.h>

#include "sim/base/input.h"
#include "sim/base/nearest.h"
#include "sim/base/output.h"
#include "sim/base/words.h"

/* Configuration files are small; a larger file is a mistake (a trace, a log). */
#define MAX_FILE_BYTES ((size_t)8 << 20)

static unsigned long line_of(const char *text, const char *at)
{
    unsigned long line = 1;
    for (; text < at && *text != '\0'; text++) {
        line += *text == '\n';
    }
    return line;
}

/* "path.key". The caller frees it. */
static char *path_join(const char *path, const char *key)
{
    struct text t = {0};
    text_string(&t, path);
    text_item(&t, ".", key);
    return text_end(&t);
}

/* Reports duplicate keys and non-finite numbers anywhere in the tree at `path`. */
static void check_tree(const cJSON *node, struct text *path, const char *file, struct err *e)
{
    const size_t above = path->n;
    int index = 0;
    for (const cJSON *c = node->child; c != NULL; c = c->next, index++) {
        path->n = above;
        if (c->string != NULL) {
            text_item(path, ".", c->string);
        } else {
            text_char(path, '[');
            text_u64(path, (uint64_t)index);
            text_char(path, ']');
        }
        if (cJSON_IsNumber(c) && !isfinite(c->valuedouble)) {
            err_add(e, "%s: %s: not a finite number", file, text_end(path));
        }
        for (const cJSON *d = c->next; d != NULL && c->string != NULL; d = d->next) {
            if (d->string != NULL && strcmp(c->string, d->string) == 0) {
                err_add(e, "%s: %s: is given twice in one object", file, text_end(path));
            }
        }
        check_tree(c, path, file, e);
    }
    path->n = above;
}

cJSON *json_read_file(const char *path, struct err *e)
{
    OWNED char *text = input_text(path, MAX_FILE_BYTES, e);
    return text == NULL ? NULL : json_read_text(text, path, e);
}

cJSON *json_read_of(FILE *in, const char *path, struct err *e)
{
    OWNED char *text = input_text_of(in, path, MAX_FILE_BYTES, e);
    return text == NULL ? NULL : json_read_text(text, path, e);
}

/* Whether the text ends within a string, an object or an array, as a truncated file does. */
static bool ends_early(const char *text)
{
    size_t depth = 0;
    bool quoted = false;
    for (; *text != '\0'; text++) {
        quoted = quoted != (*text == '"');
        text += quoted && text[0] == '\\' && text[1] != '\0';
        depth += !quoted && (*text == '{' || *text == '[');
        depth -= !quoted && depth > 0 && (*text == '}' || *text == ']');
    }
    return quoted || depth > 0;
}

cJSON *json_read_text(const char *text, const char *path, struct err *e)
{
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithOpts(text, &end, 1);
    if (root == NULL) {
        end = end == NULL ? text : end;
        bool last = strchr(end, '\n') == NULL;
        err_add(e, "%s:%lu: malformed JSON%s", path, line_of(text, end),
                last && ends_early(text) ? ": it ends too soon" : "");
    } else {
        size_t before = e->n;
        SCOPED(text_fini) struct text at = {0};
        check_tree(root, &at, path, e);
        if (e->n != before) {
            cJSON_Delete(root);
            root = NULL;
        }
    }
    return root;
}

struct json_obj json_root(const cJSON *root, const char *file, struct err *e)
{
    struct json_obj o = {.node = root, .file = file, .path = "", .err = e};
    if (!cJSON_IsObject(root)) {
        err_add(e, "%s: must be an object {...}", file);
        o.node = NULL;
    }
    return o;
}

static void note_asked(struct json_obj *o, const char *key)
{
    if (o->n_asked < JSON_MAX_ASKED) {
        o->asked[o->n_asked++] = key;
    }
}

/* The child of that name, which is marked as read; NULL if there is none. */
static const cJSON *find(struct json_obj *o, const char *key)
{
    uint64_t bit = 1;
    note_asked(o, key);
    for (const cJSON *c = o->node != NULL ? o->node->child : NULL; c != NULL;
         c = c->next, bit <<= 1) {
        if (c->string != NULL && strcmp(c->string, key) == 0) {
            o->seen |= bit;
            return c;
        }
    }
    return NULL;
}

int json_refuse(const struct json_obj *o, const char *key, const char *fmt, ...)
{
    OWNED char *path = key != NULL ? path_join(o->path, key) : xstrdup(o->path);
    va_list args;
    va_start(args, fmt);
    OWNED char *what = xvformat(fmt, args);
    va_end(args);
    return err_add(o->err, "%s: %s: %s", o->file, path, what);
}

/* Adds the error that child c must be `form`, or is missing (c NULL). Adds nothing if the object
 * itself is missing, which was reported before. */
static void refuse(struct json_obj *o, const char *key, const cJSON *c, const char *form)
{
    if (c != NULL) {
        json_refuse(o, key, "must be %s", form);
    } else if (o->node != NULL) {
        json_refuse(o, key, "missing (%s)", form);
    }
}

/* The child, if is(child); otherwise NULL with an error. */
static const cJSON *get_as(struct json_obj *o, const char *key, const char *form,
                           cJSON_bool (*is)(const cJSON *))
{
    const cJSON *c = find(o, key);
    if (c == NULL || !is(c)) {
        refuse(o, key, c, form);
        return NULL;
    }
    return c;
}

static void number_form(char *out, size_t size, const char *what, double min, double max)
{
    if (max >= DBL_MAX) {
        (void)snprintf(out, size, "%s >= %g", what, min);
    } else {
        /* 1048575 must not be printed as 1.04858e+06, which is above it. */
        OWNED char *brief = xformat("%g", max);
        (void)snprintf(out, size, "%s from %g to %.*g", what, min,
                       strtod(brief, NULL) == max ? 6 : 9, max);
    }
}

static double get_number(struct json_obj *o, const char *key, double min, double max, bool whole)
{
    const cJSON *c = find(o, key);
    if (cJSON_IsNumber(c) && c->valuedouble >= min && c->valuedouble <= max &&
        (!whole || c->valuedouble == floor(c->valuedouble))) {
        return c->valuedouble;
    }
    char form[96];
    number_form(form, sizeof form, whole ? "a whole number" : "a number", min, max);
    refuse(o, key, c, form);
    return min;
}

double json_get_number(struct json_obj *o, const char *key, double min, double max)
{
    return get_number(o, key, min, max, false);
}

uint32_t json_get_u32(struct json_obj *o, const char *key, uint32_t min, uint32_t max)
{
    return (uint32_t)get_number(o, key, min, max, true);
}

bool json_get_bool(struct json_obj *o, const char *key)
{
    return cJSON_IsTrue(get_as(o, key, "true or false", cJSON_IsBool));
}

const char *json_get_string(struct json_obj *o, const char *key)
{
    const cJSON *c = get_as(o, key, "text", cJSON_IsString);
    return c != NULL ? c->valuestring : "";
}

int json_get_choice(struct json_obj *o, const char *key, const char *const *choices)
{
    const cJSON *c = find(o, key);
    int i = cJSON_IsString(c) ? words_find(choices, c->valuestring) : -1;
    if (i < 0) {
        OWNED char *known = words_list(choices, ", ");
        OWNED char *form = xformat("one of %s", known);
        refuse(o, key, c, form);
    }
    return i < 0 ? 0 : i;
}

static struct json_obj get_object_as(struct json_obj *o, const char *key, const char *form)
{
    struct json_obj sub = {.file = o->file, .err = o->err};
    sub.path = xkeep(path_join(o->path, key));
    sub.node = get_as(o, key, form, cJSON_IsObject);
    return sub;
}

static const char *const quantity_kinds[] = {"measured", "fitted", "assumed", "datasheet", NULL};

struct quantity json_get_quantity(struct json_obj *o, const char *key, const char *unit, double min,
                                  double max)
{
    struct quantity q = {.value = min, .low = min, .high = min};
    OWNED char *form = xformat("an object {\"value\": .., \"unit\": \"%s\", \"kind\": \"assumed\", "
                               "\"source\": \"..\"}",
                               unit);
    struct json_obj sub = get_object_as(o, key, form);
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
        json_refuse(&sub, "unit", "must be \"%s\", not \"%s\"", unit, got);
    }
    q.kind = (enum quantity_kind)json_get_choice(&sub, "kind", quantity_kinds);
    const char *source = json_get_string(&sub, "source");
    if (cJSON_IsString(json_member(sub.node, "source")) && source[0] == '\0') {
        json_refuse(&sub, "source", "must be text that says where the number comes from");
    }
    if (o->err->n == before && (q.low > q.value || q.high < q.value)) {
        json_refuse(o, key, "must be a range: low <= value <= high");
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
    return get_object_as(o, key, "an object {...}");
}

int json_get_array_size(struct json_obj *o, const char *key, int min, int max)
{
    const cJSON *c = find(o, key);
    int n = cJSON_IsArray(c) ? cJSON_GetArraySize(c) : -1;
    if (n < min || n > max) {
        char form[96];
        number_form(form, sizeof form, "an array of length", min, max);
        refuse(o, key, c, form);
        return 0;
    }
    return n;
}

uint32_t json_get_strings(struct json_obj *o, const char *key, int min, int max, const char **out)
{
    int n = json_get_array_size(o, key, min, max);
    const cJSON *list = n > 0 ? json_member(o->node, key) : NULL;
    uint32_t used = 0;
    for (int i = 0; i < n; i++) {
        const cJSON *s = cJSON_GetArrayItem(list, i);
        OWNED char *element = xformat("%s[%d]", key, i);
        if (!cJSON_IsString(s) || s->valuestring[0] == '\0') {
            json_refuse(o, element, "must be a string");
            continue;
        }
        for (uint32_t k = 0; k < used; k++) {
            if (strcmp(out[k], s->valuestring) == 0) {
                json_refuse(o, element, "'%s' is repeated", s->valuestring);
            }
        }
        out[used++] = s->valuestring;
    }
    return used;
}

struct json_obj json_array_object(struct json_obj *o, const char *key, int index)
{
    struct json_obj sub = {.file = o->file, .err = o->err};
    OWNED char *element = xformat("%s[%d]", key, index);
    sub.path = xkeep(path_join(o->path, element));
    const cJSON *c = o->node == NULL ? NULL : json_member(o->node, key);
    c = cJSON_GetArrayItem(c, index);
    if (c != NULL && !cJSON_IsObject(c)) {
        json_refuse(o, element, "must be an object {...}");
        c = NULL;
    }
    sub.node = c;
    return sub;
}

bool json_has(struct json_obj *o, const char *key)
{
    note_asked(o, key);
    return o->node != NULL && json_member(o->node, key) != NULL;
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
            json_refuse(o, NULL, "more than 64 keys in one object");
            return;
        }
        if ((o->seen & bit) == 0 && c->string != NULL) {
            struct nearest near;
            nearest_init(&near, c->string);
            for (uint32_t i = 0; i < o->n_asked; i++) { /* suggest no key that is present */
                if (json_member(o->node, o->asked[i]) == NULL) {
                    nearest_look(&near, o->asked[i]);
                }
            }
            json_refuse(o, c->string, "unknown key%s", nearest_hint(&near));
        }
    }
}

/* ---- unchecked access ---- */

double json_number(const cJSON *o, const char *key)
{
    const cJSON *c = json_member(o, key);
    return cJSON_IsNumber(c) ? c->valuedouble : (double)NAN;
}

const char *json_string(const cJSON *o, const char *key)
{
    const char *text = cJSON_GetStringValue(json_member(o, key));
    return text != NULL ? text : "";
}

/* ---- writing ---- */

cJSON *json_members(cJSON *o, const struct json_member *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct frame_value *x = &v[i].value;
        cJSON *item = x->kind == FRAME_VALUE_NUMBER ? cJSON_CreateNumber(x->number)
                      : x->kind == FRAME_VALUE_TEXT ? cJSON_CreateString(x->text)
                      : x->kind == FRAME_VALUE_FLAG ? cJSON_CreateBool(x->number != 0.0)
                                                    : cJSON_CreateNull();
        if (x->kind != FRAME_VALUE_ABSENT) {
            cJSON_AddItemToObject(o, v[i].name, item);
        } else {
            cJSON_Delete(item);
        }
    }
    return o;
}

/* Whether cJSON may print 15 digits of the number, which has 16. */
static bool is_long(const cJSON *c)
{
    const double x = c->valuedouble;
    return cJSON_IsNumber(c) && fabs(x) >= 1e15 && fabs(x) <= 0x1p53 && x == floor(x);
}

static bool any_is_long(const cJSON *tree)
{
    bool any = is_long(tree);
    for (const cJSON *c = tree->child; c != NULL && !any; c = c->next) {
        any = any_is_long(c);
    }
    return any;
}

/* Makes long numbers texts of all their digits, to be printed as they are. */
static void give_digits(cJSON *tree)
{
    if (is_long(tree)) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%.0f", tree->valuedouble);
        tree->valuestring = cJSON_malloc(sizeof digits);
        SIM_REQUIRE(tree->valuestring != NULL, "memory for a number");
        memcpy(tree->valuestring, digits, sizeof digits);
        tree->type = (tree->type & ~0xff) | cJSON_Raw; /* the flags of ownership stay */
    }
    for (cJSON *c = tree->child; c != NULL; c = c->next) {
        give_digits(c);
    }
}

char *json_text(const cJSON *tree, bool spaced)
{
    SCOPED(json_drop) cJSON *own = NULL;
    if (tree != NULL && any_is_long(tree)) {
        own = cJSON_Duplicate(tree, true);
        give_digits(own);
        tree = own;
    }
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
    OWNED char *text = json_text(tree, true);
    (void)fprintf(out, "%s\n", text);
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
