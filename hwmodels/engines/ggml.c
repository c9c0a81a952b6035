/* Engine ggml: one small graph per kernel, computed on the calling thread by ggml's CPU kernels.
 * Weights Q8_0, Q4_0 or F16. It supports any rows, padding and split. QKV, FFN and HEAD give equal
 * bits for any split of rows; attention may round differently, because its tiles depend on the
 * number of rows. An interrupted kernel stops at the next node of its graph. */
#include "hwmodels/engines/ggml_impl.h"
#include "hwmodels/llm_layers.h"
#include "sim/base/base.h"

#if __has_include(<ggml.h>) /* without its headers this file is empty */

/* ---- weights ---- */

static void *quantised(const struct model *m, enum engine_tensor t, uint32_t layer, uint32_t in,
                       uint32_t out)
{
    size_t row_bytes = ggml_row_size(m->type, in);
    char *data = aligned_alloc(GGML_ENGINE_ALIGN, (row_bytes * out + GGML_ENGINE_ALIGN - 1) /
                                                      GGML_ENGINE_ALIGN * GGML_ENGINE_ALIGN);
    OWNED float *row = malloc(in * sizeof *row);
    for (uint32_t i = 0; data != NULL && row != NULL && i < out; i++) {
        engine_weights(t, layer, i, in, row);
        (void)ggml_quantize_chunk(m->type, row, data + i * row_bytes, 0, 1, in, NULL);
    }
    return data;
}

static bool layer_fill(const struct model *m, uint32_t l)
{
    const struct llm *llm = m->llm;
    const struct {
        enum engine_tensor t;
        uint32_t in, out;
    } shapes[] = {
        {ENGINE_WQ, llm->hidden, m->q_dim},          {ENGINE_WK, llm->hidden, m->kv_dim},
        {ENGINE_WV, llm->hidden, m->kv_dim},         {ENGINE_WO, m->q_dim, llm->hidden},
        {ENGINE_GATE, llm->hidden, llm->ffn_hidden}, {ENGINE_UP, llm->hidden, llm->ffn_hidden},
        {ENGINE_DOWN, llm->ffn_hidden, llm->hidden},
    };
    bool whole = true;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        void **w = &m->layers[l].weights[shapes[i].t];
        *w = quantised(m, shapes[i].t, l, shapes[i].in, shapes[i].out);
        whole = whole && *w != NULL;
    }
    return whole;
}

static void engine_close(void *engine)
{
    OWNED struct model *m = engine;
    for (uint32_t l = 0; m->layers != NULL && l < m->llm->n_layers; l++) {
        for (int t = 0; t < ENGINE_HEAD; t++) {
            free(m->layers[l].weights[t]);
        }
    }
    free(m->layers);
    free(m->head);
}

static int refuse(char *why, const char *what)
{
    (void)snprintf(why, ENGINE_MESSAGE_BYTES, "%s", what);
    return -EINVAL;
}

static int check_model(const struct llm *llm, char *why)
{
    if (llm->n_experts > 0) {
        return refuse(why, "runs dense models only, not mixtures of experts");
    }
    if (!llm_attention_is_usual(llm)) {
        return refuse(why, "runs models with the usual attention in every layer only");
    }
    if (!llm->gated_ffn) {
        return refuse(why, "runs models with a gated FFN only");
    }
    if (llm->weight_bits != 4 && llm->weight_bits != 8 && llm->weight_bits != 16) {
        return refuse(why, "has weights of 4, 8 or 16 bit");
    }
    if (llm->hidden % 32 != 0 || llm->ffn_hidden % 32 != 0 || llm->head_dim % 32 != 0) {
        return refuse(why, "quantises by 32: hidden, ffn_hidden and head_dim must be multiples");
    }
    return 0;
}

static int engine_open(const struct engine_options *o, void **engine, char *why)
{
    int rc = check_model(o->llm, why);
    if (rc != 0) {
        return rc;
    }
    ggml_cpu_init();
    struct model *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return -ENOMEM;
    }
    *m = (struct model){.llm = o->llm,
                        .kv = o->kv,
                        .type = o->llm->weight_bits == 4   ? GGML_TYPE_Q4_0
                                : o->llm->weight_bits == 8 ? GGML_TYPE_Q8_0
                                                           : GGML_TYPE_F16,
                        .q_dim = o->llm->heads * o->llm->head_dim,
                        .kv_dim = o->llm->kv_heads * o->llm->head_dim};
    m->layers = calloc(o->llm->n_layers, sizeof *m->layers);
    bool whole = m->layers != NULL;
    for (uint32_t l = 0; whole && l < o->llm->n_layers; l++) {
        whole = layer_fill(m, l);
    }
    m->head = quantised(m, ENGINE_HEAD, 0, o->llm->hidden, o->llm->vocab);
    if (!whole || m->head == NULL) {
        engine_close(m);
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "no memory for the weights");
        return -ENOMEM;
    }
    *engine = m;
    return 0;
}

/* ---- devices ---- */

static int device_open(void *engine, const struct engine_device_options *o, void **device,
                       char *why)
{
    if (strcmp(o->name, "CPU") != 0) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "this build of ggml has the device CPU only");
        return -ENODEV;
    }
    struct gdevice *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return -ENOMEM;
    }
    g->model = engine;
    /* One thread: a kernel runs only on the thread that calls it (sim/api/engine.h). */
    struct ggml_threadpool_params p = ggml_threadpool_params_default(1);
    g->threads = ggml_threadpool_new(&p);
    *device = g;
    return 0;
}

static void device_close(void *device)
{
    OWNED struct gdevice *g = device;
    ggml_threadpool_free(g->threads);
    free(g->objects.data);
    free(g->tensors.data);
    free(g->work.data);
}

const struct engine_ops *xpusim_engine(void)
{
    static struct engine_ops ops = {.abi = ENGINE_ABI,
                                    .has = ENGINE_INTERRUPTS,
                                    .name = "ggml",
                                    .open = engine_open,
                                    .close = engine_close,
                                    .device_open = device_open,
                                    .device_close = device_close,
                                    .kernel = ggml_engine_kernel};
    ops.version = ggml_version();
    return &ops;
}

#endif
