/* `opencl`: any OpenCL 1.2 device. CPU devices are cut into one-unit sub-devices, which gives two
 * devices on one memory wherever there are two cores. Times come from event profiling. */
#include "hwmodels/backends/opencl_impl.h"
#include "hwmodels/backends/worker.h"
#include "sim/base/clock.h"

#define POLL_NS (50 * NS_PER_US) /* OpenCL cannot wait with a timeout */

static int64_t cl_submit(struct backend_kernel *k)
{
    struct backend_device *d = k->device;
    uint64_t need = k->weight_bytes * (k->spec.op == KERNEL_COPY ? 2 : 1);
    if (d->last_ticket - d->ended >= BACKEND_MAX_INFLIGHT) {
        return -EAGAIN;
    }
    /* Round the pool, so that each launch finds its weights in memory and not in a cache that the
     * one before filled. */
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

/* Queues are in order: what is before a finished launch is finished. */
static void note_end(struct backend_device *d, int64_t ticket, int64_t seen_ns)
{
    int64_t start_ns;
    int64_t end_ns;
    for (int64_t t = d->ended + 1; t <= ticket; t++) {
        if (profile(d, t, CL_PROFILING_COMMAND_START, &start_ns) &&
            profile(d, t, CL_PROFILING_COMMAND_END, &end_ns)) {
            d->busy_ns += end_ns - start_ns;
            /* The device's clock is at least this far behind: the tightest bound is kept. */
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
        /* Asleep and not in a loop: on a shared package a core that polls takes power and bandwidth
         * from what is measured. How long a kernel took is the device's own word, whenever it is
         * asked. */
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
    /* The two clocks are joined by a bound, which may be off by less than a wake-up: no stamp is
     * before the one that it follows. */
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

const struct backend_ops backend_opencl = {
    .name = "opencl",
    .summary = "OpenCL devices (package ocl-icd-libopencl1 and a driver)",
    .start = opencl_start,
    .stop = opencl_stop,
    .enumerate = opencl_enumerate,
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
