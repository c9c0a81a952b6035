/* Kernels of the ggml engine: a graph of a few nodes over memory of the pass, computed at once. */
#include "hwmodels/engines/ggml_impl.h"
#include "sim/base/base.h"

#if __has_include(<ggml.h>) /* without its headers this file is empty */

#define NORM_EPSILON 1e-5f
#define ROPE_BASE 10000.0f
#define MASK_ROWS 32 /* rows of an attention mask are padded to this */
#define FP16_MINUS_INFINITY 0xfc00

/* ---- tensors ---- */

static int buffer_reserve(struct buffer *b, size_t size)
{
    b->used = 0;
    if (b->size >= size) {
        return 0;
    }
    free(b->data);
    /* A quarter more than needed, because contexts grow in each step, which would allocate again.
     */
    b->size = (size + size / 4 + GGML_ENGINE_ALIGN - 1) / GGML_ENGINE_ALIGN * GGML_ENGINE_ALIGN;
    b->data = aligned_alloc(GGML_ENGINE_ALIGN, b->size);
    if (b->data == NULL) {
        b->size = 0;
        return -ENOMEM;
    }
    return 0;
}

static struct ggml_tensor *at(struct ggml_tensor *t, const void *data)
{
    t->data = (void *)(uintptr_t)data;
    return t;
}

/* Gives the result of a node memory; a view uses that of its source. */
static struct ggml_tensor *own(struct gdevice *g, struct ggml_tensor *t)
{
    if (t->view_src != NULL) {
        t->data = (char *)t->view_src->data + t->view_offs;
        return t;
    }
    t->data = g->tensors.data + g->tensors.used;
    g->tensors.used +=
        (ggml_nbytes(t) + GGML_ENGINE_ALIGN - 1) / GGML_ENGINE_ALIGN * GGML_ENGINE_ALIGN;
    if (g->tensors.used > g->tensors.size) { /* begin() reserves more than any kernel needs */
        abort();
    }
    return t;
}

static struct ggml_tensor *matrix(struct gdevice *g, const float *data, uint32_t columns,
                                  uint32_t rows)
{
    return at(ggml_new_tensor_2d(g->ctx, GGML_TYPE_F32, columns, rows), data);
}

static struct ggml_tensor *product(struct gdevice *g, const void *weights, struct ggml_tensor *x,
                                   uint32_t in, uint32_t out)
{
    struct ggml_tensor *w = at(ggml_new_tensor_2d(g->ctx, g->model->type, in, out), weights);
    return own(g, ggml_mul_mat(g->ctx, w, x));
}

static struct ggml_tensor *normed(struct gdevice *g, struct ggml_tensor *x)
{
    return own(g, ggml_rms_norm(g->ctx, x, NORM_EPSILON));
}

static struct ggml_tensor *rotated(struct gdevice *g, struct ggml_tensor *x,
                                   struct ggml_tensor *pos, uint32_t heads, uint32_t rows)
{
    uint32_t dim = g->model->llm->head_dim;
    struct ggml_tensor *r = own(g, ggml_reshape_3d(g->ctx, x, dim, heads, rows));
    return own(g, ggml_rope_ext(g->ctx, r, pos, NULL, (int)dim, GGML_ROPE_TYPE_NEOX, 0, ROPE_BASE,
                                1.0f, 0.0f, 1.0f, 32.0f, 1.0f));
}

static bool stopped(void *stop)
{
    return atomic_load_explicit((const _Atomic int *)stop, memory_order_relaxed) != 0;
}

/* Reserves memory for a kernel whose tensors take at most `floats` numbers and mask_bytes. */
static int begin(struct gdevice *g, size_t floats, size_t mask_bytes, uint32_t n_nodes)
{
    size_t objects = n_nodes * 2 * ggml_tensor_overhead() +
                     ggml_graph_overhead_custom(2 * n_nodes, false) + 4096;
    if (buffer_reserve(&g->objects, objects) != 0 ||
        buffer_reserve(&g->tensors, floats * sizeof(float) + mask_bytes +
                                        64 * GGML_ENGINE_ALIGN * n_nodes) != 0) {
        return -ENOMEM;
    }
    g->ctx = ggml_init((struct ggml_init_params){
        .mem_size = g->objects.size, .mem_buffer = g->objects.data, .no_alloc = true});
    g->graph = ggml_new_graph_custom(g->ctx, 2 * n_nodes, false);
    return 0;
}

static int finish(struct gdevice *g, const struct engine_kernel *k, char *why)
{
    struct ggml_cplan plan = ggml_graph_plan(g->graph, 1, g->threads);
    int rc = buffer_reserve(&g->work, plan.work_size + 1);
    if (rc == 0) {
        plan.work_data = (uint8_t *)g->work.data;
        plan.abort_callback = stopped;
        plan.abort_callback_data = (void *)(uintptr_t)k->stop;
        enum ggml_status status = ggml_graph_compute(g->graph, &plan);
        rc = status == GGML_STATUS_SUCCESS ? 0 : status == GGML_STATUS_ABORTED ? -ECANCELED : -EIO;
    }
    ggml_free(g->ctx);
    if (rc != 0 && rc != -ECANCELED) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, rc == -EIO ? "ggml failed" : "out of memory");
    }
    return rc;
}

/* ---- kernels ---- */

static const float *row_of(const float *base, uint32_t row, uint32_t columns)
{
    return base + (size_t)row * columns;
}

/* One layer's cells as a table of rows. */
static struct ggml_tensor *cells(struct gdevice *g, uint16_t *const *layers, uint32_t layer)
{
    return at(
        ggml_new_tensor_2d(g->ctx, GGML_TYPE_F16, g->model->kv_dim, (int64_t)g->model->kv->n_cells),
        layers[layer]);
}

/* Copies the first n rows of x to their cells. */
static void store(struct gdevice *g, struct ggml_tensor *table, struct ggml_tensor *x,
                  const struct engine_kernel *k)
{
    uint32_t dim = g->model->kv_dim;
    struct ggml_tensor *rows =
        own(g, ggml_view_2d(g->ctx, x, dim, k->rows, dim * sizeof(float), 0));
    struct ggml_tensor *to =
        at(ggml_new_tensor_1d(g->ctx, GGML_TYPE_I64, k->rows), k->pass->cell + k->row0);
    ggml_build_forward_expand(g->graph, own(g, ggml_set_rows(g->ctx, table, rows, to)));
}

static int qkv(struct gdevice *g, const struct engine_kernel *k, char *why)
{
    const struct model *m = g->model;
    const struct engine_pass *p = k->pass;
    uint32_t n = k->padded_rows;
    uint32_t d = m->llm->hidden;
    void *const *w = m->layers[k->layer].weights;
    size_t floats = (size_t)n * (2 * d + 3 * m->q_dim + 6 * m->kv_dim);
    if (begin(g, floats, 0, 24) != 0) {
        return -ENOMEM;
    }
    struct ggml_tensor *x = normed(g, matrix(g, row_of(p->x[k->layer % 2], k->row0, d), d, n));
    struct ggml_tensor *pos = at(ggml_new_tensor_1d(g->ctx, GGML_TYPE_I32, n), p->pos + k->row0);
    struct ggml_tensor *q =
        rotated(g, product(g, w[ENGINE_WQ], x, d, m->q_dim), pos, m->llm->heads, n);
    struct ggml_tensor *key =
        rotated(g, product(g, w[ENGINE_WK], x, d, m->kv_dim), pos, m->llm->kv_heads, n);
    key = own(g, ggml_reshape_2d(g->ctx, key, m->kv_dim, n));
    struct ggml_tensor *value = product(g, w[ENGINE_WV], x, d, m->kv_dim);
    ggml_build_forward_expand(g->graph, q);
    store(g, cells(g, m->kv->k, k->layer), key, k);
    store(g, cells(g, m->kv->v, k->layer), value, k);
    const void *result = q->data;
    int rc = finish(g, k, why);
    if (rc == 0) {
        memcpy(p->q + (size_t)k->row0 * m->q_dim, result,
               (size_t)k->rows * m->q_dim * sizeof(float));
    }
    return rc;
}

/* Causal: row y attends to the positions up to its own. */
static struct ggml_tensor *causal_mask(struct gdevice *g, uint32_t first, uint32_t rows,
                                       uint32_t keys)
{
    uint32_t lots = (rows + MASK_ROWS - 1) / MASK_ROWS * MASK_ROWS;
    struct ggml_tensor *mask = own(g, ggml_new_tensor_2d(g->ctx, GGML_TYPE_F16, keys, lots));
    uint16_t *to = mask->data;
    for (uint32_t y = 0; y < rows; y++) {
        for (uint32_t z = 0; z < keys; z++) {
            *to++ = z <= first + y ? 0 : FP16_MINUS_INFINITY;
        }
    }
    memset(to, 0, (size_t)(lots - rows) * keys * sizeof *to);
    return mask;
}

/* The rows of a segment in a kernel: n from `row` on. */
struct share {
    const struct engine_segment *s;
    uint32_t row, n;
};

static struct share share_of(const struct engine_kernel *k, uint32_t i)
{
    const struct engine_segment *s = &k->pass->segments[i];
    uint32_t from = k->row0 > s->row ? k->row0 : s->row;
    uint32_t end = k->row0 + k->rows < s->row + s->n_rows ? k->row0 + k->rows : s->row + s->n_rows;
    return (struct share){s, from, end > from ? end - from : 0};
}

static void attend(struct gdevice *g, const struct engine_kernel *k, struct share e)
{
    const struct model *m = g->model;
    uint32_t first = e.s->first_token + e.row - e.s->row;
    uint32_t keys = first + e.n;
    size_t cell_bytes = m->kv_dim * sizeof(uint16_t);
    size_t head_bytes = m->llm->head_dim * sizeof(uint16_t);
    struct ggml_tensor *q =
        at(ggml_new_tensor_3d(g->ctx, GGML_TYPE_F32, m->llm->head_dim, m->llm->heads, e.n),
           row_of(k->pass->q, e.row, m->q_dim));
    q = own(g, ggml_permute(g->ctx, q, 0, 2, 1, 3));
    struct ggml_tensor *kv[2];
    for (int i = 0; i < 2; i++) {
        struct ggml_tensor *table = cells(g, i == 0 ? m->kv->k : m->kv->v, k->layer);
        kv[i] = own(g, ggml_view_3d(g->ctx, table, m->llm->head_dim, keys, m->llm->kv_heads,
                                    cell_bytes, head_bytes, e.s->cell0 * cell_bytes));
    }
    struct ggml_tensor *mask = e.n > 1 ? causal_mask(g, first, e.n, keys) : NULL;
    float scale = 1.0f / sqrtf((float)m->llm->head_dim);
    struct ggml_tensor *out = ggml_flash_attn_ext(g->ctx, q, kv[0], kv[1], mask, scale, 0.0f, 0.0f);
    ggml_build_forward_expand(g->graph, at(out, row_of(k->pass->att, e.row, m->q_dim)));
}

static int mha(struct gdevice *g, const struct engine_kernel *k, char *why)
{
    size_t mask_bytes = 0;
    for (uint32_t i = 0; i < k->pass->n_segments; i++) {
        struct share e = share_of(k, i);
        size_t keys = e.s->first_token + (e.row - e.s->row) + e.n;
        mask_bytes += e.n > 1 ? keys * (e.n + MASK_ROWS) * sizeof(uint16_t) : 0;
    }
    if (begin(g, 0, mask_bytes, 16 * (k->pass->n_segments + 1)) != 0) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < k->pass->n_segments; i++) {
        struct share e = share_of(k, i);
        if (e.n > 0) {
            attend(g, k, e);
        }
    }
    return finish(g, k, why);
}

static int ffn(struct gdevice *g, const struct engine_kernel *k, char *why)
{
    const struct model *m = g->model;
    uint32_t n = k->padded_rows;
    uint32_t d = m->llm->hidden;
    uint32_t f = m->llm->ffn_hidden;
    void *const *w = m->layers[k->layer].weights;
    if (begin(g, (size_t)n * (6 * d + 4 * f), 0, 24) != 0) {
        return -ENOMEM;
    }
    struct ggml_tensor *att = matrix(g, row_of(k->pass->att, k->row0, m->q_dim), m->q_dim, n);
    struct ggml_tensor *before = matrix(g, row_of(k->pass->x[k->layer % 2], k->row0, d), d, n);
    struct ggml_tensor *h =
        own(g, ggml_add(g->ctx, product(g, w[ENGINE_WO], att, m->q_dim, d), before));
    struct ggml_tensor *x = normed(g, h);
    struct ggml_tensor *inner =
        own(g, ggml_swiglu_split(g->ctx, product(g, w[ENGINE_GATE], x, d, f),
                                 product(g, w[ENGINE_UP], x, d, f)));
    struct ggml_tensor *out = own(g, ggml_add(g->ctx, product(g, w[ENGINE_DOWN], inner, f, d), h));
    ggml_build_forward_expand(g->graph, out);
    const void *result = out->data;
    int rc = finish(g, k, why);
    if (rc == 0) {
        memcpy(k->pass->x[(k->layer + 1) % 2] + (size_t)k->row0 * d, result,
               (size_t)k->rows * d * sizeof(float));
    }
    return rc;
}

static int head(struct gdevice *g, const struct engine_kernel *k, char *why)
{
    const struct model *m = g->model;
    uint32_t n = k->padded_rows;
    uint32_t d = m->llm->hidden;
    uint32_t vocab = m->llm->vocab;
    if (begin(g, (size_t)n * (2 * d + vocab), 0, 8) != 0) {
        return -ENOMEM;
    }
    struct ggml_tensor *x = own(g, ggml_new_tensor_2d(g->ctx, GGML_TYPE_F32, d, n));
    const float *last = k->pass->x[m->llm->n_layers % 2];
    memset(x->data, 0, (size_t)n * d * sizeof(float));
    for (uint32_t i = 0; i < k->rows; i++) {
        memcpy((float *)x->data + (size_t)i * d, row_of(last, k->pass->logit_rows[k->row0 + i], d),
               d * sizeof(float));
    }
    struct ggml_tensor *out = product(g, m->head, normed(g, x), d, vocab);
    ggml_build_forward_expand(g->graph, out);
    const void *result = out->data;
    int rc = finish(g, k, why);
    if (rc == 0) {
        memcpy(k->pass->logits + (size_t)k->row0 * vocab, result,
               (size_t)k->rows * vocab * sizeof(float));
    }
    return rc;
}

static int layer(struct gdevice *g, const struct engine_kernel *k, char *why)
{
    int rc = qkv(g, k, why);
    rc = rc == 0 ? mha(g, k, why) : rc;
    return rc == 0 ? ffn(g, k, why) : rc;
}

int ggml_engine_kernel(void *device, const struct engine_kernel *k, char *why)
{
    static int (*const kernels[OP_KIND_COUNT])(struct gdevice *, const struct engine_kernel *,
                                               char *) = {
        [OP_QKV] = qkv, [OP_MHA] = mha, [OP_FFN] = ffn, [OP_HEAD] = head, [OP_LAYER] = layer};
    return kernels[k->op](device, k, why);
}

#endif
