#include "hwmodels/engines/openvino_device.h"

#include <time.h>

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

#define REASON_BYTES 200
#define RAW_BYTES 1024 /* of OpenVINO's message, including source files */

/* Values of NPU_COMPILER_TYPE, in the order of trials. */
static const struct {
    const char *value, *name;
} compilers[] = {{"DRIVER", "driver"}, {"PLUGIN", "plug-in"}};

#define N_COMPILERS ((int)(sizeof compilers / sizeof compilers[0]))

/* ---- messages ---- */

/* Its messages have every source file that they passed ("Exception from FILE:LINE:"), on separate
 * lines or within one. Returns the rest, the actual reason, on one line. */
static void last_reason(char *buf, size_t size)
{
    static const char passed[] = "Exception from ";
    char raw[RAW_BYTES];
    const char *message = ov_get_last_err_msg();
    (void)snprintf(raw, sizeof raw, "%s", message == NULL ? "" : message);
    for (char *at; (at = strstr(raw, passed)) != NULL;) {
        const char *rest = at + sizeof passed - 1 + strcspn(at + sizeof passed - 1, " \n");
        rest += strspn(rest, " \n");
        memmove(at, rest, strlen(rest) + 1);
    }
    size_t n = strlen(raw);
    while (n > 0 && raw[n - 1] == '\n') {
        raw[--n] = '\0';
    }
    for (char *at = raw; (at = strchr(at, '\n')) != NULL;) {
        *at = ' ';
    }
    (void)snprintf(buf, size, "%.*s", (int)size - 1, raw);
}

int openvino_failure(char *why, const char *what)
{
    char reason[ENGINE_MESSAGE_BYTES - 64];
    last_reason(reason, sizeof reason);
    (void)snprintf(why, ENGINE_MESSAGE_BYTES, "%.60s: %s", what, reason);
    return -EIO;
}

/* ---- life ---- */

int openvino_start(struct openvino *o, uint32_t threads, const char *cache, char *why)
{
    char n_threads[16];
    *o = (struct openvino){.compiler = 0};
    (void)snprintf(n_threads, sizeof n_threads, "%u", threads);
    if (ov_core_create(&o->core) != OK) {
        return openvino_failure(why, "core not made");
    }
    o->cache = cache == NULL ? NULL : strdup(cache);
    /* One stream, because a device runs one kernel at a time. A stream of one thread runs on the
     * caller's thread, which is pinned elsewhere. */
    const char *const pairs[][2] = {{"INFERENCE_NUM_THREADS", n_threads},
                                    {"NUM_STREAMS", "1"},
                                    {"INFERENCE_PRECISION_HINT", "f32"},
                                    {"ENABLE_CPU_PINNING", "NO"}};
    size_t n = sizeof pairs / sizeof pairs[0] - (threads > 1);
    for (size_t i = 0; i < n; i++) {
        (void)ov_core_set_property(o->core, "CPU", pairs[i][0], pairs[i][1]);
    }
    return 0;
}

void openvino_stop(struct openvino *o)
{
    ov_core_free(o->core);
    free(o->cache);
}

const char *openvino_version(void)
{
    static char version[64];
    ov_version_t v = {0};
    if (ov_get_openvino_version(&v) == OK) {
        (void)snprintf(version, sizeof version, "%.*s", (int)strcspn(v.buildNumber, "-"),
                       v.buildNumber);
        ov_version_free(&v);
    }
    return version;
}

double openvino_now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / NS_PER_S;
}

bool openvino_is_npu(const char *device)
{
    return strncmp(device, "NPU", 3) == 0;
}

const char *openvino_name(const char *device)
{
    return openvino_is_npu(device) && fake_npu() ? "CPU" : device;
}

/* ---- compiling ---- */

void compiled_free(struct compiled *c)
{
    if (c->request != NULL) {
        ov_infer_request_free(c->request);
    }
    if (c->model != NULL) {
        ov_compiled_model_free(c->model);
    }
    free(c->blob);
    *c = (struct compiled){.by = ""};
}

/* compiler NULL: the device has only one. Returns false with a reason. */
static bool compile_once(const struct openvino *o, const ov_model_t *model, const char *device,
                         const char *compiler, struct compiled *out, char *reason)
{
    ov_property_t p[2];
    size_t n = 0;
    if (compiler != NULL) {
        p[n++] = (ov_property_t){"NPU_COMPILER_TYPE", compiler};
    }
    if (o->cache != NULL && strcmp(device, "CPU") != 0) {
        p[n++] = (ov_property_t){"CACHE_DIR", o->cache};
    }
    if (strcmp(device, openvino_name(device)) != 0) {
        return fake_npu_compile(o->core, model, n, p, &out->model, reason, REASON_BYTES);
    }
    bool ok = ov_core_compile_model_props(o->core, model, device, n, p, &out->model) == OK;
    if (!ok) {
        last_reason(reason, REASON_BYTES);
    }
    return ok;
}

/* Tries the compilers of driver and plug-in, first the one that worked before. */
static int compile_npu(struct openvino *o, const ov_model_t *model, const char *device,
                       struct compiled *out, char *why)
{
    char reasons[N_COMPILERS][REASON_BYTES] = {{0}};
    int first = atomic_load(&o->compiler);
    for (int i = 0; i < N_COMPILERS; i++) {
        int k = (first + i) % N_COMPILERS;
        if (compile_once(o, model, device, compilers[k].value, out, reasons[k])) {
            out->by = compilers[k].name;
            atomic_store(&o->compiler, k);
            return 0;
        }
    }
    (void)snprintf(why, ENGINE_MESSAGE_BYTES,
                   "not compiled. The driver's compiler: %s; the "
                   "plug-in's: %s",
                   reasons[0], reasons[1]);
    return -EIO;
}

static int compile_model(struct openvino *o, const ov_model_t *model, const char *device,
                         struct compiled *out, char *why)
{
    char reason[REASON_BYTES];
    int rc = 0;
    if (openvino_is_npu(device)) {
        rc = compile_npu(o, model, device, out, why);
    } else if (!compile_once(o, model, device, NULL, out, reason)) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "model not compiled: %s", reason);
        rc = -EIO;
    }
    if (rc == 0 && ov_compiled_model_create_infer_request(out->model, &out->request) != OK) {
        rc = openvino_failure(why, "model not loaded");
    }
    char *cached = NULL;
    if (rc == 0 && ov_compiled_model_get_property(out->model, "LOADED_FROM_CACHE", &cached) == OK &&
        cached != NULL) {
        out->cached = strcmp(cached, "YES") == 0 || strcmp(cached, "true") == 0;
        ov_free(cached);
    }
    return rc;
}

/* Makes a model of its text and constants, which must outlive it. */
static int read_model(const struct openvino *o, const struct ir *ir, uint8_t *constants, size_t n,
                      ov_model_t **model, char *why)
{
    ov_shape_t shape = {0};
    ov_tensor_t *weights = NULL;
    int64_t size = (int64_t)n;
    (void)ov_shape_create(1, &size, &shape);
    bool ok = ov_tensor_create_from_host_ptr(U8, shape, constants, &weights) == OK &&
              ov_core_read_model_from_memory_buffer(o->core, ir->layers.data, ir->layers.n, weights,
                                                    model) == OK;
    if (weights != NULL) {
        ov_tensor_free(weights);
    }
    (void)ov_shape_free(&shape);
    return ok ? 0 : openvino_failure(why, "model not read");
}

int openvino_compile(struct openvino *o, const char *device, struct ir *ir, struct compiled *out,
                     char *why)
{
    static uint8_t none[64]; /* for a model without constants */
    ov_model_t *model = NULL;
    *out = (struct compiled){.by = ""};
    ir_end(ir);
    int rc = ir->failed ? -ENOMEM : 0;
    if (rc == 0 && ir->dynamic && openvino_is_npu(device)) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES,
                       "device %.30s takes static shapes only, and this kernel takes any number of "
                       "rows",
                       device);
        rc = -EINVAL;
    }
    if (rc == 0) {
        /* The compiled model may point into the constants, so they live as long. */
        out->blob = ir->blob;
        ir->blob = NULL;
        rc = read_model(o, ir, out->blob == NULL ? none : out->blob,
                        out->blob == NULL ? sizeof none : ir->n_blob, &model, why);
        rc = rc == 0 ? compile_model(o, model, device, out, why) : rc;
    }
    if (model != NULL) {
        ov_model_free(model);
    }
    if (rc != 0) {
        compiled_free(out);
    }
    ir_fini(ir);
    return rc;
}

bool openvino_input(const struct compiled *c, size_t index, ov_element_type_e type,
                    const void *data, int64_t rank, const int64_t *dims)
{
    ov_shape_t shape = {0};
    ov_tensor_t *t = NULL;
    (void)ov_shape_create(rank, dims, &shape);
    bool ok = ov_tensor_create_from_host_ptr(type, shape, (void *)(uintptr_t)data, &t) == OK &&
              ov_infer_request_set_input_tensor_by_index(c->request, index, t) == OK;
    if (t != NULL) {
        ov_tensor_free(t);
    }
    (void)ov_shape_free(&shape);
    return ok;
}

#endif
