/* Reads a SoC file, and checks relations between its numbers. */
#include "hwmodels/soc.h"

const char *const soc_error_names[2][3] = {
    {"prefill", "short_prefill", "decode"},
    {"small_prefill", "small_short_prefill", "small_decode"},
};

static void errors_parse(struct json_obj *fit, struct soc_runtime *r)
{
    struct json_obj errors = json_get_object(fit, "error_sd");
    struct json_obj measured = json_get_object(fit, "measured");
    for (int small = 0; small < 2; small++) {
        for (int phase = 0; phase < 3; phase++) {
            r->error_sd[small][phase] =
                json_get_number(&errors, soc_error_names[small][phase], 1e-4, 10.0);
        }
    }
    r->measured_rows = json_get_u32(&measured, "rows", 1, UINT32_MAX);
}

/* The other members are for people: the quality of a calibration. */
static void fit_parse(struct json_obj *o, struct soc_runtime *r)
{
    struct json_obj fit = json_get_object(o, "fit");
    if (json_has(&fit, "error_sd")) {
        errors_parse(&fit, r);
    }
    if (json_has(&fit, "start")) {
        struct json_obj s = json_get_object(&fit, "start");
        json_fields_read(&s, &soc_start_keys, r, NULL);
        json_done(&s);
        r->start.given = true;
    }
}

static void table_parse(struct json_obj *o, struct soc_table *t)
{
    t->n = (uint32_t)json_get_array_size(o, "table", 1, SOC_MAX_TABLE);
    for (uint32_t i = 0; i < t->n; i++) {
        struct json_obj p = json_array_object(o, "table", (int)i);
        struct soc_table_row f;
        json_fields_read(&p, &soc_table_keys, &f, NULL);
        t->rows[i] = f.rows;
        t->factor[i] = f.factor;
        /* Factors are interpolated between rows, so rows must rise. */
        if (i > 0 && t->rows[i] <= t->rows[i - 1]) {
            json_refuse(&p, "rows", "must rise");
        }
        json_done(&p);
    }
}

/* Sets bytes that the entry does not state to those of its width. */
static void format_complete(struct soc_runtime *r)
{
    const struct soc_format usual = soc_format_of_width(r->weight_bits);
    struct soc_format *f = &r->format;
    f->body_bytes = f->body_bytes > 0.0 ? f->body_bytes : usual.body_bytes;
    f->head_bytes = f->head_bytes > 0.0 ? f->head_bytes : usual.head_bytes;
    f->kv_bytes = f->kv_bytes > 0.0 ? f->kv_bytes : usual.kv_bytes;
}

static void runtime_parse(struct soc *soc, struct soc_device *d, struct json_obj *o)
{
    struct soc_runtime *r = &d->runtimes[d->n_runtimes];
    json_fields_read(o, &soc_runtime_keys, r, soc->n_numbers);
    format_complete(r);
    r->chunk_rows_own = json_has(o, "chunk_rows");
    r->one_row_own = json_has(o, "one_row");
    r->one = r->one_row_own ? r->one : r->many;
    r->batch_fill_own = json_has(o, "batch_fill");
    r->width_fill_own = json_has(o, "width_fill");
    r->enqueue_own = json_has(o, "enqueue");
    r->prompt_enqueue_own = json_has(o, "prompt_enqueue");
    r->special_attention_own = json_has(o, "special_attention");
    if (json_has(o, "table")) {
        table_parse(o, &r->table);
    }
    if (json_has(o, "ops")) {
        soc_ops_parse(o, &r->ops);
    }
    if (json_has(o, "fit")) {
        fit_parse(o, r);
    }
    if (r->is_default) {
        d->fallback = d->n_runtimes;
        d->n_defaults++;
    }
    json_done(o);
    d->n_runtimes++;
}

static void dvfs_parse(struct soc *soc, struct json_obj *o, struct soc_device *sd)
{
    struct soc_dvfs *d = &sd->dvfs;
    struct json_obj from = json_get_object(o, "dvfs");
    json_fields_read(&from, &soc_dvfs_keys, sd, soc->n_numbers);
    d->n = (uint32_t)json_get_array_size(&from, "steps", 1, SOC_MAX_STEPS);
    for (uint32_t i = 0; i < d->n; i++) {
        struct json_obj s = json_array_object(&from, "steps", (int)i);
        json_fields_read(&s, &soc_step_keys, &d->steps[i], soc->n_numbers);
        json_done(&s);
        if (i > 0 && d->steps[i].speed <= d->steps[i - 1].speed) {
            json_refuse(&s, "speed", "must rise");
        }
    }
    const struct soc_step *last = &d->steps[d->n > 0 ? d->n - 1 : 0];
    if (last->speed != 1.0 || last->power != 1.0) {
        json_refuse(&from, "steps", "the highest has speed 1 and power 1");
    }
    if (d->governor == 0 && d->period_ns == 0) {
        json_refuse(&from, "period", "the rule utilisation needs one");
    }
    json_done(&from);
}

/* Makes the entry of the runtime that the device states the default. */
static void choose_runtime(struct soc_device *sd, struct json_obj *o)
{
    SCOPED(text_fini) struct text has = {0};
    bool found = sd->chosen[0] == '\0';
    for (uint32_t r = 0; r < sd->n_runtimes; r++) {
        const char *name = sd->runtimes[r].runtime;
        if (!found && strcmp(name, sd->chosen) == 0) {
            sd->fallback = r;
            found = true;
        }
        if (r == 0 || strcmp(name, sd->runtimes[r - 1].runtime) != 0) {
            text_format(&has, "%s%s", r > 0 ? ", " : "", name);
        }
    }
    if (!found) {
        json_refuse(o, "runtime", "is not among its entries: %s", text_end(&has));
    }
}

static void device_parse(struct soc *soc, struct json_obj *o)
{
    const uint32_t index = soc->machine.n_devices++;
    struct device *d = &soc->machine.devices[index];
    struct soc_device *sd = &soc->devices[index];
    d->index = (uint8_t)index;
    sd->entry = index;
    json_fields_read(o, &soc_device_keys, d, soc->n_numbers);
    json_fields_read(o, &soc_numbers_keys, sd, soc->n_numbers);
    if (json_has(o, "dvfs")) {
        dvfs_parse(soc, o, sd);
    }
    const int n = json_get_array_size(o, "runtimes", 1, SOC_MAX_RUNTIMES);
    for (int i = 0; i < n; i++) {
        struct json_obj r = json_array_object(o, "runtimes", i);
        runtime_parse(soc, sd, &r);
    }
    choose_runtime(sd, o);
    json_done(o);
}

/* Rules between runtime entries: each (runtime, width) once, and among several entries exactly one
 * default, so that a fallback is never a guess. */
static void check_runtimes(const struct soc *soc, uint32_t device, const char *file, struct err *e)
{
    const struct soc_device *sd = &soc->devices[device];
    for (uint32_t r = 0; r < sd->n_runtimes; r++) {
        const struct soc_runtime *a = &sd->runtimes[r];
        if (a->many.bytes_per_s > soc->machine.ddr_peak_bytes_per_s ||
            a->one.bytes_per_s > soc->machine.ddr_peak_bytes_per_s) {
            err_add(e,
                    "%s: devices[%u].runtimes[%u].bandwidth: above ddr.peak (`xpusim new-soc "
                    "--ddr-peak` scales both)",
                    file, device, r);
        }
        for (uint32_t q = 0; q < r; q++) {
            const struct soc_runtime *b = &sd->runtimes[q];
            if (a->weight_bits == b->weight_bits && strcmp(a->runtime, b->runtime) == 0) {
                err_add(e, "%s: devices[%u].runtimes[%u]: \"%s\" with %u bits is given twice", file,
                        device, r, a->runtime, a->weight_bits);
            }
        }
    }
    if (sd->n_runtimes > 1 && sd->n_defaults != 1) {
        err_add(e, "%s: devices[%u].runtimes: %u entries say \"default\": true, must be 1", file,
                device, sd->n_defaults);
    }
}

/* Checks relations between keys. Single keys were checked when read. */
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
                err_add(e, "%s: devices[%u].name: \"%s\" is given twice", file, i, d->name);
            }
        }
        check_runtimes(soc, i, file, e);
        int meter = soc->devices[i].meter;
        if (soc->supply.efficiency_frac > 0.0 &&
            (meter == SOC_METER_BATTERY || meter == SOC_METER_WALL)) {
            err_add(e, "%s: devices[%u].meter: \"%s\" is behind the supply that the file states",
                    file, i, soc_meter_names()[meter]);
        }
    }
    /* A load writes to memory, so it is no faster than that. */
    if (m->loader_bytes_per_s > m->ddr_peak_bytes_per_s ||
        m->swap_bytes_per_s > m->ddr_peak_bytes_per_s) {
        err_add(e, "%s: loader: a bandwidth above ddr.peak", file);
    }
    if (soc->package_pl2_watts < soc->package_pl1_watts) {
        err_add(e, "%s: package.pl2: must be at least package.pl1", file);
    }
}

int soc_parse(const cJSON *root, const char *file, struct soc *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    const size_t before = e->n;
    struct json_obj o = json_root(root, file, e);
    json_fields_read(&o, &soc_fields, out, out->n_numbers);
    if (json_has(&o, "metered")) {
        struct json_obj m = json_get_object(&o, "metered");
        json_fields_read(&m, &metered_fields, &out->metered, out->n_numbers);
        json_done(&m);
    }
    const int n = json_get_array_size(&o, "devices", 1, MACHINE_MAX_DEVICES);
    for (int i = 0; i < n; i++) {
        struct json_obj d = json_array_object(&o, "devices", i);
        device_parse(out, &d);
    }
    json_done(&o);
    if (out->ddr_likely_bytes_per_s == 0.0) {
        out->ddr_likely_bytes_per_s = out->machine.ddr_peak_bytes_per_s;
    }
    /* A missing number reads as 0, so these checks would report it again. */
    if (e->n == before) {
        check(out, file, e);
        soc_partition(out, file, e);
    }
    return e->n == before ? 0 : -EINVAL;
}
