/* A stream that compresses what is written to it. */
#define _GNU_SOURCE /* fopencookie */
#include <sys/types.h>
#include <zlib.h>

#include "sim/base/output.h"

struct packed {
    gzFile to;
    int failed; /* errno of the first write that failed; zlib does not repeat it */
};

static ssize_t gzip_write(void *cookie, const char *bytes, size_t n)
{
    struct packed *p = cookie;
    errno = 0;
    int put = gzwrite(p->to, bytes, (unsigned)n); /* n is a buffer of stdio, far below 4 GB */
    if (put <= 0 && n > 0) {
        p->failed = p->failed != 0 ? p->failed : errno != 0 ? errno : EIO;
        errno = p->failed;
        return 0; /* how fopencookie's write reports errors; errno is set */
    }
    return put;
}

static int gzip_close(void *cookie)
{
    OWNED struct packed *p = cookie;
    errno = 0;
    int rc = gzclose_w(p->to);
    errno = p->failed != 0 ? p->failed : rc != Z_OK && errno == 0 ? EIO : errno;
    return rc == Z_OK && p->failed == 0 ? 0 : -1;
}

FILE *output_gzip(int fd)
{
    gzFile to = gzdopen(fd, "wb");
    struct packed *p = to != NULL ? xcalloc(1, sizeof *p) : NULL;
    static const cookie_io_functions_t io = {.write = gzip_write, .close = gzip_close};
    if (p != NULL) {
        p->to = to;
    }
    return p != NULL ? fopencookie(p, "w", io) : NULL;
}
