/* A shim for LD_PRELOAD: the FM_K-th allocation of the process (malloc, calloc, realloc,
 * aligned_alloc; counted on through fork) fails, and with FM_ALL set every later one. Programs that
 * it executes are left alone, and so is what happens before main: a library that sets itself up
 * there (GnuTLS, below libcurl) says of a failure what it likes.
 *
 * With FM_TABLE=FIRST:LAST:STEP main is run for every such k in turn, each in a process forked
 * where main begins (failtable.h): what a start costs is paid once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "failtable.h"

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static unsigned long count, fails_at;
static unsigned long
    *most; /* allocations of the largest process so far, shared; NULL: not counted */
static bool all, less, running; /* less: only smaller blocks; running: main has begun */
static int (*real_main)(int, char **, char **);

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

/* At the first allocation: libraries allocate in constructors that run before this one's would. */
static bool resolve(void)
{
    static bool busy;
    if (real_malloc == NULL && !busy) {
        busy = true;
        real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
        real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
        real_aligned = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
        real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    }
    return real_malloc != NULL;
}

static char **main_argv, **main_env;

static int main_failing(unsigned long k)
{
    int argc = 0;
    while (main_argv[argc] != NULL) {
        argc++;
    }
    fails_at = k;
    running = true;
    return real_main(argc, main_argv, main_env);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

static int begin(int argc, char **argv, char **env)
{
    (void)argc;
    main_argv = argv;
    main_env = env;
    all = is_set("FM_ALL");
    less = is_set("FM_LESS");
    (void)unsetenv("LD_PRELOAD");
    const char *table = getenv("FM_TABLE");
    const char *k = getenv("FM_K");
    if (table == NULL || table[0] == '\0') {
        return main_failing(k != NULL ? strtoul(k, NULL, 10) : 0);
    }
    void *page =
        mmap(NULL, sizeof *most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    most = page != MAP_FAILED ? page : NULL;
    return most != NULL ? failtable(table, main_failing, most) : 2;
}

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end);
int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end)
{
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *);
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    memcpy(&next, &symbol, sizeof next);
    real_main = program;
    return next(begin, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Asked for so many bytes in the place of P (NULL: in none). */
static bool fails(void *p, size_t bytes)
{
    if (!running || (less && (p == NULL || bytes >= malloc_usable_size(p)))) {
        return false;
    }
    unsigned long n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (most != NULL && fails_at == 0 && n > *most) {
        *most = n;
    }
    if (fails_at == 0 || (all ? n < fails_at : n != fails_at)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    if (!resolve()) {
        return early_alloc(n);
    }
    return fails(NULL, n) ? NULL : real_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    if (!resolve()) {
        return early_alloc(n * each);
    }
    return fails(NULL, n * each) ? NULL : real_calloc(n, each);
}

void *aligned_alloc(size_t to, size_t n)
{
    return !resolve() || fails(NULL, n) ? NULL : real_aligned(to, n);
}

void *realloc(void *p, size_t n)
{
    if (!resolve() || is_early(p)) {
        void *q = real_malloc != NULL ? real_malloc(n) : early_alloc(n);
        if (q != NULL && p != NULL) {
            memcpy(q, p, n); /* early blocks end within `early` */
        }
        return q;
    }
    return fails(p, n) ? NULL : real_realloc(p, n);
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
