/* Measured times of the kernels of one model on one device, as `xpusim drive --calibrate` writes
 * them into a runtime entry ("ops"): what the form `per-op` runs on. Off where nothing was
 * measured.
 *
 * Token-level ops: a table over the rows that the kernel pays, straight between its points.
 * Attention of prompts goes by pairs of query and key, that of batches of single rows by keys.
 * Kernels may take one of two paths for prompts, by the rows that a sequence has. Below 64 rows
 * ggml works row by row, at five times the cost of a pair. From there on it works in tiles of 64
 * x 64. */
#pragma once

#include "sim/api/hwmodel.h"
#include "sim/base/json_fields.h"

#define SOC_OPS_MAX_POINTS 16

struct soc_ops_table {
    uint32_t n;
    double rows[SOC_OPS_MAX_POINTS]; /* rising */
    double s[SOC_OPS_MAX_POINTS];
};

/* Seconds per pair and per row, of the rows of a sequence. */
struct soc_ops_path {
    double pair_s, row_s;
};

struct soc_ops_prefill {
    double s;         /* of a launch */
    double few_below; /* sequences of fewer rows take the path `few`; 0: none does */
    struct soc_ops_path many, few;
    uint32_t tile; /* of the path `many`: rows and keys come in multiples; 0: as they are */
};

struct soc_ops {
    bool given;
    char model[64];                      /* the measured one: others have other times */
    struct soc_ops_table qkv, ffn, head; /* by padded rows */
    struct soc_ops_prefill prefill;
    double decode_s, decode_key_s, decode_row_s;
    double layer_s, layer_key_s; /* a fused layer of one row */
};

/* Reads the object `ops` of a runtime entry. */
extern const struct json_fields soc_ops_fields;
void soc_ops_parse(struct json_obj *o, struct soc_ops *out);
/* Keys that the rows of decoding sequences read, each row its own sequence's; of a pass that may
 * also have prompts (kv_read_tokens has both). Exact with one prompt segment, whose rows, pairs and
 * keys hang together; several are taken to be equally long. */
double soc_ops_decode_keys(const struct work_shape *w);
/* Pairs of a prompt's last rows with its keys (causal), both in tiles of so many; 0: none.
 * keys >= rows > 0. Cost: O(rows / tile). */
double soc_ops_pairs(double rows, double keys, uint32_t tile);
/* Seconds alone; > 0. Rows of a prompt in a mixed pass count as prefill, the others as decode. */
double soc_ops_seconds(const struct soc_ops *ops, const struct kernel_query *q);
