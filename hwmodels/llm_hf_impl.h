/* A config.json that is being read (llm_hf.c), and how it stores weights (llm_hf_storage.c). */
#pragma once

#include "hwmodels/llm_hf.h"
#include "sim/base/json.h"

struct reader {
    const cJSON *model; /* the text part */
    const char *file, *path;
    struct err *e;
    bool experts; /* its architecture has them */
};

static inline const cJSON *member(const cJSON *o, const char *key)
{
    const cJSON *c = json_member(o, key);
    /* Configurations write null where a key does not apply; it means the same as leaving it out. */
    return cJSON_IsNull(c) ? NULL : c;
}

static inline double number_of(const cJSON *o, const char *key, const char *other, double otherwise)
{
    const cJSON *c = member(o, key);
    c = c == NULL && other != NULL ? member(o, other) : c;
    return cJSON_IsNumber(c) ? c->valuedouble : otherwise;
}

struct storage {
    uint32_t bits, act_bits;
    double body, head, kv; /* bytes per weight, element */
    double head_low;
    double dense; /* outside of experts, where that is another; 0: as the body */
    char source[160];
};

/* Reads `quantization_config` and `dtype`. False, with errors, where an LLM file cannot say them.
 */
bool llm_hf_stored(const struct reader *r, const cJSON *root, struct storage *s);
/* Writes the widths and bytes of an LLM file. */
void llm_hf_put_storage(cJSON *to, const struct storage *s);
