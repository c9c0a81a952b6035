/* Strict reading of JSON configuration over cJSON.
 *
 * An unknown key, a wrong type, a missing key or a value out of range is one error line. It names
 * file, key path and the accepted form. Reading continues, so that all errors of a file come at
 * once. Duplicate keys, non-finite numbers and trailing text are errors. A hardware number is a
 * *quantity*:
 *   {"value": 1.0, "unit": "GB/s", "low": 0.8, "high": 1.2, "source": "...", "kind": "measured"}
 * Its kind is one of measured, fitted, assumed, datasheet. The range from `low` to `high` includes
 * `value`. The `unit` must be the one the reader asks for. */
#pragma once

#include <cjson/cJSON.h>

#include "sim/base/frame_value.h"

/* Datasheet: what a maker or a standard states of the part. */
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

/* SCOPED(json_drop) cJSON *: a tree of this scope. */
static inline void json_drop(cJSON **tree)
{
    cJSON_Delete(*tree);
}

/* Parses a whole file. Returns a tree the caller owns (cJSON_Delete), or NULL with errors added
 * (missing file, malformed text with its line). */
cJSON *json_read_file(const char *path, struct err *e);
/* Reads a file that is open, and leaves it so. Errors name the path. */
cJSON *json_read_of(FILE *in, const char *path, struct err *e);
/* A text that is there already; errors use `path`. */
cJSON *json_read_text(const char *text, const char *path, struct err *e);

#define JSON_MAX_ASKED 64

/* One object being read. `path` is the dotted key path ("devices[1].ddr"), empty at the root. */
struct json_obj {
    const cJSON *node; /* borrowed; NULL after a type error, then every get adds nothing */
    const char *file;  /* borrowed */
    const char *path;  /* nobody frees it (xkeep) */
    struct err *err;   /* borrowed */
    uint64_t seen;     /* bit per child index < 64 that some get has asked for */
    /* The keys that were asked for, for "did you mean"; borrowed, until json_done. */
    const char *asked[JSON_MAX_ASKED];
    uint32_t n_asked;
};

struct json_obj json_root(const cJSON *root, const char *file, struct err *e);

/* Getters. A missing or wrong value adds an error and returns the stated neutral value. */
double json_get_number(struct json_obj *o, const char *key, double min, double max);    /* min */
uint32_t json_get_u32(struct json_obj *o, const char *key, uint32_t min, uint32_t max); /* min */
bool json_get_bool(struct json_obj *o, const char *key);                                /* false */
const char *json_get_string(struct json_obj *o, const char *key); /* "" ; borrowed from tree */
/* Index of the string among `choices` (NULL-terminated); error lists them. Neutral: 0. */
int json_get_choice(struct json_obj *o, const char *key, const char *const *choices);
struct quantity json_get_quantity(struct json_obj *o, const char *key, const char *unit, double min,
                                  double max);
/* Puts a quantity, in the place of the one that is there; its range is widened to hold the value.
 */
void json_put_quantity(cJSON *to, const char *key, struct quantity q, const char *unit,
                       const char *source);
struct json_obj json_get_object(struct json_obj *o, const char *key);
/* Number of elements of an array (0 on error); elements by json_array_object. */
int json_get_array_size(struct json_obj *o, const char *key, int min, int max);
struct json_obj json_array_object(struct json_obj *o, const char *key, int index);
/* An array of min to max texts, none empty and none twice; borrowed from the document. Returns how
 * many are right; each other one is an error. */
uint32_t json_get_strings(struct json_obj *o, const char *key, int min, int max, const char **out);
bool json_has(struct json_obj *o, const char *key);

/* Where a key may be missing. */
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
static inline bool json_flag(struct json_obj *o, const char *key) /* false where missing */
{
    return json_has(o, key) && json_get_bool(o, key);
}

/* A member of a raw tree, or NULL; its number, NaN when it has none; its text, or "". */
static inline cJSON *json_member(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}
double json_number(const cJSON *o, const char *key);
const char *json_string(const cJSON *o, const char *key);

/* Adds the error "FILE: PATH.KEY: ..."; without a key it is of the object itself. Returns -EINVAL.
 */
int json_refuse(const struct json_obj *o, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds an error for every key nobody asked for, with the nearest that somebody did. Call once per
 * object, after the gets. */
void json_done(struct json_obj *o);

/* Name of an array element in paths: its name, or of a runtime entry "openvino-2025/8".
 *
 * json_find_path finds the node at a dotted path ("soc.devices.igpu.runtimes.llama.cpp/8.rate" or
 * "llm.layers"). Array elements are named by index, by their "name" member, or as
 * "runtime/weight_bits". NULL when there is none; *bad then points at the part of path that is
 * missing. */
char *json_label(const cJSON *element); /* NULL without one; the caller frees it */
cJSON *json_find_path(cJSON *root, const char *path, const char **bad);
/* The element of an array that *path begins with, or NULL; *path moves behind it and its dot. */
cJSON *json_find_element(cJSON *array, const char **path);

/* Overrides the value at a path: a quantity takes the new number as its `value` (low
 * and high widen to contain it, and become it where the source is JSON_LEFT_OUT; kind becomes
 * assumed). `text` is parsed as number, true/false, else string. The path must exist and the type
 * must match. */
#define JSON_LEFT_OUT "the default"
int json_set_path(cJSON *root, const char *path, const char *text, struct err *e);

/* JSON_MEMBERS(o, "name", value, "name", value, ...) adds members of any type of frame_value.h. One
 * that is absent is left out. Returns the object. */
#define JSON_MEMBERS(o, ...)                                                                       \
    json_members((o), (const struct json_member[]){FRAME_PAIRS(__VA_ARGS__)},                      \
                 FRAME_COUNT(__VA_ARGS__) / 2)
struct json_member {
    const char *name;
    struct frame_value value;
};
cJSON *json_members(cJSON *o, const struct json_member *v, size_t n);
/* The tree as a file, as output.h writes it. 0 or -EINVAL with an error that names the file. */
int json_write_file(const char *path, const cJSON *tree, struct err *e);
/* A number with all digits of a whole one, up to 2^53. cJSON prints 15 where these are near enough,
 * but a seed has 16, and the next seed is another run. The caller owns it. */
cJSON *json_exact(double x);
/* The tree as text, on one line or, spaced, over many; "" of NULL. The caller frees it. */
char *json_text(const cJSON *tree, bool spaced);
/* Writes the tree as text with an end of line, and frees it. */
void json_print(cJSON *owned, FILE *out);
