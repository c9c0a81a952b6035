#include "hwmodels/engines/engines.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#ifndef XPUSIM_LIBDIR
#define XPUSIM_LIBDIR "/usr/local/lib/xpusim"
#endif

static const char *const names[] = {"ggml", "openvino", NULL};

static void *open_in(const char *folder, const char *name, char *why, size_t size)
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s.so", folder, name);
    if (access(path, R_OK) != 0) {
        return NULL;
    }
    /* All symbols at once: one that is missing is told here, with its name, and not in the middle
     * of a run. */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        (void)snprintf(why, size, "%s", dlerror());
    }
    return object;
}

/* engines/ beside the program or beside a folder above it (tests lie deeper in the build folder),
 * or in lib/xpusim of the prefix it lies in. */
static void *open_beside_program(const char *name, char *why, size_t size)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    void *object = NULL;
    exe[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 4 && object == NULL && strrchr(exe, '/') != NULL; up++) {
        *strrchr(exe, '/') = '\0';
        char folder[PATH_MAX + 32];
        (void)snprintf(folder, sizeof folder, "%s/engines", exe);
        object = open_in(folder, name, why, size);
        if (object == NULL) {
            (void)snprintf(folder, sizeof folder, "%s/lib/xpusim/engines", exe);
            object = open_in(folder, name, why, size);
        }
    }
    return object;
}

/* The shared object of an engine, or NULL; why says what is wrong with one that is there. */
static void *object_of(const char *name, char *why, size_t size)
{
    /* A folder that is named is the only one: an engine found elsewhere would be another than the
     * one that is meant. */
    const char *folder = getenv("XPUSIM_ENGINES");
    void *object =
        folder != NULL ? open_in(folder, name, why, size) : open_beside_program(name, why, size);
    if (object == NULL && folder == NULL) {
        object = open_in(XPUSIM_LIBDIR "/engines", name, why, size);
    }
    return object;
}

static const struct engine_ops *find(const char *name, char *why, size_t size)
{
    void *object = object_of(name, why, size);
    if (object == NULL) {
        return NULL;
    }
    const struct engine_ops *(*get)(void);
    *(void **)&get = dlsym(object, "xpusim_engine");
    const struct engine_ops *ops = get == NULL ? NULL : get();
    /* An engine is a file of its own, which an earlier build may have left; its structs would be
     * read with other offsets. */
    if (ops == NULL || ops->abi != ENGINE_ABI) {
        (void)snprintf(why, size, "built for another version of sim/api/engine.h");
        return NULL;
    }
    return ops;
}

const struct engine_bench_ops *engine_bench_find(const char *name, struct err *e)
{
    char why[512] = "";
    void *object = object_of(name, why, sizeof why);
    const struct engine_bench_ops *(*get)(void) = NULL;
    if (object != NULL) {
        *(void **)&get = dlsym(object, "xpusim_engine_bench");
    }
    const struct engine_bench_ops *ops = get == NULL ? NULL : get();
    if (ops == NULL || ops->abi != ENGINE_BENCH_ABI) {
        (void)err_add(e, "engine %s is not there%s%s: `make engines` fetches and builds it", name,
                      why[0] == '\0' && object == NULL ? "" : ", ",
                      object != NULL ? "built for another version of hwmodels/engines/bench.h"
                                     : why);
        return NULL;
    }
    return ops;
}

const struct engine_ops *engine_find(const char *name, struct err *e)
{
    char why[512] = "";
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) != 0) {
            continue;
        }
        const struct engine_ops *ops = find(name, why, sizeof why);
        if (ops == NULL) {
            (void)err_add(e, "engine %s is not there%s%s: `make engines` fetches and builds it",
                          name, why[0] == '\0' ? "" : ", ", why);
        }
        return ops;
    }
    (void)err_add(e, "there is no engine %s; there are ggml and openvino", name);
    return NULL;
}

char *engine_cache(void)
{
    const char *caches = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    return caches != NULL && caches[0] != '\0' ? xformat("%s/xpusim/kernels", caches)
           : home != NULL && home[0] != '\0'   ? xformat("%s/.cache/xpusim/kernels", home)
                                               : NULL;
}
