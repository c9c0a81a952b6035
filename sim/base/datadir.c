#include "sim/base/datadir.h"

#include <ctype.h>
#include <limits.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static bool holds_data(const char *dir)
{
    OWNED char *probe = xformat("%s/hwmodels/soc", dir);
    return access(probe, R_OK) == 0;
}

/* The nearest ancestor folder of the executable that has the data (a source tree), or its
 * share/xpusim (a relocatable prefix). NULL without one; the caller frees it. */
static char *beside_program(void)
{
    static const char *const within[] = {"", "/share/xpusim"};
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) {
        return NULL;
    }
    exe[n] = '\0';
    for (char *slash = strrchr(exe, '/'); slash != NULL; slash = strrchr(exe, '/')) {
        *slash = '\0';
        for (size_t i = 0; i < sizeof within / sizeof *within; i++) {
            char *dir = xformat("%s%s", exe, within[i]);
            if (holds_data(dir)) {
                return dir;
            }
            free(dir);
        }
    }
    return NULL;
}

const char *datadir_path(const char *relative)
{
    const char *base = getenv("XPUSIM_DATA_DIR");
    OWNED char *found = base == NULL ? beside_program() : NULL;
    if (base == NULL) {
        base = found;
    }
#ifdef XPUSIM_DATADIR
    if (base == NULL) {
        base = XPUSIM_DATADIR;
    }
#endif
    return xkeep(xformat("%s/%s", base == NULL ? "." : base, relative));
}

const char *datadir_built(const char *name)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(exe, '/');
    char *path = xformat("%.*s/%s", slash != NULL ? (int)(slash - exe) : 0, exe, name);
    if (access(path, R_OK) == 0) {
        return xkeep(path);
    }
    free(path);
    return datadir_path(name);
}

bool datadir_is_path(const char *name)
{
    const char *end = strrchr(name, '.'); /* the dot of "llama-3.2-3b" is no file extension */
    size_t n = 0;
    while (end != NULL && isalpha((unsigned char)end[1 + n])) {
        n++;
    }
    return strchr(name, '/') != NULL || (n > 0 && end[1 + n] == '\0');
}

const char *datadir_named(const char *name, const char *folder, const char *ending)
{
    if (datadir_is_path(name)) {
        return name;
    }
    OWNED char *relative = xformat("%s/%s%s", folder, name, ending);
    return datadir_path(relative);
}

const char *datadir_next_to(const char *of, const char *name)
{
    const char *slash = strrchr(of, '/');
    if (slash == NULL || name[0] == '/' || !datadir_is_path(name)) {
        return name;
    }
    OWNED char *path = xformat("%.*s%s", (int)(slash + 1 - of), of, name);
    return access(path, R_OK) == 0 ? xkeep(xstrdup(path)) : name;
}

int datadir_check(struct err *e)
{
    const char *dir = datadir_path("");
    if (holds_data(dir)) {
        return 0;
    }
    return err_add(e, "no data in %s%s", dir,
                   getenv("XPUSIM_DATA_DIR") != NULL
                       ? ": machines, models and data sets are missing; XPUSIM_DATA_DIR names a "
                         "folder that holds hwmodels and traces"
                       : " nor next to the program: machines, models and data sets are missing; "
                         "install them with it (`make install`), or name their folder with "
                         "XPUSIM_DATA_DIR");
}

char *program_find(const char *name)
{
    const char *dirs = getenv("PATH");
    char *path = strchr(name, '/') != NULL ? xstrdup(name) : NULL;
    while (dirs != NULL && path == NULL) {
        size_t n = strcspn(dirs, ":");
        path = xformat("%.*s/%s", n > 0 ? (int)n : 1, n > 0 ? dirs : ".", name);
        if (access(path, X_OK) != 0) {
            free(path);
            path = NULL;
        }
        dirs = dirs[n] == ':' ? dirs + n + 1 : NULL;
    }
    return path;
}
