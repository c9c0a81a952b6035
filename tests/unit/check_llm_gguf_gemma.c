/* GGUF files of Gemma 3n and 4 are read as LLM files. */
#include "tests/helpers/gguf_file.h"
#include "tests/helpers/suite.h"

/* Three layers have inputs of 32 for a token each, of 4 bits. The last has no products for keys,
 * and an FFN twice as wide. Two have a window. */
START_TEST(inputs_of_each_layer_are_a_table)
{
    static const uint32_t window[] = {1, 0, 1}, wide[] = {320, 320, 640};
    begin("gemma4", 4, 1);
    key_list("gemma4.attention.sliding_window_pattern", window, 3);
    key_u32("gemma4.attention.sliding_window", 512);
    key_u32("gemma4.attention.shared_kv_layers", 1);
    key_u32("gemma4.attention.key_length", 128);
    key_u32("gemma4.attention.key_length_swa", 64);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    tensor("per_layer_token_embd.weight", T_Q4_0, 96, 1000, 1);
    tensor("per_layer_model_proj.weight", T_Q8_0, 256, 96, 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t head = window[i] ? 64 : 128;
        layer(i, "attn_q", T_Q8_0, 256, 4 * head);
        layer(i, "attn_output", T_Q8_0, 4 * head, 256);
        if (i < 2) {
            layer(i, "attn_k", T_Q8_0, 256, head);
            layer(i, "attn_v", T_Q8_0, 256, head);
        }
        layer(i, "ffn_gate", T_Q8_0, 256, wide[i]);
        layer(i, "ffn_up", T_Q8_0, 256, wide[i]);
        layer(i, "ffn_down", T_Q8_0, wide[i], 256);
        layer(i, "inp_gate", T_Q8_0, 256, 32);
        layer(i, "proj", T_Q8_0, 32, 256);
    }
    struct llm m = model();
    ck_assert(m.layer_embedding == 32 && m.attention.shared_kv_layers == 1);
    ck_assert(m.ffn_hidden == 320 && m.dense_layers == 1 && m.dense_ffn == 640);
    ck_assert(m.sliding_layers == 2 && m.attention.global_head_dim == 128 && m.head_dim == 64);
    ck_assert_double_eq(m.layer_embedding_bytes, 18.0 / 32);
    ck_assert_double_eq(m.head_bytes_per_weight, 34.0 / 32);
}
END_TEST

/* The last five of Gemma 3n's 25 layers do not use their products for keys. No key says so. Every
 * fifth layer has no window. There are three more streams than the hidden state. */
START_TEST(streams_are_their_products)
{
    begin("gemma3n", 4, 2);
    key_u32("gemma3n.attention.sliding_window", 512);
    tensor("token_embd.weight", T_Q8_0, 256, 1000, 1);
    tensor("per_layer_token_embd.weight", T_Q8_0, 25 * 32, 1000, 1);
    tensor("per_layer_model_proj.weight", T_Q8_0, 256, 25 * 32, 1);
    tensor("altup_proj.weight", T_Q8_0, 256, 256, 3);
    tensor("altup_unembd_proj.weight", T_Q8_0, 256, 256, 3);
    for (uint32_t i = 0; i < 25; i++) {
        plain_layer(i, T_Q8_0);
        layer(i, "inp_gate", T_Q8_0, 256, 32);
        layer(i, "proj", T_Q8_0, 32, 256);
        layer(i, "laurel_l", T_Q8_0, 256, 64);
        layer(i, "laurel_r", T_Q8_0, 64, 256);
        layer(i, "altup_router", T_F32, 256, 4);
        layer(i, "altup_correct_coef", T_F32, 4, 4);
        layer(i, "altup_predict_coef", T_F32, 4, 16);
    }
    struct llm m = model();
    ck_assert(m.layer_embedding == 32 && m.attention.shared_kv_layers == 5);
    ck_assert(m.laurel_rank == 64 && m.altup_inputs == 4 && m.dense_layers == 0);
    ck_assert(m.sliding_layers == 20 && !m.special_attention);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("llm_gguf_gemma", .setup = once, .teardown = undo),
    TEST(inputs_of_each_layer_are_a_table),
    TEST(streams_are_their_products),
};
SUITE_MAIN("llm_gguf_gemma", suite)
