#include "sim/base/datadir.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* The source tree: the nearest ancestor of the executable that holds hwmodels/soc. */
static int source_tree(char *dir, size_t size)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) {
        return -1;
    }
    exe[n] = '\0';
    for (char *slash = strrchr(exe, '/'); slash != NULL; slash = strrchr(exe, '/')) {
        *slash = '\0';
        char probe[PATH_MAX + 32];
        (void)snprintf(probe, sizeof probe, "%s/hwmodels/soc", exe);
        if (access(probe, R_OK) == 0 && strlen(exe) < size) {
            memcpy(dir, exe, strlen(exe) + 1);
            return 0;
        }
    }
    return -1;
}

const char *datadir_path(char *buf, size_t size, const char *relative)
{
    char tree[PATH_MAX];
    const char *base = getenv("XPUSIM_DATA_DIR");
    if (base == NULL && source_tree(tree, sizeof tree) == 0) {
        base = tree;
    }
#ifdef XPUSIM_DATADIR
    if (base == NULL) {
        base = XPUSIM_DATADIR;
    }
#endif
    (void)snprintf(buf, size, "%s/%s", base == NULL ? "." : base, relative);
    return buf;
}
