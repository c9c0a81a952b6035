/* The claims of a fit, its points, and its state file. */
#include <unistd.h>

#include "experiments/claims/fit.h"
#include "experiments/run/config.h"
#include "sim/base/json.h"
#include "sim/base/output.h"

/* Drops informative checks, which do not count; some run for long. */
static void drop_informative(struct claim *c)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->n_checks; k++) {
        if (!c->checks[k].informative) {
            c->checks[kept++] = c->checks[k];
        }
    }
    c->n_checks = kept;
}

int fit_claims_read(const struct fit_options *o, struct claims *c, struct err *e)
{
    *c = (struct claims){.n = 0};
    for (uint32_t i = 0; i < o->n_files; i++) {
        (void)claims_read(c, o->files[i], e);
    }
    int rc = e->n > 0 ? -EINVAL : claims_select(c, o->ids, o->n_ids, e);
    rc = rc == 0 ? claims_choose(c, "stated", e) : rc;
    for (uint32_t i = 0; i < c->n && rc == 0; i++) {
        drop_informative(&c->v[i]);
    }
    claims_set_by(c, NULL, "the point was searched for so that the claim holds");
    return rc == 0 ? claims_change(c, o->fixed, e) : rc;
}

int fit_init(struct fit *f, const struct fit_options *o, struct err *e)
{
    f->o = o;
    f->e = e;
    if (fit_claims_read(o, &f->claims, e) != 0) {
        return -EINVAL;
    }
    if (f->claims.n == 0 || f->claims.n > FIT_MAX_CLAIMS) {
        return err_add(e, "--fit: 1 to %d claims can be fitted together", FIT_MAX_CLAIMS);
    }
    for (uint32_t i = 0; i < f->claims.n; i++) {
        struct claim *c = &f->claims.v[i];
        if (c->not_modellable != NULL) {
            return err_add(e, "--fit: %s is not modellable", c->id);
        }
        for (uint32_t k = 0; k < c->n_checks; k++) {
            LIST_ADD(f->checks, f->n_checks, (struct fit_check){i, &c->checks[k]});
        }
    }
    return 0;
}

struct fit_point *fit_point_add(struct fit *f, const double *u)
{
    f->points = xgrow(f->points, f->n_points, sizeof *f->points);
    struct fit_point *p = &f->points[f->n_points++];
    memcpy(p->u, u, sizeof p->u);
    p->mean = xcalloc(f->n_checks, sizeof *p->mean);
    p->sd = xcalloc(f->n_checks, sizeof *p->sd);
    return p;
}

/* ---- the state file ---- */

static cJSON *header(const struct fit *f)
{
    cJSON *o = cJSON_CreateObject();
    /* Another version of the program gives different numbers at the same point, which would look
     * like noise in this search. */
    cJSON_AddStringToObject(o, "program", config_version());
    cJSON *ids = cJSON_AddArrayToObject(o, "claims");
    for (uint32_t i = 0; i < f->claims.n; i++) {
        cJSON_AddItemToArray(ids, cJSON_CreateString(f->claims.v[i].id));
    }
    cJSON_AddItemToObject(o, "under", cJSON_CreateStringArray(f->o->under, (int)f->o->n_under));
    cJSON *over = cJSON_AddArrayToObject(o, "over");
    for (uint32_t i = 0; i < f->parameters.n; i++) {
        cJSON_AddItemToArray(over, cJSON_CreateString(f->parameters.v[i].name));
    }
    JSON_MEMBERS(o, "checks", f->n_checks, "traces", f->o->run.replications, "seed",
                 f->o->run.seed);
    return o;
}

static void add_values(cJSON *o, const char *key, const double *v, uint32_t n)
{
    cJSON_AddItemToObject(o, key, cJSON_CreateDoubleArray(v, (int)n)); /* null: not finite */
}

int fit_points_keep(const struct fit *f, struct err *e)
{
    if (f->o->state == NULL) {
        return 0;
    }
    SCOPED(json_drop) cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, "search", header(f));
    cJSON_AddNumberToObject(root, "cpu_s", f->cpu_s);
    cJSON *points = cJSON_AddArrayToObject(root, "points");
    for (uint32_t i = 0; i < f->n_points; i++) {
        cJSON *p = cJSON_CreateObject();
        cJSON_AddItemToArray(points, p);
        add_values(p, "u", f->points[i].u, f->parameters.n);
        add_values(p, "mean", f->points[i].mean, f->n_checks);
        add_values(p, "sd", f->points[i].sd, f->n_checks);
    }
    OWNED char *text = json_text(root, false);
    return output_bytes(f->o->state, text, strlen(text), e);
}

static bool read_values(const cJSON *o, const char *key, double *v, uint32_t n)
{
    const cJSON *list = json_member(o, key);
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)n) {
        return false;
    }
    uint32_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        v[i++] = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    }
    return true;
}

int fit_points_resume(struct fit *f, struct err *e)
{
    if (f->o->state == NULL || access(f->o->state, F_OK) != 0) {
        return 0;
    }
    SCOPED(json_drop) cJSON *root = json_read_file(f->o->state, e);
    SCOPED(json_drop) cJSON *mine = header(f);
    int rc = root == NULL ? -EINVAL : 0;
    if (rc == 0 && !cJSON_Compare(json_member(root, "search"), mine, true)) {
        rc = err_add(
            e, "%s: holds another search (program, claims, parameters, traces or seed differ)",
            f->o->state);
    }
    const cJSON *points = rc == 0 ? json_member(root, "points") : NULL;
    const cJSON *p;
    cJSON_ArrayForEach (p, points) {
        double u[FIT_MAX_PARAMETERS] = {0.0};
        bool good = read_values(p, "u", u, f->parameters.n);
        struct fit_point *x = good ? fit_point_add(f, u) : NULL;
        if (!good || !read_values(p, "mean", x->mean, f->n_checks) ||
            !read_values(p, "sd", x->sd, f->n_checks)) {
            rc = err_add(e, "%s: points: a point is damaged", f->o->state);
            break;
        }
    }
    const cJSON *cpu = rc == 0 ? json_member(root, "cpu_s") : NULL;
    f->cpu_s = cJSON_IsNumber(cpu) ? cpu->valuedouble : 0.0;
    return rc;
}

int fit_spread(struct claims *c, const struct setup *setups, uint32_t n, struct err *e)
{
    uint32_t n_claims = c->n;
    int rc = 0;
    c->v = xrealloc(c->v, (size_t)n_claims * n * sizeof *c->v);
    for (uint32_t s = n; s-- > 0 && rc == 0;) {
        for (uint32_t i = 0; i < n_claims && rc == 0; i++) {
            struct claim one = c->v[i];
            rc = s > 0 || n == 1 ? setup_add(&one.setup, &setups[s], e) : 0;
            c->v[s * n_claims + i] = one;
        }
    }
    for (uint32_t i = 0; i < n_claims && rc == 0 && n > 1; i++) {
        rc = setup_add(&c->v[i].setup, &setups[0], e);
    }
    c->n = n_claims * n;
    return rc;
}

uint32_t fit_set_size(uint32_t set)
{
    uint32_t n = 0;
    for (; set != 0; set &= set - 1) {
        n++;
    }
    return n;
}
