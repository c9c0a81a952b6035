#include "hwmodels/conformal.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>

#include "hwmodels/conformal_rows.h"
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
    {"mixture", CSV_WHOLE, OF(mixture), .max = 1, .or_missing = true},
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
    /* Short prompts are separate, because launches and rows that do not fill the device dominate,
     * so their errors differ. */
    return !prefill                          ? CONFORMAL_DECODE
           : tokens < CONFORMAL_SHORT_TOKENS ? CONFORMAL_SHORT_PREFILL
                                             : CONFORMAL_PREFILL;
}

struct conformal_query conformal_query_of(const struct conformal_row *r)
{
    return (struct conformal_query){.soc = r->soc,
                                    .family = r->family,
                                    .kind = r->kind,
                                    .phase = r->phase,
                                    .weights = r->weights,
                                    .tokens = r->tokens,
                                    .mixture = r->mixture,
                                    .left = r->left,
                                    .without_model = r->left == CONFORMAL_MODEL ? r->model : NULL,
                                    .without_soc = r->left == CONFORMAL_MODEL ? NULL : r->soc};
}

double conformal_mixture(bool mixture, enum conformal_phase phase)
{
    return mixture && phase == CONFORMAL_DECODE ? CONFORMAL_MIXTURE : 1.0;
}

/* The scale of errors: errors are divided by it, and intervals multiplied. */
static double width_of(double distance, bool mixture, enum conformal_phase phase)
{
    return (1.0 + CONFORMAL_WIDEN * distance) * conformal_mixture(mixture, phase);
}

/* ---- reading ---- */

int conformal_read(const char *path, struct conformal *out, struct err *e)
{
    static const struct conformal_row blank = {.runtime = "", .source = ""};
    static const struct csv_table table = CSV_TABLE(fields, sizeof blank, .blank = &blank);
    *out = (struct conformal){0};
    out->v = csv_table_read(&table, path, &out->n, e);
    if (out->v == NULL) {
        return -EINVAL;
    }
    conformal_prepare(out);
    conformal_rows_measure(out);
    return 0;
}

/* ---- two variances ---- */

#define N_LEFT 4
#define N_KINDS DEVICE_KIND_COUNT
#define LEVELS 4
#define N_NODES (1 + N_LEFT + N_LEFT * N_KINDS + N_LEFT * N_KINDS * 2)

/* Sums of the errors of a group within a node. */
struct cell {
    double n, sum, square;
};

/* Sums over the groups of a node. */
struct node {
    double groups, rows;
    double between; /* sum of the groups' squared means */
    double within;  /* sum of squared deviations from the groups' means */
};

struct variances {
    const struct conformal_row **row; /* [n] rows that count; owned */
    double *error;                    /* [n] for distance 0; owned */
    size_t *group;                    /* [n]; owned */
    size_t n, n_groups;
    struct cell *cell; /* [n_groups][N_NODES]; owned */
    double *others;    /* [n_groups][N_NODES] sd_of without the group; NaN: not computed; owned */
    struct node node[N_NODES];
};

/* The nodes of a row, from all rows of its phase to those of its class, kind and size. */
static void path_of(enum conformal_left left, enum device_kind kind, double weights,
                    int out[LEVELS])
{
    int of_kind = (int)left * N_KINDS + (int)kind;
    out[0] = 0;
    out[1] = 1 + (int)left;
    out[2] = 1 + N_LEFT + of_kind;
    out[3] = 1 + N_LEFT + N_LEFT * N_KINDS + 2 * of_kind + (weights < CONFORMAL_SMALL_WEIGHTS);
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
    size_t most = c->n + 1;
    struct variances v = {.row = xmalloc(most * sizeof(const struct conformal_row *)),
                          .error = xmalloc(most * sizeof *v.error),
                          .group = xmalloc(most * sizeof *v.group)};
    struct conformal_left_out out = conformal_rows_left_out(q);
    OWNED size_t *numbers = xcalloc(c->n_groups + 1, sizeof *numbers);
    for (size_t i = 0; i < c->n; i++) {
        const struct conformal_row *r = &c->v[i];
        if (conformal_rows_counts(r, &out)) {
            size_t *group = &numbers[r->group];
            if (*group == 0) {
                *group = ++v.n_groups;
            }
            v.row[v.n] = r;
            v.error[v.n] = r->ln_error / width_of(r->distance, r->mixture, r->phase);
            v.group[v.n++] = *group - 1;
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
    v.others = xmalloc((v.n_groups * N_NODES + 1) * sizeof *v.others);
    for (size_t i = 0; i < v.n_groups * N_NODES; i++) {
        node_add(&v.node[i % N_NODES], &v.cell[i], 1.0);
        v.others[i] = (double)NAN;
    }
    return v;
}

static void variances_fini(struct variances *v)
{
    free(v->row);
    free(v->error);
    free(v->group);
    free(v->cell);
    free(v->others);
}

/* The standard deviation at the end of a path, between and within groups together. Each node is
 * shrunk to its parent, as if CONFORMAL_PRIOR_GROUPS groups had the parent's variance. `without`: a
 * group to leave out, or SIZE_MAX. NaN: no groups. */
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

/* A new group is exchangeable with those of the rows, and may have a larger ratio than all of them.
 */
static double quantile_of(double *ratio, size_t n, size_t groups, double level_frac)
{
    return sample_quantile_of(ratio, n, fmin(1.0, level_frac * (1.0 + 1.0 / (double)groups)));
}

/* The `level_frac` quantile of |error| over its standard deviation, for the phase's rows, each with
 * the variances of the other groups. So errors need not be normal. Tails may differ by kind of
 * device, so a kind with enough groups has its own quantile. */
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
        /* Cached, because many rows share a group and class. */
        double *known = &v->others[v->group[i] * N_NODES + (size_t)path[LEVELS - 1]];
        double sd = *known = isnan(*known) ? sd_of(v, path, v->group[i]) : *known;
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
    return groups < CONFORMAL_KIND_GROUPS ? quantile_of(all, n, v->n_groups, level_frac)
                                          : quantile_of(own, n_own, groups, level_frac);
}

struct conformal_interval conformal_of(const struct conformal *c, const struct conformal_query *q,
                                       double level_frac)
{
    struct conformal_interval out = {.low_factor = 0.0,
                                     .high_factor = (double)INFINITY,
                                     .left = q->left,
                                     .distance = conformal_rows_distance(c, q),
                                     .pool = "all"};
    SCOPED(variances_fini) struct variances v = variances_of(c, q);
    int path[LEVELS];
    path_of(q->left, q->kind, q->weights, path);
    double sd = sd_of(&v, path, SIZE_MAX);
    if (!isnan(sd)) {
        double half =
            deviations(&v, q->kind, level_frac) * sd * width_of(out.distance, q->mixture, q->phase);
        out.low_factor = exp(-half);
        out.high_factor = exp(half);
    }
    /* The narrowest class with rows. */
    for (int k = 0; k < 3; k++) {
        if (v.node[path[k]].rows > 0.5) {
            out.n = (size_t)lround(v.node[path[k]].rows);
            out.pool = k == 2 ? kind_names[q->kind] : "all";
        }
    }
    return out;
}

/* Logarithm of conformal_of's high_factor, from variances that queries share. *known: deviations
 * of the query's kind, NaN until they are computed. */
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
    return log(exp(*known * sd * width_of(conformal_rows_distance(c, q), q->mixture, q->phase)));
}

void conformal_draws(const struct conformal *c, const struct conformal_query *q, const double *u,
                     size_t n, double *out)
{
    SCOPED(variances_fini) struct variances v = variances_of(c, q);
    for (size_t i = 0; i < n; i++) {
        double known = (double)NAN;
        double half = half_of(c, &v, q, fabs(2.0 * u[i] - 1.0), &known);
        out[i] = !isfinite(half) ? 0.0 : u[i] < 0.5 ? -half : half;
    }
}

/* Half-widths of the intervals of the chosen rows [n]. Rows that leave out the same model or SoC
 * share their variances, whose computation takes most of the time. */
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
            if (chosen[j] && r->group == c->v[i].group) {
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
