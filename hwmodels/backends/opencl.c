/* `opencl`: any OpenCL 1.2 device. CPU devices are split into one-unit sub-devices, so every
 * machine with two cores has two devices on one memory. Times come from event profiling. */
#include "hwmodels/backends/opencl_impl.h"
#include "hwmodels/backends/worker.h"
#include "sim/base/clock.h"

#define MAX_PLATFORMS 8
#define MAX_PARTS 4              /* sub-devices of a CPU */
#define POLL_NS (50 * NS_PER_US) /* OpenCL cannot wait with a timeout */

static int64_t cl_submit(struct backend_kernel *k)
{
    struct backend_device *d = k->device;
    uint64_t need = k->weight_bytes * (k->spec.op == KERNEL_COPY ? 2 : 1);
    if (d->last_ticket - d->ended >= BACKEND_MAX_INFLIGHT) {
        return -EAGAIN;
    }
    /* Cycles through the pool, so that weights of a launch are in memory, and not in a cache filled
     * by the previous one. */
    if (d->cursor + need > d->pool_bytes) {
        d->cursor = 0;
    }
    int64_t slot = (d->last_ticket + 1) % BACKEND_MAX_INFLIGHT;
    if (d->events[slot] != NULL) {
        (void)d->api->clReleaseEvent(d->events[slot]);
        d->events[slot] = NULL;
    }
    d->submit_ns[slot] = clock_now_ns();
    if (opencl_enqueue(k, d->cursor, &d->events[slot]) != CL_SUCCESS) {
        return -EIO;
    }
    d->cursor += (need + 4095) / 4096 * 4096;
    return ++d->last_ticket;
}

static bool profile(const struct backend_device *d, int64_t ticket, uint32_t what, int64_t *out)
{
    uint64_t ns = 0;
    void *event = d->events[ticket % BACKEND_MAX_INFLIGHT];
    if (d->api->clGetEventProfilingInfo(event, what, sizeof ns, &ns, NULL) != CL_SUCCESS) {
        return false;
    }
    *out = (int64_t)ns;
    return true;
}

/* Queues are in order, so launches before a finished one are finished. */
static void note_end(struct backend_device *d, int64_t ticket, int64_t seen_ns)
{
    int64_t start_ns;
    int64_t end_ns;
    for (int64_t t = d->ended + 1; t <= ticket; t++) {
        if (profile(d, t, CL_PROFILING_COMMAND_START, &start_ns) &&
            profile(d, t, CL_PROFILING_COMMAND_END, &end_ns)) {
            d->busy_ns += end_ns - start_ns;
            /* The device's clock is behind by at least this. Keeps the tightest bound. */
            int64_t offset_ns = seen_ns - end_ns;
            if (d->ended == 0 || offset_ns < d->offset_ns) {
                d->offset_ns = offset_ns;
            }
        }
        d->ended = t;
    }
}

static int cl_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    int64_t until_ns = clock_now_ns() + timeout_ns;
    if (ticket <= d->ended) {
        return 0;
    }
    for (;;) {
        int32_t status = 1;
        if (d->api->clGetEventInfo(d->events[ticket % BACKEND_MAX_INFLIGHT],
                                   CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                                   NULL) != CL_SUCCESS ||
            status < 0) {
            return -EIO;
        }
        int64_t now_ns = clock_now_ns();
        if (status == CL_COMPLETE) {
            note_end(d, ticket, now_ns);
            return 0;
        }
        if (now_ns >= until_ns) {
            return -ETIMEDOUT;
        }
        /* Sleeps, because a polling core would take power and bandwidth from the measured kernel.
         * The kernel's time comes from the device, so a late query does not change it. */
        worker_sleep(POLL_NS);
    }
}

static int cl_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    int64_t start_ns;
    int64_t end_ns;
    if (ticket < 1 || ticket > d->ended || d->last_ticket - ticket >= BACKEND_MAX_INFLIGHT ||
        !profile(d, ticket, CL_PROFILING_COMMAND_START, &start_ns) ||
        !profile(d, ticket, CL_PROFILING_COMMAND_END, &end_ns)) {
        return -EINVAL;
    }
    out->submit_ns = d->submit_ns[ticket % BACKEND_MAX_INFLIGHT];
    out->start_ns = start_ns + d->offset_ns;
    out->end_ns = end_ns + d->offset_ns;
    /* The offset of the clocks is a bound, with an error below a wake-up time. So stamps are
     * clamped to their order. */
    out->start_ns = out->start_ns < out->submit_ns ? out->submit_ns : out->start_ns;
    out->end_ns = out->end_ns < out->start_ns ? out->start_ns : out->end_ns;
    out->cpu_ns = -1;
    return 0;
}

static int64_t cl_cancel(struct backend_device *d UNUSED, int64_t ticket UNUSED)
{
    return -ENOTSUP;
}

static void cl_counters(struct backend_device *d, struct backend_counters *out)
{
    out->busy_valid = true;
    out->busy_ns = d->busy_ns;
}

static int cl_compute(struct backend_kernel *k, const float *x, const void *w, float *y)
{
    const struct opencl_api *a = k->device->api;
    void *queue = k->device->queue;
    bool stream = !kernel_op_is_product(k->spec.op) && !kernel_op_is_attention(k->spec.op);
    int32_t rc = a->clEnqueueWriteBuffer(queue, k->device->pool, CL_TRUE_VALUE, 0,
                                         (size_t)k->weight_bytes, w, 0, NULL, NULL);
    if (!stream) {
        rc |= a->clEnqueueWriteBuffer(queue, k->x, CL_TRUE_VALUE, 0, (size_t)k->x_bytes, x, 0, NULL,
                                      NULL);
    }
    rc |= opencl_enqueue(k, 0, NULL);
    rc |= a->clFinish(queue);
    if (k->spec.op == KERNEL_COPY) {
        rc |= a->clEnqueueReadBuffer(queue, k->device->pool, CL_TRUE_VALUE, (size_t)k->weight_bytes,
                                     (size_t)k->weight_bytes, y, 0, NULL, NULL);
    } else if (stream) { /* partial sums, one per work-item */
        OWNED float *parts = xcalloc(k->global[0], sizeof *parts);
        rc |= a->clEnqueueReadBuffer(queue, k->y, CL_TRUE_VALUE, 0, k->global[0] * sizeof *parts,
                                     parts, 0, NULL, NULL);
        y[0] = 0.0f;
        for (size_t i = 0; i < k->global[0]; i++) {
            y[0] += parts[i];
        }
    } else {
        rc |= a->clEnqueueReadBuffer(queue, k->y, CL_TRUE_VALUE, 0, (size_t)k->y_bytes, y, 0, NULL,
                                     NULL);
    }
    return rc == CL_SUCCESS ? 0 : -EIO;
}

static void add_part(struct opencl_state *s, void *device, bool sub, const char *name)
{
    char hardware[256];
    char driver[24];
    if (s->n == BACKEND_MAX_DEVICES) {
        return;
    }
    uint64_t type = opencl_info_number(&s->api, device, CL_DEVICE_TYPE, sizeof type);
    uint64_t unified = opencl_info_number(&s->api, device, CL_DEVICE_HOST_UNIFIED_MEMORY, 4);
    struct backend_info *d = &s->infos[s->n];
    memset(d, 0, sizeof *d);
    opencl_info_text(&s->api, device, CL_DEVICE_NAME, hardware, sizeof hardware);
    opencl_info_text(&s->api, device, CL_DRIVER_VERSION, driver, sizeof driver);
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    (void)snprintf(d->description, sizeof d->description, "%.60s, driver %s", hardware, driver);
    /* OpenCL has no NPU type, but NPUs are accelerators. An integrated GPU shares the host's
     * memory, and a card does not. */
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
    s->parts[s->n++] = (struct opencl_part){device, sub};
}

/* Adds a device, or a CPU as one-unit parts. */
static void add_device(struct opencl_state *s, void *device, uint32_t number)
{
    char name[16];
    void *subs[64];
    const intptr_t how[3] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    uint32_t n = 0;
    uint64_t type = opencl_info_number(&s->api, device, CL_DEVICE_TYPE, sizeof type);
    uint64_t units = opencl_info_number(&s->api, device, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
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

static struct backend *cl_start(const struct backend_options *o, struct err *e)
{
    struct opencl_state *s = xcalloc(1, sizeof *s);
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

static void cl_stop(struct backend *b)
{
    OWNED struct opencl_state *s = b->state;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->parts[i].sub) {
            (void)s->api.clReleaseDevice(s->parts[i].device);
        }
    }
    /* The library remains loaded, because drivers have threads that run its code. */
    free(b);
}

static uint32_t cl_enumerate(struct backend *b, struct backend_info *out, uint32_t cap)
{
    const struct opencl_state *s = b->state;
    for (uint32_t i = 0; i < s->n && i < cap; i++) {
        out[i] = s->infos[i];
    }
    return s->n;
}

const struct backend_ops backend_opencl = {
    .name = "opencl",
    .summary = "OpenCL devices (package ocl-icd-libopencl1 and a driver)",
    .start = cl_start,
    .stop = cl_stop,
    .enumerate = cl_enumerate,
    .open = opencl_open,
    .close = opencl_close,
    .supports = opencl_supports,
    .prepare = opencl_prepare,
    .release = opencl_release,
    .submit = cl_submit,
    .wait = cl_wait,
    .stamps = cl_stamps,
    .cancel = cl_cancel,
    .counters = cl_counters,
    .compute = cl_compute,
};
