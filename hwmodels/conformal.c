#include "hwmodels/conformal.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>

#include "sim/base/csv_record.h"
#include "sim/base/quantile.h"

const char *const conformal_phase_names[] = {"prefill", "short_prefill", "decode", "memory", NULL};
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
    {"source", CSV_TEXT, OF(source), .or_empty = true, .or_missing = true},
};

enum conformal_phase conformal_phase_of(bool prefill, uint32_t tokens)
{
    /* Short prompts apart: launches and rows that do not fill the device decide there, so that
     * their errors are others than those of long ones. */
    return !prefill                          ? CONFORMAL_DECODE
           : tokens < CONFORMAL_SHORT_TOKENS ? CONFORMAL_SHORT_PREFILL
                                             : CONFORMAL_PREFILL;
}

enum { N_PHASES = sizeof conformal_phase_names / sizeof conformal_phase_names[0] - 1 };

/* ---- rows that count ---- */

static const char *family_of(const struct conformal_query *q)
{
    return q->family != NULL && q->family[0] != '\0' ? q->family : q->soc;
}

/* Of the phase, and of no model or SoC that the query leaves out. What such a SoC predicted of
 * others goes with what others predicted of it: of a pair of machines the one error is about the
 * other's, turned round. */
static bool counts(const struct conformal_row *r, const struct conformal_query *q)
{
    return r->phase == q->phase &&
           (q->without_model == NULL || strcmp(r->model, q->without_model) != 0) &&
           (q->without_soc == NULL ||
            (strcmp(r->soc, q->without_soc) != 0 && strcmp(r->by, q->without_soc) != 0));
}

/* ---- distances ---- */

/* Natural logarithms apart, of weights and of tokens; the larger of the two. */
static double apart(double weights_a, double tokens_a, double weights_b, double tokens_b)
{
    double w = fabs(log(weights_a / weights_b));
    double t = fabs(log((tokens_a + 1.0) / (tokens_b + 1.0)));
    return fmax(w, t);
}

/* To the nearest row of the query's family, device and phase that a fit has kept. Rows of a model,
 * or of a SoC, that scores leave out are left out here, too. The rows to look at are rows[n], or
 * all where it is NULL. */
static double distance_among(const struct conformal *c, const size_t *rows, size_t n,
                             const struct conformal_query *q)
{
    double least = (double)INFINITY;
    for (size_t i = 0; i < n; i++) {
        const struct conformal_row *r = &c->v[rows != NULL ? rows[i] : i];
        /* What is measured stands once among the rows whose model was left out; rows whose SoC was
         * left out repeat it for each SoC that predicted it. */
        if (r->left == CONFORMAL_MODEL && r->kind == q->kind &&
            strcmp(r->family, family_of(q)) == 0 && counts(r, q)) {
            least = fmin(least, apart(q->weights, q->tokens, r->weights, r->tokens));
        }
    }
    return isfinite(least) ? least : 0.0; /* a family of its own: its pool is another's */
}

static double distance_of(const struct conformal *c, const struct conformal_query *q)
{
    return distance_among(c, NULL, c->n, q);
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

/* Of every row. Each looks at those of its phase and kind whose model was left out, and not at all:
 * that would be most of the time of a command that reads the table. */
static void measure_distances(struct conformal *c)
{
    OWNED size_t *rows = xmalloc((c->n + 1) * sizeof *rows);
    for (int phase = 0; phase < N_PHASES; phase++) {
        for (int kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
            size_t n = 0;
            for (size_t i = 0; i < c->n; i++) {
                const struct conformal_row *r = &c->v[i];
                if (r->left == CONFORMAL_MODEL && (int)r->phase == phase && (int)r->kind == kind) {
                    rows[n++] = i;
                }
            }
            for (size_t i = 0; i < c->n; i++) {
                if ((int)c->v[i].phase == phase && (int)c->v[i].kind == kind) {
                    /* The model's own rows at other lengths do not count where the model was left
                     * out, nor the SoC's own where the SoC was: a fit has not seen them either. */
                    struct conformal_query q = conformal_query_of(&c->v[i]);
                    c->v[i].distance = distance_among(c, rows, n, &q);
                }
            }
        }
    }
}

/* ---- reading ---- */

int conformal_read(const char *path, struct conformal *out, struct err *e)
{
    *out = (struct conformal){0};
    size_t before = e->n;
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_open(path, e);
    if (f == NULL) {
        return -EINVAL;
    }
    struct csv_record record;
    (void)csv_record_init(&record, f, fields, sizeof fields / sizeof fields[0], e);
    while (e->n == before && csvfile_next(f, e) > 0) {
        out->v = xgrow(out->v, out->n, sizeof *out->v);
        csv_record_take(&record, &out->v[out->n++], e);
    }
    if (e->n > before) {
        conformal_fini(out);
        return -EINVAL;
    }
    measure_distances(out);
    return 0;
}

void conformal_fini(struct conformal *c)
{
    free(c->v);
    *c = (struct conformal){0};
}

/* ---- two variances ---- */

#define N_LEFT 4
#define N_KINDS DEVICE_KIND_COUNT
#define LEVELS 4
#define N_NODES (1 + N_LEFT + N_LEFT * N_KINDS + N_LEFT * N_KINDS * 2)

/* Errors of one group, within one node. */
struct cell {
    double n, sum, square;
};

/* Over the groups of a node. */
struct node {
    double groups, rows;
    double between; /* sum of the groups' squared means */
    double within;  /* sum of squared deviations from them */
};

struct variances {
    const struct conformal_row **row; /* [n] those that count; owned */
    double *error;                    /* [n] for distance 0; owned */
    size_t *group;                    /* [n]; owned */
    size_t n, n_groups;
    struct cell *cell; /* [n_groups][N_NODES]; owned */
    struct node node[N_NODES];
};

/* The nodes of a row, from all classes of its phase to its own class, kind and size. */
static void path_of(enum conformal_left left, enum device_kind kind, double weights,
                    int out[LEVELS])
{
    int of_kind = (int)left * N_KINDS + (int)kind;
    out[0] = 0;
    out[1] = 1 + (int)left;
    out[2] = 1 + N_LEFT + of_kind;
    out[3] = 1 + N_LEFT + N_LEFT * N_KINDS + 2 * of_kind + (weights < CONFORMAL_SMALL_WEIGHTS);
}

/* What is left out together is off together: a shape of matrices that suits a kernel less, or a
 * clock that the data sheet does not state. */
static const char *group_of(const struct conformal_row *r)
{
    return r->left == CONFORMAL_MODEL ? r->model : r->soc;
}

static size_t group_index(const struct variances *v, const struct conformal_row *r,
                          const size_t *first)
{
    for (size_t g = v->n_groups; g-- > 0;) { /* rows of a group follow each other */
        const struct conformal_row *a = v->row[first[g]];
        if (a->left == r->left && strcmp(group_of(a), group_of(r)) == 0) {
            return g;
        }
    }
    return v->n_groups;
}

static void node_add(struct node *node, const struct cell *c, double sign)
{
    if (c->n > 0.0) {
        double mean = c->sum / c->n;
        node->groups += sign;
        node->rows += sign * c->n;
        node->between += sign * mean * mean;
        node->within += sign * fmax(0.0, c->square - c->n * mean * mean);
    }
}

static struct variances variances_of(const struct conformal *c, const struct conformal_query *q)
{
    struct variances v = {.row = xmalloc((c->n + 1) * sizeof(const struct conformal_row *)),
                          .error = xmalloc((c->n + 1) * sizeof *v.error),
                          .group = xmalloc((c->n + 1) * sizeof *v.group)};
    OWNED size_t *first = xmalloc((c->n + 1) * sizeof *first);
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        if (counts(r, q)) {
            v.row[v.n] = r;
            v.error[v.n] = r->ln_error / (1.0 + CONFORMAL_WIDEN * r->distance);
            v.group[v.n] = group_index(&v, r, first);
            if (v.group[v.n] == v.n_groups) {
                first[v.n_groups++] = v.n;
            }
            v.n++;
        }
    }
    v.cell = xcalloc(v.n_groups * N_NODES + 1, sizeof *v.cell);
    for (size_t i = 0; i < v.n; i++) {
        int path[LEVELS];
        path_of(v.row[i]->left, v.row[i]->kind, v.row[i]->weights, path);
        for (int k = 0; k < LEVELS; k++) {
            struct cell *cell = &v.cell[v.group[i] * N_NODES + (size_t)path[k]];
            cell->n += 1.0;
            cell->sum += v.error[i];
            cell->square += v.error[i] * v.error[i];
        }
    }
    for (size_t i = 0; i < v.n_groups * N_NODES; i++) {
        node_add(&v.node[i % N_NODES], &v.cell[i], 1.0);
    }
    return v;
}

static void variances_fini(struct variances *v)
{
    free(v->row);
    free(v->error);
    free(v->group);
    free(v->cell);
}

/* The standard deviation at the end of a path, between and within groups together; each node is
 * drawn to the one above it as if CONFORMAL_PRIOR_GROUPS groups had that one's variance. `without`:
 * a group that does not count, SIZE_MAX for none. NaN without any group. */
static double sd_of(const struct variances *v, const int path[LEVELS], size_t without)
{
    double variance = (double)NAN;
    for (int k = 0; k < LEVELS; k++) {
        struct node node = v->node[path[k]];
        if (without != SIZE_MAX) {
            node_add(&node, &v->cell[without * N_NODES + (size_t)path[k]], -1.0);
        }
        if (node.groups < 0.5) {
            continue;
        }
        double own = fmax(node.between, 0.0) / node.groups + fmax(node.within, 0.0) / node.rows;
        double prior = CONFORMAL_PRIOR_GROUPS;
        variance =
            isnan(variance) ? own : (node.groups * own + prior * variance) / (node.groups + prior);
    }
    return sqrt(variance);
}

/* How many standard deviations `level_frac` of the phase's rows are off at most, each by the
 * variances of the other groups: their form need not be normal. Errors on one kind of device may
 * have longer tails than those on all: its own quantile counts where it is larger, and of enough
 * groups. */
static double deviations(const struct variances *v, enum device_kind kind, double level_frac)
{
    OWNED double *all = xmalloc((v->n + 1) * sizeof *all);
    OWNED double *own = xmalloc((v->n + 1) * sizeof *own);
    OWNED bool *has = xcalloc(v->n_groups + 1, sizeof *has);
    size_t n = 0;
    size_t n_own = 0;
    size_t groups = 0;
    for (size_t i = 0; i < v->n; i++) {
        int path[LEVELS];
        path_of(v->row[i]->left, v->row[i]->kind, v->row[i]->weights, path);
        double sd = sd_of(v, path, v->group[i]);
        if (!(sd > 0.0)) {
            continue;
        }
        all[n++] = fabs(v->error[i]) / sd;
        if (v->row[i]->kind == kind) {
            own[n_own++] = all[n - 1];
            groups += has[v->group[i]] ? 0 : 1;
            has[v->group[i]] = true;
        }
    }
    SIM_ASSERT(n_own <= n && groups <= n_own && (groups == 0) == (n_own == 0));
    if (n == 0) {
        return gsl_cdf_ugaussian_Pinv(0.5 + 0.5 * level_frac);
    }
    /* The new group is one more, and may be further off than all others. */
    double level = fmin(1.0, level_frac * (1.0 + 1.0 / (double)v->n_groups));
    double most = sample_quantile_of(all, n, level);
    return groups < CONFORMAL_KIND_GROUPS ? most
                                          : fmax(most, sample_quantile_of(own, n_own, level));
}

struct conformal_interval conformal_of(const struct conformal *c, const struct conformal_query *q,
                                       double level_frac)
{
    struct conformal_interval out = {.low_factor = 0.0,
                                     .high_factor = (double)INFINITY,
                                     .left = q->left,
                                     .distance = distance_of(c, q),
                                     .pool = "all"};
    SCOPED(variances_fini) struct variances v = variances_of(c, q);
    int path[LEVELS];
    path_of(q->left, q->kind, q->weights, path);
    double sd = sd_of(&v, path, SIZE_MAX);
    if (!isnan(sd)) {
        double half =
            deviations(&v, q->kind, level_frac) * sd * (1.0 + CONFORMAL_WIDEN * out.distance);
        out.low_factor = exp(-half);
        out.high_factor = exp(half);
    }
    /* The narrowest class that has rows at all. */
    for (int k = 0; k < 3; k++) {
        if (v.node[path[k]].rows > 0.5) {
            out.n = (size_t)lround(v.node[path[k]].rows);
            out.pool = k == 2 ? kind_names[q->kind] : "all";
        }
    }
    return out;
}

double conformal_draw(const struct conformal *c, const struct conformal_query *q, double u)
{
    double half = log(conformal_of(c, q, fabs(2.0 * u - 1.0)).high_factor);
    return !isfinite(half) ? 0.0 : u < 0.5 ? -half : half;
}

/* What conformal_of says of a query that leaves out what `v` does; deviations: of its kind, NaN
 * where they are not known yet. */
static double half_of(const struct conformal *c, const struct variances *v,
                      const struct conformal_query *q, double level_frac, double *known)
{
    int path[LEVELS];
    path_of(q->left, q->kind, q->weights, path);
    double sd = sd_of(v, path, SIZE_MAX);
    if (isnan(sd)) {
        return (double)INFINITY;
    }
    if (isnan(*known)) {
        *known = deviations(v, q->kind, level_frac);
    }
    return log(exp(*known * sd * (1.0 + CONFORMAL_WIDEN * distance_of(c, q))));
}

/* Halves of the intervals of the rows of [n] that are chosen. Those that leave out the same model,
 * or SoC, share their variances, which take most of the time. */
static void cover(const struct conformal *c, bool *chosen, double level_frac, double *half,
                  struct conformal_coverage *out)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!chosen[i]) {
            continue;
        }
        struct conformal_query first = conformal_query_of(&c->v[i]);
        SCOPED(variances_fini) struct variances v = variances_of(c, &first);
        double known[N_KINDS];
        for (int k = 0; k < N_KINDS; k++) {
            known[k] = (double)NAN;
        }
        for (size_t j = i; j < c->n; j++) {
            const struct conformal_row *r = &c->v[j];
            if (chosen[j] && r->left == c->v[i].left &&
                strcmp(group_of(r), group_of(&c->v[i])) == 0) {
                struct conformal_query q = conformal_query_of(r);
                chosen[j] = false;
                half[out->n] = half_of(c, &v, &q, level_frac, &known[q.kind]);
                out->inside += fabs(r->ln_error) <= half[out->n++];
            }
        }
    }
}

struct conformal_coverage conformal_cover(const struct conformal *c, enum conformal_left left,
                                          enum conformal_phase phase, double level_frac)
{
    struct conformal_coverage out = {0};
    OWNED double *half = xmalloc((c->n + 1) * sizeof *half);
    OWNED bool *chosen = xcalloc(c->n + 1, sizeof *chosen);
    for (size_t i = 0; i < c->n; i++) {
        chosen[i] = c->v[i].left == left && c->v[i].phase == phase;
    }
    cover(c, chosen, level_frac, half, &out);
    if (out.n > 0) {
        gsl_sort(half, 1, out.n);
        out.median_half = half[out.n / 2];
    }
    return out;
}

struct conformal_coverage conformal_cover_draws(const struct conformal *c, enum device_kind kind,
                                                enum conformal_phase phase, double level_frac)
{
    struct conformal_coverage out = {0};
    OWNED double *half = xmalloc((c->n + 1) * sizeof *half);
    OWNED bool *chosen = xcalloc(c->n + 1, sizeof *chosen);
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        chosen[i] = r->left == CONFORMAL_MODEL && r->kind == kind && r->phase == phase;
    }
    cover(c, chosen, level_frac, half, &out);
    return out;
}
