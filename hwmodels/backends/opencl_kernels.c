/* Kernels of the opencl backend: grids, arguments, and the choice between two products. */
#include "hwmodels/backends/opencl_impl.h"
#include "sim/base/clock.h"

#define TILE 16
#define CHOICE_RUNS 2

bool opencl_supports(const struct backend_device *d UNUSED, const struct kernel_spec *s)
{
    switch (s->op) {
    case KERNEL_GEMV:
        return s->act_bits == 32 && s->n % 4 == 0 && s->k % 16 == 0 &&
               (s->weight_bits == 32 || s->weight_bits == 16 || s->weight_bits == 8);
    case KERNEL_GEMM:
        return s->act_bits == 32 && s->weight_bits == 32 && s->n % 4 == 0 && s->k % 16 == 0;
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
        return s->weight_bits == 16 && s->head_dim % 16 == 0 && s->head_dim <= 256 &&
               s->kv_heads > 0 && s->heads % s->kv_heads == 0 && s->rows <= s->context_tokens;
    default:
        return s->stream_bytes % 256 == 0;
    }
}

/* Sets the grid and returns the kernel's name. `variant` of GEMM: 1 tiled, 2 blocked. */
static const char *shape_of(struct backend_kernel *k, uint32_t variant)
{
    const struct kernel_spec *s = &k->spec;
    /* Enough for several per unit; on a GPU enough to hide memory latency. */
    size_t workers = k->device->is_cpu ? 4u * k->device->units : 256u * k->device->units;
    k->dims = 1;
    k->has_local = false;
    k->global[0] = workers;
    k->global[1] = 1;
    k->element_bytes = s->weight_bits / 8;
    switch (s->op) {
    case KERNEL_READ:
        return "stream_read";
    case KERNEL_COPY:
        return "stream_copy";
    case KERNEL_KNOB:
        return "stream_knob";
    case KERNEL_GEMV:
        k->global[0] = s->n / 4;
        return s->weight_bits == 32 ? "gemv_f32" : s->weight_bits == 16 ? "gemv_f16" : "gemv_i8";
    case KERNEL_GEMM:
        k->dims = 2;
        if (variant == 1) {
            k->has_local = true;
            k->local[0] = k->local[1] = TILE;
            k->global[0] = (s->n + TILE - 1) / TILE * TILE;
            k->global[1] = (s->rows + TILE - 1) / TILE * TILE;
            return "gemm_tiled";
        }
        k->global[0] = s->n / 4;
        k->global[1] = (s->rows + 3) / 4;
        return "gemm_blocked";
    default:
        k->dims = 2;
        k->global[0] = s->heads;
        k->global[1] = s->rows;
        return "attention";
    }
}

static int32_t set_args(const struct backend_kernel *k, uint64_t at_bytes)
{
    const struct opencl_api *a = k->device->api;
    const struct kernel_spec *s = &k->spec;
    uint64_t at = at_bytes / k->element_bytes;
    int32_t rc = a->clSetKernelArg(k->kernel, 0, sizeof k->device->pool, &k->device->pool);
    rc |= a->clSetKernelArg(k->kernel, 1, sizeof at, &at);
    if (!kernel_op_is_product(s->op) && !kernel_op_is_attention(s->op)) {
        uint64_t vectors = s->stream_bytes / 64;
        rc |= a->clSetKernelArg(k->kernel, 2, sizeof vectors, &vectors);
        rc |= a->clSetKernelArg(k->kernel, 3, sizeof k->y, &k->y);
        uint32_t steps = 2 * s->intensity_flop_per_byte; /* 4 bytes per element, 2 flop a step */
        return s->op == KERNEL_KNOB ? rc | a->clSetKernelArg(k->kernel, 4, sizeof steps, &steps)
                                    : rc;
    }
    uint32_t product[3] = {s->rows, s->n, s->k};
    uint32_t attention[5] = {s->rows, s->heads, s->kv_heads, s->context_tokens,
                             s->op == KERNEL_DECODE};
    bool is_product = kernel_op_is_product(s->op);
    rc |= a->clSetKernelArg(k->kernel, 2, sizeof k->x, &k->x);
    rc |= a->clSetKernelArg(k->kernel, 3, sizeof k->y, &k->y);
    for (uint32_t i = 0; i < (is_product ? 3u : 5u); i++) {
        rc |= a->clSetKernelArg(k->kernel, 4 + i, sizeof(uint32_t),
                                is_product ? &product[i] : &attention[i]);
    }
    return rc;
}

int32_t opencl_enqueue(const struct backend_kernel *k, uint64_t at_bytes, void **event)
{
    const struct opencl_api *a = k->device->api;
    /* Each launch reads a different piece of the pool, so it sets its arguments. */
    int32_t rc = set_args(k, at_bytes);
    if (rc == CL_SUCCESS) {
        rc = a->clEnqueueNDRangeKernel(k->device->queue, k->kernel, k->dims, NULL, k->global,
                                       k->has_local ? k->local : NULL, 0, NULL, event);
    }
    return rc == CL_SUCCESS ? a->clFlush(k->device->queue) : rc;
}

void opencl_release(struct backend_kernel *k)
{
    const struct opencl_api *a = k->device->api;
    if (k->kernel != NULL) {
        (void)a->clReleaseKernel(k->kernel);
    }
    if (k->x != NULL) {
        (void)a->clReleaseMemObject(k->x);
    }
    if (k->y != NULL) {
        (void)a->clReleaseMemObject(k->y);
    }
    free(k);
}

/* Seconds of the second of two runs with a variant of GEMM; negative: it does not run. */
static double try_variant(struct backend_kernel *k, void *program, uint32_t variant)
{
    const struct opencl_api *a = k->device->api;
    int32_t rc;
    double seconds = -1.0;
    if (variant == 1 && k->device->group_max < TILE * TILE) {
        return -1.0;
    }
    k->kernel = a->clCreateKernel(program, shape_of(k, variant), &rc);
    /* The last run counts, because drivers delay work until the first one. */
    for (int i = 0; k->kernel != NULL && i < CHOICE_RUNS; i++) {
        int64_t start_ns = clock_now_ns();
        if (opencl_enqueue(k, 0, NULL) != CL_SUCCESS ||
            a->clFinish(k->device->queue) != CL_SUCCESS) {
            seconds = -1.0;
            break;
        }
        seconds = units_s_from_ns(clock_now_ns() - start_ns);
    }
    if (k->kernel != NULL) {
        (void)a->clReleaseKernel(k->kernel);
        k->kernel = NULL;
    }
    return seconds;
}

/* The faster variant of GEMM for this device and shape, because neither is best everywhere. */
static uint32_t choose_variant(struct backend_kernel *k, void *program)
{
    uint32_t forced = k->device->backend->options.gemm_variant;
    if (k->spec.op != KERNEL_GEMM || forced != 0) {
        return forced;
    }
    double tiled_s = try_variant(k, program, 1);
    double blocked_s = try_variant(k, program, 2);
    return tiled_s > 0.0 && (blocked_s <= 0.0 || tiled_s < blocked_s) ? 1 : 2;
}

static void size_buffers(struct backend_kernel *k)
{
    const struct kernel_spec *s = &k->spec;
    if (kernel_op_is_product(s->op)) {
        k->x_bytes = sizeof(float) * (uint64_t)s->rows * s->k;
        k->y_bytes = sizeof(float) * (uint64_t)s->rows * s->n;
    } else if (kernel_op_is_attention(s->op)) {
        k->x_bytes = k->y_bytes = sizeof(float) * (uint64_t)s->rows * s->heads * s->head_dim;
    } else {
        k->x_bytes = 64;
        k->y_bytes = sizeof(float) * 1024u * (k->device->units + 1u);
    }
}

struct backend_kernel *opencl_prepare(struct backend_device *d, const struct kernel_spec *s,
                                      struct backend_prep *out, struct err *e)
{
    const struct opencl_api *a = d->api;
    int32_t rc = 0;
    memset(out, 0, sizeof *out);
    uint64_t need = kernel_spec_weight_bytes(s) * (s->op == KERNEL_COPY ? 2 : 1);
    if (!opencl_supports(d, s) || need > d->pool_bytes) {
        return err_null(e, "%s: not supported, or larger than the pool of %llu MB",
                        kernel_spec_name(s), (unsigned long long)(d->pool_bytes >> 20));
    }
    void *program =
        opencl_program_of(d, kernel_op_is_attention(s->op) ? s->head_dim : 64, &out->compile_s, e);
    if (program == NULL) {
        return NULL;
    }
    struct backend_kernel *k = xcalloc(1, sizeof *k);
    k->device = d;
    k->spec = *s;
    k->weight_bytes = kernel_spec_weight_bytes(s);
    size_buffers(k);
    (void)shape_of(k, 2);
    OWNED float *data = xcalloc(k->x_bytes / sizeof(float) + 1, sizeof *data);
    k->x = a->clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)k->x_bytes, NULL, &rc);
    if (k->x != NULL) {
        k->y = a->clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)k->y_bytes, NULL, &rc);
    }
    if (k->y != NULL) {
        rc = a->clEnqueueWriteBuffer(d->queue, k->x, CL_TRUE_VALUE, 0, (size_t)k->x_bytes, data, 0,
                                     NULL, NULL);
    }
    if (k->y != NULL && rc == CL_SUCCESS) {
        const char *function = shape_of(k, choose_variant(k, program));
        k->kernel = a->clCreateKernel(program, function, &rc);
        (void)snprintf(out->note, sizeof out->note, "%s", function);
    }
    if (k->kernel == NULL) {
        err_add(e, "%s: the driver refuses it (OpenCL error %d)", kernel_spec_name(s), rc);
        opencl_release(k);
        return NULL;
    }
    return k;
}
