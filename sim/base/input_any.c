/* Streams that decompress gzip and allow a look at their first bytes. */
#define _GNU_SOURCE /* fopencookie */
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/input.h"

struct any {
    gzFile from; /* passes data that is not gzip through */
    char head[INPUT_HEAD_BYTES];
    size_t at, n; /* head[at..n) has still to be read again */
};

/* Reads up to n bytes. Returns their number, or -1 with errno. */
static ssize_t gz_some(gzFile from, char *out, size_t n)
{
    errno = 0;
    int got = gzread(from, out, (unsigned)n);
    int state = Z_OK;
    (void)gzerror(from, &state);
    if (got < 0 || state != Z_OK) { /* Z_BUF_ERROR: the file is truncated */
        errno = state == Z_MEM_ERROR ? ENOMEM : errno != 0 ? errno : EBADMSG;
        return -1;
    }
    return got;
}

static ssize_t any_read(void *cookie, char *out, size_t n)
{
    struct any *a = cookie;
    if (a->at < a->n) {
        size_t left = a->n - a->at;
        size_t take = n < left ? n : left;
        memcpy(out, a->head + a->at, take);
        a->at += take;
        return (ssize_t)take;
    }
    return gz_some(a->from, out, n < INPUT_HEAD_BYTES ? n : INPUT_HEAD_BYTES);
}

static int any_close(void *cookie)
{
    OWNED struct any *a = cookie;
    (void)gzclose_r(a->from);
    return 0;
}

static int fill_head(struct any *a)
{
    while (a->n < sizeof a->head - 1) {
        ssize_t got = gz_some(a->from, a->head + a->n, sizeof a->head - 1 - a->n);
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        a->n += (size_t)got;
    }
    return 0;
}

FILE *input_open_any(const char *path, char *head, struct err *e)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? dup(STDIN_FILENO) : -1;
    errno = 0;
    gzFile from = standard ? gzdopen(fd, "rb") : gzopen(path, "rb");
    if (from == NULL) {
        errno = errno != 0 ? errno : ENOMEM;
        (void)input_failed(path, e);
        return NULL;
    }
    struct any *a = xcalloc(1, sizeof *a);
    a->from = from;
    static const cookie_io_functions_t io = {.read = any_read, .close = any_close};
    FILE *f = fill_head(a) == 0 ? fopencookie(a, "r", io) : NULL;
    if (f == NULL) {
        (void)input_failed(path, e);
        (void)any_close(a);
        return NULL;
    }
    input_opened(path);
    a->head[a->n] = '\0';
    a->at = a->n >= 3 && memcmp(a->head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (head != NULL) {
        memcpy(head, a->head + a->at, a->n - a->at + 1);
    }
    return f;
}
