#include "experiments/run/config_sim.h"

#define MAX_SIGMA 2.0 /* a factor of 7 either way: beyond it an annotation means nothing */

#define AT(member, type)                                                                           \
    (offsetof(struct config_sim, member) +                                                         \
     0 * sizeof(&((struct config_sim *)0)->member == (type *)0))
#define ROW(kind_, path_, member, type, help_, ...)                                                \
    {                                                                                              \
        .path = (path_), .kind = SETTING_##kind_, .offset = AT(member, type), .help = (help_),     \
        __VA_ARGS__                                                                                \
    }
#define NUMBER(path_, member, preset_, min_, max_, unit_, help_)                                   \
    ROW(NUMBER, path_, member, double, help_, .preset = (preset_), .min = (min_), .max = (max_),   \
        .unit = (unit_))
#define COUNT(path_, member, preset_, min_, max_, unit_, help_)                                    \
    ROW(COUNT, path_, member, uint32_t, help_, .preset = (preset_), .min = (min_), .max = (max_),  \
        .unit = (unit_))
#define FLAG(path_, member, preset_, help_)                                                        \
    ROW(FLAG, path_, member, bool, help_, .preset = (preset_), .unit = "")
#define TEXT(path_, member, preset_, help_)                                                        \
    ROW(TEXT, path_, member, const char *, help_, .text = (preset_), .unit = "")
#define CHOICE(path_, member, preset_, choices_, help_)                                            \
    ROW(CHOICE, path_, member, int, help_, .preset = (preset_), .choices = (choices_), .unit = "")

static const char *const nonlinear[] = {"fused", "split", "offload", NULL};
static const char *const limits[] = {"none", "package", "thermal", NULL};
static const char *const methods[] = {"none",   "pld",    "sam",        "eagle",
                                      "lookup", "suffix", "calibrated", NULL};
static const char *const histories[] = {"full", "turn", "trace", NULL};
static const char *const lengths[] = {"fixed", "prop", "empirical", NULL};

/* Drain, sharing by `latency`, the extended kernel-time form. Annotations err log-normally by what
 * a calibrated model leaves unexplained: median |error| 8.8 % of prefill and 4.8 % of decode times
 * over published held-out points (per-weight-width fit of the extended form); a normal's median |z|
 * is 0.6745, so sigma = 0.130 and 0.071. No bias. A frame takes 4 ms of a 60 Hz frame's time and
 * moves three times a 1920 x 1080 picture of 4 bytes a pixel (render, compose, scan out), both
 * assumed. */
static const struct setting table[] = {
    TEXT("contention", contention, "latency", "contention model; `xpusim list contention`"),
    NUMBER("contention_minor", contention_params.minor, 0.05, 0.0, 10.0, "1",
           "model pccs: slowdown, minus 1, where demands do not exceed the capacity"),
    NUMBER("contention_balance_frac", contention_params.balance_frac, 1.0, 0.01, 10.0, "1",
           "model pccs: demand of others, as a share of capacity, from which slowing saturates"),
    TEXT("hwmodel", hwmodel, "extended", "kernel-time model; `xpusim list hwmodel`"),
    COUNT("kv_capacity_tokens", kv_capacity_tokens, 0, 0, UINT32_MAX, "tokens",
          "KV capacity; 0: the memory left by the weights"),
    COUNT("kv_block_tokens", kv_block_tokens, 16, 1, 1u << 20, "tokens", "size of a block of KV"),
    COUNT("weight_copies", weight_copies, 1, 1, 16, "1",
          "copies of the weights in memory, one per device that cannot share them"),
    FLAG("prefix_reuse", prefix_reuse, true, "keep the KV of a finished turn for the next turn"),
    FLAG("collapse", collapse, true,
         "pass the ends of kernels between the instants of a run; false: each end is an instant "
         "(slower, same results)"),
    CHOICE("nonlinear", nonlinear, CONFIG_NONLINEAR_FUSED, nonlinear,
           "place of norms and activations: in the products before them, as launches of their own, "
           "or on another device"),
    FLAG("chunk_auto", chunk_auto, false,
         "take static chunks at the knee of throughput instead of the SoC file's"),
    NUMBER("horizon_s", horizon_s, 0.0, 0.0, 1e9, "s", "end of a run; 0: when all is done"),
    NUMBER("stall_s", stall_s, 3600.0, 1e-3, 1e9, "s",
           "time without progress after which a run has stalled"),
    NUMBER("truth_sigma", truth_sigma, 0.0, 0.0, MAX_SIGMA, "1",
           "log-normal execution-time noise of kernels"),
    NUMBER("hang_frac", hang_frac, 0.0, 0.0, 1.0, "1", "share of the launches that hang"),
    NUMBER("hang_factor", hang_factor, 1000.0, 1.0, 1e6, "1",
           "how many times as long the kernels of a launch that hangs take"),
    NUMBER("annotation.sigma_prefill", annotation.sigma_prefill, 0.130, 0.0, MAX_SIGMA, "1",
           "log-normal error of the policies' estimates of prefill times"),
    NUMBER("annotation.sigma_decode", annotation.sigma_decode, 0.071, 0.0, MAX_SIGMA, "1",
           "log-normal error of the policies' estimates of decode times"),
    /* In the order of enum op_kind. */
    NUMBER("annotation.bias_frac.qkv", annotation.bias_frac[OP_QKV], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("annotation.bias_frac.mha", annotation.bias_frac[OP_MHA], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("annotation.bias_frac.ffn", annotation.bias_frac[OP_FFN], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("annotation.bias_frac.head", annotation.bias_frac[OP_HEAD], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("annotation.bias_frac.layer", annotation.bias_frac[OP_LAYER], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of whole layers, as a share"),
    NUMBER("graphics.reserve_time_frac", graphics.reserve_time_frac, 0.0, 0.0, 0.99, "1",
           "share of the GPU's time that other software has; estimates include it"),
    NUMBER("graphics.reserve_rate_frac", graphics.reserve_rate_frac, 0.0, 0.0, 0.99, "1",
           "share of the GPU's rate, not of its bandwidth, that other software has; estimates "
           "include it"),
    NUMBER("graphics.frames_per_s", graphics.frames_per_s, 0.0, 0.0, 1e4, "1/s",
           "frames that policies are not notified of; 0: none"),
    NUMBER("graphics.frame_s", graphics.frame_s, 0.004, 1e-9, 1e3, "s",
           "isolated time of the GPU for a frame; the energy of frames is not counted"),
    NUMBER("graphics.frame_bytes", graphics.frame_bytes, 3.0 * 1920 * 1080 * 4, 0.0, 1e12, "B",
           "DDR traffic of a frame"),
    CHOICE("power.limit", power.limit, CONFIG_LIMIT_NONE, limits,
           "throttling: none, by the package's PL1, PL2 and tau, or by the temperature"),
    NUMBER("power.exponent", power.exponent, 3.0, 0.1, 10.0, "1", "exponent of power over speed"),
    NUMBER("power.min_speed", power.min_speed, 0.1, 0.01, 1.0, "1", "lowest speed, as a share"),
    NUMBER("power.ambient_c", power.ambient_c, 25.0, -50.0, 100.0, "C",
           "thermal: ambient temperature"),
    NUMBER("power.limit_c", power.limit_c, 95.0, 0.0, 200.0, "C", "thermal: temperature limit"),
    NUMBER("power.resistance_k_per_w", power.resistance_k_per_w, 2.0, 1e-3, 1e3, "K/W",
           "thermal: resistance from die to ambient"),
    NUMBER("power.capacity_j_per_k", power.capacity_j_per_k, 20.0, 1e-3, 1e6, "J/K",
           "thermal: heat capacity"),
    CHOICE("speculation.method", drafts.method, 0, methods,
           "drafter, for policies without one of their own; lookup, suffix and calibrated draft on "
           "token texts"),
    TEXT("speculation.dataset", drafts.dataset, "summary", "row of the acceptance table"),
    TEXT("speculation.model", drafts.model, "qwen2.5-1.5b", "column of the acceptance table"),
    FLAG("speculation.ours", drafts.ours, false, "use sd.npu's calibration of the context"),
    CHOICE("speculation.length", drafts.length, SPECULATION_FIXED, lengths, "length of drafts"),
    COUNT("speculation.max_draft_tokens", drafts.max_draft_tokens, 0, 0, SPECULATION_MAX_DRAFT,
          "tokens", "longest draft; 0: that of the method"),
    NUMBER("speculation.reuse_frac", drafts.reuse_frac, 0.0, 0.0, 0.99, "1",
           "share of a rejected draft that is tried again"),
    CHOICE("speculation.history", drafts.history, SPECULATION_HISTORY_FULL, histories,
           "history of the drafter when a request arrives"),
    FLAG("speculation.proactive", drafts.proactive, true,
         "draft for both classes, or for reactive requests only"),
};
enum { N_TABLE = sizeof table / sizeof table[0] };

const struct setting *config_sim_table(size_t *n)
{
    *n = N_TABLE;
    return table;
}

static void add(cJSON *o, const struct setting *s, const char *key)
{
    switch (s->kind) {
    case SETTING_NUMBER:
    case SETTING_COUNT:
        (void)cJSON_AddNumberToObject(o, key, s->preset);
        return;
    case SETTING_FLAG:
        (void)cJSON_AddBoolToObject(o, key, s->preset != 0.0);
        return;
    case SETTING_TEXT:
        (void)cJSON_AddStringToObject(o, key, s->text);
        return;
    case SETTING_CHOICE:
        (void)cJSON_AddStringToObject(o, key, s->choices[(size_t)s->preset]);
        return;
    }
}

static void read_one(struct json_obj *o, const struct setting *s, const char *key,
                     struct config_sim *out)
{
    void *at = (char *)out + s->offset;
    switch (s->kind) {
    case SETTING_NUMBER:
        *(double *)at = json_get_number(o, key, s->min, s->max);
        return;
    case SETTING_COUNT:
        *(uint32_t *)at = json_get_u32(o, key, (uint32_t)s->min, (uint32_t)s->max);
        return;
    case SETTING_FLAG:
        *(bool *)at = json_get_bool(o, key);
        return;
    case SETTING_TEXT:
        *(const char **)at = json_get_string(o, key);
        return;
    case SETTING_CHOICE:
        *(int *)at = json_get_choice(o, key, s->choices);
        return;
    }
}

/* The next object's name in a path whose first `skip` bytes are behind us; 0 length: a leaf. */
static size_t object_length(const char *path, size_t skip)
{
    const char *dot = strchr(path + skip, '.');
    return dot != NULL ? (size_t)(dot - path) - skip : 0;
}

static bool same_object(const struct setting *a, const struct setting *b, size_t length)
{
    return strncmp(a->path, b->path, length) == 0;
}

/* Walks the rows from `at` on that share their first `skip` bytes, which name object `o`: into a
 * tree of defaults when out is NULL, else out of the tree into out. Returns the row after them. */
static size_t walk(size_t at, size_t skip, cJSON *tree, struct json_obj *o, struct config_sim *out)
{
    size_t first = at;
    while (at < N_TABLE && same_object(&table[first], &table[at], skip)) {
        const struct setting *s = &table[at];
        size_t length = object_length(s->path, skip);
        if (length == 0 && out == NULL) {
            add(tree, s, s->path + skip);
            at++;
        } else if (length == 0) {
            read_one(o, s, s->path + skip, out);
            at++;
        } else {
            char name[64];
            (void)snprintf(name, sizeof name, "%.*s", (int)length, s->path + skip);
            if (out == NULL) {
                at = walk(at, skip + length + 1, cJSON_AddObjectToObject(tree, name), NULL, NULL);
            } else {
                struct json_obj below = json_get_object(o, name);
                at = walk(at, skip + length + 1, NULL, &below, out);
            }
        }
    }
    if (out != NULL) {
        json_done(o);
    }
    return at;
}

cJSON *config_sim_to_json(void)
{
    cJSON *o = cJSON_CreateObject();
    (void)walk(0, 0, o, NULL, NULL);
    return o;
}

void config_sim_parse(struct json_obj o, struct config_sim *out)
{
    (void)walk(0, 0, NULL, &o, out);
}
