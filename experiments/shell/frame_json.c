/* Makes a JSON tree of a document. */
#include <cjson/cJSON.h>

#include "experiments/shell/document_impl.h"
#include "sim/base/json.h"

static cJSON *cell_json(const struct frame_cell *v)
{
    switch (v->kind) {
    case FRAME_VALUE_NUMBER:
        return cJSON_CreateNumber(v->number);
    case FRAME_VALUE_TEXT:
        return cJSON_CreateString(v->text);
    case FRAME_VALUE_FLAG:
        return cJSON_CreateBool(v->number != 0.0);
    case FRAME_VALUE_NULL:
    case FRAME_VALUE_ABSENT:
        break;
    }
    return cJSON_CreateNull();
}

/* Appends to an array, or adds to an object. A name's part before a dot names an inner object. */
static void put_item(cJSON *into, const char *name, cJSON *item)
{
    const char *dot = strchr(name, '.');
    if (cJSON_IsArray(into)) {
        cJSON_AddItemToArray(into, item);
    } else if (dot == NULL) {
        cJSON_AddItemToObject(into, name, item);
    } else {
        OWNED char *first = xstrdup(name);
        first[dot - name] = '\0';
        cJSON *object = json_member(into, first);
        object = object != NULL ? object : cJSON_AddObjectToObject(into, first);
        put_item(object, dot + 1, item);
    }
}

static void put_row_json(const struct frame *f, uint32_t row, cJSON *root)
{
    const struct frame_cell *cells = &f->cells[row * f->n_columns];
    cJSON *at = root;
    bool alone = f->n_columns == f->keys + 1 && f->columns[f->keys].name[0] == '\0';
    for (uint32_t k = 0; k < f->keys; k++) {
        const char *key = cells[k].text;
        if (alone && k + 1 == f->keys) {
            cJSON_AddItemToObject(at, key, cell_json(&cells[f->keys]));
            return;
        }
        cJSON *next = json_member(at, key);
        at = next != NULL ? next : cJSON_AddObjectToObject(at, key);
    }
    if (f->keys == 0) {
        at = alone ? cell_json(&cells[0]) : cJSON_CreateObject();
        cJSON_AddItemToArray(root, at);
    }
    for (size_t i = f->keys; !alone && i < f->n_columns; i++) {
        const struct frame_cell *v = &cells[i];
        if (!f->columns[i].only_text && v->kind != FRAME_VALUE_ABSENT) {
            put_item(at, f->columns[i].name, cell_json(v));
        }
    }
}

static cJSON *frame_json(const struct frame *f)
{
    cJSON *root = f->keys > 0 ? cJSON_CreateObject() : cJSON_CreateArray();
    for (uint32_t r = 0; r < frame_rows(f); r++) {
        put_row_json(f, r, root);
    }
    return root;
}

cJSON *document_json(const struct document *d)
{
    cJSON *root = d->is_array ? cJSON_CreateArray() : cJSON_CreateObject();
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        bool is_data = (e->name != NULL || d->is_array) && e->kind != DOCUMENT_IS_NOTE &&
                       e->kind != DOCUMENT_IS_HEADING && e->value.kind != FRAME_VALUE_ABSENT;
        if (!is_data) {
            continue;
        }
        cJSON *item = e->kind == DOCUMENT_IS_FRAME      ? frame_json(e->frame)
                      : e->kind == DOCUMENT_IS_DOCUMENT ? document_json(e->within)
                      : e->kind == DOCUMENT_IS_TREE     ? cJSON_Duplicate(e->tree, true)
                                                        : cell_json(&e->value);
        if (e->name != NULL && e->name[0] == '\0') { /* the entry is the whole document */
            cJSON_Delete(root);
            return item;
        }
        if (d->is_array) {
            cJSON_AddItemToArray(root, item);
        } else {
            cJSON_AddItemToObject(root, e->name, item);
        }
    }
    return root;
}
