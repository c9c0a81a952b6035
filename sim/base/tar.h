/* Small archives: ustar (POSIX.1-1988) in gzip, as `tar xzf` and Python's tarfile read and write
 * them.
 *
 * Regular files only. No owner, group or time is written: archives do not identify an author. */
#pragma once

#include "sim/base/base.h"

#define TAR_NAME_BYTES 100

struct tar_file {
    char name[TAR_NAME_BYTES];
    char *data; /* owned; NUL-terminated, the NUL is not in n */
    size_t n;
};

struct tar {
    struct tar_file *v; /* owned */
    size_t n;
};

/* Adds a file, and takes over its data of n bytes and a NUL. name: shorter than TAR_NAME_BYTES. */
void tar_add(struct tar *t, const char *name, char *data, size_t n);
/* The file of that name, borrowed, or NULL. */
const struct tar_file *tar_find(const struct tar *t, const char *name);
/* Writes all of the archive or nothing. path ends in .gz. Returns 0, or -EINVAL with an error. */
int tar_write(const struct tar *t, const char *path, struct err *e);
/* Reads an archive of at most `most` bytes unpacked. Returns 0, or -EINVAL with an error that has
 * the file and the byte offset: damaged, truncated, too large, a repeated name, or not a regular
 * file. Call tar_fini in either case. */
int tar_read(struct tar *t, const char *path, uint64_t most, struct err *e);
void tar_fini(struct tar *t);
