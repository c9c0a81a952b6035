/* Finds the uncertain numbers of a configuration's machine. */
#include "experiments/compare/machines.h"
#include "experiments/run/models.h"
#include "sim/base/json.h"
#include "sim/base/words.h"

#define METER "its power while it works, with a meter"
#define ATTENTION "attention kernels over long prompts"
#define ONE_ROW "one-row kernels (decode, GEMV)"
#define MATRIX "matrix products of a chunk of rows (prefill, GEMM)"
#define SHORTEST "the shortest kernels, one after the other"
#define BATCH "decode of several sequences at once"
#define EXPERTS "a prompt of a mixture of experts"
#define COMPILING "compiling attention of two prompt lengths"
#define LOADING "loading a graph"

/* The first one whose name is the end of a path counts. Offsets as in calibrate.h: ln(1 + x /
 * offset) for numbers that may be 0. */
static const struct machine_number numbers[] = {
    {.name = ".prefill", .measure = "a prefill of this model of about 1000 tokens"},
    {.name = ".decode", .measure = "one token of this model at the contexts in question"},
    {.name = "power", .measure = METER},
    {.name = ".poll", .measure = METER},
    {.name = ".attention", .measure = ATTENTION},
    {.name = ".decode_attention", .measure = ATTENTION},
    {.name = ".attention_launches", .measure = ATTENTION, .offset = 1.0},
    {.name = ".special_attention", .measure = ATTENTION},
    {.name = ".recurrence", .measure = "a prompt of a model with states"},
    {.name = ".loader.fixed", .measure = LOADING},
    {.name = ".loader.bandwidth", .measure = LOADING},
    {.name = ".loader.swap_bandwidth", .measure = LOADING},
    {.name = ".bandwidth", .measure = ONE_ROW, .capped = true},
    {.name = ".rate", .measure = MATRIX},
    {.name = ".row_fill", .measure = MATRIX, .offset = 1.0},
    {.name = ".width_fill", .measure = "it", .offset = 100.0},
    {.name = ".enqueue", .measure = SHORTEST, .offset = 1.0 /* us */},
    {.name = ".prompt_enqueue", .measure = "prompts of few tokens", .offset = 1.0 /* us */},
    {.name = ".launch", .measure = SHORTEST, .offset = 1.0 /* us */},
    {.name = ".fused_launches", .measure = SHORTEST, .offset = 1.0},
    {.name = ".further_launches",
     .measure = "a decode of a mixture of experts, or of a model with states",
     .offset = 1.0},
    {.name = ".together", .measure = "streams on NPU and iGPU at once"},
    {.name = ".queueing", .measure = "streams on NPU and iGPU at once"},
    {.name = ".batch_fill", .measure = BATCH},
    {.name = ".expert_fill", .measure = EXPERTS},
    {.name = ".expert_rows", .measure = EXPERTS},
    {.name = ".decode_batch_inefficiency", .measure = BATCH},
    {.name = ".kv_gather", .measure = BATCH},
    {.name = ".compiler.fixed", .measure = COMPILING},
    {.name = ".compiler.per_token", .measure = COMPILING},
    {.name = "", .measure = "it"},
};

/* Members without numbers of the machine, or without effect on times, such as a device's peak. */
static const char *const aside[] = {"fit", "runtimes", "knee", "footprint", NULL};

struct finder {
    struct machines *m;
    struct err *e;
    int device;
    size_t prefix; /* length of path up to the number's name */
};

static const struct machine_number *number_of(const char *path)
{
    const struct machine_number *n = numbers;
    while (strlen(n->name) > strlen(path) ||
           strcmp(path + strlen(path) - strlen(n->name), n->name) != 0) {
        n++;
    }
    return n;
}

static struct machine_factor *add(struct finder *f, const char *path)
{
    if (f->m->n_factors == MACHINES_MAX_FACTORS) {
        return err_null(f->e, "--uncertainty: more than %d uncertain numbers",
                        MACHINES_MAX_FACTORS);
    }
    struct machine_factor *x = &f->m->factor[f->m->n_factors];
    *x = (struct machine_factor){.path = xkeep(xstrdup(path)),
                                 .group = f->m->n_factors,
                                 .device = f->device,
                                 .number = number_of(path)};
    x->name = x->path + f->prefix;
    f->m->n_factors++;
    return x;
}

/* Adds a quantity if its range has a width. */
static void add_range(struct finder *f, const cJSON *q, const char *path)
{
    double low = json_number(q, "low");
    double high = json_number(q, "high");
    struct machine_factor *x = low < high ? add(f, path) : NULL;
    if (x != NULL) {
        x->kind = MACHINE_RANGE;
        x->nominal = json_number(q, "value");
        x->low = fmin(low, x->nominal);
        x->high = fmax(high, x->nominal);
        x->unit = xkeep(xstrdup(json_string(q, "unit")));
    }
}

/* Adds a number that the file does not state, with the range of its default. */
static void add_unstated(struct finder *f, const cJSON *entry, const char *path, const char *key,
                         const struct machine_factor *range)
{
    OWNED char *at = xformat("%s.%s", path, key);
    struct machine_factor *x = json_member(entry, key) == NULL ? add(f, at) : NULL;
    if (x != NULL) {
        x->kind = MACHINE_RANGE;
        x->nominal = range->nominal;
        x->low = range->low;
        x->high = range->high;
        x->unit = xkeep(xstrdup(range->unit));
    }
}

/* Short prompts say of a decode batch's fill no more than that it lies between nothing and all. The
 * numbers of experts have the range that the machines with published prompts of mixtures ask for
 * (hwmodels/README.md). */
static void add_fills(struct finder *f, bool mixture, const cJSON *entry, const char *path)
{
    static const struct machine_factor batch = {.nominal = 1.0, .high = 1.0, .unit = "1"};
    static const struct machine_factor width = {
        .nominal = 2700.0, .low = 1400.0, .high = 4200.0, .unit = "columns"};
    static const struct machine_factor rows = {
        .nominal = 20.0, .low = 0.0, .high = 100.0, .unit = "rows"};
    const cJSON *fill = json_member(entry, "row_fill");
    if (json_number(fill, "value") > 0.0) {
        add_unstated(f, entry, path, "batch_fill", &batch);
    }
    if (mixture) {
        add_unstated(f, entry, path, "expert_fill", &width);
        add_unstated(f, entry, path, "expert_rows", &rows);
    }
}

static bool is_fitted(const cJSON *entry, const char *name)
{
    const cJSON *fit = json_member(entry, "fit");
    const cJSON *list = json_member(fit, "parameters");
    const cJSON *p;
    cJSON_ArrayForEach (p, list) {
        if (strcmp(p->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the quantities of an object and of members such as `one_row`, except calibrated ones (drawn
 * jointly) and those without effect on times or energy of this run. */
static void add_object(struct finder *f, const cJSON *o, const char *path, const cJSON *entry,
                       const char *prefix)
{
    const cJSON *q;
    cJSON_ArrayForEach (q, o) {
        if (!cJSON_IsObject(q) || words_find(aside, q->string) >= 0 ||
            (f->device >= 0 && strcmp(q->string, "peak") == 0)) {
            continue;
        }
        OWNED char *at = xformat("%s.%s", path, q->string);
        OWNED char *name = xformat("%s%s", prefix, q->string);
        if (json_member(q, "value") == NULL) {
            OWNED char *below = xformat("%s.", q->string);
            add_object(f, q, at, entry, below);
        } else if (entry == NULL || !is_fitted(entry, name)) {
            add_range(f, q, at);
        }
    }
}

static void add_fit(struct finder *f, const cJSON *entry, const char *path)
{
    const cJSON *fit = json_member(entry, "fit");
    const cJSON *list = json_member(fit, "parameters");
    const cJSON *cov = json_member(fit, "ln_covariance");
    uint32_t first = f->m->n_factors;
    for (int i = 0; i < cJSON_GetArraySize(list); i++) {
        const char *name = cJSON_GetArrayItem(list, i)->valuestring;
        const char *bad;
        const cJSON *q = json_find_path((cJSON *)(uintptr_t)entry, name, &bad);
        OWNED char *at = xformat("%s.%s", path, name);
        struct machine_factor *x = q != NULL ? add(f, at) : NULL;
        if (x == NULL) {
            return;
        }
        double sd = sqrt(cJSON_GetArrayItem(cJSON_GetArrayItem(cov, i), i)->valuedouble);
        double c = x->number->offset;
        x->kind = MACHINE_FIT;
        /* Drawn jointly, because rate and launch of a fit are correlated. Independent draws would
         * be machines that contradict the measurements. */
        x->group = first;
        x->nominal = json_number(q, "value");
        x->low = fmax((x->nominal + c) * exp(-2.0 * sd) - c, c > 0.0 ? 0.0 : 1e-6 * x->nominal);
        x->high = (x->nominal + c) * exp(2.0 * sd) - c;
        x->unit = xkeep(xstrdup(json_string(q, "unit")));
    }
}

/* Adds the residuals of a model on a device. `name`: of a further model, in its factors. */
static void add_residuals(struct finder *f, const struct device *d, uint32_t model,
                          const char *name)
{
    static const char *const phases[] = {"prefill", "decode"};
    OWNED char *of = xformat("residual.%s.", d->name);
    for (int i = 0; i < 2; i++) {
        OWNED char *path = xformat("%s%s%s%s", of, name, name[0] != '\0' ? "." : "", phases[i]);
        f->prefix = strlen(of);
        struct machine_factor *x = add(f, path);
        if (x != NULL) {
            x->kind = MACHINE_RESIDUAL;
            x->decode = i == 1;
            x->model = model;
            x->nominal = 1.0;
            x->unit = "x time";
        }
    }
}

/* The number of the entry that a model uses on a device. */
static long entry_of(const struct config *c, uint32_t d, uint32_t model)
{
    return models_roofline(c, model)->runtime[d] - c->soc.devices[d].runtimes;
}

/* Adds a model's entry on a device, unless an earlier model uses it, because others have no effect.
 */
static void add_entry(struct finder *f, const struct config *c, uint32_t d, uint32_t model,
                      const cJSON *device)
{
    const long entry = entry_of(c, d, model);
    bool mixture = false;
    for (uint32_t i = 0; i <= c->n_more; i++) {
        if (i < model && entry_of(c, d, i) == entry) {
            return;
        }
        mixture = mixture || (entry_of(c, d, i) == entry && models_llm(c, i)->n_experts > 0);
    }
    const cJSON *r = cJSON_GetArrayItem(json_member(device, "runtimes"), (int)entry);
    OWNED char *own = xformat("soc.devices.%s.", json_string(device, "name"));
    OWNED char *path = xformat("%sruntimes.%ld", own, entry);
    f->prefix = strlen(path) + 1;
    add_object(f, r, path, r, "");
    add_fills(f, mixture, r, path);
    add_fit(f, r, path);
}

int machines_find(const struct config *c, struct machines *m, struct err *e)
{
    struct finder finder = {m, e, -1, strlen("soc.")};
    struct finder *f = &finder;
    size_t before = e->n;
    m->ddr_peak = c->soc.machine.ddr_peak_bytes_per_s / 1e9;
    m->pl2_watts = c->soc.package_pl2_watts;
    static const char *const parts[] = {"ddr", "host", "compiler", "loader"};
    const cJSON *soc = json_member(c->tree, "soc");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        OWNED char *path = xformat("soc.%s", parts[i]);
        add_object(f, json_member(soc, parts[i]), path, NULL, "");
    }
    const cJSON *idle = json_member(soc, "idle_power");
    if (idle != NULL) {
        add_range(f, idle, "soc.idle_power");
    }
    const cJSON *devices = json_member(soc, "devices");
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        if (d > 0 && c->soc.devices[d].entry == c->soc.devices[d - 1].entry) {
            continue; /* partitions share the numbers of an entry */
        }
        const cJSON *device = cJSON_GetArrayItem(devices, (int)c->soc.devices[d].entry);
        OWNED char *own = xformat("soc.devices.%s", json_string(device, "name"));
        f->device = (int)d;
        f->prefix = strlen(own) + 1;
        add_object(f, device, own, NULL, "");
        const cJSON *more = json_member(json_member(c->tree, "models"), "more");
        for (uint32_t i = 0; i <= c->n_more; i++) {
            const cJSON *name = i > 0 ? cJSON_GetArrayItem(more, (int)i - 1) : NULL;
            add_entry(f, c, d, i, device);
            add_residuals(f, &c->soc.machine.devices[d], i, name != NULL ? name->string : "");
        }
    }
    f->device = -1;
    f->prefix = strlen("soc.");
    if (c->sim.power.limit == CONFIG_LIMIT_PACKAGE) { /* nothing else reads them */
        add_object(f, json_member(soc, "package"), "soc.package", NULL, "");
    }
    add_object(f, json_member(soc, "supply"), "soc.supply", NULL, "");
    return e->n == before ? 0 : -EINVAL;
}
