#include "sim/base/base.h"

void text_format(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    OWNED char *more = xvformat(fmt, args);
    va_end(args);
    text_string(t, more);
}

char *text_visible(char *text, const char *keep)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        bool ascii = (*p < ' ' || *p == 0x7f) && strchr(keep, *p) == NULL;
        bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f; /* in UTF-8; 0x9b begins a sequence */
        if (ascii || c1) {
            *p = '?';
            p[1] = c1 ? '?' : p[1];
        }
    }
    return text;
}
