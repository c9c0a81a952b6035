#include "hwmodels/conformal.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/csv_record.h"

const char *const conformal_phase_names[] = {"prefill", "short_prefill", "decode", NULL};
static const char *const kind_names[] = {DEVICE_KINDS(DEVICE_KIND_NAME_) NULL};
const char *const conformal_left_names[] = {"model", "soc", "runtime", "source", NULL};

#define OF(member) CSV_MEMBER(struct conformal_row, member)
static const struct csv_field fields[] = {
    {"soc", CSV_TEXT, OF(soc)},
    {"family", CSV_TEXT, OF(family)},
    {"device", CSV_CHOICE, OF(kind), .choices = kind_names},
    {"model", CSV_TEXT, OF(model)},
    {"weight_bits", CSV_WHOLE, OF(weight_bits), .min = 1, .max = 32, .or_missing = true},
    {"weights", CSV_NUMBER, OF(weights), .min = 1, .max = 1e15},
    {"phase", CSV_CHOICE, OF(phase), .choices = conformal_phase_names},
    {"input_tokens", CSV_NUMBER, OF(tokens), .max = 1e9},
    {"runtime", CSV_TEXT, OF(runtime), .or_missing = true},
    {"left_out", CSV_CHOICE, OF(left), .choices = conformal_left_names},
    {"ln_error", CSV_NUMBER, OF(ln_error), .min = -20, .max = 20},
    {"by", CSV_TEXT, OF(by)},
};

enum conformal_phase conformal_phase_of(bool prefill, uint32_t tokens)
{
    /* Short prompts apart: launches and rows that do not fill the device decide there, so that
     * their errors are others than those of long ones. */
    return !prefill                          ? CONFORMAL_DECODE
           : tokens < CONFORMAL_SHORT_TOKENS ? CONFORMAL_SHORT_PREFILL
                                             : CONFORMAL_PREFILL;
}

/* ---- pools ---- */

enum pool { POOL_FAMILY, POOL_KIND, POOL_ALL, POOL_COUNT };

static const char *family_of(const struct conformal_query *q)
{
    return q->family != NULL && q->family[0] != '\0' ? q->family : q->soc;
}

/* Of the pool, and of no model or SoC that the query leaves out. What such a SoC predicted of
 * others goes with what others predicted of it: of a pair of machines the one error is about the
 * other's, turned round. */
static bool belongs(const struct conformal_row *r, const struct conformal_query *q, enum pool pool)
{
    return r->phase == q->phase &&
           (q->without_model == NULL || strcmp(r->model, q->without_model) != 0) &&
           (q->without_soc == NULL ||
            (strcmp(r->soc, q->without_soc) != 0 && strcmp(r->by, q->without_soc) != 0)) &&
           (pool == POOL_ALL || r->kind == q->kind) &&
           (pool != POOL_FAMILY || strcmp(r->family, family_of(q)) == 0);
}

/* ---- distances ---- */

/* Natural logarithms apart, of weights and of tokens; the larger of the two. */
static double apart(double weights_a, double tokens_a, double weights_b, double tokens_b)
{
    double w = fabs(log(weights_a / weights_b));
    double t = fabs(log((tokens_a + 1.0) / (tokens_b + 1.0)));
    return fmax(w, t);
}

/* To the nearest row of the query's family, device and phase that a fit has kept: rows of a model,
 * or of a SoC, left out of scores are left out here too. */
static double distance_of(const struct conformal *c, const struct conformal_query *q)
{
    double least = (double)INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        /* What is measured stands once among the rows whose model was left out; rows whose SoC was
         * left out repeat it for each SoC that predicted it. */
        if (r->left == CONFORMAL_MODEL && belongs(r, q, POOL_FAMILY)) {
            least = fmin(least, apart(q->weights, q->tokens, r->weights, r->tokens));
        }
    }
    return isfinite(least) ? least : 0.0; /* a family of its own: its pool is another's */
}

struct conformal_query conformal_query_of(const struct conformal_row *r)
{
    return (struct conformal_query){.soc = r->soc,
                                    .family = r->family,
                                    .kind = r->kind,
                                    .phase = r->phase,
                                    .weights = r->weights,
                                    .tokens = r->tokens,
                                    .left = r->left,
                                    .without_model = r->left == CONFORMAL_MODEL ? r->model : NULL,
                                    .without_soc = r->left == CONFORMAL_MODEL ? NULL : r->soc};
}

/* ---- reading ---- */

int conformal_read(const char *path, struct conformal *out, struct err *e)
{
    *out = (struct conformal){0};
    size_t before = e->n;
    struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    struct csv_record record;
    (void)csv_record_init(&record, f, fields, sizeof fields / sizeof fields[0], e);
    while (e->n == before && csvfile_next(f, e) > 0) {
        out->v = xgrow(out->v, out->n, sizeof *out->v);
        csv_record_take(&record, &out->v[out->n++], e);
    }
    csvfile_close(f);
    if (e->n > before) {
        conformal_fini(out);
        return -EINVAL;
    }
    for (size_t i = 0; i < out->n; i++) {
        /* The model's own rows at other lengths do not count where the model was left out, nor the
         * SoC's own where the SoC was: a fit has not seen them either. */
        struct conformal_query q = conformal_query_of(&out->v[i]);
        out->v[i].distance = distance_of(out, &q);
    }
    return 0;
}

void conformal_fini(struct conformal *c)
{
    free(c->v);
    *c = (struct conformal){0};
}

/* Scores, sorted. What is exchangeable is what was left out, a model or a SoC, and not its rows:
 * these are off together, by a shape of matrices that suits a kernel less or by a clock that the
 * data sheet does not tell. So each weighs 1 / rows of its model, or of its SoC. */
struct scores {
    double *value, *weight; /* [n]; owned */
    size_t n;
    double groups; /* sum of weights */
    enum pool pool;
};

static const char *group_of(const struct conformal_row *r)
{
    return r->left == CONFORMAL_MODEL ? r->model : r->soc;
}

static void weigh(struct scores *s, const struct conformal_row *const *row)
{
    size_t *first = xmalloc((s->n + 1) * sizeof *first); /* of each group that was met */
    double *rows = xmalloc((s->n + 1) * sizeof *rows);
    size_t *group = xmalloc((s->n + 1) * sizeof *group);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t k = 0;
        while (k < n && strcmp(group_of(row[first[k]]), group_of(row[i])) != 0) {
            k++;
        }
        if (k == n) {
            first[n] = i;
            rows[n++] = 0.0;
        }
        group[i] = k;
        rows[k] += 1.0;
    }
    for (size_t i = 0; i < s->n; i++) {
        s->weight[i] = 1.0 / rows[group[i]];
    }
    s->groups = (double)n;
    free(first);
    free(rows);
    free(group);
}

/* A runtime of its own is as far off as a SoC, a source as a model. */
static enum conformal_left scores_left(enum conformal_left left)
{
    return left == CONFORMAL_RUNTIME  ? CONFORMAL_SOC
           : left == CONFORMAL_SOURCE ? CONFORMAL_MODEL
                                      : left;
}

/* Of the first pool with at least `want`, signed or absolute. scores_fini. */
static struct scores scores_of(const struct conformal *c, const struct conformal_query *q,
                               size_t want, bool signs)
{
    struct scores s = {.value = xmalloc((c->n + 1) * sizeof *s.value),
                       .weight = xmalloc((c->n + 1) * sizeof *s.weight)};
    const struct conformal_row **row = xmalloc((c->n + 1) * sizeof(const struct conformal_row *));
    /* The narrowest pool that supports the level: errors of the machine's own family say most of
     * it, and too few of them say nothing of a 95th percentile. */
    for (int pool = POOL_FAMILY; pool < POOL_COUNT; pool++) {
        s.n = 0;
        s.pool = (enum pool)pool;
        for (size_t i = 0; i < c->n; i++) {
            const struct conformal_row *r = &c->v[i];
            if (r->left == scores_left(q->left) && belongs(r, q, s.pool)) {
                double x = -r->ln_error / (1.0 + CONFORMAL_WIDEN * r->distance);
                row[s.n] = r;
                s.value[s.n++] = signs ? x : fabs(x);
            }
        }
        if (s.n >= want) {
            break;
        }
    }
    weigh(&s, row);
    if (s.n > 1) {
        gsl_sort2(s.value, 1, s.weight, 1, s.n);
    }
    free(row);
    return s;
}

static void scores_fini(struct scores *s)
{
    free(s->value);
    free(s->weight);
}

static double scale_of(const struct conformal *c, const struct conformal_query *q, double *distance)
{
    *distance = distance_of(c, q);
    return 1.0 + CONFORMAL_WIDEN * *distance;
}

struct conformal_interval conformal_of(const struct conformal *c, const struct conformal_query *q,
                                       double level_frac)
{
    struct conformal_interval out = {.low_factor = 0.0, .high_factor = (double)INFINITY};
    /* 19 scores for 95 %. The 1e-9 is for quotients that come out above the whole number that they
     * are: 9.000000000000002 at 90 %. */
    size_t want = (size_t)ceil(level_frac / (1.0 - level_frac) - 1e-9); /* k <= n */
    struct scores s = scores_of(c, q, want, false);
    double scale = scale_of(c, q, &out.distance);
    out.n = s.n;
    if (s.n > 0) {
        /* The new one is one more, and may be off by more than all others. */
        double most = level_frac * (s.groups + 1.0) - 1e-9;
        double below = s.weight[0];
        size_t k = 0;
        while (k + 1 < s.n && below < most) {
            below += s.weight[++k];
        }
        out.level_frac = most <= s.groups ? level_frac : s.groups / (s.groups + 1.0);
        double half = s.value[k] * scale;
        out.low_factor = exp(-half);
        out.high_factor = exp(half);
    }
    out.pool = s.pool == POOL_FAMILY ? family_of(q)
               : s.pool == POOL_KIND ? kind_names[q->kind]
                                     : "all";
    scores_fini(&s);
    return out;
}

double conformal_draw(const struct conformal *c, const struct conformal_query *q, double u)
{
    /* A draw needs a spread and no far quantile: ten errors of the family rather than hundreds of
     * others. Signed, so that a family whose predictions are all too fast is drawn so. */
    struct scores s = scores_of(c, q, 10, true);
    const double *x = s.value;
    double distance;
    double scale = scale_of(c, q, &distance);
    double at = u * (double)(s.n > 0 ? s.n - 1 : 0);
    size_t i = (size_t)at;
    double value = s.n == 0      ? 0.0
                   : i + 1 < s.n ? x[i] + (at - (double)i) * (x[i + 1] - x[i])
                                 : x[s.n - 1];
    scores_fini(&s);
    return value * scale;
}

struct conformal_coverage conformal_cover(const struct conformal *c, enum conformal_left left,
                                          enum conformal_phase phase, double level_frac)
{
    struct conformal_coverage out = {0};
    double *half = xmalloc((c->n + 1) * sizeof *half);
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        if (r->left != left || r->phase != phase) {
            continue;
        }
        struct conformal_query q = conformal_query_of(r);
        struct conformal_interval x = conformal_of(c, &q, level_frac);
        half[out.n++] = log(x.high_factor);
        out.inside += fabs(r->ln_error) <= log(x.high_factor);
    }
    if (out.n > 0) {
        gsl_sort(half, 1, out.n);
        out.median_half = half[out.n / 2];
    }
    free(half);
    return out;
}

struct conformal_coverage conformal_cover_draws(const struct conformal *c, enum device_kind kind,
                                                enum conformal_phase phase, double level_frac)
{
    struct conformal_coverage out = {0};
    const double tail = (1.0 - level_frac) / 2.0;
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        if (r->left == CONFORMAL_MODEL && r->kind == kind && r->phase == phase) {
            struct conformal_query q = conformal_query_of(r);
            out.n++;
            out.inside += conformal_draw(c, &q, tail) <= -r->ln_error &&
                          -r->ln_error <= conformal_draw(c, &q, 1.0 - tail);
        }
    }
    return out;
}
