#include "hwmodels/soc_sibling.h"

#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "sim/base/portable.h"
#include "sim/base/words.h"

/* A typical row of the tables: 3e9 weights, 1024 tokens of prompt or context, or 32 of a short
 * prompt. */
#define USUAL_WEIGHTS 3e9
#define USUAL_TOKENS 1024.0
#define SHORT_TOKENS 32.0

/* Errors of transfers from one SoC to another, for a kind of device and a phase, at a typical row.
 */
static struct conformal_interval transfer_of(const struct conformal *t, const char *family,
                                             enum device_kind kind, enum conformal_phase phase)
{
    struct conformal_query q = {.soc = "",
                                .family = family,
                                .kind = kind,
                                .phase = phase,
                                .weights = USUAL_WEIGHTS,
                                .tokens =
                                    phase == CONFORMAL_SHORT_PREFILL ? SHORT_TOKENS : USUAL_TOKENS,
                                .left = CONFORMAL_SOC};
    return conformal_of(t, &q, CONFORMAL_LEVEL);
}

/* Numbers of a runtime entry. Each has the transfer error of a phase as its range, and is scaled by
 * `scale`. */
enum scale {
    SCALE_NONE,
    SCALE_RATE,
    SCALE_ROWS,
    SCALE_COLUMNS,
    SCALE_DDR,
    SCALE_SHARE /* a share of the rate; share times rate follows the peak */
};
static const struct {
    const char *key;
    enum conformal_phase phase;
    enum scale scale;
} carried[] = {
    {"rate", CONFORMAL_PREFILL, SCALE_RATE},
    {"bandwidth", CONFORMAL_DECODE, SCALE_DDR},
    {"launch", CONFORMAL_SHORT_PREFILL, SCALE_NONE},
    {"enqueue", CONFORMAL_SHORT_PREFILL, SCALE_NONE}, /* a host cost */
    {"prompt_enqueue", CONFORMAL_SHORT_PREFILL, SCALE_NONE},
    {"row_fill", CONFORMAL_SHORT_PREFILL, SCALE_ROWS},
    {"width_fill", CONFORMAL_PREFILL, SCALE_COLUMNS},
    {"attention", CONFORMAL_PREFILL, SCALE_SHARE},
    {"special_attention", CONFORMAL_PREFILL, SCALE_SHARE},
    {"recurrence", CONFORMAL_PREFILL, SCALE_SHARE},
    {"decode_attention", CONFORMAL_DECODE, SCALE_SHARE},
};
#define N_CARRIED (sizeof carried / sizeof carried[0])

struct copy {
    const struct soc_sibling *o;
    const struct conformal *table;
    const char *family, *name; /* of the sibling */
    double ddr_ratio, peak_ratio, cores_ratio, ddr_peak_gbs, npu_share;
    struct soc_resize resize; /* of the runtime entry */
    enum device_kind kind;
    const cJSON *fit; /* of the runtime entry; NULL: none */
};

static bool is_quantity(const cJSON *o)
{
    return cJSON_IsNumber(json_member(o, "value")) && cJSON_HasObjectItem(o, "unit");
}

static void set_number(cJSON *q, const char *key, double v)
{
    cJSON *c = json_member(q, key);
    if (c != NULL) {
        (void)cJSON_SetNumberHelper(c, v);
    }
}

static void set_text(cJSON *o, const char *key, const char *text)
{
    if (json_member(o, key) == NULL) {
        (void)cJSON_AddStringToObject(o, key, text);
    } else { /* replaces it */
        (void)cJSON_ReplaceItemInObjectCaseSensitive(o, key, cJSON_CreateString(text));
    }
}

/* Rounds to four digits, more than the accuracy of a transfer. */
static double rounded(double v)
{
    return portable_digits(v, 4);
}

/* Records the source of a number; `how`: its conversion. */
static void mark(cJSON *q, const struct copy *c, const char *how)
{
    OWNED char *text =
        xformat("taken from %s%s; there: %s", c->name, how, json_string(q, "source"));
    set_text(q, "source", text);
    set_text(q, "kind", "assumed");
}

/* Whether the fit of its entry varied the number. */
static bool is_free(const struct copy *c, const cJSON *q)
{
    const cJSON *name;
    cJSON_ArrayForEach (name, json_member(c->fit, "parameters")) {
        if (strcmp(name->valuestring, q->string) == 0) {
            return true;
        }
    }
    return false;
}

static void carry(cJSON *q, const struct copy *c, size_t i)
{
    struct conformal_interval t = transfer_of(c->table, c->family, c->kind, carried[i].phase);
    const double ratios[] = {[SCALE_NONE] = 1.0,
                             [SCALE_RATE] = c->resize.rate,
                             [SCALE_ROWS] = c->resize.row_fill,
                             [SCALE_COLUMNS] = c->resize.width_fill,
                             [SCALE_DDR] = soc_resize_bandwidth(c->kind, c->ddr_ratio),
                             [SCALE_SHARE] = c->peak_ratio / c->resize.rate};
    double ratio = ratios[carried[i].scale];
    /* Without measured transfers the factor is 2, a guess. */
    double factor = t.n > 0 ? t.high_factor : 2.0;
    double value = rounded(json_number(q, "value") * ratio);
    /* The range is never narrower than the sibling's, because a copy is no better known. Exceptions
     * are assumed numbers that the sibling's fit held fixed: errors of transfers include theirs. */
    bool held = c->fit != NULL && strcmp(json_string(q, "kind"), "assumed") == 0 && !is_free(c, q);
    double low = fmin(held ? value : json_number(q, "low") * ratio, value / factor);
    double high = fmax(held ? value : json_number(q, "high") * ratio, value * factor);
    if (carried[i].scale == SCALE_DDR) {
        double own = json_number(q, "value") * c->ddr_ratio / c->ddr_peak_gbs;
        value =
            fmin(value, rounded(soc_share_of_ddr(c->kind, own, c->npu_share) * c->ddr_peak_gbs));
        high = fmin(high, c->ddr_peak_gbs);
    }
    set_number(q, "value", value);
    /* Rounding must not push a limit past the value. */
    set_number(q, "low", fmin(rounded(low), value));
    set_number(q, "high", fmax(rounded(high), value));
    char scaled[48] = "";
    if (ratio != 1.0) {
        (void)snprintf(scaled, sizeof scaled, ", x %.4g as its %s", ratio,
                       carried[i].scale == SCALE_DDR     ? "memory"
                       : carried[i].scale == SCALE_ROWS  ? "peak per core"
                       : carried[i].scale == SCALE_SHARE ? "peak over its rate"
                                                         : "peak");
    }
    OWNED char *how = xformat("%s; range: x / %.3g, by %zu published %s rows of left-out SoCs (%s)",
                              scaled, factor, t.n, conformal_phase_names[carried[i].phase], t.pool);
    mark(q, c, how);
}

/* Copies every quantity below a node; kernel-time numbers get the range of transfers. */
static void copy_numbers(cJSON *node, const struct copy *c, bool runtime)
{
    cJSON *child;
    cJSON_ArrayForEach (child, node) {
        if (!is_quantity(child)) {
            if (child->string == NULL || strcmp(child->string, "runtimes") != 0) {
                copy_numbers(child, c, runtime);
            }
            continue;
        }
        size_t i = 0;
        while (runtime && i < N_CARRIED && strcmp(carried[i].key, child->string) != 0) {
            i++;
        }
        if (runtime && i < N_CARRIED) {
            carry(child, c, i);
        } else {
            mark(child, c, "");
        }
    }
}

static double value_of(const cJSON *entry, const char *key)
{
    const cJSON *q = json_member(entry, key);
    return q != NULL ? json_number(q, "value") : 0.0;
}

/* Copies each runtime entry separately, because its fills determine the scaling of its rate. */
static void copy_runtimes(cJSON *device, struct copy *c)
{
    cJSON *r;
    cJSON_ArrayForEach (r, json_member(device, "runtimes")) {
        c->resize = soc_resize(value_of(r, "row_fill"), value_of(r, "width_fill"), c->peak_ratio,
                               c->cores_ratio);
        c->fit = json_member(r, "fit");
        copy_numbers(r, c, true);
    }
}

/* A fit and its `ops` are valid only for the sibling's measurements. */
static void drop_fits(cJSON *device)
{
    cJSON *r;
    cJSON_ArrayForEach (r, json_member(device, "runtimes")) {
        /* With a `fit` this machine would count as measured. */
        (void)cJSON_DeleteItemFromObjectCaseSensitive(r, "fit");
        (void)cJSON_DeleteItemFromObjectCaseSensitive(r, "ops");
    }
}

static void given(cJSON *to, const char *key, double value, const char *unit)
{
    struct quantity q = {value, value, value, QUANTITY_ASSUMED, true};
    json_put_quantity(to, key, q, unit, "given to xpusim new-soc");
}

/* How kernels read keys, and what else they launch, is of a family of chips. */
static void drop_kernels(cJSON *device, const struct copy *c)
{
    const char *family = c->o->family;
    cJSON *entry;
    cJSON_ArrayForEach (entry, json_member(device, "runtimes")) {
        if (family != NULL && (family[0] == '\0' || strcmp(family, c->family) != 0)) {
            cJSON_DeleteItemFromObjectCaseSensitive(entry, "kv_columns");
            cJSON_DeleteItemFromObjectCaseSensitive(entry, "decode_window");
            cJSON_DeleteItemFromObjectCaseSensitive(entry, "further_launches");
        }
    }
}

static void copy_device(cJSON *device, struct copy *c, bool *used)
{
    double peak = json_number(json_member(device, "peak"), "value");
    double own = 0.0;
    double cores = json_number(device, "cores");
    double own_cores = 0.0;
    for (uint32_t i = 0; i < c->o->n_peaks; i++) {
        if (strcmp(c->o->peaks[i].device, json_string(device, "name")) == 0) {
            own = c->o->peaks[i].tflop_per_s;
            own_cores = c->o->peaks[i].cores;
            used[i] = true;
        }
    }
    c->kind = (enum device_kind)words_find(device_kind_names(), json_string(device, "kind"));
    c->peak_ratio = own > 0.0 && peak > 0.0 ? own / peak : 1.0;
    c->cores_ratio = own_cores > 0.0 && cores > 0.0 ? own_cores / cores : 1.0;
    copy_numbers(device, c, false);
    copy_runtimes(device, c);
    drop_fits(device);
    drop_kernels(device, c);
    if (own > 0.0) {
        given(device, "peak", own, "TFLOP/s");
    }
    if (own_cores > 0.0) {
        (void)cJSON_DeleteItemFromObjectCaseSensitive(device, "cores");
        (void)cJSON_AddNumberToObject(device, "cores", own_cores);
    }
}

static void copy_machine(cJSON *root, struct copy *c)
{
    cJSON *child;
    cJSON_ArrayForEach (child, root) {
        if (child->string != NULL && strcmp(child->string, "devices") != 0) {
            if (is_quantity(child)) {
                mark(child, c, "");
            } else {
                copy_numbers(child, c, false);
            }
        }
    }
    if (c->o->ddr_peak_gbs > 0.0) {
        cJSON *ddr = json_member(root, "ddr");
        given(ddr, "peak", c->o->ddr_peak_gbs, "GB/s");
        cJSON_DeleteItemFromObjectCaseSensitive(ddr, "likely");
    }
    if (c->o->memory_gb > 0.0) {
        given(json_member(root, "memory"), "capacity", c->o->memory_gb, "GB");
    }
}

#define FAR 200.0 /* a larger factor than between machines: a wrong unit */

static void check_near(const char *option, double own, double like, const char *unit,
                       const char *name, struct err *e)
{
    if (own > 0.0 && like > 0.0 && (own > FAR * like || own < like / FAR)) {
        (void)err_add(e, "--%s %g: %s has %g %s: another unit?", option, own, name, like, unit);
    }
}

/* Detects wrong units, because data sheets use several. */
static int check_units(const cJSON *sibling, const struct soc_sibling *o, struct err *e)
{
    size_t before = e->n;
    const cJSON *ddr = json_member(json_member(sibling, "ddr"), "peak");
    const cJSON *memory = json_member(json_member(sibling, "memory"), "capacity");
    check_near("ddr-peak", o->ddr_peak_gbs, json_number(ddr, "value"), "GB/s", o->like, e);
    check_near("memory", o->memory_gb, json_number(memory, "value"), "GB", o->like, e);
    const cJSON *d;
    cJSON_ArrayForEach (d, json_member(sibling, "devices")) {
        for (uint32_t i = 0; i < o->n_peaks; i++) {
            if (strcmp(o->peaks[i].device, json_string(d, "name")) == 0) {
                OWNED char *option = xformat("peak %s:", o->peaks[i].device);
                check_near(option, o->peaks[i].tflop_per_s,
                           json_number(json_member(d, "peak"), "value"), "TFLOP/s", o->like, e);
            }
        }
    }
    return e->n > before ? -EINVAL : 0;
}

/* Checks that peaks were given for existing devices. */
static int check_used(const cJSON *root, const struct soc_sibling *o, const bool *used,
                      struct err *e)
{
    size_t before = e->n;
    for (uint32_t i = 0; i < o->n_peaks; i++) {
        SCOPED(text_fini) struct text names = {0};
        const cJSON *d;
        cJSON_ArrayForEach (d, json_member(root, "devices")) {
            text_item(&names, ", ", json_string(d, "name"));
        }
        if (!used[i]) {
            (void)err_add(e, "--peak %s: %s has no such device; it has %s", o->peaks[i].device,
                          o->like, text_end(&names));
        }
    }
    return e->n > before ? -EINVAL : 0;
}

#define MAX_PEAKS 16

cJSON *soc_sibling_tree(const cJSON *sibling, const struct soc_sibling *o,
                        const struct conformal *t, struct err *e)
{
    bool used[MAX_PEAKS] = {false};
    cJSON *root = cJSON_Duplicate(sibling, true);
    double peak_gbs = json_number(json_member(json_member(sibling, "ddr"), "peak"), "value");
    const cJSON *likely = json_member(json_member(sibling, "ddr"), "likely");
    double measured_gbs = likely != NULL ? likely->valuedouble : peak_gbs;
    SIM_REQUIRE(o->n_peaks <= MAX_PEAKS, "as many peaks as a machine has devices");
    struct copy c = {.o = o,
                     .table = t,
                     .family = json_string(sibling, "family"),
                     .name = json_string(sibling, "name"),
                     .ddr_ratio = o->ddr_peak_gbs > 0.0 ? o->ddr_peak_gbs / measured_gbs : 1.0,
                     .ddr_peak_gbs = o->ddr_peak_gbs > 0.0 ? o->ddr_peak_gbs : peak_gbs};
    if (soc_share_read(&c.npu_share, e) != 0) {
        cJSON_Delete(root);
        return NULL;
    }
    OWNED char *note =
        xformat("Nothing measured here: every number is taken from %s (xpusim new-soc). "
                "`xpusim measure` measures it.",
                c.name);
    cJSON_DeleteItemFromObjectCaseSensitive(root, "metered"); /* readings of the sibling */
    copy_machine(root, &c);
    cJSON *device;
    cJSON_ArrayForEach (device, json_member(root, "devices")) {
        copy_device(device, &c, used);
    }
    /* errors of transfers are from the machine that was measured */
    const char *like = json_string(sibling, "like");
    set_text(root, "name", o->name);
    set_text(root, "like", like[0] == '\0' ? c.name : like);
    set_text(root, "note", note);
    if (o->family != NULL) {
        set_text(root, "family", o->family);
    }
    if (check_used(root, o, used, e) != 0 || check_units(sibling, o, e) != 0) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}
