/* Writes files atomically: completely or not at all.
 *
 * A regular or new file is written under a unique temporary name in the same folder, and renamed
 * when complete. It keeps the permissions of the file that it replaces. A symbolic link stays; its
 * target is replaced. A device, a pipe or a descriptor (/dev/stdout) is written directly. A process
 * that ends early removes its incomplete files. A file whose name ends in .gz is compressed. "-" is
 * standard output. */
#pragma once

#include "sim/base/base.h"

struct output; /* opaque */

/* Returns NULL with an error that names the file. An existing file is not changed before
 * output_close, unless it is written directly. */
struct output *output_open(const char *path, struct err *e);
bool output_is_stdout(const char *path); /* "-" or "/dev/stdout" */
/* Borrowed. output_close reports write errors. */
FILE *output_stream(struct output *o);
/* keep: replaces the file by the new one; else discards the new one. Returns 0, or -EINVAL with an
 * error that names the file, which is then unchanged. o may be NULL. */
int output_close(struct output *o, bool keep, struct err *e);
/* Writes a whole file. */
int output_bytes(const char *path, const void *bytes, size_t n, struct err *e);

/* For output.c only (output_gzip.c): */

/* A stream that writes gzip to fd and closes it. Equal input gives equal bytes: no name, no date.
 * NULL if memory runs out. */
FILE *output_gzip(int fd);
