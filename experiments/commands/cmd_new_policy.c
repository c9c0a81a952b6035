/* `xpusim new-policy NAME`: makes a policy outside the tree that compiles and runs, as a start. */
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/commands/commands.h"
#include "policies/registry.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"

#define MAX_NAME_BYTES 40
#define N_FILES 3

#define MAX_TEXT_BYTES 65536

/* Files to copy from policies/skeleton, which is compiled, linted and formatted with the tree. The
 * copies have the new name. */
static const char *const sources[N_FILES] = {"skeleton.c", "Makefile", "test.sh"};
#define OLD_NAME "skeleton"

struct skeleton {
    char name[MAX_NAME_BYTES + 1], identifier[MAX_NAME_BYTES + 8];
    const char *dir;
    bool made_dir;
    const char *paths[N_FILES]; /* kept */
    int n_made;
};

static int check_name(const char *name, struct err *e)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t len = strlen(name);
    if (len == 0 || len > MAX_NAME_BYTES || name[0] < 'a' || name[0] > 'z' ||
        strspn(name, letters) != len) {
        return err_add(e, "new-policy '%.80s': a name must be [a-z][a-z0-9-]*, up to %d letters",
                       name, MAX_NAME_BYTES);
    }
    if (policy_find(name) != NULL) {
        return err_add(e, "new-policy %s: a built-in policy has that name", name);
    }
    return 0;
}

/* Copies a text and replaces the old name by the new one. The new name becomes a C identifier where
 * the old one is a type or the beginning of a longer name. The prefix `my_` keeps that identifier
 * from colliding with a keyword or a type of the contract. */
static void put_text(FILE *f, const char *text, const struct skeleton *k)
{
    const char *from = text;
    for (const char *p; (p = strstr(from, OLD_NAME)) != NULL; from = p + strlen(OLD_NAME)) {
        bool type = p - text >= 7 && strncmp(p - 7, "struct ", 7) == 0;
        (void)fwrite(from, 1, (size_t)(p - from), f);
        (void)fputs(type || p[strlen(OLD_NAME)] == '_' ? k->identifier : k->name, f);
    }
    (void)fputs(from, f);
}

/* "x" refuses an existing file, so none is overwritten, or removed by undo. */
static int write_file(struct skeleton *k, const char *source, struct err *e)
{
    OWNED char *relative = xformat("policies/skeleton/%s", source);
    OWNED char *text = input_text(datadir_path(relative), MAX_TEXT_BYTES, e);
    if (text == NULL) {
        return -EINVAL;
    }
    const char *path = k->paths[k->n_made];
    FILE *f = fopen(path, "wx");
    if (f == NULL) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    k->n_made++;
    put_text(f, text, k);
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        return err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    return 0;
}

static void undo(struct skeleton *k)
{
    while (k->n_made > 0) {
        (void)unlink(k->paths[--k->n_made]);
    }
    if (k->made_dir) {
        (void)rmdir(k->dir);
    }
}

/* Writes all files or none. */
static int write_skeleton(struct skeleton *k, struct err *e)
{
    k->made_dir = mkdir(k->dir, 0777) == 0;
    if (!k->made_dir && errno != EEXIST) {
        return err_add(e, "%s: cannot make this folder: %s", k->dir, strerror(errno));
    }
    k->paths[0] = xkept(xformat("%s/%s.c", k->dir, k->name));
    k->paths[1] = xkept(xformat("%s/Makefile", k->dir));
    k->paths[2] = xkept(xformat("%s/test.sh", k->dir));
    for (int i = 0; i < N_FILES; i++) {
        if (write_file(k, sources[i], e) != 0) {
            undo(k);
            return -EINVAL;
        }
    }
    (void)printf("%s\n%s\n%s\n", k->paths[0], k->paths[1], k->paths[2]);
    (void)printf("make -C %s && xpusim check-policy %s%s/%s.so   # does it serve everybody, also "
                 "with little memory?\n",
                 k->dir, strchr(k->dir, '/') == NULL ? "./" : "", k->dir, k->name);
    return 0;
}

struct options {
    struct option_texts names;
    const char *dir;
};

static int run(void *values, struct err *e)
{
    const struct options *o = values;
    struct skeleton k = {.n_made = 0};
    if (check_name(o->names.v[0], e) != 0) {
        return -EINVAL;
    }
    (void)snprintf(k.name, sizeof k.name, "%s", o->names.v[0]);
    (void)snprintf(k.identifier, sizeof k.identifier, "my_%s", k.name);
    for (char *p = k.identifier; (p = strchr(p, '-')) != NULL;) {
        *p = '_';
    }
    k.dir = o->dir != NULL ? o->dir : k.name;
    return write_skeleton(&k, e);
}

#define OPTIONS struct options

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, dir, "DIR", NULL,
                  "folder to write to, created when missing (default: NAME)"),
};
const struct command cmd_new_policy = {
    .name = "new-policy",
    .summary = "write a policy plug-in to start from, with its Makefile and test",
    .usage = "NAME [-o DIR]",
    .about = "Writes a policy plug-in to start from: NAME.c, a Makefile that builds NAME.so, and "
             "test.sh, which runs it, checks it (check-policy) and compares it with fcfs. NAME is "
             "[a-z][a-z0-9-]*, up to 40 letters.",
    .operands = {"NAME", 1, 1, offsetof(OPTIONS, names)},
    .notes = "Then: make -C DIR && xpusim check-policy DIR/NAME.so\n"
             "make takes the headers of the tree or prefix whose xpusim it finds.\n"
             "XPUSIM_INCLUDE=FOLDER names others: a source tree, or PREFIX/include/xpusim after "
             "`make install`.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows)),
    .run = run,
};
