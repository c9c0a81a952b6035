#include "hwmodels/soc_ops.h"

#include <math.h>
#include <string.h>

#define MAX_S 1e3

static void table_parse(struct json_obj *o, const char *key, struct soc_ops_table *t)
{
    t->n = (uint32_t)json_get_array_size(o, key, 1, SOC_OPS_MAX_POINTS);
    for (uint32_t i = 0; i < t->n; i++) {
        struct json_obj p = json_array_object(o, key, (int)i);
        t->rows[i] = json_get_number(&p, "rows", 1.0, 1e6);
        t->s[i] = 1e-6 * json_get_number(&p, "us", 1e-3, MAX_S * 1e6);
        (void)json_get_number(&p, "low", 0.0, MAX_S * 1e6);
        (void)json_get_number(&p, "high", 0.0, MAX_S * 1e6);
        if (i > 0 && t->rows[i] <= t->rows[i - 1]) {
            err_add(o->err, "%s: %s.%s[%u].rows: must rise", o->file, o->path, key, i);
        }
        json_done(&p);
    }
}

void soc_ops_parse(struct json_obj *o, const char *key, struct soc_ops *out)
{
    struct json_obj t = json_get_object(o, key);
    const char *model = json_get_string(&t, "model");
    (void)snprintf(out->model, sizeof out->model, "%s", model);
    (void)json_get_string(&t, "source");
    table_parse(&t, "qkv", &out->qkv);
    table_parse(&t, "ffn", &out->ffn);
    table_parse(&t, "head", &out->head);
    struct json_obj p = json_get_object(&t, "prefill");
    out->prefill_s = 1e-6 * json_get_number(&p, "fixed_us", 0.0, MAX_S * 1e6);
    out->prefill_pair_s = 1e-9 * json_get_number(&p, "pair_ns", 0.0, MAX_S * 1e9);
    out->prefill_row_s = 1e-6 * json_get_number(&p, "row_us", 0.0, MAX_S * 1e6);
    json_done(&p);
    struct json_obj d = json_get_object(&t, "decode");
    out->decode_s = 1e-6 * json_get_number(&d, "fixed_us", 0.0, MAX_S * 1e6);
    out->decode_key_s = 1e-9 * json_get_number(&d, "key_ns", 0.0, MAX_S * 1e9);
    out->decode_row_s = 1e-6 * json_get_number(&d, "row_us", 0.0, MAX_S * 1e6);
    json_done(&d);
    struct json_obj l = json_get_object(&t, "layer");
    out->layer_s = 1e-6 * json_get_number(&l, "fixed_us", 0.0, MAX_S * 1e6);
    out->layer_key_s = 1e-9 * json_get_number(&l, "key_ns", 0.0, MAX_S * 1e9);
    json_done(&l);
    json_done(&t);
    out->given = true;
}

/* Below the first point its time; beyond the last in proportion to the last step, or to the rows
 * where there is one point only. */
static double table_seconds(const struct soc_ops_table *t, double rows)
{
    uint32_t last = t->n - 1;
    if (rows <= t->rows[0]) {
        return t->s[0];
    }
    /* One point gives no slope. In proportion to the rows is an upper bound where weights are read
     * once. */
    if (t->n == 1) {
        return t->s[0] * rows / t->rows[0];
    }
    uint32_t i = 1;
    while (i < last && t->rows[i] < rows) {
        i++;
    }
    double slope = (t->s[i] - t->s[i - 1]) / (t->rows[i] - t->rows[i - 1]);
    return t->s[i - 1] + slope * (rows - t->rows[i - 1]);
}

/* d decodes see D keys, so they have D pairs; m prompt segments of r rows each that see K keys
 * together have r K - m r (r - 1) / 2 pairs (causal). D + K and the sum of pairs are known. */
double soc_ops_decode_keys(const struct work_shape *w)
{
    double keys = (double)w->kv_read_tokens;
    double prompt_rows = w->prefill_rows;
    double d = w->rows - prompt_rows;
    double m = w->sequences - d; /* less where drafts are verified: rows, not sequences, are d */
    double r = m > 0.0 ? prompt_rows / m : 0.0;
    if (w->prefill_rows == 0 || d <= 0.0 || m <= 0.0) {
        return d > 0.0 ? keys : 0.0;
    }
    if (r <= 1.0) { /* pairs and keys are the same: nothing tells them apart */
        return keys * d / w->sequences;
    }
    double prompt_keys = ((double)w->attn_pairs - keys + m * r * (r - 1.0) / 2.0) / (r - 1.0);
    return keys - fmin(fmax(prompt_keys, prompt_rows), keys - d);
}

static double attention_seconds(const struct soc_ops *ops, const struct kernel_query *q)
{
    const struct work_shape *w = q->shape;
    double share = (double)q->rows / (double)w->rows;
    double decodes = (double)(w->rows - w->prefill_rows);
    double decode_keys = soc_ops_decode_keys(w);
    double seconds = ops->decode_key_s * decode_keys * share + ops->decode_row_s * decodes * share;
    /* A pass with a prompt is launched as prefill: the fixed cost of a batch of decodes is not paid
     * beside it. */
    if (w->prefill_rows > 0) {
        double pairs = fmax(0.0, (double)w->attn_pairs - decode_keys);
        return seconds + ops->prefill_s + ops->prefill_pair_s * pairs * share +
               ops->prefill_row_s * w->prefill_rows * share;
    }
    return seconds + ops->decode_s;
}

double soc_ops_seconds(const struct soc_ops *ops, const struct kernel_query *q)
{
    switch (q->op) {
    case OP_QKV:
        return table_seconds(&ops->qkv, q->padded_rows);
    case OP_FFN:
        return table_seconds(&ops->ffn, q->padded_rows);
    case OP_HEAD:
        return table_seconds(&ops->head, q->padded_rows);
    case OP_LAYER:
        return ops->layer_s + ops->layer_key_s * (double)q->shape->kv_read_tokens;
    default:
        return attention_seconds(ops, q);
    }
}
