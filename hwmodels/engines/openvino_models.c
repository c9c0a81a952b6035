#include "hwmodels/engines/openvino_models.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

/* Its messages begin with a line for every source file that they passed; what is wrong comes last.
 */
int openvino_failure(char *why, const char *what)
{
    static const char passed[] = "Exception from ";
    size_t used = (size_t)snprintf(why, ENGINE_MESSAGE_BYTES, "%.60s:", what);
    const char *line = ov_get_last_err_msg();
    while (*line != '\0' && used + 2 < ENGINE_MESSAGE_BYTES) {
        size_t n = strcspn(line, "\n");
        if (n > 0 && strncmp(line, passed, sizeof passed - 1) != 0) {
            size_t room = ENGINE_MESSAGE_BYTES - used - 2;
            used += (size_t)snprintf(why + used, ENGINE_MESSAGE_BYTES - used, " %.*s",
                                     (int)(n < room ? n : room), line);
        }
        line += n + (line[n] == '\n');
    }
    return -EIO;
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
    *c = (struct compiled){0};
}

int openvino_compile(ov_core_t *core, const char *device, struct ir *ir, struct compiled *out,
                     char *why)
{
    static uint8_t none[64]; /* of a model without constants */
    ov_shape_t shape = {0};
    ov_tensor_t *weights = NULL;
    ov_model_t *model = NULL;
    *out = (struct compiled){0};
    ir_end(ir);
    int rc = ir->failed ? -ENOMEM : 0;
    if (rc == 0) {
        /* The compiled model may point into the constants: they live as long as it does. */
        out->blob = ir->blob;
        ir->blob = NULL;
        int64_t n = out->blob == NULL ? (int64_t)sizeof none : (int64_t)ir->n_blob;
        (void)ov_shape_create(1, &n, &shape);
        rc = ov_tensor_create_from_host_ptr(U8, shape, out->blob == NULL ? none : out->blob,
                                            &weights) != OK ||
                     ov_core_read_model_from_memory_buffer(core, ir->layers.data, ir->layers.n,
                                                           weights, &model) != OK
                 ? openvino_failure(why, "model not read")
             : ov_core_compile_model(core, model, device, 0, &out->model) != OK ||
                     ov_compiled_model_create_infer_request(out->model, &out->request) != OK
                 ? openvino_failure(why, "model not compiled")
                 : 0;
        (void)ov_shape_free(&shape);
    }
    if (model != NULL) {
        ov_model_free(model);
    }
    if (weights != NULL) {
        ov_tensor_free(weights);
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

static int compile(const struct odevice *v, struct ir *ir, uint32_t rows, struct compiled *out,
                   char *why)
{
    int rc = openvino_compile(v->engine->core, v->name, ir, out, why);
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

/* The output projection stands here and not with attention, as everywhere (sim/api/device.h): it
 * has weights and rows of a fixed number, which a device with static graphs can compile once, where
 * attention's keys grow. */
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
