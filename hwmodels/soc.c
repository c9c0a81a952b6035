#include "hwmodels/soc.h"

#include <errno.h>
#include <string.h>

#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/units.h"

/* Reads a quantity, counts its kind, converts by `scale`. */
static double number(struct soc *soc, struct json_obj *o, const char *key, const char *unit,
                     double min, double max, double scale)
{
    struct quantity q = json_get_quantity(o, key, unit, min, max);
    if (q.present) {
        soc->n_numbers[q.kind]++;
    }
    return q.value * scale;
}

static int64_t span_ns(struct soc *soc, struct json_obj *o, const char *key, const char *unit,
                       double max, double seconds)
{
    return units_ns_from_s(number(soc, o, key, unit, 0.0, max, seconds));
}

static void copy_name(char *out, size_t size, const char *text, struct json_obj *o, const char *key)
{
    if (strlen(text) >= size) {
        err_add(o->err, "%s: %s%s%s: longer than %zu bytes", o->file, o->path,
                o->path[0] == '\0' ? "" : ".", key, size - 1);
        text = "";
    }
    memcpy(out, text, strlen(text) + 1);
}

static void curve_parse(struct soc *soc, struct json_obj *o, struct soc_curve *c)
{
    c->flop_per_s = number(soc, o, "rate", "TFLOP/s", 1e-4, 1e5, 1e12);
    c->bytes_per_s = number(soc, o, "bandwidth", "GB/s", 1e-3, 1e5, 1e9);
    c->launch_s = number(soc, o, "launch", "us", 0.0, 1e6, 1e-6);
}

/* How well a calibration went is for people; where it started from is read. */
static void fit_parse(struct json_obj *o, struct soc_runtime *r)
{
    struct json_obj fit = json_get_object(o, "fit");
    if (json_has(&fit, "start")) {
        struct json_obj s = json_get_object(&fit, "start");
        r->start = (struct soc_start){
            .given = true,
            .flop_per_s = 1e12 * json_get_number(&s, "rate", 1e-4, 1e5),
            .bytes_per_s = 1e9 * json_get_number(&s, "bandwidth", 1e-3, 1e5),
            .launch_s = 1e-6 * json_get_number(&s, "launch", 0.0, 1e6),
            .fill_rows = json_get_number(&s, "row_fill", 0.0, 1e6),
            .attention_frac = json_get_number(&s, "attention", 1e-4, 10.0),
            .width_fill = json_get_number(&s, "width_fill", 0.0, 1e6),
            .one_bytes_per_s = 1e9 * json_get_number(&s, "one_row_bandwidth", 1e-3, 1e5),
            .one_launch_s = 1e-6 * json_get_number(&s, "one_row_launch", 0.0, 1e6)};
        json_done(&s);
    }
    /* Errors and counts of a calibration are not read by anybody, and are no unknown keys. */
    fit.seen = UINT64_MAX;
    json_done(&fit);
}

static void table_parse(struct json_obj *o, struct soc_table *t)
{
    t->n = (uint32_t)json_get_array_size(o, "table", 1, SOC_MAX_TABLE);
    for (uint32_t i = 0; i < t->n; i++) {
        struct json_obj p = json_array_object(o, "table", (int)i);
        t->rows[i] = json_get_u32(&p, "rows", 1, 1u << 24);
        t->factor[i] = json_get_number(&p, "factor", 1e-3, 1e3);
        /* Between two rows a factor is interpolated; that takes an order. */
        if (i > 0 && t->rows[i] <= t->rows[i - 1]) {
            err_add(o->err, "%s: %s.table[%u].rows: must rise", o->file, o->path, i);
        }
        json_done(&p);
    }
}

/* A number that a file may leave out. */
static double optional(struct soc *soc, struct json_obj *o, const char *key, const char *unit,
                       double low, double high, double otherwise)
{
    return json_has(o, key) ? number(soc, o, key, unit, low, high, 1.0) : otherwise;
}

static void runtime_parse(struct soc *soc, struct soc_device *d, struct json_obj *o)
{
    struct soc_runtime *r = &d->runtimes[d->n_runtimes];
    copy_name(r->runtime, sizeof r->runtime, json_get_string(o, "runtime"), o, "runtime");
    r->weight_bits = json_get_u32(o, "weight_bits", 1, 32);
    r->format = soc_format_of_width(r->weight_bits);
    if (json_has(o, "body_bytes")) {
        r->format.body_bytes = number(soc, o, "body_bytes", "B", 0.05, 8.0, 1.0);
    }
    if (json_has(o, "head_bytes")) {
        r->format.head_bytes = number(soc, o, "head_bytes", "B", 0.05, 8.0, 1.0);
    }
    if (json_has(o, "kv_bytes")) {
        r->format.kv_bytes = number(soc, o, "kv_bytes", "B", 0.05, 8.0, 1.0);
    }
    r->chunk_rows = json_has(o, "chunk_rows") ? json_get_u32(o, "chunk_rows", 1, 65536) : 0;
    curve_parse(soc, o, &r->many);
    r->one = r->many;
    r->one_row_own = json_has(o, "one_row");
    if (r->one_row_own) {
        struct json_obj one = json_get_object(o, "one_row");
        curve_parse(soc, &one, &r->one);
        json_done(&one);
    }
    r->fill_rows = number(soc, o, "row_fill", "rows", 0.0, 1e6, 1.0);
    r->width_fill_own = json_has(o, "width_fill");
    r->width_fill = optional(soc, o, "width_fill", "columns", 0.0, 1e6, 0.0);
    r->attention_frac = number(soc, o, "attention", "1", 1e-4, 10.0, 1.0);
    r->decode_attention_frac = optional(soc, o, "decode_attention", "1", 1e-6, 10.0, 0.0);
    r->knee = optional(soc, o, "knee", "1", 0.5, 100.0, 1.2);
    r->decode_batch_frac = optional(soc, o, "decode_batch_inefficiency", "1", 0.0, 10.0, 0.0);
    r->attention_launches = optional(soc, o, "attention_launches", "1", 0.0, 100.0, 0.0);
    r->kv_gather_frac = optional(soc, o, "kv_gather", "1", 0.0, 10.0, 0.0);
    r->fused_launch_frac = optional(soc, o, "fused_launches", "1", 0.0, 1.0, 1.0);
    r->min_rows = json_has(o, "min_rows") ? json_get_u32(o, "min_rows", 1, 4096) : 1;
    r->pad_attention = json_has(o, "pad_attention") && json_get_bool(o, "pad_attention");
    if (json_has(o, "valid")) {
        struct json_obj v = json_get_object(o, "valid");
        r->valid_rows_max = json_get_u32(&v, "rows_max", 0, UINT32_MAX);
        r->valid_context_max = json_get_u32(&v, "context_max", 0, UINT32_MAX);
        json_done(&v);
    }
    if (json_has(o, "table")) {
        table_parse(o, &r->table);
    }
    if (json_has(o, "ops")) {
        soc_ops_parse(o, "ops", &r->ops);
    }
    if (json_has(o, "fit")) {
        fit_parse(o, r);
    }
    if (json_has(o, "default") && json_get_bool(o, "default")) {
        d->fallback = d->n_runtimes;
        d->n_defaults++;
    }
    json_done(o);
    d->n_runtimes++;
}

/* Several cards as one device: rates, bandwidth and memory of the file are of all together. */
static void exchange_parse(struct soc *soc, struct json_obj *o, struct soc_exchange *x)
{
    struct json_obj e = json_get_object(o, "exchange");
    x->cards = json_get_u32(&e, "cards", 2, 64);
    x->latency_s = number(soc, &e, "latency", "us", 0.0, 1e6, 1e-6);
    x->bytes_per_s = number(soc, &e, "link", "GB/s", 1e-3, 1e5, 1e9);
    json_done(&e);
}

static void device_parse(struct soc *soc, struct json_obj *o)
{
    static const char *const sharing[] = {"serial", "time_shared", NULL};
    struct machine *m = &soc->machine;
    uint32_t index = m->n_devices++;
    struct device *d = &m->devices[index];
    d->index = (uint8_t)index;
    copy_name(d->name, sizeof d->name, json_get_string(o, "name"), o, "name");
    d->kind = (enum device_kind)json_get_choice(o, "kind", device_kind_names());
    d->sharing = (enum device_sharing)json_get_choice(o, "sharing", sharing);
    d->inflight_depth = json_get_u32(o, "inflight_depth", 1, 64);
    d->max_shared = json_get_u32(o, "max_shared", 1, MACHINE_MAX_SHARED);
    d->shared_efficiency_frac = number(soc, o, "shared_efficiency", "1", 0.01, 1.0, 1.0);
    d->chunk_rows = json_get_u32(o, "chunk_rows", 0, 65536);
    d->static_attention = json_get_bool(o, "static_attention");
    d->can_withdraw = json_get_bool(o, "can_withdraw");
    d->can_reset = json_get_bool(o, "can_reset");
    d->can_suspend = json_get_bool(o, "can_suspend");
    d->submit_ns = span_ns(soc, o, "submit", "us", 1e6, 1e-6);
    d->completion_ns = span_ns(soc, o, "completion", "us", 1e6, 1e-6);
    d->reset_ns = span_ns(soc, o, "reset", "us", 1e6, 1e-6);
    d->ddr_weight = optional(soc, o, "ddr_weight", "1", 1e-3, 1e3, 1.0);
    d->idle_watts = number(soc, o, "idle_power", "W", 0.0, 1e4, 1.0);
    d->decode_watts = number(soc, o, "decode_power", "W", 0.0, 1e4, 1.0);
    d->prefill_watts = number(soc, o, "prefill_power", "W", 0.0, 1e4, 1.0);
    struct soc_device *sd = &soc->devices[index];
    sd->peak_flop_per_s = number(soc, o, "peak", "TFLOP/s", 1e-3, 1e5, 1e12);
    sd->beside_frac = optional(soc, o, "beside", "1", 0.0, 10.0, 0.0);
    if (json_has(o, "exchange")) {
        exchange_parse(soc, o, &sd->exchange);
    }
    int n = json_get_array_size(o, "runtimes", 1, SOC_MAX_RUNTIMES);
    for (int i = 0; i < n; i++) {
        struct json_obj r = json_array_object(o, "runtimes", i);
        runtime_parse(soc, sd, &r);
    }
    json_done(o);
}

/* Seconds that a file may leave out: then nobody measured them, and nothing takes that long. */
static int64_t optional_ns(struct soc *soc, struct json_obj *o, const char *key)
{
    return json_has(o, key) ? span_ns(soc, o, key, "s", 1e4, 1.0) : 0;
}

static void host_parse(struct soc *soc, struct json_obj *root)
{
    struct machine *m = &soc->machine;
    struct json_obj host = json_get_object(root, "host");
    m->sync_ns = span_ns(soc, &host, "sync", "us", 1e6, 1e-6);
    m->schedule_ns = span_ns(soc, &host, "schedule", "us", 1e6, 1e-6);
    m->sample_ns_per_token = span_ns(soc, &host, "sample", "us/token", 1e6, 1e-6);
    m->poll_watts = number(soc, &host, "poll", "W", 0.0, 1e3, 1.0);
    json_done(&host);
    struct json_obj compiler = json_get_object(root, "compiler");
    m->compile_fixed_ns = span_ns(soc, &compiler, "fixed", "s", 1e5, 1.0);
    m->compile_ns_per_token = number(soc, &compiler, "per_token", "ms/token", 0.0, 1e5, 1e6);
    m->compile_watts = number(soc, &compiler, "power", "W", 0.0, 1e3, 1.0);
    m->compile_evict_ns = optional_ns(soc, &compiler, "evict_fixed");
    json_done(&compiler);
    struct json_obj loader = json_get_object(root, "loader");
    m->loader_bytes_per_s = number(soc, &loader, "bandwidth", "GB/s", 1e-3, 1e4, 1e9);
    m->loader_fixed_ns = span_ns(soc, &loader, "fixed", "s", 1e4, 1.0);
    m->swap_bytes_per_s = number(soc, &loader, "swap_bandwidth", "GB/s", 1e-3, 1e4, 1e9);
    m->swap_fixed_ns = optional_ns(soc, &loader, "swap_fixed");
    m->loader_evict_ns = optional_ns(soc, &loader, "evict_fixed");
    json_done(&loader);
    struct json_obj memory = json_get_object(root, "memory");
    m->memory_bytes = number(soc, &memory, "capacity", "GB", 0.01, 1e5, 1e9);
    m->memory_usable_frac = number(soc, &memory, "usable", "1", 0.01, 1.0, 1.0);
    json_done(&memory);
    struct json_obj ddr = json_get_object(root, "ddr");
    m->ddr_peak_bytes_per_s = number(soc, &ddr, "peak", "GB/s", 0.1, 1e5, 1e9);
    m->ddr_cap_frac = number(soc, &ddr, "together", "1", 0.1, 1.0, 1.0);
    json_done(&ddr);
    /* What is loaded goes into memory, so nothing is loaded faster than that. */
    if (m->loader_bytes_per_s > m->ddr_peak_bytes_per_s ||
        m->swap_bytes_per_s > m->ddr_peak_bytes_per_s) {
        err_add(root->err, "%s: loader: a bandwidth above ddr.peak", root->file);
    }
}

static void package_parse(struct soc *soc, struct json_obj *root)
{
    if (!json_has(root, "package")) {
        return;
    }
    struct json_obj p = json_get_object(root, "package");
    soc->package_pl1_watts = number(soc, &p, "pl1", "W", 0.1, 1e4, 1.0);
    soc->package_pl2_watts = number(soc, &p, "pl2", "W", 0.1, 1e4, 1.0);
    soc->package_tau_s = number(soc, &p, "tau", "s", 1e-3, 1e4, 1.0);
    json_done(&p);
}

/* What no single runtime entry can get wrong: each (runtime, width) once, and among several entries
 * exactly one default, so that a fallback is never a guess. */
static void check_runtimes(const struct soc *soc, uint32_t device, const char *file, struct err *e)
{
    const struct soc_device *sd = &soc->devices[device];
    for (uint32_t r = 0; r < sd->n_runtimes; r++) {
        const struct soc_runtime *a = &sd->runtimes[r];
        if (a->many.bytes_per_s > soc->machine.ddr_peak_bytes_per_s ||
            a->one.bytes_per_s > soc->machine.ddr_peak_bytes_per_s) {
            err_add(e, "%s: devices[%u].runtimes[%u].bandwidth: above ddr.peak", file, device, r);
        }
        for (uint32_t q = 0; q < r; q++) {
            const struct soc_runtime *b = &sd->runtimes[q];
            if (a->weight_bits == b->weight_bits && strcmp(a->runtime, b->runtime) == 0) {
                err_add(e, "%s: devices[%u].runtimes[%u]: \"%s\" with %u bits stands twice", file,
                        device, r, a->runtime, a->weight_bits);
            }
        }
    }
    if (sd->n_runtimes > 1 && sd->n_defaults != 1) {
        err_add(e, "%s: devices[%u].runtimes: %u entries say \"default\": true, must be 1", file,
                device, sd->n_defaults);
    }
}

/* What no single key can get wrong. */
static void check(const struct soc *soc, const char *file, struct err *e)
{
    const struct machine *m = &soc->machine;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        const struct device *d = &m->devices[i];
        if (i > 0 && d->kind < m->devices[i - 1].kind) {
            err_add(e, "%s: devices[%u].kind: a %s comes before a %s", file, i,
                    device_kind_names()[d->kind], device_kind_names()[m->devices[i - 1].kind]);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(d->name, m->devices[j].name) == 0) {
                err_add(e, "%s: devices[%u].name: \"%s\" stands twice", file, i, d->name);
            }
        }
        check_runtimes(soc, i, file, e);
    }
    if (soc->package_pl2_watts < soc->package_pl1_watts) {
        err_add(e, "%s: package.pl2: must be at least package.pl1", file);
    }
}

static void optional_name(char *to, size_t size, struct json_obj *o, const char *key)
{
    copy_name(to, size, json_has(o, key) ? json_get_string(o, key) : "", o, key);
}

int soc_parse(const cJSON *root, const char *file, struct soc *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    size_t before = e->n;
    struct json_obj o = json_root(root, file, e);
    (void)json_get_u32(&o, "format", 1, 1);
    copy_name(out->machine.name, sizeof out->machine.name, json_get_string(&o, "name"), &o, "name");
    optional_name(out->note, sizeof out->note, &o, "note");
    optional_name(out->family, sizeof out->family, &o, "family");
    optional_name(out->like, sizeof out->like, &o, "like");
    optional_name(out->hwmodel, sizeof out->hwmodel, &o, "hwmodel");
    out->extrapolated_npu =
        json_has(&o, "npu_extrapolated") && json_get_bool(&o, "npu_extrapolated");
    host_parse(out, &o);
    package_parse(out, &o);
    out->machine.idle_watts = number(out, &o, "idle_power", "W", 0.0, 1e4, 1.0);
    int n = json_get_array_size(&o, "devices", 1, MACHINE_MAX_DEVICES);
    for (int i = 0; i < n; i++) {
        struct json_obj d = json_array_object(&o, "devices", i);
        device_parse(out, &d);
    }
    json_done(&o);
    /* Only a file whose every number could be read is held against itself: a number that is missing
     * reads 0 and would be blamed a second time. */
    if (e->n == before) {
        check(out, file, e);
    }
    return e->n == before ? 0 : -EINVAL;
}

const char *soc_path(const char *name)
{
    return datadir_named(name, "hwmodels/soc", ".json");
}

const char *llm_path(const char *name)
{
    return datadir_named(name, "hwmodels/llm", ".json");
}

struct soc_format soc_format_of_width(uint32_t weight_bits)
{
    if (weight_bits >= 16) {
        return (struct soc_format){weight_bits / 8.0, weight_bits / 8.0, 2.0};
    }
    if (weight_bits == 8) {
        return (struct soc_format){1.01, 1.01, 1.0};
    }
    /* group-wise scales and zero points: 20 bits per 128 weights, and some layers left at 8 bit */
    return (struct soc_format){weight_bits / 8.0 + 0.06, 1.01, 1.0};
}

/* How well an entry's name covers a runtime: its length, 0 when it does not. */
static size_t covers(const char *entry, const char *runtime)
{
    size_t n = strlen(entry);
    /* "openvino-2025" covers "openvino-2025.1" and does not cover "openvino-20251": a name ends at
     * a dot, at a dash or at its end. */
    if (strncmp(entry, runtime, n) != 0 || strchr(".-", runtime[n]) == NULL) {
        return 0;
    }
    return n + (runtime[n] == '\0'); /* strchr finds the end too: the same name */
}

uint32_t soc_runtime_find(const struct soc_device *d, const char *runtime, uint32_t weight_bits,
                          bool *exact)
{
    const char *usual = d->runtimes[d->fallback].runtime;
    uint32_t best = d->fallback;
    size_t best_cover = 0;
    int best_rank = 0;
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        const struct soc_runtime *r = &d->runtimes[i];
        if (r->weight_bits != weight_bits) {
            continue;
        }
        size_t cover = runtime == NULL ? 0 : covers(r->runtime, runtime);
        /* Among entries of the model's width, since bits decide how much is read from memory: the
         * name asked for, then the name that is usual here. Only where the width has no entry does
         * the default stand in, and *exact tells. */
        int rank = cover > 0 ? 3 : strcmp(r->runtime, usual) == 0 ? 2 : 1;
        if (rank > best_rank || (rank == 3 && cover > best_cover)) {
            best = i;
            best_rank = rank;
            best_cover = cover;
        }
    }
    *exact = best_rank == 3 || (runtime == NULL && best_rank > 0);
    return best;
}

static void curve_reserve(struct soc_curve *c, double time_left, double rate_left)
{
    /* A device that others use a part of the time is as if slower; the share of its rate that they
     * take is gone on top, while what memory and launches take follows the time alone. */
    c->flop_per_s *= time_left * rate_left;
    c->bytes_per_s *= time_left;
    c->launch_s /= time_left;
}

void soc_reserve(struct soc_device *d, double time_frac, double rate_frac)
{
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        curve_reserve(&d->runtimes[i].many, 1.0 - time_frac, 1.0 - rate_frac);
        curve_reserve(&d->runtimes[i].one, 1.0 - time_frac, 1.0 - rate_frac);
    }
}
