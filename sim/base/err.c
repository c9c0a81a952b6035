#include "sim/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "sim/base/arena.h"

int err_add(struct err *e, const char *fmt, ...)
{
    if (e->n < ERR_MAX_LINES) {
        va_list ap;
        va_start(ap, fmt);
        va_list again;
        va_copy(again, ap);
        int len = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        size_t size = len < 0 ? 1 : (size_t)len + 1;
        char *line = xmalloc(size);
        line[0] = '\0';
        (void)vsnprintf(line, size, fmt, again);
        va_end(again);
        e->lines[e->n] = line;
    }
    e->n++;
    return -EINVAL;
}

void err_print(const struct err *e, FILE *out)
{
    size_t stored = e->n < ERR_MAX_LINES ? e->n : ERR_MAX_LINES;
    for (size_t i = 0; i < stored; i++) {
        fprintf(out, "xpusim: error: %s\n", e->lines[i]);
    }
    if (e->n > stored) {
        fprintf(out, "xpusim: error: and %zu more\n", e->n - stored);
    }
}

void err_fini(struct err *e)
{
    size_t stored = e->n < ERR_MAX_LINES ? e->n : ERR_MAX_LINES;
    for (size_t i = 0; i < stored; i++) {
        free(e->lines[i]);
        e->lines[i] = NULL;
    }
    e->n = 0;
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
