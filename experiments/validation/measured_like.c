#include "experiments/validation/measured_like.h"

#include "sim/base/json.h"

#define LEAST 0.01 /* weight of a copy that counts */

SORT_BY(likeliest, struct measured_copy, SORT_DOWN(weight), SORT_DOWN(fitted), SORT_TEXT(name))

/* Whether the copy, the last machine of the catalogue, has an entry for every row. */
static bool bind_rows(const struct catalog *c, const struct measured *m, struct update_row *rows)
{
    for (size_t i = 0; i < m->points.n; i++) {
        struct update_row *r = &rows[i];
        r->point = &m->points.v[i];
        if (r->point->runtime[0] == '\0' || !point_is_latency(r->point)) {
            return false;
        }
        predict_bind(c, r->point, &r->k);
        if (r->k.reason != NULL || r->k.match == SOC_MATCH_OTHER) {
            return false;
        }
    }
    return true;
}

/* Sums up the evidence of the devices. */
static double ln_evidence_of(const struct catalog *c, const struct soc *made, const cJSON *tree,
                             const struct update_row *rows, size_t n)
{
    OWNED struct update_row *own = xmalloc((n + 1) * sizeof *own);
    double sum = 0.0;
    for (uint8_t d = 0; d < made->machine.n_devices; d++) {
        size_t n_own = 0;
        for (size_t i = 0; i < n; i++) {
            if (rows[i].k.device == d) {
                own[n_own++] = rows[i];
            }
        }
        if (n_own > 0) {
            SCOPED(update_fini) struct update u;
            update_init(&u, made, tree, d, &c->residuals);
            sum += update_ln_evidence(&u, own, n_own);
        }
    }
    return sum;
}

static bool is_fitted(const struct soc *similar, const struct update_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!similar->devices[rows[i].k.device].runtimes[rows[i].k.runtime].start.given) {
            return false;
        }
    }
    return true;
}

static void drop(struct measured_copy *x)
{
    free(x->soc);
    cJSON_Delete(x->tree);
}

/* Makes the copy; its weight is the evidence. False: it is no candidate. */
static bool weigh(struct catalog *c, const struct soc *similar, const struct soc_sibling *how,
                  const struct measured *m, struct measured_copy *out)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct soc_sibling own = *how;
    own.like = similar->machine.name;
    const char *path = soc_path(own.like);
    SCOPED(json_drop) cJSON *file = json_read_file(path, &e);
    OWNED struct update_row *rows = xcalloc(m->points.n + 1, sizeof *rows);
    *out =
        (struct measured_copy){.name = similar->machine.name, .soc = xcalloc(1, sizeof *out->soc)};
    out->tree = file != NULL ? soc_sibling_tree(file, &own, &c->residuals, &e) : NULL;
    bool has = out->tree != NULL && soc_parse(out->tree, path, out->soc, &e) == 0;
    if (has) {
        catalog_add_soc(c, out->soc);
        has = bind_rows(c, m, rows);
        out->weight = has ? ln_evidence_of(c, out->soc, out->tree, rows, m->points.n) : 0.0;
        has = has && isfinite(out->weight);
        out->fitted = has && is_fitted(similar, rows, m->points.n);
        c->n_socs--;
    }
    if (!has) {
        drop(out);
    }
    return has;
}

/* Keeps the copies that count, with their weights. Some machines have the numbers of another one,
 * so evidence counts in hundredths. */
static void keep(struct measured_like *x)
{
    double most = -(double)INFINITY;
    for (size_t i = 0; i < x->n; i++) {
        most = fmax(most, x->v[i].weight);
    }
    for (size_t i = 0; i < x->n; i++) {
        x->v[i].weight = exp(round(100.0 * (x->v[i].weight - most)) / 100.0);
    }
    qsort(x->v, x->n, sizeof *x->v, likeliest);
    while (x->n > 0 && x->v[x->n - 1].weight < LEAST) {
        drop(&x->v[--x->n]);
    }
}

void measured_like(struct catalog *c, const struct soc_sibling *how, const struct measured *m,
                   struct document *d, struct measured_like *out)
{
    size_t n_socs = c->n_socs;
    *out = (struct measured_like){.v = xmalloc((n_socs + 1) * sizeof *out->v)};
    for (size_t i = 0; i < n_socs; i++) {
        const struct soc *s = c->socs[i];
        out->n += s->like[0] == '\0' && weigh(c, s, how, m, &out->v[out->n]);
    }
    keep(out);
    SCOPED(text_fini) struct text others = {0};
    for (size_t i = 1; i < out->n; i++) {
        text_item(&others, ", ", "");
        text_format(&others, "%s x %.2g", out->v[i].name, out->v[i].weight);
    }
    if (out->n > 0) {
        document_note(d,
                      "similar chip: %s, under whose copy the measured rows are most probable%s%s",
                      out->v[0].name, out->n > 1 ? "; averaged with " : "", text_end(&others));
    }
}

void measured_like_average(const struct measured_like *x, struct update *prior,
                           const struct conformal *table)
{
    size_t n = x != NULL && x->n > 1 ? x->n - 1 : 0;
    enum device_kind kind = prior->soc->machine.devices[prior->device].kind;
    OWNED struct update *other = xcalloc(n + 1, sizeof *other);
    OWNED double *weight = xcalloc(n + 1, sizeof *weight);
    for (size_t i = 0; i < n; i++) {
        const struct measured_copy *copy = &x->v[i + 1];
        int device = machine_find(&copy->soc->machine, kind);
        SIM_ASSERT(device >= 0); /* it has all rows */
        update_init(&other[i], copy->soc, copy->tree, (uint8_t)device, table);
        weight[i] = copy->weight;
    }
    update_average(prior, other, weight, n);
    for (size_t i = 0; i < n; i++) {
        update_fini(&other[i]);
    }
}

void measured_like_fini(struct measured_like *x)
{
    for (size_t i = 0; i < x->n; i++) {
        drop(&x->v[i]);
    }
    free(x->v);
    *x = (struct measured_like){0};
}
