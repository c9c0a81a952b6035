/* config.json says of attention whether it needs kernels of its own, and its sliding windows. */
#include "hwmodels/llm_hf.h"

#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

/* The model of a configuration that has these keys, too. */
static struct llm model_of(uint32_t layers, const char *keys)
{
    struct err e = ERR_INIT;
    struct llm m = {0};
    OWNED char *config =
        xformat("{\"hidden_size\":1024,\"num_attention_heads\":16,\"num_hidden_layers\":%u,"
                "\"vocab_size\":1000,\"intermediate_size\":512,\"num_key_value_heads\":2,%s}",
                layers, keys);
    SCOPED(json_drop) cJSON *root = cJSON_Parse(config);
    ck_assert_msg(root != NULL && llm_hf_is(root), "%s", config);
    SCOPED(json_drop) cJSON *tree = llm_hf_tree(root, "config.json", NULL, 0, &e);
    ck_assert_msg(tree != NULL && llm_parse(tree, "tree", &m, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    return m;
}

/* Positions and heads as the configurations of these models state them, or their classes.
 */
static const struct {
    const char *what, *config; /* the keys that decide */
    bool special;
} attentions[] = {
    {"Llama 3.2 1B", "\"model_type\":\"llama\",\"head_dim\":64", false},
    {"Mistral 7B v0.1: a window", "\"model_type\":\"mistral\",\"sliding_window\":4096", false},
    {"Phi-3 mini: heads of 96", "\"model_type\":\"phi3\",\"head_dim\":96", true},
    {"Phi-4", "\"model_type\":\"phi3\",\"head_dim\":128", false},
    {"Phi-4 mini", "\"model_type\":\"phi3\",\"partial_rotary_factor\":0.75", true},
    {"GLM-4", "\"model_type\":\"glm\"", true},
    {"rotary positions everywhere", "\"model_type\":\"glm\",\"partial_rotary_factor\":1.0", false},
    {"Pythia", "\"model_type\":\"gpt_neox\",\"rotary_pct\":0.25", true},
    {"a key of newer files",
     "\"model_type\":\"stablelm\",\"rope_parameters\":{\"partial_rotary_factor\":1.0}", false},
    {"Gemma 3 4B: pictures", "\"model_type\":\"gemma3\",\"head_dim\":256", true},
    {"Gemma 3 1B: text alone", "\"model_type\":\"gemma3_text\",\"head_dim\":256", false},
    {"gpt-oss: sinks",
     "\"model_type\":\"gpt_oss\",\"num_local_experts\":32,\"num_experts_per_tok\":4", true},
};

START_TEST(attention_is_special_that_is_not_llamas)
{
    ck_assert_msg(model_of(2, attentions[_i].config).special_attention == attentions[_i].special,
                  "%s", attentions[_i].what);
}
END_TEST

/* Windows by the configurations' own words, of models with 26 layers: every second, every sixth
 * (26 - 4) or each one has a window; Qwen's from max_window_layers on, where it uses them. */
static const struct {
    const char *what, *config;
    uint32_t window, layers;
} windows[] = {
    {"none", "\"model_type\":\"llama\"", 0, 0},
    {"null", "\"model_type\":\"mistral\",\"sliding_window\":null", 0, 0},
    {"Mistral 7B v0.1: all", "\"model_type\":\"mistral\",\"sliding_window\":4096", 4096, 26},
    {"Phi-3 mini: all", "\"model_type\":\"phi3\",\"sliding_window\":2047", 2047, 26},
    {"Gemma 2", "\"model_type\":\"gemma2\",\"sliding_window\":4096", 4096, 13},
    {"Gemma 3", "\"model_type\":\"gemma3_text\",\"sliding_window\":512", 512, 22},
    {"its pattern is stated",
     "\"model_type\":\"gemma3_text\",\"sliding_window\":512,\"sliding_window_pattern\":3", 512, 18},
    {"the layers are listed",
     "\"model_type\":\"gemma3_text\",\"sliding_window\":512,\"layer_types\":[\"sliding_attention\","
     "\"full_attention\",\"sliding_attention\",\"sliding_attention\"]",
     512, 3},
    {"listed, and all see everything",
     "\"model_type\":\"smollm3\",\"sliding_window\":512,\"layer_types\":[\"full_attention\"]", 0,
     0},
    {"gpt-oss",
     "\"model_type\":\"gpt_oss\",\"num_local_experts\":32,\"num_experts_per_tok\":4,"
     "\"sliding_window\":128",
     128, 13},
    {"Qwen2.5: not used",
     "\"model_type\":\"qwen2\",\"sliding_window\":32768,\"use_sliding_window\":false,"
     "\"max_window_layers\":20",
     0, 0},
    {"Qwen: not said to be used", "\"model_type\":\"qwen3\",\"sliding_window\":4096", 0, 0},
    {"Qwen: used from layer 20 on",
     "\"model_type\":\"qwen2\",\"sliding_window\":4096,\"use_sliding_window\":true,"
     "\"max_window_layers\":20",
     4096, 6},
    {"Qwen: used behind the last layer",
     "\"model_type\":\"qwen2\",\"sliding_window\":4096,\"use_sliding_window\":true,"
     "\"max_window_layers\":28",
     0, 0},
};

START_TEST(windows_are_those_of_the_configuration)
{
    struct llm m = model_of(26, windows[_i].config);
    ck_assert_msg(m.sliding_window == windows[_i].window && m.sliding_layers == windows[_i].layers,
                  "%s: %u tokens in %u layers", windows[_i].what, m.sliding_window,
                  m.sliding_layers);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(attention_is_special_that_is_not_llamas, sizeof attentions / sizeof attentions[0]),
    LOOP(windows_are_those_of_the_configuration, sizeof windows / sizeof windows[0]),
};
SUITE_MAIN("llm_hf_attention", suite)
