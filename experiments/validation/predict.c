#include "experiments/validation/predict_impl.h"

#include "experiments/run/interval.h"
#include "hwmodels/llm_layers.h"
#include "sim/base/words.h"

#define TABLES                                                                                     \
    "openvino-2" /* runtimes of OpenVINO's own tables, whose 4-bit files have recipes              \
                  */

/* Finds it by name, then by kind. The GPU of a phone is its integrated one. */
int predict_device(const struct soc *soc, const char *name)
{
    const struct machine *m = &soc->machine;
    for (uint32_t i = 0; i < m->n_devices; i++) {
        if (strcmp(m->devices[i].name, name) == 0) {
            return (int)i;
        }
    }
    int kind = words_find(device_kind_names(), name);
    int found = kind >= 0 ? machine_find(m, (enum device_kind)kind) : -1;
    return found < 0 && strcmp(name, "gpu") == 0 ? machine_find(m, DEVICE_KIND_IGPU) : found;
}

static void bind_machine(const struct catalog *c, const struct point *p, struct predict_case *out)
{
    out->soc = catalog_soc(c, p->soc);
    if (out->soc == NULL) {
        out->reason = "no file for this SoC";
        return;
    }
    int device = predict_device(out->soc, p->device);
    if (device < 0) {
        out->reason = "the SoC file has no such device";
        return;
    }
    out->device = (uint8_t)device;
    out->runtime =
        soc_runtime_find(&out->soc->devices[device], p->runtime, p->weight_bits, &out->match);
}

/* Selects the entry as if the file had none for the runtime. */
static void take_other_runtime(const struct point *p, struct predict_case *out)
{
    const struct soc_device *d = &out->soc->devices[out->device];
    struct soc_device others = *d;
    uint32_t index[SOC_MAX_RUNTIMES];
    others.n_runtimes = others.fallback = 0;
    for (uint32_t i = 0; i < d->n_runtimes; i++) {
        if (strcmp(d->runtimes[i].runtime, d->runtimes[out->runtime].runtime) != 0) {
            index[others.n_runtimes] = i;
            others.fallback = i == d->fallback ? others.n_runtimes : others.fallback;
            others.runtimes[others.n_runtimes++] = d->runtimes[i];
        }
    }
    if (others.n_runtimes == 0) {
        out->reason = "the device has no other runtime";
        return;
    }
    out->runtime = index[soc_runtime_find(&others, p->runtime, p->weight_bits, &out->match)];
    if (out->match == SOC_MATCH_EXACT) { /* a less exact name of it, "x" for "x-2025" */
        out->match = SOC_MATCH_VERSION;
    }
}

/* The format for a width that the entry lacks is the usual one. But if the entry's KV differs from
 * the usual one of its width, the runtime stores KV so for all widths. */
static struct soc_format format_of(const struct soc_runtime *r, uint32_t bits)
{
    struct soc_format format = r->weight_bits == bits ? r->format : soc_format_of_width(bits);
    bool own = r->format.kv_bytes != soc_format_of_width(r->weight_bits).kv_bytes;
    format.kv_bytes = own ? r->format.kv_bytes : format.kv_bytes;
    return format;
}

/* Uses the bytes of the model's file. If those outside experts are known, experts have the rest.
 * Otherwise bytes are distributed as in the format. */
static void take_size(const struct point *p, struct soc_format *format, struct predict_case *out)
{
    double stored = llm_stored_weights(&out->llm);
    double bytes = p->bytes_per_weight * stored;
    double dense = p->dense_bytes_per_weight;
    dense = dense > 0.0 ? dense : out->llm.dense_bytes_per_weight;
    if (dense == 0.0) {
        double more = bytes / out->llm.weight_bytes;
        format->body_bytes *= more;
        format->head_bytes *= more;
        return;
    }
    double experts = llm_expert_weights(&out->llm);
    double each = (bytes - dense * (stored - experts)) / experts;
    if (!(each > 0.0 && each <= dense)) {
        out->reason = "the bytes of its file do not go with those outside experts";
        return;
    }
    out->llm.dense_bytes_per_weight = dense;
    format->body_bytes = each;
    format->head_bytes = dense;
}

static void bind_model(const struct catalog *c, const struct point *p, struct predict_case *out)
{
    const struct llm *m = catalog_llm(c, p->model);
    if (m == NULL) {
        out->reason = "no file for this model";
        return;
    }
    out->llm = *m;
    out->has_llm = true;
    const struct soc_runtime *r = &out->soc->devices[out->device].runtimes[out->runtime];
    uint32_t bits = p->weight_bits > 0 ? p->weight_bits : m->weight_bits;
    uint32_t act = p->act_bits > 0 ? p->act_bits : m->act_bits;
    struct soc_format format = format_of(r, bits);
    bool table = bits == 4 && strncmp(p->runtime, TABLES, strlen(TABLES)) == 0;
    double recipe = table ? catalog_recipe_bytes(c, p->model) : 0.0;
    format.body_bytes = recipe > 0.0 ? recipe : format.body_bytes;
    bool own = bits == m->weight_bits && catalog_knows_bytes(c, m);
    if (own) {
        format.body_bytes = format.head_bytes = 0.0;
    }
    llm_requantise(&out->llm, bits, act, &format);
    if (p->bytes_per_weight > 0.0 && !own) {
        take_size(p, &format, out);
        llm_requantise(&out->llm, bits, act, &format);
    }
    out->window = catalog_window(c, p->runtime, m->name);
}

/* Whether the model fits into the usable memory. Beyond that a machine swaps, and no roofline is
 * valid. */
static bool fits_memory(const struct predict_case *k, const struct point *p)
{
    const struct machine *m = &k->soc->machine;
    const struct llm *l = &k->llm;
    double tokens = p->input_tokens;
    const struct soc_runtime *r = &k->soc->devices[k->device].runtimes[k->runtime];
    if ((r->sliding_window || r->decode_window) &&
        tokens > l->sliding_window) { /* layers with a window keep no more */
        struct llm_layer layer;
        llm_layer_fill(l, &layer);
        tokens -= (tokens - l->sliding_window) * layer.far_key_frac;
    }
    double kv_bytes = (l->kv_bytes_per_token * tokens + l->kv_state_bytes) * p->batch;
    return l->weight_bytes + kv_bytes <= m->memory_bytes * m->memory_usable_frac;
}

static void bind(const struct catalog *c, const struct point *p, bool other_runtime,
                 struct predict_case *out)
{
    memset(out, 0, sizeof *out);
    bind_machine(c, p, out);
    if (out->reason == NULL && out->match == SOC_MATCH_EXACT && other_runtime) {
        take_other_runtime(p, out);
    }
    if (out->reason != NULL) {
        return;
    }
    bind_model(c, p, out);
    if (out->reason != NULL) {
        return;
    }
    if (point_is_prefill(p) && p->input_tokens == 0) {
        out->reason = "the prompt's length is not stated";
    } else if (!fits_memory(out, p)) {
        out->reason = "weights and KV exceed the usable share of memory";
    }
}

void predict_bind(const struct catalog *c, const struct point *p, struct predict_case *out)
{
    bind(c, p, false, out);
}

void predict_bind_other(const struct catalog *c, const struct point *p, struct predict_case *out)
{
    bind(c, p, true, out);
}

void predict_model(const struct predict_case *k, struct roofline *out)
{
    roofline_init(out, hwmodel_find("extended"), k->soc, &k->llm);
}

struct price predict_by_model(struct roofline *r, const struct predict_case *k,
                              const struct point *p, const struct soc_runtime *params)
{
    struct soc_runtime own;
    if (k->window > 0 && params->window > 0) {
        own = *params;
        own.window = k->window;
        params = &own;
    }
    roofline_set_runtime(r, k->device, params);
    struct work_shape w = point_is_prefill(p)
                              ? price_prefill_shape(&k->llm, p->input_tokens, p->batch)
                              : price_decode_shape(&k->llm, p->input_tokens, p->batch);
    return price_pass(r, k->device, &w);
}

/* A machine that is slower by this factor has longer times, with relatively less rounding. */
#define SLOWER 4096.0

double predict_smooth_s(struct roofline *r, const struct predict_case *k, const struct point *p,
                        const struct soc_runtime *params)
{
    struct soc_runtime slow = *params;
    struct soc_curve *curves[] = {&slow.many, &slow.one};
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
        curves[i]->flop_per_s /= SLOWER;
        curves[i]->bytes_per_s /= SLOWER;
        curves[i]->launch_s *= SLOWER;
    }
    slow.enqueue_s *= SLOWER;
    slow.prompt_enqueue_s *= SLOWER;
    r->exchange[k->device] = k->soc->devices[k->device].exchange;
    r->exchange[k->device].latency_s *= SLOWER;
    r->exchange[k->device].bytes_per_s /= SLOWER;
    struct price pass = predict_by_model(r, k, p, &slow);
    double kernels_s = 0.0;
    for (int op = 0; op < OP_KIND_COUNT; op++) {
        kernels_s += pass.op_s[op];
    }
    return pass.seconds - kernels_s + kernels_s / SLOWER;
}

struct price predict_price(const struct predict_case *k, const struct point *p,
                           const struct soc_runtime *params)
{
    struct roofline r;
    predict_model(k, &r);
    return predict_by_model(
        &r, k, p, params != NULL ? params : &k->soc->devices[k->device].runtimes[k->runtime]);
}

enum conformal_phase predict_phase(const struct point *p)
{
    return p->metric == POINT_MEMORY_MIB ? CONFORMAL_MEMORY
                                         : conformal_phase_of(point_is_prefill(p), p->input_tokens);
}

/* Whether fits of the machine used a row of the publication. */
static bool known_source(const struct catalog *c, const struct point *p, const struct soc *soc,
                         enum device_kind kind)
{
    size_t n = point_source_length(p->source);
    for (size_t i = 0; i < c->residuals.n; i++) {
        const struct conformal_row *r = &c->residuals.v[i];
        if (r->left == CONFORMAL_MODEL && r->kind == kind && strlen(r->source) == n &&
            strncmp(r->source, p->source, n) == 0 && strcmp(r->soc, soc->machine.name) == 0) {
            return true;
        }
    }
    return n == 0; /* the table does not state sources */
}

/* An entry scaled by data sheet has the version of its original's rows. If that is not stated, a
 * row with a version may be of another one. */
static enum conformal_left class_of(const struct catalog *c, const struct point *p,
                                    const struct predict_case *k)
{
    enum device_kind kind = k->soc->machine.devices[k->device].kind;
    const struct soc_runtime *r = &k->soc->devices[k->device].runtimes[k->runtime];
    bool scaled = point_is_latency(p) && !r->start.given;
    bool other = scaled && soc_runtime_versioned(p->runtime) && !soc_runtime_versioned(r->runtime);
    return k->match != SOC_MATCH_EXACT || other ? CONFORMAL_RUNTIME
           : scaled                             ? CONFORMAL_SOC
           : known_source(c, p, k->soc, kind)   ? CONFORMAL_MODEL
                                                : CONFORMAL_SOURCE;
}

/* Leaves out scores of the row's model, so that it counts as not measured. */
void predict_interval(const struct catalog *c, const struct point *p, const struct predict_case *k,
                      double seconds, struct prediction *out)
{
    const struct soc_runtime *entry = &k->soc->devices[k->device].runtimes[k->runtime];
    struct conformal_query q = {.soc = k->soc->machine.name,
                                .family = k->soc->family,
                                .kind = k->soc->machine.devices[k->device].kind,
                                .phase = predict_phase(p),
                                .weights = k->llm.body_weights + k->llm.head_weights,
                                .tokens = p->input_tokens,
                                .mixture = k->llm.n_experts > 0,
                                .left = class_of(c, p, k),
                                .without_model = k->llm.name};
    bool latency = point_is_latency(p);
    struct conformal_interval x;
    if (k->match != SOC_MATCH_EXACT || !latency || !interval_measured(entry, &q, &x)) {
        x = conformal_of(&c->residuals, &q, CONFORMAL_LEVEL);
    }
    double a = latency ? point_value_of_seconds(p, seconds * x.low_factor) : seconds * x.low_factor;
    double b =
        latency ? point_value_of_seconds(p, seconds * x.high_factor) : seconds * x.high_factor;
    out->unseen = q.left;
    out->low = x.n > 0 ? fmin(a, b) : (double)NAN;
    out->high = x.n > 0 ? fmax(a, b) : (double)NAN;
}

struct prediction predict_unknown(const char *reason)
{
    return (struct prediction){
        .value = (double)NAN, .reason = reason, .low = (double)NAN, .high = (double)NAN};
}

struct prediction predict_known(double value)
{
    return (struct prediction){.value = value, .low = (double)NAN, .high = (double)NAN};
}
