/* Single kernels of static shapes on OpenVINO's devices, for `xpusim measure --backend openvino`. A
 * product has its weights as constants, as in exported models, so there are as many copies of the
 * compiled kernel as the caller requests. Attention has keys and values as inputs, and rotates
 * through as many tensors. */
#include "hwmodels/engines/bench.h"
#include "hwmodels/engines/openvino_models.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

struct bench {
    struct openvino openvino;
};

struct kernel {
    struct kernel_spec spec;
    struct compiled *copies; /* owned; attention: one */
    uint32_t n_copies, n_inputs;
    float *x, *mask;           /* owned: constant inputs */
    uint16_t **keys, **values; /* for attention: owned, n_inputs of each */
};

/* A copy of kernel_op_is_product, because the shared object calls no function of the program. */
static bool is_product(const struct kernel_spec *s)
{
    return s->op == KERNEL_GEMV || s->op == KERNEL_GEMM;
}

/* ---- devices ---- */

static void *bench_open(uint32_t n_threads, const char *cache, char *why)
{
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL || openvino_start(&b->openvino, n_threads, cache, why) != 0) {
        free(b);
        return NULL;
    }
    return b;
}

static void bench_close(void *bench)
{
    OWNED struct bench *b = bench;
    openvino_stop(&b->openvino);
}

/* A property as text of the library; "": it has none. */
static void property(const struct bench *b, const char *device, const char *key, char *buf,
                     size_t size)
{
    char *value = NULL;
    buf[0] = '\0';
    if (ov_core_get_property(b->openvino.core, openvino_name(device), key, &value) == OK &&
        value != NULL) {
        (void)snprintf(buf, size, "%s", value);
        ov_free(value);
    }
}

static enum device_kind kind_of(const struct bench *b, const char *name)
{
    char type[16];
    if (openvino_is_npu(name)) {
        return DEVICE_KIND_NPU;
    }
    if (strncmp(name, "GPU", 3) != 0) {
        return DEVICE_KIND_CPU;
    }
    property(b, name, "DEVICE_TYPE", type, sizeof type);
    return strcmp(type, "discrete") == 0 ? DEVICE_KIND_GPU : DEVICE_KIND_IGPU;
}

static void describe(const struct bench *b, const char *name, struct engine_bench_device *d)
{
    char full[64];
    property(b, name, "FULL_DEVICE_NAME", full, sizeof full);
    bool fake = strcmp(name, openvino_name(name)) != 0;
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    (void)snprintf(d->description, sizeof d->description, "%.60s", fake ? "fake NPU" : full);
    d->kind = kind_of(b, name);
}

static uint32_t bench_devices(void *bench, struct engine_bench_device *out, uint32_t cap)
{
    struct bench *b = bench;
    ov_available_devices_t list = {0};
    if (ov_core_get_available_devices(b->openvino.core, &list) != OK) {
        return 0;
    }
    uint32_t n = 0;
    for (size_t i = 0; i < list.size; i++) {
        if (fake_npu() && openvino_is_npu(list.devices[i])) {
            continue; /* the fake one replaces it */
        }
        if (n < cap) {
            describe(b, list.devices[i], &out[n]);
        }
        n++;
    }
    ov_available_devices_free(&list);
    if (fake_npu()) {
        if (n < cap) {
            describe(b, "NPU", &out[n]);
        }
        n++;
    }
    return n;
}

/* None of these identifies a single machine: no serial number, no address. */
static uint32_t bench_facts(void *bench, const char *device, struct engine_fact *out, uint32_t cap)
{
    static const char *const keys[] = {"FULL_DEVICE_NAME",
                                       "DEVICE_ARCHITECTURE",
                                       "DEVICE_TYPE",
                                       "OPTIMIZATION_CAPABILITIES",
                                       "NPU_DRIVER_VERSION",
                                       "NPU_COMPILER_VERSION",
                                       "NPU_DEVICE_TOTAL_MEM_SIZE",
                                       "NPU_MAX_TILES",
                                       "GPU_DRIVER_VERSION",
                                       "GPU_UARCH_VERSION",
                                       "GPU_EXECUTION_UNITS_COUNT",
                                       "GPU_DEVICE_TOTAL_MEM_SIZE"};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && n < cap; i++) {
        (void)snprintf(out[n].name, sizeof out[n].name, "%s", keys[i]);
        property(bench, device, keys[i], out[n].value, sizeof out[n].value);
        if (i == 0 && strcmp(device, openvino_name(device)) != 0) {
            (void)snprintf(out[n].value, sizeof out[n].value, "fake NPU");
        }
        n += out[n].value[0] != '\0';
    }
    return n;
}

static void bench_probe(void *bench, const char *device, const struct llm *llm, uint32_t rows,
                        uint32_t step, struct engine_probe *out)
{
    struct bench *b = bench;
    openvino_probe(&b->openvino, device, llm, rows, step, out);
}

/* ---- kernels ---- */

static bool product_model(struct bench *b, const char *device, const struct kernel_spec *s,
                          const void *weights, struct compiled *out, char *why)
{
    struct ir ir;
    char shape[48];
    ir_init(&ir);
    (void)snprintf(shape, sizeof shape, "%u,%u", s->rows, s->k);
    struct ir_port x = ir_input(&ir, "f32", shape);
    ir_result(&ir, ir_product(&ir, x, s->weight_bits, weights, s->k, s->n));
    return openvino_compile(&b->openvino, device, &ir, out, why) == 0;
}

/* Decode: a row in each of `rows` sequences, which have separate keys. */
static bool attention_model(struct bench *b, const char *device, const struct kernel_spec *s,
                            struct compiled *out, char *why)
{
    struct llm m = {.heads = s->heads, .kv_heads = s->kv_heads, .head_dim = s->head_dim};
    bool decode = s->op == KERNEL_DECODE;
    uint32_t batch = decode ? s->rows : 1;
    uint32_t rows = decode ? 1 : s->rows;
    struct ir ir;
    char shape[64];
    ir_init(&ir);
    (void)snprintf(shape, sizeof shape, "%u,%u,%u,%u", batch, rows, s->heads, s->head_dim);
    struct ir_port q = ir_input(&ir, "f32", shape);
    (void)snprintf(shape, sizeof shape, "%u,%u,%u,%u", batch, s->context_tokens, s->kv_heads,
                   s->head_dim);
    struct ir_port k = ir_input(&ir, "f16", shape);
    struct ir_port v = ir_input(&ir, "f16", shape);
    (void)snprintf(shape, sizeof shape, "1,1,%u,%u", rows, s->context_tokens);
    struct ir_port mask = ir_input(&ir, "f32", shape);
    ir_result(&ir, ir_attention(&ir, q, k, v, mask, &m));
    return openvino_compile(&b->openvino, device, &ir, out, why) == 0;
}

static float *ones(size_t n, float value)
{
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; v != NULL && i < n; i++) {
        v[i] = value;
    }
    return v;
}

static void kernel_release(void *kernel)
{
    OWNED struct kernel *k = kernel;
    for (uint32_t i = 0; k->copies != NULL && i < k->n_copies; i++) {
        compiled_free(&k->copies[i]);
    }
    for (uint32_t i = 0; i < k->n_inputs; i++) {
        free(k->keys == NULL ? NULL : k->keys[i]);
        free(k->values == NULL ? NULL : k->values[i]);
    }
    free((void *)k->keys);
    free((void *)k->values);
    free(k->copies);
    free(k->mask);
    free(k->x);
}

/* Half precision one over 16 everywhere: no special value. */
static uint16_t *halves(size_t n)
{
    uint16_t *v = malloc(n * sizeof *v);
    for (size_t i = 0; v != NULL && i < n; i++) {
        v[i] = 0x2c00;
    }
    return v;
}

static bool attention_inputs(struct kernel *k, uint32_t copies)
{
    const struct kernel_spec *s = &k->spec;
    bool decode = s->op == KERNEL_DECODE;
    uint32_t rows = decode ? 1 : s->rows;
    size_t kv = (size_t)(decode ? s->rows : 1) * s->context_tokens * s->kv_heads * s->head_dim;
    k->keys = calloc(copies, sizeof *k->keys);
    k->values = calloc(copies, sizeof *k->values);
    k->mask = ones((size_t)rows * s->context_tokens, 0.0f);
    bool ok = k->keys != NULL && k->values != NULL && k->mask != NULL;
    for (uint32_t r = 0; ok && r < rows; r++) { /* later tokens are masked */
        for (uint32_t c = s->context_tokens - rows + r + 1; c < s->context_tokens; c++) {
            k->mask[(size_t)r * s->context_tokens + c] = -1e30f;
        }
    }
    for (k->n_inputs = 0; ok && k->n_inputs < copies; k->n_inputs++) {
        k->keys[k->n_inputs] = halves(kv);
        k->values[k->n_inputs] = halves(kv);
        ok = k->keys[k->n_inputs] != NULL && k->values[k->n_inputs] != NULL;
    }
    const int64_t dims[] = {1, 1, rows, s->context_tokens};
    return ok && openvino_input(&k->copies[0], 3, F32, k->mask, 4, dims);
}

static bool set_x(const struct kernel *k, const struct compiled *c, const float *x)
{
    const struct kernel_spec *s = &k->spec;
    bool decode = s->op == KERNEL_DECODE;
    const int64_t product[] = {s->rows, s->k};
    const int64_t query[] = {decode ? s->rows : 1, decode ? 1 : s->rows, s->heads, s->head_dim};
    return is_product(s) ? openvino_input(c, 0, F32, x, 2, product)
                         : openvino_input(c, 0, F32, x, 4, query);
}

static bool build(struct bench *b, const char *device, struct kernel *k, uint32_t copies,
                  const void *weights, double *compile_s, char *why)
{
    const struct kernel_spec *s = &k->spec;
    bool product = is_product(s);
    k->n_copies = product ? copies : 1;
    k->copies = calloc(k->n_copies, sizeof *k->copies);
    k->x = ones((size_t)s->rows * (product ? s->k : s->heads * s->head_dim), 0.25f);
    bool ok = k->copies != NULL && k->x != NULL;
    for (uint32_t i = 0; ok && i < k->n_copies; i++) {
        double from_s = openvino_now_s();
        ok = product ? product_model(b, device, s, weights, &k->copies[i], why)
                     : attention_model(b, device, s, &k->copies[i], why);
        if (i == 0) { /* later copies come from the compile cache */
            *compile_s = ok && k->copies[0].cached ? -1.0 : openvino_now_s() - from_s;
        }
        ok = ok && set_x(k, &k->copies[i], k->x);
    }
    return ok && (product || attention_inputs(k, copies));
}

static void *bench_prepare(void *bench, const char *device, const struct kernel_spec *s,
                           uint32_t copies, const void *weights, double *compile_s, char *why)
{
    struct kernel *k = calloc(1, sizeof *k);
    (void)snprintf(why, ENGINE_MESSAGE_BYTES, "no memory, or inputs refused");
    if (k == NULL) {
        return NULL;
    }
    k->spec = *s;
    if (!build(bench, device, k, copies, weights, compile_s, why)) {
        kernel_release(k);
        return NULL;
    }
    return k;
}

static bool next_keys(const struct kernel *k, uint32_t turn)
{
    const struct kernel_spec *s = &k->spec;
    const int64_t dims[] = {s->op == KERNEL_DECODE ? s->rows : 1, s->context_tokens, s->kv_heads,
                            s->head_dim};
    uint32_t i = turn % k->n_inputs;
    return openvino_input(&k->copies[0], 1, F16, k->keys[i], 4, dims) &&
           openvino_input(&k->copies[0], 2, F16, k->values[i], 4, dims);
}

static int bench_run(void *kernel, uint32_t turn, const float *x, float *y, char *why)
{
    struct kernel *k = kernel;
    const struct compiled *c = &k->copies[turn % k->n_copies];
    ov_tensor_t *t = NULL;
    void *data = NULL;
    size_t bytes = 0;
    if ((x != NULL && !set_x(k, c, x)) || (k->n_inputs > 0 && !next_keys(k, turn)) ||
        ov_infer_request_infer(c->request) != OK) {
        return openvino_failure(why, "inference");
    }
    if (y != NULL) {
        if (ov_infer_request_get_output_tensor_by_index(c->request, 0, &t) != OK ||
            ov_tensor_data(t, &data) != OK || ov_tensor_get_byte_size(t, &bytes) != OK) {
            return openvino_failure(why, "output");
        }
        memcpy(y, data, bytes);
        ov_tensor_free(t);
    }
    return 0;
}

const struct engine_bench_ops *xpusim_engine_bench(void)
{
    static struct engine_bench_ops ops = {.abi = ENGINE_BENCH_ABI,
                                          .open = bench_open,
                                          .close = bench_close,
                                          .devices = bench_devices,
                                          .facts = bench_facts,
                                          .probe = bench_probe,
                                          .prepare = bench_prepare,
                                          .release = kernel_release,
                                          .run = bench_run};
    ops.version = openvino_version();
    return &ops;
}

#endif
