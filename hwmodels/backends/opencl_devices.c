/* Platforms, devices, pools and programs of the opencl backend. */
#include "hwmodels/backends/opencl_impl.h"
#include "hwmodels/kernel_numbers.h"
#include "sim/base/clock.h"
#include "sim/base/datadir.h"
#include "sim/base/input.h"
#include "sim/base/scope.h"

#define MAX_PLATFORMS 8
#define MAX_PARTS 4 /* sub-devices of a CPU */
#define MAX_SOURCE_BYTES 65536

struct part {
    void *device; /* owned when it is a sub-device */
    bool sub;
};

struct state {
    struct opencl_api api;
    struct part parts[BACKEND_MAX_DEVICES];
    struct backend_info infos[BACKEND_MAX_DEVICES];
    uint32_t n;
};

static void info_text(const struct opencl_api *a, void *device, uint32_t what, char *out,
                      size_t size)
{
    size_t used = 0;
    if (a->clGetDeviceInfo(device, what, size, out, &used) != CL_SUCCESS || used == 0) {
        out[0] = '\0';
    }
    out[size - 1] = '\0';
}

static uint64_t info_number(const struct opencl_api *a, void *device, uint32_t what, size_t size)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    /* The driver writes as many bytes as the fact has; a narrow one in a wide variable would be
     * right on little-endian machines alone. */
    if (size == sizeof narrow) {
        (void)a->clGetDeviceInfo(device, what, size, &narrow, NULL);
        return narrow;
    }
    (void)a->clGetDeviceInfo(device, what, size, &wide, NULL);
    return wide;
}

static void add_part(struct state *s, void *device, bool sub, const char *name)
{
    char hardware[256];
    char driver[24];
    if (s->n == BACKEND_MAX_DEVICES) {
        return;
    }
    uint64_t type = info_number(&s->api, device, CL_DEVICE_TYPE, sizeof type);
    uint64_t unified = info_number(&s->api, device, CL_DEVICE_HOST_UNIFIED_MEMORY, 4);
    struct backend_info *d = &s->infos[s->n];
    memset(d, 0, sizeof *d);
    info_text(&s->api, device, CL_DEVICE_NAME, hardware, sizeof hardware);
    info_text(&s->api, device, CL_DRIVER_VERSION, driver, sizeof driver);
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    (void)snprintf(d->description, sizeof d->description, "%.60s, driver %s", hardware, driver);
    /* OpenCL knows no NPU; one that shows up there is an accelerator. Memory in common with the
     * host tells an integrated GPU from a card. */
    d->kind = (type & CL_DEVICE_TYPE_CPU) != 0   ? DEVICE_KIND_CPU
              : (type & CL_DEVICE_TYPE_GPU) == 0 ? DEVICE_KIND_NPU
              : unified != 0                     ? DEVICE_KIND_IGPU
                                                 : DEVICE_KIND_GPU;
    d->act_bits = 32;
    d->kv_bits = 16;
    d->n_widths = 3;
    d->weight_bits[0] = 32;
    d->weight_bits[1] = 16;
    d->weight_bits[2] = 8;
    s->parts[s->n++] = (struct part){device, sub};
}

/* A device as it is, or a CPU as one-unit parts. */
static void add_device(struct state *s, void *device, uint32_t number)
{
    char name[16];
    void *subs[64];
    const intptr_t how[3] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    uint32_t n = 0;
    uint64_t type = info_number(&s->api, device, CL_DEVICE_TYPE, sizeof type);
    uint64_t units = info_number(&s->api, device, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    if ((type & CL_DEVICE_TYPE_CPU) != 0 && units > 1 && units <= 64 &&
        s->api.clCreateSubDevices(device, how, 64, subs, &n) == CL_SUCCESS && n > 1) {
        for (uint32_t i = 0; i < n; i++) {
            if (i < MAX_PARTS && s->n < BACKEND_MAX_DEVICES) {
                (void)snprintf(name, sizeof name, "cl%u.%u", number, i);
                add_part(s, subs[i], true, name);
            } else {
                (void)s->api.clReleaseDevice(subs[i]);
            }
        }
        return;
    }
    (void)snprintf(name, sizeof name, "cl%u", number);
    add_part(s, device, false, name);
}

struct backend *opencl_start(const struct backend_options *o, struct err *e)
{
    struct state *s = xcalloc(1, sizeof *s);
    void *platforms[MAX_PLATFORMS];
    uint32_t n = 0;
    uint32_t number = 0;
    if (opencl_api_load(&s->api, o->library, e) != 0) {
        free(s);
        return NULL;
    }
    if (s->api.clGetPlatformIDs(MAX_PLATFORMS, platforms, &n) != CL_SUCCESS) {
        n = 0;
    }
    for (uint32_t p = 0; p < n && p < MAX_PLATFORMS; p++) {
        void *devices[BACKEND_MAX_DEVICES];
        uint32_t count = 0;
        if (s->api.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, BACKEND_MAX_DEVICES, devices,
                                  &count) != CL_SUCCESS) {
            count = 0;
        }
        for (uint32_t i = 0; i < count && i < BACKEND_MAX_DEVICES; i++) {
            add_device(s, devices[i], number++);
        }
    }
    if (s->n == 0) {
        err_add(e, "backend opencl: no device: install a driver (Debian packages intel-opencl-icd "
                   "for Intel GPUs, pocl-opencl-icd for the CPU)");
        opencl_api_unload(&s->api);
        free(s);
        return NULL;
    }
    struct backend *b = xcalloc(1, sizeof *b);
    *b = (struct backend){&backend_opencl, *o, s};
    return b;
}

void opencl_stop(struct backend *b)
{
    OWNED struct state *s = b->state;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->parts[i].sub) {
            (void)s->api.clReleaseDevice(s->parts[i].device);
        }
    }
    /* The library stays loaded: drivers keep threads that must not lose their code. */
    free(b);
}

uint32_t opencl_enumerate(struct backend *b, struct backend_info *out, uint32_t cap)
{
    const struct state *s = b->state;
    for (uint32_t i = 0; i < s->n && i < cap; i++) {
        out[i] = s->infos[i];
    }
    return s->n;
}

static int32_t fill_pool(struct backend_device *d)
{
    /* In pieces: a copy of the whole pool on the host would double what a measurement takes of
     * memory, which on these machines is the same. */
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
    struct state *s = b->state;
    const struct opencl_api *a = &s->api;
    int32_t rc = -1;
    struct backend_device *d = xcalloc(1, sizeof *d);
    d->backend = b;
    d->api = a;
    d->id = s->parts[index].device;
    d->is_cpu = s->infos[index].kind == DEVICE_KIND_CPU;
    d->group_max = info_number(a, d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    d->units = (uint32_t)info_number(a, d->id, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    uint64_t most = info_number(a, d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most);
    /* A driver may refuse one buffer of the size asked for, though it has the memory. */
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
