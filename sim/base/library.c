#include "sim/base/library.h"

#include <dlfcn.h>

void *library_open(const struct library *l, const struct library_function *f, size_t n,
                   struct err *e)
{
    void *handle = dlopen(l->names[0], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL && l->names[1] != NULL) {
        handle = dlopen(l->names[1], RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == NULL) {
        return err_null(e, "%s (%s): %s", l->missing, dlerror(), l->remedy);
    }
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(handle, f[i].name);
        if (symbol == NULL) {
            (void)err_add(e, "%s %s: %s", l->lacks, f[i].name, l->needs);
            (void)dlclose(handle);
            return NULL;
        }
        /* dlsym returns an object pointer; POSIX allows this conversion to a function pointer. */
        memcpy(f[i].pointer, &symbol, sizeof symbol);
    }
    return handle;
}
