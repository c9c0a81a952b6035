/* Rules of policies where they and their absence differ: beyond the second token, after service,
 * between equals, at the edge of memory. By hand; toy times: tests/helpers/rules.h: a prompt of n
 * takes 0.03 n + 2 ms (100: 5), a decode 3 ms, of n together 0.03 n + 2. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/rules.h"

#define ONE "max_batch=1"

static void teardown(void)
{
    scenario_fini(&sc);
}

static void tokens(uint32_t request, uint32_t n, const double *ms)
{
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_msg(rules_tokens_at(request, i + 1, ms), "request %u: token %u at %.6f, not %.3f",
                      request, i + 1, units_ms_from_ns(sc.records[request].token_ns[i]), ms[i]);
    }
}

static void starts(uint32_t request, double ms)
{
    ck_assert_msg(rules_starts(request, ms), "request %u starts at %.6f, not %.3f", request,
                  units_ms_from_ns(sc.records[request].start_ns), ms);
}

/* When the nth kernel of an op of a request on a device begins, from 0. */
static int64_t begins(uint32_t request, int device, enum op_kind op, uint32_t nth)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->request == request && k->device == device && k->op == op && nth-- == 0) {
            return k->begin_ns;
        }
    }
    ck_abort_msg("request %u has no such kernel", request);
    return 0;
}

/* ---- edf and llf beyond the second token ---- */

/* Two prompts, due at 100 ms, then each token 200 ms after the one before. RT0 0-5 and RT1 5-10;
 * next tokens are due at 205 and 210, so they take turns: RT0 10-13 (then due at 213), RT1 13-16
 * (216), RT0, RT1, ... Were tokens due by the first one, RT0 would run to its end. */
START_TEST(who_showed_its_last_token_first_is_next)
{
    static const char *const policies[] = {"edf", "llf"};
    static const struct scenario_request q[] = {{RT, 0, 100, 4, 0, 0}, {RT, 0, 100, 4, 0, 0}};
    rules_machine(1);
    rules_run(policies[_i], ONE ",ttft_slo_s=0.1,tbt_slo_s=0.2", "", q, 2);
    tokens(0, 4, (double[]){5, 13, 19, 25});
    tokens(1, 4, (double[]){10, 16, 22, 28});
}
END_TEST

/* RT0's token at 5 is followed by one due at 25, which takes 3 ms (or 2 and a row): laxity 22
 * or 23. RT1 (300 tokens, 11 ms) came at 1 and is due at 35: 24. RT0 has its token at 8; the next
 * is due at 28, laxity 25 or 26: RT1 8-19. By deadlines less the prompt's work only, RT1 would go
 * first. */
START_TEST(llf_counts_the_work_of_a_token_too)
{
    static const struct scenario_request q[] = {{RT, 0, 100, 3, 0, 0}, {RT, 0.001, 300, 1, 0, 0}};
    rules_machine(1);
    rules_run("llf", ONE ",ttft_slo_s=0.034,tbt_slo_s=0.02", "", q, 2);
    tokens(0, 2, (double[]){5, 8});
    starts(1, 8);
}
END_TEST

/* ---- mlfq and prema after service ---- */

/* Quanta of 4, 8, 16 ms, starving after 20 ms unserved, looked at each iteration. BE0 (prompt 5 ms:
 * level 1) is at level 2 from 11 on and served until 26. BE1 (30 tokens, 2.9 ms: level 0) came at
 * 24 and runs 26-28.9, then its tokens: BE0 has waited 2.9 ms, not since it came. */
START_TEST(mlfq_starving_begins_when_service_ends)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 20, 0, 0}, {BE, 0.024, 30, 3, 0, 0}};
    rules_machine(1);
    rules_run("mlfq", ONE ",q0_ms=4,starve_s=0.02,promote_every=1", "", q, 2);
    tokens(1, 3, (double[]){28.9, 31.9, 34.9});
}
END_TEST

/* Attention takes 0.1 ms more for each pair. BE0 (100 tokens, 10 out) has its first token at 510, n
 * decodes later 13 n + 0.05 n (n + 1) ms more: the ninth token at 617.6, the tenth at 631.5. BE1
 * (10 tokens), come at 604, needs 8 ms for its prompt and at least 4 for each of 10 tokens: more
 * than the one that BE0 is expected to need yet, less than ten of 13 ms. */
START_TEST(prema_expects_what_is_left_and_not_all_of_it)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 10, 0, 0}, {BE, 0.604, 10, 1, 0, 0}};
    rules_machine(1);
    sc.attention_ms_per_pair[IGPU] = 0.1;
    rules_run("prema", ONE ",expected_output=10", "", q, 2);
    starts(1, 631.5);
}
END_TEST

/* The same with 100 tokens expected, and priority 2. BE0 was never idle, so it has 2 tokens, the
 * band from 1 to 3, as BE1 has when it comes at 1200; at 1216.1 (46 decodes) BE0 needs 53 tokens of
 * some 18 ms, BE1 100 of 4 to 14: BE1 is next. Were service idleness, BE0 would have reached the
 * band of 3 after half its isolated time of some 1.8 s, and be the only candidate. */
START_TEST(prema_earns_nothing_by_being_served)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 90, 0, 0}, {BE, 1.2, 10, 1, 0, 0}};
    rules_machine(1);
    sc.attention_ms_per_pair[IGPU] = 0.1;
    rules_run("prema", ONE ",expected_output=100,proactive_priority=2", "", q, 2);
    starts(1, 1216.1);
}
END_TEST

/* ---- hpf: equals ---- */

/* RT0's prompt on the iGPU (below a chunk), twice 0.5 + 1 + 0.5 ms and 1: 5; then two fused layers
 * and a head: 5-7-9-10. RT1 (256,
 * a chunk) comes at 5 and has the NPU for QKV until 10 (case 0) or comes at 5.5 and has it until 7
 * (case 1). Then its attention and what is left of RT0's decoding are ready at one instant: the
 * prompt goes first, 1 ms; then they take turns as they become ready: RT0's layer. */
START_TEST(ready_at_one_instant_the_prompt_goes_before_decode)
{
    static const struct scenario_request q[2][2] = {
        {{RT, 0, 100, 9, 0, 0}, {RT, 0.005, 256, 1, 0, 0}},
        {{RT, 0, 100, 9, 0, 0}, {RT, 0.0055, 256, 1, 0, 0}}};
    rules_machine(2);
    scenario_cost(&sc, IGPU, OP_QKV, 0.5, 0, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 0.5, 0, 5);
    scenario_cost(&sc, NPU, OP_QKV, _i == 0 ? 5 : 1.5, 0, 5);
    rules_run("hpf", "inflight=1", "", q[_i], 2);
    double at = _i == 0 ? 10 : 7;
    ck_assert_int_eq(sc.records[0].token_ns[0], MS(5));
    ck_assert_int_eq(begins(1, IGPU, OP_MHA, 0), MS(at));
    ck_assert_int_eq(begins(0, IGPU, OP_LAYER, _i == 0 ? 2 : 1), MS(at + 1));
}
END_TEST

/* RT0 (100) answers at 5 and decodes: layer 5-7, head 7-8, layer 8-10. RT1 (300: a chunk on the
 * NPU, 44 rows on the iGPU) comes at 9. Its 0.44 ms of QKV go at 10, ready since 9; RT0's
 * head 10.44-11.44; a layer 11.44-13.44, asked to stop when RT1's NPU share ends at 9 + 2.56;
 * attention 13.44-14.44. Now the head is ready since 13.44 and RT1's 0.88 ms of FFN since 14.44:
 * the head goes first. */
START_TEST(of_equals_who_became_ready_first_goes_first)
{
    static const struct scenario_request q[] = {{RT, 0, 100, 9, 0, 0}, {RT, 0.009, 300, 1, 0, 0}};
    rules_machine(1);
    rules_run("hpf", "inflight=1", "", q, 2);
    tokens(0, 4, (double[]){5, 8, 11.44, 15.44});
}
END_TEST

/* Kernels handed over ahead are not taken back: BE0's whole iteration 5-8 runs although RT1 comes
 * at 5.5. RT1's prompt 8-13; then RT1 decodes alone, 3 ms a token; BE0, also ready, is of another
 * priority. */
START_TEST(an_iteration_is_of_one_priority)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 6, 0, 0}, {RT, 0.0055, 100, 3, 0, 0}};
    rules_machine(1);
    rules_run("hpf", "level=1,inflight=8", "", q, 2);
    tokens(1, 3, (double[]){13, 16, 19});
    tokens(0, 3, (double[]){5, 8, 22});
}
END_TEST

/* A device that suspends and takes nothing back: level 3 is there, and RT1, come at 5.5, has the
 * iGPU at once, inside the layer of 5-7. */
START_TEST(level_3_needs_no_level_2)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 6, 0, 0}, {RT, 0.0055, 100, 1, 0, 0}};
    rules_machine(1);
    for (int d = NPU; d <= CPU; d++) {
        sc.machine.devices[d].can_suspend = true;
        sc.machine.devices[d].can_withdraw = false;
        sc.machine.devices[d].inflight_depth = 8;
    }
    rules_run("hpf", "level=3,inflight=8", "", q, 2);
    starts(1, 5.5);
}
END_TEST

/* ---- recompute-preempt ---- */

/* BE0 and BE1 share decoding from 10 on (prompts 0-5, 5-10), BE2 waits. RT3, come at 11, kills them
 * at the end of the attention kernel, 11.02, and runs to 16.02. Then BE0, BE1 and BE2 in the order
 * in which they came: 100 prompt tokens and the one that was out again, 5.03 ms. */
START_TEST(the_killed_come_back_in_order_of_arrival_before_those_who_came_later)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 3, 0, 0},
                                                {BE, 0.0001, 100, 3, 0, 0},
                                                {BE, 0.0002, 100, 3, 0, 0},
                                                {RT, 0.011, 100, 1, 0, 0}};
    rules_machine(1);
    rules_run("recompute-preempt", "max_batch=2", "", q, 4);
    ck_assert_int_eq(sc.records[3].finish_ns, MS(16.02));
    tokens(0, 2, (double[]){5, 21.05});
    tokens(1, 2, (double[]){10, 26.08});
    ck_assert_int_gt(sc.records[2].start_ns, MS(26.08));
}
END_TEST

/* ---- co-serving ---- */

/* 20 blocks of 16 tokens. RT0 (100 tokens) holds 7, 208 tokens are free. BE1's prompt of 208 would
 * just fit, but RT0's next token is in the batch as well: BE1 waits until RT0, with its tenth
 * token, has ended. One of 207 is taken at once. */
START_TEST(co_serving_counts_what_the_batch_takes)
{
    static const char *const policies[] = {"conserve-like", "hygen-like"};
    struct scenario_request q[] = {{RT, 0, 100, 10, 0, 0}, {BE, 0.001, 208, 1, 0, 0}};
    for (uint32_t fits = 0; fits < 2; fits++) {
        rules_machine(1);
        sc.setup.kv_capacity_tokens = 320;
        q[1].input_tokens = 208 - fits;
        rules_run(policies[_i], "offline=always", "", q, 2);
        if (fits == 1) {
            starts(1, 5);
        } else {
            tokens(0, 10, (double[]){5, 8, 11, 14, 17, 20, 23, 26, 29, 32});
            starts(1, 32);
        }
        scenario_fini(&sc);
    }
    rules_machine(1);
}
END_TEST

/* ---- sarathi ---- */

/* The budget of prompts falls from 64 tokens on, that of an iteration is 4. Six prompts of 4 go
 * together, 0.03 * 24 + 2 = 2.72; then all six decode together, 0.03 * 6 + 2 = 2.18, although they
 * are more than 4: decodes are never left out. */
START_TEST(sarathi_decodes_all_whatever_the_budget)
{
    struct scenario_request q[6];
    for (int i = 0; i < 6; i++) {
        q[i] = (struct scenario_request){BE, 0, 4, 3, 0, 0};
    }
    rules_machine(1);
    rules_run("sarathi", "max_num_batched_tokens=4,dynamic_chunk=true,high_chunk=64,low_chunk=64",
              "", q, 6);
    for (uint32_t i = 0; i < 6; i++) {
        tokens(i, 3, (double[]){2.72, 4.9, 7.08});
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("policy rules");
    TCase *t = tcase_create("by hand");
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_loop_test(t, who_showed_its_last_token_first_is_next, 0, 2);
    tcase_add_test(t, llf_counts_the_work_of_a_token_too);
    tcase_add_test(t, mlfq_starving_begins_when_service_ends);
    tcase_add_test(t, prema_expects_what_is_left_and_not_all_of_it);
    tcase_add_test(t, prema_earns_nothing_by_being_served);
    tcase_add_loop_test(t, ready_at_one_instant_the_prompt_goes_before_decode, 0, 2);
    tcase_add_test(t, of_equals_who_became_ready_first_goes_first);
    tcase_add_test(t, an_iteration_is_of_one_priority);
    tcase_add_test(t, level_3_needs_no_level_2);
    tcase_add_test(t, the_killed_come_back_in_order_of_arrival_before_those_who_came_later);
    tcase_add_loop_test(t, co_serving_counts_what_the_batch_takes, 0, 2);
    tcase_add_test(t, sarathi_decodes_all_whatever_the_budget);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
