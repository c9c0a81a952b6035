#include "experiments/validation/measured_like.h"

#include "experiments/validation/update.h"
#include "sim/base/json.h"

#define SHOWN 3

struct candidate {
    const char *name;   /* kept */
    double ln_evidence; /* in hundredths: some machines have the numbers of another one */
    bool fitted;        /* its own measurements made the entries of the rows */
};

SORT_BY(most_probable, struct candidate, SORT_DOWN(ln_evidence), SORT_DOWN(fitted), SORT_TEXT(name))

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

/* Makes the copy and weighs it. False: it is no candidate. */
static bool weigh(struct catalog *c, const struct soc *similar, const struct soc_sibling *how,
                  const struct measured *m, struct candidate *out)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct soc_sibling own = *how;
    own.like = similar->machine.name;
    const char *path = soc_path(own.like);
    SCOPED(json_drop) cJSON *file = json_read_file(path, &e);
    SCOPED(json_drop)
    cJSON *tree = file != NULL ? soc_sibling_tree(file, &own, &c->residuals, &e) : NULL;
    OWNED struct soc *made = xcalloc(1, sizeof *made);
    OWNED struct update_row *rows = xcalloc(m->points.n + 1, sizeof *rows);
    if (tree == NULL || soc_parse(tree, path, made, &e) != 0) {
        return false;
    }
    catalog_add_soc(c, made);
    bool has = bind_rows(c, m, rows);
    double ln_evidence = has ? ln_evidence_of(c, made, tree, rows, m->points.n) : 0.0;
    c->n_socs--;
    *out = (struct candidate){similar->machine.name, round(100.0 * ln_evidence) / 100.0,
                              has && is_fitted(similar, rows, m->points.n)};
    return has;
}

const char *measured_like(struct catalog *c, const struct soc_sibling *how,
                          const struct measured *m, struct document *d)
{
    OWNED struct candidate *v = xmalloc((c->n_socs + 1) * sizeof *v);
    size_t n = 0;
    size_t n_socs = c->n_socs;
    for (size_t i = 0; i < n_socs; i++) {
        const struct soc *s = c->socs[i];
        n += s->like[0] == '\0' && weigh(c, s, how, m, &v[n]);
    }
    if (n == 0) {
        return NULL;
    }
    qsort(v, n, sizeof *v, most_probable);
    SCOPED(text_fini) struct text others = {0};
    for (size_t i = 1; i < n && i < SHOWN; i++) {
        text_item(&others, ", ", "");
        text_format(&others, "%s x %.2g", v[i].name, exp(v[i].ln_evidence - v[0].ln_evidence));
    }
    document_note(d, "similar chip: %s, under whose copy the measured rows are most probable%s%s",
                  v[0].name, n > 1 ? "; next " : "", text_end(&others));
    return v[0].name;
}
