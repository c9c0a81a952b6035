/* Measured times of the kernels of one model on one device, which `xpusim drive --calibrate` writes
 * into a runtime entry ("ops") for the kernel-time model `per-op`. Unused without measurements.
 *
 * Token-level ops: a table over padded rows, linear between its points. Fewer rows take the time of
 * the first point, and more continue the last two; a single point is in proportion. Attention of
 * prompts is proportional to pairs of query and key, that of batches of single rows to keys.
 * Kernels may have two paths for prompts, chosen by the rows of a sequence. Below 64 rows ggml
 * works row by row, at five times the cost of a pair. From there on it works in tiles of 64 x 64.
 */
#pragma once

#include "sim/api/hwmodel.h"
#include "sim/base/json_fields.h"

#define SOC_OPS_MAX_POINTS 16

struct soc_ops_table {
    uint32_t n;
    double rows[SOC_OPS_MAX_POINTS]; /* rising */
    double s[SOC_OPS_MAX_POINTS];
};

/* Seconds per pair, and per row of a sequence. */
struct soc_ops_path {
    double pair_s, row_s;
};

struct soc_ops_prefill {
    double s;         /* seconds per launch */
    double few_below; /* sequences with fewer rows use the path `few`; 0: none */
    struct soc_ops_path many, few;
    uint32_t tile; /* path `many`: rows and keys are rounded up to multiples; 0: not */
};

struct soc_ops {
    bool given;
    char model[64];                      /* the measured model; others have other times */
    struct soc_ops_table qkv, ffn, head; /* by padded rows */
    struct soc_ops_prefill prefill;
    double decode_s, decode_key_s, decode_row_s;
    double layer_s, layer_key_s; /* fused layer of one row */
};

/* Reads the object `ops` of a runtime entry. */
extern const struct json_fields soc_ops_fields;
void soc_ops_parse(struct json_obj *o, struct soc_ops *out);
/* Keys that decode rows read in a pass that may have prompts, too (kv_read_tokens has both). Exact
 * with one prompt segment, where rows and pairs give the keys; several segments are assumed to be
 * equally long. */
double soc_ops_decode_keys(const struct work_shape *w);
/* Pairs of a prompt's last rows with its keys (causal), both in tiles of `tile`; 0: no tiles. keys
 * >= rows > 0. Cost: O(rows / tile). */
double soc_ops_pairs(double rows, double keys, uint32_t tile);
/* Isolated time in seconds, > 0. Prompt rows of a mixed pass count as prefill, others as decode. */
double soc_ops_seconds(const struct soc_ops *ops, const struct kernel_query *q);
