/* Attention of a layer, and its replacements, on average over a model's layers.
 *
 * Every layer of a pass has the same cost here. So in a model with several kinds of layers, each
 * layer costs the average over kinds. struct llm_attention has the kinds.
 *
 * Usual attention has queries of `heads`, and keys and values of `kv_heads`. With `gated` there is
 * also a gate as wide as the queries.
 *
 * Global layers are those without a window in a model that has windows. They have `global_kv_heads`
 * of `global_head_dim`. With `keys_as_values` one product gives both.
 *
 * Latent attention stores `latent_kv` elements for a token, and a rotary key of `rotary_dim` for
 * all heads. Products from and to the latent space run once a row, so attention itself is in that
 * space (DeepSeek-V2, section 2.1.2, arXiv:2405.04434), as in llama.cpp. Engines that expand the
 * keys of a prompt work differently.
 *
 * Recurrent layers have a state of fixed size for each sequence, and no keys. Each pass reads and
 * writes it once. Gated DeltaNet (arXiv:2412.06464), Mamba (arXiv:2312.00752) and short
 * convolutions are such layers. A row takes 6 flop per element of the state (decay, update,
 * output), at the rate of attention. Convolutions take no extra time.
 *
 * If layers share keys and values, the last layers use those of an earlier layer. Their queries
 * have products, and they read keys as usual. Products for keys and values are stored in files, but
 * do not run. Each kind has the same share of such layers.
 *
 * Embeddings of each layer (Gemma 3n and 4) are tables of `layer_embedding` elements for a token
 * and layer. A token reads one row of each. One product before all layers, from the hidden width to
 * all of these elements, is divided among the layers. In a layer one product makes a gate of that
 * width, and another leads back to the hidden width.
 *
 * Gemma 3n also has a path of low rank around attention (LAuReL, arXiv:2411.07501). Additional
 * streams accompany the hidden state (AltUp, arXiv:2301.13310): a product before all layers makes
 * them, and one after all layers merges them. Their mixing takes no time. */
#pragma once

#include "sim/api/device.h"

/* States of recurrent layers are 32 bit (mamba_ssm_dtype of Qwen3.5's config.json; llama.cpp). */
#define LLM_STATE_BYTES 4.0

/* A matrix product: each of `copies` maps `in` to `out`. `layers`: share of layers that have it. */
struct llm_product {
    double in, out, copies, layers;
};
#define LLM_MAX_PRODUCTS 10

struct llm_layer {
    struct llm_product before[LLM_MAX_PRODUCTS]; /* from the hidden width to attention */
    struct llm_product after[LLM_MAX_PRODUCTS];  /* from attention to the hidden width */
    uint32_t n_before, n_after;
    double flop_per_pair;    /* for a query and a key */
    double elements_per_key; /* elements read */
    double stored_per_key;
    double unused_weights;  /* weights in files that no kernel reads */
    double rotated_per_row; /* elements of queries and keys that are rotated */
    double io_per_row;      /* elements of queries and outputs */
    double far_pair_frac;   /* share of flop_per_pair in layers with a window */
    double far_key_frac;    /* share of elements_per_key in these */
    double state_elements;  /* for each sequence */
    double state_flop_per_row;
    double recurrences; /* share of layers that have one, and not only a short convolution */
};

void llm_layer_fill(const struct llm *m, struct llm_layer *out);
/* Weights of the products before and after attention, of one layer. */
double llm_layer_weights(const struct llm_layer *l);

/* Inference backends have no other kind. */
static inline bool llm_attention_is_usual(const struct llm *m)
{
    const struct llm_attention *a = &m->attention;
    return !a->gated && a->latent_kv == 0 && a->recurrent_layers == 0 && a->global_head_dim == 0 &&
           a->shared_kv_layers == 0 && m->dense_layers == 0 && m->layer_embedding == 0 &&
           m->laurel_rank == 0 && m->altup_inputs == 0;
}
