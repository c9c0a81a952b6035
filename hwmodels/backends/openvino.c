/* `openvino`: OpenVINO's devices (CPU, GPU, NPU), through the shared object of real execution. Each
 * device has a thread that waits for its inferences, so devices run concurrently. */
#include <ctype.h>
#include <stdatomic.h>

#include "hwmodels/backends/backend.h"
#include "hwmodels/backends/host.h"
#include "hwmodels/backends/worker.h"
#include "hwmodels/engines/engines.h"

#define MAX_CORES 1024
#define MAX_COPIES 16 /* of a kernel's weights; each is compiled */
#define CACHE_FACTOR 1.5

struct state {
    const struct engine_bench_ops *ops;
    void *bench;
    struct engine_bench_device devices[BACKEND_MAX_DEVICES];
    uint32_t n_devices, cores[MAX_CORES], n_cores;
};

struct backend_device {
    struct state *state; /* borrowed */
    struct worker *worker;
    uint32_t index;
    uint64_t pool_bytes;
    atomic_bool failed;
};

struct backend_kernel {
    struct backend_device *device;
    struct kernel_spec spec;
    void *kernel;
    uint32_t turn; /* only used by the worker */
};

static struct backend *ov_start(const struct backend_options *o, struct err *e)
{
    char why[ENGINE_MESSAGE_BYTES] = "";
    const struct engine_bench_ops *ops = engine_bench_find(e);
    if (ops == NULL) {
        return NULL;
    }
    struct state *s = xcalloc(1, sizeof *s);
    s->ops = ops;
    uint32_t n = worker_cores(s->cores, MAX_CORES);
    s->n_cores = n < MAX_CORES ? n : MAX_CORES;
    OWNED char *cache = engine_cache();
    s->bench = ops->open(s->n_cores, cache, why);
    if (s->bench == NULL) {
        (void)err_add(e, "backend openvino: %s", why);
        free(s);
        return NULL;
    }
    n = ops->devices(s->bench, s->devices, BACKEND_MAX_DEVICES);
    s->n_devices = n < BACKEND_MAX_DEVICES ? n : BACKEND_MAX_DEVICES;
    struct backend *b = xcalloc(1, sizeof *b);
    *b = (struct backend){&backend_openvino, *o, s};
    return b;
}

static void ov_stop(struct backend *b)
{
    OWNED struct state *s = b->state;
    s->ops->close(s->bench);
    free(b);
}

/* Names are in lower case, as in SoC files. */
static uint32_t ov_enumerate(struct backend *b, struct backend_info *out, uint32_t cap)
{
    static const uint32_t widths[] = {8, 16, 4};
    const struct state *s = b->state;
    for (uint32_t i = 0; i < s->n_devices && i < cap; i++) {
        struct backend_info *d = &out[i];
        memset(d, 0, sizeof *d);
        for (size_t c = 0; c + 1 < sizeof d->name && s->devices[i].name[c] != '\0'; c++) {
            d->name[c] = (char)tolower((unsigned char)s->devices[i].name[c]);
        }
        if (s->devices[i].kind == DEVICE_KIND_CPU) {
            (void)snprintf(d->description, sizeof d->description, "%u threads, OpenVINO %.16s",
                           s->n_cores, s->ops->version);
        } else {
            (void)snprintf(d->description, sizeof d->description, "%.60s, OpenVINO %.16s",
                           s->devices[i].description, s->ops->version);
        }
        d->kind = s->devices[i].kind;
        d->act_bits = 32;
        d->kv_bits = 16;
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            d->weight_bits[d->n_widths++] = widths[w];
        }
    }
    return s->n_devices;
}

static struct backend_device *ov_open(struct backend *b, uint32_t index, struct err *e)
{
    struct state *s = b->state;
    struct worker *w = worker_start(s->cores[index % s->n_cores], e);
    if (w == NULL) {
        return NULL;
    }
    struct backend_device *d = xcalloc(1, sizeof *d);
    d->state = s;
    d->worker = w;
    d->index = index;
    d->pool_bytes = b->options.pool_bytes;
    return d;
}

static void ov_close(struct backend_device *d)
{
    worker_stop(d->worker);
    free(d);
}

/* OpenVINO has no plain streams. */
static bool ov_supports(const struct backend_device *d UNUSED, const struct kernel_spec *s)
{
    return (kernel_op_is_product(s->op) && s->k % 2 == 0) || kernel_op_is_attention(s->op);
}

/* Number of copies that exceed a processor's cache, as far as memory and compile time allow;
 * *cached: they do not. Other devices have no such cache. */
static uint32_t copies_of(const struct backend_device *d, const struct kernel_spec *s, bool *cached)
{
    double bytes = (double)kernel_spec_weight_bytes(s);
    double cache = d->state->devices[d->index].kind == DEVICE_KIND_CPU ? host_cache_bytes() : 0.0;
    double room = fmin(MAX_COPIES, floor((double)d->pool_bytes / bytes));
    /* Weights are constants of a compiled model, so copies replace the pool of other backends. */
    double want = fmax(2.0, ceil(CACHE_FACTOR * cache / bytes));
    bool enough = want <= room;
    *cached = !enough && room * bytes < cache; /* then a second copy would be useless */
    return (uint32_t)fmax(1.0, enough ? want : *cached ? 1.0 : room);
}

static struct backend_kernel *make(struct backend_device *d, const struct kernel_spec *s,
                                   uint32_t copies, const void *weights, double *compile_s,
                                   struct err *e)
{
    char why[ENGINE_MESSAGE_BYTES] = "";
    const struct state *state = d->state;
    void *kernel = state->ops->prepare(state->bench, state->devices[d->index].name, s, copies,
                                       weights, compile_s, why);
    if (kernel == NULL) {
        return err_null(e, "%s on %s: %s", kernel_spec_name(s), state->devices[d->index].name, why);
    }
    struct backend_kernel *k = xcalloc(1, sizeof *k);
    k->device = d;
    k->spec = *s;
    k->kernel = kernel;
    return k;
}

static struct backend_kernel *ov_prepare(struct backend_device *d, const struct kernel_spec *s,
                                         struct backend_prep *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    uint32_t copies = copies_of(d, s, &out->cached);
    struct backend_kernel *k = make(d, s, copies, NULL, &out->compile_s, e);
    (void)snprintf(out->note, sizeof out->note, "%u copies", copies);
    return k;
}

static void ov_release(struct backend_kernel *k)
{
    k->device->state->ops->release(k->kernel);
    free(k);
}

static void launch(void *arg)
{
    struct backend_kernel *k = arg;
    char why[ENGINE_MESSAGE_BYTES];
    if (k->device->state->ops->run(k->kernel, k->turn++, NULL, NULL, why) != 0 &&
        !atomic_exchange(&k->device->failed, true)) {
        (void)fprintf(stderr, "xpusim: %s: %s\n", k->device->state->devices[k->device->index].name,
                      why);
    }
}

static int64_t ov_submit(struct backend_kernel *k)
{
    return atomic_load(&k->device->failed) ? -EIO : worker_submit(k->device->worker, launch, k);
}

static int ov_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    int rc = worker_wait(d->worker, ticket, timeout_ns);
    return rc == 0 && atomic_load(&d->failed) ? -EIO : rc;
}

/* The waiting thread sleeps or helps, so its processor time is not that of the device. */
static int ov_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    int rc = worker_stamps(d->worker, ticket, out);
    out->cpu_ns = -1;
    return rc;
}

static int64_t ov_cancel(struct backend_device *d, int64_t ticket)
{
    return worker_cancel(d->worker, ticket);
}

static void ov_counters(struct backend_device *d UNUSED, struct backend_counters *out)
{
    out->busy_valid = false;
}

/* Computes a product with the given weights, in a separate kernel. */
static int ov_compute(struct backend_kernel *k, const float *x, const void *w, float *y)
{
    char why[ENGINE_MESSAGE_BYTES];
    struct err e = ERR_INIT;
    double compile_s;
    if (!kernel_op_is_product(k->spec.op)) {
        return -ENOTSUP;
    }
    struct backend_kernel *own = make(k->device, &k->spec, 1, w, &compile_s, &e);
    int rc = own == NULL ? -EIO : k->device->state->ops->run(own->kernel, 0, x, y, why);
    if (own != NULL) {
        ov_release(own);
    }
    err_fini(&e);
    return rc;
}

const struct backend_ops backend_openvino = {
    .name = "openvino",
    .summary = "OpenVINO's devices: CPU of all threads, GPU, NPU (`make engines`)",
    .start = ov_start,
    .stop = ov_stop,
    .enumerate = ov_enumerate,
    .open = ov_open,
    .close = ov_close,
    .supports = ov_supports,
    .prepare = ov_prepare,
    .release = ov_release,
    .submit = ov_submit,
    .wait = ov_wait,
    .stamps = ov_stamps,
    .cancel = ov_cancel,
    .counters = ov_counters,
    .compute = ov_compute,
};
