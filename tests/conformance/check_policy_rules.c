/* These rules of policies show only in special places: beyond the second token, after service,
 * between equals, at the edge of memory. Times are computed by hand from those of
 * tests/helpers/rules.h. A prompt of n takes 0.03 n + 2 ms (100: 5), a decode 3 ms, of n together
 * 0.03 n + 2. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

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

/* Returns when the nth kernel of an op of a request on a device begins, counted from 0. */
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

/* Two prompts are due at 100 ms, and then each token 200 ms after the one before. RT0 runs 0-5 and
 * RT1 5-10. Next tokens are due at 205 and 210, so they take turns: RT0 10-13 (then due at 213),
 * RT1 13-16 (216), RT0, RT1, ... If tokens were due by the first one, RT0 would run to its end. */
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

/* RT0's token at 5 is followed by one due at 25, which takes 3 ms (or 2 and a row): laxity 22 or
 * 23. RT1 (300 tokens, 11 ms) came at 1 and is due at 35: 24. RT0 has its token at 8. The next is
 * due at 28 with laxity 25 or 26, so RT1 runs 8-19. By deadlines less the prompt's work only, RT1
 * would go first. */
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

/* Quanta are 4, 8 and 16 ms, and a request starves after 20 ms unserved, looked at each iteration.
 * BE0 (prompt 5 ms: level 1) is at level 2 from 11 on and served until 26. BE1 (30 tokens, 2.9 ms:
 * level 0) came at 24, runs 26-28.9 and has its tokens. BE0 has waited 2.9 ms then, not since it
 * came. */
START_TEST(mlfq_starving_begins_when_service_ends)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 20, 0, 0}, {BE, 0.024, 30, 3, 0, 0}};
    rules_machine(1);
    rules_run("mlfq", ONE ",q0_ms=4,starve_s=0.02,promote_every=1", "", q, 2);
    tokens(1, 3, (double[]){28.9, 31.9, 34.9});
}
END_TEST

/* Attention takes 0.1 ms more for each pair. BE0 (100 tokens, 10 out) has its first token at
 * 510. n decodes later it is 13 n + 0.05 n (n + 1) ms more: the ninth token at 617.6, the tenth
 * at 631.5. BE1 (10 tokens), which comes at 604, needs 8 ms for its prompt and at least 4 for
 * each of 10 tokens. That is more than the one that BE0 is expected to need yet, and less than
 * ten of 13 ms. */
START_TEST(prema_expects_what_is_left_and_not_all_of_it)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 10, 0, 0}, {BE, 0.604, 10, 1, 0, 0}};
    rules_machine(1);
    sc.attention_ms_per_pair[IGPU] = 0.1;
    rules_run("prema", ONE ",expected_output=10", "", q, 2);
    starts(1, 631.5);
}
END_TEST

/* 100 tokens are expected here, and the priority is 2. BE0 was never idle, so it has 2 tokens, in
 * the band from 1 to 3, as BE1 has when it comes at 1200. At 1216.1 (46 decodes) BE0 needs 53
 * tokens of some 18 ms, and BE1 100 of 4 to 14, so BE1 is next. If service counted as idleness, BE0
 * would have reached the band of 3 after half its isolated time of some 1.8 s, and be the only
 * candidate. */
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

/* RT0's prompt runs on the iGPU (below a chunk), twice 0.5 + 1 + 0.5 ms and 1: 5. Two fused layers
 * and a head follow: 5-7-9-10. RT1 (256, a chunk) comes at 5 and has the NPU for QKV until 10 (case
 * 0), or comes at 5.5 and has it until 7 (case 1). Then its attention and the rest of RT0's
 * decoding are ready at one instant. The prompt goes first, 1 ms. After it they take turns as they
 * become ready, and RT0's layer is next. */
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
 * NPU, 44 rows on the iGPU) comes at 9. Its 0.44 ms of QKV run from 10, ready since 9, and RT0's
 * head 10.44-11.44. A layer runs 11.44-13.44, asked to stop when RT1's NPU share ends at 9 + 2.56,
 * and attention 13.44-14.44. Now the head is ready since 13.44 and RT1's 0.88 ms of FFN since
 * 14.44, so the head goes first. */
START_TEST(of_equals_who_became_ready_first_goes_first)
{
    static const struct scenario_request q[] = {{RT, 0, 100, 9, 0, 0}, {RT, 0.009, 300, 1, 0, 0}};
    rules_machine(1);
    rules_run("hpf", "inflight=1", "", q, 2);
    tokens(0, 4, (double[]){5, 8, 11.44, 15.44});
}
END_TEST

/* Kernels handed over ahead are not taken back, so BE0's whole iteration 5-8 runs although RT1
 * comes at 5.5. RT1's prompt runs 8-13, and then RT1 decodes alone, 3 ms a token. BE0, also ready,
 * is of another priority. */
START_TEST(an_iteration_is_of_one_priority)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 6, 0, 0}, {RT, 0.0055, 100, 3, 0, 0}};
    rules_machine(1);
    rules_run("hpf", "level=1,inflight=8", "", q, 2);
    tokens(1, 3, (double[]){13, 16, 19});
    tokens(0, 3, (double[]){5, 8, 22});
}
END_TEST

/* The device suspends and takes nothing back. Level 3 is there, and RT1, which comes at 5.5, has
 * the iGPU at once, inside the layer of 5-7. */
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

/* BE0 and BE1 share decoding from 10 on (prompts 0-5, 5-10), and BE2 waits. RT3, which comes at
 * 11, kills them at the end of the attention kernel, 11.02, and runs to 16.02. Then BE0, BE1 and
 * BE2 follow in the order in which they came, with 100 prompt tokens and the one that was out,
 * 5.03 ms. */
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

/* There are 20 blocks of 16 tokens. RT0 (100 tokens) holds 7, and 208 tokens are free. BE1's prompt
 * of 208 would just fit, but RT0's next token is in the batch as well. So BE1 waits until RT0, with
 * its tenth token, has ended. One of 207 is taken at once. */
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

/* The budget of prompts falls from 64 tokens on, and that of an iteration is 4. Six prompts of 4 go
 * together, 0.03 * 24 + 2 = 2.72. Then all six decode together, 0.03 * 6 + 2 = 2.18, although they
 * are more than 4, because decodes are never left out. */
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

/* ---- autellix-like ---- */

/* BE1 (300, 11 ms) of program 1 waits for BE0, 0-11, and runs 11-22: 11 ms of service, 11 of
 * waiting. BE2 of that program comes at 23, in queue 1, while others, which have just come, go
 * first at 22, 27 and 32. It is due at the top when both have waited beta = 2 times their service,
 * 11 + w = 22, at 34, so it starts at 37. Without the past it would be due at 45. */
START_TEST(a_programs_past_waiting_counts)
{
    struct scenario_request q[8] = {
        {BE, 0, 300, 1, 0, 0}, {BE, 0.0001, 300, 1, 0, 0}, {BE, 0.023, 100, 1, 0, 0}};
    rules_machine(1);
    for (uint32_t i = 3; i < 8; i++) {
        q[i] = (struct scenario_request){BE, 0.0065 + 0.005 * i, 100, 1, 0, 0};
    }
    q[2] = q[3]; /* arrivals stay in order: 21.5, 23, 26.5, ... */
    q[3] = (struct scenario_request){BE, 0.023, 100, 1, 0, 0};
    rules_extra(1)->client_id = 1;
    rules_extra(3)->client_id = 1;
    rules_run("autellix-like", ONE ",t0_s=0.005,beta=2", "", q, 8);
    starts(2, 22);
    starts(4, 27);
    starts(5, 32);
    starts(3, 37);
}
END_TEST

/* ---- llama-cpp ---- */

/* A micro-batch of 150 has one prompt of 100 and half of the other, never all of both. */
START_TEST(prompts_share_a_micro_batch)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0}, {BE, 0, 100, 1, 0, 0}};
    rules_machine(1);
    rules_run("llama-cpp", "n_ubatch=150", "", q, 2);
    ck_assert_uint_eq(rules_most_rows(CPU), 150);
}
END_TEST

/* There are two slots and 14 blocks. BE0 and BE1 hold 7 each, and need an eighth for token 113. The
 * one that entered last gives way, and waits before BE2 and BE3. When the other has ended, it
 * enters with BE2, and BE3 waits. */
START_TEST(who_gave_way_enters_before_those_who_came_later)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 30, 0, 0},
                                                {BE, 0, 100, 30, 0, 0},
                                                {BE, 0.001, 16, 1, 0, 0},
                                                {BE, 0.001, 16, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 224;
    rules_run("llama-cpp", "slots=2", "", q, 4);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 1);
    uint32_t gone = sc.records[0].preemptions > 0 ? 0 : 1; /* the first slot is the newest's */
    ck_assert_int_gt(sc.records[3].start_ns, sc.records[2].start_ns);
    ck_assert_int_ge(sc.records[2].start_ns, sc.records[1 - gone].finish_ns);
    int64_t again_ns = 0;
    for (uint32_t i = 0; i < sc.n_kernels && again_ns == 0; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        again_ns =
            k->op == OP_QKV && k->rows >= 100 && k->begin_ns >= sc.records[1 - gone].finish_ns
                ? k->begin_ns
                : 0;
    }
    ck_assert_int_gt(again_ns, 0);
    ck_assert_int_lt(again_ns, sc.records[3].start_ns);
}
END_TEST

/* ---- orca ---- */

/* A request may need its prompt and 1,024 tokens, in whole blocks. Two of 112 tokens fill 2,272
 * exactly, and share their first pass; with 2,256 the second waits. So it does with 100 tokens:
 * they may need 71 blocks each, and there are 141. */
START_TEST(a_reservation_that_just_fits_is_made)
{
    static const struct scenario_request all[2][2] = {
        {{BE, 0, 112, 2, 0, 0}, {BE, 0, 112, 2, 0, 0}},
        {{BE, 0, 100, 2, 0, 0}, {BE, 0, 100, 2, 0, 0}}};
    for (int i = 0; i < 3; i++) {
        const struct scenario_request *q = all[i / 2];
        rules_machine(1);
        sc.setup.kv_capacity_tokens = i == 0 ? 2272 : 2256;
        rules_run("orca", "", "", q, 2);
        ck_assert(rules_starts(1, 0) == (i == 0));
        scenario_fini(&sc);
    }
    rules_machine(1);
}
END_TEST

/* There are ten blocks, without reservation. The second prompt of 81 tokens does not fit next to 80
 * of the batch, and no pass is tried that cannot be formed. */
START_TEST(orca_counts_what_the_batch_takes)
{
    static const struct scenario_request q[] = {{BE, 0, 80, 1, 0, 0}, {BE, 0, 81, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 160;
    rules_run("orca", "reserve=false", "", q, 2);
    ck_assert_uint_eq(sc.result.counters[COUNTER_PASS_NO_MEMORY], 0);
    starts(1, 4.4);
}
END_TEST

/* ---- sarathi-hetero and hygen-like ---- */

/* There are six prompts of 4, and all of them decode together, 0.03 * 6 + 2, from the second token
 * on. */
START_TEST(hetero_decodes_all_that_decode)
{
    struct scenario_request q[6];
    for (int i = 0; i < 6; i++) {
        q[i] = (struct scenario_request){BE, 0, 4, 9, 0, 0};
    }
    rules_machine(1);
    rules_run("sarathi-hetero", "", "", q, 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_int_eq(sc.records[i].token_ns[5] - sc.records[i].token_ns[4], MS(2.18));
    }
}
END_TEST

/* A budget of 1 ms holds not even one decode of 3, so offline requests run one at a time. */
START_TEST(where_nothing_fits_the_budget_one_goes_alone)
{
    static const struct scenario_request q[] = {
        {BE, 0, 10, 4, 0, 0}, {BE, 0, 10, 4, 0, 0}, {BE, 0, 10, 4, 0, 0}};
    rules_machine(1);
    rules_run("hygen-like", "latency_budget_ms=1", "", q, 3);
    for (uint32_t i = 0; i < 12; i++) {
        for (uint32_t j = 0; j < i; j++) {
            ck_assert_int_ne(sc.records[i / 4].token_ns[i % 4], sc.records[j / 4].token_ns[j % 4]);
        }
    }
}
END_TEST

/* There are 12 blocks of 16 tokens and one seat. BE0 (96 tokens) has tokens at 4.88 and 7.88 and
 * loses its KV to RT1 (100), which answers at 7.88 + 5. No request has a prefix in the cache then.
 * So BE0, which came first, goes before BE2: 98 tokens again, 0.03 * 98 + 2. */
START_TEST(who_lost_its_kv_is_in_the_order_of_prefixes_again)
{
    static const struct scenario_request q[] = {
        {BE, 0, 96, 3, 0, 0}, {RT, 0.006, 100, 1, 0, 0}, {BE, 0.007, 40, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    rules_run("hygen-like", "max_num_seqs=1,utility=1", "", q, 3);
    tokens(0, 3, (double[]){4.88, 7.88, 17.82});
    starts(2, 17.82);
}
END_TEST

/* ---- what orders believe of the rest ---- */

/* With ten layers BE0 (100) takes 41 ms. BE1 (50, 26 ms) comes at 13.5, when 27.5 are left, and
 * resets the attention kernel of 13-14. Half a ms is lost, so 28 are left. BE1 runs 13.5-39.5. BE2
 * (55, 27.5 ms) has come at 20 and goes before BE0. With the lost kernel counted as done BE0 would
 * have 27. */
START_TEST(what_a_reset_lost_is_still_to_do)
{
    static const struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.0135, 50, 1, 0, 0}, {BE, 0.02, 55, 1, 0, 0}};
    rules_machine(10);
    sc.machine.devices[IGPU].can_reset = true;
    rules_run("srpt", ONE ",preempt=reset", "", q, 3);
    starts(1, 13.5);
    starts(2, 39.5);
}
END_TEST

/* In chunks of 100 BE1's 300 take 3 * 4 ms and one head, 13. BE2's 100 and three decodes take 5 + 9
 * = 14. With a head for every chunk BE1 would be believed to take 15. */
START_TEST(a_prompt_in_chunks_has_one_head)
{
    static const struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 300, 1, 0, 0}, {BE, 0.001, 100, 4, 0, 0}};
    rules_machine(1);
    rules_run("srpt", ONE ",token_budget=100", "", q, 3);
    starts(1, 5);
}
END_TEST

/* A pair takes 0.001 ms. BE1's 100 tokens have 5,050, so 10.05 ms. BE2's 50 have 1,275, and two
 * decodes take 3.05 each: 10.9. If all pairs of a square counted, BE1 would take 15 and BE2
 * 12.1. */
START_TEST(a_prompt_looks_back_only)
{
    static const struct scenario_request q[] = {
        {BE, 0, 10, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {BE, 0.001, 50, 3, 0, 0}};
    rules_machine(1);
    sc.attention_ms_per_pair[IGPU] = 0.001;
    rules_run("srpt", ONE, "", q, 3);
    ck_assert_int_lt(sc.records[1].start_ns, sc.records[2].start_ns);
}
END_TEST

/* BE0's first chunk (512 rows: 5.12 + 1 + 10.24 ms) is to stop at 5.12 ms for RT1, which came at 1
 * ms and has left by then. So the chunk starts over, 5.12-21.48. Then the rest of both prompts, 488
 * + 24 rows, takes until 21.48 + 16.36 + 1 ms for the head. */
START_TEST(who_was_stopped_for_somebody_who_left_goes_on)
{
    static const struct scenario_request q[] = {
        {BE, 0, 1000, 1, 0, 0}, {RT, 0.001, 100, 1, 0, 0}, {BE, 0.004, 24, 1, 0, 0}};
    rules_machine(1);
    rules_extra(1)->cancel_ns = MS(2);
    rules_run("vllm-priority", "interrupt=true", "", q, 3);
    ck_assert_int_eq((int)sc.records[1].state, (int)REQUEST_STATE_SHED);
    tokens(0, 1, (double[]){38.84});
    tokens(2, 1, (double[]){38.84});
}
END_TEST

/* A request whose user gives up at the instant of its token is in no pass then. Every policy
 * continues with the other one. */
START_TEST(who_gives_up_as_a_token_comes_out_holds_nobody_up)
{
    static const struct scenario_request q[] = {{RT, 0, 300, 9, 0, 0}, {RT, 0, 300, 3, 0, 0}};
    size_t n = 0;
    const char *name = policy_list(&n)[_i]->name;
    int64_t at_ns = TIME_NEVER_NS;
    for (int run = 0; run < 2; run++) {
        rules_machine(1);
        sc.machine.devices[NPU].static_attention = false;
        rules_extra(0)->cancel_ns = at_ns;
        rules_run(name, strcmp(name, "sd-npu") == 0 ? "blocks=1" : "", "", q, 2);
        at_ns = sc.records[0].first_token_ns;
        ck_assert_int_eq((int)sc.records[1].state, (int)REQUEST_STATE_FINISHED);
        if (run == 0) {
            scenario_fini(&sc);
        }
    }
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
}
END_TEST

/* Eighteen prompts come, each shorter than the one before and 10 ms later. Each stops the one
 * before at its next kernel, none of which takes 10 ms (300 rows: 9). Sixteen can be stopped at
 * once. So the eighteenth waits for the end of the seventeenth's pass: 12 layers of 140 rows, 12 x
 * 5.2 + 1 ms, after it began within 10 ms of its arrival at 160. */
START_TEST(sixteen_passes_can_be_stopped_at_once)
{
    struct scenario_request q[18];
    for (uint32_t i = 0; i < 18; i++) {
        q[i] = (struct scenario_request){BE, i * 0.010, 300 - 10 * i, 1, 0, 0};
    }
    rules_machine(12);
    rules_run("sjf-input", ONE ",preempt=kernel", "", q, 18);
    for (uint32_t i = 0; i < 17; i++) {
        int64_t waited = sc.records[i].start_ns - sc.records[i].arrival_ns;
        ck_assert_msg(waited < MS(10), "request %u waits %.3f ms", i, units_ms_from_ns(waited));
    }
    starts(17, units_ms_from_ns(sc.records[16].start_ns) + 12 * 5.2 + 1);
}
END_TEST

/* There is one seat. Without priorities no request takes it by force, so BE0 decodes until 17. With
 * them RT1 has it after BE0's first token, at 5. */
START_TEST(force_is_for_priorities_only)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 5, 0, 0}, {RT, 0.001, 100, 1, 0, 0}};
    rules_machine(1);
    rules_run("vllm-priority", "mode=v0,by_priority=false,max_num_seqs=1", "", q, 2);
    starts(1, 17);
    scenario_fini(&sc);
    rules_machine(1);
    rules_run("vllm-priority", "mode=v0,max_num_seqs=1", "", q, 2);
    starts(1, 5);
}
END_TEST

/* ---- iterations that repeat ---- */

/* Three sequences decode together, and each step has a pair more for each of them: 0.01 ms a pair.
 * Steps that the executor repeats by itself take what they take one by one, to the nanosecond. */
START_TEST(repeated_steps_grow_as_single_ones_do)
{
    static const char *const policies[] = {"openvino-cb", "vllm-v1", "orca", "vllm-v0", "sarathi"};
    static const struct scenario_request q[] = {
        {BE, 0, 30, 40, 0, 0}, {BE, 0, 50, 40, 0, 0}, {BE, 0, 70, 40, 0, 0}};
    struct scenario_record one_by_one[3];
    for (int kernels = 1; kernels >= 0; kernels--) {
        rules_machine(1);
        sc.attention_ms_per_pair[IGPU] = 0.01;
        scenario_policy(&sc, policy_find(policies[_i]), "");
        ck_assert_int_eq(scenario_run(&sc, q, 3, kernels == 1), 0);
        if (kernels == 1) {
            memcpy(one_by_one, sc.records, sizeof one_by_one);
            scenario_fini(&sc);
        }
    }
    for (uint32_t r = 0; r < 3; r++) {
        ck_assert_int_eq(sc.records[r].finish_ns, one_by_one[r].finish_ns);
    }
    /* A prompt pass of 150 tokens is followed by steps of 0.03 * 3 + 2 ms and 0.01 for each key.
     * The kth (k = 1 to 39) has 30 + k, 50 + k and 70 + k of them. */
    double prompts = 0.03 * 150 + 2 + 0.01 * (465 + 1275 + 2485);
    if (_i != 3) {
        ck_assert_int_le(
            llabs(sc.records[2].finish_ns - MS(prompts + 39 * 2.09 + 0.01 * (39 * 150 + 3 * 780))),
            1000);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .teardown = teardown),
    LOOP(who_showed_its_last_token_first_is_next, 2),
    TEST(llf_counts_the_work_of_a_token_too),
    TEST(mlfq_starving_begins_when_service_ends),
    TEST(prema_expects_what_is_left_and_not_all_of_it),
    TEST(prema_earns_nothing_by_being_served),
    LOOP(ready_at_one_instant_the_prompt_goes_before_decode, 2),
    TEST(of_equals_who_became_ready_first_goes_first),
    TEST(an_iteration_is_of_one_priority),
    TEST(level_3_needs_no_level_2),
    TEST(the_killed_come_back_in_order_of_arrival_before_those_who_came_later),
    LOOP(co_serving_counts_what_the_batch_takes, 2),
    TEST(sarathi_decodes_all_whatever_the_budget),
    LOOP(repeated_steps_grow_as_single_ones_do, 5),
    TEST(what_a_reset_lost_is_still_to_do),
    TEST(a_prompt_in_chunks_has_one_head),
    TEST(a_prompt_looks_back_only),
    TEST(force_is_for_priorities_only),
    TEST(sixteen_passes_can_be_stopped_at_once),
    TEST(who_was_stopped_for_somebody_who_left_goes_on),
    LOOP_OVER(who_gives_up_as_a_token_comes_out_holds_nobody_up, suite_policies),
    TEST(a_programs_past_waiting_counts),
    TEST(prompts_share_a_micro_batch),
    TEST(who_gave_way_enters_before_those_who_came_later),
    TEST(a_reservation_that_just_fits_is_made),
    TEST(orca_counts_what_the_batch_takes),
    TEST(hetero_decodes_all_that_decode),
    TEST(where_nothing_fits_the_budget_one_goes_alone),
    TEST(who_lost_its_kv_is_in_the_order_of_prefixes_again),
};
SUITE_MAIN("policy rules", suite)
