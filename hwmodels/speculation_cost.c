#include "hwmodels/speculation_cost.h"

static uint32_t passes(uint32_t drafted, uint32_t graph_tokens)
{
    return drafted / graph_tokens + 1; /* ceil((1 + drafted) / graph_tokens) */
}

double speculation_step_ms(const struct speculation_cost *c, uint32_t drafted)
{
    double draft_ms = drafted > 0 ? c->draft_ms : 0;
    switch (c->form) {
    case SPECULATION_COST_LINEAR:
        return c->base_ms + c->slope_ms * drafted + draft_ms;
    case SPECULATION_COST_CPU:
        return c->base_ms * (1 + c->extra_frac * drafted) + draft_ms;
    case SPECULATION_COST_STATIC:
        break;
    }
    return passes(drafted, c->graph_tokens) * c->pass_ms + draft_ms;
}

struct speculation_cost speculation_cost_linear(const struct speculation_constants *c)
{
    double n = c->long_tokens.value;
    double at_1 = c->length_1_ms_per_token.value;
    double at_n = c->length_long_ms_per_token.value * n;
    double slope = (at_n - at_1) / (n - 1);
    return (struct speculation_cost){
        .form = SPECULATION_COST_LINEAR, .base_ms = at_1 - slope, .slope_ms = slope};
}

struct speculation_cost speculation_cost_cpu(const struct speculation_constants *c, double base_ms)
{
    return (struct speculation_cost){.form = SPECULATION_COST_CPU,
                                     .base_ms = base_ms,
                                     .extra_frac = c->cpu_extra_frac_per_token.value};
}

double speculation_calibration_ms(const struct speculation_constants *c, uint32_t input_tokens)
{
    return c->calibration_ms_per_input_token.value * input_tokens;
}

uint32_t speculation_best_draft(const struct speculation_model *m, double history,
                                const struct speculation_cost *c)
{
    uint32_t stride = c->form == SPECULATION_COST_STATIC ? c->graph_tokens : 1;
    uint32_t best = stride - 1 < m->max_draft_tokens ? stride - 1 : m->max_draft_tokens;
    double best_rate = 0;
    for (uint32_t l = best; l <= m->max_draft_tokens; l += stride) {
        double emitted = 1 + speculation_mean_accepted_of(m, history, l);
        double rate = emitted / speculation_step_ms(c, l);
        if (rate > best_rate) {
            best_rate = rate;
            best = l;
        }
    }
    return best;
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
