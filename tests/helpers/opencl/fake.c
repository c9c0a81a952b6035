#include "tests/helpers/opencl/fake.h"

#include <stdlib.h>
#include <string.h>

enum { FAILS = -5 };

struct fake_opencl fake_opencl;

#define F (&fake_opencl)
#define CALL(result_)                                                                              \
    do {                                                                                           \
        if (fails(__func__)) {                                                                     \
            return result_;                                                                        \
        }                                                                                          \
    } while (0)

static bool fails(const char *function)
{
    size_t n = strlen(function);
    if (F->fails == NULL || strncmp(F->fails, function, n) != 0 || F->works > 0) {
        F->works -= F->fails != NULL && strncmp(F->fails, function, n) == 0;
        return false;
    }
    if (F->fails[n] != '\0') { /* " once" */
        F->fails = NULL;
    }
    return true;
}

static struct fake_object *make(enum fake_kind kind)
{
    struct fake_object *o = calloc(1, sizeof *o);
    o->kind = kind;
    F->live[kind]++;
    return o;
}

static int32_t drop(void *object)
{
    struct fake_object *o = object;
    F->live[o->kind]--;
    free(o->bytes);
    free(o);
    return 0;
}

/* The object of a device: one for the device itself, which nobody releases. */
static struct fake_object whole[FAKE_PLATFORMS * FAKE_DEVICES];

int32_t clGetPlatformIDs(uint32_t n, void **out, uint32_t *count)
{
    CALL(FAILS);
    for (uint32_t i = 0; i < n && i < F->n_platforms; i++) {
        out[i] = F->devices[i];
    }
    *count = F->n_platforms;
    return 0;
}

int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t n, void **out, uint32_t *count)
{
    CALL(FAILS);
    uint32_t p = (uint32_t)((struct fake_device(*)[FAKE_DEVICES])platform - F->devices);
    for (uint32_t i = 0; i < n && i < F->n_devices[p]; i++) {
        struct fake_object *o = &whole[p * FAKE_DEVICES + i];
        *o = (struct fake_object){.kind = FAKE_DEVICE, .device = &F->devices[p][i]};
        out[i] = o;
    }
    *count = F->n_devices[p];
    return type == 0xFFFFFFFFu ? 0 : FAILS;
}

static int32_t put(size_t size, void *out, size_t *used, const void *value, size_t bytes)
{
    if (size < bytes) {
        return -30; /* CL_INVALID_VALUE */
    }
    memcpy(out, value, bytes);
    if (used != NULL) {
        *used = bytes;
    }
    return 0;
}

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *out, size_t *used)
{
    CALL(FAILS);
    struct fake_object *o = device;
    const struct fake_device *d = o->device;
    uint32_t units = o->part ? 1 : d->units;
    switch (what) {
    case 0x1000:
        return put(size, out, used, &d->type, sizeof d->type);
    case 0x1002:
        return put(size, out, used, &units, sizeof units);
    case 0x1004:
        return put(size, out, used, &d->group_max, sizeof d->group_max);
    case 0x1010:
        return put(size, out, used, &d->most_bytes, sizeof d->most_bytes);
    case 0x102B:
        return put(size, out, used, d->name, strlen(d->name) + 1);
    case 0x102D:
        return put(size, out, used, d->driver, strlen(d->driver) + 1);
    case 0x1035:
        if (d->unified == FAKE_UNSAID) {
            return FAILS;
        }
        return put(size, out, used, &d->unified, sizeof d->unified);
    default:
        return FAILS;
    }
}

int32_t clCreateSubDevices(void *device, const intptr_t *how, uint32_t n, void **out,
                           uint32_t *count)
{
    CALL(FAILS);
    struct fake_device *d = ((struct fake_object *)device)->device;
    if (how[0] != 0x1086 || how[1] != 1 || how[2] != 0 || d->n_parts > n) {
        return FAILS;
    }
    for (uint32_t i = 0; i < d->n_parts; i++) {
        struct fake_object *o = make(FAKE_DEVICE);
        o->device = d;
        o->part = true;
        out[i] = o;
    }
    *count = d->n_parts;
    return 0;
}

int32_t clReleaseDevice(void *device)
{
    return drop(device);
}

/* Returns a new object and success, or NULL and an error. */
static void *created(const char *function, enum fake_kind kind, int32_t *rc)
{
    *rc = fails(function) ? FAILS : 0;
    return *rc == 0 ? make(kind) : NULL;
}

void *clCreateContext(const intptr_t *how, uint32_t n, void *const *devices, void *callback,
                      void *data, int32_t *rc)
{
    (void)how, (void)n, (void)devices, (void)callback, (void)data;
    return created(__func__, FAKE_CONTEXT, rc);
}

int32_t clReleaseContext(void *context)
{
    return drop(context);
}

void *clCreateCommandQueue(void *context, void *device, uint64_t how, int32_t *rc)
{
    (void)context, (void)device;
    return how == 2 ? created(__func__, FAKE_QUEUE, rc) : NULL;
}

int32_t clReleaseCommandQueue(void *queue)
{
    return drop(queue);
}

void *clCreateProgramWithSource(void *context, uint32_t n, const char *const *text,
                                const size_t *sizes, int32_t *rc)
{
    (void)context, (void)sizes;
    return n == 1 && strstr(text[0], "stream_read") != NULL ? created(__func__, FAKE_PROGRAM, rc)
                                                            : NULL;
}

int32_t clBuildProgram(void *program, uint32_t n, void *const *devices, const char *options,
                       void *callback, void *data)
{
    (void)n, (void)devices, (void)callback, (void)data;
    CALL(FAILS);
    strncpy(((struct fake_object *)program)->text, options, 63);
    return 0;
}

int32_t clGetProgramBuildInfo(void *program, void *device, uint32_t what, size_t size, void *out,
                              size_t *used)
{
    (void)program, (void)device;
    return what == 0x1183 ? put(size, out, used, F->log, strlen(F->log) + 1) : FAILS;
}

int32_t clReleaseProgram(void *program)
{
    return drop(program);
}

void *clCreateKernel(void *program, const char *name, int32_t *rc)
{
    (void)program;
    struct fake_object *o = created(__func__, FAKE_KERNEL, rc);
    if (o != NULL) {
        strncpy(o->text, name, sizeof o->text - 1);
    }
    return o;
}

int32_t clReleaseKernel(void *kernel)
{
    return drop(kernel);
}

int32_t clSetKernelArg(void *kernel, uint32_t index, size_t size, const void *value)
{
    CALL(FAILS);
    struct fake_object *o = kernel;
    if (index >= FAKE_ARGS || size > sizeof o->args[0]) {
        return FAILS;
    }
    o->args[index] = 0;
    memcpy(&o->args[index], value, size);
    o->arg_sizes[index] = size;
    return 0;
}

void *clCreateBuffer(void *context, uint64_t how, size_t size, void *host, int32_t *rc)
{
    (void)context;
    struct fake_object *o = how == 1 && host == NULL ? created(__func__, FAKE_BUFFER, rc) : NULL;
    if (o != NULL) {
        o->bytes = calloc(1, size);
        o->size = size;
    }
    return o;
}

int32_t clReleaseMemObject(void *buffer)
{
    return drop(buffer);
}

int32_t clEnqueueNDRangeKernel(void *queue, void *kernel, uint32_t dims, const size_t *offset,
                               const size_t *global, const size_t *local, uint32_t n_wait,
                               void *const *wait, void **event)
{
    (void)queue, (void)offset, (void)n_wait, (void)wait;
    CALL(FAILS);
    struct fake_object *k = kernel;
    struct fake_launch *l = &F->launches[F->n_launches++ % FAKE_LAUNCHES];
    memset(l, 0, sizeof *l);
    memcpy(l->name, k->text, sizeof l->name);
    memcpy(l->args, k->args, sizeof l->args);
    memcpy(l->arg_sizes, k->arg_sizes, sizeof l->arg_sizes);
    l->dims = dims;
    l->has_local = local != NULL;
    for (uint32_t i = 0; i < dims; i++) {
        l->global[i] = global[i];
        l->local[i] = local != NULL ? local[i] : 0;
    }
    if (F->run != NULL) {
        F->run(k, global[0]);
    }
    uint64_t start_ns = F->device_ns;
    F->device_ns += F->launch_ns;
    if (event != NULL) {
        struct fake_object *o = make(FAKE_EVENT);
        o->start_ns = start_ns;
        o->end_ns = F->device_ns;
        *event = o;
    }
    return 0;
}

static int32_t move(struct fake_object *b, size_t offset, size_t size, void *to, const void *from)
{
    if (offset + size > b->size) {
        return -30;
    }
    if (from != NULL) {
        memcpy(b->bytes + offset, from, size);
    } else {
        memcpy(to, b->bytes + offset, size);
    }
    return 0;
}

int32_t clEnqueueWriteBuffer(void *queue, void *buffer, uint32_t blocking, size_t offset,
                             size_t size, const void *data, uint32_t n_wait, void *const *wait,
                             void **event)
{
    (void)queue, (void)n_wait, (void)wait, (void)event;
    CALL(FAILS);
    return blocking == 1 ? move(buffer, offset, size, NULL, data) : FAILS;
}

int32_t clEnqueueReadBuffer(void *queue, void *buffer, uint32_t blocking, size_t offset,
                            size_t size, void *data, uint32_t n_wait, void *const *wait,
                            void **event)
{
    (void)queue, (void)n_wait, (void)wait, (void)event;
    CALL(FAILS);
    return blocking == 1 ? move(buffer, offset, size, data, NULL) : FAILS;
}

int32_t clFlush(void *queue)
{
    (void)queue;
    CALL(FAILS);
    return 0;
}

int32_t clFinish(void *queue)
{
    (void)queue;
    CALL(FAILS);
    return 0;
}

int32_t clGetEventInfo(void *event, uint32_t what, size_t size, void *out, size_t *used)
{
    (void)event;
    CALL(FAILS);
    F->n_polls++;
    int32_t status = F->failed_status;
    if (F->n_pending > 0) {
        F->n_pending--;
        status = 1;
    }
    return what == 0x11D3 ? put(size, out, used, &status, sizeof status) : FAILS;
}

int32_t clGetEventProfilingInfo(void *event, uint32_t what, size_t size, void *out, size_t *used)
{
    CALL(FAILS);
    const struct fake_object *o = event;
    return what == 0x1282   ? put(size, out, used, &o->start_ns, sizeof o->start_ns)
           : what == 0x1283 ? put(size, out, used, &o->end_ns, sizeof o->end_ns)
                            : FAILS;
}

int32_t clReleaseEvent(void *event)
{
    return drop(event);
}
