/* Reads published measurements of kernels, models and machines from CSV: one number per row.
 *
 * The columns are soc, device, runtime, model, weight_bits, act_bits, input_tokens, batch, metric,
 * value. A column source may follow: a publication, then " @" and a revision, or " (" and a remark.
 * A column bytes_per_weight may follow, the mean over the model's file, and dense_bytes_per_weight,
 * the mean over its weights outside experts, including head and embedding; 0: not stated. The value
 * of input_tokens is the prompt's length, for decode metrics the context at the start; 0: not
 * stated. Rows that are not about a model have empty weight_bits and act_bits. */
#pragma once

#include "sim/base/base.h"

enum point_metric {
    POINT_TTFT_MS,
    POINT_TPOT_MS,
    POINT_PREFILL_TOK_S,
    POINT_DECODE_TOK_S, /* all streams together */
    POINT_KERNEL_MS,
    POINT_BANDWIDTH_GBS,
    POINT_GEMM_TFLOPS,
    POINT_POWER_W,
    POINT_ENERGY_J,
    POINT_LOAD_MS,
    POINT_MEMORY_MIB, /* highest resident set of the process */
    POINT_OTHER       /* kept, never predicted */
};

struct point {
    uint64_t line;
    const char *soc, *device, *runtime, *model, *metric_name; /* kept, like source */
    const char *source;                                       /* publication; "": no such column */
    uint32_t weight_bits, act_bits;                           /* 0: empty */
    uint32_t input_tokens, batch;
    enum point_metric metric;
    double value;                  /* > 0, in the metric's unit; NaN: to predict */
    double weights;                /* of the model, as stated by a benchmark; 0: not stated */
    double bytes_per_weight;       /* of the model's file; 0: not stated */
    double dense_bytes_per_weight; /* of its weights outside experts; 0: not stated */
};

struct points {
    struct point *v; /* kept */
    size_t n;
    size_t n_asked; /* rows v[n ..] with an empty value (NaN), which `validate` predicts */
};

/* Reads a file. Returns 0, or -EINVAL with an error for every malformed row. An empty value is
 * malformed, except in points_read_asked. */
int points_read(const char *path, struct points *out, struct err *e);
int points_read_asked(const char *path, struct points *out, struct err *e);

/* Whether the metric is the time of a prefill or of a decode step. */
bool point_is_latency(const struct point *p);
bool point_is_prefill(const struct point *p);
/* Time of the pass that a latency row measures; a rate in tokens per second is converted. 0: the
 * row lacks the prompt length for this. */
double point_pass_seconds(const struct point *p);
/* Length of the part of the source that names the publication: before the revision and the remark.
 */
size_t point_source_length(const char *source);
/* Whether two rows are from the same publication. */
bool point_same_source(const char *a, const char *b);
/* The inverse of point_pass_seconds: the row's value for this time of the pass. */
double point_value_of_seconds(const struct point *p, double seconds);
