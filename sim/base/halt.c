#include "sim/base/halt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The only state that the signal handler uses. */
static struct halt_file *volatile files;

void halt_removes(struct halt_file *file)
{
    file->owner = getpid();
    file->next = files;
    files = file;
}

void halt_keeps(struct halt_file *file)
{
    if (files == file) {
        files = file->next;
    }
    for (struct halt_file *x = files; x != NULL; x = x->next) {
        x->next = x->next == file ? file->next : x->next;
    }
}

void halt_remove_all(void)
{
    for (struct halt_file *f = files; f != NULL; f = f->next) {
        if (f->path != NULL && f->owner == getpid()) {
            (void)unlink(f->path);
        }
    }
}

_Noreturn void out_of_memory(size_t bytes)
{
    (void)fprintf(stderr, "xpusim: error: out of memory");
    if (bytes > 0) {
        (void)fprintf(stderr, " (%zu bytes asked for)", bytes);
    }
    (void)fputc('\n', stderr);
    halt_remove_all();
    _exit(EXIT_NO_MEMORY); /* does not flush buffers: partial results must not be printed */
}

_Noreturn void sim_require_failed(const char *file, int line, const char *func, const char *cond,
                                  const char *fmt, ...)
{
    fprintf(stderr, "xpusim: %s:%d: %s: requirement failed: %s: ", file, line, func, cond);
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
