#include "hwmodels/drafters.h"

#include "sim/base/err.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t drafter_length(const struct drafter *d, const struct trace_text *t, uint32_t place)
{
    SIM_REQUIRE(place < t->n_output, "draft before token %u of %u", place, t->n_output);
    const struct trace_match *m = &t->matches[d->kind][place];
    if (m->length == 0) {
        return 0;
    }
    uint32_t n = least(d->max_draft_tokens, t->n_context + place - m->at);
    uint64_t by_match = 1 + (uint64_t)d->tokens_per_match * m->length;
    return d->tokens_per_match > 0 && by_match < n ? (uint32_t)by_match : n;
}

uint32_t drafter_right(const struct drafter *d, const struct trace_text *t, uint32_t place,
                       uint32_t drafted)
{
    uint32_t n = least(drafted, drafter_length(d, t, place));
    return least(n, t->matches[d->kind][place].right);
}

static bool drafts_for(const struct drafter *d, const struct request *r,
                       const struct trace_text *text)
{
    return text != NULL && (d->proactive || r->cls == REQUEST_CLASS_REACTIVE) &&
           r->generated_tokens < text->n_output;
}

uint32_t drafter_draft(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step)
{
    (void)seed;
    (void)step;
    return drafts_for(params, r, text) ? drafter_length(params, text, r->generated_tokens) : 0;
}

uint32_t drafter_accept(const void *params, uint64_t seed, const struct request *r,
                        const struct trace_text *text, uint64_t step, uint32_t drafted)
{
    (void)seed;
    (void)step;
    return drafts_for(params, r, text) ? drafter_right(params, text, r->generated_tokens, drafted)
                                       : 0;
}
