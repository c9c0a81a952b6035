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
        bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f; /* UTF-8; 0x9b starts an escape */
        if (ascii || c1) {
            *p = '?';
            p[1] = c1 ? '?' : p[1];
        }
    }
    return text;
}

const char *text_short(char buf[TEXT_SHORT_BYTES], double x)
{
    double size = fabs(x);
    if (size >= 9999.5 && size < 1e7) {
        double unit = size < 1e5 ? 10.0 : size < 1e6 ? 100.0 : 1000.0;
        (void)snprintf(buf, TEXT_SHORT_BYTES, "%.0f", round(x / unit) * unit);
    } else {
        (void)snprintf(buf, TEXT_SHORT_BYTES, "%.4g", x);
    }
    return buf;
}

bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool text_ends(const char *text, const char *with)
{
    size_t n = strlen(text);
    size_t k = strlen(with);
    return n > k && strcmp(text + n - k, with) == 0;
}

const char *text_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void texts_add(struct texts *l, const char *text)
{
    LIST_ADD(l->v, l->n, xstrdup(text));
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

/* ---- lists in one string ---- */

/* Compares each item up to the first character of `ends` (a key ends before its item). */
static const char *list_find(const char *list, char separator, const char *ends, const char *what,
                             size_t n)
{
    const char *at = list;
    while (at != NULL && *at != '\0' && (strcspn(at, ends) != n || strncmp(at, what, n) != 0)) {
        at = strchr(at, separator);
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL && *at != '\0' ? at : NULL;
}

const char *text_list_item(const char *list, char separator, const char *item, size_t n)
{
    return list_find(list, separator, (const char[]){separator, '\0'}, item, n);
}

const char *text_list_key(const char *list, const char *key, size_t n)
{
    return list_find(list, ',', "=,", key, n);
}
