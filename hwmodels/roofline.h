/* Kernel-time models over the parameters of a SoC file.
 *
 *   extended  T = n t_launch + max((W/P) (1 + m0/rows) (1 + n0/hidden), Q/B)   rows > 1
 *             T = n t_launch + max(W/P, Q/B)                    one row
 *             attention at P e_a, without the fill term          (parameters: README.md)
 *   roofline  T = max(W/P, Q/B): agent-xpu-v2 Appendix B with P = min(P_pk, u_c B_pk I_c) and
 *             B = u_m B_pk; the extended form with t_launch = 0, m0 = 0, e_a = 1
 *   table     T of `extended` times a measured factor, interpolated in ln rows
 *   per-op    T of measured kernels of this model (soc_ops.h), of `p-norm` where there are none
 *   p-norm    T = n t_launch + (((W/P)(1 + m0/rows))^p + (Q/B)^p)^(1/p): a rounded knee
 *
 * W flop, Q DDR bytes, n primitive ops of the kernel: QKV 1, attention 1, output projection 1, two
 * or three FFN matrices, head 1; a fused kernel pays for all it fuses. Static kernels pay padded
 * rows.
 *
 * A runtime with micro-batches makes several passes of many rows, in all forms but roofline and
 * measured kernels. Each pays launches, fill and weights; attention runs once.
 *
 * A host may prepare ops (t_enqueue each) while the device works. The time by which preparing a
 * layer exceeds its matrix products is added to its kernels, in all forms but roofline and measured
 * kernels.
 *
 * A device of several cards pays two all-reduces a layer (soc_exchange), in all forms but roofline:
 * a ring sends 2 (n - 1)/n of the rows' 16-bit hidden states over each card's link. Summing what
 * the embedding and gathering what the head leave on the cards, once a pass, is left out.
 */
#pragma once

#include "hwmodels/soc.h"
#include "sim/api/hwmodel.h"

/* Activations are 16 bit in every runtime modelled here (W8A16, W4A16, FP16). */
#define ROOFLINE_ACT_BYTES 2.0

/* Per-row and fixed amounts of one token-level op of a model, summed over what it fuses. */
struct roofline_op {
    double flop_per_row;
    double weight_bytes;
    double expert_bytes; /* of all experts of a mixture; those that rows touch are read */
    double expert_flop_per_row;
    double io_bytes_per_row;
    double prims;
    double sync_s; /* nonlinear ops on another engine: barriers, roofline_unfuse */
};

struct roofline {
    struct hwmodel model; /* hand this out */
    struct roofline_op ops[OP_KIND_COUNT];
    double attn_flop_per_pair; /* 4 heads head_dim, or what llm_layers.h says */
    bool special_attention;    /* of the model: prompts run at e_s */
    double kv_bytes_per_key;   /* K and V of one layer */
    double attn_io_bytes_per_row;
    double state_flop_per_row; /* of recurrent layers, with attention's kernel */
    double state_bytes;        /* of a sequence, both ways */
    struct machine machine;    /* the SoC's, with the static shapes of these runtimes */
    uint32_t chunk_rows[MACHINE_MAX_DEVICES];               /* the SoC's own */
    const struct soc_runtime *runtime[MACHINE_MAX_DEVICES]; /* borrowed from the soc */
    struct soc_exchange exchange[MACHINE_MAX_DEVICES];
    double compute_only_frac[MACHINE_MAX_DEVICES];
    /* The share of a pair's flop and of a key's bytes that layers with a window have. */
    double far_pair_frac[MACHINE_MAX_DEVICES], far_key_frac[MACHINE_MAX_DEVICES];
    bool fallback[MACHINE_MAX_DEVICES]; /* no entry for this weight width: the default was used */
};

/* Forms: "extended", "p-norm", "per-op", "roofline", "table". NULL for any other name. */
const struct hwmodel_ops *hwmodel_find(const char *form);
const char *const *hwmodel_names(void);

/* Builds the model of an LLM on a SoC, by runtimes of its width. Borrows soc and llm. Run on
 * model.machine, and ask it for chunk_rows, so that costs use the static shapes of the runtime that
 * runs the kernel. */
void roofline_init(struct roofline *r, const struct hwmodel_ops *form, const struct soc *soc,
                   const struct llm *llm);

/* Replaces a device's runtime entry, and its static shapes with it. */
void roofline_set_runtime(struct roofline *r, uint8_t device, const struct soc_runtime *runtime);
/* A copy whose device has static kernels of that many rows. */
void roofline_with_chunk(const struct roofline *r, uint8_t device, uint32_t rows,
                         struct roofline *out);

/* Makes nonlinear ops (norms, rotary embedding, activation, residual sums) kernels of their own.
 * They move activations through DDR, instead of being fused into the matrix products (v1 5.1). Each
 * hop to a device that runs them and back costs sync_s. 0: the same device runs them. */
void roofline_unfuse(struct roofline *r, double sync_s);
