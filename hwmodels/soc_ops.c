#include "hwmodels/soc_ops.h"

#define MAX_S 1e3

struct point {
    double rows, s;
};
static const struct json_field point_rows[] = {
    {JSON_NUMBER(struct point, rows, "rows", 1.0, 1e6, 1.0, "Rows; they rise.")},
    {JSON_NUMBER(struct point, s, "us", 1e-3, MAX_S * 1e6, 1e-6, "Time.")},
    {JSON_ROW_("low", "The interval's lower end.", NUMBER), JSON_RANGE_(0.0, MAX_S * 1e6, 1.0)},
    {JSON_ROW_("high", "The interval's upper end.", NUMBER), JSON_RANGE_(0.0, MAX_S * 1e6, 1.0)},
};
static const struct json_fields point = JSON_FIELDS(point_rows, NULL);

#define O struct soc_ops
#define US(member, name, text)                                                                     \
    {                                                                                              \
        JSON_NUMBER(O, member, name, 0.0, MAX_S * 1e6, 1e-6, text)                                 \
    }
#define NS(member, name, text)                                                                     \
    {                                                                                              \
        JSON_NUMBER(O, member, name, 0.0, MAX_S * 1e9, 1e-9, text)                                 \
    }
static const struct json_field prefill_rows[] = {
    US(prefill.s, "fixed_us", "Of a launch."),
    NS(prefill.many.pair_s, "pair_ns", "Per pair of a query and a key."),
    US(prefill.many.row_s, "row_us", "Per row."),
    {JSON_COUNT(O, prefill.tile, "tile", 0, 1u << 16,
                "Rows and keys of these pairs come in multiples of it; 0: as they are."),
     JSON_DEFAULT(0.0)},
    {JSON_NUMBER(O, prefill.few_below, "few_below", 0.0, 1e6, 1.0,
                 "Sequences of fewer rows take another path; 0: none does."),
     JSON_DEFAULT(0.0)},
    {JSON_NUMBER(O, prefill.few.pair_s, "few_pair_ns", 0.0, MAX_S * 1e9, 1e-9,
                 "Per pair on that path."),
     JSON_DEFAULT(0.0)},
    {JSON_NUMBER(O, prefill.few.row_s, "few_row_us", 0.0, MAX_S * 1e6, 1e-6,
                 "Per row on that path."),
     JSON_DEFAULT(0.0)},
};
static const struct json_fields prefill = JSON_FIELDS(prefill_rows, NULL);
static const struct json_field decode_rows[] = {
    US(decode_s, "fixed_us", "Of a launch."),
    NS(decode_key_s, "key_ns", "Per key."),
    US(decode_row_s, "row_us", "Per row."),
};
static const struct json_fields decode = JSON_FIELDS(decode_rows, NULL);
static const struct json_field layer_rows[] = {
    US(layer_s, "fixed_us", "Of a launch."),
    NS(layer_key_s, "key_ns", "Per key."),
};
static const struct json_fields layer = JSON_FIELDS(layer_rows, NULL);

static const struct json_field ops_rows[] = {
    {JSON_TEXT(O, model, "model", "The model whose operators were measured.")},
    {JSON_ROW_("source", "Where the times come from.", TEXT)},
    {JSON_ARRAY("qkv", &point, 1, SOC_OPS_MAX_POINTS, "Times of QKV.")},
    {JSON_ARRAY("ffn", &point, 1, SOC_OPS_MAX_POINTS, "Times of the FFN.")},
    {JSON_ARRAY("head", &point, 1, SOC_OPS_MAX_POINTS, "Times of the LM head.")},
    {JSON_OBJECT("prefill", &prefill, "Attention of prompts.")},
    {JSON_OBJECT("decode", &decode, "Attention of decodes.")},
    {JSON_OBJECT("layer", &layer, "A whole layer in one kernel, one row.")},
};
const struct json_fields soc_ops_fields = JSON_FIELDS(ops_rows, NULL);
#undef O

static void table_parse(struct json_obj *o, const char *key, struct soc_ops_table *t)
{
    t->n = (uint32_t)json_get_array_size(o, key, 1, SOC_OPS_MAX_POINTS);
    for (uint32_t i = 0; i < t->n; i++) {
        struct json_obj p = json_array_object(o, key, (int)i);
        struct point at;
        json_fields_read(&p, &point, &at, NULL);
        t->rows[i] = at.rows;
        t->s[i] = at.s;
        if (i > 0 && t->rows[i] <= t->rows[i - 1]) {
            json_refuse(&p, "rows", "must rise");
        }
        json_done(&p);
    }
}

void soc_ops_parse(struct json_obj *o, struct soc_ops *out)
{
    struct json_obj t = json_get_object(o, "ops");
    json_fields_read(&t, &soc_ops_fields, out, NULL);
    table_parse(&t, "qkv", &out->qkv);
    table_parse(&t, "ffn", &out->ffn);
    table_parse(&t, "head", &out->head);
    json_done(&t);
    out->given = true;
}

/* Below the first point, its time. Beyond the last, extrapolates the last segment, or in proportion
 * to the rows if there is only one point. */
static double table_seconds(const struct soc_ops_table *t, double rows)
{
    uint32_t last = t->n - 1;
    if (rows <= t->rows[0]) {
        return t->s[0];
    }
    /* One point gives no slope. Proportional to the rows is an upper bound, because weights are
     * read once. */
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
    double m = w->sequences - d; /* too few if drafts are verified, because d counts rows */
    double r = m > 0.0 ? prompt_rows / m : 0.0;
    if (w->prefill_rows == 0 || d <= 0.0 || m <= 0.0) {
        return d > 0.0 ? keys : 0.0;
    }
    if (r <= 1.0) { /* pairs equal keys: they cannot separate prompts from decodes */
        return keys * d / w->sequences;
    }
    double prompt_keys = ((double)w->attn_pairs - keys + m * r * (r - 1.0) / 2.0) / (r - 1.0);
    return keys - fmin(fmax(prompt_keys, prompt_rows), keys - d);
}

double soc_ops_pairs(double rows, double keys, uint32_t tile)
{
    if (tile == 0) {
        return rows * keys - rows * (rows - 1.0) / 2.0;
    }
    /* A tile of rows skips tiles of keys that are masked for all its rows. */
    double pairs = 0.0;
    for (double end = tile; end < rows + tile; end += tile) {
        double seen = keys - rows + fmin(end, rows);
        pairs += tile * ceil(seen / tile - 1e-9) * tile;
    }
    return pairs;
}

/* Time of the m prompts of a pass, treated as equally long because only sums are known. Their rows
 * per prompt decide on the path. */
static double prompt_seconds(const struct soc_ops_prefill *p, const struct work_shape *w,
                             double decode_keys, double share)
{
    double rows = w->prefill_rows;
    double m = fmax(1.0, w->sequences - (double)(w->rows - w->prefill_rows));
    double pairs = fmax(0.0, (double)w->attn_pairs - decode_keys);
    bool few = rows / m * share < p->few_below;
    const struct soc_ops_path *path = few ? &p->few : &p->many;
    if (!few && p->tile > 0) {
        double keys = fmax(rows, (double)w->kv_read_tokens - decode_keys) / m;
        pairs *= soc_ops_pairs(rows / m, keys, p->tile) / soc_ops_pairs(rows / m, keys, 0);
    }
    return p->s + (path->pair_s * pairs + path->row_s * rows) * share;
}

static double attention_seconds(const struct soc_ops *ops, const struct kernel_query *q)
{
    const struct work_shape *w = q->shape;
    double share = (double)q->rows / (double)w->rows;
    double decodes = (double)(w->rows - w->prefill_rows);
    double decode_keys = soc_ops_decode_keys(w);
    double seconds = ops->decode_key_s * decode_keys * share + ops->decode_row_s * decodes * share;
    /* A pass with a prompt is launched as prefill, so it lacks the fixed cost of a decode batch. */
    return seconds + (w->prefill_rows > 0 ? prompt_seconds(&ops->prefill, w, decode_keys, share)
                                          : ops->decode_s);
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
