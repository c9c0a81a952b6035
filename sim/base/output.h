/* Writing files in the one way this program does it: whole or not at all.
 *
 * A regular file, or a new one, is written in the same folder under a name nobody else has, and
 * takes its place when it is complete. Its permissions are those of the file replaced. A symbolic
 * link stays; its target is replaced. A device, a pipe or a descriptor (/dev/stdout) is written
 * through. A process that ends early removes its incomplete files. A file whose name ends in .gz is
 * packed. "-" is standard output. */
#pragma once

#include "sim/base/base.h"

struct output; /* opaque */

/* NULL with an error that names the file. Nothing of that name has been touched then, nor until
 * output_close (but for what is written through). */
struct output *output_open(const char *path, struct err *e);
bool output_is_stdout(const char *path); /* "-" or "/dev/stdout" */
/* Borrowed; errors of writing show at output_close. */
FILE *output_stream(struct output *o);
/* keep: it takes its place; else what was there stays. 0, or -EINVAL with an error that names the
 * file, which is then as it was. NULL is allowed. */
int output_close(struct output *o, bool keep, struct err *e);
/* A whole file at once. */
int output_bytes(const char *path, const void *bytes, size_t n, struct err *e);

/* Inside output: packing (output_gzip.c). */

/* A stream that writes gzip to fd and closes it. Equal input gives equal bytes: no name, no date.
 * NULL when memory runs out. */
FILE *output_gzip(int fd);
