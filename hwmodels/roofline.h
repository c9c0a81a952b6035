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
 * W is flop, Q DDR bytes, n the primitive ops of the kernel: QKV 1, attention 1, output projection
 * 1, two or three FFN matrices, head 1; a fused kernel has the sum. Static kernels compute padded
 * rows.
 *
 * A runtime with micro-batches divides many rows into several passes, in all models but roofline
 * and measured kernels. Each has launches, fill and weights; attention runs once.
 *
 * A host may prepare ops (t_enqueue each) while the device works. If preparing a layer takes longer
 * than its matrix products, the difference is added to its kernels, in all models but roofline and
 * measured kernels.
 *
 * A device of several cards has two all-reduces a layer (soc_exchange), in all models but roofline:
 * a ring sends 2 (n - 1)/n of the rows' 16-bit hidden states over each card's link. The sum after
 * the embedding and the gather after the head, once a pass, are neglected.
 */
#pragma once

#include "hwmodels/soc.h"
#include "sim/api/hwmodel.h"

/* Activations are 16 bit in every runtime modelled here (W8A16, W4A16, FP16). */
#define ROOFLINE_ACT_BYTES 2.0

/* Amounts per row, and fixed ones, of one token-level op, summed over fused ops. */
struct roofline_op {
    double flop_per_row;
    double weight_bytes;
    double expert_bytes; /* all experts of a mixture; only those that rows use are read */
    double expert_flop_per_row;
    double io_bytes_per_row;
    double prims;
    double further; /* recurrences and choices of experts (further_launches) */
    double sync_s;  /* barriers of nonlinear ops on another engine (roofline_unfuse) */
};

struct roofline {
    struct hwmodel model; /* the model to use */
    struct roofline_op ops[OP_KIND_COUNT];
    double attn_flop_per_pair; /* 4 heads head_dim, or see llm_layers.h */
    bool special_attention;    /* the model has it: prompts run at e_s */
    double kv_bytes_per_key;   /* K and V of one layer */
    double attn_io_bytes_per_row;
    double state_flop_per_row; /* recurrent layers, in attention's kernel */
    double state_bytes;        /* read and written for each sequence */
    struct machine machine;    /* the SoC's machine, with the static shapes of these runtimes */
    uint32_t chunk_rows[MACHINE_MAX_DEVICES];               /* of the SoC file */
    const struct soc_runtime *runtime[MACHINE_MAX_DEVICES]; /* borrowed from the soc */
    struct soc_exchange exchange[MACHINE_MAX_DEVICES];
    double compute_only_frac[MACHINE_MAX_DEVICES];
    /* The share of layers with a window in a pair's flop and in a key's bytes, if they skip. */
    double far_pair_frac[MACHINE_MAX_DEVICES], far_key_frac[MACHINE_MAX_DEVICES];
    /* Time of columns without a head (kv_columns), as bytes of a key, and the share of layers with
     * a window in it. */
    double lacking_key_bytes[MACHINE_MAX_DEVICES], far_lacking_frac[MACHINE_MAX_DEVICES];
    bool fallback[MACHINE_MAX_DEVICES]; /* no entry for this weight width, so the default is used */
};

/* Finds "extended", "p-norm", "per-op", "roofline" or "table"; NULL for other names. */
const struct hwmodel_ops *hwmodel_find(const char *form);
const char *const *hwmodel_names(void);

/* Makes the kernel-time model of an LLM on a SoC, with the runtimes for its weight width. Borrows
 * soc and llm. Use r->machine for runs and chunk_rows, so that costs have the static shapes of
 * these runtimes. */
void roofline_init(struct roofline *r, const struct hwmodel_ops *form, const struct soc *soc,
                   const struct llm *llm);

/* Replaces a device's runtime entry, and its static shapes with it. */
void roofline_set_runtime(struct roofline *r, uint8_t device, const struct soc_runtime *runtime);
/* Makes a copy whose device has static kernels of that many rows. */
void roofline_with_chunk(const struct roofline *r, uint8_t device, uint32_t rows,
                         struct roofline *out);

/* Makes nonlinear ops (norms, rotary embedding, activation, residual sums) separate kernels, which
 * move activations through DDR, instead of fusing them into matrix products (v1 5.1). Each hop to
 * another device and back costs sync_s. 0: the same device runs them. */
void roofline_unfuse(struct roofline *r, double sync_s);
