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

void texts_add(struct texts *l, const char *text)
{
    l->v = xgrow(l->v, l->n, sizeof *l->v);
    l->v[l->n++] = xstrdup(text);
}

size_t texts_find(const struct texts *l, const char *text)
{
    size_t i = 0;
    while (i < l->n && strcmp(l->v[i], text) != 0) {
        i++;
    }
    return i;
}

size_t texts_index(struct texts *l, const char *text)
{
    size_t i = texts_find(l, text);
    if (i == l->n) {
        texts_add(l, text);
    }
    return i;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void texts_sort(struct texts *l)
{
    if (l->n > 1) {
        qsort(l->v, l->n, sizeof *l->v, by_bytes);
    }
}

void texts_fini(struct texts *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i]);
    }
    free(l->v);
    *l = (struct texts){0};
}
