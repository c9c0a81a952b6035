/* Quantities that need no run: kernel costs, two kernels at once, and numbers of the machine. */
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>

#include "experiments/claims/quantities_impl.h"
#include "experiments/run/config.h"
#include "experiments/run/price.h"
#include "sim/metrics/metrics.h"
#include "traces/traces.h"

/* The last loaded configuration. A file has many kernels of one place in a row, and a fit those of
 * thousands of places. Loading costs a thousand times more than pricing. */
static struct {
    char *key; /* NULL: none */
    struct config_options options;
    struct config config;
} last;

static void forget(void)
{
    if (last.key != NULL) {
        config_fini(&last.config);
        free(last.key);
        last.key = NULL;
    }
}

static char *key_of(const struct quantity_place *p)
{
    OWNED char *sets = p->sets != NULL ? cJSON_PrintUnformatted(p->sets) : NULL;
    return xformat("%s %s %s", p->soc, p->llm, sets != NULL ? sets : "");
}

/* The configuration of a place, valid until the next call, or NULL, with errors added to those of
 * its file. */
static const struct config *load(const struct quantity_place *p, const struct json_obj *o)
{
    char *key = key_of(p);
    if (last.key != NULL && strcmp(last.key, key) == 0) {
        free(key);
        return &last.config;
    }
    SCOPED(err_fini) struct err e = ERR_INIT;
    forget();
    last.key = key;
    memset(&last.config, 0, sizeof last.config);
    int rc = quantity_options(p, &last.options, &e);
    rc = rc == 0 ? config_load(&last.config, &last.options, &e) : rc;
    if (rc != 0) {
        json_refuse(o, NULL, "%s", e.n > 0 ? e.lines[0] : "bad place");
        forget();
    }
    return rc == 0 ? &last.config : NULL;
}

static int find_device(const struct machine *m, const char *name, const struct json_obj *o)
{
    for (uint32_t i = 0; i < m->n_devices; i++) {
        if (strcmp(m->devices[i].name, name) == 0) {
            return (int)i;
        }
    }
    json_refuse(o, "device", "%s has no device called \"%s\"", m->name, name);
    return -1;
}

/* ---- kernels ---- */

struct batch {
    uint32_t prefill_tokens, prompts, sequences, context_tokens;
    bool causal;
};

static struct batch read_batch(struct json_obj *o)
{
    struct batch b = {.prefill_tokens = json_u32_or(o, "prefill_tokens", 0, 1000000, 0)};
    b.prompts = json_u32_or(o, "prompts", 0, 1000000, b.prefill_tokens > 0 ? 1 : 0);
    b.sequences = json_u32_or(o, "sequences", 0, 1000000, 0);
    b.context_tokens = json_u32_or(o, "context_tokens", 0, 1000000, b.prefill_tokens);
    b.causal = !json_has(o, "causal") || json_get_bool(o, "causal");
    if (b.prefill_tokens * (uint64_t)b.prompts + b.sequences == 0 ||
        b.context_tokens < b.prefill_tokens || b.context_tokens == 0) {
        json_refuse(o, NULL,
                    "must have prefill_tokens or sequences, and context_tokens of at "
                    "least prefill_tokens");
    }
    return b;
}

static struct work_shape shape_of(const struct batch *b)
{
    uint64_t p = b->prefill_tokens;
    uint64_t before = b->context_tokens - p;
    uint64_t pairs = b->causal ? p * before + p * (p + 1) / 2 : p * b->context_tokens;
    uint32_t prefill = b->prefill_tokens * b->prompts;
    uint64_t decode_keys = (uint64_t)b->sequences * b->context_tokens;
    return (struct work_shape){.rows = prefill + b->sequences,
                               .logit_rows = b->prompts + b->sequences,
                               .sequences = b->prompts + b->sequences,
                               .prefill_rows = prefill,
                               .attn_pairs = pairs * b->prompts + decode_keys,
                               .kv_read_tokens =
                                   (uint64_t)b->prompts * b->context_tokens + decode_keys,
                               .max_context_tokens = b->context_tokens};
}

static void add_op(const struct config *c, const struct work_shape *w, enum op_kind op,
                   uint8_t device, struct price_op *sum)
{
    struct price_op k = price_op(&c->truth, device, op, w);
    sum->seconds += k.seconds;
    sum->longest_s = fmax(sum->longest_s, k.longest_s);
    sum->flop += k.flop;
    sum->bytes += k.bytes;
}

/* Cost of all kernels of one layer's op, or of QKV, MHA and FFN together (op OP_LAYER + 1). */
static struct price_op price(const struct config *c, const struct work_shape *w, int op,
                             uint8_t device)
{
    struct price_op p = {0};
    if (op <= OP_LAYER) {
        add_op(c, w, (enum op_kind)op, device, &p);
    } else {
        add_op(c, w, OP_QKV, device, &p);
        add_op(c, w, OP_MHA, device, &p);
        add_op(c, w, OP_FFN, device, &p);
    }
    return p;
}

static double kernel_field(const struct config *c, const struct work_shape *w, int op, int field,
                           uint8_t device)
{
    struct price_op p = price(c, w, op, device);
    const struct device *d = &c->soc.machine.devices[device];
    double watts = w->prefill_rows > 0 ? d->prefill_watts : d->decode_watts;
    const double fields[] = {1e3 * p.seconds, 1e3 * p.longest_s,         p.flop,
                             p.bytes,         p.flop / p.seconds / 1e12, watts};
    return fields[field];
}

static const char *const ops[] = {"QKV", "MHA", "FFN", "HEAD", "LAYER", "SUM", NULL};

double quantity_kernel(struct json_obj *o)
{
    static const char *const fields[] = {"time_ms",     "longest_ms", "flop", "bytes",
                                         "tflop_per_s", "watts",      NULL};
    struct quantity_place place = quantity_place_read(o);
    const char *device = json_get_string(o, "device");
    int op = json_get_choice(o, "op", ops);
    int field = json_get_choice(o, "field", fields);
    struct batch b = read_batch(o);
    if (o->err->n > 0) {
        return (double)NAN;
    }
    const struct config *c = load(&place, o);
    int d = c != NULL ? find_device(&c->soc.machine, device, o) : -1;
    struct work_shape w = shape_of(&b);
    return d >= 0 ? kernel_field(c, &w, op, field, (uint8_t)d) : (double)NAN;
}

/* ---- two kernels at once ---- */

struct corunner {
    const char *device;
    int op;
    struct batch batch;
};

static struct corunner read_corunner(struct json_obj *o, const char *key)
{
    struct json_obj in = json_get_object(o, key);
    struct corunner r = {json_get_string(&in, "device"), json_get_choice(&in, "op", ops), {0}};
    r.batch = read_batch(&in);
    json_done(&in);
    return r;
}

double quantity_corun(struct json_obj *o)
{
    static const char *const fields[] = {"slowdown",    "isolated_gb_per_s", "shared_gb_per_s",
                                         "isolated_ms", "shared_ms",         NULL};
    struct quantity_place place = quantity_place_read(o);
    int field = json_has(o, "field") ? json_get_choice(o, "field", fields) : 0;
    struct corunner r[2] = {read_corunner(o, "kernel"), read_corunner(o, "beside")};
    if (o->err->n > 0) {
        return (double)NAN;
    }
    struct flow f[2];
    double ms = 0.0; /* of the kernel, isolated */
    double v = (double)NAN;
    const struct config *c = load(&place, o);
    bool ok = c != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        int d = find_device(&c->soc.machine, r[i].device, o);
        ok = d >= 0;
        if (ok) {
            struct work_shape w = shape_of(&r[i].batch);
            struct price_op p = price(c, &w, r[i].op, (uint8_t)d);
            ms = i == 0 ? 1e3 * p.seconds : ms;
            f[i] = (struct flow){
                .demand_bytes_per_s = p.bytes / p.seconds, .weight = 1.0, .device = (uint8_t)d};
        }
    }
    if (ok) {
        double cap = fmax(c->soc.machine.ddr_peak_bytes_per_s * c->soc.machine.ddr_cap_frac,
                          fmax(f[0].demand_bytes_per_s, f[1].demand_bytes_per_s));
        c->contention->share(f, 2, cap, &c->contention_params);
        double slowdown = f[0].demand_bytes_per_s / f[0].share_bytes_per_s;
        const double all[] = {slowdown, f[0].demand_bytes_per_s / 1e9, f[0].share_bytes_per_s / 1e9,
                              ms, ms * slowdown};
        v = all[field];
    }
    return v;
}

/* ---- the machine ---- */

static double machine_field(const struct machine *m, const char *field, const struct json_obj *o)
{
    struct metrics_options mo = metrics_options_default();
    if (strcmp(field, "compile_watts") == 0) {
        return m->compile_watts;
    }
    if (strcmp(field, "idle_watts") == 0) {
        return m->idle_watts;
    }
    if (strcmp(field, "util_prefill_frac") == 0) {
        return mo.util_prefill_frac;
    }
    if (strcmp(field, "util_decode_frac") == 0) {
        return mo.util_decode_frac;
    }
    for (uint32_t i = 0; i < m->n_devices; i++) {
        size_t n = strlen(m->devices[i].name);
        if (strncmp(field, m->devices[i].name, n) == 0 && field[n] == '.') {
            if (strcmp(&field[n + 1], "decode_watts") == 0) {
                return m->devices[i].decode_watts;
            }
            if (strcmp(&field[n + 1], "prefill_watts") == 0) {
                return m->devices[i].prefill_watts;
            }
        }
    }
    json_refuse(o, "field",
                "must be DEVICE.decode_watts, DEVICE.prefill_watts, idle_watts, "
                "compile_watts, util_prefill_frac or util_decode_frac");
    return (double)NAN;
}

double quantity_machine(struct json_obj *o)
{
    struct quantity_place place = quantity_place_read(o);
    const char *field = json_get_string(o, "field");
    const struct config *c = load(&place, o);
    return c != NULL ? machine_field(&c->soc.machine, field, o) : (double)NAN;
}

/* ---- lengths of a data set ---- */

double quantity_lengths(struct json_obj *o)
{
    static const char *const columns[] = {"input", "output", NULL};
    const char *name = json_get_string(o, "dataset");
    int column = json_get_choice(o, "column", columns);
    double p = json_get_number(o, "quantile", 0.0, 1.0);
    SCOPED(dataset_fini) struct dataset d = {.n = 0};
    SCOPED(err_fini) struct err e = ERR_INIT;
    double v = (double)NAN;
    if (o->err->n == 0 && dataset_load(name, &d, &e) != 0) {
        json_refuse(o, "dataset", "%s", e.lines[0]);
    } else if (d.n > 0) {
        OWNED double *x = xcalloc(d.n, sizeof *x);
        for (size_t i = 0; i < d.n; i++) {
            x[i] = column == 0 ? d.rows[i].input_tokens : d.rows[i].output_tokens;
        }
        gsl_sort(x, 1, d.n);
        v = gsl_stats_quantile_from_sorted_data(x, 1, d.n, p);
    }
    return v;
}
