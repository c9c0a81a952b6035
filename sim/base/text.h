/* A string builder, for output that is too frequent for printf. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

struct text {
    char *p; /* owned */
    size_t n, cap;
};

static inline void text_room(struct text *t, size_t more)
{
    t->p = xroom(t->p, t->n + more, &t->cap, 1);
}

static inline void text_add(struct text *t, const char *s, size_t n)
{
    text_room(t, n);
    if (n > 0) { /* p may be NULL then */
        memcpy(t->p + t->n, s, n);
    }
    t->n += n;
}

static inline void text_string(struct text *t, const char *s)
{
    text_add(t, s, strlen(s));
}

static inline void text_char(struct text *t, char c)
{
    text_add(t, &c, 1);
}

static inline void text_u64(struct text *t, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    text_add(t, digits + at, sizeof digits - at);
}

/* A time in ns; TIME_NEVER_NS is "null". */
static inline void text_ns(struct text *t, int64_t ns)
{
    if (ns == TIME_NEVER_NS) {
        text_string(t, "null");
    } else {
        text_string(t, ns < 0 ? "-" : "");
        text_u64(t, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
    }
}

static inline void text_bool(struct text *t, int yes)
{
    text_string(t, yes ? "true" : "false");
}

/* A comma and a number. */
static inline void text_next_u64(struct text *t, uint64_t v)
{
    text_char(t, ',');
    text_u64(t, v);
}

static inline void text_double(struct text *t, double v)
{
    char digits[32];
    text_add(t, digits, (size_t)snprintf(digits, sizeof digits, "%.17g", v));
}

/* Appends as printf does. */
void text_format(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends a list item, with `between` before it unless it is the first. */
static inline void text_item(struct text *t, const char *between, const char *item)
{
    text_string(t, t->n > 0 ? between : "");
    text_string(t, item);
}

/* The text with its NUL, which n does not count. Borrowed until the next append; or the caller
 * frees it and does not call text_fini. */
static inline char *text_end(struct text *t)
{
    text_room(t, 1);
    t->p[t->n] = '\0';
    return t->p;
}

/* Makes an untrusted text safe for a terminal, in place: control characters become '?', except
 * those in `keep`. All messages pass through it; data formats escape in their own way. Returns the
 * text. */
char *text_visible(char *text, const char *keep);

static inline void text_fini(struct text *t)
{
    free(t->p);
    *t = (struct text){0};
}

/* The plural ending of a noun after n. */
static inline const char *text_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* A number for display: four significant digits, and no exponent below ten millions. Returns
 * buf. */
#define TEXT_SHORT_BYTES 32
const char *text_short(char buf[TEXT_SHORT_BYTES], double x);

bool text_begins(const char *text, const char *with);
/* Whether the text ends so, and is longer than the ending. */
bool text_ends(const char *text, const char *with);
/* The file name of a path. */
const char *text_base(const char *path);

/* A list of strings. */
struct texts {
    char **v; /* owned, as are its strings */
    size_t n;
};
void texts_add(struct texts *l, const char *text);
/* Index of an equal string; n if there is none. */
size_t texts_find(const struct texts *l, const char *text);
/* Index of an equal string, which is added if there is none. */
size_t texts_index(struct texts *l, const char *text);
void texts_sort(struct texts *l);
void texts_fini(struct texts *l);

/* ---- lists in one string ---- */

/* The item of n characters in "a,b,c" (separator ','), or NULL. */
const char *text_list_item(const char *list, char separator, const char *item, size_t n);
/* The item of "a=1,b=2" with this key of n characters, or NULL. */
const char *text_list_key(const char *list, const char *key, size_t n);
