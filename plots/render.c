#include "plots/render.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plots/svg_compact.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/memory.h"
#include "sim/base/output.h"

#define NO_PROGRAM 127 /* exit status of a child that cannot start gnuplot */

int render_check_gnuplot(struct err *e)
{
    OWNED char *path = program_find("gnuplot");
    return path != NULL ? 0
                        : err_add(e, "gnuplot is not installed: it draws the figures (Debian "
                                     "package gnuplot-nox)");
}

/* Where a figure is made. */
struct place {
    const struct figure *figure;
    const char *name; /* base name of the files */
    const struct figure_data *data;
    char *dir; /* owned; temporary, inside the target folder */
};

/* Indexed by the bits of RENDER_SVG ..; the last is not a picture. */
static const char *const endings[] = {"svg", "png", "pdf", "tsv"};
#define PICTURES 3

/* "DIR/NAME.ENDING". The caller frees it. */
static char *file_in(const char *dir, const struct place *at, const char *ending)
{
    return xformat("%s/%s.%s", dir, at->name, ending);
}

/* To gnuplot, file names that start with < | ~ or - are commands or options. */
static const char *plain_start(const char *path)
{
    return path[0] == '/' || path[0] == '.' ? "" : "./";
}

/* Writes a file name as a gnuplot string. In single quotes only the quote is special, and a line
 * end, which ends the string: text after it would be commands. */
static int put_quoted(FILE *out, const char *name, const char *text, struct err *e)
{
    (void)fprintf(out, "%s = '%s", name, plain_start(text));
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < ' ') {
            return err_add(e,
                           "%s: a line break or another control character in the name of a "
                           "file, which gnuplot cannot take",
                           text);
        }
        (void)fprintf(out, "%s%c", *p == '\'' ? "'" : "", *p);
    }
    (void)fputs("'\n", out);
    return 0;
}

/* Writes gnuplot's input: the variables, then commands that load the figure's script. */
static int write_driver(const struct place *at, const char *format, struct err *e)
{
    OWNED char *driver = file_in(at->dir, at, "gp");
    struct output *o = output_open(driver, e);
    if (o == NULL) {
        return -EINVAL;
    }
    FILE *f = output_stream(o);
    int rc = 0;
    static const char *const shared[][2] = {{"functions", "plots/functions.gp"},
                                            {"style", "plots/style.gp"},
                                            {"lines", "plots/lines.gp"},
                                            {"bars_gp", "plots/bars.gp"},
                                            {"ytics", "plots/ytics.gp"},
                                            {"no_rows", "plots/no_rows.gp"},
                                            {"axes", "plots/axes.gp"},
                                            {"stacked", "plots/stacked.gp"},
                                            {"distributions", "plots/distributions.gp"},
                                            {"legend", "plots/legend.gp"}};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        rc |= put_quoted(f, shared[i][0], datadir_path(shared[i][1]), e);
    }
    OWNED char *data = file_in(at->dir, at, "tsv");
    OWNED char *out = file_in(at->dir, at, format);
    rc |= put_quoted(f, "data", data, e);
    rc |= put_quoted(f, "out", out, e);
    (void)fprintf(f, "format = '%s'\n", format);
    (void)fprintf(f, "blocks = %zu\n", at->data->blocks);
    (void)fwrite(at->data->vars_text, 1, at->data->vars_size, f);
    OWNED char *script = xformat("plots/%s.gp", at->figure->name);
    rc |= put_quoted(f, "script", datadir_path(script), e);
    (void)fputs("load functions\nload script\n", f);
    return output_close(o, rc == 0, e) != 0 || rc != 0 ? -EINVAL : 0;
}

static void child(const char *driver, const char *log)
{
    /* A script that pauses must not wait for terminal input. */
    int in = open("/dev/null", O_RDONLY);
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0) {
        _exit(NO_PROGRAM);
    }
    (void)execlp("gnuplot", "gnuplot", "-d", driver, (char *)NULL); /* -d: ignore ~/.gnuplot */
    _exit(NO_PROGRAM);
}

/* Reads the begin of gnuplot's messages as one line. */
static void read_log(const char *path, char *buf, size_t size)
{
    SCOPED(input_drop) FILE *f = input_try(path);
    size_t n = f == NULL ? 0 : fread(buf, 1, size - 1, f);
    buf[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        buf[i] = buf[i] == '\n' || buf[i] == '\t' ? ' ' : buf[i];
    }
}

static int draw(const struct place *at, const char *format, struct err *e)
{
    if (write_driver(at, format, e) != 0) {
        return -EINVAL;
    }
    OWNED char *driver = file_in(at->dir, at, "gp");
    OWNED char *log = file_in(at->dir, at, "log");
    OWNED char *picture = file_in(at->dir, at, format);
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
    if (!ok) {
        char said[1024];
        read_log(log, said, sizeof said);
        (void)err_add(e, "figure %s: gnuplot failed: %s", at->name, said);
    }
    return ok ? 0 : -EINVAL;
}

static void clean_up(struct place *at)
{
    static const char *const all[] = {"svg", "png", "pdf", "tsv", "gp", "log"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        OWNED char *path = file_in(at->dir, at, all[i]);
        (void)remove(path);
    }
    (void)rmdir(at->dir);
    free(at->dir);
}

/* No rename, because the target may be a device or a link (output.h). */
static int copy(const char *from, const char *to, struct err *e)
{
    SCOPED(input_drop) FILE *f = input_open(from, e);
    struct output *o = f != NULL ? output_open(to, e) : NULL;
    char bytes[1 << 16];
    for (size_t n; o != NULL && (n = fread(bytes, 1, sizeof bytes, f)) > 0;) {
        (void)fwrite(bytes, 1, n, output_stream(o));
    }
    bool whole = f != NULL && ferror(f) == 0;
    return output_close(o, whole, e) != 0 || o == NULL || !whole ? -EINVAL : 0;
}

#define MAX_SVG_BYTES ((size_t)256 << 20)

/* Replaces gnuplot's SVG by a smaller one. */
static int shrink(const struct place *at, struct err *e)
{
    OWNED char *path = file_in(at->dir, at, "svg");
    OWNED char *svg = input_text(path, MAX_SVG_BYTES, e);
    OWNED char *small = svg != NULL ? svg_compact(svg) : NULL;
    return small != NULL ? output_bytes(path, small, strlen(small), e) : -EINVAL;
}

static int move_all(const struct place *at, const char *dir, unsigned formats, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && rc == 0; i++) {
        OWNED char *from = file_in(at->dir, at, endings[i]);
        OWNED char *to = file_in(dir, at, endings[i]);
        rc = (formats >> i & 1u) != 0 ? copy(from, to, e) : 0;
    }
    return rc;
}

int render_figure_as(const struct figure *f, const char *name, const struct figure_data *d,
                     const char *dir, unsigned formats, struct err *e)
{
    struct place at = {.figure = f, .name = name, .data = d};
    memory_stream_flush(d->tsv);
    memory_stream_flush(d->vars);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return err_add(e, "%s: cannot make the folder: %s", dir, strerror(errno));
    }
    /* Draws in a new folder next to the result. So commands that draw the same figure at once do
     * not overwrite each other's files, and a failure leaves an earlier figure in place. */
    at.dir = xformat("%s%s/.%s-XXXXXX", plain_start(dir), dir, name);
    if (mkdtemp(at.dir) == NULL) {
        free(at.dir);
        return err_add(e, "%s: cannot write there: %s", dir, strerror(errno));
    }
    OWNED char *path = file_in(at.dir, &at, "tsv");
    int rc = output_bytes(path, d->tsv_text, d->tsv_size, e);
    for (size_t i = 0; i < PICTURES && rc == 0; i++) {
        if ((formats >> i & 1u) != 0) {
            rc = draw(&at, endings[i], e);
            rc = rc == 0 && i == 0 ? shrink(&at, e) : rc;
        }
    }
    if (rc == 0) {
        rc = move_all(&at, dir, formats, e);
    }
    clean_up(&at);
    return rc;
}

int render_figure(const struct figure *f, const struct figure_data *d, const char *dir,
                  unsigned formats, struct err *e)
{
    return render_figure_as(f, f->name, d, dir, formats, e);
}
