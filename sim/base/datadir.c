#include "sim/base/datadir.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static bool holds_data(const char *dir)
{
    char probe[PATH_MAX + 64];
    (void)snprintf(probe, sizeof probe, "%s/hwmodels/soc", dir);
    return access(probe, R_OK) == 0;
}

/* The nearest ancestor of the executable that holds the data, as a source tree does, or has it in
 * share/xpusim, as a prefix does wherever it was moved. */
static int beside_program(char *dir, size_t size)
{
    static const char *const within[] = {"", "/share/xpusim"};
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) {
        return -1;
    }
    exe[n] = '\0';
    for (char *slash = strrchr(exe, '/'); slash != NULL; slash = strrchr(exe, '/')) {
        *slash = '\0';
        for (size_t i = 0; i < sizeof within / sizeof *within; i++) {
            int length = snprintf(dir, size, "%s%s", exe, within[i]);
            if (length > 0 && (size_t)length < size && holds_data(dir)) {
                return 0;
            }
        }
    }
    return -1;
}

const char *datadir_path(char *buf, size_t size, const char *relative)
{
    char found[PATH_MAX];
    const char *base = getenv("XPUSIM_DATA_DIR");
    if (base == NULL && beside_program(found, sizeof found) == 0) {
        base = found;
    }
#ifdef XPUSIM_DATADIR
    if (base == NULL) {
        base = XPUSIM_DATADIR;
    }
#endif
    (void)snprintf(buf, size, "%s/%s", base == NULL ? "." : base, relative);
    return buf;
}

bool datadir_is_path(const char *name)
{
    const char *end = strrchr(name, '.'); /* "llama-3.2-3b" has a dot, and is none */
    size_t n = 0;
    while (end != NULL && isalpha((unsigned char)end[1 + n])) {
        n++;
    }
    return strchr(name, '/') != NULL || (n > 0 && end[1 + n] == '\0');
}

const char *datadir_named(char *buf, size_t size, const char *name, const char *folder,
                          const char *ending)
{
    char relative[300];
    if (datadir_is_path(name)) {
        (void)snprintf(buf, size, "%s", name);
        return buf;
    }
    (void)snprintf(relative, sizeof relative, "%s/%.200s%s", folder, name, ending);
    return datadir_path(buf, size, relative);
}

int datadir_check(struct err *e)
{
    char dir[PATH_MAX];
    (void)datadir_path(dir, sizeof dir, "");
    if (holds_data(dir)) {
        return 0;
    }
    return err_add(e, "no data in %s%s", dir,
                   getenv("XPUSIM_DATA_DIR") != NULL
                       ? ": machines, models and data sets are missing; XPUSIM_DATA_DIR names a "
                         "folder that holds hwmodels and traces"
                       : " nor beside the program: machines, models and data sets are missing; "
                         "install them with it (`make install`), or name their folder with "
                         "XPUSIM_DATA_DIR");
}
