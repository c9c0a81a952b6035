/* agent-xpu-v2 with verified speculation as its decode back end, to the nanosecond. elastic=off and
 * no warm-up, so prompts use the iGPU for attention and head only.
 *
 * Toy times, one layer: NPU: QKV 4 ms, FFN 8 (any rows up to a chunk). iGPU: QKV 1, attention 3,
 * FFN 2, head 1, a fused decode layer 5. A prompt of 256 takes 4 + 3 + 8 + 1 = 16 ms, a plain
 * decode step 5 + 1 = 6, a verification 1 + 3 + 2 + 1 = 7 on the iGPU and 4 + 3 + 8 + 1 = 16
 * through the NPU. Drafts have three tokens, of which two are right: a verification emits three.
 * Drafting takes 2 ms.
 */
#include <stdio.h>

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

extern const struct policy_ops policy_agent_xpu_v2_ops;

static struct scenario sc;

static uint32_t draft(const void *params, uint64_t seed, const struct request *r, uint64_t step)
{
    (void)seed;
    (void)step;
    return r->cls == RT ? *(const uint32_t *)params : 0;
}

static uint32_t accept(const void *params, uint64_t seed, const struct request *r, uint64_t step,
                       uint32_t drafted)
{
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
    (void)snprintf(all, sizeof all, "elastic=off,warmup=0,draft_ms=2,%s", params);
    scenario_policy(&sc, &policy_agent_xpu_v2_ops, all);
    scenario_check(&sc, q, n);
}

static const struct scenario_request one[] = {{RT, 0, 256, 7, 0, 0}};

START_TEST(without_the_parameter_drafts_are_left_alone)
{
    /* Prompt to 16, then six steps of 6 ms. */
    run("speculate=none", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 22, 28, 34, 40, 46, 52});
}
END_TEST

START_TEST(the_igpu_verifies_three_drafted_tokens_in_one_pass)
{
    /* Prompt to 16, drafting to 18, verification to 25: three tokens. Drafting to 27, to 34. */
    run("speculate=igpu", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 25, 25, 25, 34, 34, 34});
}
END_TEST

START_TEST(an_idle_npu_verifies_with_attention_and_head_on_the_igpu)
{
    /* Prompt to 16, drafting to 18: QKV on the NPU to 22, attention to 25, FFN on the NPU to 33,
     * head to 34. Drafting to 36, verification to 52. */
    run("speculate=npu", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 34, 34, 34, 52, 52, 52});
}
END_TEST

START_TEST(a_prompt_takes_the_npu_and_the_verification_goes_on_on_the_igpu)
{
    /* RT1 comes at 20, while the NPU runs RT0's QKV (18 to 22). At 22 the prompt has the NPU (to
     * 26) and the verification its attention on the iGPU (to 25) and its FFN (to 27). The prompt
     * wants the iGPU from 26 and has it from 27 to 30; then the verification's head, to 31. */
    static const struct scenario_request both[] = {{RT, 0, 256, 4, 0, 0},
                                                   {RT, 0.020, 256, 1, 0, 0}};
    run("speculate=npu", both, 2);
    scenario_tokens_at(&sc, 0, 4, (const double[]){16, 31, 31, 31});
    /* RT1: attention to 30, FFN on the NPU to 38, head to 39. */
    scenario_tokens_at(&sc, 1, 1, (const double[]){39});
}
END_TEST

START_TEST(who_has_no_draft_decodes_along)
{
    /* RT0's drafter offers three tokens, BE1's none. In a pass with both, RT0 emits three tokens
     * and BE1 one; whatever their times, all that BE1 shares with RT0 comes in such threes. */
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
    /* Rows cost 20 ms each on the iGPU's token-level ops: three more rows are worth 1.16 more
     * tokens, and cost ten times the step. The first batch waits for its draft (16 to 18); once no
     * length pays, nobody drafts. */
    scenario_cost(&sc, IGPU, OP_QKV, 1, 20, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 2, 20, 5);
    run("speculate=igpu", one, 1);
    scenario_tokens_at(&sc, 0, 7, (const double[]){16, 24, 30, 36, 42, 48, 54});
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(without_the_parameter_drafts_are_left_alone),
    TEST(the_igpu_verifies_three_drafted_tokens_in_one_pass),
    TEST(an_idle_npu_verifies_with_attention_and_head_on_the_igpu),
    TEST(a_prompt_takes_the_npu_and_the_verification_goes_on_on_the_igpu),
    TEST(who_has_no_draft_decodes_along),
    TEST(drafts_that_never_pay_are_not_verified),
};
SUITE_MAIN("axpu-speculate", suite)
