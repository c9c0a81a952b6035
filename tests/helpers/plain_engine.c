#include "tests/helpers/plain_engine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/arena.h"

struct plain_faults plain_faults;

struct plain {
    const struct llm *llm;
    const struct engine_kv *kv;
    float **weights; /* by layer and tensor */
};

/* Half precision, to nearest even; numbers here are far from its limits. */
static uint16_t half_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t sign = (u >> 16) & 0x8000u;
    int exponent = (int)((u >> 23) & 0xff) - 127 + 15;
    if (exponent <= 0) {
        return (uint16_t)sign; /* below 6e-5: nothing that matters */
    }
    uint32_t mantissa = u & 0x7fffffu;
    uint32_t h = ((uint32_t)exponent << 10) | (mantissa >> 13);
    uint32_t rest = mantissa & 0x1fffu;
    h += rest > 0x1000u || (rest == 0x1000u && (h & 1u) != 0);
    return (uint16_t)(sign | h);
}

static float float_of(uint16_t h)
{
    uint32_t exponent = (h >> 10) & 0x1fu;
    if (exponent == 0) {
        return 0.0f;
    }
    uint32_t u = ((uint32_t)(h & 0x8000u) << 16) | ((exponent - 15 + 127) << 23) |
                 ((uint32_t)(h & 0x3ffu) << 13);
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void shape_of(const struct llm *m, enum engine_tensor t, uint32_t *in, uint32_t *out)
{
    uint32_t q = m->heads * m->head_dim;
    uint32_t kv = m->kv_heads * m->head_dim;
    const uint32_t shapes[][2] = {[ENGINE_WQ] = {m->hidden, q},
                                  [ENGINE_WK] = {m->hidden, kv},
                                  [ENGINE_WV] = {m->hidden, kv},
                                  [ENGINE_WO] = {q, m->hidden},
                                  [ENGINE_GATE] = {m->hidden, m->ffn_hidden},
                                  [ENGINE_UP] = {m->hidden, m->ffn_hidden},
                                  [ENGINE_DOWN] = {m->ffn_hidden, m->hidden},
                                  [ENGINE_HEAD] = {m->hidden, m->vocab}};
    *in = shapes[t][0];
    *out = shapes[t][1];
}

static int engine_open(const struct engine_options *o, void **engine, char *why)
{
    if (plain_faults.fail_open) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "made not to open");
        return -EINVAL;
    }
    struct plain *p = xcalloc(1, sizeof *p);
    p->llm = o->llm;
    p->kv = o->kv;
    uint32_t n = o->llm->n_layers * (ENGINE_HEAD + 1);
    p->weights = xcalloc(n, sizeof *p->weights);
    for (uint32_t i = 0; i < n; i++) {
        enum engine_tensor t = (enum engine_tensor)(i % (ENGINE_HEAD + 1));
        uint32_t in;
        uint32_t out;
        shape_of(o->llm, t, &in, &out);
        p->weights[i] = xcalloc((size_t)in * out, sizeof(float));
        for (uint32_t row = 0; row < out; row++) {
            uint32_t layer = t == ENGINE_HEAD ? 0 : i / (ENGINE_HEAD + 1);
            engine_weights(t, layer, row, in, p->weights[i] + (size_t)row * in);
        }
    }
    *engine = p;
    return 0;
}

static void engine_close(void *engine)
{
    struct plain *p = engine;
    for (uint32_t i = 0; i < p->llm->n_layers * (ENGINE_HEAD + 1); i++) {
        free(p->weights[i]);
    }
    free(p->weights);
    free(p);
}

static int device_open(void *engine, const struct engine_device_options *o, void **device,
                       char *why)
{
    if (plain_faults.fail_device) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "there is no device %s", o->name);
        return -ENODEV;
    }
    *device = engine;
    return 0;
}

static void device_close(void *device)
{
    (void)device;
}

/* y = W x */
static void multiply(const struct plain *p, enum engine_tensor t, uint32_t layer, const float *x,
                     float *y)
{
    uint32_t in;
    uint32_t out;
    shape_of(p->llm, t, &in, &out);
    const float *w = p->weights[layer * (ENGINE_HEAD + 1) + (uint32_t)t];
    for (uint32_t i = 0; i < out; i++) {
        float sum = 0.0f;
        for (uint32_t k = 0; k < in; k++) {
            sum += w[(size_t)i * in + k] * x[k];
        }
        y[i] = sum;
    }
}

static void norm(const float *x, uint32_t n, float *y)
{
    float sum = 0.0f;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    float scale = 1.0f / sqrtf(sum / (float)n + 1e-5f);
    for (uint32_t i = 0; i < n; i++) {
        y[i] = x[i] * scale;
    }
}

static void rotate(float *x, uint32_t heads, uint32_t dim, int32_t pos)
{
    for (uint32_t h = 0; h < heads; h++, x += dim) {
        for (uint32_t i = 0; i < dim / 2; i++) {
            float angle = (float)pos * powf(10000.0f, -2.0f * (float)i / (float)dim);
            float a = x[i];
            float b = x[i + dim / 2];
            x[i] = a * cosf(angle) - b * sinf(angle);
            x[i + dim / 2] = b * cosf(angle) + a * sinf(angle);
        }
    }
}

enum { MAX_WIDTH = 1024 };

static void qkv(const struct plain *p, const struct engine_kernel *k, uint32_t row)
{
    const struct llm *m = p->llm;
    const struct engine_pass *e = k->pass;
    float x[MAX_WIDTH];
    float kv[2][MAX_WIDTH];
    float *q = e->q + (size_t)row * m->heads * m->head_dim;
    norm(e->x[k->layer % 2] + (size_t)row * m->hidden, m->hidden, x);
    multiply(p, ENGINE_WQ, k->layer, x, q);
    multiply(p, ENGINE_WK, k->layer, x, kv[0]);
    multiply(p, ENGINE_WV, k->layer, x, kv[1]);
    rotate(q, m->heads, m->head_dim, e->pos[row]);
    rotate(kv[0], m->kv_heads, m->head_dim, e->pos[row]);
    for (uint32_t i = 0; i < p->kv->kv_dim; i++) {
        size_t at = (size_t)e->cell[row] * p->kv->kv_dim + i;
        p->kv->k[k->layer][at] = half_of(kv[0][i]);
        p->kv->v[k->layer][at] = half_of(kv[1][i]);
    }
}

static const uint16_t *cell_of(const struct plain *p, uint16_t *const *layers, uint32_t layer,
                               size_t cell, uint32_t kv_head)
{
    return layers[layer] + cell * p->kv->kv_dim + (size_t)kv_head * p->llm->head_dim;
}

static void mha(const struct plain *p, const struct engine_kernel *k, uint32_t row)
{
    const struct llm *m = p->llm;
    const struct engine_pass *e = k->pass;
    const struct engine_segment *s = e->segments;
    while (row >= s->row + s->n_rows) {
        s++;
    }
    float *weight = xcalloc((size_t)e->pos[row] + 1, sizeof *weight);
    for (uint32_t h = 0; h < m->heads; h++) {
        uint32_t kv_head = h / (m->heads / m->kv_heads);
        const float *q = e->q + ((size_t)row * m->heads + h) * m->head_dim;
        float *out = e->att + ((size_t)row * m->heads + h) * m->head_dim;
        float sum = 0.0f;
        for (int32_t t = 0; t <= e->pos[row]; t++) {
            const uint16_t *key = cell_of(p, p->kv->k, k->layer, s->cell0 + (size_t)t, kv_head);
            float dot = 0.0f;
            for (uint32_t i = 0; i < m->head_dim; i++) {
                dot += q[i] * float_of(key[i]);
            }
            weight[t] = expf(dot / sqrtf((float)m->head_dim));
            sum += weight[t];
        }
        memset(out, 0, m->head_dim * sizeof *out);
        for (int32_t t = 0; t <= e->pos[row]; t++) {
            const uint16_t *value = cell_of(p, p->kv->v, k->layer, s->cell0 + (size_t)t, kv_head);
            for (uint32_t i = 0; i < m->head_dim; i++) {
                out[i] += weight[t] / sum * float_of(value[i]);
            }
        }
    }
    free(weight);
}

static void ffn(const struct plain *p, const struct engine_kernel *k, uint32_t row)
{
    const struct llm *m = p->llm;
    float h[MAX_WIDTH];
    float x[MAX_WIDTH];
    float gate[MAX_WIDTH];
    float up[MAX_WIDTH];
    multiply(p, ENGINE_WO, k->layer, k->pass->att + (size_t)row * m->heads * m->head_dim, h);
    for (uint32_t i = 0; i < m->hidden; i++) {
        h[i] += k->pass->x[k->layer % 2][(size_t)row * m->hidden + i];
    }
    norm(h, m->hidden, x);
    multiply(p, ENGINE_GATE, k->layer, x, gate);
    multiply(p, ENGINE_UP, k->layer, x, up);
    for (uint32_t i = 0; i < m->ffn_hidden; i++) {
        up[i] *= gate[i] / (1.0f + expf(-gate[i]));
    }
    multiply(p, ENGINE_DOWN, k->layer, up, x);
    float *out = k->pass->x[(k->layer + 1) % 2] + (size_t)row * m->hidden;
    for (uint32_t i = 0; i < m->hidden; i++) {
        out[i] = x[i] + h[i];
    }
}

static void head(const struct plain *p, const struct engine_kernel *k, uint32_t row)
{
    const struct llm *m = p->llm;
    float x[MAX_WIDTH];
    size_t last = (size_t)k->pass->logit_rows[row] * m->hidden;
    norm(k->pass->x[m->n_layers % 2] + last, m->hidden, x);
    multiply(p, ENGINE_HEAD, 0, x, k->pass->logits + (size_t)row * m->vocab);
}

static void wait_us(uint32_t us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    (void)nanosleep(&t, NULL);
}

static int kernel(void *device, const struct engine_kernel *k, char *why)
{
    const struct plain *p = device;
    uint32_t number = atomic_fetch_add(&plain_faults.kernels, 1) + 1;
    if (number == plain_faults.fail_kernel) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "made to fail");
        return -EIO;
    }
    while (number == plain_faults.hang_kernel) {
        wait_us(1000);
    }
    wait_us(number == plain_faults.late_kernel ? 50000 : 0);
    for (uint32_t us = 0; us < plain_faults.slow_us; us += 200) {
        wait_us(200);
        if (atomic_load(k->stop) != 0) {
            atomic_fetch_add(&plain_faults.cancelled, 1);
            return -ECANCELED;
        }
    }
    if (k->graph > 0 && k->op != OP_MHA) {
        uint32_t layer = k->op == OP_HEAD ? p->llm->n_layers : k->layer;
        const struct plain_graph *g = &plain_faults.graphs[k->graph][layer];
        if (!g->there || g->prepared_rows != k->padded_rows) {
            (void)snprintf(why, ENGINE_MESSAGE_BYTES, "graph %u of layer %u is not there", k->graph,
                           layer);
            return -ENOENT;
        }
    }
    for (uint32_t row = k->row0; row < k->row0 + k->rows; row++) {
        if (k->op == OP_QKV || k->op == OP_LAYER) {
            qkv(p, k, row);
        }
        if (k->op == OP_MHA || k->op == OP_LAYER) {
            mha(p, k, row);
        }
        if (k->op == OP_FFN || k->op == OP_LAYER) {
            ffn(p, k, row);
        }
        if (k->op == OP_HEAD) {
            head(p, k, row);
        }
    }
    return 0;
}

/* Graph blocks are not needed by plain loops; what must be there when is what is checked: prepared
 * before it is made, made before a kernel of its version and layer runs, in its shape. */
static int graph_step(const struct engine_resident *r, enum engine_step step, char *why)
{
    for (uint32_t l = r->layer0; l < r->layer0 + r->n_layers + r->head; l++) {
        struct plain_graph *g = &plain_faults.graphs[r->key.b][l];
        if (step == ENGINE_STEP_MAKE && g->prepared_rows != r->rows) {
            (void)snprintf(why, ENGINE_MESSAGE_BYTES, "a graph made that was not prepared");
            return -EINVAL;
        }
        g->prepared_rows = step == ENGINE_STEP_PREPARE ? r->rows : g->prepared_rows;
        g->there = step == ENGINE_STEP_MAKE;
    }
    atomic_fetch_add(step == ENGINE_STEP_MAKE ? &plain_faults.loads : &plain_faults.unloads,
                     step != ENGINE_STEP_PREPARE);
    return 0;
}

static int resident(void *device, const struct engine_resident *r, enum engine_step step, char *why)
{
    (void)device;
    if (plain_faults.fail_compile) {
        (void)snprintf(why, ENGINE_MESSAGE_BYTES, "made not to compile");
        return -EIO;
    }
    if (r->key.kind == RESIDENT_GRAPH_BLOCK) {
        return graph_step(r, step, why);
    }
    atomic_fetch_add(step == ENGINE_STEP_MAKE ? &plain_faults.compiles : &plain_faults.drops, 1);
    return 0;
}

const struct engine_ops plain_engine = {.abi = ENGINE_ABI,
                                        .has = ENGINE_INTERRUPTS,
                                        .name = "plain",
                                        .version = "1",
                                        .open = engine_open,
                                        .close = engine_close,
                                        .device_open = device_open,
                                        .device_close = device_close,
                                        .kernel = kernel};
const struct engine_ops plain_engine_compiles = {.abi = ENGINE_ABI,
                                                 .has = ENGINE_INTERRUPTS | ENGINE_COMPILES |
                                                        ENGINE_LOADS,
                                                 .name = "plain",
                                                 .version = "1",
                                                 .open = engine_open,
                                                 .close = engine_close,
                                                 .device_open = device_open,
                                                 .device_close = device_close,
                                                 .kernel = kernel,
                                                 .resident = resident};
