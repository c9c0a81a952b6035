/* Engine OpenVINO: one compiled model per (layer, op, shape) of a device given by name ("CPU",
 * "GPU", "NPU"). A device with static kernels has models for its chunk of rows and for one row, and
 * compiles attention for a prompt length when a policy requests it. Models of other devices take
 * any number of rows. Every compiled model has its own weights, so graphs on an NPU cost real
 * memory.
 *
 * On the CPU an inference runs on the calling thread (one thread, one stream, no pinning by
 * OpenVINO), so the device's thread decides the core. Other plugins run unchanged, and report
 * missing features themselves. */
#include <pthread.h>

#include "hwmodels/engines/openvino_models.h"
#include "hwmodels/llm_layers.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

/* ---- life ---- */

static int engine_open(const struct engine_options *o, void **engine, char *why)
{
    const struct llm *m = o->llm;
    if (m->n_experts > 0 || !m->gated_ffn || m->weight_bits != 8 || !llm_attention_is_usual(m)) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES,
                       "runs dense models with the usual attention in every layer, a gated FFN and "
                       "weights of 8 bit");
        return -EINVAL;
    }
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return -ENOMEM;
    }
    *e = (struct engine){.llm = m,
                         .kv = o->kv,
                         .q_dim = m->heads * m->head_dim,
                         .kv_dim = m->kv_heads * m->head_dim};
    (void)snprintf(e->scratch, sizeof e->scratch, "%s", o->scratch);
    int rc = openvino_start(&e->openvino, 1, o->cache, why);
    if (rc != 0) {
        free(e);
        return rc;
    }
    *engine = e;
    return 0;
}

static void engine_close(void *engine)
{
    OWNED struct engine *e = engine;
    openvino_stop(&e->openvino);
}

static void device_close(void *device)
{
    OWNED struct odevice *v = device;
    uint32_t n = v->engine->llm->n_layers * v->n_variants;
    for (uint32_t i = 0; v->qkv != NULL && v->ffn != NULL && i < n; i++) {
        compiled_free(&v->qkv[i]);
        compiled_free(&v->ffn[i]);
    }
    for (uint32_t i = 0; i < MAX_VARIANTS; i++) {
        compiled_free(&v->head[i]);
    }
    compiled_free(&v->mha);
    residents_close(v);
    pthread_mutex_destroy(&v->mutex);
    free(v->qkv);
    free(v->ffn);
    free(v->scratch);
}

/* Progress of compiling a device's kernels, for the user. */
struct progress {
    const struct engine_device_options *o;
    uint32_t done, n;
};

static void tell(struct progress *p, uint32_t more)
{
    p->done += more;
    if (p->o->compiled != NULL) {
        p->o->compiled(p->o->self, p->done, p->n);
    }
}

static int compile_layer(struct odevice *v, uint32_t layer, uint32_t variant, uint32_t rows,
                         struct progress *p, char *why)
{
    uint32_t at = layer * v->n_variants + variant;
    int rc = compile_qkv(v, layer, rows, &v->qkv[at], why);
    tell(p, 1);
    rc = rc == 0 ? compile_ffn(v, layer, rows, &v->ffn[at], why) : rc;
    tell(p, 1);
    return rc;
}

static int compile_all(struct odevice *v, const struct engine_device_options *o, char *why)
{
    const uint32_t rows[MAX_VARIANTS] = {o->static_rows, 1};
    uint32_t layers = v->engine->llm->n_layers;
    v->n_variants = o->static_rows > 1 ? 2 : 1;
    v->qkv = calloc(layers * v->n_variants, sizeof *v->qkv);
    v->ffn = calloc(layers * v->n_variants, sizeof *v->ffn);
    struct progress p = {o, 0, (2 * layers + 1) * v->n_variants + !o->static_attention};
    int rc = v->qkv == NULL || v->ffn == NULL ? -ENOMEM : 0;
    tell(&p, 0);
    for (uint32_t k = 0; rc == 0 && k < v->n_variants; k++) {
        for (uint32_t l = 0; rc == 0 && l < layers; l++) {
            rc = compile_layer(v, l, k, rows[k], &p, why);
        }
        rc = rc == 0 ? compile_head(v, rows[k], &v->head[k], why) : rc;
        tell(&p, 1);
    }
    if (rc == 0 && !o->static_attention) {
        rc = compile_mha(v, 0, &v->mha, why);
        tell(&p, 1);
    }
    return rc;
}

/* Refuses an NPU without static shapes in its machine file before it compiles for minutes. */
static int check_static(const struct engine_device_options *o, char *why)
{
    if (!openvino_is_npu(o->name) || (o->static_rows > 0 && o->static_attention)) {
        return 0;
    }
    (void)snprintf(why, ENGINE_MESSAGE_BYTES,
                   "an NPU takes static shapes only: the machine file must give the device "
                   "chunk_rows above 0 (it has %u) and static_attention true (it has %s), as "
                   "npu-and-gpu does",
                   o->static_rows, o->static_attention ? "true" : "false");
    return -EINVAL;
}

static int device_open(void *engine, const struct engine_device_options *o, void **device,
                       char *why)
{
    int rc = check_static(o, why);
    struct odevice *v = rc == 0 ? calloc(1, sizeof *v) : NULL;
    if (v == NULL) {
        return rc == 0 ? -ENOMEM : rc;
    }
    v->engine = engine;
    (void)snprintf(v->name, sizeof v->name, "%s", o->name);
    pthread_mutex_init(&v->mutex, NULL);
    rc = compile_all(v, o, why);
    if (rc != 0) {
        device_close(v);
        return rc;
    }
    *device = v;
    return 0;
}

const struct engine_ops *xpusim_engine(void)
{
    static struct engine_ops ops = {.abi = ENGINE_ABI,
                                    .has = ENGINE_INTERRUPTS | ENGINE_COMPILES | ENGINE_LOADS,
                                    .name = "openvino",
                                    .open = engine_open,
                                    .close = engine_close,
                                    .device_open = device_open,
                                    .device_close = device_close,
                                    .kernel = openvino_kernel,
                                    .interrupt = openvino_interrupt,
                                    .resident = openvino_resident};
    ops.version = openvino_version();
    return &ops;
}

#endif
