#include "sim/base/text.h"

#include <stdarg.h>

void text_format(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *more = xvformat(fmt, args);
    va_end(args);
    text_string(t, more);
    free(more);
}
