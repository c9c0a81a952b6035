/* A list of errors in outside input, so that all errors of a file are reported at once.
 *
 * Every loader takes a `struct err *` and appends one line per problem, with the file, the place
 * (line, or key path) and the accepted values. Functions return 0 or -errno; the caller prints the
 * lines and exits with status 2. An err object owns nothing but its lines. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define ERR_MAX_LINES 50 /* further ones are counted, not stored */

struct err {
    char *lines[ERR_MAX_LINES]; /* owned, NUL-terminated, without newline */
    size_t n;                   /* errors seen; may exceed ERR_MAX_LINES */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        {NULL}, 0                                                                                  \
    }

/* Appends one formatted line. Always returns -EINVAL, so that `return err_add(...)` reads well. */
int err_add(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As err_add, but returns NULL. */
void *err_null(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes "xpusim: error: LINE" for each line, and the number of lines not stored. */
void err_print(const struct err *e, FILE *out);

/* Frees the lines; the object is then empty and can be used again. */
void err_fini(struct err *e);
