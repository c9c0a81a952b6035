/* One open device of the opencl backend: its queue, pool and programs. */
#include "hwmodels/backends/opencl_impl.h"
#include "hwmodels/kernel_numbers.h"
#include "sim/base/clock.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/scope.h"

#define MAX_SOURCE_BYTES 65536

static int32_t fill_pool(struct backend_device *d)
{
    /* In pieces, because a copy of the whole pool on the host would double the memory use: these
     * machines share one memory. */
    size_t piece = 1u << 20;
    OWNED uint8_t *v = xmalloc(piece);
    int32_t rc = CL_SUCCESS;
    kernel_fill(v, piece);
    for (uint64_t at = 0; at < d->pool_bytes && rc == CL_SUCCESS; at += piece) {
        size_t n = d->pool_bytes - at < piece ? (size_t)(d->pool_bytes - at) : piece;
        rc = d->api->clEnqueueWriteBuffer(d->queue, d->pool, CL_TRUE_VALUE, (size_t)at, n, v, 0,
                                          NULL, NULL);
    }
    return rc;
}

void opencl_close(struct backend_device *d)
{
    const struct opencl_api *a = d->api;
    for (int i = 0; i < BACKEND_MAX_INFLIGHT; i++) {
        if (d->events[i] != NULL) {
            (void)a->clReleaseEvent(d->events[i]);
        }
    }
    for (uint32_t i = 0; i < d->n_programs; i++) {
        (void)a->clReleaseProgram(d->programs[i].program);
    }
    if (d->pool != NULL) {
        (void)a->clReleaseMemObject(d->pool);
    }
    if (d->queue != NULL) {
        (void)a->clReleaseCommandQueue(d->queue);
    }
    if (d->context != NULL) {
        (void)a->clReleaseContext(d->context);
    }
    free(d);
}

struct backend_device *opencl_open(struct backend *b, uint32_t index, struct err *e)
{
    struct opencl_state *s = b->state;
    const struct opencl_api *a = &s->api;
    int32_t rc = -1;
    struct backend_device *d = xcalloc(1, sizeof *d);
    d->backend = b;
    d->api = a;
    d->id = s->parts[index].device;
    d->is_cpu = s->infos[index].kind == DEVICE_KIND_CPU;
    d->group_max = opencl_info_number(a, d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    d->units = (uint32_t)opencl_info_number(a, d->id, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    uint64_t most = opencl_info_number(a, d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most);
    /* A driver may refuse a buffer of the requested size, although it has the memory. */
    d->pool_bytes = b->options.pool_bytes < most ? b->options.pool_bytes : most;
    d->pool_bytes = d->pool_bytes / 4096 * 4096;
    d->context = a->clCreateContext(NULL, 1, &d->id, NULL, NULL, &rc);
    if (d->context != NULL) {
        d->queue = a->clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &rc);
    }
    if (d->queue != NULL) {
        d->pool =
            a->clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)d->pool_bytes, NULL, &rc);
    }
    if (d->pool == NULL || (rc = fill_pool(d)) != CL_SUCCESS) {
        err_add(e,
                "%s: the driver refuses a queue with %llu MB (OpenCL error %d): use a smaller "
                "--pool-mb, or update the driver",
                s->infos[index].name, (unsigned long long)(d->pool_bytes >> 20), rc);
        opencl_close(d);
        return NULL;
    }
    return d;
}

void *opencl_program_of(struct backend_device *d, uint32_t head_dim, double *compile_s,
                        struct err *e)
{
    const struct opencl_api *a = d->api;
    char options[96];
    char log[256];
    int32_t rc = 0;
    *compile_s = 0.0;
    for (uint32_t i = 0; i < d->n_programs; i++) {
        if (d->programs[i].head_dim == head_dim) {
            return d->programs[i].program;
        }
    }
    if (d->n_programs == OPENCL_MAX_PROGRAMS) {
        return err_null(e, "backend opencl: more than %d head dimensions", OPENCL_MAX_PROGRAMS);
    }
    OWNED char *source =
        input_text(datadir_path("hwmodels/backends/opencl.cl"), MAX_SOURCE_BYTES, e);
    if (source == NULL) {
        return NULL;
    }
    int64_t start_ns = clock_now_ns();
    void *p = a->clCreateProgramWithSource(d->context, 1, (const char **)&source, NULL, &rc);
    (void)snprintf(options, sizeof options, "-cl-std=CL1.2 -DDIM=%u -DSTRIDED=%d", head_dim,
                   d->is_cpu ? 0 : 1);
    if (p == NULL || (rc = a->clBuildProgram(p, 1, &d->id, options, NULL, NULL)) != CL_SUCCESS) {
        log[0] = '\0';
        if (p != NULL) {
            (void)a->clGetProgramBuildInfo(p, d->id, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
            (void)a->clReleaseProgram(p);
        }
        log[sizeof log - 1] = '\0';
        return err_null(
            e, "backend opencl: the driver cannot compile the kernels (error %d): %.200s", rc, log);
    }
    *compile_s = units_s_from_ns(clock_now_ns() - start_ns);
    d->programs[d->n_programs++] = (struct opencl_program){head_dim, p};
    return p;
}
