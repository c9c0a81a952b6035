/* Memory that lives as long as a run: bump allocation in growing blocks, freed at once. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "sim/base/halt.h"

struct arena_block;
/* Where blocks come from. NULL of an arena: the heap. */
struct arena_source {
    void *(*take)(void *ctx, size_t *bytes); /* zeroed, at least so many: *bytes is how many */
    void (*give)(void *ctx, void *block, size_t bytes);
    void *ctx;
};
/* Pages of their own between two that nobody can touch. */
extern const struct arena_source arena_fenced;

struct arena {
    struct arena_block *head;
    const struct arena_source *source; /* borrowed */
};

void arena_init(struct arena *a, const struct arena_source *source);
void arena_fini(struct arena *a);
/* Zeroed, 16-byte aligned, never NULL (out of memory ends the process with a message). */
void *arena_alloc(struct arena *a, size_t bytes);

/* Lists of objects to be used again, which are linked by their member next_free. TAKE gives the one
 * that was put there last, as it was left, or a new one of the arena where the list is empty. */
#define FREE_PUT(list, x) ((x)->next_free = (list), (void)((list) = (x)))
#define FREE_TAKE(list, arena, x)                                                                  \
    ((x) = (list), (x) != NULL ? (void)((list) = (x)->next_free)                                   \
                               : (void)((x) = arena_alloc((arena), sizeof *(x))))

/* malloc/calloc/realloc that end the process with a message instead of returning NULL. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t n, size_t bytes);
/* Zeroed, from the begin of a cache line on: for what is touched so often that a run must not be
 * slower because of what was allocated before it. */
#define CACHE_LINE_BYTES 64
void *xlines(size_t bytes);
void *xrealloc(void *p, size_t bytes);
/* Room for one more element in a list of n that was only ever lengthened by this. It doubles at
 * powers of two; so a list that is emptied and filled again and again wants another. */
void *xgrow(void *v, size_t n, size_t element_bytes);
/* Adds a value to such a list. */
#define LIST_ADD(v, n, ...) ((v) = xgrow((v), (n), sizeof *(v)), (void)((v)[(n)++] = (__VA_ARGS__)))

/* Room for n elements in a list that has it for *cap, which at least doubles when it grows. */
static inline void *xroom(void *v, size_t n, size_t *cap, size_t element_bytes)
{
    if (n > *cap) {
        *cap = 2 * *cap > n ? 2 * *cap : n < 32 ? 32 : n;
        v = xrealloc(v, *cap * element_bytes);
    }
    return v;
}
/* Takes memory over that malloc gave, and returns it: the command has it until it ends, and nobody
 * frees it. It is for what a command makes once. Each run of a loop owns what it makes.
 */
void *xkept(void *memory);
/* As xgrow, for a list that is kept. */
void *xkept_grow(void *v, size_t n, size_t element_bytes);
#define KEPT_ADD(v, n, ...)                                                                        \
    ((v) = xkept_grow((v), (n), sizeof *(v)), (void)((v)[(n)++] = (__VA_ARGS__)))
char *xstrdup(const char *s);
/* As snprintf, with the room it takes: what a user wrote is not cut. The caller frees it. */
char *xformat(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvformat(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));
/* Takes a text over, which lives as long as the process from now on; of equal ones the first stays,
 * so equal ones are one pointer. For texts that are named again and again: paths, parameters. */
const char *xkeep(char *text);
