#include "experiments/run/warnings.h"

#include "experiments/run/config_notes.h"
#include "experiments/run/interval.h"
#include "experiments/run/models.h"
#include "experiments/run/price.h"

#define LEAST_SHOWN_FRAC 0.0005 /* prints as 0.1 % */
#define BATCH_CONTEXT 1024
#define DEAR_BATCH 1.3 /* warn if two sequences take this many times as long as one */

struct document *warnings_of(struct document *d)
{
    return document_array(d, "warnings");
}

void warnings_add(struct document *list, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    OWNED char *text = xvformat(fmt, ap);
    va_end(ap);
    DOCUMENT_VALUES(list, NULL, text);
    document_note(list, "\nwarning: %s", text);
}

/* Warns about an unmeasured machine, with the error of similar machines. */
static void transfer(const struct config *c, struct document *list)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    const struct conformal *t = c->soc.like[0] != '\0' ? interval_table(&e) : NULL;
    if (e.n > 0) {
        warnings_add(list, "how far machines like it were off is unknown: %s", e.lines[0]);
    }
    for (uint32_t i = 0; t != NULL && i < c->soc.machine.n_devices; i++) {
        if (interval_is_transfer(&c->soc, (uint8_t)i)) {
            OWNED char *text = interval_transfer_text(t, &c->soc, (uint8_t)i);
            warnings_add(list, "%s", text);
        }
    }
}

/* Without data in the file, the cost of a decode batch is derived from short prompts. Whether
 * batching pays depends on it, so warn if a batch is expensive by that rule. */
static void batches(const struct config *c, uint32_t model, struct document *list)
{
    const struct roofline *truth = models_roofline(c, model);
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        const struct soc_runtime *r = truth->runtime[i];
        if (r == NULL || r->fill_rows <= 0.0 || r->batch_fill_own || r->ops.given ||
            c->soc.machine.devices[i].chunk_rows > 0) {
            continue;
        }
        struct work_shape one = price_decode_shape(models_llm(c, model), BATCH_CONTEXT, 1);
        struct work_shape two = price_decode_shape(models_llm(c, model), BATCH_CONTEXT, 2);
        double times = price_pass(truth, (uint8_t)i, &two).seconds /
                       price_pass(truth, (uint8_t)i, &one).seconds;
        if (times >= DEAR_BATCH) {
            warnings_add(
                list,
                "%s%s%s: two sequences decode in %.2f times the time of one. That is a short "
                "prompt's cost; no batch of %s is measured (batch_fill, "
                "hwmodels/README.md)",
                c->soc.machine.devices[i].name, c->n_more > 0 ? ", " : "",
                c->n_more > 0 ? models_llm(c, model)->name : "", times, r->runtime);
        }
    }
}

/* Warns that cached prefixes end at any block, though engines keep recurrent states at few. */
static void states(const struct llm *m, struct document *list)
{
    if (m->kv_state_bytes > 0.0) {
        warnings_add(
            list,
            "a sequence of %s has states of %.3g MB. A cached beginning is taken at any of "
            "its blocks; engines keep states at a few places only, and compute more again",
            m->name, m->kv_state_bytes / 1e6);
    }
}

/* Warns that one width is assumed for all weights of a mixture of experts. */
static void mixture(const cJSON *llm, struct document *list)
{
    const double bits = json_number(llm, "weight_bits");
    if (json_number(llm, "experts") > 0.0 && bits < 16.0 &&
        json_member(llm, "dense_bytes_per_weight") == NULL) {
        warnings_add(
            list,
            "all weights of %s have %g bits here. Files of mixtures in dynamic formats "
            "(UD-Q4_K_XL) have nearly 16 outside experts, and decode more slowly: take the "
            "LLM file of the GGUF (new-llm --gguf), or state "
            "llm.dense_bytes_per_weight",
            json_string(llm, "name"), bits);
    }
}

static void add_data(void *list, const char *text)
{
    DOCUMENT_VALUES(list, NULL, text);
}

static uint32_t width_of(const struct config *c, uint32_t model)
{
    return models_llm(c, model)->weight_bits;
}

/* Each width of the run's models once. */
static void widths(const struct config *c, struct document *list)
{
    for (uint32_t m = 0; m <= c->n_more; m++) {
        uint32_t first = 0;
        while (width_of(c, first) != width_of(c, m)) {
            first++;
        }
        const struct roofline *truth = models_roofline(c, m);
        for (uint32_t i = 0; i < c->soc.machine.n_devices && first == m; i++) {
            if (truth->fallback[i]) {
                warnings_add(list,
                             "%s has no parameters for %u-bit weights: those of its default "
                             "runtime are used",
                             c->soc.machine.devices[i].name, width_of(c, m));
            }
        }
    }
}

void warnings_machine(const struct config *c, struct document *list)
{
    widths(c, list);
    if (c->soc.extrapolated_npu) {
        warnings_add(list,
                     "the NPU numbers of %s are extrapolated from other parts (hwmodels/README.md)",
                     c->soc.machine.name);
    }
    transfer(c, list);
    for (uint32_t i = 0; i <= c->n_more; i++) {
        batches(c, i, list);
    }
    mixture(json_member(c->tree, "llm"), list);
    const cJSON *m;
    cJSON_ArrayForEach (m, json_member(json_member(c->tree, "models"), "more")) {
        mixture(m, list);
    }
    states(&c->llm, list);
    for (uint32_t i = 0; i < c->n_more; i++) {
        states(&c->more[i].llm, list);
    }
    config_notes(c, add_data, list);
}

void warnings_sketch(bool sketch, struct document *list)
{
    if (sketch) {
        warnings_add(list,
                     "quantiles are from a sketch, within 0.5 %% (--exact keeps every sample)");
    }
}

/* The meters of devices with powers. */
struct meters {
    bool different;
    int first;           /* meter of the first such device; < 0: none */
    struct text devices; /* "npu rail, igpu package" */
};

static struct meters meters_of(const struct config *c)
{
    struct meters m = {.first = -1};
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        const struct device *d = &c->soc.machine.devices[i];
        const int meter = c->soc.devices[i].meter;
        if (d->decode_watts > 0.0 || d->prefill_watts > 0.0) {
            text_item(&m.devices, ", ", d->name);
            text_item(&m.devices, " ", soc_meter_names()[meter]);
            m.first = m.first < 0 ? meter : m.first;
            m.different = m.different || meter != m.first;
        }
    }
    return m;
}

char *warnings_meter(const struct config *c)
{
    struct meters m = meters_of(c);
    char *out = m.different ? xformat("different (%s)", text_end(&m.devices))
                            : xstrdup(soc_meter_names()[m.first < 0 ? 0 : m.first]);
    text_fini(&m.devices);
    return out;
}

void warnings_energy(const struct config *c, struct document *list)
{
    struct meters m = meters_of(c);
    if (m.different) {
        warnings_add(list,
                     "energy compares devices whose powers come from different meters (%s): which "
                     "device takes less energy is not known",
                     text_end(&m.devices));
    } else if (m.first == SOC_METER_RAIL) {
        warnings_add(list, "energy counts the devices' own rails only: what the memory and the "
                           "rest of the chip draw for them is missing");
    }
    text_fini(&m.devices);
}

/* Two runtimes of one maker: "llama.cpp-vulkan-9187" and "llama.cpp". */
static bool is_of_one_maker(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");
    return n == strcspn(b, "-") && strncmp(a, b, n) == 0;
}

/* Adds to `used` the devices of a policy, where two of them have different makers. */
static bool mixes_makers(const struct config *c, const double *busy, bool *used)
{
    bool mixes = false;
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const struct soc_runtime *const *of = c->truth.runtime;
            if (busy[i] > 0.0 && busy[k] > 0.0 &&
                !is_of_one_maker(of[i]->runtime, of[k]->runtime)) {
                mixes = used[i] = used[k] = true;
            }
        }
    }
    return mixes;
}

void warnings_formats(const struct config *c, const double *busy, const char *const *labels,
                      uint32_t n, struct document *list)
{
    bool used[MACHINE_MAX_DEVICES] = {false};
    SCOPED(text_fini) struct text who = {0};
    SCOPED(text_fini) struct text devices = {0};
    for (uint32_t p = 0; p < n && c->n_more == 0; p++) { /* a device may have a model of its own */
        if (mixes_makers(c, busy + p * MACHINE_MAX_DEVICES, used) && labels != NULL) {
            text_item(&who, ", ", labels[p]);
        }
    }
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        if (used[i]) {
            text_format(&devices, "%s%s (%s)", devices.n > 0 ? ", " : "",
                        c->soc.machine.devices[i].name, c->truth.runtime[i]->runtime);
        }
    }
    if (devices.n > 0) {
        warnings_add(
            list,
            "%s%s%s read one copy of the weights and one KV here. These runtimes may store "
            "both in formats of their own (ARCHITECTURE.md, \"What is not modelled\")",
            text_end(&who), who.n > 0 ? ": " : "", text_end(&devices));
    }
}

/* Index of a device's entry, which is added if it is new. */
static uint32_t device_index(struct extrapolated *x, const char *name, size_t bytes)
{
    uint32_t i = 0;
    while (i < x->n &&
           (strlen(x->of[i].device) != bytes || strncmp(x->of[i].device, name, bytes) != 0)) {
        i++;
    }
    if (i == x->n && i < MACHINE_MAX_DEVICES) {
        memset(&x->of[i], 0, sizeof x->of[i]);
        memcpy(x->of[i].device, name, bytes);
        x->n++;
    }
    return i;
}

void extrapolated_add(struct extrapolated *x, const char *metric, double value)
{
    const char *part = strstr(metric, ".extrapolated_");
    if (part == NULL || isnan(value) || (size_t)(part - metric) >= sizeof x->of[0].device) {
        return;
    }
    uint32_t i = device_index(x, metric, (size_t)(part - metric));
    if (i == MACHINE_MAX_DEVICES) {
        return;
    }
    if (strcmp(part, ".extrapolated_frac") == 0) {
        x->of[i].frac = value;
    } else if (strcmp(part, ".extrapolated_rows_frac") == 0) {
        x->of[i].rows_frac = value;
    } else if (strcmp(part, ".extrapolated_context_frac") == 0) {
        x->of[i].context_frac = value;
    }
}

struct extrapolated extrapolated_of(const struct metric_list *l)
{
    struct extrapolated x = {.n = 0};
    for (size_t i = 0; i < l->n; i++) {
        extrapolated_add(&x, l->v[i].name, l->v[i].value);
    }
    return x;
}

char *extrapolated_text(const struct extrapolated *x)
{
    char *all = NULL;
    for (uint32_t i = 0; i < x->n; i++) {
        bool rows = x->of[i].rows_frac >= LEAST_SHOWN_FRAC;
        bool context = x->of[i].context_frac >= LEAST_SHOWN_FRAC;
        if (x->of[i].frac < LEAST_SHOWN_FRAC) {
            continue;
        }
        const char *why = rows && context ? " (longer contexts, more rows)"
                          : context       ? " (longer contexts)"
                          : rows          ? " (more rows)"
                                          : ""; /* each part is too small to print */
        char *text = xformat("%s%s%s %.3g %% of its kernel time%s", all != NULL ? all : "",
                             all != NULL ? ", " : "", x->of[i].device, 100.0 * x->of[i].frac, why);
        free(all);
        all = text;
    }
    return all;
}

void warnings_range(const struct extrapolated *x, const char *const *labels, uint32_t n,
                    struct document *list)
{
    char *all = NULL;
    for (uint32_t p = 0; p < n; p++) {
        OWNED char *one = extrapolated_text(&x[p]);
        if (one != NULL) {
            char *text = xformat("%s%s%s%s%s", all != NULL ? all : "", all != NULL ? "; " : "",
                                 labels != NULL ? labels[p] : "", labels != NULL ? ": " : "", one);
            free(all);
            all = text;
        }
    }
    if (all != NULL) {
        warnings_add(list, "outside the calibrated range, where times are extrapolated: %s", all);
    }
    free(all);
}
