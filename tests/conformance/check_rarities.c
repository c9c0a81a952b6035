/* These rules of policies show only where several things meet, and every time is computed by hand.
 * Toy times are in tests/helpers/rules.h. */
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

static void teardown(void)
{
    scenario_fini(&sc);
}

/* Times are compared to a microsecond, because ops that cost nothing take 1 ns each. */
static void starts(uint32_t request, double ms)
{
    int64_t got_ns = sc.records[request].start_ns;
    ck_assert_msg(llabs(got_ns - MS(ms)) < 1000, "request %u starts at %.6f, not %.3f", request,
                  units_ms_from_ns(got_ns), ms);
}

static void finishes(uint32_t request, double ms)
{
    ck_assert_msg(rules_finishes(request, ms), "request %u finishes at %.6f, not %.3f", request,
                  units_ms_from_ns(sc.records[request].finish_ns), ms);
}

/* A prompt of n takes n + 1 ms, and one token is expected, 1 ms more, so it has n + 2 isolated ms.
 * The proactive priority is 0.5. RT0 (199) runs 0-200. BE1 (8, isolated 10) came at 1 and has 0.5 +
 * 0.5 * 199 / 10 = 10.45 tokens at 200. It rose through the bands of 1 and 3 to that of 9 and is
 * the only candidate, 200-209. Then BE2 (98, isolated 100, since 100) has 0.5 + 0.5 * 109 / 100 =
 * 1.045, and BE3 (48, isolated 50, since 190) 0.5 + 0.5 * 19 / 50 = 0.69. The threshold falls to 1,
 * and BE2 is the candidate. If BE1 still counted in the band of 3, there would be none, and the
 * shorter BE3 would be next. */
START_TEST(prema_forgets_who_left_a_band)
{
    static const struct scenario_request q[] = {{RT, 0, 199, 1, 0, 0},
                                                {BE, 0.001, 8, 1, 0, 0},
                                                {BE, 0.1, 98, 1, 0, 0},
                                                {BE, 0.19, 48, 1, 0, 0}};
    scenario_init(&sc);
    scenario_cost(&sc, -1, OP_FFN, 0, 1, 5);
    scenario_cost(&sc, -1, OP_HEAD, 1, 0, 5);
    rules_run("prema", "max_batch=1,expected_output=1,proactive_priority=0.5", "", q, 4);
    starts(1, 200);
    starts(2, 209);
    starts(3, 308);
}
END_TEST

/* Recomputing 96 tokens in chunks of 48 takes 0.03 * 48 + 1 ms each, and the head's 1 ms once:
 * 5.88. Before any call was seen, KV lives as long. A turn that comes 5.8 ms after the first ended
 * (at 5.88) finds it: 48 and 16 rows more, 2.44 + 0.48 + 2. One that comes after 6.4 does not:
 * three chunks of 48 and 16 rows. If every chunk were sampled, recomputing would take 6.88. */
START_TEST(a_chunk_that_is_not_the_last_is_not_sampled_in_estimates)
{
    static const struct {
        double gap_ms, ends_ms;
    } cases[] = {{5.8, 5.88 + 5.8 + 2.44 + 2.48}, {6.4, 5.88 + 6.4 + 3 * 2.44 + 2.48}};
    rules_machine(1);
    sc.gaps_are_tools = true;
    struct scenario_request q[] = {{RT, 0, 96, 1, 5, 0},
                                   {RT, cases[_i].gap_ms / 1e3, 160, 1, 5, 96}};
    rules_run("sjf-input", "gap_kv=ttl,token_budget=48", "", q, 2);
    finishes(0, 5.88);
    finishes(1, cases[_i].ends_ms);
}
END_TEST

/* One request runs at a time, in 15 blocks. BE0 leaves six at 4.88. Its next turn, BE3, comes at
 * 5.88, while BE1 runs, and has 64 of its 160 tokens to compute: 3.92. RT4 (ten blocks), at 8.8,
 * takes the blocks that BE3 found: 6.8 are left. So BE2 (5) goes before it at 15.6, though no
 * policy was notified. */
START_TEST(srpt_counts_a_prefix_that_the_cache_has_dropped)
{
    static const struct scenario_request q[] = {{BE, 0, 96, 1, 5, 0},
                                                {BE, 0.004, 64, 1, 0, 0},
                                                {BE, 0.006, 100, 1, 0, 0},
                                                {BE, 0.001, 160, 1, 5, 96},
                                                {RT, 0.007, 160, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 240;
    rules_run("srpt", "max_batch=1", "", q, 5);
    finishes(4, 15.6);
    finishes(2, 20.6);
    finishes(3, 27.4);
}
END_TEST

/* There are 12 blocks. BE0 and BE1 (64 tokens each, of one client) come out of their prompts at
 * 5.84 and decode together, 2.06 a step. BE1 loses its six blocks at 71.76, with 33 tokens each.
 * The client has got 2 * 64 + 2 * 66 = 260. BE0 decodes alone, and its blocks leave no room for
 * BE1's 97 tokens. BE2 (40, of another client) comes at 100 and is lifted to the first one's count
 * at that time, 260 + 2 * 9. At 101.76 that one has 280, so BE2 goes before BE1, which got nothing
 * since, to 104.99. */
START_TEST(vtc_counts_what_a_client_got_while_its_request_waits)
{
    static const struct scenario_request q[] = {
        {BE, 0, 64, 60, 0, 0}, {BE, 0, 64, 60, 0, 0}, {BE, 0.1, 40, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 192;
    rules_extra(1)->client_id = rules_extra(0)->client_id;
    rules_run("vtc", "", "", q, 3);
    finishes(2, 104.99);
    finishes(0, 152.99);
    finishes(1, 235.9);
}
END_TEST

/* One request runs at a time, always by prefix, in 21 blocks. BE0 (160 tokens) and BE1 (96) leave
 * 10 and 6 blocks to their sessions, and RT2 (64 tokens, then 39 decodes of 3 ms) runs 12-132.92.
 * BE3, the second turn of BE1's session, and BE4, that of BE0's, come meanwhile and find 96 and 160
 * tokens. RT2's sixth block takes the prefix of the newer, so BE4 has none now, and BE3 the
 * longest. */
START_TEST(hygen_forgets_a_prefix_that_the_cache_has_dropped)
{
    static const struct scenario_request q[] = {{BE, 0, 160, 1, 5, 0},
                                                {BE, 0, 96, 1, 6, 0},
                                                {RT, 0.012, 64, 40, 0, 0},
                                                {BE, 0.008, 160, 1, 6, 96},
                                                {BE, 0.023, 224, 1, 5, 160}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 21 * 16;
    rules_run("hygen-like", "max_num_seqs=1,utility=1", "", q, 5);
    finishes(2, 132.92);
    starts(3, 132.92);
    starts(4, 132.92 + 3.92);
}
END_TEST

/* Prompts are whole, with 128 tokens an iteration. RT0 (100) leaves room for 28. RT1 (200) is
 * larger than any iteration and runs alone, 5-13, not with RT0. */
START_TEST(a_prompt_larger_than_the_budget_runs_alone)
{
    static const struct scenario_request q[] = {{RT, 0, 100, 1, 0, 0}, {RT, 0, 200, 1, 0, 0}};
    rules_machine(1);
    rules_run("vllm-v0", "max_num_batched_tokens=128", "", q, 2);
    finishes(0, 5);
    finishes(1, 13);
}
END_TEST

/* ---- iterations that repeat ---- */

/* No observer needs single steps, so a batch that repeats does so in one step. */
static int run_unseen(const struct sim_setup *setup, struct sim_result *result)
{
    struct sim_setup s = *setup;
    s.n_observers = 0;
    s.decision_log = NULL;
    return sim_run(&s, result);
}

/* Three sequences have 30, 50 and 70 tokens. A prompt pass takes 0.03 * 150 + 2 ms and 0.01 ms for
 * each of 465 + 1275 + 2485 pairs. Then come 39 steps of 0.03 * 3 + 2 ms and, in the kth, 0.01 ms
 * for each of 150 + 3 k pairs. Events are 3 arrivals, the ends of 40 launches and their passes, and
 * 3 of requests: as many as where every step is watched. */
START_TEST(steps_that_repeat_unseen_grow_by_a_pair_for_each_sequence)
{
    static const struct scenario_request q[] = {
        {BE, 0, 30, 40, 0, 0}, {BE, 0, 50, 40, 0, 0}, {BE, 0, 70, 40, 0, 0}};
    rules_machine(1);
    sc.attention_ms_per_pair[IGPU] = 0.01;
    sc.run = run_unseen;
    rules_run("vllm-v1", "", "", q, 3);
    double prompts = 0.03 * 150 + 2 + 0.01 * (465 + 1275 + 2485);
    double ends_ms = prompts + 39 * 2.09 + 0.01 * (39 * 150 + 3 * 780);
    ck_assert_msg(llabs(sc.result.end_ns - MS(ends_ms)) < 1000, "ends at %.6f, not %.3f",
                  units_ms_from_ns(sc.result.end_ns), ends_ms);
    ck_assert_uint_eq(sc.result.events, 3 + 2 * 40 + 3);
}
END_TEST

/* This policy counts its calls. */
static struct {
    struct policy_ops ops;
    const struct policy_ops *of;
    struct observer *seen;
    uint32_t asked;
} counted;

static void count_asked(struct sched *s)
{
    counted.asked++;
    counted.of->schedule(s);
}

static int run_counted(const struct sim_setup *setup, struct sim_result *result)
{
    struct sim_setup s = *setup;
    s.observers[0] = counted.seen;
    s.n_observers = 1;
    s.decision_log = NULL;
    s.policy = &counted.ops;
    return sim_run(&s, result);
}

static void finish_unseen(void *self, int64_t now_ns, const struct request *r)
{
    ((int64_t *)self)[r->id] = now_ns;
}

/* Runs on the toy machine with so many blocks of KV. 0 means plenty. */
static void run_and_count(const char *policy, uint64_t blocks, const struct scenario_request *q,
                          uint32_t n, int64_t finished_ns[])
{
    struct observer o = {.self = finished_ns, .request_finished = finish_unseen};
    scenario_fini(&sc);
    rules_machine(1);
    memset(finished_ns, 0, n * sizeof *finished_ns);
    memset(&counted, 0, sizeof counted);
    counted.of = policy_find(policy);
    counted.ops = *counted.of;
    counted.ops.schedule = count_asked;
    counted.seen = &o;
    sc.setup.kv_capacity_tokens = 16 * blocks;
    sc.run = run_counted;
    rules_run(policy, "", "", q, n);
}

/* Four prompts have 60 tokens in all: 0.03 * 60 + 2 = 3.8 ms, the first token of each. A step of
 * four follows, 2.12, with which the first request has all. Then one of three takes 2.09, after
 * which two leave together, and two of the last alone, fused, take 3 ms each. The policy is asked
 * five times: when they arrive, after the prompts, whenever some of them leave, and at the end. */
START_TEST(a_steady_policy_is_asked_when_a_request_leaves)
{
    static const struct scenario_request q[] = {
        {BE, 0, 10, 2, 0, 0}, {BE, 0, 20, 3, 0, 0}, {BE, 0, 10, 3, 0, 0}, {BE, 0, 20, 5, 0, 0}};
    static const double ends_ms[] = {5.92, 8.01, 8.01, 14.01};
    int64_t finished_ns[4];
    run_and_count("openvino-cb", 0, q, 4, finished_ns);
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(llabs(finished_ns[i] - MS(ends_ms[i])) < 1000,
                      "request %d finishes at %.6f, not %.3f", i, units_ms_from_ns(finished_ns[i]),
                      ends_ms[i]);
    }
    ck_assert_uint_eq(counted.asked, 5);
}
END_TEST

/* At most 512 iterations are simulated at once, and only as far as free blocks reach. Both requests
 * are served together to their ends. */
START_TEST(a_steady_run_ends_where_blocks_or_iterations_do)
{
    static const struct scenario_request q[] = {{BE, 0, 10, 700, 0, 0}, {BE, 0, 10, 700, 0, 0}};
    static const uint64_t blocks[] = {0, 2 * 45};
    int64_t finished_ns[2];
    run_and_count("openvino-cb", blocks[_i], q, 2, finished_ns);
    ck_assert_int_gt(finished_ns[0], 0);
    ck_assert_int_eq(finished_ns[0], finished_ns[1]);
    ck_assert_uint_lt(counted.asked, 40);
}
END_TEST

/* Eight sessions leave a block each and use it again after 100 s. One more request decodes 140
 * tokens meanwhile, in nine blocks of ten: it takes a block of theirs every 16 tokens, and the
 * policy is not asked for that. The 17 others are asked for at most twice each. */
START_TEST(a_steady_run_takes_what_sessions_left)
{
    struct scenario_request q[17];
    int64_t finished_ns[17];
    for (uint32_t i = 0; i < 8; i++) {
        q[i] = (struct scenario_request){BE, 0, 16, 1, i + 1, 0};
        q[9 + i] = (struct scenario_request){BE, 100, 32, 1, i + 1, 16};
    }
    q[8] = (struct scenario_request){BE, 1, 4, 140, 0, 0};
    run_and_count("openvino-cb", 10, q, 17, finished_ns);
    /* Its prompt takes 0.03 * 4 + 2 ms, and each of the 139 other tokens 3 ms. */
    ck_assert_msg(llabs(finished_ns[8] - MS(1000 + 2.12 + 139 * 3)) < 1000, "finishes at %.6f",
                  units_ms_from_ns(finished_ns[8]));
    ck_assert_uint_ge(sc.result.counters[COUNTER_KV_COLD_DROPS], 7);
    uint32_t asked = counted.asked;
    q[8].output_tokens = 2; /* it takes no block of theirs */
    run_and_count("openvino-cb", 10, q, 17, finished_ns);
    ck_assert_uint_le(asked, counted.asked + 1);
}
END_TEST

/* Three reactive sequences are a whole batch of both classes, and the proactive one stays out until
 * they have ended. The policy is asked as often for 400 tokens of each as for 100. */
START_TEST(a_steady_policy_is_not_asked_about_those_it_leaves_out)
{
    struct scenario_request q[] = {{RT, 0, 10, 100, 0, 0},
                                   {RT, 0, 10, 100, 0, 0},
                                   {RT, 0, 10, 100, 0, 0},
                                   {BE, 0, 10, 20, 0, 0}};
    int64_t finished_ns[4];
    run_and_count("agent-xpu-v2", 0, q, 4, finished_ns);
    uint32_t asked = counted.asked;
    for (int i = 0; i < 3; i++) {
        q[i].output_tokens = 400;
    }
    run_and_count("agent-xpu-v2", 0, q, 4, finished_ns);
    ck_assert_int_gt(finished_ns[3], finished_ns[2]);
    ck_assert_uint_le(counted.asked, asked + 1);
}
END_TEST

/* BE0 (16) answers at 2.48 and decodes. RT1 (96) comes at 3 and stops it behind its layer, at 4.48.
 * Its prompt is three steps of 32 rows, the whole budget: 1.96 each, and 1 for the token: 11.36.
 * BE0 is behind it in the list of those that run, so it has no token of these steps. Then it
 * decodes again: 14.36. */
START_TEST(a_prompt_in_front_may_use_the_budget_up)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 2, 0, 0}, {RT, 0.003, 96, 1, 0, 0}};
    rules_machine(1);
    rules_run("vllm-priority", "interrupt=true,max_num_batched_tokens=32", "", q, 2);
    starts(1, 4.48);
    finishes(1, 11.36);
    finishes(0, 14.36);
}
END_TEST

/* BE0's QKV (1024) ends at 10.24. At this instant BE1 (256) comes and is the iGPU's, because more
 * than 1000 tokens wait for the NPU. The prompt's attention goes first, to 11.24, because the NPU
 * is idle until then. Its FFN runs to 31.72 and its head to 32.72. BE1 follows, 11.24 to 20.92. */
START_TEST(of_streams_that_are_ready_at_once_the_prompt_has_the_igpu)
{
    static const struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0},
                                                {BE, 0.01024, 256, 1, 0, 0}};
    rules_machine(1);
    rules_run("pd-mixed", "limit_tokens=1000", "", q, 2);
    starts(1, 11.24);
    finishes(1, 20.92);
    finishes(0, 32.72);
}
END_TEST

/* There are two layers, and the host samples for 1.5 ms a token. A prompt of 256 is QKV 2.56 and
 * FFN 5.12 on the NPU, attention and head 1 each on the iGPU. An iteration of one sequence is 2 + 2
 * + 1.
 *
 * BE0 decodes. Its iterations begin at 39.36, 45.86 and 53.36. RT1 comes at 35.4. Its attention
 * runs 37.96-38.96 while the host samples, and behind BE0's first layer, 47.86-48.86. Its FFN runs
 * to 53.98 and its head behind BE0's layer, 55.36-56.36. It decodes from 57.86 on, when BE0's
 * second layer runs, to 58.36: BE0's iteration is displaced with its head left.
 *
 * RT1 decodes 58.36-63.36, 64.86-69.86, 71.36-76.36, 77.86-82.86 and 84.36-89.36, and ends at
 * 90.86. While the host samples for it, BE2 has the iGPU: attention 63.36-64.36 and 76.36-77.36,
 * head 82.86-83.86, so it answers at 85.36. At 90.86 BE0's head comes first, to 91.86, sampled at
 * 93.36. Then both decode, 2 * 1.06 + 1 = 3.12, and the host samples two tokens: 99.48. */
START_TEST(of_equals_the_displaced_iteration_goes_on)
{
    static const struct scenario_request q[] = {
        {BE, 0, 256, 20, 0, 0}, {RT, 0.0354, 256, 6, 0, 0}, {BE, 0.039, 256, 3, 0, 0}};
    rules_machine(2);
    sc.machine.sample_ns_per_token = MS(1.5);
    rules_run("hpf", "inflight=1", "", q, 3);
    finishes(1, 90.86);
    ck_assert(rules_tokens_at(2, 2, (double[]){85.36, 99.48}));
    ck_assert(
        rules_tokens_at(0, 8, (double[]){19.86, 26.36, 32.86, 39.36, 45.86, 53.36, 93.36, 99.48}));
}
END_TEST

/* agent-xpu-v1, four layers: a prompt of 16 takes 6.92 ms (0.16, 1 and 0.32 a layer), one of 100 17
 * (1, 1 and 2), a decode 9. BE0 answers at 6.92, and BE1's QKV follows, to 7.92. RT2, come at 7.5,
 * answers at 14.84, and BE1's attention runs before its first iteration, to 15.84. Its user gives
 * up at 15. BE1 answers at 30.84, and decodes with BE0: 4 * 1.06 + 1 = 5.24, to 36.08. That
 * iteration has nobody reactive, so the gap that BE1 took is still taken: RT4, come at 37.5 behind
 * a QKV of BE3 (37-38), answers at 44.92 and decodes at once. BE3's attention runs after that
 * iteration. */
START_TEST(an_iteration_without_users_opens_no_gap)
{
    static const struct scenario_request q[] = {{BE, 0, 16, 2, 0, 0},
                                                {BE, 0.001, 100, 2, 0, 0},
                                                {RT, 0.0075, 16, 5, 0, 0},
                                                {BE, 0.037, 100, 1, 0, 0},
                                                {RT, 0.0375, 16, 3, 0, 0}};
    rules_machine(4);
    rules_extra(2)->cancel_ns = MS(7.5);
    rules_run("agent-xpu-v1", "", "", q, 5);
    ck_assert(rules_tokens_at(0, 2, (double[]){6.92, 36.08}));
    ck_assert(rules_tokens_at(1, 2, (double[]){30.84, 36.08}));
    ck_assert(rules_tokens_at(4, 3, (double[]){44.92, 53.92, 63.92}));
}
END_TEST

/* Ten blocks. RT0 (16) answers at 2.48, and its next token needs a second block. RT1 (144) has
 * nine. Decode goes first, and cannot: RT1 takes 0.03 * 144 + 2 = 6.32, to 8.8, and then RT0 its 3.
 */
START_TEST(decode_without_memory_stops_no_prefill)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 2, 0, 0}, {RT, 0, 144, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 160;
    rules_run("agent-xpu-v2", "prefill_first=false", "", q, 2);
    ck_assert(rules_tokens_at(0, 2, (double[]){2.48, 11.8}) && rules_finishes(1, 8.8));
}
END_TEST

/* There are two places. Request 0 prefills until 5, and decodes until 8, 11 and 14. At 8 the pass
 * of 11 is composed, with request 1 in the other place. That one is cancelled at 9, and its place
 * stays empty. Request 2 is in the pass of 14, with 51 rows in 3.53. */
START_TEST(the_place_of_one_who_is_cancelled_ahead_stays_empty)
{
    struct scenario_request q[] = {
        {RT, 0, 100, 5, 0, 0}, {RT, 0.0055, 50, 1, 0, 0}, {RT, 0.006, 50, 1, 0, 0}};
    rules_machine(1);
    rules_extra(1)->cancel_ns = MS(3.5);
    rules_run("vllm-v1", "async_scheduling=true,max_num_seqs=2", "", q, 3);
    ck_assert(rules_finishes(0, 17.53) && rules_finishes(2, 17.53));
}
END_TEST

/* Requests 0 and 1 share a device of half its rate. Request 0 has the first turn, until 5, and the
 * user of 1 gives up at 2. The turn began among two, so the device rests until 10. Request 2 comes
 * at 6 and takes 3.5 from then on. */
START_TEST(a_turn_that_began_among_two_is_followed_by_a_rest)
{
    struct scenario_request q[] = {
        {RT, 0, 100, 1, 0, 0}, {RT, 0, 100, 1, 0, 0}, {RT, 0.006, 50, 1, 0, 0}};
    rules_machine(1);
    rules_extra(1)->cancel_ns = MS(2);
    rules_run("time-share", "efficiency=0.5,quantum_ms=100", "", q, 3);
    ck_assert(rules_finishes(0, 5) && rules_finishes(2, 13.5));
}
END_TEST

/* Three requests share a device of half its rate. 0 has QKV 0-4, attention 4-5 and FFN 5-13.
 * Request 1 comes at 7, and 2 at 11. Sharing has begun with request 1, so the rest of 0's six
 * shared ms is six. Turns are 19-23 (1), 27-31 (2), 35-36 (1), 37-38 (2), 39-47 (1) and 55-63 (2).
 * Heads are 71-72 (0), 73-74 (1) and 75-76 (2). */
START_TEST(sharing_is_charged_from_the_second_request)
{
    static const struct scenario_request q[] = {
        {BE, 0, 400, 1, 0, 0}, {BE, 0.007, 400, 1, 0, 0}, {BE, 0.011, 400, 1, 0, 0}};
    rules_machine(1);
    rules_run("time-share", "efficiency=0.5,quantum_ms=0", "", q, 3);
    finishes(0, 72);
    finishes(1, 74);
    finishes(2, 76);
}
END_TEST

/* Request 0 as above, and request 1 at 7, whose user gives up at 9. 0's turn ends with its FFN at
 * 13. Its last six ms count, so the device rests until 19. Alone it has its head 19-20. If request
 * 2 comes at 9, it is level with 0's nine ms. So it has QKV 19-23, and the device rests until 27.
 * Both have 13 then, and 0 came first: 27-28. */
START_TEST(sharing_counts_also_if_the_second_request_leaves)
{
    const struct scenario_request q[] = {{BE, 0, 400, 1, 0, 0},
                                         {BE, 0.007, 400, 1, 0, 0},
                                         {BE, _i == 0 ? 0.02 : 0.009, 400, 1, 0, 0}};
    rules_machine(1);
    rules_extra(1)->cancel_ns = MS(2);
    rules_run("time-share", "efficiency=0.5,quantum_ms=0", "", q, 3);
    finishes(0, _i == 0 ? 20 : 28);
}
END_TEST

/* A launch begins 0.9 ms after its submission. BE0 (41 ms) is reset at 14.4 for BE1 (50, 26 ms),
 * and has done 13. It continues at 41.3, and before its first kernel, at 42, BE2 (35, 21.5 ms)
 * comes. BE2 runs until 64.4. BE0's attention runs from 65.3 on, and is reset at 65.8 for BE3, as
 * long as BE2. So BE0 still has 28 to do, and BE4 (55, 27.5 ms) goes before it at 88.2. With 0.7 ms
 * of a lead counted as done BE0 would have 27.3. */
START_TEST(a_reset_leaves_nothing_of_a_kernel)
{
    static const struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0},
                                                {BE, 0.0144, 50, 1, 0, 0},
                                                {BE, 0.042, 35, 1, 0, 0},
                                                {BE, 0.0658, 35, 1, 0, 0},
                                                {BE, 0.070, 55, 1, 0, 0}};
    rules_machine(10);
    sc.machine.devices[IGPU].can_reset = true;
    sc.machine.devices[IGPU].submit_ns = MS(0.9);
    rules_run("srpt", "max_batch=1,preempt=reset", "", q, 5);
    starts(1, 15.3);
    starts(2, 42.9);
    starts(3, 66.7);
    starts(4, 89.1);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("rarities", .teardown = teardown),
    TEST(prema_forgets_who_left_a_band),
    TEST(a_prompt_larger_than_the_budget_runs_alone),
    TEST(steps_that_repeat_unseen_grow_by_a_pair_for_each_sequence),
    TEST(a_steady_policy_is_asked_when_a_request_leaves),
    LOOP(a_steady_run_ends_where_blocks_or_iterations_do, 2),
    TEST(a_steady_run_takes_what_sessions_left),
    TEST(a_steady_policy_is_not_asked_about_those_it_leaves_out),
    TEST(srpt_counts_a_prefix_that_the_cache_has_dropped),
    TEST(vtc_counts_what_a_client_got_while_its_request_waits),
    TEST(hygen_forgets_a_prefix_that_the_cache_has_dropped),
    LOOP(a_chunk_that_is_not_the_last_is_not_sampled_in_estimates, 2),
    TEST(a_prompt_in_front_may_use_the_budget_up),
    TEST(of_streams_that_are_ready_at_once_the_prompt_has_the_igpu),
    TEST(of_equals_the_displaced_iteration_goes_on),
    TEST(an_iteration_without_users_opens_no_gap),
    TEST(decode_without_memory_stops_no_prefill),
    TEST(the_place_of_one_who_is_cancelled_ahead_stays_empty),
    TEST(a_turn_that_began_among_two_is_followed_by_a_rest),
    TEST(sharing_is_charged_from_the_second_request),
    LOOP(sharing_counts_also_if_the_second_request_leaves, 2),
    TEST(a_reset_leaves_nothing_of_a_kernel),
};
SUITE_MAIN("rarities", suite)
