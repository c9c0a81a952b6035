/* A table of readers for every input that comes from outside: files of each format, texts of a
 * command line, and the command line itself. A reader takes any bytes. It accepts them, or refuses
 * them with a message. It then uses what it accepted as far as the program would: a machine prices
 * and runs two requests. tests/conformance/check_fuzz.c and tests/fuzz/fuzz.c give them damaged
 * inputs. */
#pragma once

#include <stddef.h>

#include "sim/base/err.h"

#define READER_PATH_BYTES 256

struct reader {
    const char *name;    /* also of its folder in tests/fuzz/corpus */
    const char *shipped; /* a data file to start from, or NULL */
    size_t most;         /* bytes of an input that are worth trying */
    /* 0, or an error with messages. The file holds the input, or text does, NUL-terminated. */
    int (*file)(const char *path, struct err *e);
    int (*text)(char *text, struct err *e);
};

extern const struct reader readers[];
extern const size_t n_readers;

const struct reader *reader_find(const char *name);
/* Gives one input to a reader, through a file where it wants one, and returns its answer. Ends the
 * process when the reader refuses without a message, or accepts and leaves one. */
int reader_try(const struct reader *r, const void *bytes, size_t n);
/* Removes the file. */
void readers_fini(void);
