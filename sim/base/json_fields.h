/* Objects of configuration files as tables: one row per key.
 *
 * A row gives the key's type, unit, range, meaning, and the member that it fills. The strict
 * reader, the JSON Schema (`list soc --keys`, docs/schemas/make.py), and `--set` of a key that a
 * file leaves out all use the same rows. A table describes one object; nested objects name their
 * own table. */
#pragma once

#include "sim/base/json.h"

enum json_field_kind {
    JSON_FIELD_QUANTITY, /* double: value times scale; counted by its kind */
    JSON_FIELD_SPAN,     /* int64_t, ns: a quantity; scale is seconds per unit */
    JSON_FIELD_NUMBER,   /* double: a bare number times scale */
    JSON_FIELD_COUNT,    /* uint32_t */
    JSON_FIELD_BOOL,     /* bool */
    JSON_FIELD_TEXT,     /* char[size] */
    JSON_FIELD_WORD,     /* const char *, borrowed from the tree */
    JSON_FIELD_CHOICE,   /* an enum: the index among its words */
    JSON_FIELD_OBJECT,   /* an object of the table `below`; NULL: of keys that nobody checks */
    JSON_FIELD_ARRAY     /* an array of such objects */
};

/* One key. With size 0 a value is checked and not kept, and an object is the caller's to read;
 * the caller always reads arrays. */
struct json_field {
    const char *key, *unit; /* NULL: no quantity */
    const char *about;      /* a sentence for people */
    double min, max, scale; /* the range is in the file's unit; an array's is of its length */
    double otherwise;       /* the member's value where an optional number is missing; in a tree of
                               defaults that of every number, flag and choice */
    const char *text;       /* and that of a word */
    size_t offset, size;    /* of the member in the struct that json_fields_read fills */
    const char *const *(*choices)(void); /* of a choice, or */
    const char *const *words;
    const struct json_fields *below;
    enum json_field_kind kind;
    bool optional;
    bool unread; /* for makers of files: no run reads it */
};

struct json_fields {
    const struct json_field *rows;
    uint32_t n;
    const struct json_fields *also; /* more keys of the same object, filling another struct; NULL */
};

/* A row is {JSON_QUANTITY(...)}, or {JSON_QUANTITY(...), JSON_DEFAULT(v)} where a file may leave
 * the key out. S is the struct that the table fills. */
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

/* Adds the optional key of a path such as "devices.igpu.beside" to the tree, with its default,
 * where the tree lacks it; objects on the way too. Does nothing where no row allows the key. */
void json_fields_complete(const struct json_fields *t, cJSON *root, const char *path);

/* Adds every key of the table with its default, also of objects below. */
void json_fields_defaults(const struct json_fields *t, cJSON *to);

/* Removes the keys that no run reads. */
void json_fields_drop_unread(const struct json_fields *t, cJSON *object);

/* Words that a choice has; NULL of other kinds. */
static inline const char *const *json_field_words(const struct json_field *f)
{
    return f->choices != NULL ? f->choices() : f->words;
}

/* Calls each(key path, row) for every row, depth first; elements of arrays are called "[]". */
void json_fields_each(const struct json_fields *t,
                      void (*each)(void *to, const char *path, const struct json_field *f),
                      void *to);
extern const char *const json_field_kind_names[]; /* by the enum: "quantity", ... */
