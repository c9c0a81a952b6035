#include "hwmodels/backends/opencl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* dlsym returns an object pointer; POSIX lets it be read as a function pointer this way. */
static int find(void *handle, const char *name, void *function, struct err *e)
{
    void *symbol = dlsym(handle, name);
    if (symbol == NULL) {
        return err_add(e, "backend opencl: the library lacks %s: OpenCL 1.2 is needed", name);
    }
    memcpy(function, &symbol, sizeof symbol);
    return 0;
}

#define OPENCL_FIND(name, result, arguments) rc |= find(a->handle, #name, &a->name, e);

int opencl_api_load(struct opencl_api *a, const char *library, struct err *e)
{
    int rc = 0;
    memset(a, 0, sizeof *a);
    /* Loaded when it is asked for: most machines that run simulations have no OpenCL. */
    a->handle = dlopen(library != NULL ? library : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (a->handle == NULL) {
        return err_add(e,
                       "backend opencl: there is no OpenCL (%s): install the Debian packages "
                       "ocl-icd-libopencl1 and a driver (intel-opencl-icd for Intel GPUs, "
                       "pocl-opencl-icd for the CPU)",
                       dlerror());
    }
    OPENCL_FUNCTIONS(OPENCL_FIND)
    if (rc != 0) {
        opencl_api_unload(a);
    }
    return rc != 0 ? -EINVAL : 0;
}

void opencl_api_unload(struct opencl_api *a)
{
    if (a->handle != NULL) {
        (void)dlclose(a->handle);
    }
    a->handle = NULL;
}
