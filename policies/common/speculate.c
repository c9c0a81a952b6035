#include "policies/common/speculate.h"

#include "sim/base/base.h"

void speculate_observe(struct speculate *e, uint32_t drafted, uint32_t emitted)
{
    if (drafted == 0 || emitted == 0) {
        return;
    }
    SIM_ASSERT(emitted <= drafted + 1 && speculate_ok(e));
    uint32_t accepted = emitted - 1;
    e->steps += 1.0;
    if (accepted == 0) {
        return;
    }
    e->hits += 1.0;
    /* h counts the first accepted token, alpha the tokens after it (D.7). */
    e->right += accepted - 1;
    /* The first wrong token was tried, too, if there was one. */
    e->tried += accepted - 1 + (accepted < drafted ? 1 : 0);
    SIM_ASSERT(speculate_ok(e) && e->hits > 0.0);
}

void speculate_observe_pass(struct speculate *e, const struct pass *p)
{
    /* A cancelled pass emits nothing; its requests are SHED. */
    SIM_ASSERT(p->state == PASS_STATE_DONE || p->state == PASS_STATE_CANCELLED);
    for (uint32_t i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        if (s->role == SEGMENT_VERIFY && s->request->state == REQUEST_STATE_DECODE) {
            SIM_ASSERT(s->emitted_tokens > 0); /* at least the request's own token */
            /* A segment is the request's last token and the draft. */
            speculate_observe(e, s->n_tokens - 1, s->emitted_tokens);
        }
    }
}

double speculate_emitted(const struct speculate *e, uint32_t drafted)
{
    double n = SPECULATE_PRIOR_STEPS;
    double hit = (e->hits + n * SPECULATE_PRIOR_HIT) / (e->steps + n);
    double alpha = (e->right + n * SPECULATE_PRIOR_ALPHA) / (e->tried + n);
    SIM_ASSERT(hit >= 0.0 && hit <= 1.0 && alpha >= 0.0 && alpha <= 1.0);
    double sum = 0.0;
    double term = hit;
    for (uint32_t i = 0; i < drafted; i++) {
        sum += term;
        term *= alpha;
    }
    SIM_ASSERT(sum <= drafted); /* a token counts once */
    return 1.0 + sum;
}

/* The next candidate: 0, whole passes, then `offered`. */
static uint32_t next_length(uint32_t length, uint32_t stride, uint32_t offered)
{
    SIM_ASSERT(length <= offered && stride > 0);
    /* The request's own token takes a row, so one pass verifies stride - 1 drafted tokens. */
    uint32_t next = length == 0 && stride > 1 ? stride - 1 : length + stride;
    /* `offered` is the last candidate, even if it fills no whole pass. The one after it ends the
     * loop. */
    return next <= offered || length == offered ? next : offered;
}

uint32_t speculate_length(struct speculate *e, uint32_t offered, uint32_t stride,
                          double (*cost)(void *ctx, uint32_t drafted), void *ctx)
{
    SIM_ASSERT(stride > 0 && speculate_ok(e));
    if (offered == 0) {
        return 0; /* no choice */
    }
    uint32_t best = 0;
    double best_rate = -1.0;
    for (uint32_t l = 0; l <= offered; l = next_length(l, stride, offered)) {
        double rate = speculate_emitted(e, l) / cost(ctx, l);
        SIM_ASSERT(rate > 0.0); /* infinite if the cost is 0 (unknown): the first is best */
        /* The shorter of two equal drafts wins, because it wastes less if it is wrong. */
        if (rate > best_rate) {
            best_rate = rate;
            best = l;
        }
    }
    e->idle = best > 0 ? 0 : e->idle + 1;
    /* One token is enough to learn whether drafts hit again. */
    if (e->idle >= SPECULATE_RETRY_STEPS) {
        e->idle = 0;
        return 1;
    }
    SIM_ASSERT(best <= offered);
    return best;
}

static double op_ns(struct sched *s, const struct work_shape *w, enum op_kind op, uint8_t device,
                    uint32_t chunk_rows)
{
    struct estimate e;
    SIM_ASSERT(w->logit_rows <= w->rows);
    uint32_t rows = op == OP_HEAD ? w->logit_rows : w->rows;
    if (rows == 0) {
        return 0.0;
    }
    int rc = chunk_rows == 0 ? sched_estimate(s, w, op, device, rows, &e)
                             : sched_estimate_graph(s, w, op, device, rows, chunk_rows, 1, &e);
    return rc == 0 ? (double)e.t_ns : 0.0;
}

double speculate_pass_ns(struct sched *s, const struct work_shape *w, uint8_t token_level,
                         uint8_t rest, uint32_t chunk_rows)
{
    const struct llm *llm = sched_model(s, w->model);
    const struct layer_ops *ops = &llm->layer;
    /* Head and attention have static rows only if they run on the device of the static graph. */
    uint32_t rest_chunk = token_level == rest ? chunk_rows : 0;
    double layer = 0.0;
    SIM_ASSERT(w->prefill_rows == 0 && w->sequences > 0); /* verification is after the prompt */
    for (uint32_t i = 0; i < ops->n; i++) {
        layer += ops->kind[i] == OP_MHA ? op_ns(s, w, OP_MHA, rest, rest_chunk)
                                        : op_ns(s, w, ops->kind[i], token_level, chunk_rows);
    }
    return layer * llm->n_layers + op_ns(s, w, OP_HEAD, rest, rest_chunk);
}
