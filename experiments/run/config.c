#include "experiments/run/config.h"

#include "experiments/run/chunks.h"
#include "experiments/run/config_files.h"
#include "experiments/run/config_notes.h"
#include "experiments/run/config_sim.h"
#include "experiments/run/models.h"
#include "experiments/run/recordings.h"
#include "sim/base/hash.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "sim/base/version.h"
#include "sim/base/words.h"
#include "traces/traces.h"

/* Numbers of a SoC file are valid with the models that it states, so these are the defaults of the
 * options. */
static void take_models(cJSON *tree)
{
    static const char *const keys[] = {"hwmodel", "contention"};
    const cJSON *soc = json_member(tree, "soc");
    cJSON *sim = json_member(tree, "sim");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const cJSON *model = json_member(soc, keys[i]);
        if (cJSON_IsString(model)) {
            (void)cJSON_ReplaceItemInObjectCaseSensitive(sim, keys[i],
                                                         cJSON_CreateString(model->valuestring));
        }
    }
}

/* Keys that --set may add if a file lacks them. */
static const struct json_field file_rows[] = {
    {JSON_OBJECT("soc", &soc_fields, "The machine.")},
    {JSON_OBJECT("llm", &llm_fields, "The default model.")},
};
static const struct json_fields file_fields = JSON_FIELDS(file_rows, NULL);

static void apply_sets(cJSON *tree, const struct config_options *o, const char *of, struct err *e)
{
    for (uint32_t i = 0; i < o->n_sets; i++) {
        if (strncmp(o->sets[i], of, strlen(of)) != 0) {
            continue;
        }
        OWNED char *path = xstrdup(o->sets[i]); /* of any length: also from files */
        char *equals = strchr(path, '=');
        *equals = '\0';
        json_fields_complete(&file_fields, tree, path);
        (void)json_set_path(tree, path, equals + 1, e);
    }
}

/* The name of a file in errors, which mentions --set, because that may have caused the error. */
static const char *as_set(const char *file, const struct config_options *o, const char *of)
{
    bool set = false;
    for (uint32_t i = 0; i < o->n_sets; i++) {
        set = set || strncmp(o->sets[i], of, strlen(of)) == 0;
    }
    return set ? xkeep(xformat("%s with --set", file)) : file;
}

static int unknown_form(const char *key, const char *name, const char *const *names, struct err *e)
{
    OWNED char *list = words_list(names, ", ");
    return err_add(e, "%s: no form is called '%s'; there are %s", key, name, list);
}

/* The device that drives the screen, or -1. */
static int display_device(const struct machine *m)
{
    int d = machine_find(m, DEVICE_KIND_IGPU);
    return d >= 0 ? d : machine_find(m, DEVICE_KIND_GPU);
}

static void check_power(const struct config *c, struct err *e)
{
    const struct config_power *p = &c->sim.power;
    if (p->limit == CONFIG_LIMIT_PACKAGE && c->soc.package_pl1_watts <= 0.0) {
        (void)err_add(e, "sim.power.limit: package: %s states no package power",
                      c->soc.machine.name);
    }
    if (p->limit == CONFIG_LIMIT_THERMAL && p->limit_c <= p->ambient_c) {
        (void)err_add(e, "sim.power.limit_c: must be above ambient_c");
    }
}

static void bind_graphics(struct config *c, struct err *e)
{
    const struct config_graphics *g = &c->sim.graphics;
    if (g->reserve_time_frac == 0.0 && g->reserve_rate_frac == 0.0 && g->frames_per_s == 0.0) {
        return;
    }
    int d = display_device(&c->soc.machine);
    if (d < 0) {
        (void)err_add(e, "sim.graphics: %s has no GPU", c->soc.machine.name);
        return;
    }
    if (g->frames_per_s > 0.0 && c->soc.machine.devices[d].sharing != DEVICE_SERIAL) {
        (void)err_add(e, "sim.graphics.frames_per_s: %s of %s is not serial; reserve time instead",
                      c->soc.machine.devices[d].name, c->soc.machine.name);
    }
    if (g->frames_per_s > 0.0 &&
        g->frame_bytes > g->frame_s * c->soc.machine.ddr_peak_bytes_per_s) {
        (void)err_add(e, "sim.graphics.frame_bytes: more than ddr.peak moves in frame_s");
    }
    soc_reserve(&c->soc.devices[d], g->reserve_time_frac, g->reserve_rate_frac);
}

/* Finds the named models and builds the kernel-time model. */
static void bind_forms(struct config *c, struct err *e)
{
    c->contention = contention_find(c->sim.contention);
    if (c->contention == NULL) {
        (void)unknown_form("sim.contention", c->sim.contention, contention_names(), e);
    }
    const struct hwmodel_ops *form = hwmodel_find(c->sim.hwmodel);
    if (form == NULL) {
        (void)unknown_form("sim.hwmodel", c->sim.hwmodel, hwmodel_names(), e);
        return;
    }
    roofline_init(&c->truth, form, &c->soc, &c->llm);
    if (c->sim.nonlinear != CONFIG_NONLINEAR_FUSED) {
        bool offload = c->sim.nonlinear == CONFIG_NONLINEAR_OFFLOAD;
        roofline_unfuse(&c->truth, offload ? (double)c->soc.machine.sync_ns / 1e9 : 0.0);
    }
    for (uint32_t d = 0; c->sim.chunk_auto && d < c->soc.machine.n_devices; d++) {
        if (c->truth.machine.devices[d].chunk_rows > 0) {
            c->truth.machine.devices[d].chunk_rows = chunks_knee(&c->truth);
        }
    }
    c->soc.machine = c->truth.machine; /* the machine as changed by its runtimes */
    c->contention_params = c->sim.contention_params;
    c->contention_params.latency = c->soc.queueing_frac;
    for (uint32_t d = 0; d < c->soc.machine.n_devices; d++) {
        const struct soc_runtime *r = c->truth.runtime[d];
        c->contention_params.beside[d] = c->soc.devices[d].beside_frac;
        c->contention_params.ceiling_bytes_per_s[d] =
            r->one.bytes_per_s > r->many.bytes_per_s ? r->one.bytes_per_s : r->many.bytes_per_s;
    }
}

static uint64_t tree_hash(const cJSON *tree)
{
    OWNED char *text = json_text(tree, false);
    return hash_string(HASH_INIT, text);
}

/* Parses the tree. */
static void parse(struct config *c, const char *soc_file, const char *llm_file, struct err *e)
{
    size_t before = e->n;
    (void)soc_parse(json_member(c->tree, "soc"), soc_file, &c->soc, e);
    (void)llm_parse(json_member(c->tree, "llm"), llm_file, &c->llm, e);
    models_read(c, e);
    const cJSON *sim = json_member(c->tree, "sim");
    config_sim_parse(json_root(sim, "sim", e), &c->sim);
    if (e->n == before) {
        bind_graphics(c, e);
        check_power(c, e);
        bind_forms(c, e);
    }
    if (e->n == before) {
        models_price(c);
    }
    /* Unread members do not belong to the configuration or its hash. */
    json_fields_drop_unread(&soc_fields, json_member(c->tree, "soc"));
    c->hash = tree_hash(c->tree);
}

/* Only if there are any, so that other configurations keep their hash. */
static void add_numbers(cJSON *tree, const char *key, const double *v, uint32_t n)
{
    if (n > 0) {
        cJSON_AddItemToObject(tree, key, cJSON_CreateDoubleArray(v, (int)n));
    }
}

int config_load(struct config *c, const struct config_options *o, struct err *e)
{
    memset(c, 0, sizeof *c);
    size_t before = e->n;
    const char *soc_file = soc_path(o->soc);
    c->tree = cJSON_CreateObject();
    config_add_file(c->tree, "soc", o->soc, soc_file, json_read_file, e);
    OWNED char *llm_file = models_add_files(c->tree, o->llm, e);
    cJSON_AddItemToObject(c->tree, "sim", config_sim_to_json());
    take_models(c->tree);
    if (e->n > before) {
        return -EINVAL;
    }
    c->asked = o->asked;
    add_numbers(c->tree, "quantiles", o->asked.percent, o->asked.n_percents);
    add_numbers(c->tree, "limits", o->asked.limit, o->asked.n_limits);
    const double reader[] = {o->asked.reader.ttft_s, o->asked.reader.tokens_per_s};
    add_numbers(c->tree, "reader", reader, reader[1] > 0.0 ? 2 : 0);
    apply_sets(c->tree, o, "soc.", e);
    if (e->n == before) {
        config_store_models(c->tree, e);
        apply_sets(c->tree, o, "", e); /* settings override values from runtime entries */
    }
    if (o->n_recordings > 1 && !o->several) {
        (void)err_add(e, "--trace: %u recordings; this command takes one (`compare` takes several)",
                      o->n_recordings);
    }
    if (e->n == before) {
        parse(c, as_set(soc_file, o, "soc."), as_set(llm_file, o, "llm."), e);
        (void)metered_complete(&c->soc, e);
    }
    if (e->n > before) {
        return -EINVAL;
    }
    (void)config_speculation_fit(&c->sim.drafts, &c->speculation, e);
    const char *workload = o->workload != NULL ? o->workload : CONFIG_DEFAULT_WORKLOAD;
    c->workload =
        xkeep(o->n_recordings > 1 ? xformat("%s and %u more recording%s", o->trace,
                                            o->n_recordings - 1, text_plural(o->n_recordings - 1))
                                  : xstrdup(o->trace != NULL ? o->trace : workload));
    if (e->n == before && !o->no_notes) {
        config_notes_print(c);
    }
    return e->n > before ? -EINVAL : 0;
}

int config_of_text(struct config *c, const char *tree, struct err *e)
{
    size_t before = e->n;
    memset(c, 0, sizeof *c);
    c->tree = cJSON_Parse(tree);
    c->workload = "";
    parse(c, "a kept machine", "a kept model", e);
    return e->n > before ? -EINVAL : 0;
}

void config_fini(struct config *c)
{
    cJSON_Delete(c->tree);
    for (uint32_t i = 0; i < c->n_more; i++) {
        free(c->more[i].own);
    }
    free(c->more);
    free(c->setup_more);
    memset(c, 0, sizeof *c);
}

static int64_t sooner(int64_t t_ns, double factor)
{
    return units_ns_from_s(units_s_from_ns(t_ns) / factor);
}

static void compress(struct trace *t, double starts, double gaps)
{
    trace_unpack(t);
    for (size_t i = 0; i < t->n; i++) {
        t->rows[i].arrival_ns = sooner(t->rows[i].arrival_ns, i < t->n_first ? starts : gaps);
    }
    for (uint32_t k = 0; t->graph != NULL && k < t->graph->first[t->n]; k++) {
        t->graph->edges[k].gap_ns = sooner(t->graph->edges[k].gap_ns, gaps);
    }
    t->hash = hash_u64(t->hash, (uint64_t)llround(starts * 1e6)); /* a different trace */
    t->hash = gaps != 1.0 ? hash_u64(t->hash, (uint64_t)llround(gaps * 1e6)) : t->hash;
}

int config_trace(const struct config_options *o, uint64_t seed, struct config_arrivals arrivals,
                 struct trace *out, struct err *e)
{
    int rc = config_trace_packed(o, seed, arrivals, out, e);
    trace_unpack(out);
    return rc;
}

int config_trace_check(const struct config_options *o, uint64_t seed,
                       struct config_arrivals arrivals, uint64_t *hash, struct err *e)
{
    SCOPED(trace_fini) struct trace t = {0};
    int rc = config_trace(o, seed, arrivals, &t, e);
    if (rc == 0) {
        models_note(o, &t);
    }
    if (rc == 0 && hash != NULL) {
        *hash = t.hash;
    }
    return rc;
}

int config_load_all(struct config *c, const struct config_options *o,
                    struct config_arrivals arrivals, const char *const *policies, uint32_t n,
                    struct config_policy *p, struct err *e)
{
    int rc = config_load(c, o, e);
    for (uint32_t i = 0; i < n; i++) {
        (void)config_policy_parse(&p[i], policies[i], e);
    }
    (void)config_trace_check(o, o->seed, arrivals, NULL, e);
    return rc;
}

int config_trace_packed(const struct config_options *o, uint64_t seed,
                        struct config_arrivals arrivals, struct trace *out, struct err *e)
{
    if (o->trace != NULL && o->workload != NULL) {
        return err_add(e, "--trace and --workload exclude each other");
    }
    double rate_scale = arrivals.rate_scale > 0.0 ? arrivals.rate_scale : 1.0;
    double gaps = arrivals.compress > 0.0 ? arrivals.compress : 1.0;
    double factor = gaps;
    int rc = 0;
    if (o->trace != NULL) {
        rc = recordings_read(o, seed, out, e);
        factor *= rate_scale;
    } else {
        const char *spec = o->workload != NULL ? o->workload : CONFIG_DEFAULT_WORKLOAD;
        rc = trace_generate_packed(spec, seed, rate_scale, out, e);
    }
    if (rc == 0 && o->machine != NULL) {
        rc = machine_events_read(o->machine, out, e);
    }
    if (rc == 0) {
        rc = models_bind(o, out, e);
    }
    if (rc == 0 && factor != 1.0) {
        compress(out, factor, gaps);
    }
    if (rc == 0 && (o->ttft_slo_s > 0.0 || o->tpot_slo_s > 0.0)) {
        trace_set_slos(out, o->ttft_slo_s > 0.0 ? units_ns_from_s(o->ttft_slo_s) : TIME_NEVER_NS,
                       o->tpot_slo_s > 0.0 ? units_ns_from_s(o->tpot_slo_s) : TIME_NEVER_NS);
    }
    if (rc == 0 && arrivals.swap_classes) {
        out->hash = hash_string(out->hash, "classes swapped");
        trace_unpack(out);
    }
    for (size_t i = 0; rc == 0 && arrivals.swap_classes && i < out->n; i++) {
        out->rows[i].cls = out->rows[i].cls == REQUEST_CLASS_REACTIVE ? REQUEST_CLASS_PROACTIVE
                                                                      : REQUEST_CLASS_REACTIVE;
    }
    return rc;
}

/* Both kinds of limits have the same equation (sim/engine/throttle.c). */
static void throttle_setup(const struct config *c, struct sim_throttle *out)
{
    const struct config_power *p = &c->sim.power;
    *out = (struct sim_throttle){.exponent = p->exponent, .min_speed = p->min_speed};
    if (p->limit == CONFIG_LIMIT_PACKAGE) {
        out->limit_watts = c->soc.package_pl1_watts;
        out->burst_watts = c->soc.package_pl2_watts;
        out->tau_s = c->soc.package_tau_s;
    } else if (p->limit == CONFIG_LIMIT_THERMAL) {
        out->limit_watts = (p->limit_c - p->ambient_c) / p->resistance_k_per_w;
        out->tau_s = p->resistance_k_per_w * p->capacity_j_per_k;
    }
}

static void dvfs_setup(const struct soc_dvfs *d, struct sim_dvfs *out)
{
    *out = (struct sim_dvfs){.n = d->n,
                             .rule = (enum sim_dvfs_rule)d->governor,
                             .period_ns = d->period_ns,
                             .headroom = d->headroom};
    for (uint32_t i = 0; i < d->n; i++) {
        out->steps[i] = (struct sim_dvfs_step){d->steps[i].speed, d->steps[i].power};
    }
}

void config_setup(const struct config *c, const struct config_policy *p, const struct trace *t,
                  uint64_t seed, struct sim_setup *out)
{
    sim_setup_defaults(out);
    out->machine = &c->soc.machine;
    out->llm = &c->llm;
    out->truth = &c->truth.model;
    out->more = c->setup_more;
    out->n_more = c->n_more;
    out->weights_at_start = c->weights_at_start;
    out->draft_model = c->draft_model; /* config_speculation_setup may clear it */
    out->annotation = c->sim.annotation;
    out->truth_sigma = c->sim.truth_sigma;
    out->hang_frac = c->sim.hang_frac;
    out->hang_factor = c->sim.hang_factor;
    out->contention = c->contention;
    out->contention_params = &c->contention_params;
    out->trace = t;
    out->policy = p->ops;
    out->params = &p->params;
    out->seed = seed;
    config_speculation_setup(&c->speculation, out);
    out->prefix_reuse = c->sim.prefix_reuse;
    out->kv_capacity_tokens = c->sim.kv_capacity_tokens;
    out->kv_block_tokens = c->sim.kv_block_tokens;
    out->weight_copies = c->sim.weight_copies;
    out->runtime_bytes = models_runtime_bytes(c, t);
    out->horizon_ns = c->sim.horizon_s > 0.0 ? units_ns_from_s(c->sim.horizon_s) : TIME_NEVER_NS;
    out->stall_ns = units_ns_from_s(c->sim.stall_s);
    out->collapse = c->sim.collapse;
    throttle_setup(c, &out->throttle);
    for (uint32_t i = 0; i < c->soc.machine.n_devices; i++) {
        const struct soc_kernels *k = &c->soc.devices[i].kernels;
        out->kernels[i] = (struct sim_kernel_memory){k->budget_bytes, k->instructions_bytes,
                                                     k->buffer_bytes, k->load_ns};
        dvfs_setup(&c->soc.devices[i].dvfs, &out->dvfs[i]);
    }
    struct soc_supply supply = soc_supply_of(&c->soc);
    if (supply.efficiency_frac > 0.0) {
        out->supply = (struct sim_supply){supply.efficiency_frac, supply.rest_watts};
    }
    const struct config_graphics *g = &c->sim.graphics;
    int display = display_device(out->machine);
    if (display >= 0) { /* also without frames, because an event of the machine may start them */
        out->frames = (struct sim_frames){.per_s = g->frames_per_s,
                                          .device = (uint8_t)display,
                                          .device_ns = units_ns_from_s(g->frame_s),
                                          .bytes = g->frame_bytes};
    }
}

const char *config_version(void)
{
    return "xpusim " XPUSIM_VERSION " " XPUSIM_REVISION;
}

char *config_fingerprint(const struct config *c, const struct config_policy *p,
                         const struct trace *t, uint64_t seed)
{
    return xformat(
        "xpusim %s %s config=%016" PRIx64 " trace=%016" PRIx64 " policy=%s:%s seed=%" PRIu64,
        XPUSIM_VERSION, XPUSIM_REVISION, c->hash, t->hash, p->ops->name, p->params_text, seed);
}
