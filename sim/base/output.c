#include "sim/base/output.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#define MAX_LINKS 40 /* as in the kernel: more links are a loop */

struct output {
    FILE *f;
    char *path;                 /* as the user gave it, for messages */
    char *target;               /* the path, symbolic links resolved */
    char *beside;               /* temporary name in the target's folder */
    struct halt_file temporary; /* path NULL: no temporary file (written directly, or none yet) */
};

/* A resolved path, and whether a rename can replace it. */
struct place {
    char path[PATH_MAX];
    bool through; /* write directly: a device, a pipe, an open descriptor */
    mode_t mode;  /* permissions of the existing or the new file */
};

/* Replaces p->path by the target of that link. Returns 0 or -errno. */
static int follow(struct place *p)
{
    char says[PATH_MAX];
    ssize_t n = readlink(p->path, says, sizeof says - 1);
    if (n < 0) {
        return -errno;
    }
    says[n] = '\0';
    char *slash = strrchr(p->path, '/');
    size_t dir = says[0] == '/' || slash == NULL ? 0 : (size_t)(slash - p->path) + 1;
    if (dir + (size_t)n >= sizeof p->path) {
        return -ENAMETOOLONG;
    }
    memcpy(p->path + dir, says, (size_t)n + 1);
    return 0;
}

/* Resolves the path. Returns 0 or -errno. */
static int find_place(const char *path, struct place *p)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    p->through = false;
    p->mode = 0666 & ~mask;
    if (strlen(path) >= sizeof p->path) {
        return -ENAMETOOLONG;
    }
    (void)strcpy(p->path, path);
    for (int links = 0;; links++) {
        struct stat s;
        if (lstat(p->path, &s) != 0) {
            return errno == ENOENT ? 0 : -errno;
        }
        if (!S_ISLNK(s.st_mode)) {
            p->mode = s.st_mode & 07777;
            p->through = !S_ISREG(s.st_mode);
            return p->through || access(p->path, W_OK) == 0 ? 0 : -errno;
        }
        if (strncmp(p->path, "/proc/", 6) == 0) { /* an open file, wherever it is */
            p->through = true;
            return 0;
        }
        int rc = links == MAX_LINKS ? -ELOOP : follow(p);
        if (rc != 0) {
            return rc;
        }
    }
}

/* Opens the target itself, or a temporary file in its folder. Returns the descriptor, or -1 with
 * errno. */
static int open_at(const struct place *p, struct output *o)
{
    if (output_is_stdout(o->path)) { /* reopening would write from the start of the file */
        int fd = dup(STDOUT_FILENO);
        return fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
    }
    if (p->through) {
        return open(p->path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    }
    /* Atomic for the signal handler: a file that exists is always registered. */
    halt_hold();
    int fd = mkstemp(o->beside);
    o->temporary.path = fd >= 0 ? o->beside : NULL;
    halt_resume();
    if (fd >= 0) { /* ignore errors: fchmod fails on file systems without permissions */
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)fchmod(fd, p->mode);
    }
    return fd;
}

static void forget(struct output *o)
{
    halt_keeps(&o->temporary);
    free(o->path);
    free(o->target);
    free(o->beside);
    free(o);
}

bool output_is_stdout(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

struct output *output_open(const char *path, struct err *e)
{
    struct place p;
    int rc = find_place(output_is_stdout(path) ? "/dev/stdout" : path, &p);
    if (rc != 0) {
        return err_null(e, "%s: cannot write: %s", path, strerror(-rc));
    }
    struct output *o = xcalloc(1, sizeof *o);
    size_t n = strlen(p.path) + sizeof ".XXXXXX";
    halt_removes(&o->temporary); /* registered before the file exists */
    o->path = xstrdup(path);
    o->target = xstrdup(p.path);
    o->beside = xmalloc(n);
    (void)snprintf(o->beside, n, "%s.XXXXXX", p.path);
    int fd = open_at(&p, o);
    if (fd < 0) {
        (void)err_add(e, "%s: cannot write: %s", path, strerror(errno));
        forget(o);
        return NULL;
    }
    o->f = text_ends(path, ".gz") ? output_gzip(fd) : fdopen(fd, "w");
    if (o->f == NULL) {
        out_of_memory(0);
    }
    if (output_is_stdout(path)) { /* other output may be printed between its lines */
        (void)setvbuf(o->f, NULL, _IOLBF, BUFSIZ);
    }
    return o;
}

FILE *output_stream(struct output *o)
{
    return o->f;
}

int output_close(struct output *o, bool keep, struct err *e)
{
    if (o == NULL) {
        return 0;
    }
    errno = 0;
    bool bad = ferror(o->f) != 0;
    if (bad) { /* errno is lost by now: write one more byte to fail again */
        clearerr(o->f);
        (void)fputc('\n', o->f);
    }
    bad = fflush(o->f) != 0 || bad;
    int why = bad ? errno : 0;
    if (fclose(o->f) != 0 && !bad) {
        bad = true;
        why = errno;
    }
    if (o->temporary.path != NULL) {
        if (keep && !bad && rename(o->temporary.path, o->target) != 0) {
            bad = true;
            why = errno;
        }
        if (!keep || bad) {
            (void)unlink(o->temporary.path);
        }
    }
    int rc = keep && bad ? err_add(e, "%s: cannot write: %s", o->path,
                                   why != 0 ? strerror(why) : "an earlier write failed")
                         : 0;
    forget(o);
    return rc;
}

int output_bytes(const char *path, const void *bytes, size_t n, struct err *e)
{
    struct output *o = output_open(path, e);
    if (o == NULL) {
        return -EINVAL;
    }
    (void)fwrite(bytes, 1, n, o->f);
    return output_close(o, true, e);
}
