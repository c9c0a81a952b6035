/* Strict reading of JSON configuration over cJSON.
 *
 * An unknown key, a wrong type, a missing key or a value out of range is one error line. It has the
 * file, the key path and the accepted values. Reading continues, so that all errors of a file are
 * reported at once. Duplicate keys, non-finite numbers and trailing text are errors. A hardware
 * number is a *quantity*:
 *   {"value": 1.0, "unit": "GB/s", "low": 0.8, "high": 1.2, "source": "...", "kind": "measured"}
 * Its kind is one of measured, fitted, assumed, datasheet. The range from `low` to `high` includes
 * `value`. The `unit` must be the one that the reader requires. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/frame_value.h"

/* DATASHEET: stated by the manufacturer or a standard. */
enum quantity_kind {
    QUANTITY_MEASURED,
    QUANTITY_FITTED,
    QUANTITY_ASSUMED,
    QUANTITY_DATASHEET,
    QUANTITY_KINDS
};

struct quantity {
    double value, low, high;
    enum quantity_kind kind;
    bool present;
};

/* For SCOPED(json_drop) cJSON *. */
static inline void json_drop(cJSON **tree)
{
    cJSON_Delete(*tree);
}

/* Parses a whole file. Returns a tree the caller owns (cJSON_Delete), or NULL with errors added
 * (missing file, malformed text with its line). */
cJSON *json_read_file(const char *path, struct err *e);
/* As json_read_file, from an open stream, which stays open. Errors name `path`. */
cJSON *json_read_of(FILE *in, const char *path, struct err *e);
/* As json_read_file, from a text. Errors name `path`. */
cJSON *json_read_text(const char *text, const char *path, struct err *e);

#define JSON_MAX_ASKED 64

/* An object being read. */
struct json_obj {
    /* Borrowed; NULL after a type error: its getters then add no further errors. */
    const cJSON *node;
    const char *file; /* borrowed */
    const char *path; /* dotted key path ("devices[1].ddr"), "" at the root; never freed (xkeep) */
    struct err *err;  /* borrowed */
    uint64_t seen;    /* one bit per child with index < 64: set if a getter read it */
    /* Keys that getters asked for, for "did you mean"; borrowed, until json_done. */
    const char *asked[JSON_MAX_ASKED];
    uint32_t n_asked;
};

struct json_obj json_root(const cJSON *root, const char *file, struct err *e);

/* Getters. A missing or wrong value adds an error and returns the default in the comment. */
double json_get_number(struct json_obj *o, const char *key, double min, double max);    /* min */
uint32_t json_get_u32(struct json_obj *o, const char *key, uint32_t min, uint32_t max); /* min */
bool json_get_bool(struct json_obj *o, const char *key);                                /* false */
const char *json_get_string(struct json_obj *o, const char *key); /* ""; borrowed from the tree */
/* Index of the string in `choices` (NULL-terminated). Default: 0, with an error that lists them. */
int json_get_choice(struct json_obj *o, const char *key, const char *const *choices);
struct quantity json_get_quantity(struct json_obj *o, const char *key, const char *unit, double min,
                                  double max);
/* Sets a quantity, and replaces an existing one. Widens its range to include the value. */
void json_put_quantity(cJSON *to, const char *key, struct quantity q, const char *unit,
                       const char *source);
struct json_obj json_get_object(struct json_obj *o, const char *key);
/* Number of elements of an array (0 on error). json_array_object reads an element. */
int json_get_array_size(struct json_obj *o, const char *key, int min, int max);
struct json_obj json_array_object(struct json_obj *o, const char *key, int index);
/* Reads an array of min to max strings, borrowed from the tree. Empty and repeated ones are errors.
 * Returns the number stored in `out`: all but the empty. */
uint32_t json_get_strings(struct json_obj *o, const char *key, int min, int max, const char **out);
bool json_has(struct json_obj *o, const char *key);

/* Getters of optional keys. */
static inline const char *json_string_or(struct json_obj *o, const char *key, const char *otherwise)
{
    return json_has(o, key) ? json_get_string(o, key) : otherwise;
}
static inline double json_number_or(struct json_obj *o, const char *key, double min, double max,
                                    double otherwise)
{
    return json_has(o, key) ? json_get_number(o, key, min, max) : otherwise;
}
static inline uint32_t json_u32_or(struct json_obj *o, const char *key, uint32_t min, uint32_t max,
                                   uint32_t otherwise)
{
    return json_has(o, key) ? json_get_u32(o, key, min, max) : otherwise;
}
static inline bool json_flag(struct json_obj *o, const char *key) /* false if missing */
{
    return json_has(o, key) && json_get_bool(o, key);
}

/* Unchecked access to a tree: a member, or NULL; its number, or NaN; its text, or "". */
static inline cJSON *json_member(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}
double json_number(const cJSON *o, const char *key);
const char *json_string(const cJSON *o, const char *key);

/* Adds the error "FILE: PATH.KEY: ..."; key NULL: for the object itself. Returns -EINVAL. */
int json_refuse(const struct json_obj *o, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds an error for every key that no getter read, with the nearest known key. Call it once per
 * object, after the getters. */
void json_done(struct json_obj *o);

/* json_label names an array element in paths: by its "name", or "openvino-2025/8" for a runtime.
 *
 * json_find_path finds the node at a dotted path ("soc.devices.igpu.runtimes.llama.cpp/8.rate" or
 * "llm.layers"). Array elements are found by index, by their "name" member, or as
 * "runtime/weight_bits". Without such a node it returns NULL and sets *bad to the part of `path`
 * that is missing. */
char *json_label(const cJSON *element); /* NULL if unnamed; the caller frees it */
cJSON *json_find_path(cJSON *root, const char *path, const char **bad);
/* The array element that *path begins with, or NULL. Advances *path past it and the dot. */
cJSON *json_find_element(cJSON *array, const char **path);

/* Overrides the value at a path. A quantity takes the new number as its `value`, and its kind
 * becomes assumed. Its range widens to include it, or shrinks to it if the source is JSON_LEFT_OUT.
 * `text` is parsed as number, true/false, else string. The path must exist and the type must
 * match. */
#define JSON_LEFT_OUT "the default"
int json_set_path(cJSON *root, const char *path, const char *text, struct err *e);

/* JSON_MEMBERS(o, "name", value, "name", value, ...) adds members of any type of frame_value.h,
 * except absent ones. Returns the object. */
#define JSON_MEMBERS(o, ...)                                                                       \
    json_members((o), (const struct json_member[]){FRAME_PAIRS(__VA_ARGS__)},                      \
                 FRAME_COUNT(__VA_ARGS__) / 2)
struct json_member {
    const char *name;
    struct frame_value value;
};
cJSON *json_members(cJSON *o, const struct json_member *v, size_t n);
/* Writes the tree to a file (output.h). Returns 0, or -EINVAL with an error that names the file. */
int json_write_file(const char *path, const cJSON *tree, struct err *e);
/* The tree as text, on one line or, if spaced, indented; "" if NULL. Whole numbers up to 2^53, such
 * as seeds, have all their digits; cJSON prints 15 where these are nearly the number. The caller
 * frees it. */
char *json_text(const cJSON *tree, bool spaced);
/* Writes the tree and a line end, and frees the tree. */
void json_print(cJSON *owned, FILE *out);
