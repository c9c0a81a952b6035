#include "hwmodels/engines/engines.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "sim/base/words.h"

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
    /* Resolves all symbols now, so that a missing one is reported here and not in the middle of a
     * run. */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        (void)snprintf(why, size, "%s", dlerror());
    }
    return object;
}

/* Looks for engines/ in the program's folder and in the folders above it, because tests are deeper
 * in the build folder. Looks for lib/xpusim/engines in the same folders, for an installed program
 * in a prefix. */
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

/* The shared object of an engine, or NULL; `why` has the fault of an existing one. */
static void *object_of(const char *name, char *why, size_t size)
{
    /* A given folder is the only one, because an engine elsewhere would be a different one. */
    const char *folder = getenv("XPUSIM_ENGINES");
    void *object =
        folder != NULL ? open_in(folder, name, why, size) : open_beside_program(name, why, size);
    if (object == NULL && folder == NULL) {
        object = open_in(XPUSIM_LIBDIR "/engines", name, why, size);
    }
    return object;
}

/* The result of the engine's function of that name: a struct of `header`, which begins with its
 * version. NULL with an error. */
static const void *find(const char *name, const char *function, uint32_t abi, const char *header,
                        struct err *e)
{
    char why[512] = "";
    void *object = object_of(name, why, sizeof why);
    const void *(*get)(void) = NULL;
    if (object != NULL) {
        *(void **)&get = dlsym(object, function);
    }
    const uint32_t *ops = get == NULL ? NULL : get();
    /* An engine is a separate file, possibly from an earlier build, whose structs have other
     * offsets. */
    if (ops == NULL || *ops != abi) {
        const char *built = object != NULL ? "built for another version of " : "";
        return err_null(e, "engine %s is not there%s%s%s: `make engines` fetches and builds it",
                        name, why[0] == '\0' && object == NULL ? "" : ", ", built,
                        object != NULL ? header : why);
    }
    return ops;
}

const struct engine_bench_ops *engine_bench_find(struct err *e)
{
    return find("openvino", "xpusim_engine_bench", ENGINE_BENCH_ABI, "hwmodels/engines/bench.h", e);
}

const struct engine_ops *engine_find(const char *name, struct err *e)
{
    if (words_find(names, name) < 0) {
        return err_null(e, "there is no engine %s; there are ggml and openvino", name);
    }
    return find(name, "xpusim_engine", ENGINE_ABI, "sim/api/engine.h", e);
}

char *engine_cache(void)
{
    const char *caches = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    return caches != NULL && caches[0] != '\0' ? xformat("%s/xpusim/kernels", caches)
           : home != NULL && home[0] != '\0'   ? xformat("%s/.cache/xpusim/kernels", home)
                                               : NULL;
}
