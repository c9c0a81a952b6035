#include "sim/base/input.h"

static struct {
    void (*opened)(void *ctx, const char *path);
    void *ctx;
} watcher;

void input_watch(void (*opened)(void *ctx, const char *path), void *ctx)
{
    watcher.opened = opened;
    watcher.ctx = ctx;
}

void input_opened(const char *path)
{
    if (watcher.opened != NULL) {
        watcher.opened(watcher.ctx, path);
    }
}

FILE *input_try(const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL && errno == ENOMEM) {
        out_of_memory(0);
    }
    if (f != NULL) {
        input_opened(path);
    }
    return f;
}

int input_failed(const char *path, struct err *e)
{
    if (errno == ENOMEM) {
        out_of_memory(0);
    }
    return err_add(e, "%s: %s", path,
                   errno == EBADMSG ? "the packed file is damaged or cut off" : strerror(errno));
}

FILE *input_open(const char *path, struct err *e)
{
    FILE *f = input_try(path);
    if (f == NULL) {
        (void)input_failed(path, e);
    }
    return f;
}

const char *input_utf16_hint(const char *text, size_t n)
{
    bool is = n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
    return is ? " (it is UTF-16: `iconv -f UTF-16 -t UTF-8` makes one)" : "";
}

int input_next(FILE *f, const char *path, struct input_line *l, struct err *e)
{
    unsigned long long number = ++l->number;
    size_t n = 0; /* not l->n, which the compiler would have to store for each character */
    for (int c = 0; c != '\n';) {
        c = getc_unlocked(f);
        if (c == EOF) {
            break;
        }
        if (c == '\0') {
            return err_add(e, "%s:%llu: NUL byte: not a text file%s", path, number,
                           input_utf16_hint(l->text, n));
        }
        if (n == INPUT_LINE_BYTES) {
            return err_add(e, "%s:%llu: a line of over %zu bytes", path, number, INPUT_LINE_BYTES);
        }
        if (n + 2 > l->cap) {
            l->text = xroom(l->text, n + 2, &l->cap, 1);
        }
        l->text[n++] = (char)c;
    }
    l->n = n;
    if (ferror(f) != 0) {
        return input_failed(path, e);
    }
    l->bytes += l->n;
    if (l->bytes > INPUT_FILE_BYTES) {
        return err_add(e, "%s:%llu: over %llu bytes up to here: more than is read of a file", path,
                       number, (unsigned long long)INPUT_FILE_BYTES);
    }
    l->text = xroom(l->text, l->n + 2, &l->cap, 1);
    l->text[l->n] = '\0';
    return l->n > 0 ? 1 : 0;
}

char *input_text(const char *path, size_t max_bytes, struct err *e)
{
    SCOPED(input_drop) FILE *f = input_open(path, e);
    return f != NULL ? input_text_of(f, path, max_bytes, e) : NULL;
}

char *input_said(FILE *f)
{
    struct text t = {0};
    rewind(f);
    for (size_t n = 1; n > 0; t.n += n) {
        text_room(&t, BUFSIZ);
        n = fread(t.p + t.n, 1, BUFSIZ, f);
    }
    (void)fclose(f);
    return text_end(&t);
}

char *input_text_of(FILE *f, const char *path, size_t max_bytes, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    size_t cap = 0;
    bool zero = false;
    for (size_t got = 1; got > 0 && n <= max_bytes && !zero; n += got) {
        text = xroom(text, n + BUFSIZ + 1, &cap, 1);
        got = fread(text + n, 1, BUFSIZ, f);
        zero = memchr(text + n, '\0', got) != NULL;
    }
    if (ferror(f) != 0) {
        (void)input_failed(path, e);
        free(text);
        return NULL;
    }
    text[n] = '\0';
    const char *wrong = zero ? "not text: a NUL byte in it" : n > max_bytes ? "too long" : NULL;
    if (wrong != NULL) {
        (void)err_add(e, "%s: %s; must be a text file of at most %zu bytes%s", path, wrong,
                      max_bytes, input_utf16_hint(text, n));
        free(text);
        return NULL;
    }
    return text;
}
