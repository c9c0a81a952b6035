#include "sim/base/json_fields.h"

const char *const json_field_kind_names[] = {"quantity", "quantity", "number", "count",  "boolean",
                                             "text",     "text",     "choice", "object", "array"};

static void read_text(struct json_obj *o, const struct json_field *f, char *out)
{
    const char *text = json_get_string(o, f->key);
    if (f->size == 0) {
        return;
    }
    if (strlen(text) >= f->size) {
        json_refuse(o, f->key, "longer than %zu bytes", f->size - 1);
        text = "";
    }
    memcpy(out, text, strlen(text) + 1);
    if (strcmp(text_visible(out, ""), text) != 0) {
        json_refuse(o, f->key, "must not hold control characters");
    }
}

static double read_quantity(struct json_obj *o, const struct json_field *f, uint32_t *n_kinds)
{
    struct quantity q = json_get_quantity(o, f->key, f->unit, f->min, f->max);
    if (q.present && n_kinds != NULL) {
        n_kinds[q.kind]++;
    }
    return q.value * f->scale;
}

static void read_present(struct json_obj *o, const struct json_field *f, char *target,
                         uint32_t *n_kinds)
{
    double number = 0.0;
    void *to = f->size > 0 ? target + f->offset : (char *)&number;
    switch (f->kind) {
    case JSON_FIELD_QUANTITY:
        *(double *)to = read_quantity(o, f, n_kinds);
        return;
    case JSON_FIELD_SPAN:
        *(int64_t *)to = units_ns_from_s(read_quantity(o, f, n_kinds));
        return;
    case JSON_FIELD_NUMBER:
        *(double *)to = f->scale * json_get_number(o, f->key, f->min, f->max);
        return;
    case JSON_FIELD_COUNT:
        *(uint32_t *)to = json_get_u32(o, f->key, (uint32_t)f->min, (uint32_t)f->max);
        return;
    case JSON_FIELD_BOOL:
        *(bool *)to = json_get_bool(o, f->key);
        return;
    case JSON_FIELD_TEXT:
        read_text(o, f, to);
        return;
    case JSON_FIELD_WORD:
        *(const char **)to = json_get_string(o, f->key);
        return;
    case JSON_FIELD_CHOICE:
        *(int *)to = json_get_choice(o, f->key, json_field_words(f));
        return;
    case JSON_FIELD_OBJECT:
        if (f->size > 0) {
            struct json_obj sub = json_get_object(o, f->key);
            json_fields_read(&sub, f->below, target, n_kinds);
            json_done(&sub);
        }
        return;
    case JSON_FIELD_ARRAY:
        return;
    }
}

static void take_default(const struct json_field *f, char *target)
{
    void *to = target + f->offset;
    switch (f->kind) {
    case JSON_FIELD_QUANTITY:
    case JSON_FIELD_NUMBER:
        *(double *)to = f->otherwise;
        return;
    case JSON_FIELD_SPAN:
        *(int64_t *)to = units_ns_from_s(f->otherwise);
        return;
    case JSON_FIELD_COUNT:
        *(uint32_t *)to = (uint32_t)f->otherwise;
        return;
    default: /* the caller has set the default */
        return;
    }
}

void json_fields_read(struct json_obj *o, const struct json_fields *t, void *target,
                      uint32_t n_kinds[QUANTITY_KINDS])
{
    for (uint32_t i = 0; i < t->n; i++) {
        const struct json_field *f = &t->rows[i];
        if (f->optional && !json_has(o, f->key)) {
            take_default(f, target);
        } else {
            read_present(o, f, target, n_kinds);
        }
    }
}

/* ---- look-up of rows ---- */

static const struct json_field *row_of(const struct json_fields *t, const char *key, size_t len)
{
    for (; t != NULL; t = t->also) {
        for (uint32_t i = 0; i < t->n; i++) {
            if (strlen(t->rows[i].key) == len && strncmp(t->rows[i].key, key, len) == 0) {
                return &t->rows[i];
            }
        }
    }
    return NULL;
}

static void add_default(cJSON *to, const struct json_field *f)
{
    switch (f->kind) {
    case JSON_FIELD_QUANTITY:
    case JSON_FIELD_SPAN:
        json_put_quantity(to, f->key,
                          (struct quantity){.value = f->otherwise / f->scale,
                                            .low = f->otherwise / f->scale,
                                            .high = f->otherwise / f->scale,
                                            .kind = QUANTITY_ASSUMED},
                          f->unit, JSON_LEFT_OUT);
        return;
    case JSON_FIELD_NUMBER:
    case JSON_FIELD_COUNT:
        (void)cJSON_AddNumberToObject(to, f->key, f->otherwise);
        return;
    case JSON_FIELD_BOOL:
        (void)cJSON_AddBoolToObject(to, f->key, f->otherwise != 0.0);
        return;
    case JSON_FIELD_TEXT:
    case JSON_FIELD_WORD:
        (void)cJSON_AddStringToObject(to, f->key, f->text != NULL ? f->text : "");
        return;
    case JSON_FIELD_CHOICE:
        (void)cJSON_AddStringToObject(to, f->key, json_field_words(f)[(size_t)f->otherwise]);
        return;
    case JSON_FIELD_OBJECT:
        (void)cJSON_AddObjectToObject(to, f->key);
        return;
    case JSON_FIELD_ARRAY:
        return;
    }
}

void json_fields_defaults(const struct json_fields *t, cJSON *to)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const struct json_field *f = &t->rows[i];
        add_default(to, f);
        if (f->kind == JSON_FIELD_OBJECT) {
            json_fields_defaults(f->below, json_member(to, f->key));
        }
    }
}

void json_fields_complete(const struct json_fields *t, cJSON *root, const char *path)
{
    const size_t len = strcspn(path, ".");
    const struct json_field *f = row_of(t, path, len);
    if (f == NULL || !cJSON_IsObject(root)) {
        return;
    }
    if (f->optional && !cJSON_HasObjectItem(root, f->key)) {
        add_default(root, f);
    }
    if (path[len] == '\0' || f->below == NULL) {
        return;
    }
    cJSON *node = json_member(root, f->key);
    path += len + 1;
    if (f->kind == JSON_FIELD_ARRAY) {
        node = json_find_element(node, &path);
    }
    if (node != NULL) {
        json_fields_complete(f->below, node, path);
    }
}

void json_fields_drop_unread(const struct json_fields *t, cJSON *object)
{
    for (uint32_t i = 0; t != NULL && i < t->n; i++) {
        const struct json_field *f = &t->rows[i];
        cJSON *value = json_member(object, f->key);
        if (f->unread) {
            cJSON_DeleteItemFromObjectCaseSensitive(object, f->key);
        } else if (f->kind == JSON_FIELD_ARRAY) {
            cJSON *element;
            cJSON_ArrayForEach (element, value) {
                json_fields_drop_unread(f->below, element);
            }
        } else {
            json_fields_drop_unread(f->below, value);
        }
    }
    if (t != NULL) {
        json_fields_drop_unread(t->also, object);
    }
}

static void walk(const struct json_fields *t, struct text *path,
                 void (*each)(void *to, const char *path, const struct json_field *f), void *to)
{
    const size_t above = path->n;
    for (; t != NULL; t = t->also) {
        for (uint32_t i = 0; i < t->n; i++) {
            const struct json_field *f = &t->rows[i];
            path->n = above;
            text_item(path, ".", f->key);
            each(to, text_end(path), f);
            if (f->below != NULL) {
                text_string(path, f->kind == JSON_FIELD_ARRAY ? "[]" : "");
                walk(f->below, path, each, to);
            }
        }
    }
    path->n = above;
}

void json_fields_each(const struct json_fields *t,
                      void (*each)(void *to, const char *path, const struct json_field *f),
                      void *to)
{
    SCOPED(text_fini) struct text path = {0};
    walk(t, &path, each, to);
}
