#include "hwmodels/backends/backend.h"

#include <string.h>

static const struct backend_ops *const backends[] = {
    &backend_blas, &backend_native, &backend_opencl, &backend_openvino, &backend_sim, NULL};

const struct backend_ops *const *backend_list(void)
{
    return backends;
}

const struct backend_ops *backend_find(const char *name)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (strcmp(backends[i]->name, name) == 0) {
            return backends[i];
        }
    }
    return NULL;
}
