#include "hwmodels/speculation.h"

#include "sim/base/base.h"
#include "sim/base/rng.h"

/* History that counts as unlimited: then h differs from Table 4 by at most 1e-8. */
#define HISTORY_FULL 1e9

/* The random draws of a step, in fixed order. */
struct draws {
    double hit, run, length, place;
};

static struct draws draw(uint64_t key, uint64_t step)
{
    struct rng r;
    struct draws d;
    /* Keyed by step and not from a stream: the accepted tokens of a step do not depend on earlier
     * queries, so all policies have the same text. */
    rng_init(&r, rng_key(key, RNG_SPECULATION, step, 1));
    /* Always all four, so that a parameter which disables one does not change the others. */
    d.hit = rng_uniform(&r);
    d.run = rng_uniform(&r);
    d.length = rng_uniform(&r);
    d.place = rng_uniform(&r);
    return d;
}

uint64_t speculation_key(uint64_t seed, uint32_t request_id)
{
    return rng_key(seed, RNG_SPECULATION, request_id, 0);
}

double speculation_hit_frac(const struct speculation_model *m, double history)
{
    double share = history / (history + m->history_half_requests);
    return m->hit_frac * (m->history_cold_frac + (1 - m->history_cold_frac) * share);
}

/* Geometric number of successes by multiplication only, so that results do not depend on the libm.
 */
static uint32_t geometric(double u, double frac, uint32_t cap)
{
    uint32_t k = 0;
    for (double tail = frac; u < tail && k < cap; tail *= frac) {
        k++;
    }
    return k;
}

/* The three ranges of EMPIRICAL: [low, high] and the probability of the range. */
static double length_range(const struct speculation_model *m, int range, uint32_t *low,
                           uint32_t *high)
{
    uint32_t limits[] = {0, m->short_tokens, m->friendly_tokens, m->max_draft_tokens + 1};
    double fracs[] = {m->short_frac, m->unfriendly_frac - m->short_frac, 1 - m->unfriendly_frac};
    *low = limits[range];
    *high = limits[range + 1] > *low ? limits[range + 1] - 1 : *low;
    return fracs[range];
}

static uint32_t cut(const struct speculation_model *m, uint32_t length)
{
    return length < m->max_draft_tokens ? length : m->max_draft_tokens;
}

static uint32_t empirical_length(const struct speculation_model *m, const struct draws *d)
{
    int range = d->length < m->short_frac ? 0 : d->length < m->unfriendly_frac ? 1 : 2;
    uint32_t low, high;
    (void)length_range(m, range, &low, &high);
    return cut(m, low + (uint32_t)(d->place * (high - low + 1)));
}

static uint32_t draft_length(const struct speculation_model *m, const struct draws *d)
{
    switch (m->length) {
    case SPECULATION_PROP:
        return cut(m, 1 + m->tokens_per_match *
                              geometric(d->length, m->match_frac, m->max_draft_tokens));
    case SPECULATION_EMPIRICAL:
        return empirical_length(m, d);
    case SPECULATION_FIXED:
        break;
    }
    return m->max_draft_tokens;
}

uint32_t speculation_draft(const struct speculation_model *m, uint64_t key, uint64_t step)
{
    struct draws d = draw(key, step);
    return draft_length(m, &d);
}

/* Number of right tokens after a hit, at most one more than the longest draft. */
static uint32_t hit_run(const struct speculation_model *m, const struct draws *d)
{
    return 1 + geometric(d->run, m->alpha, m->max_draft_tokens);
}

/* Whether a step hits. The draw decides alone below h (hit) and above r + (1 - r) h (miss). In
 * between, reuse decides: a hit if the previous step was a hit that ended in a rejection. So this
 * walks back to the last step decided by its draw, and forward again. */
static bool is_hit(const struct speculation_model *m, uint64_t key, uint64_t step, double h)
{
    double with_reuse = m->reuse_frac + (1 - m->reuse_frac) * h;
    uint64_t at = step;
    struct draws d = draw(key, at);
    while (at > 0 && d.hit >= h && d.hit < with_reuse) {
        d = draw(key, --at);
    }
    bool hit = d.hit < h;
    while (at < step && hit) {
        hit = hit_run(m, &d) < draft_length(m, &d);
        d = draw(key, ++at);
    }
    return hit && at == step;
}

uint32_t speculation_accept(const struct speculation_model *m, uint64_t key, uint64_t step,
                            double history, uint32_t draft_tokens)
{
    struct draws d = draw(key, step);
    uint32_t n = draft_length(m, &d);
    uint32_t run = 0;
    /* A published mean without a distribution: draws the two integers around it with shares that
     * give the mean. */
    if (m->fixed_accept > 0) {
        double whole = floor(m->fixed_accept);
        run = (uint32_t)whole + (d.run < m->fixed_accept - whole ? 1 : 0);
    } else if (is_hit(m, key, step, speculation_hit_frac(m, history))) {
        run = hit_run(m, &d);
    }
    n = n < draft_tokens ? n : draft_tokens;
    return run < n ? run : n;
}

/* Drafts are retrieved from earlier turns of the session, from all earlier requests of the trace,
 * or from as much history as in the published tables. */
static double run_history(const struct speculation_run *run, const struct request *r)
{
    switch (run->history) {
    case SPECULATION_HISTORY_TURN:
        return r->turn;
    case SPECULATION_HISTORY_TRACE:
        return r->id;
    case SPECULATION_HISTORY_FULL:
        break;
    }
    return HISTORY_FULL;
}

uint32_t speculation_run_draft(const void *params, uint64_t seed, const struct request *r,
                               const struct trace_text *text UNUSED, uint64_t step)
{
    const struct speculation_run *run = params;
    const struct speculation_model *m = run->by_class[r->cls];
    return m == NULL ? 0 : speculation_draft(m, speculation_key(seed, r->id), step);
}

uint32_t speculation_run_accept(const void *params, uint64_t seed, const struct request *r,
                                const struct trace_text *text UNUSED, uint64_t step,
                                uint32_t drafted)
{
    const struct speculation_run *run = params;
    const struct speculation_model *m = run->by_class[r->cls];
    if (m == NULL) {
        return 0;
    }
    uint64_t key = speculation_key(seed, r->id);
    return speculation_accept(m, key, step, run_history(run, r), drafted);
}
