/* Engine OpenVINO: one compiled model per (layer, op, shape) of a device given by name ("CPU",
 * "GPU", "NPU"). A device with static kernels has them for its chunk of rows and for one row, and
 * its attention of a prompt length is compiled when a policy asks for it; the others take any rows.
 * Every compiled model holds its own weights: the graph memory that NPUs pay is real here.
 *
 * On the CPU an inference runs on the calling thread (one thread, one stream, no pinning of its
 * own), so that the device's thread decides the core. The other plugins run as they are: what they
 * lack is said in their own words. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/engines/openvino_models.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

/* ---- life ---- */

/* One thread and one stream, on the core of whoever calls; also for models that are imported. */
static void cpu_properties(const ov_core_t *core)
{
    static const char *const pairs[][2] = {{"INFERENCE_NUM_THREADS", "1"},
                                           {"NUM_STREAMS", "1"},
                                           {"ENABLE_CPU_PINNING", "NO"},
                                           {"INFERENCE_PRECISION_HINT", "f32"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        (void)ov_core_set_property(core, "CPU", pairs[i][0], pairs[i][1]);
    }
}

static int engine_open(const struct engine_options *o, void **engine, char *why)
{
    const struct llm *m = o->llm;
    if (m->n_experts > 0 || !m->gated_ffn || m->weight_bits != 8) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES,
                       "runs dense models with a gated FFN and weights of 8 bit");
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
    if (ov_core_create(&e->core) != OK) {
        free(e);
        return openvino_failure(why, "core not made");
    }
    cpu_properties(e->core);
    *engine = e;
    return 0;
}

static void engine_close(void *engine)
{
    struct engine *e = engine;
    ov_core_free(e->core);
    free(e);
}

static void device_close(void *device)
{
    struct odevice *v = device;
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
    free(v);
}

static int compile_all(struct odevice *v, const uint32_t *rows, char *why)
{
    uint32_t layers = v->engine->llm->n_layers;
    v->qkv = calloc(layers * v->n_variants, sizeof *v->qkv);
    v->ffn = calloc(layers * v->n_variants, sizeof *v->ffn);
    int rc = v->qkv == NULL || v->ffn == NULL ? -ENOMEM : 0;
    for (uint32_t k = 0; rc == 0 && k < v->n_variants; k++) {
        for (uint32_t l = 0; rc == 0 && l < layers; l++) {
            uint32_t at = l * v->n_variants + k;
            rc = compile_qkv(v, l, rows[k], &v->qkv[at], why);
            rc = rc == 0 ? compile_ffn(v, l, rows[k], &v->ffn[at], why) : rc;
        }
        rc = rc == 0 ? compile_head(v, rows[k], &v->head[k], why) : rc;
    }
    /* An NPU takes static shapes only: attention of other lengths than compiled ones is not for it.
     */
    return rc == 0 && strcmp(v->name, "NPU") != 0 ? compile_mha(v, 0, &v->mha, why) : rc;
}

static int device_open(void *engine, const struct engine_device_options *o, void **device,
                       char *why)
{
    struct odevice *v = calloc(1, sizeof *v);
    if (v == NULL) {
        return -ENOMEM;
    }
    v->engine = engine;
    (void)snprintf(v->name, sizeof v->name, "%s", o->name);
    pthread_mutex_init(&v->mutex, NULL);
    const uint32_t rows[MAX_VARIANTS] = {o->static_rows, 1};
    v->n_variants = o->static_rows > 1 ? 2 : 1;
    int rc = compile_all(v, rows, why);
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
