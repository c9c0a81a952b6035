/* Predicts load times of models from the loads in the reference table.
 *
 *     seconds = layers of the model x seconds per layer
 *
 * Seconds per layer belong to a kind of device and a toolchain. They are the geometric mean of the
 * published loads, without those of the row's own publication. Compiling or preparing a layer costs
 * more than reading its weights: on CPUs, loads per layer differ by a factor of 2, loads per byte
 * by
 * 4. A compiled model is read by its bytes instead, with seconds per GB as the number.
 *
 * The interval is Student's. Its variance is that within all groups, since each group has two rows.
 * A toolchain without another row is not predicted, because NPU compilers differ a hundredfold. */
#include "experiments/validation/predict_impl.h"

#include <gsl/gsl_cdf.h>

#define COMPILE " compile"

/* Load of a row, in the unit of its group. */
struct load {
    const struct point *p;
    int group_length;  /* of the runtime's text; 0: the group is compiled models of any runtime */
    double amount;     /* layers, or GB */
    const char *other; /* why it is not predicted; NULL: it is */
};

/* The gigabytes at the end of a text: "blob-import-5.8GB", "context binary read 1.083 GB". */
static double gigabytes(const char *text)
{
    const char *unit = strstr(text, "GB");
    const char *at = unit;
    while (at != NULL && at > text && strchr("0123456789. ", at[-1]) != NULL) {
        at--;
    }
    return unit != NULL && unit[2] == '\0' ? strtod(at, NULL) : 0.0;
}

static struct load load_of(const struct catalog *c, const struct point *p)
{
    struct load out = {.p = p, .amount = gigabytes(p->model)};
    if (out.amount > 0.0) {
        return out;
    }
    OWNED char *name = xstrdup(p->model);
    size_t n = strlen(name);
    size_t cut = strlen(COMPILE);
    if (n > cut && strcmp(name + n - cut, COMPILE) == 0) {
        name[n - cut] = '\0';
    }
    const struct llm *m = strchr(name, ' ') == NULL ? catalog_llm(c, name) : NULL;
    out.group_length = (int)strcspn(p->runtime, "0123456789"); /* all versions are one group */
    out.amount = m != NULL ? m->n_layers : 0.0;
    out.other = strchr(name, ' ') != NULL ? "a phase of loading that only its name describes"
                : m == NULL               ? "no file for this model"
                                          : NULL;
    return out;
}

static bool together(const struct load *a, const struct load *b)
{
    return a->group_length == b->group_length &&
           strncmp(a->p->runtime, b->p->runtime, (size_t)a->group_length) == 0 &&
           (a->group_length == 0 || strcmp(a->p->device, b->p->device) == 0);
}

static bool same_source(const struct point *a, const struct point *b)
{
    return point_source_length(a->source) > 0 && point_same_source(a->source, b->source);
}

/* Statistics of a group without the publication: ln of seconds per unit of amount. */
struct group {
    size_t n;
    double mean, squares; /* squares: of the deviations from the mean */
};

static struct group group_of(const struct catalog *c, const struct load *of,
                             const struct point *without)
{
    struct group g = {0};
    for (size_t i = 0; i < c->reference.n; i++) {
        const struct point *p = &c->reference.v[i];
        if (p->metric == POINT_LOAD_MS && !same_source(p, without)) {
            struct load l = load_of(c, p);
            if (l.other == NULL && together(&l, of)) {
                double x = log(p->value / 1e3 / l.amount);
                double away = x - g.mean;
                g.mean += away / (double)++g.n;
                g.squares += away * (x - g.mean);
            }
        }
    }
    return g;
}

/* The variance within groups of all loads that are not of the publication; *df: its degrees of
 * freedom. A group counts once for each row, so its share is divided by its rows. */
static double variance_within(const struct catalog *c, const struct point *without, double *df)
{
    double squares = 0.0;
    *df = 0.0;
    for (size_t i = 0; i < c->reference.n; i++) {
        const struct point *p = &c->reference.v[i];
        struct load l = {0};
        if (p->metric == POINT_LOAD_MS && !same_source(p, without)) {
            l = load_of(c, p);
        }
        if (l.p != NULL && l.other == NULL) {
            struct group g = group_of(c, &l, without);
            squares += g.squares / (double)g.n;
            *df += ((double)g.n - 1.0) / (double)g.n;
        }
    }
    return *df > 0.0 ? squares / *df : (double)NAN;
}

struct prediction predict_load(const struct catalog *c, const struct point *p)
{
    struct load l = load_of(c, p);
    if (l.other != NULL) {
        return predict_unknown(l.other);
    }
    struct group g = group_of(c, &l, p);
    if (g.n == 0) {
        return predict_unknown("no other load under this toolchain on this kind of device");
    }
    double df;
    double variance = variance_within(c, p, &df);
    double value = 1e3 * l.amount * exp(g.mean);
    struct prediction out = predict_known(value);
    if (df > 0.0) {
        double half = gsl_cdf_tdist_Pinv(0.975, df) * sqrt(variance * (1.0 + 1.0 / (double)g.n));
        out.low = value * exp(-half);
        out.high = value * exp(half);
        out.unseen = CONFORMAL_SOURCE;
    }
    return out;
}
