#include "experiments/shell/markup.h"

void markup_put(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '"':
            (void)fputs("&quot;", out);
            break;
        case '\n':
            (void)fputc('\n', out);
            break;
        default:
            (void)fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
        }
    }
}
