#include "experiments/run/config_sim.h"

#define MAX_SIGMA 2.0 /* a factor of 7: with more an annotation has no information */

#define S struct config_sim
#define NUMBER(key, member, preset, low, high, unit_, help)                                        \
    {                                                                                              \
        JSON_NUMBER(S, member, key, low, high, 1.0, help), .otherwise = (preset), .unit = (unit_)  \
    }
#define COUNT(key, member, preset, low, high, unit_, help)                                         \
    {                                                                                              \
        JSON_COUNT(S, member, key, low, high, help), .otherwise = (preset), .unit = (unit_)        \
    }
#define FLAG(key, member, preset, help)                                                            \
    {                                                                                              \
        JSON_BOOL(S, member, key, help), .otherwise = (preset), .unit = ""                         \
    }
#define TEXT(key, member, preset, help)                                                            \
    {                                                                                              \
        JSON_WORD(S, member, key, help), .text = (preset), .unit = ""                              \
    }
#define CHOICE(key, member, preset, words_, help)                                                  \
    {                                                                                              \
        JSON_ROW_(key, help, CHOICE), JSON_INTO_(S, member), .words = (words_),                    \
                                                             .otherwise = (preset), .unit = ""     \
    }
#define OBJECT(key, rows)                                                                          \
    {                                                                                              \
        JSON_OBJECT(key, &(const struct json_fields)JSON_FIELDS(rows, NULL), "")                   \
    }

static const char *const nonlinear[] = {"fused", "split", "offload", NULL};
static const char *const limits[] = {"none", "package", "thermal", NULL};
static const char *const methods[] = {"none",   "pld",    "sam",        "eagle",
                                      "lookup", "suffix", "calibrated", NULL};
static const char *const histories[] = {"full", "turn", "trace", NULL};
static const char *const lengths[] = {"fixed", "prop", "empirical", NULL};

/* By default runs drain, `latency` divides the DDR bandwidth, and the kernel-time model is the
 * extended one. Estimates have no bias, and a log-normal error as large as that of a calibrated
 * model at published held-out points (fit per weight width). The model's median |error| is 8.8 % of
 * prefill and 4.8 % of decode times. The median |z| of a normal distribution is 0.6745, so sigma is
 * 0.130 and 0.071.
 *
 * A frame takes 4 ms of a 60 Hz frame's time. It moves a 1920 x 1080 picture of 4 bytes a pixel
 * three times (render, compose, scan out). Both numbers are assumed. */
static const struct json_field bias_frac_rows[] = {
    /* In the order of enum op_kind. */
    NUMBER("qkv", annotation.bias_frac[OP_QKV], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("mha", annotation.bias_frac[OP_MHA], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("ffn", annotation.bias_frac[OP_FFN], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("head", annotation.bias_frac[OP_HEAD], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of this kernel, as a share"),
    NUMBER("layer", annotation.bias_frac[OP_LAYER], 0.0, -0.99, 100.0, "1",
           "bias of the policies' estimates of whole layers, as a share"),
};
static const struct json_field annotation_rows[] = {
    NUMBER("sigma_prefill", annotation.sigma_prefill, 0.130, 0.0, MAX_SIGMA, "1",
           "log-normal error of the policies' estimates of prefill times"),
    NUMBER("sigma_decode", annotation.sigma_decode, 0.071, 0.0, MAX_SIGMA, "1",
           "log-normal error of the policies' estimates of decode times"),
    OBJECT("bias_frac", bias_frac_rows),
};
static const struct json_field graphics_rows[] = {
    NUMBER("reserve_time_frac", graphics.reserve_time_frac, 0.0, 0.0, 0.99, "1",
           "share of the GPU's time that other software has; estimates include it"),
    NUMBER("reserve_rate_frac", graphics.reserve_rate_frac, 0.0, 0.0, 0.99, "1",
           "share of the GPU's rate, not of its bandwidth, that other software has; estimates "
           "include it"),
    NUMBER("frames_per_s", graphics.frames_per_s, 0.0, 0.0, 1e4, "1/s",
           "frames that policies are not notified of; 0: none"),
    NUMBER("frame_s", graphics.frame_s, 0.004, 1e-9, 1e3, "s",
           "isolated time of the GPU for a frame; the energy of frames is not counted"),
    NUMBER("frame_bytes", graphics.frame_bytes, 3.0 * 1920 * 1080 * 4, 0.0, 1e12, "B",
           "DDR traffic of a frame"),
};
static const struct json_field power_rows[] = {
    CHOICE("limit", power.limit, CONFIG_LIMIT_NONE, limits,
           "throttling: none, by the package's PL1, PL2 and tau, or by the temperature"),
    NUMBER("exponent", power.exponent, 3.0, 0.1, 10.0, "1", "exponent of power over speed"),
    NUMBER("min_speed", power.min_speed, 0.1, 0.01, 1.0, "1", "lowest speed, as a share"),
    NUMBER("ambient_c", power.ambient_c, 25.0, -50.0, 100.0, "C", "thermal: ambient temperature"),
    NUMBER("limit_c", power.limit_c, 95.0, 0.0, 200.0, "C", "thermal: temperature limit"),
    NUMBER("resistance_k_per_w", power.resistance_k_per_w, 2.0, 1e-3, 1e3, "K/W",
           "thermal: resistance from die to ambient"),
    NUMBER("capacity_j_per_k", power.capacity_j_per_k, 20.0, 1e-3, 1e6, "J/K",
           "thermal: heat capacity"),
};
static const struct json_field speculation_rows[] = {
    CHOICE("method", drafts.method, 0, methods,
           "drafter, for policies without one of their own; lookup, suffix and calibrated draft on "
           "token texts"),
    TEXT("dataset", drafts.dataset, "summary", "row of the acceptance table"),
    TEXT("model", drafts.model, "qwen2.5-1.5b", "column of the acceptance table"),
    FLAG("ours", drafts.ours, false, "use sd.npu's calibration of the context"),
    CHOICE("length", drafts.length, SPECULATION_FIXED, lengths, "length of drafts"),
    COUNT("max_draft_tokens", drafts.max_draft_tokens, 0, 0, SPECULATION_MAX_DRAFT, "tokens",
          "longest draft; 0: that of the method"),
    NUMBER("reuse_frac", drafts.reuse_frac, 0.0, 0.0, 0.99, "1",
           "share of a rejected draft that is tried again"),
    CHOICE("history", drafts.history, SPECULATION_HISTORY_FULL, histories,
           "history of the drafter when a request arrives"),
    FLAG("proactive", drafts.proactive, true,
         "draft for both classes, or for reactive requests only"),
};
static const struct json_field rows[] = {
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
           "log-normal noise of kernel times, drawn for each launch; its mean is 1"),
    NUMBER("hang_frac", hang_frac, 0.0, 0.0, 1.0, "1", "share of the launches that hang"),
    NUMBER("hang_factor", hang_factor, 1000.0, 1.0, 1e6, "1",
           "how many times as long the kernels of a launch that hangs take"),
    OBJECT("annotation", annotation_rows),
    OBJECT("graphics", graphics_rows),
    OBJECT("power", power_rows),
    OBJECT("speculation", speculation_rows),
};
const struct json_fields config_sim_fields = JSON_FIELDS(rows, NULL);

cJSON *config_sim_to_json(void)
{
    cJSON *o = cJSON_CreateObject();
    json_fields_defaults(&config_sim_fields, o);
    return o;
}

void config_sim_parse(struct json_obj o, struct config_sim *out)
{
    json_fields_read(&o, &config_sim_fields, out, NULL);
    json_done(&o);
}
