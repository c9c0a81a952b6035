/* Internals of the config.json reader (llm_hf.c), and its storage of weights (llm_hf_storage.c). */
#pragma once

#include <math.h>
#include <string.h>

#include "hwmodels/llm_hf.h"
#include "sim/base/json.h"

/* An architecture's kind of attention (hwmodels/llm_layers.h). */
enum mixer { USUAL, GATED_DELTANET, GLOBAL_HEADS, LATENT, MAMBA2, SHORT_CONVOLUTION };

struct architecture {
    const char *type;
    bool gated, tied;
    int head_dim, kv_heads, heads, vocab; /* heads, vocab 0: must be stated */
    const char *ffn, *experts;            /* keys; experts NULL: dense */
    enum mixer mixer;
};

struct reader {
    const cJSON *model; /* the text part */
    const char *file, *path;
    struct err *e;
    bool experts; /* the architecture has experts */
};

static inline const cJSON *member(const cJSON *o, const char *key)
{
    const cJSON *c = json_member(o, key);
    /* Configurations write null for keys that do not apply, as if they were absent. */
    return cJSON_IsNull(c) ? NULL : c;
}

static inline double number_of(const cJSON *o, const char *key, const char *other, double otherwise)
{
    const cJSON *c = member(o, key);
    c = c == NULL && other != NULL ? member(o, other) : c;
    return cJSON_IsNumber(c) ? c->valuedouble : otherwise;
}

/* A whole number >= 1. Without the key `otherwise`, or if that is 0 an error. */
static inline uint32_t count(const struct reader *r, const char *key, uint32_t otherwise)
{
    const cJSON *c = member(r->model, key);
    if (c == NULL && otherwise > 0) {
        return otherwise;
    }
    double v = cJSON_IsNumber(c) ? c->valuedouble : 0.0;
    if (!(v >= 1.0 && v <= 1e9) || v != floor(v)) {
        (void)err_add(r->e, "%s: %s%s: %s", r->file, r->path, key,
                      c == NULL ? "is missing" : "must be a whole number from 1 on");
        return 1;
    }
    return (uint32_t)v;
}

/* Whether a value counts as present. */
static inline bool says_something(const cJSON *c)
{
    return c != NULL && !cJSON_IsFalse(c) && !(cJSON_IsNumber(c) && c->valuedouble == 0.0) &&
           !(cJSON_IsArray(c) && cJSON_GetArraySize(c) == 0);
}

/* Refuses kinds of attention that are not supported for the architecture. */
void llm_hf_refuse_attention(const struct reader *r, const struct architecture *a);
/* Writes the keys for attention other than heads and their width. */
void llm_hf_put_attention(cJSON *to, const struct reader *r, const cJSON *root,
                          const struct architecture *a, uint32_t layers, uint32_t head_dim);

struct storage {
    uint32_t bits, act_bits;
    double body, head, kv; /* bytes per weight, element */
    double head_low;
    double dense; /* outside of experts; 0: as the body */
    char source[160];
};

/* Reads `quantization_config` and `dtype`. False, with errors, if an LLM file cannot have them. */
bool llm_hf_stored(const struct reader *r, const cJSON *root, struct storage *s);
/* Writes the widths and bytes of an LLM file. */
void llm_hf_put_storage(cJSON *to, const struct storage *s);
