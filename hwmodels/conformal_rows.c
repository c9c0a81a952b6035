#include "hwmodels/conformal_rows.h"

/* The difference of two logarithms differs from the logarithm of the quotient by less. */
#define LN_SLACK 1e-9

static const char *kept(const char *text)
{
    return text != NULL ? xkeep(xstrdup(text)) : NULL;
}

/* Rows that are left out together share an error: a shape of matrices that suits a kernel less, or
 * a clock that the data sheet does not state. */
static const char *shared_by(const struct conformal_row *r)
{
    return r->left == CONFORMAL_MODEL ? r->model : r->soc;
}

/* The family of a SoC by its rows in the table; "": it has none. */
static const char *family_of(const struct conformal *c, const char *soc)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->v[i].soc == soc) {
            return c->v[i].family;
        }
    }
    return "";
}

void conformal_prepare(struct conformal *c)
{
    OWNED const struct conformal_row **first = xmalloc((c->n + 1) * sizeof(struct conformal_row *));
    c->n_groups = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct conformal_row *r = &c->v[i];
        r->soc = kept(r->soc);
        r->by = kept(r->by);
        r->family = kept(r->family);
        r->model = kept(r->model);
        r->ln_weights = log(r->weights);
        r->ln_tokens = log(r->tokens + 1.0);
        r->group = 0;
        while (r->group < c->n_groups &&
               (first[r->group]->left != r->left || shared_by(first[r->group]) != shared_by(r))) {
            r->group++;
        }
        if (r->group == c->n_groups) {
            first[c->n_groups++] = r;
        }
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        bool same_maker = i > 0 && c->v[i - 1].by == r->by && c->v[i - 1].soc == r->soc;
        c->v[i].within_family =
            same_maker ? c->v[i - 1].within_family : strcmp(family_of(c, r->by), r->family) == 0;
    }
}

struct conformal_left_out conformal_rows_left_out(const struct conformal_query *q)
{
    return (struct conformal_left_out){
        .phase = q->phase, .model = kept(q->without_model), .soc = kept(q->without_soc)};
}

/* ---- distances ---- */

/* Origin of a distance. */
struct place {
    struct conformal_left_out out;
    enum device_kind kind;
    const char *family;
    double weights, tokens, ln_weights, ln_tokens;
};

/* Distance: the larger one of |ln| of the ratio of weights and of tokens. */
static double apart(double weights_a, double tokens_a, double weights_b, double tokens_b)
{
    double w = fabs(log(weights_a / weights_b));
    double t = fabs(log((tokens_a + 1.0) / (tokens_b + 1.0)));
    return fmax(w, t);
}

/* Least distance to the rows which[n], or to all if it is NULL. Rows of a model or SoC that the
 * score leaves out do not count. */
static double distance_among(const struct conformal *c, const size_t *which, size_t n,
                             const struct place *p)
{
    double least = (double)INFINITY;
    for (size_t k = 0; k < n; k++) {
        size_t i = which != NULL ? which[k] : k;
        const struct conformal_row *r = &c->v[i];
        /* Most rows are much further away than the nearest one, which this decides without
         * logarithms. */
        if (r->family != p->family || fabs(p->ln_weights - r->ln_weights) > least + LN_SLACK ||
            fabs(p->ln_tokens - r->ln_tokens) > least + LN_SLACK) {
            continue;
        }
        /* Rows with left-out models have each measurement once; rows with left-out SoCs repeat it
         * for each SoC that predicted it. */
        if (r->left == CONFORMAL_MODEL && r->kind == p->kind && conformal_rows_counts(r, &p->out)) {
            least = fmin(least, apart(p->weights, p->tokens, r->weights, r->tokens));
        }
    }
    return isfinite(least) ? least : 0.0; /* a family of its own: its pool is another's */
}

double conformal_rows_distance(const struct conformal *c, const struct conformal_query *q)
{
    bool named = q->family != NULL && q->family[0] != '\0';
    struct place p = {.out = conformal_rows_left_out(q),
                      .kind = q->kind,
                      .family = kept(named ? q->family : q->soc),
                      .weights = q->weights,
                      .tokens = q->tokens,
                      .ln_weights = log(q->weights),
                      .ln_tokens = log(q->tokens + 1.0)};
    return distance_among(c, NULL, c->n, &p);
}

/* If the model (or SoC) was left out, its rows at other lengths do not count, because the fit did
 * not have them either (conformal_query_of). */
static struct place place_of(const struct conformal_row *r)
{
    bool model = r->left == CONFORMAL_MODEL;
    return (struct place){
        .out = {.phase = r->phase, .model = model ? r->model : NULL, .soc = model ? NULL : r->soc},
        .kind = r->kind,
        .family = r->family[0] != '\0' ? r->family : r->soc,
        .weights = r->weights,
        .tokens = r->tokens,
        .ln_weights = r->ln_weights,
        .ln_tokens = r->ln_tokens};
}

/* Only checks rows of the same phase and kind whose model was left out. Checking all would take
 * most of the time of a command that reads the table. */
void conformal_rows_measure(struct conformal *c)
{
    OWNED size_t *which = xmalloc((c->n + 1) * sizeof *which);
    for (int phase = 0; conformal_phase_names[phase] != NULL; phase++) {
        for (int kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
            size_t n = 0;
            for (size_t i = 0; i < c->n; i++) {
                const struct conformal_row *r = &c->v[i];
                if (r->left == CONFORMAL_MODEL && (int)r->phase == phase && (int)r->kind == kind) {
                    which[n++] = i;
                }
            }
            for (size_t i = 0; i < c->n; i++) {
                if ((int)c->v[i].phase == phase && (int)c->v[i].kind == kind) {
                    struct place p = place_of(&c->v[i]);
                    c->v[i].distance = distance_among(c, which, n, &p);
                }
            }
        }
    }
}
