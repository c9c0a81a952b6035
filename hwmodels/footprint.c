#include "hwmodels/footprint.h"

/* Scores of one layer: the next layer takes their place. */
static double scores(const struct soc_memory *m, const struct llm *llm, double tokens)
{
    return m->score_bytes * llm->heads * tokens * tokens;
}

double footprint_extra_bytes(const struct soc_memory *m, const struct llm *llm, double tokens)
{
    double bytes = m->fixed_bytes + (m->weights_frac - 1.0) * llm->weight_bytes +
                   m->tokenizer_bytes * llm->vocab + m->activation_bytes * llm->hidden * tokens +
                   scores(m, llm, tokens);
    return fmax(bytes, 0.0);
}

double footprint_bytes(const struct soc_memory *m, const struct llm *llm, double tokens)
{
    return m->fixed_bytes + m->weights_frac * llm->weight_bytes + m->tokenizer_bytes * llm->vocab +
           (m->activation_bytes * llm->hidden + llm->kv_bytes_per_token) * tokens +
           scores(m, llm, tokens);
}
