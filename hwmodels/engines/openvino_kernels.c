/* Kernels of the OpenVINO engine: inputs by pointer, one inference on the calling thread, results
 * written to the memory of the pass. */
#include "hwmodels/engines/openvino_models.h"
#include "hwmodels/kernel_numbers.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

#define MINUS_INFINITY (-1e30f)
#define ROPE_BASE 10000.0

/* ---- inference ---- */

static bool rows_input(const struct compiled *c, size_t index, const float *data, uint32_t rows,
                       uint32_t columns)
{
    const int64_t dims[] = {rows, columns};
    return openvino_input(c, index, F32, data, 2, dims);
}

static const float *output(const struct compiled *c, size_t index)
{
    ov_tensor_t *t;
    void *data = NULL;
    if (ov_infer_request_get_output_tensor_by_index(c->request, index, &t) == OK) {
        (void)ov_tensor_data(t, &data);
        ov_tensor_free(t);
    }
    return data;
}

static void set_running(struct odevice *v, ov_infer_request_t *r)
{
    pthread_mutex_lock(&v->mutex);
    v->running = r;
    pthread_mutex_unlock(&v->mutex);
}

/* An interrupt for the previous kernel may hit this one, which is then repeated. */
static int infer(struct odevice *v, const struct compiled *c, const struct engine_kernel *k,
                 char *why)
{
    ov_status_e status = OK;
    /* Before reading the flag: a later interrupt finds the request, and an earlier one has set the
     * flag. */
    set_running(v, c->request);
    for (int tries = 0; tries < 3; tries++) {
        if (atomic_load(k->stop) != 0) {
            status = INFER_CANCELLED;
            break;
        }
        status = ov_infer_request_infer(c->request);
        if (status != INFER_CANCELLED || atomic_load(k->stop) != 0) {
            break;
        }
    }
    set_running(v, NULL);
    return status == OK ? 0
           : status == INFER_CANCELLED || atomic_load(k->stop) != 0
               ? -ECANCELED
               : openvino_failure(why, "inference");
}

void openvino_interrupt(void *device)
{
    struct odevice *v = device;
    /* The NPU's plug-in cannot cancel, so its kernel runs to its end. */
    pthread_mutex_lock(&v->mutex);
    if (v->running != NULL && !openvino_is_npu(v->name)) {
        (void)ov_infer_request_cancel(v->running);
    }
    pthread_mutex_unlock(&v->mutex);
}

/* ---- kernels ---- */

static float *scratch(struct odevice *v, size_t n)
{
    if (v->n_scratch < n) {
        free(v->scratch);
        v->scratch = malloc(n * sizeof(float));
        v->n_scratch = v->scratch == NULL ? 0 : n;
    }
    return v->scratch;
}

/* The variant for a kernel's rows, or the kernel of its graph. Its shape is the number of rows to
 * pass. */
static const struct compiled *variant(struct odevice *v, const struct compiled *of,
                                      const struct engine_kernel *k)
{
    if (k->graph > 0) {
        return graph_find(v, k);
    }
    for (uint32_t i = 0; i < v->n_variants; i++) {
        if (of[i].rows == 0 || of[i].rows == k->padded_rows) {
            return &of[i];
        }
    }
    return NULL;
}

static int no_shape(const struct engine_kernel *k, char *why)
{
    (void)snprintf(why, ENGINE_MESSAGE_BYTES, "graph %u has no static kernel of %u rows", k->graph,
                   k->padded_rows);
    return -EINVAL;
}

/* Both halves of a head are rotated by the same angles; each column has its frequency. */
static void angles(const struct engine_kernel *k, uint32_t dim, float *cosines, float *sines)
{
    const uint32_t half = dim / 2;
    for (uint32_t j = 0; j < half; j++) {
        double f = pow(ROPE_BASE, -2.0 * j / dim);
        for (uint32_t i = 0; i < k->padded_rows; i++) {
            double a = (double)k->pass->pos[k->row0 + i] * f;
            size_t at = (size_t)i * dim + j;
            cosines[at] = cosines[at + half] = (float)cos(a);
            sines[at] = sines[at + half] = (float)sin(a);
        }
    }
}

static void store(const struct engine *e, uint16_t *const *layers, const struct engine_kernel *k,
                  const float *rows)
{
    for (uint32_t i = 0; i < k->rows; i++) {
        uint16_t *to = layers[k->layer] + (size_t)k->pass->cell[k->row0 + i] * e->kv_dim;
        for (uint32_t j = 0; j < e->kv_dim; j++) {
            to[j] = half_from_float(rows[(size_t)i * e->kv_dim + j]);
        }
    }
}

static int qkv(struct odevice *v, const struct engine_kernel *k, char *why)
{
    const struct engine *e = v->engine;
    uint32_t n = k->padded_rows;
    uint32_t dim = e->llm->head_dim;
    uint32_t d = e->llm->hidden;
    const struct compiled *c = variant(v, &v->qkv[k->layer * v->n_variants], k);
    float *cosines = scratch(v, 2 * (size_t)n * dim);
    if (c == NULL || cosines == NULL) {
        return c == NULL ? no_shape(k, why) : -ENOMEM;
    }
    float *sines = cosines + (size_t)n * dim;
    angles(k, dim, cosines, sines);
    const int64_t dims[] = {n, 1, dim};
    int rc = !rows_input(c, 0, k->pass->x[k->layer % 2] + (size_t)k->row0 * d, n, d) ||
                     !openvino_input(c, 1, F32, cosines, 3, dims) ||
                     !openvino_input(c, 2, F32, sines, 3, dims)
                 ? openvino_failure(why, "inputs")
                 : infer(v, c, k, why);
    if (rc == 0) {
        memcpy(k->pass->q + (size_t)k->row0 * e->q_dim, output(c, 0),
               (size_t)k->rows * e->q_dim * sizeof(float));
        store(e, e->kv->k, k, output(c, 1));
        store(e, e->kv->v, k, output(c, 2));
    }
    return rc;
}

static int ffn(struct odevice *v, const struct engine_kernel *k, char *why)
{
    const struct engine *e = v->engine;
    uint32_t d = e->llm->hidden;
    const struct compiled *c = variant(v, &v->ffn[k->layer * v->n_variants], k);
    if (c == NULL) {
        return no_shape(k, why);
    }
    const float *att = k->pass->att + (size_t)k->row0 * e->q_dim;
    const float *before = k->pass->x[k->layer % 2] + (size_t)k->row0 * d;
    int rc = !rows_input(c, 0, att, k->padded_rows, e->q_dim) ||
                     !rows_input(c, 1, before, k->padded_rows, d)
                 ? openvino_failure(why, "inputs")
                 : infer(v, c, k, why);
    if (rc == 0) {
        memcpy(k->pass->x[(k->layer + 1) % 2] + (size_t)k->row0 * d, output(c, 0),
               (size_t)k->rows * d * sizeof(float));
    }
    return rc;
}

static int head(struct odevice *v, const struct engine_kernel *k, char *why)
{
    const struct llm *m = v->engine->llm;
    const struct compiled *c = variant(v, v->head, k);
    float *x = scratch(v, (size_t)k->padded_rows * m->hidden);
    if (c == NULL || x == NULL) {
        return c == NULL ? no_shape(k, why) : -ENOMEM;
    }
    const float *last = k->pass->x[m->n_layers % 2];
    memset(x, 0, (size_t)k->padded_rows * m->hidden * sizeof *x);
    for (uint32_t i = 0; i < k->rows; i++) {
        memcpy(x + (size_t)i * m->hidden,
               last + (size_t)k->pass->logit_rows[k->row0 + i] * m->hidden, m->hidden * sizeof *x);
    }
    int rc = !rows_input(c, 0, x, k->padded_rows, m->hidden) ? openvino_failure(why, "inputs")
                                                             : infer(v, c, k, why);
    if (rc == 0) {
        memcpy(k->pass->logits + (size_t)k->row0 * m->vocab, output(c, 0),
               (size_t)k->rows * m->vocab * sizeof(float));
    }
    return rc;
}

/* Attention of n rows of a segment, from position `first` on, over the keys up to `keys`. The model
 * takes `rows` rows. For a compiled model both `rows` and `keys` are its length; the surplus is
 * masked, and its output is not read. */
static int attend(struct odevice *v, const struct compiled *c, const struct engine_kernel *k,
                  const struct engine_segment *s, uint32_t row, uint32_t n, uint32_t rows,
                  uint32_t keys, char *why)
{
    const struct engine *e = v->engine;
    const struct llm *m = e->llm;
    uint32_t first = s->first_token + row - s->row;
    size_t q_floats = rows > n ? (size_t)rows * e->q_dim : 0;
    float *mask = scratch(v, q_floats + (size_t)rows * keys);
    if (mask == NULL) {
        return -ENOMEM;
    }
    const float *q = k->pass->q + (size_t)row * e->q_dim;
    if (q_floats > 0) {
        float *copy = mask + (size_t)rows * keys;
        memset(copy, 0, q_floats * sizeof *copy);
        memcpy(copy, q, (size_t)n * e->q_dim * sizeof *copy);
        q = copy;
    }
    for (uint32_t y = 0; y < rows; y++) {
        for (uint32_t z = 0; z < keys; z++) {
            /* A row attends to itself and earlier ones. Rows beyond the segment are computed on
             * zeros, and their output is not read. */
            mask[(size_t)y * keys + z] = z <= first + y ? 0.0f : MINUS_INFINITY;
        }
    }
    const int64_t q_dims[] = {1, rows, m->heads, m->head_dim};
    const int64_t kv_dims[] = {1, keys, m->kv_heads, m->head_dim};
    const int64_t mask_dims[] = {1, 1, rows, keys};
    int rc =
        !openvino_input(c, 0, F32, q, 4, q_dims) ||
                !openvino_input(c, 1, F16, e->kv->k[k->layer] + s->cell0 * e->kv_dim, 4, kv_dims) ||
                !openvino_input(c, 2, F16, e->kv->v[k->layer] + s->cell0 * e->kv_dim, 4, kv_dims) ||
                !openvino_input(c, 3, F32, mask, 4, mask_dims)
            ? openvino_failure(why, "inputs")
            : infer(v, c, k, why);
    if (rc == 0) {
        memcpy(k->pass->att + (size_t)row * e->q_dim, output(c, 0),
               (size_t)n * e->q_dim * sizeof(float));
    }
    return rc;
}

static int mha(struct odevice *v, const struct engine_kernel *k, char *why)
{
    const struct compiled *c =
        k->compiled_tokens > 0 ? attention_find(v, k->compiled_tokens) : &v->mha;
    if (c == NULL || c->request == NULL) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES,
                       "device %s has no attention for this length: the machine file must say "
                       "static_attention",
                       v->name);
        return -EINVAL;
    }
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < k->pass->n_segments; i++) {
        const struct engine_segment *s = &k->pass->segments[i];
        uint32_t from = k->row0 > s->row ? k->row0 : s->row;
        uint32_t end =
            k->row0 + k->rows < s->row + s->n_rows ? k->row0 + k->rows : s->row + s->n_rows;
        if (from < end) {
            uint32_t keys = s->first_token + end - s->row;
            rc = attend(v, c, k, s, from, end - from, c->rows > 0 ? c->rows : end - from,
                        c->rows > 0 ? c->rows : keys, why);
        }
    }
    return rc;
}

int openvino_kernel(void *device, const struct engine_kernel *k, char *why)
{
    struct odevice *v = device;
    int rc = 0;
    switch (k->op) {
    case OP_QKV:
        return qkv(v, k, why);
    case OP_MHA:
        return mha(v, k, why);
    case OP_FFN:
        return ffn(v, k, why);
    case OP_HEAD:
        return head(v, k, why);
    default:
        rc = qkv(v, k, why);
        rc = rc == 0 ? mha(v, k, why) : rc;
        return rc == 0 ? ffn(v, k, why) : rc;
    }
}

#endif
