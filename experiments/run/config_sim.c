#include "experiments/run/config_sim.h"

#include "sim/base/units.h"

/* Order of enum op_kind. */
static const char *const op_names[OP_KIND_COUNT] = {"qkv", "mha", "ffn", "head", "layer"};

#define MAX_SIGMA 2.0 /* a factor of 7 either way: beyond it an annotation means nothing */

struct config_sim config_sim_default(void)
{
    return (struct config_sim){
        .contention = "latency",
        .contention_params = {.latency = 0.15, .minor = 0.05, .balance_frac = 1.0},
        .hwmodel = "extended",
        .nonlinear = "fused",
        .kv_block_tokens = 16,
        .weight_copies = 1,
        .prefix_reuse = true,
        .collapse = true,
        .stall_s = 3600.0,
        .annotation = {.sigma_prefill = 0.130, .sigma_decode = 0.071},
        .power = {.limit = "none",
                  .exponent = 3.0,
                  .min_speed = 0.1,
                  .ambient_c = 25.0,
                  .limit_c = 95.0,
                  .resistance_k_per_w = 2.0,
                  .capacity_j_per_k = 20.0},
        .graphics = {.frame_s = 0.004, .frame_bytes = 3.0 * 1920 * 1080 * 4},
    };
}

cJSON *config_sim_to_json(const struct config_sim *s)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "contention", s->contention);
    cJSON_AddNumberToObject(o, "contention_latency", s->contention_params.latency);
    cJSON_AddNumberToObject(o, "contention_minor", s->contention_params.minor);
    cJSON_AddNumberToObject(o, "contention_balance_frac", s->contention_params.balance_frac);
    cJSON_AddStringToObject(o, "hwmodel", s->hwmodel);
    cJSON_AddNumberToObject(o, "kv_capacity_tokens", (double)s->kv_capacity_tokens);
    cJSON_AddNumberToObject(o, "kv_block_tokens", s->kv_block_tokens);
    cJSON_AddNumberToObject(o, "weight_copies", s->weight_copies);
    cJSON_AddBoolToObject(o, "prefix_reuse", s->prefix_reuse);
    cJSON_AddBoolToObject(o, "collapse", s->collapse);
    cJSON_AddStringToObject(o, "nonlinear", s->nonlinear);
    cJSON_AddBoolToObject(o, "chunk_auto", s->chunk_auto);
    cJSON_AddNumberToObject(o, "horizon_s", s->horizon_s);
    cJSON_AddNumberToObject(o, "stall_s", s->stall_s);
    cJSON_AddNumberToObject(o, "truth_sigma", s->truth_sigma);
    cJSON *a = cJSON_AddObjectToObject(o, "annotation");
    cJSON_AddNumberToObject(a, "sigma_prefill", s->annotation.sigma_prefill);
    cJSON_AddNumberToObject(a, "sigma_decode", s->annotation.sigma_decode);
    cJSON *b = cJSON_AddObjectToObject(a, "bias_frac");
    for (int i = 0; i < OP_KIND_COUNT; i++) {
        cJSON_AddNumberToObject(b, op_names[i], s->annotation.bias_frac[i]);
    }
    cJSON *g = cJSON_AddObjectToObject(o, "graphics");
    cJSON_AddNumberToObject(g, "reserve_time_frac", s->graphics.reserve_time_frac);
    cJSON_AddNumberToObject(g, "reserve_rate_frac", s->graphics.reserve_rate_frac);
    cJSON_AddNumberToObject(g, "frames_per_s", s->graphics.frames_per_s);
    cJSON_AddNumberToObject(g, "frame_s", s->graphics.frame_s);
    cJSON_AddNumberToObject(g, "frame_bytes", s->graphics.frame_bytes);
    cJSON *p = cJSON_AddObjectToObject(o, "power");
    cJSON_AddStringToObject(p, "limit", s->power.limit);
    cJSON_AddNumberToObject(p, "exponent", s->power.exponent);
    cJSON_AddNumberToObject(p, "min_speed", s->power.min_speed);
    cJSON_AddNumberToObject(p, "ambient_c", s->power.ambient_c);
    cJSON_AddNumberToObject(p, "limit_c", s->power.limit_c);
    cJSON_AddNumberToObject(p, "resistance_k_per_w", s->power.resistance_k_per_w);
    cJSON_AddNumberToObject(p, "capacity_j_per_k", s->power.capacity_j_per_k);
    cJSON_AddItemToObject(o, "speculation", config_speculation_to_json());
    return o;
}

void config_sim_parse(struct json_obj o, struct config_sim *out,
                      struct config_speculation *speculation)
{
    (void)config_speculation_parse(json_get_object(&o, "speculation"), speculation);
    out->contention = json_get_string(&o, "contention");
    out->contention_params.latency = json_get_number(&o, "contention_latency", 0.0, 10.0);
    out->contention_params.minor = json_get_number(&o, "contention_minor", 0.0, 10.0);
    out->contention_params.balance_frac =
        json_get_number(&o, "contention_balance_frac", 0.01, 10.0);
    out->hwmodel = json_get_string(&o, "hwmodel");
    out->kv_capacity_tokens = json_get_u32(&o, "kv_capacity_tokens", 0, UINT32_MAX);
    out->kv_block_tokens = json_get_u32(&o, "kv_block_tokens", 1, 1u << 20);
    out->weight_copies = json_get_u32(&o, "weight_copies", 1, 16);
    out->prefix_reuse = json_get_bool(&o, "prefix_reuse");
    out->collapse = json_get_bool(&o, "collapse");
    static const char *const nonlinear[] = {"fused", "split", "offload", NULL};
    out->nonlinear = nonlinear[json_get_choice(&o, "nonlinear", nonlinear)];
    out->chunk_auto = json_get_bool(&o, "chunk_auto");
    out->horizon_s = json_get_number(&o, "horizon_s", 0.0, 1e9);
    out->stall_s = json_get_number(&o, "stall_s", 1e-3, 1e9);
    out->truth_sigma = json_get_number(&o, "truth_sigma", 0.0, MAX_SIGMA);
    struct json_obj a = json_get_object(&o, "annotation");
    out->annotation.sigma_prefill = json_get_number(&a, "sigma_prefill", 0.0, MAX_SIGMA);
    out->annotation.sigma_decode = json_get_number(&a, "sigma_decode", 0.0, MAX_SIGMA);
    struct json_obj b = json_get_object(&a, "bias_frac");
    for (int i = 0; i < OP_KIND_COUNT; i++) {
        out->annotation.bias_frac[i] = json_get_number(&b, op_names[i], -0.99, 100.0);
    }
    json_done(&b);
    json_done(&a);
    static const char *const limits[] = {"none", "package", "thermal", NULL};
    struct json_obj p = json_get_object(&o, "power");
    out->power.limit = limits[json_get_choice(&p, "limit", limits)];
    out->power.exponent = json_get_number(&p, "exponent", 0.1, 10.0);
    out->power.min_speed = json_get_number(&p, "min_speed", 0.01, 1.0);
    out->power.ambient_c = json_get_number(&p, "ambient_c", -50.0, 100.0);
    out->power.limit_c = json_get_number(&p, "limit_c", 0.0, 200.0);
    out->power.resistance_k_per_w = json_get_number(&p, "resistance_k_per_w", 1e-3, 1e3);
    out->power.capacity_j_per_k = json_get_number(&p, "capacity_j_per_k", 1e-3, 1e6);
    json_done(&p);
    struct json_obj g = json_get_object(&o, "graphics");
    out->graphics.reserve_time_frac = json_get_number(&g, "reserve_time_frac", 0.0, 0.99);
    out->graphics.reserve_rate_frac = json_get_number(&g, "reserve_rate_frac", 0.0, 0.99);
    out->graphics.frames_per_s = json_get_number(&g, "frames_per_s", 0.0, 1e4);
    out->graphics.frame_s = json_get_number(&g, "frame_s", 1e-9, 1e3);
    out->graphics.frame_bytes = json_get_number(&g, "frame_bytes", 0.0, 1e12);
    json_done(&g);
    json_done(&o);
}
