/* agent-xpu-v2 with verified speculation as its decode back end, to the nanosecond. elastic=off and
 * no warm-up, so prompts use the iGPU for attention and head only. One layer takes these ms:
 *
 *   NPU    QKV 4 and FFN 8, for any rows up to a chunk
 *   iGPU   QKV 1, attention 3, FFN 2, head 1, a fused decode layer 5
 *
 * A prompt of 256 takes 4 + 3 + 8 + 1 = 16, and a plain decode step 5 + 1 = 6. A verification takes
 * 1 + 3 + 2 + 1 = 7 on the iGPU, and 4 + 3 + 8 + 1 = 16 through the NPU. Drafts have three tokens,
 * of which two are right, so a verification emits three. Drafting takes 2. */
#include <stdio.h>
#include <string.h>

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

extern const struct policy_ops policy_agent_xpu_v2_ops;

static struct scenario sc;

static uint32_t draft(const void *params, uint64_t seed, const struct request *r,
                      const struct trace_text *text, uint64_t step)
{
    (void)text;
    (void)seed;
    (void)step;
    return r->cls == RT ? *(const uint32_t *)params : 0;
}

static uint32_t accept(const void *params, uint64_t seed, const struct request *r,
                       const struct trace_text *text, uint64_t step, uint32_t drafted)
{
    (void)text;
    (void)params;
    (void)seed;
    (void)r;
    (void)step;
    return drafted < 2 ? drafted : 2;
}

static uint32_t length;

static void setup(void)
{
    scenario_init(&sc);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 5);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 5);
    scenario_cost(&sc, IGPU, OP_QKV, 1, 0, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 2, 0, 5);
    scenario_cost(&sc, IGPU, OP_MHA, 3, 0, 5);
    scenario_cost(&sc, IGPU, OP_HEAD, 1, 0, 5);
    scenario_cost(&sc, IGPU, OP_LAYER, 5, 0, 5);
    length = 3;
    sc.setup.draft = draft;
    sc.setup.accept = accept;
    sc.setup.speculation_params = &length;
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const char *params, const struct scenario_request *q, uint32_t n)
{
    char all[256];
    (void)snprintf(all, sizeof all, "elastic=off,warmup=0,%s%s",
                   strstr(params, "draft_ms") == NULL ? "draft_ms=2," : "", params);
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, all);
    scenario_check(&sc, q, n);
}

static const struct scenario_request one[] = {{RT, 0, 256, 7, 0, 0}};

START_TEST(without_the_parameter_drafts_are_left_alone)
{
    /* The prompt takes until 16, and then come six steps of 6 ms. */
    run("speculate=none", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 22, 28, 34, 40, 46, 52});
}
END_TEST

START_TEST(the_igpu_verifies_three_drafted_tokens_in_one_pass)
{
    /* The prompt takes until 16, drafting until 18 and verification until 25: three tokens. The
     * next three are drafted until 27 and verified until 34. */
    run("speculate=igpu", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 25, 25, 25, 34, 34, 34});
}
END_TEST

/* Drafting takes 20 ms: at most four tokens in 27 ms, where a plain step gives one in 6. The first
 * batch finds that out when its drafts are made, at 36, and the others want none. If drafts cost
 * nothing but their verification, each batch would wait: 43, 43, 43, 70. */
START_TEST(drafts_that_take_longer_than_they_save_are_not_made)
{
    run("speculate=igpu,draft_ms=20", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 42, 48, 54, 60, 66, 72});
}
END_TEST

START_TEST(an_idle_npu_verifies_with_attention_and_head_on_the_igpu)
{
    /* The prompt takes until 16 and drafting until 18. QKV on the NPU takes until 22, attention
     * until 25, FFN on the NPU until 33, and the head until 34. The next three are drafted until 36
     * and verified until 52. */
    run("speculate=npu", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 34, 34, 34, 52, 52, 52});
}
END_TEST

START_TEST(a_prompt_takes_the_npu_and_the_verification_goes_on_on_the_igpu)
{
    /* RT1 comes at 20, while the NPU runs RT0's QKV (18 to 22). At 22 the prompt gets the NPU (to
     * 26), and the verification has its attention (to 25) and its FFN (to 27) on the iGPU. The
     * prompt wants the iGPU from 26 on, and has it from 27 to 30. Then the verification's head
     * runs, to 31. */
    static const struct scenario_request both[] = {{RT, 0, 256, 4, 0, 0},
                                                   {RT, 0.020, 256, 1, 0, 0}};
    run("speculate=npu", both, 2);
    scenario_tokens_at(&sc, 0, 4, (const double[]){16, 31, 31, 31});
    /* RT1 has attention to 30, FFN on the NPU to 38, and the head to 39. */
    scenario_tokens_at(&sc, 1, 1, (const double[]){39});
}
END_TEST

static uint32_t decode_launches;

static void count_decode_launch(void *self, int64_t now_ns, const struct launch *l)
{
    (void)self;
    (void)now_ns;
    decode_launches += l->pass->segments[0].role == SEGMENT_DECODE;
    ck_assert(l->pass->segments[0].role != SEGMENT_DECODE || l->op_end == l->pass->n_ops);
}

/* There is room for 262 tokens, and 259 are there at 34. A verification wants four more. So the
 * batch decodes as any other: in one launch of the iGPU, and not an operator at a time as next to
 * the NPU. Drafting takes until 36, and a token comes at 42. Drafting takes until 44, and another
 * comes at 50. */
START_TEST(where_drafts_find_no_room_the_igpu_decodes)
{
    static const struct scenario_request q[] = {{RT, 0, 256, 6, 0, 0}};
    sc.setup.kv_block_tokens = 1;
    sc.setup.kv_capacity_tokens = 262;
    scenario_policy(&sc, &policy_agent_xpu_v2_ops,
                    _i == 0 ? "elastic=off,warmup=0,draft_ms=2,speculate=npu"
                            : "elastic=off,warmup=0,draft_ms=2,speculate=igpu");
    scenario_trace(&sc, q, 1);
    decode_launches = 0;
    sc.observer.launch_submitted = count_decode_launch;
    sc.trace.rows[0].max_output_tokens = 99; /* the policy may not know of six */
    ck_assert_int_eq(scenario_again(&sc), 0);
    scenario_tokens_at(&sc, 0, 6,
                       _i == 0 ? (const double[]){16, 34, 34, 34, 42, 50}
                               : (const double[]){16, 25, 25, 25, 33, 41});
    ck_assert_uint_eq(decode_launches, 2);
}
END_TEST

static uint32_t every_other_step(const void *params, uint64_t seed, const struct request *r,
                                 const struct trace_text *text, uint64_t step)
{
    return step % 2 == 1 ? draft(params, seed, r, text, step) : 0;
}

START_TEST(drafting_takes_its_time_after_a_step_without_a_draft)
{
    /* The prompt takes until 16, a plain step until 22, drafting until 24 and verification until
     * 31. Then that happens again. */
    static const struct scenario_request q[] = {{RT, 0, 256, 9, 0, 0}};
    sc.setup.draft = every_other_step;
    run("speculate=igpu", q, 1);
    scenario_tokens_at(&sc, 0, 9, (const double[]){16, 22, 31, 31, 31, 37, 46, 46, 46});
}
END_TEST

static uint32_t of_the_first(const void *params, uint64_t seed, const struct request *r,
                             const struct trace_text *text, uint64_t step)
{
    return r->id == 0 ? draft(params, seed, r, text, step) : 0;
}

START_TEST(drafting_takes_its_time_where_the_first_who_waits_has_no_draft)
{
    /* RT0's prompt takes until 16, drafting until 18, and QKV and attention until 22. RT1 has QKV
     * on the NPU until 20, attention 22 to 25, and FFN on the NPU until 33. RT0 has FFN and head
     * until 28, drafting until 30, and QKV and attention until 34. RT1's head runs to 35, and RT0's
     * FFN and head to 38. Now RT1 waits longer, and RT0's draft takes from 38 to 40. Both are in a
     * pass of 7 ms. */
    static const struct scenario_request q[] = {{RT, 0, 256, 10, 0, 0}, {RT, 0, 256, 2, 0, 0}};
    sc.setup.draft = of_the_first;
    run("speculate=igpu", q, 2);
    scenario_tokens_at(&sc, 0, 10, (const double[]){16, 28, 28, 28, 38, 38, 38, 47, 47, 47});
    scenario_tokens_at(&sc, 1, 2, (const double[]){35, 47});
}
END_TEST

START_TEST(who_has_no_draft_decodes_along)
{
    /* RT0's drafter offers three tokens, and BE1's none. In a pass with both RT0 emits three tokens
     * and BE1 one. So the instants that BE1 shares with RT0 are a multiple of three. */
    static const struct scenario_request both[] = {{RT, 0, 256, 10, 0, 0}, {BE, 0, 256, 3, 0, 0}};
    run("speculate=igpu", both, 2);
    uint32_t together = 0;
    for (uint32_t i = 0; i < sc.records[1].tokens_n; i++) {
        for (uint32_t k = 0; k < sc.records[0].tokens_n; k++) {
            together += sc.records[1].token_ns[i] == sc.records[0].token_ns[k];
        }
    }
    ck_assert_uint_eq(together % 3, 0); /* each shared pass gave RT0 three tokens */
    ck_assert_uint_gt(together, 0);
    ck_assert_uint_eq(sc.records[0].tokens_n, 10);
    ck_assert_uint_eq(sc.records[1].tokens_n, 3);
}
END_TEST

START_TEST(drafts_that_never_pay_are_not_verified)
{
    /* Rows cost 20 ms each on the iGPU's token-level ops. Three more rows are worth 1.16 more
     * tokens, and cost ten times the step. The first batch waits for its draft (16 to 18). When no
     * length pays, no more drafts are made. */
    scenario_cost(&sc, IGPU, OP_QKV, 1, 20, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 2, 20, 5);
    run("speculate=igpu", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 24, 30, 36, 42, 48, 54});
}
END_TEST

START_TEST(a_batch_that_wants_drafts_again_waits_for_them)
{
    /* Costs are those of the test above. 31 batches want no draft, and end at 24, 30, .. 204. The
     * 32nd tries one token all the same: drafting takes until 206, and then two rows take 41 + 3 +
     * 42 + 1 ms. */
    static const struct scenario_request q[] = {{RT, 0, 256, 34, 0, 0}};
    scenario_cost(&sc, IGPU, OP_QKV, 1, 20, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 2, 20, 5);
    run("speculate=igpu", q, 1);
    ck_assert_int_eq(sc.records[0].token_ns[31], MS(204));
    ck_assert_int_eq(sc.records[0].token_ns[32], MS(293));
    ck_assert_int_eq(sc.records[0].token_ns[33], MS(293));
}
END_TEST

/* ---- a model of the run drafts ---- */

static struct two_models two;

/* A pass of the draft model takes 0.1 ms for attention and 1 ns for each of its other ops. */
static void setup_two(void)
{
    setup();
    two_models_init(&sc, &two);
    scenario_cost(&two.other, -1, OP_QKV, 0, 0, 0);
    scenario_cost(&two.other, -1, OP_FFN, 0, 0, 0);
    scenario_cost(&two.other, -1, OP_HEAD, 0, 0, 0);
    scenario_cost(&two.other, -1, OP_MHA, 0.1, 0, 0);
    sc.setup.draft_model = 1;
}

static void teardown_two(void)
{
    two_models_fini(&sc);
}

static void run_two(const char *params, const struct scenario_request *q, uint32_t n)
{
    char all[256];
    (void)snprintf(all, sizeof all, "elastic=off,warmup=0,drafter=model,%s", params);
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, all);
    ck_assert_msg(two_models_run(&sc, q, (const uint8_t[]){0, 0, 0}, NULL, n, true) == 0, "%s",
                  sc.result.message);
    ck_assert(sc.result.audit.clean);
}

#define DRAFT_NS (MS(0.1) + 3)

/* Returns the rows of the drafting passes, in order, as digits. */
static const char *drafted_rows(void)
{
    static char text[64];
    size_t n = 0;
    for (uint32_t i = 0; i < sc.n_kernels && n + 1 < sizeof text; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->op == OP_MHA && k->end_ns - k->begin_ns == MS(0.1)) {
            text[n++] = (char)('0' + k->rows % 10);
        }
    }
    text[n] = '\0';
    return text;
}

/* The prompt takes until 16 ms. Three passes draft three tokens. The first of them reads the prompt
 * and the first token, 257 rows, and each of the others the draft before. A verification of 7 ms
 * emits three tokens: two drafts, both of which the draft model has read, and a new one, which is
 * one row of its next pass. Drafting waits for no host. At 0.1 ms a token three are worth it: 2.16
 * tokens in 7.3 ms against 1.88 in 7.2 and 1 in 6. */
START_TEST(a_model_of_the_run_drafts_in_passes_of_its_own)
{
    run_two("speculate=igpu", one, 1);
    int64_t first = MS(16) + 3 * DRAFT_NS + MS(7);
    int64_t second = first + 3 * DRAFT_NS + MS(7);
    ck_assert_uint_eq(sc.records[0].tokens_n, 7);
    for (uint32_t i = 0; i < 7; i++) {
        ck_assert_int_eq(sc.records[0].token_ns[i], i == 0 ? MS(16) : i < 4 ? first : second);
    }
    ck_assert_str_eq(drafted_rows(), "711111");
}
END_TEST

/* On the NPU a verification takes 16 ms, and its drafts come from the iGPU. */
START_TEST(drafts_of_a_model_are_verified_on_the_npu_too)
{
    run_two("speculate=npu", one, 1);
    ck_assert_int_eq(sc.records[0].token_ns[1], MS(16) + 3 * DRAFT_NS + MS(16));
    ck_assert_int_eq(sc.records[0].token_ns[6], MS(16) + 2 * (3 * DRAFT_NS + MS(16)));
}
END_TEST

/* Two sequences draft in the same passes. Each pass has rows of both, and all three tokens of both
 * come from one verification. RT1's prompt is done while RT0 decodes. From the first batch with
 * both on they stay together, since both end with their 40 tokens. */
START_TEST(sequences_of_a_batch_draft_together)
{
    static const struct scenario_request both[] = {{RT, 0, 256, 40, 0, 0}, {RT, 0, 256, 40, 0, 0}};
    run_two("speculate=igpu", both, 2);
    uint32_t together = 0;
    for (uint32_t i = 1; i < 40; i++) {
        for (uint32_t k = 1; k < 40; k++) {
            together += sc.records[1].token_ns[i] == sc.records[0].token_ns[k];
        }
    }
    ck_assert_uint_eq(together % 9, 0); /* three tokens of each, in every pass of both */
    ck_assert_uint_ge(together, 9 * 8);
}
END_TEST

/* BE2 has the shorter prompt and is in the batch of RT0 first, which takes one of them. No drafts
 * are made for it, so passes that draft for RT0 go without it. It is in the batch all the same, and
 * stays until its end when BE1 has come (B.7), although BE1 is the older request. */
START_TEST(who_lacks_no_draft_stays_in_the_batch)
{
    static const struct scenario_request q[] = {
        {RT, 0, 256, 90, 0, 0}, {BE, 0, 400, 5, 0, 0}, {BE, 0, 300, 10, 0, 0}};
    run_two("speculate=igpu,b_rf=2,shortest=all", q, 3);
    ck_assert_int_lt(sc.records[1].first_token_ns, sc.records[2].finish_ns);
    ck_assert_int_gt(sc.records[1].token_ns[1], sc.records[2].finish_ns);
    ck_assert_int_lt(sc.records[1].finish_ns, sc.records[0].finish_ns);
}
END_TEST

START_TEST(a_drafting_model_must_be_there)
{
    sc.setup.draft_model = 0;
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, "speculate=igpu,drafter=model");
    ck_assert_int_ne(two_models_run(&sc, one, (const uint8_t[]){0}, NULL, 1, false), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "--llm draft=M"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(without_the_parameter_drafts_are_left_alone),
    TEST(the_igpu_verifies_three_drafted_tokens_in_one_pass),
    TEST(drafts_that_take_longer_than_they_save_are_not_made),
    TEST(an_idle_npu_verifies_with_attention_and_head_on_the_igpu),
    TEST(a_prompt_takes_the_npu_and_the_verification_goes_on_on_the_igpu),
    LOOP(where_drafts_find_no_room_the_igpu_decodes, 2),
    TEST(drafting_takes_its_time_after_a_step_without_a_draft),
    TEST(drafting_takes_its_time_where_the_first_who_waits_has_no_draft),
    TEST(who_has_no_draft_decodes_along),
    TEST(drafts_that_never_pay_are_not_verified),
    TEST(a_batch_that_wants_drafts_again_waits_for_them),
    CASE("a model drafts", .setup = setup_two, .teardown = teardown_two),
    TEST(a_model_of_the_run_drafts_in_passes_of_its_own),
    TEST(drafts_of_a_model_are_verified_on_the_npu_too),
    TEST(sequences_of_a_batch_draft_together),
    TEST(who_lacks_no_draft_stays_in_the_batch),
    TEST(a_drafting_model_must_be_there),
};
SUITE_MAIN("axpu-speculate", suite)
