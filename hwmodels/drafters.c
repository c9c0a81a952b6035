#include "hwmodels/drafters.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t drafter_length(const struct drafter *d, const struct trace_text *t, uint32_t place)
{
    SIM_REQUIRE(place < t->n_output, "draft before token %u of %u", place, t->n_output);
    if (t->matches[d->kind] == NULL) {
        return 0; /* the run will be refused */
    }
    const struct trace_match *m = &t->matches[d->kind][place];
    uint32_t n = least(d->max_draft_tokens, m->left);
    uint64_t by_match = 1 + (uint64_t)d->tokens_per_match * m->length;
    return d->tokens_per_match > 0 && by_match < n ? (uint32_t)by_match : n;
}

uint32_t drafter_right(const struct drafter *d, const struct trace_text *t, uint32_t place,
                       uint32_t drafted)
{
    uint32_t n = least(drafted, drafter_length(d, t, place));
    return least(n, t->matches[d->kind][place].right);
}

/* Whether a pair of adjacent drafted tokens of x occurs in z after its first token. */
static bool has_pair(const uint32_t *x, const uint32_t *z, uint32_t n)
{
    for (uint32_t i = 1; i + 1 < n; i++) {
        if (z[i] == x[0] && z[i + 1] == x[1]) {
            return true;
        }
    }
    return false;
}

/* Counts the cause of an error. x: the drafted tokens from the wrong one on; z: the answer's tokens
 * there. */
static void count_cause(const uint32_t *x, uint32_t n_x, const uint32_t *z, uint32_t n_z,
                        struct drafter_account *a)
{
    bool missing = n_x > 1 && has_pair(x, z, n_z);
    bool synonym = false;
    for (uint32_t i = 1; i + 1 < n_x && !missing && !synonym; i++) {
        synonym = has_pair(x + i, z, n_z);
    }
    a->rejected++;
    a->missing += missing;
    a->synonym += synonym;
}

void drafter_count(const struct drafter *d, const struct trace_text *t, struct drafter_account *a)
{
    const uint32_t *answer = t->tokens + t->n_context;
    uint32_t emitted = 0;
    for (uint32_t at = 1; at < t->n_output; at += emitted) {
        uint32_t n = drafter_length(d, t, at);
        uint32_t right = drafter_right(d, t, at, n);
        uint32_t left = t->n_output - at;
        emitted = least(right + 1, left);
        if (n == 0) {
            continue;
        }
        a->verifications++;
        a->drafted += n;
        a->accepted += emitted - 1;
        if (right < least(n, left)) {
            const uint32_t *draft = t->matches[d->kind][at].draft;
            count_cause(draft + right, n - right, answer + at + right,
                        least(n - right, left - right), a);
        }
    }
}

static bool drafts_for(const struct drafter *d, const struct request *r,
                       const struct trace_text *text)
{
    return text != NULL && (d->proactive || r->cls == REQUEST_CLASS_REACTIVE) &&
           r->generated_tokens < text->n_output;
}

uint32_t drafter_draft(const void *params, uint64_t seed UNUSED, const struct request *r,
                       const struct trace_text *text, uint64_t step UNUSED)
{
    return drafts_for(params, r, text) ? drafter_length(params, text, r->generated_tokens) : 0;
}

uint32_t drafter_accept(const void *params, uint64_t seed UNUSED, const struct request *r,
                        const struct trace_text *text, uint64_t step UNUSED, uint32_t drafted)
{
    return drafts_for(params, r, text) ? drafter_right(params, text, r->generated_tokens, drafted)
                                       : 0;
}
