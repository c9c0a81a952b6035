#include "experiments/shell/markup.h"

#include "sim/base/base.h"

void markup_put(FILE *out, const char *text)
{
    static const char special[] = "<>&\"";
    static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    for (; *text != '\0'; text++) {
        const char *at = strchr(special, *text);
        if (at != NULL) {
            (void)fputs(names[at - special], out);
        } else {
            (void)fputc((unsigned char)*text < 0x20 && *text != '\n' ? ' ' : *text, out);
        }
    }
}

/* Prints one conversion, such as "%.1f". */
static void put_one(FILE *out, const char *one, size_t n, va_list *values)
{
    OWNED char *spec = xformat("%.*s", (int)n, one);
    if (spec[n - 1] == 's') {
        markup_put(out, va_arg(*values, const char *));
    } else if (spec[n - 1] == 'u') {
        (void)fprintf(out, "%u", va_arg(*values, unsigned));
    } else {
        (void)fprintf(out, spec, va_arg(*values, double));
    }
}

void markup_format(FILE *out, const char *fmt, ...)
{
    va_list values;
    va_start(values, fmt);
    while (*fmt != '\0') {
        size_t n = fmt[0] != '%' ? strcspn(fmt, "%") : fmt[1] == '%' ? 2 : strcspn(fmt, "sufg") + 1;
        if (fmt[0] == '%' && fmt[1] != '%') {
            put_one(out, fmt, n, &values);
        } else {
            (void)fwrite(fmt, 1, fmt[0] == '%' ? 1 : n, out);
        }
        fmt += n;
    }
    va_end(values);
}
