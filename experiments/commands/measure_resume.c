#include "experiments/commands/measure_resume.h"

#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/input.h"
#include "sim/base/output.h"

#define PATH_BYTES 4096
#define STATE_BYTES 512

struct measure_resume {
    struct output *through; /* a device or pipe, which cannot be continued; else NULL */
    char path[PATH_BYTES], rows[PATH_BYTES + 16], state[PATH_BYTES + 24];
    char what[STATE_BYTES - 48];
    FILE *out, *state_out;
    uint32_t steps;
};

static int cannot(struct err *e, const char *path)
{
    return err_add(e, "%s: cannot write: %s", path, strerror(errno));
}

/* Reads the state. False: there is none. */
static bool read_state(struct measure_resume *r, long *bytes, char *what, size_t size)
{
    char line[STATE_BYTES + 8] = "";
    int at = 0;
    FILE *f = input_try(r->state);
    bool ok = f != NULL && fgets(line, sizeof line, f) != NULL &&
              sscanf(line, "%" SCNu32 " %ld %n", &r->steps, bytes, &at) == 2 && at > 0;
    if (f != NULL) {
        (void)fclose(f);
    }
    (void)snprintf(what, size, "%.*s", ok ? (int)strcspn(line + at, "\n") : 0, line + at);
    return ok;
}

static int open_rows(struct measure_resume *r, struct err *e)
{
    char what[STATE_BYTES];
    long bytes = 0;
    bool there = read_state(r, &bytes, what, sizeof what);
    if (there && strcmp(what, r->what) != 0) {
        return err_add(e, "%s: is of another measurement (%s): remove it, or give another -o",
                       r->rows, what);
    }
    r->out = fopen(r->rows, there ? "r+" : "w");
    if (there && (r->out == NULL || fseek(r->out, 0, SEEK_END) != 0 || ftell(r->out) < bytes ||
                  ftruncate(fileno(r->out), bytes) != 0 || fseek(r->out, bytes, SEEK_SET) != 0)) {
        return err_add(e, "%s: does not hold what %s says: remove both", r->rows, r->state);
    }
    r->steps = there ? r->steps : 0;
    if (r->out == NULL) {
        return cannot(e, r->path);
    }
    if (r->steps > 0) {
        (void)fprintf(stderr,
                      "xpusim: note: going on after %" PRIu32 " step%s of an interrupted "
                      "measurement (%s)\n",
                      r->steps, text_plural(r->steps), r->rows);
    }
    r->state_out = fopen(r->state, there ? "r+" : "w");
    return r->state_out == NULL ? cannot(e, r->state) : 0;
}

struct measure_resume *measure_resume_open(const char *path, const char *what, struct err *e)
{
    struct stat st;
    struct measure_resume *r = xkept(xcalloc(1, sizeof *r));
    if (strlen(path) >= sizeof r->path) {
        return err_null(e, "-o: a path this long is not taken");
    }
    if (strlen(what) >= sizeof r->what) {
        return err_null(e,
                        "--devices and --name: together longer than %zu bytes: two measurements "
                        "with equal beginnings would pass for one",
                        sizeof r->what - 128);
    }
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    (void)snprintf(r->rows, sizeof r->rows, "%s.partial", path);
    (void)snprintf(r->state, sizeof r->state, "%s.partial.state", path);
    (void)snprintf(r->what, sizeof r->what, "%s", what);
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        r->through = output_open(path, e);
        r->out = r->through == NULL ? NULL : output_stream(r->through);
        return r->through == NULL ? NULL : r;
    }
    if (open_rows(r, e) != 0) {
        if (r->out != NULL) {
            (void)fclose(r->out);
        }
        return NULL;
    }
    return r;
}

FILE *measure_resume_stream(struct measure_resume *r)
{
    return r->out;
}

uint32_t measure_resume_steps(const struct measure_resume *r)
{
    return r->steps;
}

void measure_resume_step(void *ctx, uint32_t steps)
{
    struct measure_resume *r = ctx;
    char line[STATE_BYTES];
    r->steps = steps;
    if (r->state_out == NULL || fflush(r->out) != 0) {
        return;
    }
    /* One short write replaces the line, so an interrupted process leaves the old or the new one.
     */
    int n = snprintf(line, sizeof line, "%10" PRIu32 " %12ld %s\n", steps, ftell(r->out), r->what);
    (void)fseek(r->state_out, 0, SEEK_SET);
    (void)fwrite(line, 1, (size_t)n, r->state_out);
    (void)fflush(r->state_out);
}

int measure_resume_close(struct measure_resume *r, bool complete, struct err *e)
{
    int rc = 0;
    if (r->through != NULL) {
        return output_close(r->through, complete, e);
    }
    bool failed = ferror(r->out) != 0;
    failed = fclose(r->out) != 0 || failed;
    (void)fclose(r->state_out);
    if (complete && !failed) {
        rc = rename(r->rows, r->path) != 0 ? cannot(e, r->path) : 0;
        (void)unlink(r->state);
    } else if (r->steps == 0) {
        (void)unlink(r->rows);
        (void)unlink(r->state);
    }
    return failed ? cannot(e, r->path) : rc;
}
