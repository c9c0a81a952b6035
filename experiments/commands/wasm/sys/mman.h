/* Pages for sim/base/arena.c in a browser: memory of the heap. A page's memory has no protection,
 * so nothing fences it; every other build finds out who writes where he may not. */
#pragma once

#include <stdlib.h>

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_FAILED NULL

static inline void *mmap(void *at, size_t bytes, int protection, int flags, int fd, long offset)
{
    (void)at;
    (void)protection;
    (void)flags;
    (void)fd;
    (void)offset;
    return calloc(1, bytes);
}

static inline int mprotect(void *at, size_t bytes, int protection)
{
    (void)at;
    (void)bytes;
    (void)protection;
    return 0;
}

static inline int munmap(void *at, size_t bytes)
{
    (void)bytes;
    free(at);
    return 0;
}
