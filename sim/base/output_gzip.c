/* A stream that packs what is written to it. */
#define _GNU_SOURCE /* fopencookie */
#include <sys/types.h>
#include <zlib.h>

#include "sim/base/output.h"

static ssize_t gzip_write(void *cookie, const char *bytes, size_t n)
{
    gzFile to = cookie;
    errno = 0;
    int put = gzwrite(to, bytes, (unsigned)n); /* a buffer of stdio: far below 4 GB */
    if (put <= 0 && n > 0) {
        errno = errno != 0 ? errno : EIO;
        return 0; /* to fopencookie an error, which errno names */
    }
    return put;
}

static int gzip_close(void *cookie)
{
    errno = 0;
    int rc = gzclose_w(cookie);
    errno = rc != Z_OK && errno == 0 ? EIO : errno;
    return rc == Z_OK ? 0 : -1;
}

FILE *output_gzip(int fd)
{
    gzFile to = gzdopen(fd, "wb");
    static const cookie_io_functions_t io = {.write = gzip_write, .close = gzip_close};
    return to != NULL ? fopencookie(to, "w", io) : NULL;
}
