#define _GNU_SOURCE /* SA_ONSTACK */
#include "sim/base/halt.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A signal handler reaches nothing but this. */
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

static void remove_and_end(int sig)
{
    halt_remove_all();
    (void)raise(sig); /* SA_RESETHAND: the default action now, once this one has returned */
}

void halt_on(const int *signals, size_t n)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remove_and_end;
    action.sa_flags = (int)SA_RESETHAND | SA_ONSTACK;
    for (size_t i = 0; i < n; i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
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
    _exit(EXIT_NO_MEMORY); /* nothing buffered is flushed: half a result is none */
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
