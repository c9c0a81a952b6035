#include "traces/draw.h"

#include <gsl/gsl_randist.h>

#include "sim/base/csvfile.h"
#include "sim/base/datadir.h"
#include "sim/base/hash.h"
#include "sim/base/rng.h"

static const char *const distributions[] = {"uniform", "exponential", "gamma", "lognormal", NULL};

/* ---- reading ---- */

static struct draw_column *column_load(const char *of, const char *file, const char *name,
                                       struct err *e)
{
    size_t before = e->n;
    SCOPED(csvfile_drop)
    struct csvfile *f =
        csvfile_open(datadir_named(datadir_next_to(of, file), "traces/datasets", ".csv"), e);
    if (f == NULL) {
        return NULL;
    }
    struct draw_column *c = xcalloc(1, sizeof *c);
    int at = csvfile_require(f, name, e);
    while (e->n == before && csvfile_next(f, e) == 1) {
        LIST_ADD(c->v, c->n, csvfile_number(f, at, -1e15, 1e15, e));
    }
    if (e->n == before && c->n == 0) {
        (void)err_add(e, "dataset \"%s\": no rows", file);
    }
    c->file = xkeep(xstrdup(file));
    c->name = xkeep(xstrdup(name));
    if (e->n > before) {
        draw_columns_free(c);
        return NULL;
    }
    return c;
}

/* Finds or loads a column. An error also names the key that uses it. */
static const struct draw_column *column_of(const struct json_obj *o, const char *file,
                                           const char *name, struct draw_column **columns)
{
    for (const struct draw_column *c = *columns; c != NULL; c = c->next) {
        if (strcmp(c->file, file) == 0 && strcmp(c->name, name) == 0) {
            return c;
        }
    }
    SCOPED(err_fini) struct err why = ERR_INIT;
    struct draw_column *c = column_load(o->file, file, name, &why);
    if (c != NULL) {
        c->next = *columns;
        *columns = c;
    } else {
        json_refuse(o, NULL, "%s", why.lines[0]);
    }
    return c;
}

void draw_columns_free(struct draw_column *columns)
{
    while (columns != NULL) {
        struct draw_column *next = columns->next;
        free(columns->v);
        free(columns);
        columns = next;
    }
}

static struct draw object_read(struct json_obj *o, const struct draw_rule *rule,
                               struct draw_column **columns)
{
    struct draw d = {.kind = DRAW_COLUMN, .min = rule->min, .max = rule->max};
    size_t before = o->err->n;
    if (json_has(o, "dataset")) {
        const char *file = json_get_string(o, "dataset");
        const char *name = json_get_string(o, "column");
        d.column = o->err->n == before ? column_of(o, file, name, columns) : NULL;
    } else {
        d.kind = DRAW_UNIFORM + (enum draw_kind)json_get_choice(o, "distribution", distributions);
    }
    if (d.kind != DRAW_COLUMN && d.kind != DRAW_UNIFORM) {
        d.mean = json_get_number(o, "mean", rule->min, rule->max);
    }
    if (d.kind == DRAW_GAMMA || d.kind == DRAW_LOGNORMAL) {
        d.cv = json_get_number(o, "cv", 0.01, 50.0);
    }
    if (d.kind == DRAW_UNIFORM || json_has(o, "min")) {
        d.min = json_get_number(o, "min", rule->min, rule->max);
    }
    if (d.kind == DRAW_UNIFORM || json_has(o, "max")) {
        d.max = json_get_number(o, "max", rule->min, rule->max);
    }
    if (o->err->n == before && d.min > d.max) {
        json_refuse(o, NULL, "min is above max");
    } else if (rule->whole && (d.min != floor(d.min) || d.max != floor(d.max))) {
        json_refuse(o, NULL, "min and max of whole numbers must be whole");
    }
    json_done(o);
    return d;
}

struct draw draw_read(struct json_obj *o, const struct draw_rule *rule,
                      struct draw_column **columns)
{
    if (!json_has(o, rule->key)) {
        return (struct draw){.kind = DRAW_NONE};
    }
    if (cJSON_IsObject(json_member(o->node, rule->key))) {
        struct json_obj sub = json_get_object(o, rule->key);
        return object_read(&sub, rule, columns);
    }
    double x = rule->whole ? json_get_u32(o, rule->key, (uint32_t)rule->min, (uint32_t)rule->max)
                           : json_get_number(o, rule->key, rule->min, rule->max);
    return (struct draw){DRAW_CONSTANT, .mean = x, .min = x, .max = x};
}

/* ---- drawing ---- */

static double lognormal(struct rng *r, double mean, double cv)
{
    double variance = log1p(cv * cv);
    return mean * exp(sqrt(variance) * rng_normal(r) - variance / 2.0);
}

double draw_value(const struct draw *d, uint64_t stream, uint32_t number, bool whole)
{
    /* One stream per number, so that another distribution for one does not change the others. */
    bool column = d->kind == DRAW_COLUMN;
    uint64_t row = column ? hash_string(HASH_INIT, d->column->file) : 0;
    struct rng r;
    rng_init(&r, rng_key(stream, RNG_WORKLOAD, column ? UINT64_MAX : number, row));
    const gsl_rng gsl = {.type = rng_gsl_type, .state = &r};
    double x = d->mean;
    switch (d->kind) {
    case DRAW_NONE:
    case DRAW_CONSTANT:
        return x;
    case DRAW_UNIFORM:
        /* All whole numbers from min to max are equally likely. */
        x = whole ? floor(d->min + rng_uniform(&r) * (d->max - d->min + 1.0))
                  : d->min + rng_uniform(&r) * (d->max - d->min);
        break;
    case DRAW_EXPONENTIAL:
        x = rng_exponential(&r, d->mean);
        break;
    case DRAW_GAMMA: {
        double shape = 1.0 / (d->cv * d->cv); /* CV of a gamma distribution is 1/sqrt(shape) */
        x = gsl_ran_gamma(&gsl, shape, d->mean / shape);
        break;
    }
    case DRAW_LOGNORMAL:
        x = lognormal(&r, d->mean, d->cv);
        break;
    case DRAW_COLUMN:
        x = d->column->v[rng_below(&r, (uint32_t)d->column->n)];
        break;
    }
    x = fmin(fmax(x, d->min), d->max);
    return whole ? floor(x + 0.5) : x;
}
