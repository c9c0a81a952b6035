/* A figure that is a schedule: an existing figure draws the results of commands. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/figures/paper.h"
#include "plots/render.h"
#include "sim/base/datadir.h"

#define MAX_WORDS 64

/* Splits a text in place at blanks. */
static int words_of(char *text, char **v)
{
    int n = 0;
    char *save = NULL;
    for (char *w = strtok_r(text, " ", &save); w != NULL && n < MAX_WORDS - 1;
         w = strtok_r(NULL, " ", &save)) {
        v[n++] = w;
    }
    v[n] = NULL;
    return n;
}

/* Runs the command in a child with its output in the file. Returns its exit status, or -1. */
static int run_child(char *command, const char *to, int (*run)(int argc, char **argv))
{
    char *words[MAX_WORDS];
    words[0] = (char *)"xpusim";
    int n = 1 + words_of(command, words + 1);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out < 0 || dup2(out, STDOUT_FILENO) < 0) {
            _exit(1);
        }
        int status = run(n, words);
        _exit(fflush(stdout) == 0 ? status : 1);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Draws the figure that `plot` names, with its options --from and --to, and its inputs. */
static int plot(const struct paper *p, char *text, const char *name, const char *dir,
                unsigned formats, struct frame **values, struct err *e)
{
    char *words[MAX_WORDS];
    int n = words_of(text, words);
    const struct figure *f = n > 0 ? figure_find(words[0]) : NULL;
    if (f == NULL) {
        return err_add(e, "%s: plot: no figure is called %s", p->file, n > 0 ? words[0] : "\"\"");
    }
    struct figure_request r = {.n_inputs = 0};
    for (int i = 1; i < n; i++) {
        if (strcmp(words[i], "--from") == 0 && i + 1 < n) {
            r.from_s = atof(words[++i]);
        } else if (strcmp(words[i], "--to") == 0 && i + 1 < n) {
            r.to_s = atof(words[++i]);
        } else {
            (void)figure_input_add(&r, words[i], e);
        }
    }
    SCOPED(figure_data_fini) struct figure_data d;
    figure_data_init(&d);
    int rc = e->n == 0 ? figure_prepare(f, &r, &d, e) : -EINVAL;
    *values = rc == 0 ? d.values : NULL;
    d.values = rc == 0 ? NULL : d.values;
    rc = rc == 0 && formats != 0 ? render_check_gnuplot(e) : rc;
    if (rc == 0 && formats != 0) {
        OWNED char *subject = xformat("%s, figure %s  ·  %s", p->paper, p->number, p->title);
        figure_var_text(&d, "subject", subject);
        rc = render_figure_as(f, name, &d, dir, formats, e);
    }
    return rc;
}

static int run_all(const struct paper *p, int (*run)(int argc, char **argv), struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->n_commands && rc == 0; i++) {
        OWNED char *to =
            paper_put(p, NULL, p->commands[i].to != NULL ? p->commands[i].to : "/dev/null", e);
        OWNED char *command = paper_put(p, NULL, p->commands[i].run, e);
        rc = command == NULL || to == NULL ? -EINVAL : run_child(command, to, run);
        if (rc > 0) {
            rc = err_add(e, "%s: commands[%u].run: \"%s\" ended with status %d", p->file, i,
                         p->commands[i].run, rc);
        } else if (command != NULL && to != NULL && rc < 0) {
            (void)err_add(e, "%s: commands[%u].run: \"%s\" ended without a status", p->file, i,
                          p->commands[i].run);
        }
    }
    return rc;
}

/* Removes the folder of the results with its files. */
static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *f = d != NULL ? readdir(d) : NULL; f != NULL; f = readdir(d)) {
        OWNED char *file = xformat("%s/%s", path, f->d_name);
        (void)remove(file); /* fails for . and .. */
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    (void)rmdir(path);
}

int paper_schedule(struct paper *p, int (*run)(int argc, char **argv), const char *dir,
                   unsigned formats, struct frame **values, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    OWNED char *folder = xformat("%s/xpusim-figure-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        return err_add(e, "%s: cannot make the folder: %s", folder, strerror(errno));
    }
    p->put = p->put != NULL ? p->put : cJSON_AddObjectToObject(p->tree, "put");
    JSON_MEMBERS(p->put, "dir", folder, "data", datadir_path(PAPER_FOLDER));
    OWNED char *name = xformat("%s-%s", p->paper, p->number);
    int rc = run_all(p, run, e);
    OWNED char *text = rc == 0 ? paper_put(p, NULL, p->plot, e) : NULL;
    rc = text != NULL ? plot(p, text, name, dir, formats, values, e) : -EINVAL;
    remove_folder(folder);
    return rc;
}
