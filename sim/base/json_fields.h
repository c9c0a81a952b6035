/* Objects of configuration files as tables: one row per key.
 *
 * A row has the key's type, unit, range, meaning, and the member that it fills. The strict reader,
 * the JSON Schema (`list soc --keys`, docs/schemas/make.py), and `--set` of a key that a file
 * leaves out use the same rows. A table describes one object; nested objects have their own
 * table. */
#pragma once

#include "sim/base/json.h"

enum json_field_kind {
    JSON_FIELD_QUANTITY, /* double: value times scale; n_kinds counts it */
    JSON_FIELD_SPAN,     /* int64_t, ns: a quantity; scale is seconds per unit */
    JSON_FIELD_NUMBER,   /* double: a plain number times scale */
    JSON_FIELD_COUNT,    /* uint32_t */
    JSON_FIELD_BOOL,     /* bool */
    JSON_FIELD_TEXT,     /* char[size] */
    JSON_FIELD_WORD,     /* const char *, borrowed from the tree */
    JSON_FIELD_CHOICE,   /* an enum: index in its words */
    JSON_FIELD_OBJECT,   /* an object with table `below`; NULL: its keys are not checked */
    JSON_FIELD_ARRAY     /* an array of such objects */
};

/* One key. With size 0 a value is checked but not stored, and the caller reads an object. The
 * caller always reads arrays. */
struct json_field {
    const char *key, *unit; /* unit NULL: not a quantity */
    const char *about;      /* help text, a sentence */
    double min, max, scale; /* range in the file's unit; of an array: of its length */
    double otherwise; /* the member's value if an optional number is missing; json_fields_defaults
                         uses it for numbers, flags and choices */
    const char *text; /* default of a text or word */
    size_t offset, size;                 /* of the member in the target of json_fields_read */
    const char *const *(*choices)(void); /* words of a choice; or `words` */
    const char *const *words;
    const struct json_fields *below;
    enum json_field_kind kind;
    bool optional;
    bool unread; /* for programs that write the file: runs do not read it */
};

struct json_fields {
    const struct json_field *rows;
    uint32_t n;
    const struct json_fields *also; /* more keys of this object, for another struct; or NULL */
};

/* A row is {JSON_QUANTITY(...)}, or {JSON_QUANTITY(...), JSON_DEFAULT(v)} for an optional key. S is
 * the struct that the table fills. */
#define JSON_ROW_(name, text, type) .key = (name), .about = (text), .kind = JSON_FIELD_##type
#define JSON_INTO_(S, member) .offset = offsetof(S, member), .size = sizeof(((S *)0)->member)
#define JSON_RANGE_(low, high, factor) .min = (low), .max = (high), .scale = (factor)
#define JSON_QUANTITY(S, member, name, u, low, high, factor, text)                                 \
    JSON_ROW_(name, text, QUANTITY), .unit = (u), JSON_RANGE_(low, high, factor),                  \
                                     JSON_INTO_(S, member)
#define JSON_SPAN(S, member, name, u, high, seconds, text)                                         \
    JSON_ROW_(name, text, SPAN), .unit = (u), JSON_RANGE_(0.0, high, seconds), JSON_INTO_(S, member)
#define JSON_NUMBER(S, member, name, low, high, factor, text)                                      \
    JSON_ROW_(name, text, NUMBER), JSON_RANGE_(low, high, factor), JSON_INTO_(S, member)
#define JSON_COUNT(S, member, name, low, high, text)                                               \
    JSON_ROW_(name, text, COUNT), JSON_RANGE_(low, high, 1.0), JSON_INTO_(S, member)
#define JSON_BOOL(S, member, name, text) JSON_ROW_(name, text, BOOL), JSON_INTO_(S, member)
#define JSON_TEXT(S, member, name, text) JSON_ROW_(name, text, TEXT), JSON_INTO_(S, member)
#define JSON_WORD(S, member, name, text) JSON_ROW_(name, text, WORD), JSON_INTO_(S, member)
#define JSON_CHOICE(S, member, name, names, text)                                                  \
    JSON_ROW_(name, text, CHOICE), .choices = (names), JSON_INTO_(S, member)
#define JSON_OBJECT(name, table, text) JSON_ROW_(name, text, OBJECT), .below = (table), .size = 1
#define JSON_CALLERS(name, table, text) JSON_ROW_(name, text, OBJECT), .below = (table)
#define JSON_ARRAY(name, table, low, high, text)                                                   \
    JSON_ROW_(name, text, ARRAY), .below = (table), JSON_RANGE_(low, high, 1.0)
#define JSON_DEFAULT(v) .optional = true, .otherwise = (v)
#define JSON_FIELDS(table, more)                                                                   \
    {                                                                                              \
        (table), sizeof(table) / sizeof((table)[0]), (more)                                        \
    }

/* Reads every key of the table (not of `also`) into *target, in the order of its rows. Errors are
 * added to o->err. n_kinds, unless NULL, counts quantities by their kind. */
void json_fields_read(struct json_obj *o, const struct json_fields *t, void *target,
                      uint32_t n_kinds[QUANTITY_KINDS]);

/* Adds the optional key at a path such as "devices.igpu.beside" with its default if the tree lacks
 * it, and missing objects on the path. Does nothing if no row has the key. */
void json_fields_complete(const struct json_fields *t, cJSON *root, const char *path);

/* Adds the default of every key of the table (not of `also`) but arrays, and of nested objects. */
void json_fields_defaults(const struct json_fields *t, cJSON *to);

/* Removes keys with `unread` set. */
void json_fields_drop_unread(const struct json_fields *t, cJSON *object);

/* The words of a choice; NULL for other kinds. */
static inline const char *const *json_field_words(const struct json_field *f)
{
    return f->choices != NULL ? f->choices() : f->words;
}

/* Calls each(to, key path, row) for every row, depth first. Array elements have the path "[]". */
void json_fields_each(const struct json_fields *t,
                      void (*each)(void *to, const char *path, const struct json_field *f),
                      void *to);
extern const char *const json_field_kind_names[]; /* by the enum: "quantity", ... */
