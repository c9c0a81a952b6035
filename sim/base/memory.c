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

FILE *memory_stream(char **text, size_t *size)
{
    FILE *f = open_memstream(text, size);
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
    /* glibc cuts the text to its length here; when that fails there is none, and fclose says 0 */
    if (fclose(f) != 0 || *text == NULL) {
        out_of_memory(0);
    }
}
