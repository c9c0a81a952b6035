#include "hwmodels/backends/opencl_api.h"

#include <dlfcn.h>

#include "sim/base/library.h"

#define OPENCL_FUNCTION(name, result, arguments) {#name, &a->name},

int opencl_api_load(struct opencl_api *a, const char *library, struct err *e)
{
    const struct library opencl = {
        {library != NULL ? library : "libOpenCL.so.1"},
        .missing = "backend opencl: there is no OpenCL",
        .remedy = "install the Debian packages ocl-icd-libopencl1 and a driver (intel-opencl-icd "
                  "for Intel GPUs, pocl-opencl-icd for the CPU)",
        .lacks = "backend opencl: the library lacks",
        .needs = "OpenCL 1.2 is needed",
    };
    memset(a, 0, sizeof *a);
    const struct library_function functions[] = {OPENCL_FUNCTIONS(OPENCL_FUNCTION)};
    a->handle = library_open(&opencl, functions, sizeof functions / sizeof functions[0], e);
    return a->handle != NULL ? 0 : -EINVAL;
}

void opencl_api_unload(struct opencl_api *a)
{
    if (a->handle != NULL) {
        (void)dlclose(a->handle);
    }
    a->handle = NULL;
}

void opencl_info_text(const struct opencl_api *a, void *device, uint32_t what, char *out,
                      size_t size)
{
    size_t used = 0;
    if (a->clGetDeviceInfo(device, what, size, out, &used) != CL_SUCCESS || used == 0) {
        out[0] = '\0';
    }
    out[size - 1] = '\0';
}

uint64_t opencl_info_number(const struct opencl_api *a, void *device, uint32_t what, size_t size)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    /* The driver writes the bytes of the fact's type. A narrow fact in a wide variable would only
     * be right on little-endian machines. */
    if (size == sizeof narrow) {
        (void)a->clGetDeviceInfo(device, what, size, &narrow, NULL);
        return narrow;
    }
    (void)a->clGetDeviceInfo(device, what, size, &wide, NULL);
    return wide;
}
