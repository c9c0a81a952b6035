#include "hwmodels/engines/openvino_ir.h"

#include "hwmodels/kernel_numbers.h"

#define ALIGN 64
#define OUT 100 /* number of a node's first output port */
#define NUMPY "auto_broadcast=\"numpy\""
#define NORM_EPSILON 1e-5f

static void put(struct ir *ir, struct ir_text *t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void put(struct ir *ir, struct ir_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char line[1024];
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line) {
        ir->failed = true;
        return;
    }
    if (t->n + (size_t)n + 1 > t->cap) {
        t->cap = 2 * (t->cap + (size_t)n + 4096);
        char *data = realloc(t->data, t->cap);
        if (data == NULL) {
            ir->failed = true;
            return;
        }
        t->data = data;
    }
    memcpy(t->data + t->n, line, (size_t)n + 1);
    t->n += (size_t)n;
}

void ir_init(struct ir *ir)
{
    *ir = (struct ir){.next_id = 0};
    put(ir, &ir->layers, "<?xml version=\"1.0\"?><net name=\"kernel\" version=\"11\"><layers>\n");
}

void ir_fini(struct ir *ir)
{
    free(ir->layers.data);
    free(ir->edges.data);
    free(ir->blob);
    *ir = (struct ir){.next_id = 0};
}

void ir_end(struct ir *ir)
{
    /* OpenVINO needs all layers before the first edge, so edges are collected separately and follow
     * here. */
    struct ir_text edges = ir->edges;
    put(ir, &ir->layers, "</layers><edges>\n");
    for (size_t at = 0; at < edges.n;) { /* line by line, because each is short */
        size_t n = strcspn(edges.data + at, "\n") + 1;
        put(ir, &ir->layers, "%.*s", (int)n, edges.data + at);
        at += n;
    }
    put(ir, &ir->layers, "</edges></net>");
}

struct node {
    const char *type, *opset, *precision, *attributes, *info;
    int n_out;
    uint32_t n_in;
};

static struct ir_port add_node(struct ir *ir, struct node w, const struct ir_port *in)
{
    int id = ir->next_id++;
    put(ir, &ir->layers, "<layer id=\"%d\" name=\"n%d\" type=\"%s\" version=\"%s\">", id, id,
        w.type, w.opset);
    if (w.attributes != NULL) {
        put(ir, &ir->layers, "<data %s/>", w.attributes);
    }
    if (w.info != NULL) {
        put(ir, &ir->layers, "<rt_info>%s</rt_info>", w.info);
    }
    if (w.n_in > 0) {
        put(ir, &ir->layers, "<input>");
        for (uint32_t i = 0; i < w.n_in; i++) {
            put(ir, &ir->layers, "<port id=\"%u\"/>", i);
            put(ir, &ir->edges,
                "<edge from-layer=\"%d\" from-port=\"%d\" to-layer=\"%d\" to-port=\"%u\"/>\n",
                in[i].node, in[i].port, id, i);
        }
        put(ir, &ir->layers, "</input>");
    }
    if (w.n_out > 0) {
        put(ir, &ir->layers, "<output>");
        for (int i = 0; i < w.n_out; i++) {
            put(ir, &ir->layers, "<port id=\"%d\" precision=\"%s\"/>", OUT + i, w.precision);
        }
        put(ir, &ir->layers, "</output>");
    }
    put(ir, &ir->layers, "</layer>\n");
    return (struct ir_port){id, OUT};
}

static struct ir_port one(struct ir *ir, const char *type, const char *opset,
                          const char *attributes, struct ir_port x)
{
    return add_node(ir, (struct node){type, opset, "FP32", attributes, NULL, 1, 1}, &x);
}

static struct ir_port two(struct ir *ir, const char *type, const char *opset,
                          const char *attributes, struct ir_port x, struct ir_port y)
{
    const struct ir_port in[] = {x, y};
    return add_node(ir, (struct node){type, opset, "FP32", attributes, NULL, 1, 2}, in);
}

/* ---- constants ---- */

/* Reserves room in the blob; NULL: out of memory. */
static uint8_t *blob_room(struct ir *ir, size_t bytes, size_t *offset)
{
    /* Each constant begins on a cache line, because OpenVINO may use weights in place. */
    *offset = (ir->n_blob + ALIGN - 1) / ALIGN * ALIGN;
    size_t need = *offset + bytes;
    if (need > ir->cap_blob) {
        size_t cap = (need + need / 2 + ALIGN - 1) / ALIGN * ALIGN;
        uint8_t *blob = aligned_alloc(ALIGN, cap);
        if (blob == NULL) {
            ir->failed = true;
            return NULL;
        }
        if (ir->n_blob > 0) {
            memcpy(blob, ir->blob, ir->n_blob);
        }
        free(ir->blob);
        ir->blob = blob;
        ir->cap_blob = cap;
    }
    ir->n_blob = need;
    return ir->blob + *offset;
}

static struct ir_port constant(struct ir *ir, const char *type, const char *precision,
                               const char *shape, size_t offset, size_t bytes)
{
    char a[160];
    (void)snprintf(a, sizeof a, "element_type=\"%s\" shape=\"%s\" offset=\"%zu\" size=\"%zu\"",
                   type, shape, offset, bytes);
    return add_node(ir, (struct node){"Const", "opset1", precision, a, NULL, 1, 0}, NULL);
}

static struct ir_port integers(struct ir *ir, uint32_t n, const int64_t *v, bool scalar)
{
    size_t offset;
    char shape[16] = "";
    uint8_t *to = blob_room(ir, n * sizeof *v, &offset);
    if (to != NULL) {
        memcpy(to, v, n * sizeof *v);
    }
    if (!scalar) {
        (void)snprintf(shape, sizeof shape, "%u", n);
    }
    return constant(ir, "i64", "I64", shape, offset, n * sizeof *v);
}

#define INTEGERS(...)                                                                              \
    integers(ir, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__},     \
             false)

static struct ir_port number(struct ir *ir, float v)
{
    size_t offset;
    uint8_t *to = blob_room(ir, sizeof v, &offset);
    if (to != NULL) {
        memcpy(to, &v, sizeof v);
    }
    return constant(ir, "f32", "FP32", "1", offset, sizeof v);
}

/* Writes a row of weights as int8. Returns the scale. */
static uint16_t quantise(enum engine_tensor t, uint32_t layer, uint32_t row, uint32_t in,
                         float *scratch, int8_t *out)
{
    float most = 0.0f;
    engine_weights(t, layer, row, in, scratch);
    for (uint32_t i = 0; i < in; i++) {
        most = fmaxf(most, fabsf(scratch[i]));
    }
    /* Symmetric, with a scale per output and no zero point, so that devices need no correction for
     * an offset. */
    float scale = most / 127.0f;
    for (uint32_t i = 0; i < in; i++) {
        out[i] = (int8_t)lrintf(scratch[i] / scale);
    }
    return half_from_float(scale);
}

/* Integer weights times a scale per output, both in the blob. */
static struct ir_port scaled(struct ir *ir, struct ir_port w, size_t scales_at, uint32_t out)
{
    char shape[32];
    (void)snprintf(shape, sizeof shape, "%u,1", out);
    w = add_node(
        ir, (struct node){"Convert", "opset1", "FP16", "destination_type=\"f16\"", NULL, 1, 1}, &w);
    const struct ir_port both[] = {
        w, constant(ir, "f16", "FP16", shape, scales_at, out * sizeof(uint16_t))};
    return add_node(ir, (struct node){"Multiply", "opset1", "FP16", NUMPY, NULL, 1, 2}, both);
}

/* y = x W^T; narrow: W is decompressed to floats. */
static struct ir_port product(struct ir *ir, struct ir_port x, struct ir_port w, bool narrow)
{
    if (narrow) {
        /* The attribute `decompression` prevents the compiler from folding weights into floats,
         * which would read two to eight times the bytes. */
        w = add_node(ir,
                     (struct node){"Convert", "opset1", "FP32", "destination_type=\"f32\"",
                                   "<attribute name=\"decompression\" version=\"0\"/>", 1, 1},
                     &w);
    }
    return two(ir, "MatMul", "opset1", "transpose_a=\"false\" transpose_b=\"true\"", x, w);
}

struct ir_port ir_linear(struct ir *ir, struct ir_port x, enum engine_tensor t, uint32_t layer,
                         uint32_t in, uint32_t out)
{
    size_t at_weights;
    size_t at_scales;
    size_t n = (size_t)in * out;
    (void)blob_room(ir, n, &at_weights);
    (void)blob_room(ir, out * sizeof(uint16_t), &at_scales);
    OWNED float *scratch = malloc(in * sizeof *scratch);
    for (uint32_t row = 0; !ir->failed && scratch != NULL && row < out; row++) {
        int8_t *to = (int8_t *)ir->blob + at_weights + (size_t)row * in;
        uint16_t scale = quantise(t, layer, row, in, scratch, to);
        memcpy(ir->blob + at_scales + row * sizeof scale, &scale, sizeof scale);
    }
    ir->failed = ir->failed || scratch == NULL;
    char shape[32];
    (void)snprintf(shape, sizeof shape, "%u,%u", out, in);
    struct ir_port w = constant(ir, "i8", "I8", shape, at_weights, n);
    return product(ir, x, scaled(ir, w, at_scales, out), true);
}

/* A stored matrix, converted for the product. */
static struct ir_port stored(struct ir *ir, uint32_t bits, const void *weights, uint32_t in,
                             uint32_t out)
{
    size_t offset;
    size_t bytes = (size_t)in * out * bits / 8;
    uint8_t *to = blob_room(ir, bytes, &offset);
    char shape[32];
    (void)snprintf(shape, sizeof shape, "%u,%u", out, in);
    if (to != NULL && weights != NULL) {
        memcpy(to, weights, bytes);
    } else if (to != NULL) {
        kernel_fill(to, bytes);
    }
    return bits == 32   ? constant(ir, "f32", "FP32", shape, offset, bytes)
           : bits == 16 ? constant(ir, "f16", "FP16", shape, offset, bytes)
           : bits == 8  ? constant(ir, "i8", "I8", shape, offset, bytes)
                        : constant(ir, "i4", "I4", shape, offset, bytes);
}

struct ir_port ir_product(struct ir *ir, struct ir_port x, uint32_t bits, const void *weights,
                          uint32_t in, uint32_t out)
{
    struct ir_port w = stored(ir, bits, weights, in, out);
    if (bits < 16) {
        size_t at;
        /* Any scale will do, because only the time of a product is measured. Small data keeps sums
         * from overflowing. */
        uint16_t scale = half_from_float(1.0f / 64.0f);
        uint8_t *to = blob_room(ir, out * sizeof scale, &at);
        for (uint32_t i = 0; to != NULL && i < out; i++) {
            memcpy(to + i * sizeof scale, &scale, sizeof scale);
        }
        w = scaled(ir, w, at, out);
    }
    return product(ir, x, w, bits < 32);
}

/* ---- parts of models ---- */

struct ir_port ir_input(struct ir *ir, const char *type, const char *shape)
{
    char a[160];
    ir->dynamic = ir->dynamic || strchr(shape, '?') != NULL;
    (void)snprintf(a, sizeof a, "shape=\"%s\" element_type=\"%s\"", shape, type);
    const char *precision = strcmp(type, "f16") == 0 ? "FP16" : "FP32";
    return add_node(ir, (struct node){"Parameter", "opset1", precision, a, NULL, 1, 0}, NULL);
}

void ir_result(struct ir *ir, struct ir_port x)
{
    (void)add_node(ir, (struct node){"Result", "opset1", "FP32", NULL, NULL, 0, 1}, &x);
}

struct ir_port ir_add(struct ir *ir, struct ir_port a, struct ir_port b)
{
    return two(ir, "Add", "opset1", NUMPY, a, b);
}

static struct ir_port multiply(struct ir *ir, struct ir_port a, struct ir_port b)
{
    return two(ir, "Multiply", "opset1", NUMPY, a, b);
}

static struct ir_port reshaped(struct ir *ir, struct ir_port x, struct ir_port shape)
{
    return two(ir, "Reshape", "opset1", "special_zero=\"true\"", x, shape);
}

struct ir_port ir_norm(struct ir *ir, struct ir_port x)
{
    struct ir_port squares = two(ir, "Power", "opset1", NUMPY, x, number(ir, 2.0f));
    struct ir_port mean =
        two(ir, "ReduceMean", "opset1", "keep_dims=\"true\"", squares, INTEGERS(-1));
    struct ir_port root =
        one(ir, "Sqrt", "opset1", NULL, ir_add(ir, mean, number(ir, NORM_EPSILON)));
    return two(ir, "Divide", "opset1", NUMPY " m_pythondiv=\"true\"", x, root);
}

struct ir_port ir_rotate(struct ir *ir, struct ir_port x, struct ir_port cosines,
                         struct ir_port sines, uint32_t heads, uint32_t dim)
{
    x = reshaped(ir, x, INTEGERS(0, heads, dim));
    const struct ir_port in[] = {x, integers(ir, 1, (const int64_t[]){2}, true)};
    struct ir_port low =
        add_node(ir, (struct node){"Split", "opset1", "FP32", "num_splits=\"2\"", NULL, 2, 2}, in);
    struct ir_port high = {low.node, OUT + 1};
    struct ir_port turned =
        two(ir, "Concat", "opset1", "axis=\"-1\"", multiply(ir, high, number(ir, -1.0f)), low);
    struct ir_port sum = ir_add(ir, multiply(ir, x, cosines), multiply(ir, turned, sines));
    return reshaped(ir, sum, INTEGERS(0, heads * dim));
}

struct ir_port ir_gated(struct ir *ir, struct ir_port gate, struct ir_port up)
{
    return multiply(ir, one(ir, "Swish", "opset4", NULL, gate), up);
}

/* Keys or values, repeated for each query head: [1, heads, keys, dim]. */
static struct ir_port spread(struct ir *ir, struct ir_port x, const struct llm *llm)
{
    x = one(ir, "Convert", "opset1", "destination_type=\"f32\"", x);
    x = two(ir, "Transpose", "opset1", NULL, x, INTEGERS(0, 2, 1, 3));
    x = two(ir, "Unsqueeze", "opset1", NULL, x, INTEGERS(2));
    x = two(ir, "Broadcast", "opset3", "mode=\"bidirectional\"", x,
            INTEGERS(1, 1, llm->heads / llm->kv_heads, 1, 1));
    return reshaped(ir, x, INTEGERS(0, llm->heads, -1, llm->head_dim));
}

struct ir_port ir_attention(struct ir *ir, struct ir_port q, struct ir_port k, struct ir_port v,
                            struct ir_port mask, const struct llm *llm)
{
    const struct ir_port in[] = {two(ir, "Transpose", "opset1", NULL, q, INTEGERS(0, 2, 1, 3)),
                                 spread(ir, k, llm), spread(ir, v, llm), mask};
    struct ir_port a = add_node(ir,
                                (struct node){"ScaledDotProductAttention", "opset13", "FP32",
                                              "causal=\"false\"", NULL, 1, 4},
                                in);
    return two(ir, "Transpose", "opset1", NULL, a, INTEGERS(0, 2, 1, 3));
}
