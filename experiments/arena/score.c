#include "experiments/arena/score.h"

#include "sim/base/portable.h"
#include "sim/stats/stats_shift.h"

static double gain_of(const struct score_pair *p, uint32_t i)
{
    double g = log(p->reference[i] / p->policy[i]);
    return !isfinite(g) ? (double)NAN : p->gain ? -g : g;
}

static double clipped(const struct score_pair *p, uint32_t i)
{
    if (p->lost[i] && isfinite(p->reference[i])) {
        return -SCORE_CLIP;
    }
    /* The sum keeps a NaN, which fmin and fmax ignore. */
    return fmax(-SCORE_CLIP, fmin(SCORE_CLIP, gain_of(p, i))) + 0.0 * gain_of(p, i);
}

/* One-sided p-value of a mean this far below (sign -1) or above (1) `at`. */
static double chance(const struct stats_interval *s, double at, double sign)
{
    if (s->n < 2) {
        return (double)NAN;
    }
    double far = sign * (s->mean - at);
    if (!(s->sd > 0.0)) { /* all values are equal, so the answer is certain */
        return far > 0.0 ? 0.0 : 1.0;
    }
    return portable_student_above(far / (s->sd / sqrt(s->n)), s->n - 1);
}

static void judge_cell(const struct score_pair *p, uint32_t n, double *gains, struct score_cell *c)
{
    *c = (struct score_cell){.lost = 0};
    for (uint32_t i = 0; i < n; i++) {
        gains[i] = p->lost[i] ? (double)NAN : gain_of(p, i);
        c->lost += p->lost[i] ? 1 : 0;
    }
    c->gain = stats_mean(gains, n, STATS_LEVEL_FRAC);
    c->p_worse = c->lost > 0 ? 0.0 : chance(&c->gain, -log1p(SCORE_RELEVANCE_FRAC), -1.0);
}

/* The mean clipped gain of one replication. */
static double gain_at(const struct score_pair *pairs, uint32_t n_pairs, uint32_t i)
{
    double sum = 0.0;
    uint32_t defined = 0;
    for (uint32_t k = 0; k < n_pairs; k++) {
        double g = pairs[k].scored ? clipped(&pairs[k], i) : (double)NAN;
        sum += isnan(g) ? 0.0 : g;
        defined += isnan(g) ? 0 : 1;
    }
    return sum / defined;
}

void score_gains(const struct score_pair *pairs, uint32_t n_pairs, uint32_t n, double *into)
{
    for (uint32_t i = 0; i < n; i++) {
        into[i] = gain_at(pairs, n_pairs, i);
    }
}

struct score score_of(const struct score_pair *pairs, uint32_t n_pairs, uint32_t n,
                      struct score_cell *cells)
{
    struct score s = {.regressions = 0};
    OWNED double *x = xcalloc((size_t)n + n_pairs + 1, sizeof *x);
    for (uint32_t k = 0; k < n_pairs; k++) {
        judge_cell(&pairs[k], n, x, &cells[k]);
    }
    double *p = x + n;
    for (uint32_t k = 0; k < n_pairs; k++) {
        p[k] = cells[k].p_worse;
    }
    stats_holm(p, n_pairs, p);
    for (uint32_t k = 0; k < n_pairs; k++) {
        cells[k].p_holm = p[k];
        cells[k].regression = p[k] <= SCORE_LEVEL_FRAC;
        s.regressions += cells[k].regression ? 1 : 0;
    }
    score_gains(pairs, n_pairs, n, x);
    s.gain = stats_mean(x, n, STATS_LEVEL_FRAC);
    s.p_better = chance(&s.gain, 0.0, 1.0);
    return s;
}

bool score_passes(const struct score *s, uint32_t candidates)
{
    return s->regressions == 0 &&
           s->p_better <= SCORE_LEVEL_FRAC / (candidates > 0 ? candidates : 1);
}
