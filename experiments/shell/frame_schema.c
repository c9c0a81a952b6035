/* Makes the JSON Schema of a document's JSON from its names, kinds and columns. It holds for any
 * values. docs/schemas/make.py joins several of them into docs/schemas. */
#include <cjson/cJSON.h>

#include "experiments/shell/document_impl.h"
#include "sim/base/json.h"

#define MAP_LEAST 8 /* an object of this many numbers only is a map from names to numbers */

static cJSON *typed(const char *type, bool maybe_null)
{
    cJSON *o = cJSON_CreateObject();
    if (maybe_null) {
        cJSON *list = cJSON_AddArrayToObject(o, "type");
        cJSON_AddItemToArray(list, cJSON_CreateString(type));
        cJSON_AddItemToArray(list, cJSON_CreateString("null"));
    } else {
        cJSON_AddStringToObject(o, "type", type);
    }
    return o;
}

static cJSON *map_of(cJSON *values)
{
    cJSON *o = typed("object", false);
    cJSON_AddItemToObject(o, "additionalProperties", values);
    return o;
}

static cJSON *object_new(void)
{
    cJSON *o = typed("object", false);
    cJSON_AddObjectToObject(o, "properties");
    cJSON_AddBoolToObject(o, "additionalProperties", false);
    return o;
}

/* Adds a property. A name's part before a dot names an inner object. */
static void put_property(cJSON *object, const char *name, cJSON *schema)
{
    cJSON *properties = json_member(object, "properties");
    const char *dot = strchr(name, '.');
    if (dot == NULL) {
        cJSON_AddItemToObject(properties, name, schema);
        return;
    }
    OWNED char *first = xstrdup(name);
    first[dot - name] = '\0';
    cJSON *inner = json_member(properties, first);
    if (inner == NULL) {
        inner = object_new();
        cJSON_AddItemToObject(properties, first, inner);
    }
    put_property(inner, dot + 1, schema);
}

/* The types of the values in a column of kind FRAME_ANY. A column without values may have any. */
static cJSON *found_in(const struct frame *f, size_t column)
{
    static const char *const types[] = {[FRAME_VALUE_NUMBER] = "number",
                                        [FRAME_VALUE_TEXT] = "string",
                                        [FRAME_VALUE_FLAG] = "boolean"};
    cJSON *list = cJSON_CreateArray();
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        bool there = false;
        for (uint32_t r = 0; r < frame_rows(f) && types[k] != NULL; r++) {
            there = there || (size_t)frame_cell_at(f, r, column)->kind == k;
        }
        if (there) {
            cJSON_AddItemToArray(list, cJSON_CreateString(types[k]));
        }
    }
    cJSON *o = cJSON_CreateObject();
    if (cJSON_GetArraySize(list) > 0) {
        cJSON_AddItemToArray(list, cJSON_CreateString("null"));
        cJSON_AddItemToObject(o, "type", list);
    } else {
        cJSON_Delete(list);
    }
    return o;
}

static cJSON *column_schema(const struct frame *f, size_t column)
{
    static const char *const types[] = {
        [FRAME_NUMBER] = "number", [FRAME_TEXT] = "string", [FRAME_FLAG] = "boolean"};
    const struct frame_column *c = &f->columns[column];
    cJSON *o = c->kind == FRAME_ANY ? found_in(f, column) : typed(types[c->kind], true);
    if (c->title != NULL && c->title[0] != '\0') {
        cJSON_AddStringToObject(o, "title", c->title);
    }
    if (c->unit != NULL) {
        cJSON_AddStringToObject(o, "unit", c->unit);
    }
    return o;
}

static cJSON *frame_schema(const struct frame *f)
{
    bool alone = f->n_columns == f->keys + 1 && f->columns[f->keys].name[0] == '\0';
    cJSON *row = alone ? column_schema(f, f->keys) : object_new();
    for (size_t i = f->keys; !alone && i < f->n_columns; i++) {
        if (!f->columns[i].only_text) {
            put_property(row, f->columns[i].name, column_schema(f, i));
        }
    }
    if (f->keys == 0) {
        cJSON *o = typed("array", false);
        cJSON_AddItemToObject(o, "items", row);
        return o;
    }
    for (uint32_t k = 0; k < f->keys; k++) {
        row = map_of(row);
    }
    return row;
}

static cJSON *value_schema(const struct frame_cell *v)
{
    return v->kind == FRAME_VALUE_NUMBER ? typed("number", true)
           : v->kind == FRAME_VALUE_TEXT ? typed("string", false)
           : v->kind == FRAME_VALUE_FLAG
               ? typed("boolean", false)
               : cJSON_CreateObject(); /* an undefined number, or anything */
}

static bool is_data(const struct document *d, const struct document_entry *e)
{
    return (e->name != NULL || d->is_array) && e->kind != DOCUMENT_IS_NOTE &&
           e->kind != DOCUMENT_IS_HEADING && e->value.kind != FRAME_VALUE_ABSENT;
}

static bool is_map(const struct document *d)
{
    size_t numbers = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        if (is_data(d, e)) {
            if (e->kind != DOCUMENT_IS_VALUE ||
                (e->value.kind != FRAME_VALUE_NUMBER && e->value.kind != FRAME_VALUE_NULL)) {
                return false;
            }
            numbers++;
        }
    }
    return numbers >= MAP_LEAST;
}

static cJSON *document_schema(const struct document *d);

static cJSON *entry_schema(const struct document_entry *e)
{
    return e->kind == DOCUMENT_IS_FRAME      ? frame_schema(e->frame)
           : e->kind == DOCUMENT_IS_DOCUMENT ? document_schema(e->within)
           : e->kind == DOCUMENT_IS_TREE ? typed(cJSON_IsArray(e->tree) ? "array" : "object", false)
                                         : value_schema(&e->value);
}

/* An array's list "items" has the schema of each element. */
static cJSON *document_schema(const struct document *d)
{
    if (!d->is_array && is_map(d)) {
        return map_of(typed("number", true));
    }
    cJSON *o = d->is_array ? typed("array", false) : object_new();
    cJSON *list = cJSON_AddArrayToObject(o, d->is_array ? "items" : "required");
    for (size_t i = 0; i < d->n; i++) {
        const struct document_entry *e = &d->v[i];
        if (!is_data(d, e)) {
            continue;
        }
        if (e->name != NULL && e->name[0] == '\0') { /* the entry is the whole document */
            cJSON_Delete(o);
            return entry_schema(e);
        }
        if (d->is_array) {
            cJSON_AddItemToArray(list, entry_schema(e));
        } else {
            cJSON_AddItemToArray(list, cJSON_CreateString(e->name));
            cJSON_AddItemToObject(json_member(o, "properties"), e->name, entry_schema(e));
        }
    }
    return o;
}

void document_put_schema(const struct document *d, FILE *out)
{
    json_print(document_schema(d), out);
}
