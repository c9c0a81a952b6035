#include "tests/helpers/drafts.h"

#include <math.h>

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

static double prop_length_frac(const struct speculation_model *m, uint32_t length)
{
    double sum = 0;
    double frac = 1 - m->match_frac;
    for (uint32_t k = 0; k < m->max_draft_tokens; k++, frac *= m->match_frac) {
        if (cut(m, 1 + m->tokens_per_match * k) == length) {
            sum += frac;
        }
    }
    /* All longer matches are cut to the maximum. */
    return length == m->max_draft_tokens ? sum + pow(m->match_frac, m->max_draft_tokens) : sum;
}

static double empirical_length_frac(const struct speculation_model *m, uint32_t length)
{
    double sum = 0;
    for (int range = 0; range < 3; range++) {
        uint32_t low, high;
        double frac = length_range(m, range, &low, &high);
        for (uint32_t l = low; l <= high; l++) {
            sum += cut(m, l) == length ? frac / (high - low + 1) : 0;
        }
    }
    return sum;
}

double drafts_length_frac(const struct speculation_model *m, uint32_t length)
{
    switch (m->length) {
    case SPECULATION_PROP:
        return prop_length_frac(m, length);
    case SPECULATION_EMPIRICAL:
        return empirical_length_frac(m, length);
    case SPECULATION_FIXED:
        break;
    }
    return length == m->max_draft_tokens ? 1 : 0;
}

double drafts_stationary_hit_frac(const struct speculation_model *m, double history)
{
    double h = speculation_hit_frac(m, history);
    double rejected = 0; /* P(run < length | hit) */
    for (uint32_t l = 1; m->reuse_frac > 0 && l <= m->max_draft_tokens; l++) {
        rejected += drafts_length_frac(m, l) * (1 - pow(m->alpha, l - 1));
    }
    return h / (1 - rejected * m->reuse_frac * (1 - h));
}

/* Mean accepted of one step, for a hit rate. */
static double mean_accepted(const struct speculation_model *m, double hit_frac, uint32_t drafted)
{
    if (m->fixed_accept > 0) {
        double whole = floor(m->fixed_accept);
        double more = m->fixed_accept - whole;
        return (1 - more) * fmin(whole, drafted) + more * fmin(whole + 1, drafted);
    }
    return hit_frac * (1 - pow(m->alpha, drafted)) / (1 - m->alpha);
}

double drafts_mean_accepted_of(const struct speculation_model *m, double history,
                               uint32_t draft_tokens)
{
    return mean_accepted(m, drafts_stationary_hit_frac(m, history), cut(m, draft_tokens));
}

double drafts_mean_accepted(const struct speculation_model *m, double history)
{
    double hit_frac = drafts_stationary_hit_frac(m, history);
    double sum = 0;
    for (uint32_t l = 1; l <= m->max_draft_tokens; l++) {
        sum += drafts_length_frac(m, l) * mean_accepted(m, hit_frac, l);
    }
    return sum;
}
