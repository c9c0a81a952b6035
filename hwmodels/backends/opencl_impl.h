/* Declarations shared by the files of the opencl backend. */
#pragma once

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/opencl_api.h"

#define OPENCL_MAX_PROGRAMS 8

struct opencl_part {
    void *device; /* owned when it is a sub-device */
    bool sub;
};

struct opencl_state {
    struct opencl_api api;
    struct opencl_part parts[BACKEND_MAX_DEVICES];
    struct backend_info infos[BACKEND_MAX_DEVICES];
    uint32_t n;
};

struct opencl_program {
    uint32_t head_dim;
    void *program;
};

struct backend_device {
    const struct backend *backend;
    const struct opencl_api *api; /* borrowed */
    void *id, *context, *queue, *pool;
    size_t group_max;
    uint32_t units;
    bool is_cpu;
    uint64_t pool_bytes, cursor;
    struct opencl_program programs[OPENCL_MAX_PROGRAMS]; /* built ones, by head dimension */
    uint32_t n_programs;
    void *events[BACKEND_MAX_INFLIGHT];
    int64_t submit_ns[BACKEND_MAX_INFLIGHT];
    int64_t last_ticket, ended;
    int64_t offset_ns; /* host clock minus device clock */
    int64_t busy_ns;
};

struct backend_kernel {
    struct backend_device *device;
    struct kernel_spec spec;
    void *kernel, *x, *y;
    uint64_t weight_bytes, x_bytes, y_bytes;
    uint32_t element_bytes; /* of the pool as this kernel sees it */
    uint32_t dims;
    size_t global[2], local[2];
    bool has_local;
};

/* opencl_devices.c: as in struct backend_ops. */
struct backend_device *opencl_open(struct backend *b, uint32_t index, struct err *e);
void opencl_close(struct backend_device *d);
/* The program for a head dimension; built at the first need, which is the compile cost. */
void *opencl_program_of(struct backend_device *d, uint32_t head_dim, double *compile_s,
                        struct err *e);

/* opencl_kernels.c */
bool opencl_supports(const struct backend_device *d, const struct kernel_spec *s);
struct backend_kernel *opencl_prepare(struct backend_device *d, const struct kernel_spec *s,
                                      struct backend_prep *out, struct err *e);
void opencl_release(struct backend_kernel *k);
/* Queues the kernel on weights from a place in the pool. OpenCL's status; *event may be NULL. */
int32_t opencl_enqueue(const struct backend_kernel *k, uint64_t at_bytes, void **event);
