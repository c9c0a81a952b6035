/* Reads text files of any content. Lines and files have a maximal length, so that /dev/zero or an
 * endless pipe gives an error. */
#pragma once

#include "sim/base/base.h"

#define INPUT_LINE_BYTES ((size_t)16 << 20)  /* longest line, with its line end */
#define INPUT_FILE_BYTES ((uint64_t)4 << 30) /* longest file that is read line by line */

/* fopen for reading, which ends the process if memory runs out. Returns NULL with errno;
 * input_open: NULL with an error that names the file. */
FILE *input_try(const char *path);
/* For SCOPED(input_drop) FILE *; the pointer may be NULL. */
static inline void input_drop(FILE **f)
{
    if (*f != NULL) {
        (void)fclose(*f);
    }
}
/* Sets a function that is called with the path of every file opened here, to list the files that a
 * run reads. NULL: none. */
void input_watch(void (*opened)(void *ctx, const char *path), void *ctx);
FILE *input_open(const char *path, struct err *e);
/* Adds an error for errno after a failed read; exits if memory ran out. Returns -EINVAL. */
int input_failed(const char *path, struct err *e);

/* Hint for an error about NUL bytes: PowerShell redirects output as UTF-16. "" for other texts. */
const char *input_utf16_hint(const char *text, size_t n);

/* Opens a user's text file: "-" is standard input, gzip is unpacked, a byte order mark is skipped.
 * If head is not NULL, it gets the first bytes (NUL-terminated, at most INPUT_HEAD_BYTES - 1), and
 * the stream still begins with them. So formats can be recognised even in a pipe. NULL with an
 * error. */
#define INPUT_HEAD_BYTES 65536
FILE *input_open_any(const char *path, char *head, struct err *e);
/* For input_any.c: reports an opened file to input_watch's function. */
void input_opened(const char *path);

/* Reader of lines. Initialise with zeros; free(text) at the end. */
struct input_line {
    char *text; /* owned; NUL-terminated, includes the line end */
    size_t cap, n;
    uint64_t number, bytes; /* lines and bytes read so far */
};
/* Reads a line. Returns 1, 0 at the end, or -EINVAL with an error that names file and line: line or
 * file too long, unreadable, or a NUL byte. */
int input_next(FILE *f, const char *path, struct input_line *l, struct err *e);

/* A whole file as text. NULL with an error if it exceeds max_bytes, is unreadable or has a NUL
 * byte. The caller frees it. */
char *input_text(const char *path, size_t max_bytes, struct err *e);
/* A child's output in a temporary file, up to a NUL byte. Closes the file. The caller frees it. */
char *input_said(FILE *f);
/* As input_text, from an open stream, which stays open. Errors use `name`. */
char *input_text_of(FILE *f, const char *name, size_t max_bytes, struct err *e);
