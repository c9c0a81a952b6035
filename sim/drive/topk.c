#include "sim/drive/topk.h"

#include <math.h>

#define NORM_EPSILON 1e-5f /* sim/api/engine.h */

/* The likeliest is first, and tokens differ. */
static bool topk_ok(const struct topk *t, uint32_t vocab)
{
    bool ok = t->n == (vocab < TOPK ? vocab : TOPK);
    for (uint32_t i = 0; i < t->n && ok; i++) {
        ok = t->token[i] >= 0 && (uint32_t)t->token[i] < vocab && t->probability[i] <= 1.0f;
        for (uint32_t k = 0; k < i && ok; k++) {
            ok = t->token[k] != t->token[i] && t->probability[k] >= t->probability[i];
        }
    }
    return ok;
}

void topk_fill(const float *logits, uint32_t vocab, struct topk *out)
{
    double sum = 0.0;
    out->n = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        uint32_t at = out->n;
        while (at > 0 && logits[i] > logits[out->token[at - 1]]) {
            at--;
        }
        if (at == TOPK) {
            continue;
        }
        out->n += out->n < TOPK;
        for (uint32_t k = out->n - 1; k > at; k--) {
            out->token[k] = out->token[k - 1];
        }
        out->token[at] = (int32_t)i;
    }
    double most = (double)logits[out->token[0]];
    for (uint32_t i = 0; i < vocab; i++) {
        sum += exp((double)logits[i] - most);
    }
    for (uint32_t k = 0; k < out->n; k++) {
        out->probability[k] = (float)(exp((double)logits[out->token[k]] - most) / sum);
    }
    SIM_ASSERT(topk_ok(out, vocab) && sum >= 1.0); /* the first has exp(0) */
}

/* Allocates the model's head and one row of logits, when the first prompt needs them. */
static void head_open(struct drive *d)
{
    const struct llm *m = d->llm;
    SIM_ASSERT(d->options->topk != NULL && d->head_logits == NULL); /* only with options->topk */
    d->head = arena_alloc(&d->core.arena, (size_t)m->vocab * m->hidden * sizeof *d->head);
    d->head_logits = arena_alloc(&d->core.arena, m->vocab * sizeof *d->head_logits);
    for (uint32_t i = 0; i < m->vocab; i++) {
        engine_weights(ENGINE_HEAD, 0, i, m->hidden, d->head + (size_t)i * m->hidden);
    }
}

static const float *head_of(struct drive *d, const float *x)
{
    SIM_ASSERT(d->head != NULL && d->head_logits != NULL);
    uint32_t n = d->llm->hidden;
    float sum = 0.0f;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    float scale = 1.0f / sqrtf(sum / (float)n + NORM_EPSILON);
    for (uint32_t t = 0; t < d->llm->vocab; t++) {
        const float *w = d->head + (size_t)t * n;
        float logit = 0.0f;
        for (uint32_t i = 0; i < n; i++) {
            logit += w[i] * x[i];
        }
        d->head_logits[t] = logit * scale;
    }
    return d->head_logits;
}

void topk_take(struct drive *d, const struct full_pass *full)
{
    const struct real_pass *p = full->exec;
    const struct engine_pass *e = &p->engine;
    const float *x = e->x[d->llm->n_layers % 2];
    uint32_t row = 0;
    uint32_t n_logits = 0;
    for (uint32_t i = 0; i < full->pub->n_segments; i++) {
        const struct segment *s = &full->pub->segments[i];
        struct real_request *q = core_request(s->request)->exec;
        SIM_ASSERT(state_request_ok(d, q) && s->first_token + s->n_tokens <= q->n);
        if (q->next == NULL) {
            q->next = arena_alloc(&d->core.arena, q->room * sizeof *q->next);
        }
        for (uint32_t k = 0; k < s->n_tokens; k++, row++) {
            struct topk *out = &q->next[s->first_token + k];
            bool samples = n_logits < full->pub->shape.logit_rows && p->logit_rows[n_logits] == row;
            if (samples) {
                topk_fill(e->logits + (size_t)n_logits * d->llm->vocab, d->llm->vocab, out);
                n_logits++;
            } else if (out->n == 0) { /* recomputed rows give equal results */
                if (d->head == NULL) {
                    head_open(d);
                }
                topk_fill(head_of(d, x + (size_t)row * d->llm->hidden), d->llm->vocab, out);
            }
        }
    }
    SIM_ASSERT(row == e->rows && n_logits == full->pub->shape.logit_rows); /* all are handled */
}

static void write_numbers(FILE *out, const char *key, const int32_t *tokens, uint32_t n)
{
    (void)fprintf(out, "\"%s\":[", key);
    for (uint32_t i = 0; i < n; i++) {
        (void)fprintf(out, "%s%d", i > 0 ? "," : "", tokens[i]);
    }
    (void)fputs("],", out);
}

void topk_write(const struct drive *d)
{
    FILE *out = d->options->topk;
    for (size_t i = 0; out != NULL && i < d->core.setup->trace->n; i++) {
        const struct real_request *q = &d->requests[i];
        SIM_ASSERT(state_request_ok(d, q));
        if (q->next == NULL || q->n == q->input) {
            continue;
        }
        (void)fprintf(out, "{\"request\":%u,", q->id);
        write_numbers(out, "context", q->tokens, q->input);
        write_numbers(out, "output", q->tokens + q->input, q->n - q->input);
        (void)fputs("\"next\":[", out);
        for (uint32_t k = 0; k + 1 < q->n; k++) {
            (void)fputs(k > 0 ? ",[" : "[", out);
            SIM_ASSERT(q->next[k].n == 0 || topk_ok(&q->next[k], d->llm->vocab));
            for (uint32_t j = 0; j < q->next[k].n; j++) {
                (void)fprintf(out, "%s[%d,%.6g]", j > 0 ? "," : "", q->next[k].token[j],
                              (double)q->next[k].probability[j]);
            }
            (void)fputc(']', out);
        }
        (void)fputs("]}\n", out);
    }
}
