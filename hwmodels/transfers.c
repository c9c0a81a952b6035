#include "hwmodels/transfers.h"

#include "sim/base/quantile.h"

enum transfer_kin transfer_kin_of(const struct conformal *c, const char *from, const char *family)
{
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->v[i].soc, from) == 0) {
            return strcmp(c->v[i].family, family) == 0 ? TRANSFER_WITHIN_FAMILY
                                                       : TRANSFER_ACROSS_FAMILIES;
        }
    }
    return TRANSFER_ANY;
}

static bool same_pair(const struct transfer_pair *p, const struct conformal_row *r)
{
    return p->kind == r->kind && strcmp(p->from, r->by) == 0 && strcmp(p->to, r->soc) == 0;
}

size_t transfer_pairs(const struct conformal *c, struct transfer_pair *out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        bool known = r->left != CONFORMAL_SOC;
        for (size_t k = 0; k < n && k < max && !known; k++) {
            known = same_pair(&out[k], r);
        }
        if (known) {
            continue;
        }
        if (n < max) {
            out[n] = (struct transfer_pair){r->by, r->soc, r->kind, r->within_family};
        }
        n++;
    }
    return n;
}

static bool matches(const struct conformal_row *r, const struct transfer_query *q)
{
    return r->left == CONFORMAL_SOC && r->kind == q->kind && r->phase == q->phase &&
           (q->from == NULL || strcmp(r->by, q->from) == 0) &&
           (q->to == NULL || strcmp(r->soc, q->to) == 0) &&
           (q->kin == TRANSFER_ANY || r->within_family == (q->kin == TRANSFER_WITHIN_FAMILY));
}

static void fill(const struct conformal *c, const struct transfer_query *q, double *scratch,
                 struct transfer_error *out)
{
    out->n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (matches(&c->v[i], q)) {
            /* A fraction of the measured time, as in tables of errors. */
            scratch[out->n++] = expm1(c->v[i].ln_error);
        }
    }
    /* Before signs are dropped: the bias of transfers. */
    out->bias_frac = sample_quantile_of(scratch, out->n, 0.5);
    for (size_t i = 0; i < out->n; i++) {
        scratch[i] = fabs(scratch[i]);
    }
    out->median_frac = sample_quantile_of(scratch, out->n, 0.5);
    out->p90_frac = sample_quantile_of(scratch, out->n, 0.9);
}

struct transfer_error transfer_error_of(const struct conformal *c, const struct transfer_query *q)
{
    struct transfer_error out = {.least_frac = (double)NAN, .most_frac = (double)NAN};
    OWNED double *scratch = xmalloc((c->n + 1) * sizeof *scratch);
    OWNED struct transfer_pair *pairs = xmalloc((c->n + 1) * sizeof *pairs);
    size_t n = transfer_pairs(c, pairs, c->n);
    fill(c, q, scratch, &out);
    for (size_t i = 0; i < n; i++) {
        struct transfer_query one = *q;
        struct transfer_error x;
        one.from = pairs[i].from;
        one.to = pairs[i].to;
        bool asked = pairs[i].kind == q->kind &&
                     (q->from == NULL || strcmp(q->from, one.from) == 0) &&
                     (q->to == NULL || strcmp(q->to, one.to) == 0);
        if (!asked) {
            continue;
        }
        fill(c, &one, scratch, &x);
        if (x.n > 0) {
            out.least_frac = out.pairs == 0 ? x.median_frac : fmin(out.least_frac, x.median_frac);
            out.most_frac = out.pairs == 0 ? x.median_frac : fmax(out.most_frac, x.median_frac);
            out.pairs++;
        }
    }
    return out;
}
