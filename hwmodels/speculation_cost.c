#include "hwmodels/speculation_cost.h"

static uint32_t passes(uint32_t drafted, uint32_t graph_tokens)
{
    return drafted / graph_tokens + 1; /* ceil((1 + drafted) / graph_tokens) */
}

double speculation_linear_ms(const struct speculation_constants *c, uint32_t drafted)
{
    double n = c->long_tokens.value;
    double at_1 = c->length_1_ms_per_token.value;
    double at_n = c->length_long_ms_per_token.value * n;
    /* A line through the two published points, one token and the long draft, because the paper does
     * not have the curve between. */
    double slope = (at_n - at_1) / (n - 1);
    return (at_1 - slope) + slope * drafted;
}

double speculation_amortized_ms(const struct speculation_data *data,
                                const struct speculation_amortized *a,
                                enum speculation_system system)
{
    const struct speculation_constants *c = &data->constants;
    bool switching =
        system == SPECULATION_NPU_G || system == SPECULATION_NPU_G_SD || system == SPECULATION_OURS;
    double ms = switching ? a->prefill_graph_ms.value : a->prefill_ms.value;
    uint32_t graph_tokens = (uint32_t)a->graph_tokens.value;
    switch (system) {
    case SPECULATION_NPU_SD:
    case SPECULATION_NPU_G_SD:
        ms += (passes((uint32_t)c->sam_draft_tokens.value, graph_tokens) * a->pass_ms.value +
               c->retrieval_ms.value) /
              a->sam_tokens_per_step.value;
        break;
    case SPECULATION_OURS:
        ms += c->calibration_ms_per_output_token.value;
        ms += (a->pass_ms.value + c->ours_ms.value) / a->ours_tokens_per_step.value;
        break;
    case SPECULATION_NPU:
    case SPECULATION_NPU_G:
    case SPECULATION_SYSTEM_COUNT:
        ms += a->pass_ms.value;
        break;
    }
    return ms;
}
