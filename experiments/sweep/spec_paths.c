/* Paths in an experiment file are relative to the file, wherever the sweep is started. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/plugin.h"
#include "experiments/sweep/spec.h"
#include "policies/external/external.h"
#include "sim/base/datadir.h"

/* The same text with the folder of the experiment file before the path that begins at `at`. */
static int insert_folder(const char *file, char *text, size_t size, size_t at, struct err *e)
{
    const char *slash = strrchr(file, '/');
    size_t n = slash != NULL ? (size_t)(slash - file) + 1 : 0;
    size_t left = strlen(text + at) + 1;
    if (text[at] == '/' || text[at] == '\0' || n == 0) {
        return 0;
    }
    if (at + n + left > size) {
        return err_add(e, "%s: too long with the folder of %s", text, file);
    }
    memmove(text + at + n, text + at, left);
    memcpy(text + at, file, n);
    return 0;
}

/* "PATH.so", "python:FILE:CLASS", "exec:./PROGRAM ..." (a program without a slash is the system's).
 */
static int policy_path(const char *file, char *text, size_t size, struct err *e)
{
    if (plugin_path_length(text) == 0) {
        return 0;
    }
    size_t at = external_spec_length(text) > 0 ? strcspn(text, ":") + 1 : 0;
    char *own = at > 0 ? external_file(text) : NULL;
    bool of_system = at > 0 && own == NULL;
    free(own);
    return of_system ? 0 : insert_folder(file, text, size, at, e);
}

/* Lengths from a CSV file: reactive=FILE and proactive=FILE of a generator; shipped names have
 * neither slash nor dot. */
static int workload_paths(const char *file, char *text, size_t size, struct err *e)
{
    static const char *const keys[] = {"reactive=", "proactive="};
    int rc = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        for (char *p = strstr(text, keys[i]); p != NULL; p = strstr(p + 1, keys[i])) {
            if (p == text || (p[-1] != ':' && p[-1] != ',')) {
                continue;
            }
            size_t at = (size_t)(p - text) + strlen(keys[i]);
            size_t len = strcspn(text + at, ",");
            bool path = memchr(text + at, '/', len) != NULL || memchr(text + at, '.', len) != NULL;
            rc |= path ? insert_folder(file, text, size, at, e) : 0;
        }
    }
    return rc;
}

int spec_paths(const char *file, struct spec_point *p, struct err *e)
{
    int rc = policy_path(file, p->policy, sizeof p->policy, e) |
             workload_paths(file, p->workload, sizeof p->workload, e) |
             insert_folder(file, p->trace, sizeof p->trace, 0, e);
    rc |= datadir_is_path(p->soc) ? insert_folder(file, p->soc, sizeof p->soc, 0, e) : 0;
    rc |= datadir_is_path(p->llm) ? insert_folder(file, p->llm, sizeof p->llm, 0, e) : 0;
    return rc == 0 ? 0 : -EINVAL;
}
