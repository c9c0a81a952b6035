/* What speculative decoding costs: a verification step, calibration, and the amortized account of
 * the paper's Table 3. sd.npu sections 2.3, 3.3, 4.4, 4.5; times in milliseconds. */
#pragma once

#include "hwmodels/speculation_data.h"

enum speculation_cost_form {
    SPECULATION_COST_STATIC, /* a static graph of graph_tokens rows: whole passes */
    SPECULATION_COST_LINEAR, /* a graph as long as the draft: base + slope * drafted */
    SPECULATION_COST_CPU,    /* compute-bound: base * (1 + extra_frac * drafted) */
};

struct speculation_cost {
    enum speculation_cost_form form;
    double pass_ms;        /* STATIC: one pass */
    uint32_t graph_tokens; /* STATIC: its rows, >= 1 */
    double base_ms;        /* LINEAR: at length 0; CPU: one token */
    double slope_ms;       /* LINEAR: per drafted token */
    double extra_frac;     /* CPU: per drafted token */
    double draft_ms;       /* drafting overhead per step, 0 when nothing is drafted */
};

/* Time of one step that verifies `drafted` tokens and the last emitted one:
 *   STATIC ceil((1 + drafted) / graph_tokens) * pass_ms + draft_ms, and so on. */
double speculation_step_ms(const struct speculation_cost *c, uint32_t drafted);

/* The line through Figure 6's two points for Qwen2.5-1.5B (51.1 ms at 1, 5.7 ms per token at 32).
 * It contradicts static graphs, whose cost is constant in a pass; both forms are kept. */
struct speculation_cost speculation_cost_linear(const struct speculation_constants *c);

/* CPU form for a decode step of base_ms. */
struct speculation_cost speculation_cost_cpu(const struct speculation_constants *c, double base_ms);

/* In-context calibration after prefill: per input token, before decoding starts unless the run
 * overlaps it with other work. Taken literally it exceeds Table 3's totals for long prompts. */
double speculation_calibration_ms(const struct speculation_constants *c, uint32_t input_tokens);

/* Draft length with the highest emitted tokens per time, E[1 + accepted(l)] / step_ms(l), over the
 * lengths that fill whole passes, l = graph_tokens * n - 1 <= the model's maximum (STATIC; the
 * maximum itself when no pass is filled by it), or over all lengths (other forms). The shortest
 * among equals. */
uint32_t speculation_best_draft(const struct speculation_model *m, double history,
                                const struct speculation_cost *c);

/* Table 3 from the calibrated constants, milliseconds per output token:
 *   U + c [ours] + (passes * pass + draft overhead) / tokens per step,
 * U the amortized prefill and switch, passes = ceil((1 + draft) / graph rows); `ours` sizes its
 * drafts to one pass. A calibration (about as many free values as data), not a prediction. */
double speculation_amortized_ms(const struct speculation_data *data,
                                const struct speculation_amortized *a,
                                enum speculation_system system);
