/* Real against simulated runs: a dot per request, and the order of policies. Reads drive --compare
 * --json. */
#include "plots/figure.h"

/* Dots of a class and metric over all policies: real, simulated. */
static void dots(const struct frame *requests, const char *cls, const char *metric,
                 struct figure_data *d)
{
    OWNED char *real = xformat("real_%s", metric);
    OWNED char *simulated = xformat("sim_%s", metric);
    figure_block(d, "%s", cls);
    for (uint32_t i = 0; i < frame_rows(requests); i++) {
        if (frame_is(requests, i, "class", cls)) {
            FIGURE_ROW(d, frame_get(requests, i, real), frame_get(requests, i, simulated));
        }
    }
}

/* A row per policy for a class: index, real mean, simulated mean. */
static void order(const struct frame *means, const char *cls, struct figure_data *d)
{
    double at = 0.0;
    figure_block(d, "%s", cls);
    for (uint32_t i = 0; i < frame_rows(means); i++) {
        if (frame_is(means, i, "class", cls)) {
            FIGURE_ROW(d, at++, frame_get(means, i, "e2e_s.real"),
                       frame_get(means, i, "e2e_s.simulated"));
        }
    }
}

int figure_drive(const struct figure_request *q, struct figure_data *d, struct err *e)
{
    SCOPED(frame_drop) struct frame *policies = figure_rows(&q->inputs[0], "drive", e);
    SCOPED(frame_drop) struct frame *requests = figure_rows(&q->inputs[0], "drive/requests", e);
    SCOPED(frame_drop) struct frame *means = figure_rows(&q->inputs[0], "means", e);
    if (e->n == 0) {
        (void)frame_require(requests, "class real_ttft_s sim_ttft_s real_e2e_s sim_e2e_s", e);
        (void)frame_require(means, "class e2e_s.real e2e_s.simulated", e);
    }
    if (e->n == 0) {
        struct texts rows = {.n = 0};
        dots(requests, "reactive", "ttft_s", d);
        dots(requests, "proactive", "ttft_s", d);
        dots(requests, "reactive", "e2e_s", d);
        dots(requests, "proactive", "e2e_s", d);
        order(means, "reactive", d);
        order(means, "proactive", d);
        for (uint32_t i = 0; i < frame_rows(policies); i++) {
            texts_add(&rows, frame_text(policies, i, "policy"));
        }
        figure_var(d, "policies", frame_rows(policies));
        figure_texts_put(&rows, "rows", d);
    }
    return e->n == 0 ? 0 : -EINVAL;
}
