/* Writes a fit as a SoC file. Numbers that were not measured are written as assumed, with the
 * reason. */
#include <cjson/cJSON.h>

#include "hwmodels/kernel_fit.h"
#include "hwmodels/soc.h"
#include "sim/api/device.h"
#include "sim/base/json.h"

#define PEAK_NOISE 1.02 /* noise of rows at the memory's peak */
#define MAX_SOC_DEVICES MACHINE_MAX_DEVICES
#define DEFAULT_MEMORY_GB 16 /* if neither rows nor options state it */

static const char NOT_MEASURED[] = "not measured by xpusim measure";

struct writer {
    const struct kernel_fit *fit;
    const struct kernel_rows *rows;
    char source[200];
    double peak_gbs;
};

/* Adds a number without a range. */
static void plain(cJSON *to, const char *key, double value, const char *unit, const char *source,
                  enum quantity_kind kind)
{
    struct quantity q = {.value = value, .low = value, .high = value, .kind = kind};
    json_put_quantity(to, key, q, unit, source);
}

static void assumed(cJSON *to, const char *key, double value, const char *unit)
{
    plain(to, key, value, unit, NOT_MEASURED, QUANTITY_ASSUMED);
}

/* Adds a fitted number; `scale` converts to the unit, and `min` and `max` are limits of the file
 * format. */
static void fitted(const struct writer *w, cJSON *to, const char *key,
                   const struct kernel_estimate *q, double scale, double min, double max,
                   const char *unit)
{
    /* The interval may exceed what a file accepts, such as a bandwidth above the peak. It is
     * clipped, so that the file can be read back. */
    double value = fmin(fmax(q->value * scale, min), max);
    double low = fmin(fmax(q->low * scale, min), max);
    double high = fmin(fmax(q->high * scale, min), max);
    struct quantity put = {.value = value, .low = low, .high = high, .kind = QUANTITY_FITTED};
    json_put_quantity(to, key, put, unit, w->source);
}

/* ---- devices ---- */

static const struct kernel_row *first_row(const struct writer *w, const char *device)
{
    for (size_t i = 0; i < w->rows->n; i++) {
        if (strcmp(w->rows->v[i].device, device) == 0) {
            return &w->rows->v[i];
        }
    }
    return NULL;
}

/* Devices with a complete curve, in the order of a SoC file. */
static uint32_t list_devices(const struct writer *w, const char **names)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->fit->n_params; i++) {
        const struct kernel_estimate *q = &w->fit->params[i];
        bool known = q->param != KERNEL_PARAM_RATE;
        for (uint32_t k = 0; k < n; k++) {
            known = known || strcmp(names[k], q->device) == 0;
        }
        if (known || n == MAX_SOC_DEVICES) {
            continue;
        }
        uint32_t at = n++;
        enum device_kind kind = first_row(w, q->device)->kind;
        for (; at > 0 && first_row(w, names[at - 1])->kind > kind; at--) {
            names[at] = names[at - 1];
        }
        names[at] = q->device;
    }
    return n;
}

/* Mean of a device's power rows of compute-bound (or memory-bound) kernels; -1: no rows. */
static double mean_power(const struct writer *w, const char *device, bool compute)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (size_t i = 0; i < w->rows->n; i++) {
        const struct kernel_row *r = &w->rows->v[i];
        /* A prefill has products of many rows and attention of prompts; a decode has streams,
         * single rows and attention of decodes. */
        bool heavy = r->op == KERNEL_GEMM || r->op == KERNEL_PREFILL;
        if (r->metric == KERNEL_METRIC_POWER_W && strcmp(r->device, device) == 0 &&
            heavy == compute) {
            sum += r->value;
            n++;
        }
    }
    return n > 0 ? sum / n : -1.0;
}

static void power(const struct writer *w, cJSON *to, const char *key, const char *device,
                  bool compute)
{
    double watts = mean_power(w, device, compute);
    if (watts >= 0.0) {
        plain(to, key, watts, "W", "package energy counter while only this device ran",
              QUANTITY_MEASURED);
    } else {
        assumed(to, key, 0.0, "W");
    }
}

/* Adds the largest row count and context in trusted rows of a device and width. */
static void validity(const struct writer *w, cJSON *to, const struct kernel_estimate *rate)
{
    double rows_max = 1.0;
    double context_max = 0.0;
    for (uint32_t i = 0; i < w->fit->n_cells; i++) {
        const struct kernel_cell *c = &w->fit->cells[i];
        if (c->n == 0 || c->held_out || strcmp(c->row->device, rate->device) != 0) {
            continue;
        }
        if (c->row->op == KERNEL_GEMM && c->row->weight_bits == rate->weight_bits) {
            rows_max = fmax(rows_max, c->row->rows);
        }
        if (kernel_op_is_attention(c->row->op)) {
            context_max = fmax(context_max, c->row->tokens);
        }
    }
    JSON_MEMBERS(cJSON_AddObjectToObject(to, "valid"), "rows_max", rows_max, "context_max",
                 context_max);
}

static const struct kernel_estimate *find(const struct writer *w, enum kernel_param p,
                                          const char *device, uint32_t bits)
{
    return kernel_fit_find(w->fit, p, device, bits);
}

static void launch(const struct writer *w, cJSON *to, const struct kernel_estimate *rate)
{
    const struct kernel_estimate *t = find(w, KERNEL_PARAM_LAUNCH, rate->device, rate->weight_bits);
    if (t != NULL) {
        fitted(w, to, "launch", t, 1e6, 0.0, 1e6, "us");
    } else {
        assumed(to, "launch", 0.0, "us");
    }
}

static void attention(const struct writer *w, cJSON *to, const struct kernel_estimate *rate)
{
    const struct kernel_estimate *a = find(w, KERNEL_PARAM_ATTENTION, rate->device, 0);
    if (a == NULL) {
        assumed(to, "attention", 1.0, "1");
        return;
    }
    double frac = a->value / rate->value;
    /* Uses opposite ends of both intervals, which is wider than the interval of the ratio. */
    struct quantity q = {.value = fmin(fmax(frac, 1e-4), 10.0),
                         .low = fmax(a->low / rate->high, 1e-4),
                         .high = fmin(a->high / rate->low, 10.0),
                         .kind = QUANTITY_FITTED};
    json_put_quantity(to, "attention", q, "1", w->source);
}

static void add_runtime(const struct writer *w, cJSON *to, const struct kernel_estimate *rate,
                        bool is_default)
{
    const char *device = rate->device;
    uint32_t bits = rate->weight_bits;
    double top = w->peak_gbs;
    cJSON *r = JSON_MEMBERS(cJSON_CreateObject(), "runtime", rate->runtime, "weight_bits", bits,
                            "default", FRAME_IF(is_default, is_default));
    (void)cJSON_AddItemToArray(to, r);
    fitted(w, r, "rate", rate, 1e-12, 1e-4, 1e5, "TFLOP/s");
    fitted(w, r, "bandwidth", find(w, KERNEL_PARAM_BANDWIDTH, device, bits), 1e-9, 1e-3, top,
           "GB/s");
    launch(w, r, rate);
    const struct kernel_estimate *one = find(w, KERNEL_PARAM_BANDWIDTH_ONE, device, bits);
    if (one != NULL) {
        cJSON *o = cJSON_AddObjectToObject(r, "one_row");
        fitted(w, o, "rate", rate, 1e-12, 1e-4, 1e5, "TFLOP/s");
        fitted(w, o, "bandwidth", one, 1e-9, 1e-3, top, "GB/s");
        launch(w, o, rate);
    }
    plain(r, "row_fill", 0.0, "rows", "none: the knee of the fitted form takes its place",
          QUANTITY_ASSUMED);
    attention(w, r, rate);
    fitted(w, r, "knee", find(w, KERNEL_PARAM_KNEE, device, bits), 1.0, 0.5, 100.0, "1");
    validity(w, r, rate);
}

/* The entry for models of other widths: 8 bits, as in the papers, or the widest. */
static uint32_t default_bits(const struct writer *w, const char *device)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < w->fit->n_params; i++) {
        const struct kernel_estimate *q = &w->fit->params[i];
        if (q->param == KERNEL_PARAM_RATE && strcmp(q->device, device) == 0 && bits != 8) {
            bits = q->weight_bits == 8 || q->weight_bits > bits ? q->weight_bits : bits;
        }
    }
    return bits;
}

static void add_device(const struct writer *w, cJSON *to, const char *name)
{
    cJSON *d = JSON_MEMBERS(cJSON_CreateObject(), "name", name, "kind",
                            device_kind_names()[first_row(w, name)->kind], "sharing", "serial",
                            "inflight_depth", 1, "max_shared", 1);
    (void)cJSON_AddItemToArray(to, d);
    assumed(d, "shared_efficiency", 1.0, "1");
    JSON_MEMBERS(d, "chunk_rows", 0, "static_attention", (bool)false, "can_withdraw", (bool)false,
                 "can_reset", (bool)false, "can_suspend", (bool)false);
    assumed(d, "submit", 0.0, "us"); /* part of the fitted launch cost */
    assumed(d, "completion", 0.0, "us");
    assumed(d, "reset", 0.0, "us");
    assumed(d, "idle_power", 0.0, "W");
    power(w, d, "decode_power", name, false);
    power(w, d, "prefill_power", name, true);
    if (fmax(mean_power(w, name, false), mean_power(w, name, true)) >= 0.0) {
        (void)cJSON_AddStringToObject(d, "meter", soc_meter_names()[SOC_METER_PACKAGE]);
    }
    double top = 0.0;
    for (uint32_t i = 0; i < w->fit->n_params; i++) {
        const struct kernel_estimate *q = &w->fit->params[i];
        if (q->param == KERNEL_PARAM_RATE && strcmp(q->device, name) == 0) {
            top = fmax(top, q->value / 1e12);
        }
    }
    assumed(d, "peak", fmax(top, 1e-3), "TFLOP/s");
    cJSON *runtimes = cJSON_AddArrayToObject(d, "runtimes");
    uint32_t standard = default_bits(w, name);
    for (uint32_t i = 0; i < w->fit->n_params; i++) {
        const struct kernel_estimate *q = &w->fit->params[i];
        if (q->param == KERNEL_PARAM_RATE && strcmp(q->device, name) == 0) {
            add_runtime(w, runtimes, q, q->weight_bits == standard);
        }
    }
}

/* ---- the machine ---- */

static void add_ddr(const struct writer *w, cJSON *root, double peak_bytes_per_s)
{
    const struct kernel_estimate *cap = find(w, KERNEL_PARAM_CAP, "", 0);
    cJSON *ddr = cJSON_AddObjectToObject(root, "ddr");
    if (peak_bytes_per_s > 0.0) {
        plain(ddr, "peak", w->peak_gbs, "GB/s", "given to xpusim measure --fit", QUANTITY_ASSUMED);
    } else {
        plain(ddr, "peak", w->peak_gbs, "GB/s",
              "largest bandwidth of the fit; the datasheet may say more", QUANTITY_FITTED);
    }
    /* A cap that is not resolved is not written, because the pairs may not have reached a limit. */
    if (cap != NULL && cap->resolved) {
        fitted(w, ddr, "together", cap, 1e-9 / w->peak_gbs, 0.1, 1.0, "1");
    } else {
        assumed(ddr, "together", 1.0, "1");
    }
}

static void add_machine(const struct writer *w, cJSON *root, const struct kernel_soc_options *o)
{
    double memory_gb = o->memory_bytes > 0.0 ? o->memory_bytes / 1e9 : w->rows->memory_bytes / 1e9;
    add_ddr(w, root, o->ddr_peak_bytes_per_s);
    cJSON *memory = cJSON_AddObjectToObject(root, "memory");
    if (memory_gb > 0.01) {
        plain(memory, "capacity", memory_gb, "GB", "memory of the measured machine",
              QUANTITY_MEASURED);
    } else {
        assumed(memory, "capacity", DEFAULT_MEMORY_GB, "GB");
    }
    assumed(memory, "usable", 0.5, "1"); /* beyond about half of RAM no fit is valid */
    cJSON *host = cJSON_AddObjectToObject(root, "host");
    assumed(host, "sync", 0.0, "us");
    assumed(host, "schedule", 0.0, "us");
    assumed(host, "sample", 0.0, "us/token");
    assumed(host, "poll", 0.0, "W");
    cJSON *compiler = cJSON_AddObjectToObject(root, "compiler");
    assumed(compiler, "fixed", 0.0, "s");
    assumed(compiler, "per_token", 0.0, "ms/token");
    assumed(compiler, "power", 0.0, "W");
    cJSON *loader = cJSON_AddObjectToObject(root, "loader");
    assumed(loader, "bandwidth", 1.0, "GB/s");
    assumed(loader, "fixed", 0.0, "s");
    assumed(loader, "swap_bandwidth", 1.0, "GB/s");
    assumed(root, "idle_power", 0.0, "W");
}

/* The largest bandwidth in the file, so the least possible peak. */
static double largest_gbs(const struct writer *w)
{
    double top = 0.0;
    for (uint32_t i = 0; i < w->fit->n_params; i++) {
        const struct kernel_estimate *q = &w->fit->params[i];
        bool bandwidth = q->param == KERNEL_PARAM_BANDWIDTH ||
                         q->param == KERNEL_PARAM_BANDWIDTH_ONE || q->param == KERNEL_PARAM_READ ||
                         (q->param == KERNEL_PARAM_CAP && q->resolved);
        top = bandwidth ? fmax(top, q->value / 1e9) : top;
    }
    return top;
}

/* A text with the numbers of the fit that have no key in the file. */
static const char *note_of(const struct writer *w)
{
    static const char form[] = "Kernels measured by xpusim measure; times follow form p-norm. ";
    const struct kernel_estimate *cap = find(w, KERNEL_PARAM_CAP, "", 0);
    const struct kernel_estimate *q = find(w, KERNEL_PARAM_SHARPNESS, "", 0);
    return cap == NULL || q == NULL
               ? form
               : xkeep(xformat("%sContention: cap %.3g GB/s%s, sharpness %.3g. %s%s", form,
                               cap->value / 1e9, cap->resolved ? "" : " (not resolved)", q->value,
                               w->fit->alone.wrong ? "Lack of fit alone. " : "",
                               w->fit->together.wrong ? "Lack of fit together." : ""));
}

/* Kernels that resolve a rate or bandwidth; NULL: another parameter, or one that files do not have.
 */
static const char *needed(enum kernel_param p)
{
    switch (p) {
    case KERNEL_PARAM_RATE:
        return "products of many rows";
    case KERNEL_PARAM_BANDWIDTH:
        return "products of a few rows whose weights no cache holds";
    case KERNEL_PARAM_BANDWIDTH_ONE:
        return "products of one row whose weights no cache holds";
    case KERNEL_PARAM_ATTENTION:
        return "attention of long prompts";
    default:
        return NULL;
    }
}

/* Refuses a machine without a known rate or bandwidth, because its speed would be noise of the fit.
 */
static int check_resolved(const struct kernel_fit *fit, const char *path, struct err *e)
{
    size_t before = e->n;
    for (uint32_t i = 0; i < fit->n_params; i++) {
        const struct kernel_estimate *q = &fit->params[i];
        const char *need = needed(q->param);
        if (need == NULL || q->resolved) {
            continue;
        }
        char bits[32] = "";
        if (q->weight_bits > 0) {
            (void)snprintf(bits, sizeof bits, ", %u bits", q->weight_bits);
        }
        (void)err_add(e, "%s%s: the rows do not determine its %s; measure more %s", q->device, bits,
                      kernel_param_name(q->param), need);
    }
    return e->n == before
               ? 0
               : err_add(e,
                         "%s is not written: try --size full, more --repetitions, an idle machine",
                         path);
}

int kernel_fit_write_soc(const struct kernel_fit *fit, const struct kernel_rows *rows,
                         const struct kernel_soc_options *o, const char *path, struct err *e)
{
    struct writer w = {.fit = fit, .rows = rows};
    const char *names[MAX_SOC_DEVICES];
    uint32_t n = list_devices(&w, names);
    if (n == 0) {
        return err_add(e, "%s: no device has enough trusted rows of products: nothing to write",
                       path);
    }
    if (check_resolved(fit, path, e) != 0) {
        return -EINVAL;
    }
    double top = largest_gbs(&w);
    w.peak_gbs = o->ddr_peak_bytes_per_s > 0.0 ? o->ddr_peak_bytes_per_s / 1e9 : top;
    /* Not clipped, because a peak below measured bandwidths is a mistake in the option, and clipped
     * numbers would be slower than the machine. */
    if (top > PEAK_NOISE * w.peak_gbs) {
        return err_add(e, "--ddr-peak %g: the rows show %.4g GB/s", w.peak_gbs, top);
    }
    w.peak_gbs = fmax(w.peak_gbs, top);
    (void)snprintf(w.source, sizeof w.source, "%.120s; low and high: simultaneous 95 %% interval",
                   rows->v[0].source);
    SCOPED(json_drop)
    cJSON *root = JSON_MEMBERS(cJSON_CreateObject(), "format", 1, "name", o->name, "note",
                               note_of(&w), "hwmodel", "p-norm"); /* the fitted model */
    add_machine(&w, root, o);
    cJSON *devices = cJSON_AddArrayToObject(root, "devices");
    for (uint32_t i = 0; i < n; i++) {
        add_device(&w, devices, names[i]);
    }
    return json_write_file(path, root, e);
}
