/* Writes a fit as a SoC file: a copy of the original file with the measured numbers. */
#include "experiments/drive/fit_impl.h"
#include "experiments/drive/transfer.h"

static void quantity(cJSON *to, const char *key, struct fit_number q, const char *unit,
                     const char *source)
{
    SIM_ASSERT(to != NULL && fit_number_ok(q) && q.value >= 0.0 && isfinite(q.high));
    struct quantity put = {
        .value = q.value, .low = q.low, .high = q.high, .kind = QUANTITY_MEASURED};
    json_put_quantity(to, key, put, unit, source);
}

/* Mean of durations in us, with its interval. As with kernels, durations in which a thread waited
 * for its core are left out, because every launch would pay for these few. */
static struct fit_number mean_us(const struct drive_times *all)
{
    struct drive_times t = drive_times_screened(all);
    double mean = drive_mean_ns(&t) / 1e3;
    double n = t.n > 0 ? (double)t.n : 1.0;
    double sd = sqrt(fmax(0.0, t.sum_sq / n / 1e6 - mean * mean) / n);
    SIM_ASSERT(t.n > 0 && mean <= all->max_ns / 1e3 * (1.0 + 1e-9)); /* callers have at least one */
    return (struct fit_number){mean, fmax(0.0, mean - 1.96 * sd), mean + 1.96 * sd};
}

static struct fit_number exactly(double x)
{
    return (struct fit_number){x, x, x};
}

/* The model has one line for both directions of a move. */
static struct fit_line both_ways(const struct fit_line *l)
{
    struct fit_line both = l[DRIVE_SWAP_OUT];
    both.n += l[DRIVE_SWAP_IN].n;
    both.x += l[DRIVE_SWAP_IN].x;
    both.y += l[DRIVE_SWAP_IN].y;
    both.xx += l[DRIVE_SWAP_IN].xx;
    both.xy += l[DRIVE_SWAP_IN].xy;
    fit_line_solve(&both);
    SIM_ASSERT(both.x * both.x <= both.n * both.xx * (1.0 + 1e-9)); /* Cauchy and Schwarz */
    SIM_ASSERT(both.n == l[DRIVE_SWAP_OUT].n + l[DRIVE_SWAP_IN].n);
    return both;
}

/* Writes fixed + bytes / bandwidth. A time that does not depend on bytes gets the DDR's
 * bandwidth. */
static void line(cJSON *to, const struct fit_line *l, const char *fixed, const char *bandwidth,
                 double most, const char *source)
{
    SIM_ASSERT(most > 0.0);
    if (l->n > 0.0) {
        /* The line is solved, and the work took time. */
        SIM_ASSERT(l->slope_s > 0.0 || l->fixed_s > 0.0);
        double gbs = l->slope_s > 0.0 ? 1e-9 / l->slope_s : most;
        quantity(to, fixed, exactly(l->fixed_s), "s", source);
        quantity(to, bandwidth, exactly(fmax(1e-3, fmin(gbs, most))), "GB/s", source);
    }
}

/* The model has one time per eviction, regardless of size. */
static void evictions(cJSON *to, const struct fit_line *l, const char *source)
{
    if (l->n > 0.0) {
        SIM_ASSERT(l->y > 0.0 && l->n >= 1.0);
        quantity(to, "evict_fixed", exactly(l->y / l->n), "s", source);
    }
}

static void lines(const struct fit_line *l, cJSON *root, const char *source)
{
    const cJSON *peak = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "ddr"), "peak");
    double most = cJSON_GetObjectItem(peak, "value")->valuedouble;
    cJSON *loader = cJSON_GetObjectItem(root, "loader");
    cJSON *compiler = cJSON_GetObjectItem(root, "compiler");
    /* Every SoC file has both. */
    SIM_ASSERT(loader != NULL && compiler != NULL && loader != compiler);
    struct fit_line swap = both_ways(l);
    line(loader, &l[DRIVE_LOAD], "fixed", "bandwidth", most, source);
    line(loader, &swap, "swap_fixed", "swap_bandwidth", most, source);
    evictions(loader, &l[DRIVE_EVICT], source);
    evictions(compiler, &l[DRIVE_EVICT_ATTENTION], source);
    if (l[DRIVE_COMPILE].n > 0.0) {
        quantity(compiler, "fixed", exactly(l[DRIVE_COMPILE].fixed_s), "s", source);
        quantity(compiler, "per_token", exactly(1e3 * l[DRIVE_COMPILE].slope_s), "ms/token",
                 source);
    }
}

static void host(const struct fit *f, cJSON *root, const char *source)
{
    cJSON *h = cJSON_GetObjectItem(root, "host");
    if (f->schedule.n > 0) {
        quantity(h, "schedule", mean_us(&f->schedule), "us", source);
    }
    if (f->tail_tokens > 0.0) {
        double us = f->tail.sum_ns / f->tail_tokens / 1e3;
        /* A pass gives at least one token. */
        SIM_ASSERT((double)f->tail.n <= f->tail_tokens || f->n_runs == 0);
        quantity(h, "sample", (struct fit_number){us, us, us}, "us/token", source);
    }
    lines(f->residents, root, source);
}

static cJSON *table(const struct fit_table *t)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < t->n; i++) {
        cJSON *o = cJSON_CreateObject();
        SIM_ASSERT(fit_number_ok(t->s[i]));
        SIM_ASSERT(i == 0 || (t->rows[i] > t->rows[i - 1] && t->s[i].value >= t->s[i - 1].value));
        cJSON_AddNumberToObject(o, "rows", t->rows[i]);
        cJSON_AddNumberToObject(o, "us", 1e6 * t->s[i].value);
        cJSON_AddNumberToObject(o, "low", 1e6 * t->s[i].low);
        cJSON_AddNumberToObject(o, "high", 1e6 * t->s[i].high);
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static cJSON *rates(const struct fit_number *c, const char *per)
{
    cJSON *o = cJSON_CreateObject();
    SIM_ASSERT(c[0].value >= 0.0 && c[1].value >= 0.0); /* times do not fall with work */
    cJSON_AddNumberToObject(o, "fixed_us", 1e6 * c[0].value);
    cJSON_AddNumberToObject(o, per, 1e9 * c[1].value);
    return o;
}

static cJSON *prompts(const struct fit_device *d)
{
    const struct fit_number *few = &d->prefill[FIT_PROMPT_FEW];
    const struct fit_number *many = &d->prefill[FIT_PROMPT_MANY];
    for (int i = 0; i < FIT_PROMPT_TERMS; i++) {
        SIM_ASSERT(d->prefill[i].value >= 0.0); /* times do not fall with work */
    }
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "fixed_us", 1e6 * d->prefill[FIT_PROMPT_FIXED].value);
    cJSON_AddNumberToObject(o, "pair_ns", 1e9 * many[0].value);
    cJSON_AddNumberToObject(o, "row_us", 1e6 * many[1].value);
    cJSON_AddNumberToObject(o, "tile", d->split.tile);
    if (d->split.few_below > 0) {
        cJSON_AddNumberToObject(o, "few_below", d->split.few_below);
        cJSON_AddNumberToObject(o, "few_pair_ns", 1e9 * few[0].value);
        cJSON_AddNumberToObject(o, "few_row_us", 1e6 * few[1].value);
    }
    return o;
}

/* Writes the measured range. A run counts kernels beyond it as extrapolated. */
static void range(const struct fit_device *d, cJSON *r)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "rows_max", d->rows_max);
    cJSON_AddNumberToObject(o, "context_max", d->keys_max);
    cJSON_DeleteItemFromObject(r, "valid");
    cJSON_AddItemToObject(r, "valid", o);
}

static void runtime(const struct fit_device *d, cJSON *r, const struct llm *llm, const char *source)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", llm->name);
    cJSON_AddStringToObject(o, "source", source);
    cJSON_AddItemToObject(o, "qkv", table(&d->token[OP_QKV]));
    cJSON_AddItemToObject(o, "ffn", table(&d->token[OP_FFN]));
    cJSON_AddItemToObject(o, "head", table(&d->token[OP_HEAD]));
    cJSON_AddItemToObject(o, "prefill", prompts(d));
    cJSON *decode = rates(d->decode, "key_ns");
    cJSON_AddNumberToObject(decode, "row_us", 1e6 * d->decode[2].value);
    cJSON_AddItemToObject(o, "decode", decode);
    cJSON_AddItemToObject(o, "layer", rates(d->layer, "key_ns"));
    cJSON_DeleteItemFromObject(r, "ops");
    cJSON_AddItemToObject(r, "ops", o);
    range(d, r);
}

/* Sets the simulator's model that the numbers were fitted for, so that runs with the file use
 * it. */
static void state(cJSON *root, const char *key, const char *model)
{
    cJSON_DeleteItemFromObject(root, key);
    cJSON_AddStringToObject(root, key, model);
}

cJSON *fit_to_soc(const struct fit *f, const struct transfer *t, const cJSON *soc,
                  const struct llm *llm, const char *name, const char *source)
{
    cJSON *root = cJSON_Duplicate(soc, true);
    cJSON_ReplaceItemInObject(root, "name", cJSON_CreateString(name));
    state(root, "hwmodel", "per-op");
    host(f, root, source);
    cJSON *devices = cJSON_GetObjectItem(root, "devices");
    SIM_ASSERT(cJSON_GetArraySize(devices) == (int)f->n_devices); /* soc is the machine that ran */
    SIM_ASSERT((t == NULL || t->n_devices == f->n_devices) &&
               (f->submit.n > 0) == (f->completion.n > 0));
    for (uint32_t i = 0; i < f->n_devices; i++) {
        cJSON *d = cJSON_GetArrayItem(devices, (int)i);
        if (f->submit.n > 0) {
            quantity(d, "submit", mean_us(&f->submit), "us", source);
            quantity(d, "completion", mean_us(&f->completion), "us", source);
        }
        if (f->reset.n > 0) {
            quantity(d, "reset", mean_us(&f->reset), "us", source);
        }
        if (f->devices[i].n_beside > 0) {
            quantity(d, "beside", f->devices[i].beside, "1", source);
            state(root, "contention", "beside");
        }
        cJSON *runtimes = cJSON_GetObjectItem(d, "runtimes");
        for (int r = 0; r < cJSON_GetArraySize(runtimes); r++) {
            cJSON *entry = cJSON_GetArrayItem(runtimes, r);
            if (cJSON_GetObjectItem(entry, "weight_bits")->valueint == (int)llm->weight_bits) {
                runtime(&f->devices[i], entry, llm, source);
                if (t != NULL) {
                    transfer_write(&t->devices[i], entry, source);
                }
            }
        }
    }
    return root;
}
