#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fopencookie */
#endif
#include "sim/base/memory.h"

#include <cjson/cJSON.h>
#include <gsl/gsl_errno.h>

#include "sim/base/base.h"

static void gsl_failed(const char *reason, const char *file, int line, int code)
{
    if (code == GSL_ENOMEM) {
        out_of_memory(0);
    }
    sim_require_failed(file, line, "GSL", gsl_strerror(code), "%s", reason);
}

void memory_guard(void)
{
    cJSON_Hooks hooks = {xmalloc, free};
    cJSON_InitHooks(&hooks);
    (void)gsl_set_error_handler(gsl_failed);
}

/* A stream whose text is published to the caller's pointers. */
struct stream {
    struct text text;
    char **to;
    size_t *size;
};

static void publish(struct stream *s)
{
    text_room(&s->text, 1);
    s->text.p[s->text.n] = '\0';
    *s->to = s->text.p;
    *s->size = s->text.n;
}

static ssize_t stream_write(void *cookie, const char *data, size_t n)
{
    struct stream *s = cookie;
    text_add(&s->text, data, n);
    publish(s);
    return (ssize_t)n;
}

static int stream_close(void *cookie)
{
    free(cookie);
    return 0;
}

/* Not open_memstream: if its buffer cannot grow, fwrite and fputs lose data, and ferror does not
 * report it. */
FILE *memory_stream(char **text, size_t *size)
{
    struct stream *s = xcalloc(1, sizeof *s);
    s->to = text;
    s->size = size;
    publish(s);
    FILE *f =
        fopencookie(s, "w", (cookie_io_functions_t){.write = stream_write, .close = stream_close});
    if (f == NULL) {
        out_of_memory(0);
    }
    return f;
}

void memory_stream_flush(FILE *f)
{
    if (fflush(f) != 0 || ferror(f) != 0) {
        out_of_memory(0);
    }
}

void memory_stream_close(FILE *f, char *const *text)
{
    memory_stream_flush(f);
    if (fclose(f) != 0) {
        out_of_memory(0);
    }
    SIM_ASSERT(*text != NULL);
}
