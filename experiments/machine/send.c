#define _GNU_SOURCE /* prctl's header */
#include "experiments/machine/send_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/shell/cli.h"
#include "sim/base/clock.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/output.h"
#include "sim/base/tar.h"
#include "sim/base/version.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#define MAX_MEMBER ((size_t)64 << 20)
#define TINY_LINES 10 /* of a trace in a rehearsal: version, columns and eight requests */

/* ---- the folder ---- */

static char *inside(const struct sending *s, const char *name)
{
    return xformat("%s/%s", s->folder, name);
}

static bool is_there(const struct sending *s, const char *name)
{
    OWNED char *path = inside(s, name);
    return access(path, R_OK) == 0;
}

static void put_file(const struct sending *s, const char *name, const char *text)
{
    OWNED char *path = inside(s, name);
    (void)output_bytes(path, text, strlen(text), s->e);
}

/* Cuts a trace for a rehearsal, which runs only its first requests. */
static void cut_trace(char *text)
{
    char *at = text;
    for (uint32_t i = 0; i < TINY_LINES && *at != '\0'; i++) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    *at = '\0';
}

/* Makes the folder with its traces. An existing folder must have the same plan. */
static int open_folder(struct sending *s)
{
    OWNED char *what =
        xformat("xpusim %s, size %s, devices %s\n", XPUSIM_VERSION, s->o->size, s->devices);
    OWNED char *path = inside(s, "plan");
    if (mkdir(s->folder, 0777) == 0) {
        put_file(s, "plan", what);
    } else if (errno != EEXIST) {
        (void)err_add(s->e, "%s: cannot make this folder: %s", s->folder, strerror(errno));
    } else {
        OWNED char *before = input_text(path, PATH_MAX, s->e);
        if (before != NULL && strcmp(before, what) != 0) {
            before[strcspn(before, "\n")] = '\0';
            (void)err_add(s->e, "%s: is of another send-in (%s); remove it, or give another -o",
                          s->folder, before);
        }
    }
    for (size_t i = 0; i < SEND_TRACES && s->e->n == 0; i++) {
        OWNED char *relative = xformat("traces/drive/%s", send_traces[i]);
        OWNED char *text = input_text(datadir_path(relative), MAX_MEMBER, s->e);
        if (text != NULL) {
            if (s->tiny) {
                cut_trace(text);
            }
            put_file(s, send_traces[i], text);
        }
    }
    return s->e->n == 0 ? 0 : -EINVAL;
}

static void remove_folder(const struct sending *s, const struct tar *t)
{
    static const char *const others[] = {"plan", "done", "calibrate.txt", "calibrate.txt.part"};
    const size_t n_others = sizeof others / sizeof others[0];
    for (size_t i = 0; i < t->n + n_others + SEND_TRACES; i++) {
        const char *name = i < t->n              ? t->v[i].name
                           : i < t->n + n_others ? others[i - t->n]
                                                 : send_traces[i - t->n - n_others];
        OWNED char *path = inside(s, name);
        (void)unlink(path);
    }
    (void)rmdir(s->folder);
}

/* ---- steps ---- */

/* Makes a path in the environment absolute, because steps run in another folder. */
static void make_absolute(const char *name)
{
    const char *value = getenv(name);
    char full[PATH_MAX];
    if (value != NULL && value[0] != '\0' && value[0] != '/' && realpath(value, full) != NULL) {
        (void)setenv(name, full, 1);
    }
}

/* In a child: runs the command, or ends with 127. */
_Noreturn static void become(const struct sending *s, const struct step *t, char *const *argv)
{
    /* The step ends with this program, and the next try runs it again. It is killed at once and
     * writes a new file, so that a slow end cannot disturb the next try. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(s->folder) == 0) {
        char *to = t->to == NULL ? xstrdup("/dev/null") : xformat("%s.part", t->to);
        if (t->to != NULL) {
            (void)unlink(to);
        }
        int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0) {
            (void)execv("/proc/self/exe", argv);
        }
    }
    _exit(127);
}

static void run_step(struct sending *s, struct step *t)
{
    if (t->drives) {
        send_add_devices(s, t);
    }
    char *argv[SEND_MAX_ARGS + 2] = {(char *)(uintptr_t) "xpusim"};
    memcpy(argv + 1, t->args, t->n_args * sizeof t->args[0]);
    double from_s = clock_now_s();
    (void)fflush(NULL);
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        become(s, t, argv);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    t->seconds = clock_now_s() - from_s;
    t->status = pid < 0               ? 127
                : WIFEXITED(status)   ? WEXITSTATUS(status)
                : WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status)
                                      : 127;
    /* EXIT_CHECK_FAILED is a result, too. */
    if (t->to != NULL) {
        OWNED char *part = xformat("%s/%s.part", s->folder, t->to);
        OWNED char *whole = inside(s, t->to);
        if (t->status <= EXIT_CHECK_FAILED) {
            OWNED char *text = input_text(part, MAX_MEMBER, s->e);
            if (text != NULL && text[0] != '\0') {
                (void)output_bytes(whole, text, strlen(text), s->e);
            }
        }
        (void)unlink(part);
    }
}

/* Whether every kernel of a probe ran. */
static bool probed(const struct sending *s, const char *file)
{
    OWNED char *path = inside(s, file);
    SCOPED(err_fini) struct err none = ERR_INIT;
    SCOPED(json_drop) cJSON *root = json_read_file(path, &none);
    const cJSON *k;
    bool ok = root != NULL;
    cJSON_ArrayForEach (k, cJSON_GetObjectItem(root, "kernels")) {
        ok = ok && strcmp(json_string(k, "result"), "ok") == 0;
    }
    return ok;
}

static double minutes_left(const struct sending *s, size_t from)
{
    double minutes = 0.0;
    for (size_t i = from; i < s->n; i++) {
        minutes += is_there(s, s->steps[i].makes) ? 0.0 : s->steps[i].minutes;
    }
    return minutes;
}

/* Adds a line to the file "done" for a later call: step, exit status, seconds. */
static void note_end(const struct sending *s, const struct step *t)
{
    OWNED char *path = inside(s, "done");
    SCOPED(err_fini) struct err none = ERR_INIT;
    OWNED char *before = input_text(path, PATH_MAX, &none);
    OWNED char *after =
        xformat("%s%s %d %.1f\n", before == NULL ? "" : before, t->name, t->status, t->seconds);
    put_file(s, "done", after);
}

static void recall_end(const struct sending *s, struct step *t)
{
    OWNED char *path = inside(s, "done");
    SCOPED(err_fini) struct err none = ERR_INIT;
    OWNED char *text = input_text(path, PATH_MAX, &none);
    size_t n = strlen(t->name);
    t->status = 0;
    for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, t->name, n) == 0 && at[n] == ' ') {
            char *end;
            t->status = (int)strtol(at + n, &end, 10);
            t->seconds = strtod(end, NULL);
        }
    }
}

static void run_steps(struct sending *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct step *t = &s->steps[i];
        if (is_there(s, t->makes)) {
            recall_end(s, t);
            if (!s->o->shown.quiet) {
                (void)fprintf(stderr, "xpusim: %zu of %zu: %s is done\n", i + 1, s->n, t->name);
            }
        } else {
            if (!s->o->shown.quiet) {
                (void)fprintf(stderr, "xpusim: %zu of %zu: %s; about %.0f min are left\n", i + 1,
                              s->n, t->name, minutes_left(s, i));
            }
            run_step(s, t);
            if (t->status > EXIT_CHECK_FAILED || !is_there(s, t->makes)) {
                t->status = t->status == 0 ? EXIT_CHECK_FAILED : t->status;
                (void)fprintf(stderr, "xpusim: %s failed (exit %d); the others continue\n", t->name,
                              t->status);
            }
            note_end(s, t);
        }
        if (strcmp(t->name, "probe-npu") == 0 && !probed(s, t->makes)) {
            s->npu[0] = '\0';
        } else if (strcmp(t->name, "probe-gpu") == 0 && !probed(s, t->makes)) {
            s->gpu[0] = '\0';
        }
    }
}

/* ---- the archive ---- */

static void add_text(struct sending *s, struct tar *t, const char *name, const char *text)
{
    char *own = facts_scrub(&s->facts, text);
    tar_add(t, name, own, strlen(own));
}

static void add_about(struct sending *s, struct tar *t)
{
    SCOPED(json_drop)
    cJSON *root = JSON_MEMBERS(cJSON_CreateObject(), "format", SEND_FORMAT, "made_by",
                               "xpusim send-in " XPUSIM_VERSION, "size", s->o->size);
    (void)cJSON_AddItemToObject(root, "facts", facts_json(&s->facts));
    cJSON *steps = cJSON_AddArrayToObject(root, "steps");
    for (size_t i = 0; i < s->n; i++) {
        cJSON *o = JSON_MEMBERS(cJSON_CreateObject(), "step", s->steps[i].name, "exit",
                                s->steps[i].status, "seconds", s->steps[i].seconds);
        (void)cJSON_AddItemToArray(steps, o);
    }
    OWNED char *text = json_text(root, true);
    add_text(s, t, "about.json", text);
}

static int pack(struct sending *s, struct tar *t)
{
    add_about(s, t);
    for (size_t i = 0; i < s->n; i++) {
        if (!is_there(s, s->steps[i].makes)) {
            continue;
        }
        OWNED char *path = inside(s, s->steps[i].makes);
        OWNED char *text = input_text(path, MAX_MEMBER, s->e);
        if (text != NULL) {
            add_text(s, t, s->steps[i].makes, text);
        }
    }
    return s->e->n == 0 ? tar_write(t, s->o->out, s->e) : -EINVAL;
}

/* ---- the command ---- */

static void show_plan(struct sending *s)
{
    static const struct frame_column columns[] = {
        {.name = "file", .kind = FRAME_TEXT},
        {.name = "holds", .kind = FRAME_TEXT},
        {.name = "minutes", .title = "about min", .format = "%.0f"},
        {.name = "command", .kind = FRAME_TEXT}};
    struct document *d = document_new();
    document_heading(d, "%s would have:", s->o->out);
    struct frame *f = DOCUMENT_FRAME(d, "files", 0, columns);
    FRAME_ROW(f, "about.json", "the facts below, and which step took how long", 0.0);
    for (size_t i = 0; i < s->n; i++) {
        SCOPED(text_fini) struct text command = {0};
        if (s->steps[i].drives) {
            send_add_devices(s, &s->steps[i]);
        }
        text_string(&command, "xpusim");
        for (size_t k = 0; k < s->steps[i].n_args; k++) {
            text_item(&command, " ", s->steps[i].args[k]);
        }
        FRAME_ROW(f, s->steps[i].makes, s->steps[i].holds, s->steps[i].minutes,
                  (const char *)text_end(&command));
    }
    document_heading(d, "Facts:");
    facts_document(&s->facts, d);
    document_note(d, "%s",
                  "Nothing else goes in: no host name, user, folder, address or serial number. "
                  "Nothing is sent anywhere; the archive is a file of yours.");
    document_put(d, "text", stdout);
}

static int make(struct sending *s)
{
    SCOPED(tar_fini) struct tar t = {0};
    if (open_folder(s) != 0) {
        return EXIT_BAD_INPUT;
    }
    make_absolute("XPUSIM_ENGINES");
    make_absolute("XPUSIM_DATA_DIR");
    run_steps(s);
    int status = s->e->n == 0 && pack(s, &t) == 0 ? EXIT_OK : EXIT_BAD_INPUT;
    if (status == EXIT_OK) {
        remove_folder(s, &t);
        (void)printf("%s: %zu files; `xpusim new-soc NAME --from %s` makes a machine of it\n",
                     s->o->out, t.n, s->o->out);
    }
    for (size_t i = 0; i < s->n; i++) {
        status = status == EXIT_OK && s->steps[i].status != 0 ? EXIT_CHECK_FAILED : status;
    }
    return status;
}

int send_in(const struct send_options *o, struct err *e)
{
    struct sending *s = xkept(xcalloc(1, sizeof *s));
    *s = (struct sending){.o = o,
                          .tiny = strcmp(o->size, "tiny") == 0,
                          .folder = xformat("%s.partial", o->out),
                          .e = e};
    facts_read(&s->facts);
    send_plan(s);
    int status = EXIT_OK;
    if (o->dry) {
        show_plan(s);
    } else {
        status = make(s);
    }
    return status;
}
