#include "plots/render.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/datadir.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#define NO_PROGRAM 127 /* exit status of a child that could not start it */
#define NAME_BYTES 64

int render_check_gnuplot(struct err *e)
{
    const char *path = getenv("PATH");
    char probe[PATH_MAX];
    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");
        (void)snprintf(probe, sizeof probe, "%.*s/gnuplot", (int)n, path);
        if (access(probe, X_OK) == 0) {
            return 0;
        }
        path += n + (path[n] == ':');
    }
    return err_add(e, "gnuplot is not installed: it draws the figures (Debian package "
                      "gnuplot-nox)");
}

/* Where one figure is made. */
struct place {
    const struct figure *figure;
    const struct figure_data *data;
    char dir[PATH_MAX / 2]; /* temporary, inside the one asked for */
};

static const char *const endings[] = {"svg", "png", "tsv"};
static const char *const others[] = {"gp", "log"};

static void file_in(const char *dir, const char *name, const char *ending, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s/%s.%s", dir, name, ending);
}

static int write_file(const char *path, const char *text, size_t size, struct err *e)
{
    FILE *f = fopen(path, "w");
    bool ok = f != NULL && fwrite(text, 1, size, f) == size;
    ok = f != NULL && fclose(f) == 0 && ok;
    return ok ? 0 : err_add(e, "%s: cannot write: %s", path, strerror(errno));
}

static void put_quoted(FILE *out, const char *name, const char *text)
{
    (void)fprintf(out, "%s = '", name);
    for (const char *p = text; *p != '\0'; p++) {
        (void)fprintf(out, "%s%c", *p == '\'' ? "'" : "", *p);
    }
    (void)fputs("'\n", out);
}

/* What gnuplot runs: the variables, then the figure's script. */
static int write_driver(const struct place *at, const char *format, struct err *e)
{
    char path[PATH_MAX];
    file_in(at->dir, at->figure->name, "gp", path, sizeof path);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    static const char *const shared[][2] = {{"style", "plots/style.gp"},
                                            {"lines", "plots/lines.gp"},
                                            {"bars_gp", "plots/bars.gp"},
                                            {"ytics", "plots/ytics.gp"},
                                            {"legend", "plots/legend.gp"}};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        put_quoted(f, shared[i][0], datadir_path(path, sizeof path, shared[i][1]));
    }
    file_in(at->dir, at->figure->name, "tsv", path, sizeof path);
    put_quoted(f, "data", path);
    file_in(at->dir, at->figure->name, format, path, sizeof path);
    put_quoted(f, "out", path);
    put_quoted(f, "format", format);
    (void)fprintf(f, "blocks = %zu\n", at->data->blocks);
    (void)fwrite(at->data->vars_text, 1, at->data->vars_size, f);
    char script[NAME_BYTES];
    (void)snprintf(script, sizeof script, "plots/%s.gp", at->figure->name);
    put_quoted(f, "script", datadir_path(path, sizeof path, script));
    (void)fputs("load script\n", f);
    return fclose(f) == 0 ? 0 : err_add(e, "%s: cannot write: %s", path, strerror(errno));
}

static void child(const char *driver, const char *log)
{
    int in = open("/dev/null", O_RDONLY);
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0) {
        _exit(NO_PROGRAM);
    }
    (void)execlp("gnuplot", "gnuplot", driver, (char *)NULL);
    _exit(NO_PROGRAM);
}

/* What gnuplot said, as one line. */
static void read_log(const char *path, char *buf, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f == NULL ? 0 : fread(buf, 1, size - 1, f);
    buf[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        buf[i] = buf[i] == '\n' || buf[i] == '\t' ? ' ' : buf[i];
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static int draw(const struct place *at, const char *format, struct err *e)
{
    char driver[PATH_MAX];
    char log[PATH_MAX];
    char picture[PATH_MAX];
    if (write_driver(at, format, e) != 0) {
        return -EINVAL;
    }
    file_in(at->dir, at->figure->name, "gp", driver, sizeof driver);
    file_in(at->dir, at->figure->name, "log", log, sizeof log);
    file_in(at->dir, at->figure->name, format, picture, sizeof picture);
    pid_t pid = fork();
    if (pid == 0) {
        child(driver, log);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    struct stat s;
    bool ok = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && stat(picture, &s) == 0 &&
              s.st_size > 0;
    if (ok) {
        return 0;
    }
    char said[1024];
    read_log(log, said, sizeof said);
    return err_add(e, "figure %s: gnuplot failed: %s", at->figure->name, said);
}

static void clean_up(const struct place *at)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        file_in(at->dir, at->figure->name, endings[i], path, sizeof path);
        (void)remove(path);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        file_in(at->dir, at->figure->name, others[i], path, sizeof path);
        (void)remove(path);
    }
    (void)rmdir(at->dir);
}

static int move_all(const struct place *at, const char *dir, unsigned formats, struct err *e)
{
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char from[PATH_MAX];
        char to[PATH_MAX];
        file_in(at->dir, at->figure->name, endings[i], from, sizeof from);
        file_in(dir, at->figure->name, endings[i], to, sizeof to);
        if ((formats >> i & 1u) != 0 && rename(from, to) != 0) {
            return err_add(e, "%s: cannot write: %s", to, strerror(errno));
        }
    }
    return 0;
}

int render_figure(const struct figure *f, const struct figure_data *d, const char *dir,
                  unsigned formats, struct err *e)
{
    struct place at = {.figure = f, .data = d};
    (void)fflush(d->tsv);
    (void)fflush(d->vars);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return err_add(e, "%s: cannot make the folder: %s", dir, strerror(errno));
    }
    int n = snprintf(at.dir, sizeof at.dir, "%s/.%s-XXXXXX", dir, f->name);
    if (n >= (int)sizeof at.dir || mkdtemp(at.dir) == NULL) {
        return err_add(e, "%s: cannot write there: %s", dir, strerror(errno));
    }
    char path[PATH_MAX];
    file_in(at.dir, f->name, "tsv", path, sizeof path);
    int rc = write_file(path, d->tsv_text, d->tsv_size, e);
    for (size_t i = 0; i < 2 && rc == 0; i++) { /* svg, png */
        if ((formats >> i & 1u) != 0) {
            rc = draw(&at, endings[i], e);
        }
    }
    if (rc == 0) {
        rc = move_all(&at, dir, formats, e);
    }
    clean_up(&at);
    return rc;
}
