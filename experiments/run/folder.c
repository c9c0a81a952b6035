#include "experiments/run/folder.h"

#include <dirent.h>

static int is_data_file(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return d->d_name[0] != '.' && dot != NULL &&
           (strcmp(dot, ".json") == 0 || strcmp(dot, ".csv") == 0);
}

int folder_each(const char *folder,
                void (*see)(void *ctx, const char *path, const char *name, struct err *e),
                void *ctx, struct err *e)
{
    struct dirent **files = NULL;
    size_t before = e->n;
    int n = scandir(folder, &files, is_data_file, alphasort);
    if (n < 0) {
        return err_add(e, "%s: %s", folder, strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        OWNED char *path = xformat("%s/%s", folder, files[i]->d_name);
        *strrchr(files[i]->d_name, '.') = '\0';
        see(ctx, path, files[i]->d_name, e);
        free(files[i]);
    }
    free(files);
    return e->n == before ? 0 : -EINVAL;
}
