#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#include "hwmodels/backends/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hwmodels/backends/worker.h"
#include "sim/base/arena.h"

#define PAGE_BYTES 4096u
#define MAX_CORES 1024

struct backend_device {
    struct cpu_backend *backend; /* borrowed */
    struct worker *worker;
    uint8_t *pool;
    uint64_t pool_bytes;
    uint64_t cursor; /* moved by the worker alone */
};

struct backend_kernel {
    struct backend_device *device;
    struct kernel_spec spec;
    uint64_t weight_bytes;
    float *x, *y, *scratch;
};

uint32_t cpu_enumerate(struct backend *b, struct backend_info *out, uint32_t cap)
{
    const struct cpu_backend *s = b->state;
    uint32_t cores[MAX_CORES];
    uint32_t n = worker_cores(cores, MAX_CORES);
    for (uint32_t i = 0; i < n && i < cap; i++) {
        struct backend_info *d = &out[i];
        memset(d, 0, sizeof *d);
        (void)snprintf(d->name, sizeof d->name, "cpu%u", cores[i]);
        (void)snprintf(d->description, sizeof d->description, "%s", s->description);
        d->kind = DEVICE_KIND_CPU;
        d->act_bits = 32;
        d->kv_bits = s->kernels.attention != NULL ? 16 : 0;
        d->weight_bits[d->n_widths++] = 32;
        if (s->kernels.product_f16 != NULL) {
            d->weight_bits[d->n_widths++] = 16;
        }
        if (s->kernels.product_i8 != NULL) {
            d->weight_bits[d->n_widths++] = 8;
        }
    }
    return n;
}

/* Every 16-bit half is +-2^-4 .. 2^-3 as half precision; two of them are a normal float near 1e-12;
 * each byte is some integer. So one pool serves all widths, and no kernel meets a special value. */
static void fill(uint8_t *pool, uint64_t bytes)
{
    uint64_t x = 0x9E3779B97F4A7C15ULL;
    for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17; /* xorshift64 */
        uint64_t v = (x & 0x83ff83ff83ff83ffULL) | 0x2c002c002c002c00ULL;
        memcpy(pool + i, &v, sizeof v);
    }
}

struct backend_device *cpu_open(struct backend *b, uint32_t index, struct err *e)
{
    uint32_t cores[MAX_CORES];
    uint32_t n = worker_cores(cores, MAX_CORES);
    if (index >= n) {
        err_add(e, "device %u: there are %u cores", index, n);
        return NULL;
    }
    uint64_t bytes = (b->options.pool_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) {
        err_add(e, "cpu%u: no %llu MB of memory for weights: use a smaller --pool-mb", cores[index],
                (unsigned long long)(bytes >> 20));
        return NULL;
    }
    (void)madvise(pool, bytes, MADV_HUGEPAGE); /* advice: fine when refused */
    struct worker *w = worker_start(cores[index], e);
    if (w == NULL) {
        (void)munmap(pool, bytes);
        return NULL;
    }
    fill(pool, bytes);
    struct backend_device *d = xcalloc(1, sizeof *d);
    d->backend = b->state;
    d->worker = w;
    d->pool = pool;
    d->pool_bytes = bytes;
    return d;
}

void cpu_close(struct backend_device *d)
{
    worker_stop(d->worker);
    (void)munmap(d->pool, d->pool_bytes);
    free(d);
}

bool cpu_supports(const struct backend_device *d, const struct kernel_spec *s)
{
    const struct native_kernels *k = &d->backend->kernels;
    if (s->act_bits != 32) {
        return false;
    }
    if (kernel_op_is_product(s->op)) {
        return s->n % 4 == 0 && s->k % 16 == 0 &&
               ((s->weight_bits == 32 && k->product_f32 != NULL) ||
                (s->weight_bits == 16 && k->product_f16 != NULL) ||
                (s->weight_bits == 8 && k->product_i8 != NULL));
    }
    if (kernel_op_is_attention(s->op)) {
        return k->attention != NULL && s->weight_bits == 16 && s->head_dim % 16 == 0 &&
               s->kv_heads > 0 && s->heads % s->kv_heads == 0 &&
               s->heads <= NATIVE_MAX_GROUP * s->kv_heads && s->rows <= s->context_tokens;
    }
    return s->stream_bytes % 64 == 0;
}

static float *floats(uint64_t n)
{
    float *v = xmalloc((size_t)(n + 16) * sizeof *v);
    for (uint64_t i = 0; i < n; i++) {
        v[i] = 0.25f + 0.001f * (float)(i % 251); /* touched before it is timed */
    }
    return v;
}

struct backend_kernel *cpu_prepare(struct backend_device *d, const struct kernel_spec *s,
                                   struct backend_prep *out, struct err *e)
{
    char name[KERNEL_NAME_BYTES];
    uint64_t need = kernel_spec_weight_bytes(s) * (s->op == KERNEL_COPY ? 2 : 1);
    memset(out, 0, sizeof *out);
    if (!cpu_supports(d, s)) {
        err_add(e, "%s: not supported by this backend", kernel_spec_name(s, name, sizeof name));
        return NULL;
    }
    if (need > d->pool_bytes) {
        err_add(e, "%s: needs %llu MB of weights: use a larger --pool-mb",
                kernel_spec_name(s, name, sizeof name), (unsigned long long)(need >> 20) + 1);
        return NULL;
    }
    struct backend_kernel *k = xcalloc(1, sizeof *k);
    k->device = d;
    k->spec = *s;
    k->weight_bytes = kernel_spec_weight_bytes(s);
    if (kernel_op_is_product(s->op)) {
        k->x = floats((uint64_t)s->rows * s->k);
        k->y = floats((uint64_t)s->rows * s->n);
    } else if (kernel_op_is_attention(s->op)) {
        uint64_t n = (uint64_t)s->rows * s->heads * s->head_dim;
        k->x = floats(n);
        k->y = floats(n);
        k->scratch = floats((uint64_t)(s->heads / s->kv_heads) * s->context_tokens);
    } else {
        k->y = floats(1);
    }
    (void)snprintf(out->note, sizeof out->note, "%s", d->backend->kernels.name);
    return k;
}

void cpu_release(struct backend_kernel *k)
{
    free(k->x);
    free(k->y);
    free(k->scratch);
    free(k);
}

/* A decode step is one attention of one row per sequence. */
static void attend(const struct backend_kernel *k, const float *x, const uint16_t *kv, float *y)
{
    const struct kernel_spec *s = &k->spec;
    bool decode = s->op == KERNEL_DECODE;
    struct native_attention a = {.rows = decode ? 1 : s->rows,
                                 .context_tokens = s->context_tokens,
                                 .heads = s->heads,
                                 .kv_heads = s->kv_heads,
                                 .head_dim = s->head_dim};
    uint64_t half = (uint64_t)s->context_tokens * s->kv_heads * s->head_dim;
    uint64_t row = (uint64_t)s->heads * s->head_dim;
    uint32_t sequences = decode ? s->rows : 1;
    for (uint32_t i = 0; i < sequences; i++) {
        const uint16_t *keys = kv + i * half;
        k->device->backend->kernels.attention(&a, x + i * row, keys, keys + sequences * half,
                                              y + i * row, k->scratch);
    }
}

static void run(const struct backend_kernel *k, const float *x, const void *w, float *y)
{
    const struct native_kernels *set = &k->device->backend->kernels;
    const struct kernel_spec *s = &k->spec;
    struct native_product p = {s->rows, s->n, s->k, k->device->backend->library};
    switch (s->op) {
    case KERNEL_READ:
        y[0] = set->read(w, s->stream_bytes / sizeof(float));
        break;
    case KERNEL_KNOB: /* 4 bytes per element */
        y[0] = set->knob(w, s->stream_bytes / sizeof(float), 4 * s->intensity_flop_per_byte);
        break;
    case KERNEL_COPY:
        memcpy(y, w, s->stream_bytes);
        break;
    case KERNEL_GEMV:
    case KERNEL_GEMM:
        if (s->weight_bits == 32) {
            set->product_f32(&p, x, w, y);
        } else if (s->weight_bits == 16) {
            set->product_f16(&p, x, w, y);
        } else {
            set->product_i8(&p, x, w, y);
        }
        break;
    default:
        attend(k, x, w, y);
        break;
    }
}

/* One launch: the next piece of the pool, as far from the last use of it as the pool is large. */
static void launch(void *arg)
{
    struct backend_kernel *k = arg;
    struct backend_device *d = k->device;
    uint64_t need = k->weight_bytes * (k->spec.op == KERNEL_COPY ? 2 : 1);
    if (d->cursor + need > d->pool_bytes) {
        d->cursor = 0;
    }
    uint8_t *w = d->pool + d->cursor;
    d->cursor += (need + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (k->spec.op == KERNEL_COPY) {
        memcpy(w + k->weight_bytes, w, k->weight_bytes);
    } else {
        run(k, k->x, w, k->y);
    }
}

int64_t cpu_submit(struct backend_kernel *k)
{
    return worker_submit(k->device->worker, launch, k);
}

int cpu_wait(struct backend_device *d, int64_t ticket, int64_t timeout_ns)
{
    return worker_wait(d->worker, ticket, timeout_ns);
}

int cpu_stamps(struct backend_device *d, int64_t ticket, struct backend_stamps *out)
{
    return worker_stamps(d->worker, ticket, out);
}

int64_t cpu_cancel(struct backend_device *d, int64_t ticket)
{
    return worker_cancel(d->worker, ticket);
}

void cpu_counters(struct backend_device *d, struct backend_counters *out)
{
    out->busy_valid = true;
    out->busy_ns = worker_busy_ns(d->worker);
}

int64_t cpu_now_ns(struct backend *b)
{
    (void)b;
    return worker_now_ns();
}

void cpu_idle(struct backend *b, int64_t span_ns)
{
    (void)b;
    worker_sleep(span_ns);
}

int cpu_compute(struct backend_kernel *k, const float *x, const void *w, float *y)
{
    run(k, x, w, y);
    return 0;
}
