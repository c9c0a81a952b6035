/* Small archives: ustar (POSIX.1-1988) in gzip, as `tar xzf` and Python's tarfile read and write
 * them.
 *
 * Plain files only. No owner, group or time is written: an archive says nothing of who made it. */
#pragma once

#include "sim/base/base.h"

#define TAR_NAME_BYTES 100

struct tar_file {
    char name[TAR_NAME_BYTES];
    char *data; /* owned; NUL-terminated, which does not count */
    size_t n;
};

struct tar {
    struct tar_file *v; /* owned */
    size_t n;
};

/* Takes over data of n bytes and a NUL. The name is shorter than TAR_NAME_BYTES. */
void tar_add(struct tar *t, const char *name, char *data, size_t n);
/* NULL: there is none of that name. Borrowed. */
const struct tar_file *tar_find(const struct tar *t, const char *name);
/* Whole or not at all. The path ends in .gz. 0 or -EINVAL with an error. */
int tar_write(const struct tar *t, const char *path, struct err *e);
/* All of an archive of at most `most` bytes unpacked. 0, or -EINVAL with an error that names the
 * archive and the byte in it: damaged, cut off, too large, a name twice, or no plain file.
 * tar_fini in every case. */
int tar_read(struct tar *t, const char *path, uint64_t most, struct err *e);
void tar_fini(struct tar *t);
