#include "experiments/validation/points.h"

#include "sim/base/csv_record.h"

#define MAX_TOKENS 100000000u /* a larger number is a mistake */
#define MAX_BATCH 65536u
#define MAX_BITS 32u
#define MAX_VALUE 1e12
#define WIDTH ":bits=" /* in a model's name */

static const char *const metric_names[POINT_OTHER] = {
    [POINT_TTFT_MS] = "ttft_ms",
    [POINT_TPOT_MS] = "tpot_ms",
    [POINT_PREFILL_TOK_S] = "prefill_tok_s",
    [POINT_DECODE_TOK_S] = "decode_tok_s",
    [POINT_KERNEL_MS] = "kernel_ms",
    [POINT_BANDWIDTH_GBS] = "bandwidth_gbs",
    [POINT_GEMM_TFLOPS] = "gemm_tflops",
    [POINT_POWER_W] = "power_w",
    [POINT_ENERGY_J] = "energy_j",
    [POINT_LOAD_MS] = "load_ms",
    [POINT_MEMORY_MIB] = "memory_mib",
};

#define OF(member) CSV_MEMBER(struct point, member)
static const struct csv_field fields[] = {
    {"soc", CSV_TEXT, OF(soc), .min = 1},
    {"device", CSV_TEXT, OF(device), .min = 1},
    {"runtime", CSV_TEXT, OF(runtime), .min = 1},
    {"model", CSV_TEXT, OF(model), .min = 1},
    {"weight_bits", CSV_WHOLE, OF(weight_bits), .min = 1, .max = MAX_BITS, .or_empty = true},
    {"act_bits", CSV_WHOLE, OF(act_bits), .min = 1, .max = MAX_BITS, .or_empty = true},
    {"input_tokens", CSV_WHOLE, OF(input_tokens), .max = MAX_TOKENS},
    {"batch", CSV_WHOLE, OF(batch), .min = 1, .max = MAX_BATCH},
    {"metric", CSV_TEXT, OF(metric_name), .min = 1},
    {"value", CSV_NUMBER, OF(value), .max = MAX_VALUE, .or_empty = true},
    {"source", CSV_TEXT, OF(source), .or_missing = true},
    {"bytes_per_weight", CSV_NUMBER, OF(bytes_per_weight), .max = 8.0, .or_missing = true},
    {"dense_bytes_per_weight", CSV_NUMBER, OF(dense_bytes_per_weight), .max = 8.0,
     .or_missing = true},
};

/* The model may have the width, as in a run: "qwen3-8b:bits=4". The column may repeat it. */
static void take_width(struct point *p, const struct csvfile *f, struct err *e)
{
    const char *at = strstr(p->model, WIDTH);
    char *end = NULL;
    unsigned long bits = at != NULL ? strtoul(at + strlen(WIDTH), &end, 10) : 0;
    if (at == NULL) {
        return;
    }
    if (*end != '\0' || bits < 1 || bits > MAX_BITS ||
        (p->weight_bits > 0 && p->weight_bits != bits)) {
        csvfile_refuse(f, csvfile_column(f, "model"), e,
                       "has a width that is not the column weight_bits'");
    }
    p->weight_bits = (uint32_t)bits;
    p->model = xkeep(xformat("%.*s", (int)(at - p->model), p->model));
}

static void row_check(void *row, const struct csvfile *f, struct err *e)
{
    struct point *p = row;
    p->line = csvfile_line(f);
    for (int i = 0; i < POINT_OTHER; i++) {
        if (strcmp(p->metric_name, metric_names[i]) == 0) {
            p->metric = (enum point_metric)i;
        }
    }
    take_width(p, f, e);
    if (p->dense_bytes_per_weight > 0.0 && p->bytes_per_weight <= 0.0) {
        csvfile_refuse(f, csvfile_column(f, "dense_bytes_per_weight"), e, "needs bytes_per_weight");
    }
    if (p->value <= 0.0) {
        csvfile_refuse(f, csvfile_column(f, "value"), e, "must be above 0");
    }
}

int points_read_asked(const char *path, struct points *out, struct err *e)
{
    static const struct point blank = {.metric = POINT_OTHER, .source = "", .value = (double)NAN};
    static const struct csv_table table =
        CSV_TABLE(fields, sizeof blank, .blank = &blank, .check = row_check, .holds = "points");
    *out = (struct points){0};
    size_t n;
    const struct point *read = csv_table_read(&table, path, &n, e);
    if (read == NULL) {
        return -EINVAL;
    }
    out->v = xkept(xmalloc(n * sizeof *out->v));
    for (size_t i = 0; i < n; i++) {
        out->n += isnan(read[i].value) ? 0 : 1;
    }
    size_t at[2] = {0, out->n};
    for (size_t i = 0; i < n; i++) {
        out->v[at[isnan(read[i].value) ? 1 : 0]++] = read[i];
    }
    out->n_asked = n - out->n;
    return 0;
}

int points_read(const char *path, struct points *out, struct err *e)
{
    int rc = points_read_asked(path, out, e);
    for (size_t i = out->n; i < out->n + out->n_asked; i++) {
        rc =
            err_add(e, "%s:%llu: column value: is empty", path, (unsigned long long)out->v[i].line);
    }
    return rc;
}

bool point_is_prefill(const struct point *p)
{
    return p->metric == POINT_TTFT_MS || p->metric == POINT_PREFILL_TOK_S;
}

bool point_is_latency(const struct point *p)
{
    return point_is_prefill(p) || p->metric == POINT_TPOT_MS || p->metric == POINT_DECODE_TOK_S;
}

/* value = scale * seconds, or scale / seconds */
static double scale_of(const struct point *p, bool *inverse)
{
    *inverse = p->metric == POINT_PREFILL_TOK_S || p->metric == POINT_DECODE_TOK_S;
    if (p->metric == POINT_PREFILL_TOK_S) {
        return (double)p->input_tokens * p->batch;
    }
    return p->metric == POINT_DECODE_TOK_S ? p->batch : 1e3;
}

double point_pass_seconds(const struct point *p)
{
    bool inverse;
    double scale = scale_of(p, &inverse);
    return inverse ? scale / p->value : p->value / scale;
}

double point_value_of_seconds(const struct point *p, double seconds)
{
    bool inverse;
    double scale = scale_of(p, &inverse);
    return inverse ? scale / seconds : scale * seconds;
}

size_t point_source_length(const char *source)
{
    const char *revision = strstr(source, " @");
    const char *remark = strstr(source, " (");
    const char *end = source + strlen(source);
    end = revision != NULL ? revision : end;
    return (size_t)((remark != NULL && remark < end ? remark : end) - source);
}

bool point_same_source(const char *a, const char *b)
{
    size_t n = point_source_length(a);
    return n == point_source_length(b) && strncmp(a, b, n) == 0;
}
