/* Attention of a layer, and its replacements, on average over a model's layers.
 *
 * Every layer of a pass costs the same here. So a layer of a model with several kinds has of each
 * kind the share of layers that are of it. struct llm_attention has the kinds.
 *
 * Usual attention has queries of `heads`, and keys and values of `kv_heads`. With `gated` there is
 * also a gate as wide as the queries.
 *
 * Global layers are those without a window, where some have one. They have `global_kv_heads` of
 * `global_head_dim`. With `keys_as_values` one product gives both.
 *
 * Latent attention stores `latent_kv` elements for a token, and a rotary key of `rotary_dim` for
 * all heads. Products from and to the latent space run once a row, so attention itself is in that
 * space (DeepSeek-V2, section 2.1.2, arXiv:2405.04434). llama.cpp does so. Engines that expand the
 * keys of a prompt do other work.
 *
 * Recurrent layers have a state of fixed size for each sequence, and no keys. Each pass reads and
 * writes it once. Gated DeltaNet (arXiv:2412.06464), Mamba (arXiv:2312.00752) and short
 * convolutions are such layers. A row takes 6 flop per element of the state (decay, update,
 * output), at the rate of attention. Convolutions take no time of their own.
 *
 * Where layers share keys and values, the last ones attend to those of an earlier layer. Their
 * queries have products and read keys as ever. Products for keys and values are stored in files,
 * but do not run. Each kind has the same share of such layers.
 *
 * Embeddings of each layer (Gemma 3n and 4) are tables of `layer_embedding` elements for a token
 * and layer. A token reads one row of each. One product in front of all layers, from the hidden
 * width to all of these elements, is a share of each layer's. In a layer a product gives a gate as
 * wide, and another leads back to the hidden width.
 *
 * Gemma 3n also has a path of low rank around attention (LAuReL, arXiv:2411.07501). Further streams
 * go along with the hidden state (AltUp, arXiv:2301.13310): a product in front of all layers makes
 * them, and one behind takes them back. Their mixing takes no time. */
#pragma once

#include "sim/api/device.h"

/* States of recurrent layers are 32 bit (mamba_ssm_dtype of Qwen3.5's config.json; llama.cpp). */
#define LLM_STATE_BYTES 4.0

/* A matrix product: each of `copies` turns `in` into `out`. `layers`: share that has it. */
struct llm_product {
    double in, out, copies, layers;
};
#define LLM_MAX_PRODUCTS 10

struct llm_layer {
    struct llm_product before[LLM_MAX_PRODUCTS]; /* attention's, from the hidden width on */
    struct llm_product after[LLM_MAX_PRODUCTS];  /* from its outputs to the hidden width */
    uint32_t n_before, n_after;
    double flop_per_pair;    /* of a query and a key */
    double elements_per_key; /* that are read */
    double stored_per_key;
    double unused_weights;  /* that files have and no kernel reads */
    double rotated_per_row; /* elements of queries and keys with positions */
    double io_per_row;      /* elements of queries and outputs */
    double far_pair_frac;   /* of flop_per_pair, what layers with a window have */
    double far_key_frac;    /* of elements_per_key */
    double state_elements;  /* of a sequence */
    double state_flop_per_row;
};

void llm_layer_fill(const struct llm *m, struct llm_layer *out);
/* Weights of the products before and after attention, of one layer. */
double llm_layer_weights(const struct llm_layer *l);

/* Engines of real execution have no other. */
static inline bool llm_attention_is_usual(const struct llm *m)
{
    const struct llm_attention *a = &m->attention;
    return !a->gated && a->latent_kv == 0 && a->recurrent_layers == 0 && a->global_head_dim == 0 &&
           a->shared_kv_layers == 0 && m->dense_layers == 0 && m->layer_embedding == 0 &&
           m->laurel_rank == 0 && m->altup_inputs == 0;
}
