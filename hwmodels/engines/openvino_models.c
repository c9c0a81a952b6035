#include "hwmodels/engines/openvino_models.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

static int compile(const struct odevice *v, struct ir *ir, uint32_t rows, struct compiled *out,
                   char *why)
{
    int rc = openvino_compile(&v->engine->openvino, v->name, ir, out, why);
    out->rows = rows;
    return rc;
}

/* "64,1024" or "?,1024" */
static const char *shape_of(char *buf, size_t size, uint32_t rows, const char *rest)
{
    if (rows == 0) {
        (void)snprintf(buf, size, "?,%s", rest);
    } else {
        (void)snprintf(buf, size, "%u,%s", rows, rest);
    }
    return buf;
}

static struct ir_port rows_of(struct ir *ir, uint32_t rows, uint32_t columns)
{
    char rest[16];
    char shape[48];
    (void)snprintf(rest, sizeof rest, "%u", columns);
    return ir_input(ir, "f32", shape_of(shape, sizeof shape, rows, rest));
}

int compile_qkv(const struct odevice *v, uint32_t layer, uint32_t rows, struct compiled *out,
                char *why)
{
    const struct engine *e = v->engine;
    const struct llm *m = e->llm;
    char rest[32];
    char shape[48];
    struct ir ir;
    ir_init(&ir);
    (void)snprintf(rest, sizeof rest, "1,%u", m->head_dim);
    struct ir_port x = ir_norm(&ir, rows_of(&ir, rows, m->hidden));
    struct ir_port c = ir_input(&ir, "f32", shape_of(shape, sizeof shape, rows, rest));
    struct ir_port s = ir_input(&ir, "f32", shape_of(shape, sizeof shape, rows, rest));
    struct ir_port q = ir_linear(&ir, x, ENGINE_WQ, layer, m->hidden, e->q_dim);
    struct ir_port k = ir_linear(&ir, x, ENGINE_WK, layer, m->hidden, e->kv_dim);
    ir_result(&ir, ir_rotate(&ir, q, c, s, m->heads, m->head_dim));
    ir_result(&ir, ir_rotate(&ir, k, c, s, m->kv_heads, m->head_dim));
    ir_result(&ir, ir_linear(&ir, x, ENGINE_WV, layer, m->hidden, e->kv_dim));
    return compile(v, &ir, rows, out, why);
}

/* The output projection belongs to FFN and not to attention (sim/api/device.h). It has weights and
 * a fixed number of rows, so a device with static graphs can compile it once, while the keys of
 * attention grow. */
int compile_ffn(const struct odevice *v, uint32_t layer, uint32_t rows, struct compiled *out,
                char *why)
{
    const struct llm *m = v->engine->llm;
    struct ir ir;
    ir_init(&ir);
    struct ir_port att = rows_of(&ir, rows, v->engine->q_dim);
    struct ir_port before = rows_of(&ir, rows, m->hidden);
    struct ir_port h =
        ir_add(&ir, ir_linear(&ir, att, ENGINE_WO, layer, v->engine->q_dim, m->hidden), before);
    struct ir_port x = ir_norm(&ir, h);
    struct ir_port inner =
        ir_gated(&ir, ir_linear(&ir, x, ENGINE_GATE, layer, m->hidden, m->ffn_hidden),
                 ir_linear(&ir, x, ENGINE_UP, layer, m->hidden, m->ffn_hidden));
    ir_result(&ir,
              ir_add(&ir, ir_linear(&ir, inner, ENGINE_DOWN, layer, m->ffn_hidden, m->hidden), h));
    return compile(v, &ir, rows, out, why);
}

int compile_head(const struct odevice *v, uint32_t rows, struct compiled *out, char *why)
{
    const struct llm *m = v->engine->llm;
    struct ir ir;
    ir_init(&ir);
    struct ir_port x = ir_norm(&ir, rows_of(&ir, rows, m->hidden));
    ir_result(&ir, ir_linear(&ir, x, ENGINE_HEAD, 0, m->hidden, m->vocab));
    return compile(v, &ir, rows, out, why);
}

int compile_mha(const struct odevice *v, uint32_t tokens, struct compiled *out, char *why)
{
    const struct llm *m = v->engine->llm;
    char n[16] = "?";
    char shape[64];
    struct ir ir;
    ir_init(&ir);
    if (tokens > 0) {
        (void)snprintf(n, sizeof n, "%u", tokens);
    }
    (void)snprintf(shape, sizeof shape, "1,%s,%u,%u", n, m->heads, m->head_dim);
    struct ir_port q = ir_input(&ir, "f32", shape);
    (void)snprintf(shape, sizeof shape, "1,%s,%u,%u", n, m->kv_heads, m->head_dim);
    struct ir_port k = ir_input(&ir, "f16", shape);
    struct ir_port value = ir_input(&ir, "f16", shape);
    (void)snprintf(shape, sizeof shape, "1,1,%s,%s", n, n);
    struct ir_port mask = ir_input(&ir, "f32", shape);
    ir_result(&ir, ir_attention(&ir, q, k, value, mask, m));
    return compile(v, &ir, tokens, out, why);
}

#endif
