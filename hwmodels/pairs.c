#include "hwmodels/pairs.h"

#include <gsl/gsl_cdf.h>

/* Sums over repetitions. */
struct sums {
    double n, x, xx;
};

static void sums_add(struct sums *s, double x)
{
    s->n += 1.0;
    s->x += x;
    s->xx += x * x;
}

static struct pairs_mean mean_of(const struct sums *s)
{
    struct pairs_mean m = {(double)NAN, (double)NAN, (double)NAN, (uint32_t)s->n};
    if (s->n > 0.0) {
        m.value = s->x / s->n;
    }
    if (s->n > 1.0) {
        double variance = fmax(0.0, s->xx - s->n * m.value * m.value) / (s->n - 1.0);
        double half = gsl_cdf_tdist_Pinv(0.975, s->n - 1.0) * sqrt(variance / s->n);
        m.low = m.value - half;
        m.high = m.value + half;
    }
    return m;
}

/* ---- observations: a victim's two rows, and those of its culprit ---- */

struct observation {
    const struct kernel_row *victim, *culprit; /* co_kernel_ms */
    double slowdown[2];
};

static bool is_pair(const struct kernel_rows *rows, size_t i)
{
    static const enum kernel_metric wanted[] = {KERNEL_METRIC_CO_MS, KERNEL_METRIC_SLOWDOWN,
                                                KERNEL_METRIC_CO_MS, KERNEL_METRIC_SLOWDOWN};
    for (size_t k = 0; k < 4; k++) {
        if (i + k >= rows->n || rows->v[i + k].metric != wanted[k] ||
            rows->v[i + k].repetition != rows->v[i].repetition) {
            return false;
        }
    }
    return true;
}

static bool is_usable(const struct kernel_row *co, const struct kernel_row *slowdown)
{
    return co->samples >= PAIRS_MIN_SAMPLES && co->value > 0.0 && slowdown->value > 0.0 &&
           strcmp(co->flag, "in_cache") != 0;
}

static double bytes_per_s(const struct kernel_row *co, double slowdown)
{
    return co->bytes / (co->value * 1e-3) * slowdown;
}

/* ---- cells ---- */

struct collection {
    struct pairs *out;
    struct sums *slowdowns;  /* by cell */
    struct sums (*rates)[4]; /* by cell: victim and culprit, isolated and co-running, bytes/s */
};

static size_t cell_find(struct collection *c, const struct kernel_row *v,
                        const struct kernel_row *x)
{
    struct pairs *p = c->out;
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_cell *cell = &p->cells[i];
        if (strcmp(cell->victim.device, v->device) == 0 &&
            strcmp(cell->victim.model, v->model) == 0 &&
            strcmp(cell->culprit.device, x->device) == 0 &&
            strcmp(cell->culprit.model, x->model) == 0) {
            return i;
        }
    }
    p->cells = xkept_grow(p->cells, p->n, sizeof *p->cells);
    c->slowdowns = xgrow(c->slowdowns, p->n, sizeof *c->slowdowns);
    c->rates = xgrow(c->rates, p->n, sizeof *c->rates);
    p->cells[p->n] = (struct pairs_cell){.victim = {.device = v->device, .model = v->model},
                                         .culprit = {.device = x->device, .model = x->model}};
    memset(&c->slowdowns[p->n], 0, sizeof *c->slowdowns);
    memset(&c->rates[p->n], 0, sizeof *c->rates);
    return p->n++;
}

static void observe(struct collection *c, const struct observation *o)
{
    const struct kernel_row *side[2] = {o->victim, o->culprit};
    for (int k = 0; k < 2; k++) { /* each is the other's victim */
        size_t i = cell_find(c, side[k], side[1 - k]);
        sums_add(&c->slowdowns[i], o->slowdown[k]);
        for (int s = 0; s < 2; s++) {
            int of = s == 0 ? k : 1 - k;
            sums_add(&c->rates[i][2 * s], bytes_per_s(side[of], o->slowdown[of]));
            sums_add(&c->rates[i][2 * s + 1], bytes_per_s(side[of], 1.0));
        }
    }
}

static void collect(struct collection *c, const struct kernel_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (!is_pair(rows, i)) {
            continue;
        }
        const struct kernel_row *r = &rows->v[i];
        c->out->rows++;
        if (!is_usable(&r[0], &r[1]) || !is_usable(&r[2], &r[3])) {
            c->out->left_out++;
        } else {
            observe(c, &(struct observation){&r[0], &r[2], {r[1].value, r[3].value}});
        }
        i += 3;
    }
}

/* ---- results ---- */

static void find_cap(struct pairs *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_cell *c = &p->cells[i];
        double both = c->victim.both_bytes_per_s + c->culprit.both_bytes_per_s;
        double asked = c->victim.alone_bytes_per_s + c->culprit.alone_bytes_per_s;
        p->most_bytes_per_s = fmax(p->most_bytes_per_s, both);
        p->asked_bytes_per_s = fmax(p->asked_bytes_per_s, asked);
    }
    p->saturated = p->asked_bytes_per_s > PAIRS_ABOVE * p->most_bytes_per_s;
    for (size_t i = 0; i < p->n; i++) {
        struct pairs_cell *c = &p->cells[i];
        c->above = p->saturated &&
                   c->victim.alone_bytes_per_s + c->culprit.alone_bytes_per_s > p->most_bytes_per_s;
    }
}

/* Fits the first device's share of the cap when both demand more. */
static void find_share(struct pairs *p)
{
    struct sums s = {0};
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_cell *c = &p->cells[i];
        const struct pairs_side *v = &c->victim;
        const struct pairs_side *x = &c->culprit;
        bool slowed = v->both_bytes_per_s * PAIRS_ABOVE < v->alone_bytes_per_s &&
                      x->both_bytes_per_s * PAIRS_ABOVE < x->alone_bytes_per_s;
        if (c->above && slowed && strcmp(v->device, p->devices[0]) == 0) {
            sums_add(&s, v->both_bytes_per_s / (v->both_bytes_per_s + x->both_bytes_per_s));
        }
    }
    p->share = mean_of(&s);
}

static void find_losses(struct pairs *p, const struct sums *slowdowns)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_side *v = &p->cells[i].victim;
        bool first = true;
        for (size_t k = 0; k < i && first; k++) {
            const struct pairs_side *w = &p->cells[k].victim;
            first = strcmp(v->device, w->device) != 0 || strcmp(v->model, w->model) != 0;
        }
        struct sums s = {0};
        for (size_t k = i; k < p->n && first; k++) {
            const struct pairs_side *w = &p->cells[k].victim;
            if (!p->cells[k].above && strcmp(v->device, w->device) == 0 &&
                strcmp(v->model, w->model) == 0) {
                s.n += slowdowns[k].n;
                s.x += slowdowns[k].x - slowdowns[k].n;
                s.xx += slowdowns[k].xx - 2.0 * slowdowns[k].x + slowdowns[k].n;
            }
        }
        if (s.n > 0.0) {
            KEPT_ADD(p->losses, p->n_losses, (struct pairs_loss){v->device, v->model, mean_of(&s)});
        }
    }
}

int pairs_make(struct pairs *out, const struct kernel_rows *rows, struct err *e)
{
    struct collection c = {.out = out};
    *out = (struct pairs){.n = 0};
    collect(&c, rows);
    for (size_t i = 0; i < out->n; i++) {
        struct pairs_cell *cell = &out->cells[i];
        cell->slowdown = mean_of(&c.slowdowns[i]);
        cell->victim.alone_bytes_per_s = mean_of(&c.rates[i][0]).value;
        cell->victim.both_bytes_per_s = mean_of(&c.rates[i][1]).value;
        cell->culprit.alone_bytes_per_s = mean_of(&c.rates[i][2]).value;
        cell->culprit.both_bytes_per_s = mean_of(&c.rates[i][3]).value;
    }
    if (out->n > 0) {
        out->devices[0] = out->cells[0].victim.device;
        out->devices[1] = out->cells[0].culprit.device;
        find_cap(out);
        find_share(out);
        find_losses(out, c.slowdowns);
    }
    free(c.slowdowns);
    free(c.rates);
    return out->n > 0 ? 0
                      : err_add(e,
                                "no pair of kernels has %d samples or more, and weights outside a "
                                "cache (%zu pair%s in all)",
                                PAIRS_MIN_SAMPLES, out->rows, text_plural(out->rows));
}
