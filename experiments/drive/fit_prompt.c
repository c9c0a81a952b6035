/* Attention of prompts. An engine may have two paths, chosen by the rows of a sequence, and one
 * path may work in tiles. The fit finds the change-over from the kernels. */
#include "experiments/drive/fit_impl.h"

#define KINDS_PER_PATH 4
/* A split is taken only if it reduces the squared error to this share; otherwise noise would
 * choose. */
#define WORTH 0.7

/* Engines use powers of two. 0: one path; no tiles. */
static const uint32_t changes[] = {0, 8, 16, 32, 64, 128, 256};
static const uint32_t tiles[] = {0, 16, 32, 64, 128};
#define N(a) (sizeof(a) / sizeof(a)[0])

void fit_prompt_terms(const struct fit_input *in, const struct drive_kernel *k,
                      struct fit_split split, double x[4])
{
    memset(x, 0, 4 * sizeof *x);
    SIM_ASSERT(k->segment0 + k->n_segments <= in->n_segments);
    for (uint32_t i = 0; i < k->n_segments; i++) {
        const struct drive_segment *s = &in->segments[k->segment0 + i];
        bool few = s->rows < split.few_below;
        /* Each row sees itself and the rows before it. */
        SIM_ASSERT(s->rows > 0 && s->keys >= s->rows);
        if (s->prefill) {
            x[few ? 0 : 2] += soc_ops_pairs(s->rows, s->keys, few ? 0 : split.tile);
            x[few ? 1 : 3] += s->rows;
        }
    }
    SIM_ASSERT(x[0] >= x[1] && x[2] >= x[3]); /* each row has at least the pair with itself */
    SIM_ASSERT(split.few_below > 0 || x[1] == 0.0);
}

double fit_decode_keys(const struct fit_input *in, const struct drive_kernel *k)
{
    double keys = 0.0;
    for (uint32_t i = 0; i < k->n_segments; i++) {
        const struct drive_segment *s = &in->segments[k->segment0 + i];
        keys += s->prefill ? 0.0 : s->keys;
        /* A decode has one row, so its keys are its pairs. */
        SIM_ASSERT(s->prefill || s->rows == 1);
    }
    return keys;
}

uint32_t fit_longest(const struct fit_input *in, const struct drive_kernel *k)
{
    uint32_t keys = 0;
    for (uint32_t i = 0; i < k->n_segments; i++) {
        uint32_t own = in->segments[k->segment0 + i].keys;
        keys = own > keys ? own : keys;
    }
    SIM_ASSERT(k->n_segments == 0 || keys > 0);
    return keys;
}

/* Number of kinds of work with all rows on one path. */
static uint32_t kinds_on(const struct samples *s, bool few)
{
    SIM_ASSERT(samples_sorted(s)); /* equal work is adjacent */
    uint32_t kinds = 0;
    for (size_t i = 0; i < s->n; i++) {
        bool is = s->v[i].x[few ? 2 : 4] > 0.0 && s->v[i].x[few ? 4 : 2] == 0.0;
        kinds += is && (i == 0 || memcmp(s->v[i - 1].x, s->v[i].x, sizeof s->v[i].x) != 0);
    }
    return kinds;
}

/* Mean square of the logarithmic error. */
static double mean_square(struct samples *s)
{
    struct fit_number c[SAMPLE_TERMS];
    samples_regress(s, FIT_PROMPT_TERMS, c);
    double sum = 0.0;
    SIM_ASSERT(s->n > FIT_PROMPT_TERMS);
    for (size_t i = 0; i < s->n; i++) {
        double error = log(s->v[i].fitted_s / s->v[i].t_s);
        sum += error * error;
    }
    return sum / (double)s->n;
}

struct fit_split fit_prompt_split(fit_collect *collect, void *self)
{
    struct fit_split best = {0};
    double plain = 0.0, least = HUGE_VAL;
    for (size_t i = 0; i < N(changes); i++) {
        for (size_t k = 0; k < N(tiles); k++) {
            struct fit_split at = {changes[i], tiles[k]};
            struct samples s = {0};
            collect(self, at, &s);
            bool told = at.few_below == 0 || (kinds_on(&s, true) >= KINDS_PER_PATH &&
                                              kinds_on(&s, false) >= KINDS_PER_PATH);
            if (told && s.n > FIT_PROMPT_TERMS) {
                double is = mean_square(&s);
                plain = i + k == 0 ? is : plain;
                best = is < least ? at : best;
                least = fmin(is, least);
            }
            free(s.v);
        }
    }
    /* The model without a split is tried first, so it is no better than the best. */
    SIM_ASSERT(least == HUGE_VAL || plain >= least);
    SIM_ASSERT(least == HUGE_VAL || best.few_below > 0 || best.tile > 0 || plain == least);
    return least < WORTH * plain ? best : (struct fit_split){0};
}
