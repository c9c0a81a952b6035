#include "experiments/commands/new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/arena.h"
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
    size_t n = strlen(path);
    int rc = -EINVAL;
    if (n <= 5 || strcmp(path + n - 5, ".json") != 0) {
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
