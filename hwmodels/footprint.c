#include "hwmodels/footprint.h"

/* Scores of one layer, because layers reuse the memory. */
static double scores(const struct soc_memory *m, const struct llm *llm, double tokens)
{
    return m->score_bytes * llm->heads * tokens * tokens;
}

double footprint_extra_bytes(const struct soc_memory *m, const struct footprint_model *of,
                             uint32_t n)
{
    double bytes = m->fixed_bytes;
    double pass = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const struct llm *llm = of[i].llm;
        bytes += (m->weights_frac - 1.0) * llm->weight_bytes + m->tokenizer_bytes * llm->vocab;
        pass = fmax(pass, m->activation_bytes * llm->hidden * of[i].tokens +
                              scores(m, llm, of[i].tokens));
    }
    return fmax(bytes + pass, 0.0);
}

double footprint_bytes(const struct soc_memory *m, const struct llm *llm, double tokens)
{
    return m->fixed_bytes + m->weights_frac * llm->weight_bytes + m->tokenizer_bytes * llm->vocab +
           (m->activation_bytes * llm->hidden + llm->kv_bytes_per_token) * tokens +
           llm->kv_state_bytes + scores(m, llm, tokens);
}
