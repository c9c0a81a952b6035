#include "sim/base/tar.h"

#include <zlib.h>

#include "sim/base/input.h"
#include "sim/base/output.h"

#define BLOCK 512
#define END_BLOCKS 2 /* blocks of zeros at the end */

/* Numbers are octal digits with a terminator. */
struct header {
    char name[TAR_NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
    char type, link[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
    char prefix[155], unused[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

void tar_add(struct tar *t, const char *name, char *data, size_t n)
{
    t->v = xgrow(t->v, t->n, sizeof *t->v);
    struct tar_file *f = &t->v[t->n++];
    *f = (struct tar_file){.data = data, .n = n};
    (void)snprintf(f->name, sizeof f->name, "%s", name);
}

const struct tar_file *tar_find(const struct tar *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->v[i].name, name) == 0) {
            return &t->v[i];
        }
    }
    return NULL;
}

void tar_fini(struct tar *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].data);
    }
    free(t->v);
    *t = (struct tar){0};
}

/* Sum of all bytes; the sum field counts as blanks. */
static unsigned checksum(const struct header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    size_t at = offsetof(struct header, sum);
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        sum += i >= at && i < at + sizeof h->sum ? ' ' : bytes[i];
    }
    return sum;
}

/* ---- writing ---- */

static void write_file(const struct tar_file *f, FILE *out)
{
    static const char zeros[BLOCK];
    struct header h = {.mode = "0000644",
                       .uid = "0000000",
                       .gid = "0000000",
                       .mtime = "00000000000",
                       .type = '0',
                       .magic = "ustar",
                       .version = {'0', '0'}};
    memcpy(h.name, f->name, strlen(f->name));
    (void)snprintf(h.size, sizeof h.size, "%011zo", f->n);
    (void)snprintf(h.sum, sizeof h.sum, "%06o", checksum(&h));
    h.sum[7] = ' ';
    (void)fwrite(&h, sizeof h, 1, out);
    (void)fwrite(f->data, 1, f->n, out);
    (void)fwrite(zeros, 1, (BLOCK - f->n % BLOCK) % BLOCK, out);
}

int tar_write(const struct tar *t, const char *path, struct err *e)
{
    static const char zeros[BLOCK * END_BLOCKS];
    struct output *o = output_open(path, e);
    if (o == NULL) {
        return -EINVAL;
    }
    for (size_t i = 0; i < t->n; i++) {
        write_file(&t->v[i], output_stream(o));
    }
    (void)fwrite(zeros, 1, sizeof zeros, output_stream(o));
    return output_close(o, true, e);
}

/* ---- reading ---- */

struct reader {
    const char *path;
    gzFile in;
    uint64_t at, most; /* bytes read; limit */
    struct err *e;
};

static int damaged(const struct reader *r, uint64_t at, const char *what)
{
    return err_add(r->e, "%s: byte %" PRIu64 " of the unpacked archive: %s", r->path, at, what);
}

/* Whether the data read so far were intact. zlib checks a sum at the end. */
static bool is_whole(const struct reader *r)
{
    int state = Z_OK;
    (void)gzerror(r->in, &state);
    return state == Z_OK || state == Z_STREAM_END;
}

static int cut(const struct reader *r)
{
    return damaged(r, r->at,
                   is_whole(r) ? "it ends here, inside a file"
                               : "the packed file is damaged or cut off from here on");
}

/* Reads n bytes. Returns 0, or -EINVAL with an error. */
static int take(struct reader *r, void *to, size_t n)
{
    if (n > r->most - r->at) {
        return damaged(r, r->at, "larger than such an archive is");
    }
    int got = n == 0 ? 0 : gzread(r->in, to, (unsigned)n);
    r->at += got > 0 ? (uint64_t)got : 0;
    return got == (int)n ? 0 : cut(r);
}

static bool octal(const char *digits, size_t size, uint64_t *out)
{
    size_t i = 0;
    *out = 0;
    for (; i < size && digits[i] >= '0' && digits[i] <= '7'; i++) {
        *out = *out * 8 + (uint64_t)(digits[i] - '0');
    }
    return i > 0 && (i == size || digits[i] == '\0' || digits[i] == ' ');
}

static bool is_zero(const struct header *h)
{
    static const struct header zero;
    return memcmp(h, &zero, sizeof zero) == 0;
}

/* A valid name for this archive: no folder, and no control characters. */
static bool good_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strnlen(name, TAR_NAME_BYTES);
    return n > 0 && n < TAR_NAME_BYTES && strspn(name, letters) == n && name[0] != '.';
}

static int check_header(const struct reader *r, const struct header *h, uint64_t at, uint64_t *size)
{
    uint64_t sum;
    return memcmp(h->magic, "ustar", 5) != 0     ? damaged(r, at, "no header of a tar file")
           : !octal(h->sum, sizeof h->sum, &sum) ? damaged(r, at, "a header without a sum")
           : sum != checksum(h) ? damaged(r, at, "a damaged header: its sum is wrong")
           : !octal(h->size, sizeof h->size, size) ? damaged(r, at, "a size that is no number")
           : h->type != '0' && h->type != '\0'     ? damaged(r, at, "not a plain file")
           : !good_name(h->name) || h->prefix[0] != 0
               ? damaged(r, at, "a file name that none here has")
               : 0;
}

static int read_file(struct reader *r, struct tar *t, const struct header *h, uint64_t at)
{
    uint64_t size = 0;
    char unused[BLOCK];
    if (check_header(r, h, at, &size) != 0) {
        return -EINVAL;
    }
    if (tar_find(t, h->name) != NULL) {
        return damaged(r, at, "a file that was there before");
    }
    if (size > r->most) {
        return damaged(r, at, "larger than such an archive is");
    }
    char *data = xcalloc(1, (size_t)size + 1);
    if (take(r, data, (size_t)size) != 0 ||
        take(r, unused, (size_t)((BLOCK - size % BLOCK) % BLOCK)) != 0) {
        free(data);
        return -EINVAL;
    }
    tar_add(t, h->name, data, (size_t)size);
    return 0;
}

int tar_read(struct tar *t, const char *path, uint64_t most, struct err *e)
{
    *t = (struct tar){0};
    SIM_REQUIRE(most < INT32_MAX, "%" PRIu64 " bytes", most);
    struct reader r = {.path = path, .in = gzopen(path, "rb"), .most = most, .e = e};
    if (r.in == NULL) {
        return err_add(e, "%s: cannot be read: %s", path, strerror(errno));
    }
    input_opened(path);
    int rc = 0;
    for (bool end = false; rc == 0 && !end;) {
        struct header h;
        uint64_t at = r.at;
        rc = take(&r, &h, sizeof h);
        end = rc == 0 && is_zero(&h);
        rc = rc == 0 && !end ? read_file(&r, t, &h, at) : rc;
    }
    char rest[BLOCK];
    for (int got = 1; rc == 0 && got > 0 && r.at < most;) {
        got = gzread(r.in, rest, sizeof rest);
        r.at += got > 0 ? (uint64_t)got : 0;
        rc = got < 0 || !is_whole(&r) ? cut(&r) : 0;
    }
    (void)gzclose_r(r.in);
    return rc;
}
