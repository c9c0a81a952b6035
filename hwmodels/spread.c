#include "hwmodels/spread.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "sim/base/quantile.h"

#define GUESS_SD 0.2
#define NORMAL_MAD 0.6745  /* median |x| of a standard normal */
#define NORMAL_95 1.959964 /* its two-sided 95 % quantile */

/* Criteria for rows. */
struct wanted {
    enum conformal_phase phase;
    const char *without_soc;
    enum conformal_left left;
    bool any_size, small;
    enum transfer_kin kin;
};

struct selected {
    const struct conformal_row **row; /* owned */
    size_t n;
};

static bool is_wanted(const struct conformal_row *r, const struct wanted *w)
{
    bool without = w->without_soc != NULL &&
                   (strcmp(r->soc, w->without_soc) == 0 || strcmp(r->by, w->without_soc) == 0);
    return !without && r->left == w->left && r->phase == w->phase &&
           (w->kin == TRANSFER_ANY || r->within_family == (w->kin == TRANSFER_WITHIN_FAMILY)) &&
           (w->any_size || (r->weights < SPREAD_SMALL_WEIGHTS) == w->small);
}

/* The narrowest class with enough rows. */
static struct selected select_rows(const struct conformal *c, enum device_kind kind,
                                   struct wanted w)
{
    struct selected s = {.row = xmalloc((c->n + 1) * sizeof(const struct conformal_row *))};
    for (int wider = 0; wider < 3 && s.n < SPREAD_MIN_ROWS; wider++) {
        s.n = 0;
        if (wider == 1) {
            w.any_size = true;
            w.kin = TRANSFER_ANY;
        }
        for (size_t i = 0; i < c->n; i++) {
            if ((wider == 2 || c->v[i].kind == kind) && is_wanted(&c->v[i], &w)) {
                s.row[s.n++] = &c->v[i];
            }
        }
    }
    return s;
}

static bool same_model(const struct conformal_row *a, const struct conformal_row *b)
{
    return strcmp(a->soc, b->soc) == 0 && strcmp(a->model, b->model) == 0;
}

static bool same_pair(const struct conformal_row *a, const struct conformal_row *b)
{
    return a->kind == b->kind && strcmp(a->soc, b->soc) == 0 && strcmp(a->by, b->by) == 0;
}

static bool same_width(const struct conformal_row *a, const struct conformal_row *b)
{
    return a->weight_bits == b->weight_bits && same_pair(a, b);
}

/* An absolute error, and how much it counts. */
struct weighed {
    double x, weight;
};

SORT_BY(ascending, struct weighed, SORT_UP(x))

/* The `level` quantile. */
static double quantile_of(struct weighed *v, size_t n, double level)
{
    double all = 0.0;
    for (size_t i = 0; i < n; i++) {
        all += v[i].weight;
    }
    qsort(v, n, sizeof *v, ascending);
    size_t i = 0;
    for (double sum = v[0].weight; i + 1 < n && sum < level * all * (1.0 - 1e-12);) {
        sum += v[++i].weight;
    }
    return v[i].x;
}

static bool same_machine(const struct conformal_row *a, const struct conformal_row *b)
{
    return strcmp(a->soc, b->soc) == 0;
}

/* How many rows of a sample belong together with each of its rows. */
struct together {
    double *of_model, *of_machine; /* rows; owned */
    double models;                 /* effective number; machines count equally */
};

static void together_fill(const struct selected *s, struct together *t)
{
    double machines = 0.0;
    double squares = 0.0;
    t->of_model = xcalloc(s->n + 1, sizeof *t->of_model);
    t->of_machine = xcalloc(s->n + 1, sizeof *t->of_machine);
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < s->n; j++) {
            t->of_model[i] += same_model(s->row[i], s->row[j]);
            t->of_machine[i] += same_machine(s->row[i], s->row[j]);
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        double models = 0.0; /* of the row's machine */
        for (size_t j = 0; j < s->n; j++) {
            models += same_machine(s->row[i], s->row[j]) ? 1.0 / t->of_model[j] : 0.0;
        }
        machines += 1.0 / t->of_machine[i];
        squares += 1.0 / (t->of_machine[i] * models);
    }
    t->models = machines * machines / squares;
}

static void models(const struct selected *s, struct spread *out)
{
    OWNED struct weighed *total = xmalloc((s->n + 1) * sizeof *total);
    OWNED struct weighed *within = xmalloc((s->n + 1) * sizeof *within);
    OWNED double *plain = xmalloc((s->n + 1) * sizeof *plain);
    size_t n_within = 0;
    struct together t;
    together_fill(s, &t);
    for (size_t i = 0; i < s->n; i++) {
        double n = t.of_model[i];
        double weight = 1.0 / t.of_machine[i];
        double mean = 0.0;
        for (size_t j = 0; j < s->n; j++) {
            mean += same_model(s->row[i], s->row[j]) ? s->row[j]->ln_error / n : 0.0;
        }
        plain[i] = fabs(s->row[i]->ln_error);
        total[i] = (struct weighed){plain[i], weight};
        if (n > 1.0) { /* a deviation from a mean of n has (n - 1)/n of the variance */
            within[n_within++] =
                (struct weighed){fabs(s->row[i]->ln_error - mean) * sqrt(n / (n - 1.0)), weight};
        }
    }
    free(t.of_model);
    free(t.of_machine);
    double total_sd = quantile_of(total, s->n, 0.5) / NORMAL_MAD;
    double level = fmin(1.0, 0.95 + 0.5 / t.models);
    out->tail_sd = sample_quantile_of(plain, s->n, level) / NORMAL_95;
    out->row_sd =
        n_within > 0 ? fmin(quantile_of(within, n_within, 0.5) / NORMAL_MAD, total_sd) : total_sd;
    out->model_sd = sqrt(total_sd * total_sd - out->row_sd * out->row_sd);
}

/* Mean error of a weight width for a pair of machines. */
struct width_mean {
    const struct conformal_row *row; /* its first row */
    double mean, variance_of_mean;
};

static size_t width_means(const struct selected *s, struct width_mean *out)
{
    OWNED double *x = xmalloc((s->n + 1) * sizeof *x);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        bool first = true;
        size_t k = 0;
        for (size_t j = 0; j < s->n; j++) {
            if (same_width(s->row[i], s->row[j])) {
                first = first && j >= i;
                x[k++] = s->row[j]->ln_error;
            }
        }
        if (first) {
            double variance = k > 1 ? gsl_stats_variance(x, 1, k) / (double)k : 0.0;
            out[n++] = (struct width_mean){s->row[i], gsl_stats_mean(x, 1, k), variance};
        }
    }
    return n;
}

/* Moments: squared differences between widths of a pair have mean 2 width^2 plus the variances of
 * both means; the square of a mean has machine^2 + width^2 plus its variance. Sibling errors have
 * no common sign. False: no pair has two widths; then each gets half. */
static bool machines(const struct selected *s, struct spread *out)
{
    OWNED struct width_mean *m = xmalloc((s->n + 1) * sizeof *m);
    size_t n = width_means(s, m);
    double square = 0.0;
    double difference = 0.0;
    size_t pairs = 0;
    for (size_t i = 0; i < n; i++) {
        square += (m[i].mean * m[i].mean - m[i].variance_of_mean) / (double)n;
        for (size_t j = 0; j < i; j++) {
            if (same_pair(m[i].row, m[j].row)) {
                double d = m[i].mean - m[j].mean;
                difference += 0.5 * (d * d - m[i].variance_of_mean - m[j].variance_of_mean);
                pairs++;
            }
        }
    }
    double width = pairs > 0 ? fmax(0.0, difference / (double)pairs) : 0.5 * square;
    out->width_sd = sqrt(fmax(0.0, width));
    out->machine_sd = sqrt(fmax(0.0, square - width));
    return pairs > 0;
}

struct spread spread_of(const struct conformal *c, enum device_kind kind,
                        enum conformal_phase phase, bool small, enum transfer_kin kin,
                        const char *without_soc)
{
    struct spread out = {GUESS_SD, GUESS_SD, GUESS_SD, GUESS_SD, GUESS_SD};
    struct wanted w = {.phase = phase, .without_soc = without_soc, .small = small};
    struct selected s = select_rows(c, kind, w);
    if (s.n > 1) {
        models(&s, &out);
    }
    free(s.row);
    w.left = CONFORMAL_SOC;
    w.any_size = true;
    w.kin = kin;
    s = select_rows(c, kind, w);
    if (s.n > 1 && !machines(&s, &out) && kin != TRANSFER_ANY) {
        free(s.row);
        w.kin = TRANSFER_ANY;
        s = select_rows(c, kind, w);
        (void)machines(&s, &out);
    }
    free(s.row);
    return out;
}
