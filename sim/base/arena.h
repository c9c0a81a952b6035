/* A bump allocator in growing blocks: memory that lives as long as a run and is freed at once. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "sim/base/halt.h"

struct arena_block;
/* An allocator of blocks. An arena without one (NULL) uses the heap. */
struct arena_source {
    void *(*take)(void *ctx, size_t *bytes); /* at least *bytes, zeroed; sets *bytes to the size */
    void (*give)(void *ctx, void *block, size_t bytes);
    void *ctx;
};
/* Maps each block in pages of its own, between two pages that cannot be accessed. */
extern const struct arena_source arena_fenced;

struct arena {
    struct arena_block *head;
    const struct arena_source *source; /* borrowed */
};

void arena_init(struct arena *a, const struct arena_source *source);
void arena_fini(struct arena *a);
/* Zeroed, 16-byte aligned, never NULL (out of memory ends the process with a message). */
void *arena_alloc(struct arena *a, size_t bytes);

/* Free lists, linked by the member next_free. FREE_TAKE gives the object that was put last, with
 * its old contents. If the list is empty it allocates a new object from the arena. */
#define FREE_PUT(list, x) ((x)->next_free = (list), (void)((list) = (x)))
#define FREE_TAKE(list, arena, x)                                                                  \
    ((x) = (list), (x) != NULL ? (void)((list) = (x)->next_free)                                   \
                               : (void)((x) = arena_alloc((arena), sizeof *(x))))

/* malloc/calloc/realloc that end the process with a message instead of returning NULL. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t n, size_t bytes);
/* Zeroed and aligned to a cache line. For objects in frequent use, so that the speed of a run does
 * not depend on earlier allocations. */
#define CACHE_LINE_BYTES 64
void *xlines(size_t bytes);
void *xrealloc(void *p, size_t bytes);
/* Room for one more element in a list of n that only grows by this function. The capacity is not
 * stored: it doubles at powers of two. For a list that shrinks use xroom. */
void *xgrow(void *v, size_t n, size_t element_bytes);
/* Appends a value to a list that xgrow grows. */
#define LIST_ADD(v, n, ...) ((v) = xgrow((v), (n), sizeof *(v)), (void)((v)[(n)++] = (__VA_ARGS__)))

/* Room for n elements in a list with capacity *cap, which at least doubles when it grows. */
static inline void *xroom(void *v, size_t n, size_t *cap, size_t element_bytes)
{
    if (n > *cap) {
        *cap = 2 * *cap > n ? 2 * *cap : n < 32 ? 32 : n;
        v = xrealloc(v, *cap * element_bytes);
    }
    return v;
}
/* Registers memory from malloc as in use until the process ends, and returns it. It is never freed.
 * For objects that a command makes once; each run of a loop owns its objects. */
void *xkept(void *memory);
/* As xgrow, for a list that is never freed (xkept). */
void *xkept_grow(void *v, size_t n, size_t element_bytes);
#define KEPT_ADD(v, n, ...)                                                                        \
    ((v) = xkept_grow((v), (n), sizeof *(v)), (void)((v)[(n)++] = (__VA_ARGS__)))
char *xstrdup(const char *s);
/* As sprintf, into memory of sufficient size: users' texts are never cut. The caller frees it. */
char *xformat(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvformat(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));
/* Takes over a text and keeps it until the process ends. Only the first of several equal texts is
 * kept, so they have equal pointers. For texts that occur repeatedly: paths, parameters. */
const char *xkeep(char *text);
