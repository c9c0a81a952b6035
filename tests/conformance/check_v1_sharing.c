/* These tests of agent-xpu-v1 show how proactive prefill and proactive decode share the iGPU while
 * nothing is reactive (clauses.md A.10). They also show that a batch is formed when its iteration
 * starts (A.5). The toy machine is that of check_agent_xpu_v1.c. A prompt of 64 tokens has all its
 * kernels on the iGPU: QKV 1 ms, attention 10 ms, FFN 2 ms, and the head 1 ms. */
#include "tests/conformance/agent_xpu_v1_machine.h"
#include "tests/helpers/suite.h"

static void teardown(void)
{
    scenario_fini(&sc);
}

/* There are two layers, with decode layers of 20 ms. BE0 (256) takes 4 + 10 + 8 twice and the head,
 * until 45, and its first iteration 45-86. BE1 comes at 50. */
static const struct scenario_request short_prompt[] = {{BE, 0, 256, 3, 0, 0},
                                                       {BE, 0.050, 64, 1, 0, 0}};

/* The layer that runs ends at 65. BE1 needs 2 * (1 + 10 + 2) + 1 = 27 ms in a row, until 92. Then
 * the second layer of the iteration runs, 92-112. */
START_TEST(a_prompt_enters_at_the_end_of_a_decode_kernel)
{
    machine(2, 20);
    run("", "", short_prompt, 2);
    ck_assert(at(kernel(1, IGPU, OP_QKV), 65, 66));
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(92));
    ck_assert(at(second(0, IGPU, OP_LAYER), 92, 112));
}
END_TEST

/* The iteration ends at 86. BE1 runs 86-113, before the next iteration, and not a kernel between
 * two. */
START_TEST(or_at_the_end_of_an_iteration_and_not_a_kernel_at_a_time)
{
    machine(2, 20);
    run("yield=iteration", "", short_prompt, 2);
    ck_assert(at(kernel(1, IGPU, OP_QKV), 86, 87));
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(113));
    ck_assert(at(second(0, IGPU, OP_LAYER), 65, 85));
}
END_TEST

/* Once a reactive request decodes, the iGPU is no more the primary's. RT1 decodes with BE0 from its
 * first token on, and BE2 has one kernel between two iterations (affinity `boundary`). */
START_TEST(beside_reactive_decode_it_waits_for_the_iteration)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 40, 0, 0}, {RT, 0, 256, 6, 0, 0}, {BE, 0.150, 64, 1, 0, 0}};
    machine(2, 20);
    run("", "", q, 3);
    const struct scenario_kernel *qkv = kernel(2, IGPU, OP_QKV);
    const struct scenario_kernel *mha = kernel(2, IGPU, OP_MHA);
    ck_assert(qkv != NULL && mha != NULL);
    uint32_t between = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        between += k->device == IGPU && k->request != 2 && k->begin_ns >= qkv->end_ns &&
                   k->end_ns <= mha->begin_ns;
    }
    ck_assert_uint_gt(between, 2); /* a whole iteration */
}
END_TEST

/* There is one layer. Kernels on the NPU draw 50 of 100 GB/s, attention 40 and a decode layer of 20
 * ms 15. BE0 decodes from 23 on. BE1's QKV runs 24-28. At 28 its attention would start in place of
 * the decode layer, which is asked to stop, at 43. But at 28 BE2's QKV begins on the NPU, until 44.
 * So at 43 attention would draw too much next to it (0.9), and BE0's head runs, 43-44. It is not
 * asked to stop, again and again. */
START_TEST(decode_does_not_stop_for_a_kernel_that_is_refused)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 3, 0, 0}, {BE, 0.024, 256, 1, 0, 0}, {BE, 0.024, 1024, 1, 0, 0}};
    machine(1, 20);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 50);
    scenario_cost(&sc, NPU, OP_FFN, 8, 0, 50);
    scenario_cost(&sc, IGPU, OP_MHA, 10, 0, 40);
    scenario_cost(&sc, IGPU, OP_LAYER, 20, 0, 15);
    sc.machine.devices[IGPU].submit_ns = 1; /* so that what is asked at once never begins */
    run("", "", q, 3);
    ck_assert_int_eq(kernel(2, NPU, OP_QKV)->begin_ns / 1000000, 28);
    ck_assert_int_eq(kernel(1, IGPU, OP_MHA)->begin_ns / 1000000, 44);
}
END_TEST

/* Twelve prompts come at once. Prefill on one engine and decode on the other, each first come,
 * first served, is the least that "throughput is the only objective" (8.2) must reach. */
START_TEST(proactive_work_alone_is_done_no_later_than_by_static_disaggregation)
{
    static const uint32_t prompts[] = {64, 256, 600};
    struct scenario_request q[12];
    for (int i = 0; i < 12; i++) {
        q[i] = (struct scenario_request){BE, 0, prompts[_i], 20, 0, 0};
    }
    int64_t end_ns[2] = {0};
    static const char *const policies[] = {"pd-static", "agent-xpu-v1"};
    for (int p = 0; p < 2; p++) {
        machine(2, 20);
        ck_assert_int_eq(run_policy(policies[p], "", "", q, 12), 0);
        for (int i = 0; i < 12; i++) {
            int64_t t = sc.records[i].finish_ns;
            end_ns[p] = t > end_ns[p] ? t : end_ns[p];
        }
        scenario_fini(&sc);
    }
    ck_assert_msg(end_ns[1] <= end_ns[0], "%u tokens: %.1f ms, pd-static %.1f", prompts[_i],
                  units_ms_from_ns(end_ns[1]), units_ms_from_ns(end_ns[0]));
    machine(1, 1); /* for teardown */
}
END_TEST

/* There is one layer, with decode layers of 20 ms. BE0's first iteration, 23-44, stops at 43 for
 * the attention of RT1, 43-53. RT1's FFN runs on the NPU 53-61, so the iGPU is free for 8 ms. BE0's
 * head ends its iteration, 53-54, and the next one does not fit. RT1's head ends at 62, and it
 * decodes together with BE0: 2 * (4 + 8)/256 + 10 + 1 ms. */
START_TEST(an_iteration_that_did_not_fit_is_not_begun)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 3, 0, 0}, {RT, 0.024, 256, 2, 0, 0}};
    machine(1, 20);
    run("", "", q, 2);
    ck_assert_int_eq(sc.records[1].first_token_ns, MS(62));
    ck_assert_int_eq(sc.records[1].finish_ns, MS(73.09375));
}
END_TEST

/* BE0 is ready to decode at 23, but its layer (30 of 100 GB/s) is too much next to BE1's QKV on the
 * NPU (50), 22.5-38.5. BE2 (64) comes at 24 and has the iGPU until 38. The two together draw 5, so
 * they decode from 38 on. */
START_TEST(an_iteration_that_was_refused_takes_in_who_is_ready_since)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 3, 0, 0}, {BE, 0.0225, 1024, 1, 0, 0}, {BE, 0.024, 64, 3, 0, 0}};
    machine(1, 20);
    scenario_cost(&sc, NPU, OP_QKV, 4, 0, 50);
    scenario_cost(&sc, IGPU, OP_LAYER, 20, 0, 30);
    run("", "", q, 3);
    ck_assert_int_eq(sc.records[2].first_token_ns, MS(38));
    const struct scenario_kernel *both = kernel(0, IGPU, OP_QKV);
    ck_assert(begins(both, 38) && both->rows == 2);
}
END_TEST

/* Two layers take 6 ms each in decode, and a head 9. BE0 has its token at 2 * 22 + 9 = 53, when RT1
 * comes. RT1 needs the iGPU at 73, after five chunks of QKV on the NPU. BE0's iteration would take
 * 21 ms. Its layers end in time, and the head does not, so they run 53-65, and the head later. */
START_TEST(layers_fill_a_window_in_which_the_head_does_not_end)
{
    static const struct scenario_request q[] = {{BE, 0, 256, 2, 0, 0}, {RT, 0.053, 1280, 1, 0, 0}};
    machine(2, 6);
    scenario_cost(&sc, IGPU, OP_HEAD, 9, 0, 5);
    run("elastic=false", "", q, 2);
    ck_assert(at(kernel(0, IGPU, OP_LAYER), 53, 59));
    ck_assert(at(second(0, IGPU, OP_LAYER), 59, 65));
    ck_assert(at(kernel(1, IGPU, OP_MHA), 73, 83));
    ck_assert(begins(second(0, IGPU, OP_HEAD), 83));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("sharing", .teardown = teardown),
    TEST(a_prompt_enters_at_the_end_of_a_decode_kernel),
    TEST(or_at_the_end_of_an_iteration_and_not_a_kernel_at_a_time),
    TEST(beside_reactive_decode_it_waits_for_the_iteration),
    TEST(decode_does_not_stop_for_a_kernel_that_is_refused),
    TEST(an_iteration_that_did_not_fit_is_not_begun),
    TEST(layers_fill_a_window_in_which_the_head_does_not_end),
    TEST(an_iteration_that_was_refused_takes_in_who_is_ready_since),
    LOOP(proactive_work_alone_is_done_no_later_than_by_static_disaggregation, 3),
};
SUITE_MAIN("agent-xpu-v1 sharing", suite)
