/* Tests one FFN and one attention of a model on a device: whether each compiles, by which compiler,
 * whether it runs, and the error against the device CPU. */
#include "hwmodels/engines/openvino_models.h"
#include "hwmodels/kernel_numbers.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

#define MAX_INPUTS 4

struct input {
    ov_element_type_e type;
    int64_t rank, dims[4];
    void *data; /* owned */
};

struct trial {
    uint32_t rows;
    bool attention;
    struct input inputs[MAX_INPUTS];
    uint32_t n_inputs;
};

static size_t size_of(const struct input *in)
{
    size_t n = 1;
    for (int64_t i = 0; i < in->rank; i++) {
        n *= (size_t)in->dims[i];
    }
    return n;
}

/* Fills numbers between -1 and 1 with a period that no shape has. */
static void fill(struct input *in)
{
    size_t n = size_of(in);
    in->data = malloc(n * sizeof(float));
    for (size_t i = 0; in->data != NULL && i < n; i++) {
        float x = (float)(int)(i * 37 % 101) / 50.0f - 1.0f;
        if (in->type == F16) {
            ((uint16_t *)in->data)[i] = half_from_float(x);
        } else {
            ((float *)in->data)[i] = x;
        }
    }
}

static void add_input(struct trial *t, ov_element_type_e type, int64_t rank, int64_t a, int64_t b,
                      int64_t c, int64_t d)
{
    struct input *in = &t->inputs[t->n_inputs++];
    *in = (struct input){type, rank, {a, b, c, d}, NULL};
    fill(in);
}

/* A row attends to itself and earlier ones. */
static void mask(struct input *in, uint32_t n)
{
    float *m = in->data;
    for (size_t i = 0; m != NULL && i < (size_t)n * n; i++) {
        m[i] = i % n <= i / n ? 0.0f : -1e30f;
    }
}

static void trial_make(struct trial *t, const struct engine *e, uint32_t step, uint32_t rows)
{
    const struct llm *m = e->llm;
    *t = (struct trial){.rows = step == 1 ? 1 : rows, .attention = step == 2};
    uint32_t n = t->rows;
    if (t->attention) {
        add_input(t, F32, 4, 1, n, m->heads, m->head_dim);
        add_input(t, F16, 4, 1, n, m->kv_heads, m->head_dim);
        add_input(t, F16, 4, 1, n, m->kv_heads, m->head_dim);
        add_input(t, F32, 4, 1, 1, n, n);
        mask(&t->inputs[3], n);
    } else {
        add_input(t, F32, 2, n, e->q_dim, 0, 0);
        add_input(t, F32, 2, n, m->hidden, 0, 0);
    }
}

static int trial_compile(const struct trial *t, const struct odevice *v, struct compiled *c,
                         char *why)
{
    return t->attention ? compile_mha(v, t->rows, c, why) : compile_ffn(v, 0, t->rows, c, why);
}

static int trial_run(const struct trial *t, const struct compiled *c, char *why)
{
    for (uint32_t i = 0; i < t->n_inputs; i++) {
        const struct input *in = &t->inputs[i];
        if (in->data == NULL || !openvino_input(c, i, in->type, in->data, in->rank, in->dims)) {
            return openvino_failure(why, "inputs");
        }
    }
    return ov_infer_request_infer(c->request) == OK ? 0 : openvino_failure(why, "inference");
}

/* The result, borrowed from the request, or NULL. */
static const float *result_of(const struct compiled *c, size_t *n)
{
    ov_tensor_t *t = NULL;
    void *data = NULL;
    size_t bytes = 0;
    if (ov_infer_request_get_output_tensor_by_index(c->request, 0, &t) == OK) {
        (void)ov_tensor_data(t, &data);
        (void)ov_tensor_get_byte_size(t, &bytes);
        ov_tensor_free(t);
    }
    *n = bytes / sizeof(float);
    return data;
}

/* RMS error against the device CPU; NaN: the CPU has no result. */
static double off_from_cpu(const struct trial *t, const struct engine *e, const struct compiled *c)
{
    char why[ENGINE_MESSAGE_BYTES];
    OWNED struct odevice *cpu = calloc(1, sizeof *cpu);
    struct compiled own;
    double off = 0.0;
    double all = 0.0;
    if (cpu == NULL) {
        return (double)NAN;
    }
    cpu->engine = (struct engine *)(uintptr_t)e;
    (void)snprintf(cpu->name, sizeof cpu->name, "CPU");
    if (trial_compile(t, cpu, &own, why) == 0) {
        size_t n = 0;
        size_t n_own = 0;
        const float *y = result_of(c, &n);
        const float *z = trial_run(t, &own, why) == 0 ? result_of(&own, &n_own) : NULL;
        for (size_t i = 0; y != NULL && z != NULL && n == n_own && i < n; i++) {
            double own_y = (double)z[i];
            double gap = (double)y[i] - own_y;
            off += gap * gap;
            all += own_y * own_y;
        }
        compiled_free(&own);
    }
    return all > 0.0 ? sqrt(off / all) : (double)NAN;
}

static int try(const struct trial *t, const struct odevice *v, struct engine_probe *out)
{
    struct compiled c;
    double times[4] = {openvino_now_s()};
    int rc = trial_compile(t, v, &c, out->why);
    if (rc != 0) {
        return rc;
    }
    for (int i = 1; rc == 0 && i < 4; i++) {
        times[i] = openvino_now_s();
        rc = i < 3 ? trial_run(t, &c, out->why) : 0;
    }
    out->compile_s = times[1] - times[0];
    out->cached = c.cached;
    (void)snprintf(out->by, sizeof out->by, "%s", c.by);
    if (rc == 0) {
        out->first_s = times[2] - times[1];
        out->again_s = times[3] - times[2];
        out->off_frac = off_from_cpu(t, v->engine, &c);
    }
    compiled_free(&c);
    return rc;
}

void openvino_probe(struct openvino *o, const char *device, const struct llm *llm, uint32_t rows,
                    uint32_t step, struct engine_probe *out)
{
    const double none = (double)NAN;
    *out = (struct engine_probe){
        .compile_s = none, .first_s = none, .again_s = none, .off_frac = none};
    struct engine e = {.llm = llm,
                       .openvino = {.core = o->core, .cache = o->cache},
                       .q_dim = llm->heads * llm->head_dim,
                       .kv_dim = llm->kv_heads * llm->head_dim};
    OWNED struct odevice *v = calloc(1, sizeof *v);
    struct trial t;
    trial_make(&t, &e, step, rows);
    (void)snprintf(out->what, sizeof out->what,
                   t.attention ? "attention, %u tokens" : "FFN, %u row%s", t.rows,
                   text_plural(t.rows));
    if (v != NULL) {
        v->engine = &e;
        (void)snprintf(v->name, sizeof v->name, "%.31s", device);
        out->ok = try(&t, v, out) == 0;
    }
    for (uint32_t i = 0; i < t.n_inputs; i++) {
        free(t.inputs[i].data);
    }
}

#endif
