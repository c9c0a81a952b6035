#include "sim/base/base.h"

static void add(struct err *e, const char *fmt, va_list ap)
{
    if (e->n < ERR_MAX_LINES) {
        e->lines[e->n] = text_visible(xvformat(fmt, ap), "");
    }
    e->n++;
}

int err_add(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(e, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

void *err_null(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(e, fmt, ap);
    va_end(ap);
    return NULL;
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
