#include "experiments/validation/leave_machine_impl.h"

static int try_pair(struct catalog *c, struct pair *p, struct err *e)
{
    leave_table_without(p);
    int rc = leave_make(p, e);
    if (rc == 0) {
        catalog_add_soc(c, p->made);
        leave_collect(p);
        rc = leave_try_all(p, e);
        c->n_socs--;
    }
    return rc;
}

static void pair_fini(struct pair *p)
{
    update_fini(&p->prior);
    cJSON_Delete(p->tree);
    free(p->table.v);
    free(p->rows);
    free(p->sheet_half);
}

/* Whether both machines have measurements on this kind of device with one toolchain: then the table
 * of left-out machines has a row. */
static bool comparable(const struct catalog *c, const struct soc *truth, const struct soc *sibling,
                       enum device_kind kind)
{
    for (size_t i = 0; i < c->residuals.n; i++) {
        const struct conformal_row *r = &c->residuals.v[i];
        if (r->left == CONFORMAL_SOC && r->kind == kind &&
            strcmp(r->soc, truth->machine.name) == 0 && strcmp(r->by, sibling->machine.name) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the machine has rows to predict for which (toolchain, kind of device) models of the
 * sibling were left out. */
static bool judgeable(const struct catalog *c, const struct points *judged, const struct soc *truth,
                      const struct soc *sibling, enum device_kind kind)
{
    for (size_t i = 0; i < judged->n; i++) {
        const struct point *p = &judged->v[i];
        int d = catalog_soc(c, p->soc) == truth ? predict_device(truth, p->device) : -1;
        size_t toolchain = strcspn(p->runtime, "-") + 1;
        for (size_t k = 0; k < c->residuals.n && d >= 0 && truth != sibling; k++) {
            const struct conformal_row *r = &c->residuals.v[k];
            if (r->left == CONFORMAL_MODEL && r->kind == kind &&
                truth->machine.devices[d].kind == kind &&
                strcmp(r->soc, sibling->machine.name) == 0 &&
                strncmp(r->runtime, p->runtime, toolchain) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Left out: one machine, made from each of its siblings. */
static int leave_one(struct catalog *c, const struct leave_points *points, const struct soc *truth,
                     uint32_t measured, struct entry_fits *fits, struct leave_rows *out,
                     struct err *e)
{
    bool apart = points->judged != points->known;
    size_t n_socs = c->n_socs;
    struct pair *pair = NULL;
    size_t n = 0;
    int rc = 0;
    for (size_t s = 0; s < n_socs; s++) {
        const struct soc *sibling = c->socs[s];
        for (uint8_t d = 0; sibling != truth && d < sibling->machine.n_devices && rc == 0; d++) {
            enum device_kind kind = sibling->machine.devices[d].kind;
            if (apart ? judgeable(c, points->judged, truth, sibling, kind)
                      : comparable(c, truth, sibling, kind)) {
                LIST_ADD(pair, n,
                         (struct pair){.c = c,
                                       .points = points->known,
                                       .judged = points->judged,
                                       .truth = truth,
                                       .sibling = sibling,
                                       .device = d,
                                       .measured = measured,
                                       .out = out,
                                       .fits = fits});
                rc = try_pair(c, &pair[n - 1], e);
            }
        }
    }
    rc = rc == 0 ? leave_try_averages(c, pair, n, e) : rc;
    for (size_t i = 0; i < n; i++) {
        pair_fini(&pair[i]);
    }
    free(pair);
    return rc;
}

int leave_machines(struct catalog *c, const struct leave_points *points, uint32_t measured,
                   struct leave_rows *out, struct err *e)
{
    *out = (struct leave_rows){0};
    struct entry_fits fits = {0};
    int rc = 0;
    size_t n_socs = c->n_socs;
    for (size_t t = 0; t < n_socs && rc == 0; t++) {
        size_t before = out->n;
        rc = leave_one(c, points, c->socs[t], measured, &fits, out, e);
        out->machines += out->n > before;
    }
    free(fits.v);
    return rc;
}
