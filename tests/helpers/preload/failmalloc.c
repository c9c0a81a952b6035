/* A shim for LD_PRELOAD: the FM_K-th allocation of the process (malloc, calloc, realloc; counted on
 * through fork) fails, and with FM_ALL set every later one. What is executed in turn is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static unsigned long count, fails_at;
static bool all;

/* dlsym allocates before the real functions are known. */
static unsigned char early[65536];
static size_t early_n;

static void *early_alloc(size_t n)
{
    n = (n + 15) & ~(size_t)15;
    void *p = early_n + n <= sizeof early ? early + early_n : NULL;
    early_n += n;
    return p;
}

static bool is_early(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)early && (uintptr_t)p < (uintptr_t)early + sizeof early;
}

__attribute__((constructor)) static void start(void)
{
    real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    const char *k = getenv("FM_K");
    fails_at = k != NULL ? strtoul(k, NULL, 10) : 0;
    const char *every = getenv("FM_ALL");
    all = every != NULL && every[0] != '\0';
    (void)unsetenv("LD_PRELOAD");
    count = 0;
}

static bool fails(void)
{
    unsigned long n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (fails_at == 0 || (all ? n < fails_at : n != fails_at)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    if (real_malloc == NULL) {
        return early_alloc(n);
    }
    return fails() ? NULL : real_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    if (real_calloc == NULL) {
        return early_alloc(n * each);
    }
    return fails() ? NULL : real_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
    if (real_realloc == NULL || is_early(p)) {
        void *q = real_malloc != NULL ? real_malloc(n) : early_alloc(n);
        if (q != NULL && p != NULL) {
            memcpy(q, p, n); /* early blocks end within `early` */
        }
        return q;
    }
    return fails() ? NULL : real_realloc(p, n);
}

void free(void *p)
{
    static void (*real_free)(void *);
    if (is_early(p)) {
        return;
    }
    if (real_free == NULL) {
        real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    }
    real_free(p);
}
