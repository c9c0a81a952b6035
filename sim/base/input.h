/* Reading text files that may be anything: lines and files have a longest length, so that
 * /dev/zero, or a pipe without an end, ends with an error. */
#pragma once

#include "sim/base/base.h"

#define INPUT_LINE_BYTES ((size_t)16 << 20)  /* a line, its end included */
#define INPUT_FILE_BYTES ((uint64_t)4 << 30) /* a file read line by line */

/* fopen for reading that ends the process when memory runs out: NULL with errno, or (input_open)
 * with an error that names the file. */
FILE *input_try(const char *path);
/* SCOPED(input_drop) FILE *: one of this scope, or NULL. */
static inline void input_drop(FILE **f)
{
    if (*f != NULL) {
        (void)fclose(*f);
    }
}
/* From now on calls opened with the path of every file that is opened here; NULL: no longer. For a
 * list of the files that a run reads. */
void input_watch(void (*opened)(void *ctx, const char *path), void *ctx);
FILE *input_open(const char *path, struct err *e);
/* Reading failed with errno: adds an error, or ends the process when memory ran out. -EINVAL. */
int input_failed(const char *path, struct err *e);

/* Words behind a refusal of bytes that are 0: PowerShell writes what a program prints as UTF-16. */
const char *input_utf16_hint(const char *text, size_t n);

/* A text file of the user: "-" is standard input, gzip is unpacked, a byte order mark is left out.
 * If head is not NULL, the first bytes come back too (NUL-terminated, at most INPUT_HEAD_BYTES - 1
 * of them), and are read again from the stream. So a format can be recognised, also through a pipe.
 * NULL with an error. */
#define INPUT_HEAD_BYTES 65536
FILE *input_open_any(const char *path, char *head, struct err *e);
/* For input_any.c: a file was opened. */
void input_opened(const char *path);

/* A line at a time; starts at zeros, ends with free(text). */
struct input_line {
    char *text; /* owned; NUL-terminated, with its end of line */
    size_t cap, n;
    uint64_t number, bytes; /* lines and bytes read so far */
};
/* 1 a line, 0 the end, -EINVAL with an error that names file and line: too long, too much,
 * unreadable, or a NUL byte in it. */
int input_next(FILE *f, const char *path, struct input_line *l, struct err *e);

/* All of a file as text, or NULL with an error: more than max_bytes, unreadable, a NUL byte in it.
 * The caller frees it. */
char *input_text(const char *path, size_t max_bytes, struct err *e);
/* Reads what a child wrote into a temporary file, up to a NUL byte; never NULL. Closes the file. */
char *input_said(FILE *f);
/* Reads an open stream, which stays open. Errors use `name`. */
char *input_text_of(FILE *f, const char *name, size_t max_bytes, struct err *e);
