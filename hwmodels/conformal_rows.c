#include "hwmodels/conformal_rows.h"

#include <math.h>
#include <string.h>

#include "sim/base/hash.h"

/* Logarithms of two numbers differ from that of their quotient by less. */
#define LN_SLACK 1e-9

/* ---- texts ---- */

static uint32_t number_find(const struct conformal_rows *rows, const char *text)
{
    for (uint32_t k = 0; text != NULL && k < rows->n_texts; k++) {
        if (strcmp(rows->text[k], text) == 0) {
            return k;
        }
    }
    return CONFORMAL_NO_TEXT;
}

/* Numbers of texts by their hash: a table has thousands of rows and hundreds of texts. */
struct numbering {
    uint32_t *slot; /* [size] number + 1, 0: free; owned */
    size_t size;    /* a power of two, more than twice the texts */
};

static uint32_t *slot_of(const struct numbering *x, const struct conformal_rows *rows,
                         const char *text)
{
    size_t i = (size_t)hash_string(HASH_INIT, text) & (x->size - 1);
    while (x->slot[i] != 0 && strcmp(rows->text[x->slot[i] - 1], text) != 0) {
        i = (i + 1) & (x->size - 1);
    }
    return &x->slot[i];
}

static void make_room(struct numbering *x, const struct conformal_rows *rows)
{
    if (2 * ((size_t)rows->n_texts + 1) < x->size) {
        return;
    }
    free(x->slot);
    x->size = x->size == 0 ? 32 : 2 * x->size;
    x->slot = xcalloc(x->size, sizeof *x->slot);
    for (uint32_t k = 0; k < rows->n_texts; k++) {
        *slot_of(x, rows, rows->text[k]) = k + 1;
    }
}

/* `before`: the number of the row before, which most often has the same text. */
static uint32_t number_of(struct conformal_rows *rows, struct numbering *x, const char *text,
                          uint32_t before)
{
    if (before < rows->n_texts && strcmp(rows->text[before], text) == 0) {
        return before;
    }
    make_room(x, rows);
    uint32_t *slot = slot_of(x, rows, text);
    if (*slot == 0) {
        rows->text = xgrow(rows->text, rows->n_texts, sizeof(const char *));
        rows->text[rows->n_texts] = text;
        *slot = ++rows->n_texts;
    }
    return *slot - 1;
}

static struct conformal_rows rows_of(const struct conformal *c)
{
    struct conformal_rows out = {.row = c->v, .v = xmalloc((c->n + 1) * sizeof *out.v), .n = c->n};
    struct conformal_row_numbers n = {0};
    struct numbering x = {0};
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        n.phase = r->phase;
        n.soc = number_of(&out, &x, r->soc, n.soc);
        n.by = number_of(&out, &x, r->by, n.by);
        n.family = number_of(&out, &x, r->family, n.family);
        n.model = number_of(&out, &x, r->model, n.model);
        /* What is left out together is off together: a shape of matrices that suits a kernel less,
         * or a clock that the data sheet does not state. */
        n.group = r->left == CONFORMAL_MODEL ? n.model : n.soc;
        n.ln_weights = log(r->weights);
        n.ln_tokens = log(r->tokens + 1.0);
        out.v[i] = n;
    }
    free(x.slot);
    return out;
}

const struct conformal_rows *conformal_rows_of(const struct conformal *c,
                                               struct conformal_rows *own)
{
    *own = c->rows == NULL ? rows_of(c) : (struct conformal_rows){0};
    return c->rows == NULL ? own : c->rows;
}

void conformal_rows_fini(struct conformal_rows *rows)
{
    free(rows->v);
    free(rows->text);
    *rows = (struct conformal_rows){0};
}

struct conformal_left_out conformal_rows_left_out(const struct conformal_rows *rows,
                                                  const struct conformal_query *q)
{
    return (struct conformal_left_out){.phase = q->phase,
                                       .model = number_find(rows, q->without_model),
                                       .soc = number_find(rows, q->without_soc)};
}

/* ---- distances ---- */

/* What a distance is measured from. */
struct place {
    struct conformal_left_out out;
    enum device_kind kind;
    uint32_t family;
    double weights, tokens, ln_weights, ln_tokens;
};

/* Natural logarithms apart, of weights and of tokens; the larger of the two. */
static double apart(double weights_a, double tokens_a, double weights_b, double tokens_b)
{
    double w = fabs(log(weights_a / weights_b));
    double t = fabs(log((tokens_a + 1.0) / (tokens_b + 1.0)));
    return fmax(w, t);
}

/* Rows of a model, or of a SoC, that scores leave out are left out here, too. The rows to look at
 * are which[n], or all where it is NULL. */
static double distance_among(const struct conformal_rows *rows, const size_t *which, size_t n,
                             const struct place *p)
{
    double least = (double)INFINITY;
    for (size_t k = 0; k < n; k++) {
        size_t i = which != NULL ? which[k] : k;
        const struct conformal_row *r = &rows->row[i];
        const struct conformal_row_numbers *a = &rows->v[i];
        /* Most rows are further away than the nearest by far: that needs no logarithm. */
        if (a->family != p->family || fabs(p->ln_weights - a->ln_weights) > least + LN_SLACK ||
            fabs(p->ln_tokens - a->ln_tokens) > least + LN_SLACK) {
            continue;
        }
        /* What is measured is once among the rows whose model was left out; rows whose SoC was
         * left out repeat it for each SoC that predicted it. */
        if (r->left == CONFORMAL_MODEL && r->kind == p->kind &&
            conformal_rows_counts(rows, i, &p->out)) {
            least = fmin(least, apart(p->weights, p->tokens, r->weights, r->tokens));
        }
    }
    return isfinite(least) ? least : 0.0; /* a family of its own: its pool is another's */
}

double conformal_rows_distance(const struct conformal_rows *rows, const struct conformal_query *q)
{
    bool named = q->family != NULL && q->family[0] != '\0';
    struct place p = {.out = conformal_rows_left_out(rows, q),
                      .kind = q->kind,
                      .family = number_find(rows, named ? q->family : q->soc),
                      .weights = q->weights,
                      .tokens = q->tokens,
                      .ln_weights = log(q->weights),
                      .ln_tokens = log(q->tokens + 1.0)};
    return distance_among(rows, NULL, rows->n, &p);
}

/* The model's own rows at other lengths do not count where the model was left out, nor the SoC's
 * own where the SoC was: a fit has not seen them either (conformal_query_of). */
static struct place place_of(const struct conformal_rows *rows, size_t i)
{
    const struct conformal_row *r = &rows->row[i];
    const struct conformal_row_numbers *n = &rows->v[i];
    bool model = r->left == CONFORMAL_MODEL;
    return (struct place){.out = {.phase = r->phase,
                                  .model = model ? n->model : CONFORMAL_NO_TEXT,
                                  .soc = model ? CONFORMAL_NO_TEXT : n->soc},
                          .kind = r->kind,
                          .family = r->family[0] != '\0' ? n->family : n->soc,
                          .weights = r->weights,
                          .tokens = r->tokens,
                          .ln_weights = n->ln_weights,
                          .ln_tokens = n->ln_tokens};
}

/* Each row looks at those of its phase and kind whose model was left out, and not at all: that
 * would be most of the time of a command that reads the table. */
void conformal_rows_measure(struct conformal *c)
{
    struct conformal_rows *rows = c->rows = xmalloc(sizeof *rows);
    *rows = rows_of(c);
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
                    struct place p = place_of(rows, i);
                    c->v[i].distance = distance_among(rows, which, n, &p);
                }
            }
        }
    }
}
