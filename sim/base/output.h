/* Writing files, in the one way this program does it: whole or not at all.
 *
 * A regular file, or one that is not there, is written beside its place under a name nobody else
 * has, and takes the place when it is complete; permissions are those of the file replaced. A
 * symbolic link stays, its target is what is replaced. A device, a pipe or a descriptor
 * (/dev/stdout) is written through. What a process that ends early has not completed is removed.
 * A file whose name ends in .gz is packed.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/err.h"

struct output; /* opaque */

/* NULL with an error that names the file. Nothing of that name has been touched then, nor until
 * output_close (but for what is written through). */
struct output *output_open(const char *path, struct err *e);
/* Borrowed; errors of writing show at output_close. */
FILE *output_stream(struct output *o);
/* keep: it takes its place; else what was there stays. 0, or -EINVAL with an error that names the
 * file, which is then as it was. NULL is allowed. */
int output_close(struct output *o, bool keep, struct err *e);
/* A whole file at once. */
int output_bytes(const char *path, const void *bytes, size_t n, struct err *e);

/* Removes what this process has open but not closed. Of the ends that are not returns: a signal
 * handler may call it. */
void output_abandon_all(void);
