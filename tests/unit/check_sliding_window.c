/* Layers with a sliding window: what they leave out, counted key by key, and what a run gains by
 * it. */
#include "experiments/run/config.h"
#include "experiments/run/price.h"
#include "hwmodels/soc.h"
#include "sim/base/json.h"
#include "tests/helpers/commanded.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

/* Every (row, key) pair of `n` rows behind `first` tokens, one after the other. A key counts as far
 * when no row sees it. */
START_TEST(far_pairs_and_keys_are_those_that_nobody_sees)
{
    static const uint32_t windows[] = {1, 2, 5, 8, 40};
    for (int i = 0; i < 5; i++) {
        for (uint32_t first = 0; first < 14; first++) {
            for (uint32_t n = 1; n < 14; n++) {
                uint64_t pairs = 0;
                uint64_t keys = 0;
                for (uint32_t key = 0; key < first + n; key++) {
                    bool seen = false;
                    for (uint32_t row = first > key ? first : key; row < first + n; row++) {
                        bool near = row - key < windows[i];
                        pairs += !near;
                        seen = seen || near;
                    }
                    keys += !seen;
                }
                struct work_shape w = {0};
                work_shape_add(&w, windows[i], first, n);
                ck_assert_uint_eq(w.far_pairs, pairs);
                ck_assert_uint_eq(w.far_keys, keys);
            }
        }
    }
    struct work_shape none = {0};
    work_shape_add(&none, 0, 1000, 1000);
    ck_assert(none.far_pairs == 0 && none.far_keys == 0);
}
END_TEST

/* Gemma 3 1B has 22 of 26 layers with a window of 512, four query heads and one KV head of 256.
 * A row with 2512 keys leaves out 2000 in those layers, so a layer on average 2000 x 22/26. A key
 * is 2 x 256 elements, and a pair 4 x 4 x 256 flop. A prompt of 1000 rows has 500500 pairs; 488
 * rows are behind the window, by 1 to 488 keys. */
START_TEST(a_kernel_leaves_out_the_share_of_layers_that_have_the_window)
{
    struct model b;
    model_init(&b, "gemma-3-1b", "extended");
    ck_assert(b.llm.sliding_window == 512 && b.llm.sliding_layers == 22 && b.llm.n_layers == 26);
    struct soc_runtime own = *b.r.runtime[MODEL_IGPU];
    double key_bytes = 2.0 * 256.0 * b.llm.kv_bytes_per_element;
    struct work_shape decode = price_decode_shape(&b.llm, 2511, 3);
    struct work_shape prompt = price_prefill_shape(&b.llm, 1000, 1);
    ck_assert_uint_eq(decode.far_keys, 3 * 2000);
    ck_assert_uint_eq(prompt.far_pairs, 488 * 489 / 2);
    ck_assert_uint_eq(prompt.far_keys, 0);
    own.sliding_window = false;
    roofline_set_runtime(&b.r, MODEL_IGPU, &own);
    struct kernel_cost all_decode = model_cost(&b, MODEL_IGPU, OP_MHA, &decode, 3, 3);
    struct kernel_cost all_prompt = model_cost(&b, MODEL_IGPU, OP_MHA, &prompt, 1000, 1000);
    own.sliding_window = true;
    roofline_set_runtime(&b.r, MODEL_IGPU, &own);
    struct kernel_cost c = model_cost(&b, MODEL_IGPU, OP_MHA, &decode, 3, 3);
    model_near(all_decode.bytes - c.bytes, 6000.0 * 22.0 / 26.0 * key_bytes, 1e-9);
    model_near(all_decode.flop - c.flop, 6000.0 * 22.0 / 26.0 * 4096.0, 1e-9);
    ck_assert_int_lt(c.t_ns, all_decode.t_ns);
    c = model_cost(&b, MODEL_IGPU, OP_MHA, &prompt, 1000, 1000);
    model_near(all_prompt.flop - c.flop, 488.0 * 489.0 / 2.0 * 22.0 / 26.0 * 4096.0, 1e-9);
    ck_assert_double_eq(c.bytes, all_prompt.bytes);
    /* A model without a window has nothing to leave out. */
    struct model plain;
    model_init(&plain, "llama-3.2-3b", "extended");
    struct soc_runtime sliding = *plain.r.runtime[MODEL_IGPU];
    sliding.sliding_window = true;
    int64_t before = model_cost(&plain, MODEL_IGPU, OP_MHA, &decode, 3, 3).t_ns;
    roofline_set_runtime(&plain.r, MODEL_IGPU, &sliding);
    ck_assert_int_eq(model_cost(&plain, MODEL_IGPU, OP_MHA, &decode, 3, 3).t_ns, before);
}
END_TEST

/* With `decode_window` the same decode leaves out its keys, and the prompt nothing. */
START_TEST(a_runtime_may_leave_them_out_in_decodes_alone)
{
    struct model b;
    model_init(&b, "gemma-3-1b", "extended");
    struct soc_runtime own = *b.r.runtime[MODEL_IGPU];
    struct work_shape decode = price_decode_shape(&b.llm, 2511, 3);
    struct work_shape prompt = price_prefill_shape(&b.llm, 1000, 1);
    struct kernel_cost cost[2][3];
    for (int k = 0; k < 3; k++) {
        own.sliding_window = k == 1;
        own.decode_window = k == 2;
        roofline_set_runtime(&b.r, MODEL_IGPU, &own);
        cost[0][k] = model_cost(&b, MODEL_IGPU, OP_MHA, &decode, 3, 3);
        cost[1][k] = model_cost(&b, MODEL_IGPU, OP_MHA, &prompt, 1000, 1000);
    }
    ck_assert_mem_eq(&cost[0][2], &cost[0][1], sizeof cost[0][1]);
    ck_assert_mem_eq(&cost[1][2], &cost[1][0], sizeof cost[1][0]);
    ck_assert_int_lt(cost[1][1].t_ns, cost[1][0].t_ns);
}
END_TEST

/* An engine reads 8 heads at once. Gemma 3 1B has one of 256, so 7 heads' time is lost on each key:
 * 3584 elements in all 26 layers, of which 22 leave out 2000 of 2512 keys of a decode. Qwen3 8B has
 * 8 heads, and loses none. At 1 GB/s a byte takes a nanosecond, and nothing else takes time. */
START_TEST(columns_without_a_head_wait)
{
    static const char *const models[] = {"gemma-3-1b", "qwen3-8b"};
    for (int i = 0; i < 2; i++) {
        struct model b;
        model_init(&b, models[i], "extended");
        struct soc_runtime own = *b.r.runtime[MODEL_IGPU];
        own.many = own.one = (struct soc_curve){1e18, 1e9, 0.0};
        own.kv_gather_frac = own.decode_stretch_frac = own.attention_launches = 0.0;
        own.enqueue_s = own.prompt_enqueue_s = 0.0;
        own.decode_window = true;
        own.sliding_window = false;
        struct work_shape decode = price_decode_shape(&b.llm, 2511, 1);
        int64_t ns[2];
        for (int k = 0; k < 2; k++) {
            own.kv_columns = k == 0 ? 0 : 8;
            roofline_set_runtime(&b.r, MODEL_IGPU, &own);
            ns[k] = model_cost(&b, MODEL_IGPU, OP_MHA, &decode, 1, 1).t_ns;
        }
        double keys = 2512.0 - 2000.0 * 22.0 / 26.0;
        double lost = i == 0 ? keys * 3584.0 * b.llm.kv_bytes_per_element : 0.0; /* bytes: ns */
        ck_assert_double_le(fabs((double)(ns[1] - ns[0]) - lost), 1.0);
    }
}
END_TEST

/* Sum of the E2E times of a run, s. */
static double e2e_s(const char *set)
{
    SCOPED(said_fini)
    struct said s =
        COMMANDED(cmd_run, "--soc", "core-ultra-5-125h", "--llm", "gemma-3-1b", "--policy",
                  "orca:device=igpu", "--trace", "t.csv", "--json", "-q", "--set", set);
    ck_assert_msg(s.status == EXIT_OK, "%s", s.err);
    SCOPED(json_drop) cJSON *tree = cJSON_Parse(s.out);
    const cJSON *metrics = json_member(tree, "metrics");
    return json_number(metrics, "reactive.e2e_s.mean") * json_number(metrics, "reactive.e2e_s.n");
}

/* Without windows one layer's attention takes so much longer, ns. One sequence alone has its layers
 * fused. */
static int64_t lost_ns(struct config *c, const struct work_shape *w)
{
    struct kernel_query q = {.device = MODEL_IGPU,
                             .op = w->sequences == 1 ? OP_LAYER : OP_MHA,
                             .rows = w->rows,
                             .padded_rows = w->rows,
                             .shape = w};
    struct soc_runtime own = *c->truth.runtime[MODEL_IGPU];
    const struct soc_runtime *was = c->truth.runtime[MODEL_IGPU];
    struct kernel_cost all, some;
    own.sliding_window = true;
    hwmodel_kernel(&c->truth.model, &q, &all);
    roofline_set_runtime(&c->truth, MODEL_IGPU, &own);
    hwmodel_kernel(&c->truth.model, &q, &some);
    roofline_set_runtime(&c->truth, MODEL_IGPU, was);
    return all.t_ns - some.t_ns;
}

/* Prompts below the window, whose answers cross it at different tokens: passes that repeat
 * themselves must not carry the growth of one side over to the other. E2E is shorter by exactly
 * what each pass saves, 26 layers of it. */
static const struct {
    uint32_t n, input[3];
    uint32_t output;
} loads[] = {{1, {400}, 300}, {2, {450, 500}, 100}, {3, {200, 505, 511}, 420}, {1, {512}, 60}};

START_TEST(a_run_is_shorter_by_what_its_passes_save)
{
    SCOPED(err_fini) struct err e = ERR_INIT;
    struct config c;
    struct config_options o = config_options_default();
    o.soc = "core-ultra-5-125h";
    o.llm = "gemma-3-1b";
    ck_assert_int_eq(config_load(&c, &o, &e), 0);
    SCOPED(text_fini) struct text trace = {0};
    text_string(&trace, "request_id,session_id,turn,arrival_s,gap_s,class,input_tokens,"
                        "output_tokens,prefix_tokens\n");
    for (uint32_t i = 0; i < loads[_i].n; i++) {
        text_format(&trace, "%u,%u,0,0,,reactive,%u,%u,0\n", i, i, loads[_i].input[i],
                    loads[_i].output);
    }
    int64_t lost = 0;
    for (uint32_t k = 1; k < loads[_i].output; k++) { /* the prefill has made the first token */
        struct work_shape w = {0};
        for (uint32_t i = 0; i < loads[_i].n; i++) {
            struct work_shape one = price_decode_shape(&c.llm, loads[_i].input[i] + k - 1, 1);
            w.rows++;
            w.sequences++;
            w.attn_pairs += one.attn_pairs;
            w.kv_read_tokens += one.kv_read_tokens;
            w.far_pairs += one.far_pairs;
            w.far_keys += one.far_keys;
        }
        lost += 26 * lost_ns(&c, &w);
    }
    config_fini(&c);
    ck_assert_int_gt(lost, 0);
    folder_enter();
    folder_put("t.csv", text_end(&trace));
    double all_s = e2e_s("soc.devices.igpu.runtimes.0.sliding_window=false");
    double some_s = e2e_s("soc.devices.igpu.runtimes.0.sliding_window=true");
    folder_leave();
    ck_assert_double_eq_tol(all_s - some_s, loads[_i].n * 1e-9 * (double)lost, 1e-10);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(far_pairs_and_keys_are_those_that_nobody_sees),
    TEST(a_kernel_leaves_out_the_share_of_layers_that_have_the_window),
    TEST(a_runtime_may_leave_them_out_in_decodes_alone),
    TEST(columns_without_a_head_wait),
    LOOP(a_run_is_shorter_by_what_its_passes_save, sizeof loads / sizeof loads[0]),
};
SUITE_MAIN("sliding_window", suite)
