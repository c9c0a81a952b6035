#include "experiments/commands/new_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/json.h"

int new_file_name_check(const char *command, const char *name, struct err *e)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-+");
    if (name[0] == '\0' || name[0] == '-' || name[good] != '\0' || good > 63) {
        return err_add(e,
                       "%s '%s': letters, digits and . _ - + only, at most 63, none of the "
                       "first a dash",
                       command, name);
    }
    return 0;
}

char *new_file_write(const char *output, const char *name, const cJSON *tree, struct err *e)
{
    char *path = output != NULL ? xstrdup(output) : xformat("%s.json", name);
    int rc = -EINVAL;
    if (!text_ends(path, ".json")) {
        (void)err_add(e, "-o '%s': must be a path ending in .json", path);
    } else if (access(path, F_OK) == 0) {
        (void)err_add(e, "%s: is there already; remove it, or give another -o", path);
    } else {
        rc = json_write_file(path, tree, e);
    }
    if (rc != 0) {
        free(path);
        return NULL;
    }
    return path;
}

#define MAX_TEXT_BYTES 65536

/* Copies a file. "x" refuses an existing one. */
static int copy(const char *source, const char *path, struct err *e)
{
    OWNED char *text = input_text(datadir_path(source), MAX_TEXT_BYTES, e);
    FILE *f = text != NULL ? fopen(path, "wx") : NULL;
    if (text != NULL && f == NULL) {
        (void)err_add(e, "%s: cannot write: %s", path, strerror(errno));
    }
    bool fine = f != NULL && fputs(text, f) >= 0;
    fine = f != NULL && fclose(f) == 0 && fine;
    if (f != NULL && !fine) {
        (void)err_add(e, "%s: cannot write", path);
        (void)unlink(path);
    }
    return fine ? 0 : -EINVAL;
}

int new_folder_copy(const char *dir, const char *from, const char *const *names, struct err *e)
{
    bool made = mkdir(dir, 0777) == 0;
    if (!made && errno != EEXIST) {
        return err_add(e, "%s: cannot make this folder: %s", dir, strerror(errno));
    }
    uint32_t n = 0;
    int rc = 0;
    for (; names[n] != NULL && rc == 0; n += rc == 0 ? 1 : 0) {
        OWNED char *source = xformat("%s/%s", from, names[n]);
        OWNED char *path = xformat("%s/%s", dir, names[n]);
        rc = copy(source, path, e);
    }
    while (rc != 0 && n > 0) {
        OWNED char *path = xformat("%s/%s", dir, names[--n]);
        (void)unlink(path);
    }
    if (rc != 0 && made) {
        (void)rmdir(dir);
    }
    return rc;
}
