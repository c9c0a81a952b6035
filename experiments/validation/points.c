#include "experiments/validation/points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/csvfile.h"

#define MAX_TOKENS 100000000u /* beyond these a number is a mistake */
#define MAX_BATCH 65536u
#define MAX_BITS 32u
#define MAX_VALUE 1e12

enum column {
    COL_SOC,
    COL_DEVICE,
    COL_RUNTIME,
    COL_MODEL,
    COL_WEIGHT_BITS,
    COL_ACT_BITS,
    COL_INPUT,
    COL_BATCH,
    COL_METRIC,
    COL_VALUE,
    COL_COUNT
};

static const char *const names[COL_COUNT] = {"soc",         "device",   "runtime",      "model",
                                             "weight_bits", "act_bits", "input_tokens", "batch",
                                             "metric",      "value"};

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
};

static void text_of(struct csvfile *f, const char *path, int col, char *out, size_t size,
                    struct err *e)
{
    const char *text = csvfile_text(f, col);
    size_t n = strlen(text);
    if (n == 0 || n >= size) {
        err_add(e, "%s:%llu: column %s: must be a text of 1 to %zu bytes", path,
                (unsigned long long)csvfile_line(f), csvfile_column_name(f, col), size - 1);
        n = 0;
    }
    memcpy(out, text, n);
    out[n] = '\0';
}

static uint32_t bits_of(struct csvfile *f, int col, struct err *e)
{
    return csvfile_empty(f, col) ? 0 : (uint32_t)csvfile_u64(f, col, 1, MAX_BITS, e);
}

static void row_read(struct csvfile *f, const char *path, const int cols[COL_COUNT],
                     struct point *p, struct err *e)
{
    memset(p, 0, sizeof *p);
    p->line = csvfile_line(f);
    text_of(f, path, cols[COL_SOC], p->soc, sizeof p->soc, e);
    text_of(f, path, cols[COL_DEVICE], p->device, sizeof p->device, e);
    text_of(f, path, cols[COL_RUNTIME], p->runtime, sizeof p->runtime, e);
    text_of(f, path, cols[COL_MODEL], p->model, sizeof p->model, e);
    text_of(f, path, cols[COL_METRIC], p->metric_name, sizeof p->metric_name, e);
    p->weight_bits = bits_of(f, cols[COL_WEIGHT_BITS], e);
    p->act_bits = bits_of(f, cols[COL_ACT_BITS], e);
    p->input_tokens = (uint32_t)csvfile_u64(f, cols[COL_INPUT], 0, MAX_TOKENS, e);
    p->batch = (uint32_t)csvfile_u64(f, cols[COL_BATCH], 1, MAX_BATCH, e);
    p->metric = POINT_OTHER;
    for (int i = 0; i < POINT_OTHER; i++) {
        if (strcmp(p->metric_name, metric_names[i]) == 0) {
            p->metric = (enum point_metric)i;
        }
    }
    size_t before = e->n;
    p->value = csvfile_number(f, cols[COL_VALUE], 0.0, MAX_VALUE, e);
    if (e->n == before && !(p->value > 0.0)) {
        err_add(e, "%s:%llu: column value: must be above 0", path,
                (unsigned long long)csvfile_line(f));
    }
}

int points_read(const char *path, struct points *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    size_t before = e->n;
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    int cols[COL_COUNT];
    for (int i = 0; i < COL_COUNT; i++) {
        cols[i] = csvfile_require(f, names[i], e);
    }
    bool columns_there = e->n == before; /* else every row would only repeat what is missing */
    while (columns_there && csvfile_next(f, e) > 0) {
        out->v = xgrow(out->v, out->n, sizeof *out->v);
        row_read(f, path, cols, &out->v[out->n++], e);
    }
    csvfile_close(f);
    if (e->n == before && out->n == 0) {
        err_add(e, "%s: holds no points", path);
    }
    if (e->n > before) {
        points_fini(out);
        return -EINVAL;
    }
    return 0;
}

void points_fini(struct points *p)
{
    free(p->v);
    memset(p, 0, sizeof *p);
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
