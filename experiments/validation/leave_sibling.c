#include "experiments/validation/calibrate_report.h"
#include "experiments/validation/leave_machine_impl.h"
#include "hwmodels/soc_sibling.h"
#include "sim/base/json.h"

#define RATE_TO_FILE 1e-12

void leave_table_without(struct pair *p)
{
    const struct conformal *all = &p->c->residuals;
    const char *name = p->truth->machine.name;
    p->table = (struct conformal){.v = xmalloc((all->n + 1) * sizeof *p->table.v),
                                  .n_groups = all->n_groups};
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->v[i].soc, name) != 0 && strcmp(all->v[i].by, name) != 0) {
            p->table.v[p->table.n++] = all->v[i];
        }
    }
}

static const struct entry_fit *known_fit(const struct pair *p, uint32_t runtime)
{
    for (size_t i = 0; i < p->fits->n; i++) {
        const struct entry_fit *f = &p->fits->v[i];
        if (f->sibling == p->sibling && f->device == p->device && f->runtime == runtime) {
            return f;
        }
    }
    return NULL;
}

static void keep_fit(struct pair *p, uint32_t runtime, bool fitted)
{
    struct entry_fits *all = p->fits;
    LIST_ADD(all->v, all->n,
             (struct entry_fit){p->sibling, p->device, runtime, fitted, p->roofline[runtime]});
}

/* Fits an entry of the sibling again if the machine's rows were in its fit. True: the entry has own
 * rows and a fit. */
static bool refit(struct pair *p, uint32_t runtime, cJSON *entry)
{
    struct calibrate_entry x = {0};
    calibrate_collect(p->c, p->points, p->sibling, p->device, runtime, &x.set);
    bool own = false;
    bool pooled = false;
    for (size_t i = 0; i < x.set.n; i++) {
        struct calibrate_row *r = &x.set.rows[i];
        own = own || r->k.soc == p->sibling;
        r->left_out = r->k.soc == p->truth;
        pooled = pooled || r->left_out;
    }
    const struct entry_fit *known = pooled ? NULL : known_fit(p, runtime);
    if (known != NULL) {
        p->roofline[runtime] = known->roofline;
        calibrate_set_fini(&x.set);
        return known->fitted;
    }
    SCOPED(err_fini) struct err e = ERR_INIT;
    bool fitted = own && calibrate_fit(&x.set, &x.fit, &e) == 0;
    if (fitted && pooled) {
        x.sigma[0] = x.sigma[1] = (double)NAN;
        calibrate_entry_write(&x, "points", entry);
    }
    x.set.roofline = true;
    fitted = fitted && calibrate_fit(&x.set, &x.fit, &e) == 0;
    p->roofline[runtime] = x.fit.params;
    if (!pooled) {
        keep_fit(p, runtime, fitted);
    }
    calibrate_set_fini(&x.set);
    return fitted;
}

/* Scales an entry like a sibling's file. */
static void scale(const struct pair *p, uint8_t its_device, struct soc_runtime *r)
{
    const struct soc *a = p->sibling;
    const struct soc *b = p->truth;
    double rate = b->devices[its_device].peak_flop_per_s / a->devices[p->device].peak_flop_per_s;
    double bandwidth = b->ddr_likely_bytes_per_s / a->ddr_likely_bytes_per_s;
    SIM_ASSERT(rate > 0.0 && bandwidth > 0.0 && a != b);
    r->many.flop_per_s *= rate;
    r->one.flop_per_s *= rate;
    r->many.bytes_per_s *= bandwidth;
    r->one.bytes_per_s *= bandwidth;
}

int leave_make(struct pair *p, struct err *e)
{
    const char *path = soc_path(p->sibling->machine.name);
    SCOPED(json_drop) cJSON *sibling = json_read_file(path, e);
    if (sibling == NULL) {
        return -EINVAL;
    }
    cJSON *device = cJSON_GetArrayItem(json_member(sibling, "devices"), p->device);
    cJSON *entries = json_member(device, "runtimes");
    for (uint32_t r = 0; r < p->sibling->devices[p->device].n_runtimes; r++) {
        p->valid[r] = refit(p, r, cJSON_GetArrayItem(entries, (int)r));
    }
    enum device_kind kind = p->sibling->machine.devices[p->device].kind;
    int its = machine_find(&p->truth->machine, kind);
    for (uint32_t r = 0; r < p->sibling->devices[p->device].n_runtimes; r++) {
        scale(p, (uint8_t)its, &p->roofline[r]);
    }
    struct soc_sibling_peak peak = {p->sibling->machine.devices[p->device].name,
                                    p->truth->devices[its].peak_flop_per_s * RATE_TO_FILE,
                                    p->truth->devices[its].cores};
    struct soc_sibling how = {.name = p->truth->machine.name,
                              .like = p->sibling->machine.name,
                              .family = p->truth->family,
                              .ddr_peak_gbs = p->truth->ddr_likely_bytes_per_s / 1e9,
                              .memory_gb = p->truth->machine.memory_bytes / 1e9,
                              .peaks = &peak,
                              .n_peaks = 1};
    p->tree = soc_sibling_tree(sibling, &how, &p->table, e);
    p->made = xkept(xmalloc(sizeof *p->made));
    return p->tree != NULL ? soc_parse(p->tree, path, p->made, e) : -EINVAL;
}
