#include "experiments/commands/new_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/json.h"

int new_file_name_check(const char *command, const char *name, struct err *e)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-+");
    if (name[0] == '\0' || name[0] == '-' || name[good] != '\0' || good > 63) {
        return err_add(e,
                       "%s '%.80s': letters, digits and . _ - + only, at most 63, none of the "
                       "first a dash",
                       command, name);
    }
    return 0;
}

int new_file_write(const char *output, const char *name, const cJSON *tree, char *buf, size_t size,
                   struct err *e)
{
    int n =
        output != NULL ? snprintf(buf, size, "%s", output) : snprintf(buf, size, "%s.json", name);
    if (n <= 5 || (size_t)n >= size || strcmp(buf + n - 5, ".json") != 0) {
        return err_add(e, "-o '%.80s': must be a path ending in .json", output);
    }
    if (access(buf, F_OK) == 0) {
        return err_add(e, "%s: is there already; remove it, or give another -o", buf);
    }
    return json_write_file(buf, tree, e);
}
