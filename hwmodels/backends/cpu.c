#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#include "hwmodels/backends/cpu.h"

#include <sys/mman.h>

#include "hwmodels/backends/team.h"
#include "hwmodels/backends/worker.h"
#include "hwmodels/kernel_numbers.h"

#define PAGE_BYTES 4096u
#define MAX_CORES 1024

struct backend_device {
    struct cpu_backend *backend; /* borrowed */
    struct worker *worker;
    struct team *team; /* of all cores; NULL: one core */
    uint32_t n_threads;
    uint8_t *pool;
    uint64_t pool_bytes;
    uint64_t cursor; /* only used by the worker */
};

/* A thread's part of a kernel: some outputs of a product, some heads of attention, or a part of a
 * stream. It has private inputs and results. */
struct slice {
    struct kernel_spec spec; /* of the part; n 0: no work */
    uint32_t first;          /* output, or key head */
    uint64_t first_byte;     /* of a stream */
    float *x, *y, *scratch;
};

struct backend_kernel {
    struct backend_device *device;
    struct kernel_spec spec;
    uint64_t weight_bytes;
    struct slice *slices; /* owned, one per thread */
    uint8_t *w;           /* of the running launch */
};

uint32_t cpu_enumerate(struct backend *b, struct backend_info *out, uint32_t cap)
{
    const struct cpu_backend *s = b->state;
    uint32_t cores[MAX_CORES];
    uint32_t n = worker_cores(cores, MAX_CORES);
    uint32_t all = n > 1 ? n + 1 : n; /* the last device: all cores together */
    for (uint32_t i = 0; i < all && i < cap; i++) {
        struct backend_info *d = &out[i];
        memset(d, 0, sizeof *d);
        if (i < n) {
            (void)snprintf(d->name, sizeof d->name, "cpu%u", cores[i]);
            (void)snprintf(d->description, sizeof d->description, "one core, %.70s",
                           s->description);
        } else {
            (void)snprintf(d->name, sizeof d->name, "cpu");
            (void)snprintf(d->description, sizeof d->description, "%u threads, %.70s", n,
                           s->description);
        }
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
    return all;
}

struct backend_device *cpu_open(struct backend *b, uint32_t index, struct err *e)
{
    uint32_t cores[MAX_CORES];
    uint32_t n = worker_cores(cores, MAX_CORES);
    bool together = n > 1 && index == n;
    if (index >= n && !together) {
        return err_null(e, "device %u: there are %u cores", index, n);
    }
    index = together ? 0 : index;
    uint64_t bytes = (b->options.pool_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    /* One pool for the weights of all kernels, larger than the caches. Each launch uses the next
     * piece, so that weights are read from memory as in a model. */
    void *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) {
        return err_null(e, "cpu%u: no %llu MB of memory for weights: use a smaller --pool-mb",
                        cores[index], (unsigned long long)(bytes >> 20));
    }
    (void)madvise(pool, bytes, MADV_HUGEPAGE); /* only advice: may fail */
    struct worker *w = worker_start(cores[index], e);
    if (w == NULL) {
        (void)munmap(pool, bytes);
        return NULL;
    }
    /* Written now: an unwritten page is the cached zero page, or a page fault in the first launch.
     */
    kernel_fill(pool, bytes);
    struct backend_device *d = xcalloc(1, sizeof *d);
    d->team = together ? team_start(cores, n < MAX_CORES ? n : MAX_CORES, e) : NULL;
    d->n_threads = together ? n : 1;
    if (together && d->team == NULL) {
        worker_stop(w);
        (void)munmap(pool, bytes);
        free(d);
        return NULL;
    }
    d->backend = b->state;
    d->worker = w;
    d->pool = pool;
    d->pool_bytes = bytes;
    return d;
}

void cpu_close(struct backend_device *d)
{
    worker_stop(d->worker);
    team_stop(d->team);
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
        v[i] = 0.25f + 0.001f * (float)(i % 251); /* written before it is timed */
    }
    return v;
}

/* The range of `units` for thread i of n: *count from *first. */
static void share(uint32_t units, uint32_t i, uint32_t n, uint32_t *first, uint32_t *count)
{
    *first = (uint32_t)((uint64_t)units * i / n);
    *count = (uint32_t)((uint64_t)units * (i + 1) / n) - *first;
}

static bool slice_empty(const struct slice *p)
{
    const struct kernel_spec *s = &p->spec;
    return kernel_op_is_product(s->op)     ? s->n == 0
           : kernel_op_is_attention(s->op) ? s->kv_heads == 0
                                           : s->stream_bytes == 0;
}

/* Splits outputs in fours, streams in cache lines, and attention by key head with its queries. */
static void slice_init(struct slice *p, const struct kernel_spec *s, uint32_t i, uint32_t n)
{
    uint32_t first;
    uint32_t count;
    p->spec = *s;
    if (kernel_op_is_product(s->op)) {
        /* By outputs and not by inputs, so that no thread needs the result of another one. */
        share(s->n / 4, i, n, &first, &count);
        p->first = 4 * first;
        p->spec.n = 4 * count;
        p->x = floats((uint64_t)s->rows * s->k);
        p->y = floats((uint64_t)s->rows * p->spec.n);
    } else if (kernel_op_is_attention(s->op)) {
        share(s->kv_heads, i, n, &first, &count);
        p->first = first;
        p->spec.kv_heads = count;
        p->spec.heads = s->heads / s->kv_heads * count;
        uint64_t numbers = (uint64_t)s->rows * p->spec.heads * s->head_dim;
        p->x = floats(numbers);
        p->y = floats(numbers);
        p->scratch = floats((uint64_t)(s->heads / s->kv_heads) * s->context_tokens);
    } else {
        share((uint32_t)(s->stream_bytes / 64), i, n, &first, &count);
        p->first_byte = 64 * (uint64_t)first;
        p->spec.stream_bytes = 64 * (uint64_t)count;
        p->y = floats(1);
    }
}

struct backend_kernel *cpu_prepare(struct backend_device *d, const struct kernel_spec *s,
                                   struct backend_prep *out, struct err *e)
{
    uint64_t need = kernel_spec_weight_bytes(s) * (s->op == KERNEL_COPY ? 2 : 1);
    memset(out, 0, sizeof *out);
    if (!cpu_supports(d, s)) {
        return err_null(e, "%s: not supported by this backend", kernel_spec_name(s));
    }
    if (need > d->pool_bytes) {
        return err_null(e, "%s: needs %llu MB of weights: use a larger --pool-mb",
                        kernel_spec_name(s), (unsigned long long)(need >> 20) + 1);
    }
    struct backend_kernel *k = xcalloc(1, sizeof *k);
    k->device = d;
    k->spec = *s;
    k->weight_bytes = kernel_spec_weight_bytes(s);
    k->slices = xcalloc(d->n_threads, sizeof *k->slices);
    for (uint32_t i = 0; i < d->n_threads; i++) {
        slice_init(&k->slices[i], s, i, d->n_threads);
    }
    (void)snprintf(out->note, sizeof out->note, "%s", d->backend->kernels.name);
    return k;
}

void cpu_release(struct backend_kernel *k)
{
    for (uint32_t i = 0; i < k->device->n_threads; i++) {
        free(k->slices[i].x);
        free(k->slices[i].y);
        free(k->slices[i].scratch);
    }
    free(k->slices);
    free(k);
}

/* A decode step has an attention of one row for each sequence. */
static void attend(const struct backend_kernel *k, const struct slice *p, const uint16_t *kv)
{
    const struct kernel_spec *s = &p->spec;
    bool decode = s->op == KERNEL_DECODE;
    struct native_attention a = {.rows = decode ? 1 : s->rows,
                                 .context_tokens = s->context_tokens,
                                 .heads = s->heads,
                                 .kv_heads = s->kv_heads,
                                 .head_dim = s->head_dim};
    uint64_t head = (uint64_t)s->context_tokens * s->head_dim;
    uint64_t half = head * k->spec.kv_heads;
    uint64_t row = (uint64_t)s->heads * s->head_dim;
    uint32_t sequences = decode ? s->rows : 1;
    for (uint32_t i = 0; i < sequences; i++) {
        const uint16_t *keys = kv + i * half + p->first * head;
        k->device->backend->kernels.attention(&a, p->x + i * row, keys, keys + sequences * half,
                                              p->y + i * row, p->scratch);
    }
}

static void run(const struct backend_kernel *k, const struct slice *p, const uint8_t *w)
{
    const struct native_kernels *set = &k->device->backend->kernels;
    const struct kernel_spec *s = &p->spec;
    struct native_product product = {s->rows, s->n, s->k, k->device->backend->library};
    uint64_t first = (uint64_t)p->first * s->k * s->weight_bits / 8;
    switch (s->op) {
    case KERNEL_READ:
        p->y[0] = set->read((const void *)(w + p->first_byte), s->stream_bytes / sizeof(float));
        break;
    case KERNEL_KNOB: /* 4 bytes per element */
        p->y[0] = set->knob((const void *)(w + p->first_byte), s->stream_bytes / sizeof(float),
                            4 * s->intensity_flop_per_byte);
        break;
    case KERNEL_GEMV:
    case KERNEL_GEMM:
        if (s->weight_bits == 32) {
            set->product_f32(&product, p->x, w + first, p->y);
        } else if (s->weight_bits == 16) {
            set->product_f16(&product, p->x, w + first, p->y);
        } else {
            set->product_i8(&product, p->x, w + first, p->y);
        }
        break;
    default:
        attend(k, p, (const void *)w);
        break;
    }
}

static void part(void *arg, uint32_t i)
{
    struct backend_kernel *k = arg;
    const struct slice *p = &k->slices[i];
    if (slice_empty(p)) {
        return;
    }
    if (p->spec.op == KERNEL_COPY) {
        memcpy(k->w + k->weight_bytes + p->first_byte, k->w + p->first_byte, p->spec.stream_bytes);
    } else {
        run(k, p, k->w);
    }
}

static void all_parts(struct backend_kernel *k)
{
    if (k->device->team != NULL) {
        team_run(k->device->team, part, k);
    } else {
        part(k, 0);
    }
}

/* One launch. It uses the next piece of the pool, so all others are used before the same piece
 * again. */
static void launch(void *arg)
{
    struct backend_kernel *k = arg;
    struct backend_device *d = k->device;
    uint64_t need = k->weight_bytes * (k->spec.op == KERNEL_COPY ? 2 : 1);
    if (d->cursor + need > d->pool_bytes) {
        d->cursor = 0;
    }
    k->w = d->pool + d->cursor;
    d->cursor += (need + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    all_parts(k);
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

/* Copies rows of a slice to or from columns first .. first + n - 1 of the whole. */
static void columns(float *slice, float *whole, uint32_t rows, uint32_t n, uint32_t first,
                    uint32_t stride, bool in)
{
    for (uint32_t r = 0; r < rows; r++) {
        float *a = slice + (uint64_t)r * n;
        float *b = whole + (uint64_t)r * stride + first;
        memcpy(in ? a : b, in ? b : a, n * sizeof *a);
    }
}

static void exchange(struct backend_kernel *k, float *whole, bool in)
{
    const struct kernel_spec *s = &k->spec;
    for (uint32_t i = 0; i < k->device->n_threads; i++) {
        struct slice *p = &k->slices[i];
        if (slice_empty(p)) {
            continue;
        }
        if (kernel_op_is_attention(s->op)) {
            uint32_t group = s->heads / s->kv_heads;
            columns(in ? p->x : p->y, whole, s->rows, p->spec.heads * s->head_dim,
                    p->first * group * s->head_dim, s->heads * s->head_dim, in);
        } else if (in) {
            memcpy(p->x, whole, (uint64_t)s->rows * s->k * sizeof *whole);
        } else {
            columns(p->y, whole, s->rows, p->spec.n, p->first, s->n, false);
        }
    }
}

int cpu_compute(struct backend_kernel *k, const float *x, const void *w, float *y)
{
    bool stream = !kernel_op_is_product(k->spec.op) && !kernel_op_is_attention(k->spec.op);
    if (k->spec.op == KERNEL_COPY) {
        memcpy(y, w, k->spec.stream_bytes);
        return 0;
    }
    if (!stream) {
        exchange(k, (float *)(uintptr_t)x, true); /* read only */
    }
    k->w = (uint8_t *)(uintptr_t)w;
    all_parts(k);
    if (!stream) {
        exchange(k, y, false);
        return 0;
    }
    y[0] = 0.0f;
    for (uint32_t i = 0; i < k->device->n_threads; i++) {
        y[0] += slice_empty(&k->slices[i]) ? 0.0f : k->slices[i].y[0];
    }
    return 0;
}
