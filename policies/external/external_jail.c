#define _DEFAULT_SOURCE /* realpath */
/* The jail of a program: its interpreter, and the files in its specification. Users can make more
 * visible by naming it there. */
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include "policies/external/external_impl.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"

struct paths {
    const char **of; /* owned with its strings, NULL-terminated; never freed */
    size_t n;
};

/* Adds the real path, so that no link leads to a folder that holds everything. */
static void add(struct paths *p, const char *path)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL || strcmp(real, "/") == 0 || strcmp(real, "/proc") == 0 ||
        strncmp(real, "/proc/", 6) == 0) {
        return;
    }
    p->of = xrealloc(p->of, (p->n + 2) * sizeof *p->of);
    p->of[p->n++] = xstrdup(real);
    p->of[p->n] = NULL;
}

static void add_in(struct paths *p, const char *folder, const char *name)
{
    OWNED char *path = xformat("%s/%s", folder, name);
    add(p, path);
}

/* The folder of a file: "." if the name has none. */
static char *folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash == NULL   ? xstrdup(".")
           : slash == file ? xstrdup("/")
                           : xformat("%.*s", (int)(slash - file), file);
}

/* Adds libraries and packages of PREFIX, if the program is PREFIX/bin/program. */
static void add_prefix(struct paths *p, const char *program)
{
    OWNED char *bin = folder_of(program);
    OWNED char *prefix = folder_of(bin);
    if (strlen(bin) > 4 && strcmp(bin + strlen(bin) - 4, "/bin") == 0) {
        add_in(p, prefix, "bin");
        add_in(p, prefix, "lib");
        add_in(p, prefix, "lib64");
        add_in(p, prefix, "pyvenv.cfg");
    }
}

/* Adds the program, and the target of its links. */
static void add_program(struct paths *p, const char *name)
{
    char real[PATH_MAX];
    OWNED char *path = program_find(name);
    if (path != NULL && realpath(path, real) != NULL) {
        add(p, path);
        add_prefix(p, path);
        add_prefix(p, real);
    }
}

static void add_each(struct paths *p, const char *variable)
{
    const char *dirs = getenv(variable);
    while (dirs != NULL && *dirs != '\0') {
        size_t n = strcspn(dirs, ":");
        OWNED char *dir = xformat("%.*s", (int)n, dirs);
        add(p, dir);
        dirs += n + (dirs[n] == ':');
    }
}

/* Adds the modules and packages next to a Python file, which it may import, but no data. Python's
 * import lists the folder, so names in it are readable, too. */
static void add_modules(struct paths *reads, struct paths *lists, const char *file)
{
    OWNED char *folder = folder_of(file);
    DIR *d = opendir(folder);
    size_t before = reads->n;
    for (struct dirent *it; d != NULL && (it = readdir(d)) != NULL;) {
        OWNED char *path = xformat("%s/%s", folder, it->d_name);
        OWNED char *inside = xformat("%s/__init__.py", path);
        if (text_ends(path, ".py") || (it->d_name[0] != '.' && access(inside, R_OK) == 0)) {
            add(reads, path);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    if (reads->n > before + 1) { /* more than the file itself */
        add(lists, folder);
    }
}

/* Adds the words of a command that are files or folders. */
static void add_words(struct paths *reads, struct paths *lists, const char *command)
{
    static const char between[] = " \t\n'\"`$(){}<>|&;=";
    bool first = true;
    for (const char *at = command; *at != '\0';) {
        at += strspn(at, between);
        size_t n = strcspn(at, between);
        OWNED char *word = xformat("%.*s", (int)n, at);
        if (first && n > 0) {
            add_program(reads, word);
            first = false;
        } else if (n > 0 && access(word, F_OK) == 0) {
            add(reads, word);
        }
        if (text_ends(word, ".py") && access(word, R_OK) == 0) {
            add_modules(reads, lists, word);
        }
        at += n;
    }
}

/* ---- interpreters started by scripts ---- */

static bool is_script(const char *path)
{
    char begin[2] = "";
    SCOPED(input_drop) FILE *f = input_try(path);
    return f != NULL && fread(begin, 1, 2, f) == 2 && memcmp(begin, "#!", 2) == 0;
}

char *external_interpreter(const char *name)
{
    OWNED char *path = program_find(name);
    char *real = NULL;
    if (path != NULL && is_script(path)) {
        char option[] = "-c";
        char question[] = "import sys; print(sys.executable)";
        char *const ask[] = {path, option, question, NULL};
        struct process p;
        char *line = NULL;
        if (process_start(&p, ask, NULL, EXTERNAL_LIMIT_S) == 0) {
            line = process_receive(&p);
        }
        real = line != NULL && line[0] == '/' ? xstrdup(line) : NULL;
        process_end(&p);
    }
    return real != NULL ? real : xstrdup(name);
}

/* ---- files of a jail ---- */

const char *const *external_reads(const char *const *paths)
{
    struct paths p = {0};
    for (; *paths != NULL; paths++) {
        add(&p, *paths);
    }
    add_each(&p, "LD_LIBRARY_PATH");
    return p.of;
}

struct jail external_jail(char *const argv[], bool python)
{
    struct paths reads = {0};
    struct paths lists = {0};
    if (python) {
        add_program(&reads, argv[0]);
        add(&reads, argv[1]);
        add_modules(&reads, &lists, argv[2]);
        add(&reads, argv[2]);
    } else {
        add_words(&reads, &lists, argv[2] + strlen("exec "));
    }
    add_each(&reads, "PYTHONPATH");
    add_each(&reads, "PYTHONPYCACHEPREFIX");
    add_each(&reads, "LD_LIBRARY_PATH");
    const char *home = getenv("HOME");
    if (home != NULL) {
        add_in(&reads, home, ".local/lib"); /* packages installed by the user */
    }
    return (struct jail){
        .reads = reads.of, .lists = lists.of, .folder = python ? "/" : NULL, .forks = !python};
}
