#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <search.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/base.h"

/* LeakSanitizer does not search mapped pages for pointers unless they are registered. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define LEAKS_LOOK_AT(p, bytes) __lsan_register_root_region(p, bytes)
#define LEAKS_LEAVE(p, bytes) __lsan_unregister_root_region(p, bytes)
#else
#define LEAKS_LOOK_AT(p, bytes) ((void)(p), (void)(bytes))
#define LEAKS_LEAVE(p, bytes) ((void)(p), (void)(bytes))
#endif

/* Blocks double from 64 KiB to 4 MiB: few mallocs in long runs, little waste in short ones. */
#define ARENA_FIRST_BYTES ((size_t)64 << 10)
#define ARENA_LARGEST_BYTES ((size_t)4 << 20)

/* A block from the heap has its data in `own`. A source's blocks are separate from this header,
 * because code may be allowed to write to them and to nothing else. */
struct arena_block {
    struct arena_block *next;
    size_t size, used;
    char *data;
    _Alignas(CACHE_LINE_BYTES) char own[];
};

void *xmalloc(size_t bytes)
{
    void *p = malloc(bytes == 0 ? 1 : bytes);
    if (p == NULL) {
        out_of_memory(bytes);
    }
    return p;
}

void *xcalloc(size_t n, size_t bytes)
{
    void *p = calloc(n == 0 ? 1 : n, bytes == 0 ? 1 : bytes);
    if (p == NULL) {
        out_of_memory(n * bytes);
    }
    return p;
}

void *xlines(size_t bytes)
{
    size_t whole = (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    void *p = aligned_alloc(CACHE_LINE_BYTES, whole);
    if (p == NULL) {
        out_of_memory(bytes);
    }
    return memset(p, 0, whole);
}

void *xrealloc(void *old, size_t bytes)
{
    void *p = realloc(old, bytes == 0 ? 1 : bytes);
    if (p == NULL) {
        out_of_memory(bytes);
    }
    return p;
}

/* The arguments n and element_bytes are easily swapped, as both are numbers. This catches it if the
 * list has no elements yet, or elements of size 0. */
static void require_list(const void *v, size_t n, size_t element_bytes)
{
    SIM_REQUIRE(element_bytes > 0 && (n == 0 || v != NULL), "a list of %zu x %zu bytes is nowhere",
                n, element_bytes);
}

void *xgrow(void *v, size_t n, size_t element_bytes)
{
    require_list(v, n, element_bytes);
    bool full = (n & (n - 1)) == 0; /* 0, 1, 2, 4, 8, ... */
    return full ? xrealloc(v, (n > 0 ? 2 * n : 1) * element_bytes) : v;
}

/* Keeps the memory reachable, so that leak checkers do not report it. */
static struct kept {
    struct kept *before;
    void *memory;
} * last_kept;

void *xkept(void *memory)
{
    struct kept *k = xmalloc(sizeof *k);
    *k = (struct kept){last_kept, memory};
    last_kept = k;
    return memory;
}

void *xkept_grow(void *v, size_t n, size_t element_bytes)
{
    require_list(v, n, element_bytes);
    if ((n & (n - 1)) != 0) {
        return v;
    }
    void *larger = xkept(xmalloc((n > 0 ? 2 * n : 1) * element_bytes));
    return n > 0 ? memcpy(larger, v, n * element_bytes) : larger;
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xmalloc(n), s, n);
}

char *xvformat(const char *fmt, va_list args)
{
    va_list counted;
    va_copy(counted, args);
    int n = vsnprintf(NULL, 0, fmt, counted);
    va_end(counted);
    SIM_REQUIRE(n >= 0, "a format that cannot be printed: %s", fmt);
    char *text = xmalloc((size_t)n + 1);
    (void)vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

char *xformat(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = xvformat(fmt, args);
    va_end(args);
    return text;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *xkeep(char *text)
{
    static void *kept;
    char **found = tsearch(text, &kept, compare);
    if (found == NULL) {
        out_of_memory(0);
    }
    if (*found != text) {
        free(text);
    }
    return *found;
}

/* ---- guarded pages ---- */

static size_t fence_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *fenced_take(void *ctx UNUSED, size_t *bytes)
{
    size_t fence = fence_bytes();
    *bytes = (*bytes + fence - 1) / fence * fence;
    char *p = mmap(NULL, *bytes + 2 * fence, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + fence, *bytes, PROT_READ | PROT_WRITE) != 0) {
        out_of_memory(*bytes);
    }
    LEAKS_LOOK_AT(p + fence, *bytes);
    return p + fence;
}

static void fenced_give(void *ctx UNUSED, void *block, size_t bytes)
{
    size_t fence = fence_bytes();
    LEAKS_LEAVE(block, bytes);
    (void)munmap((char *)block - fence, bytes + 2 * fence);
}

const struct arena_source arena_fenced = {fenced_take, fenced_give, NULL};

/* ---- arenas ---- */

void arena_init(struct arena *a, const struct arena_source *source)
{
    *a = (struct arena){.source = source};
}

void arena_fini(struct arena *a)
{
    struct arena_block *b = a->head;
    while (b != NULL) {
        struct arena_block *next = b->next;
        if (a->source != NULL) {
            a->source->give(a->source->ctx, b->data, b->size);
        }
        free(b);
        b = next;
    }
    arena_init(a, a->source);
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct arena_block *b = a->head;
    if (b == NULL || b->size - b->used < bytes) {
        size_t size = b == NULL ? ARENA_FIRST_BYTES : b->size * 2;
        size = size < ARENA_LARGEST_BYTES ? size : ARENA_LARGEST_BYTES;
        /* An object larger than a block gets its own, after the head, which stays in use. */
        struct arena_block **at = size < bytes && b != NULL ? &b->next : &a->head;
        size = size < bytes ? bytes : size;
        b = xlines(sizeof *b + (a->source == NULL ? size : 0));
        b->data = a->source == NULL ? b->own : a->source->take(a->source->ctx, &size);
        b->next = *at;
        b->size = size;
        *at = b;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    SIM_ASSERT(b->used <= b->size && (uintptr_t)p % 16 == 0);
    return p;
}
