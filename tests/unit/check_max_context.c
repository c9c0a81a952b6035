/* The longest context of a model: what config.json says of it, and what a run says of longer
 * requests. */
#include "hwmodels/llm_hf.h"

#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/suite.h"

/* Positions by hand: scaled by the factor where the file's number is that before scaling, as vLLM
 * derives its longest context. Llama 3 and LongRoPE state the scaled number. */
static const struct {
    const char *keys;
    uint32_t most;
} configs[] = {
    {"\"model_type\":\"llama\"", 0},
    {"\"model_type\":\"llama\",\"max_position_embeddings\":4096", 4096},
    {"\"model_type\":\"llama\",\"max_position_embeddings\":4096,\"rope_scaling\":null", 4096},
    {"\"model_type\":\"llama\",\"max_position_embeddings\":4096,"
     "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}",
     16384},
    {"\"model_type\":\"llama\",\"max_position_embeddings\":131072,"
     "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":32.0,"
     "\"original_max_position_embeddings\":8192}",
     131072},
    {"\"model_type\":\"phi3\",\"max_position_embeddings\":131072,"
     "\"rope_scaling\":{\"type\":\"longrope\"}",
     131072},
    {"\"model_type\":\"qwen3\",\"max_position_embeddings\":40960,"
     "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
     "\"original_max_position_embeddings\":32768}",
     131072},
    {"\"model_type\":\"mistral\",\"max_position_embeddings\":32768,"
     "\"rope_parameters\":{\"rope_type\":\"default\",\"factor\":8.0}",
     32768},
};

START_TEST(a_configuration_states_the_longest_context)
{
    struct err e = ERR_INIT;
    struct llm m = {.max_context = 1};
    OWNED char *config =
        xformat("{\"hidden_size\":1024,\"num_attention_heads\":16,\"num_hidden_layers\":2,"
                "\"vocab_size\":1000,\"intermediate_size\":512,\"num_key_value_heads\":2,%s}",
                configs[_i].keys);
    SCOPED(json_drop) cJSON *root = cJSON_Parse(config);
    SCOPED(json_drop) cJSON *tree = llm_hf_tree(root, "config.json", NULL, 0, &e);
    ck_assert_msg(tree != NULL && llm_parse(tree, "tree", &m, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    ck_assert_uint_eq(m.max_context, configs[_i].most);
}
END_TEST

/* Llama 2 was made for 4096 tokens. 4000 and 96 are so many, and the others one more or 906. */
static const struct {
    const char *rows, *said;
} loads[] = {
    {"0,0,0,0,,reactive,4000,96,0\n", NULL},
    {"0,0,0,0,,reactive,4000,97,0\n", "1 request is longer than the context"},
    {"0,0,0,0,,reactive,4000,96,0\n1,1,0,0,,proactive,4096,1,0\n2,2,0,1,,reactive,5000,2,0\n",
     "2 requests are longer than the context that the model was made for (4096 tokens)"},
};

START_TEST(a_run_counts_requests_beyond_it)
{
    folder_enter();
    OWNED char *trace = xformat("request_id,session_id,turn,arrival_s,gap_s,class,input_tokens,"
                                "output_tokens,prefix_tokens\n%s",
                                loads[_i].rows);
    folder_put("t.csv", trace);
    SCOPED(said_fini)
    struct said s = COMMANDED(cmd_run, "--soc", "core-ultra-7-258v", "--llm", "llama-2-7b",
                              "--policy", "fcfs", "--trace", "t.csv");
    folder_leave();
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    if (loads[_i].said != NULL) {
        ck_assert_msg(strstr(s.out, loads[_i].said) != NULL, "%s", s.out);
    } else {
        ck_assert_ptr_null(strstr(s.out, "longer than the context"));
    }
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(a_configuration_states_the_longest_context, sizeof configs / sizeof configs[0]),
    LOOP(a_run_counts_requests_beyond_it, sizeof loads / sizeof loads[0]),
};
SUITE_MAIN("max_context", suite)
