#include "experiments/machine/pairs_soc.h"

#include <strings.h>

#include "hwmodels/corun.h"
#include "sim/base/json.h"

#define GB 1e-9
#define LEAST_GBS 1e-3
#define DIGITS 1e4 /* further digits are noise of the search */
/* Width of the strength's range if a file has none; as in shipped files. */
#define PRIOR_WIDTH 0.38

int pairs_soc_read(const char *path, struct pairs *out, struct err *e)
{
    struct kernel_rows rows = {.n = 0};
    *out = (struct pairs){.n = 0};
    int rc = kernel_rows_read(&rows, path, e);
    return rc == 0 ? pairs_make(out, &rows, e) : rc;
}

/* ---- the fit ---- */

struct fits {
    const struct contention_ops *model;
    bool cap;        /* the cap is fitted, too */
    double value[3]; /* at the means, low ends and high ends of slowdowns */
    double together[3];
};

/* The highest bandwidth of a device in any pair, in GB/s. */
static double most_of(const struct pairs *p, const char *device)
{
    double most = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_side *v = &p->cells[i].victim;
        most = strcmp(v->device, device) == 0 ? fmax(most, v->alone_bytes_per_s) : most;
    }
    return GB * most;
}

/* end: 0: means of slowdowns; -1, 1: low and high ends of their intervals. */
static struct corun_points points_of(const struct pairs *p, double peak_gbs, int end)
{
    static const char *only[] = {"this-machine"};
    struct corun_points out = {.n_machines = 1, .machines = only};
    out.v = xcalloc(p->n, sizeof *out.v);
    for (size_t i = 0; i < p->n; i++) {
        const struct pairs_cell *c = &p->cells[i];
        const struct pairs_mean *m = &c->slowdown;
        double slowdown = end == 0 || isnan(m->low) ? m->value : end < 0 ? m->low : m->high;
        if (c->victim.alone_bytes_per_s * GB < LEAST_GBS || slowdown <= 0.0) {
            continue; /* no part of it waits for memory */
        }
        out.v[out.n++] =
            (struct corun_point){.machine = only[0],
                                 .peak_gbs = peak_gbs,
                                 .victim_gbs = GB * c->victim.alone_bytes_per_s,
                                 .most_gbs = most_of(p, c->victim.device),
                                 .culprit_gbs = fmax(GB * c->culprit.alone_bytes_per_s, LEAST_GBS),
                                 .slowdown = slowdown};
    }
    return out;
}

static void fit(const struct pairs *p, double peak_gbs, double together, struct fits *f)
{
    static const int ends[] = {0, -1, 1};
    enum corun_knob own = corun_has(f->model->name, CORUN_LATENCY) ? CORUN_LATENCY : CORUN_BESIDE;
    for (int k = 0; k < 3; k++) {
        struct corun_points points = points_of(p, peak_gbs, ends[k]);
        double knob[CORUN_KNOBS] = {
            [CORUN_TOGETHER] = together, [CORUN_WEIGHT] = 1.0, [CORUN_BALANCE] = 1.0};
        if (points.n > 0) {
            corun_fit(f->model, &points, f->cap ? NULL : points.machines[0], NULL, knob);
        }
        f->value[k] = round(knob[own] * DIGITS) / DIGITS;
        f->together[k] = round(knob[CORUN_TOGETHER] * DIGITS) / DIGITS;
        free(points.v);
    }
}

/* ---- into the file ---- */

static double part(const cJSON *object, const char *key, const char *member, double otherwise)
{
    double v = json_number(cJSON_GetObjectItem(object, key), member);
    return isfinite(v) ? v : otherwise;
}

static struct quantity range_of(const double v[3], enum quantity_kind kind)
{
    return (struct quantity){v[0], fmin(v[1], v[2]), fmax(v[1], v[2]), kind, true};
}

/* Keeps the number. Its source then says why the measurement does not determine it. */
static void keep(cJSON *ddr, const char *key, const char *why)
{
    cJSON *q = cJSON_GetObjectItem(ddr, key);
    const char *had = json_string(q, "source");
    if (q != NULL && strstr(had, "not shown by measure --pairs") == NULL) {
        OWNED char *text = xformat("not shown by measure --pairs (%s); %s", why, had);
        (void)cJSON_ReplaceItemInObject(q, "source", cJSON_CreateString(text));
    }
}

static void put_cap(const struct pairs *p, const struct fits *f, cJSON *ddr, struct document *d)
{
    if (f->cap) {
        json_put_quantity(ddr, "together", range_of(f->together, QUANTITY_FITTED), "1",
                          "measure --pairs");
        document_note(d, "ddr.together: %.3f by %zu pair%s", f->together[0], p->n,
                      text_plural(p->n));
        return;
    }
    const char *why = document_format("no pair asks for more than %.1f GB/s, and %.1f are reached",
                                      GB * p->asked_bytes_per_s, GB * p->most_bytes_per_s);
    keep(ddr, "together", why);
    document_note(d, "ddr.together: not shown, since %s", why);
}

static void put_strength(const struct pairs *p, const struct fits *f, cJSON *ddr,
                         struct document *d)
{
    struct quantity q = range_of(f->value, QUANTITY_FITTED);
    double width = part(ddr, "queueing", "high", PRIOR_WIDTH) - part(ddr, "queueing", "low", 0.0);
    bool repeated = false;
    for (size_t i = 0; i < p->n; i++) {
        repeated = repeated || !isnan(p->cells[i].slowdown.low);
    }
    if (repeated && q.high - q.low < width) {
        json_put_quantity(ddr, "queueing", q, "1", "measure --pairs");
        document_note(d, "ddr.queueing: %.2f [%.2f, %.2f] by %zu pair%s", q.value, q.low, q.high,
                      p->n, text_plural(p->n));
        return;
    }
    const char *why = repeated
                          ? document_format("its fit is %.2f [%.2f, %.2f]", q.value, q.low, q.high)
                          : "one repetition, so no interval";
    keep(ddr, "queueing", why);
    document_note(d, "ddr.queueing: not shown, since %s", why);
}

/* The device called `name`, or the iGPU for "GPU", its name in backends. NULL: none. */
static cJSON *device_of(const cJSON *tree, const char *name)
{
    cJSON *device;
    cJSON_ArrayForEach (device, cJSON_GetObjectItem(tree, "devices")) {
        const char *own = json_string(device, "name");
        bool gpu = strcasecmp(name, "gpu") == 0 && strcmp(own, "igpu") == 0;
        if (gpu || strcasecmp(name, own) == 0) {
            return device;
        }
    }
    return NULL;
}

static void put_weights(const struct pairs *p, cJSON *tree, struct document *d)
{
    cJSON *first = device_of(tree, p->devices[0]);
    cJSON *second = device_of(tree, p->devices[1]);
    if (p->share.n == 0 || first == NULL || second == NULL) {
        document_note(d, "ddr_weight: not shown, since %s",
                      p->share.n == 0 ? "no pair above the cap slows both devices"
                                      : "the file has no such devices");
        return;
    }
    double share = fmin(fmax(p->share.value, 0.01), 0.99);
    double w = round(share / (1.0 - share) * DIGITS) / DIGITS;
    json_put_quantity(first, "ddr_weight", (struct quantity){w, w, w, QUANTITY_FITTED, true}, "1",
                      "measure --pairs");
    json_put_quantity(second, "ddr_weight", (struct quantity){1.0, 1.0, 1.0, QUANTITY_FITTED, true},
                      "1", "measure --pairs");
    document_note(d, "ddr_weight: %.2f of %s to 1 of %s", w, p->devices[0], p->devices[1]);
}

void pairs_soc_put(const struct pairs *p, cJSON *tree, struct document *d)
{
    cJSON *ddr = cJSON_GetObjectItem(tree, "ddr");
    const char *stated = json_string(tree, "contention");
    struct fits f = {.model = contention_find(stated[0] != '\0' ? stated : "latency"),
                     .cap = p->saturated};
    double most = GB * p->most_bytes_per_s;
    double peak = part(ddr, "peak", "value", most);
    if (most > peak) {
        json_put_quantity(ddr, "peak", (struct quantity){most, most, most, QUANTITY_MEASURED, true},
                          "GB/s", "measure --pairs: two kernels reach it together");
        document_note(d, "ddr.peak: %.1f GB/s, which two kernels reach together; the file had %.1f",
                      most, peak);
        peak = most;
    }
    fit(p, peak, part(ddr, "together", "value", 1.0), &f);
    put_cap(p, &f, ddr, d);
    if (corun_has(f.model->name, CORUN_LATENCY)) {
        put_strength(p, &f, ddr, d);
    }
    put_weights(p, tree, d);
}
