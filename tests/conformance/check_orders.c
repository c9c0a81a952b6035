/* The orders are tested rule by rule (clauses.md E.5 to E.7, E.9, E.14), one request at a time
 * unless stated. Toy times are in tests/helpers/rules.h: a prompt of n takes 0.03 n + 2 ms (100: 5,
 * 200: 8, 300: 11), a decode 3 ms. A rule without a parameter of its own is disabled by another
 * order in its place. edf takes proactive requests in arrival order, because their deadlines have
 * that order. */
#include <math.h>
#include <string.h>

#include "sim/base/hash.h"
#include "sim/base/rng.h"
#include "tests/helpers/rules.h"

#define ONE "max_batch=1"

/* BE0 ends at 5. BE1 came at 1, and RT2, which is longer, at 2. With rt_first RT2 starts at 5. By
 * any order alone BE1 goes first (shorter, earlier, as urgent). Other classes of priority and
 * deadline are switched off. */
static bool reactive_first(const char *policy, const char *own, const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {RT, 0.002, 200, 1, 0, 0}};
    rules_run(policy, own, extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 13);
}

static bool srpt_serves_reactive_first(const char *extra)
{
    return reactive_first("srpt", ONE, extra);
}

static bool sjf_serves_reactive_first(const char *extra)
{
    return reactive_first("sjf-input", ONE, extra);
}

static bool mlfq_serves_reactive_first(const char *extra)
{
    return reactive_first("mlfq", ONE, extra);
}

static bool edf_serves_reactive_first(const char *extra)
{
    return reactive_first("edf", ONE ",ttft_slo_s=1000", extra);
}

static bool llf_serves_reactive_first(const char *extra)
{
    return reactive_first("llf", ONE ",ttft_slo_s=1000", extra);
}

static bool prema_serves_reactive_first(const char *extra)
{
    return reactive_first("prema", ONE ",reactive_priority=1", extra);
}

static bool vtc_serves_reactive_first(const char *extra)
{
    return reactive_first("vtc", ONE, extra);
}

static bool autellix_serves_reactive_first(const char *extra)
{
    return reactive_first("autellix-like", ONE, extra);
}

/* ---- srpt ---- */

/* At 5 BE1 needs 5 + 9 * 3 = 32 and BE2 8 + 3 = 11. At 13 BE2 needs 3. BE1 starts at 16. */
static bool srpt_takes_the_shortest_remaining_time(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 10, 0, 0}, {BE, 0.002, 200, 2, 0, 0}};
    rules_run("srpt", ONE, extra, q, 3);
    return rules_tokens_at(2, 2, (double[]){13, 16}) && rules_starts(1, 16);
}

/* BE0 has tokens at 5 and 8 and needs 8 more, 24 ms. BE1, which comes at 6, needs 1.5 + 2 = 3.5 and
 * runs 8 to 11.5. BE0's next token is there at 14.5. */
static bool srpt_displaces_the_longer_one(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 10, 0, 0}, {BE, 0.006, 50, 1, 0, 0}};
    rules_run("srpt", ONE, extra, q, 2);
    return rules_starts(1, 8) && rules_tokens_at(0, 3, (double[]){5, 8, 14.5});
}

/* The limit is 0.5 of 10 tokens. BE1 (10 tokens: 2.3 ms) comes at 6, when BE0 has 1 token, and runs
 * 8 to 10.3. BE0 then has tokens 3, 4, 5 at 13.3, 16.3, 19.3 and stays. So BE2, which comes at 18,
 * waits until BE0's tenth at 19.3 + 5 * 3 = 34.3. */
static bool srpt_keeps_who_is_nearly_done(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 10, 0, 0}, {BE, 0.006, 10, 1, 0, 0}, {BE, 0.018, 10, 1, 0, 0}};
    rules_run("srpt", ONE ",limit=0.5", extra, q, 3);
    return rules_starts(1, 8) && rules_starts(2, 34.3);
}

/* There are ten layers. A prompt of 100 takes 10 * 4 + 1 = 41 ms, one of 50 takes 10 * 2.5 + 1 =
 * 26, and one of 60 takes 29. At 16.5 BE0 has 24.5 left, less than 26, so it stays, although all of
 * it is longer. */
static bool srpt_counts_work_inside_a_pass(const char *extra)
{
    rules_machine(10);
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0}, {BE, 0.0165, 50, 1, 0, 0}};
    rules_run("srpt", ONE ",preempt=kernel", extra, q, 2);
    return rules_finishes(0, 41) && rules_starts(1, 41);
}

/* At 13.5 BE0 has 27.5 left, more than 26, and stops when its attention of layer 4 ends at 14, with
 * 27 left. BE1 runs 14 to 40. BE2, which comes at 20, needs 29: less than all of BE0, more than its
 * rest. */
static bool srpt_counts_work_of_a_stopped_pass(const char *extra)
{
    rules_machine(10);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.0135, 50, 1, 0, 0}, {BE, 0.02, 60, 1, 0, 0}};
    rules_run("srpt", ONE ",preempt=kernel", extra, q, 3);
    return rules_starts(1, 14) && rules_finishes(0, 67) && rules_starts(2, 67);
}

/* These are the isolated ms of request r as srpt estimates them under sigma 1, from O exp(Z - 1/2)
 * tokens. Z is its own normal draw. */
static double believed_ms(uint64_t seed, uint32_t r, double output)
{
    uint64_t own = rng_seed(rng_key(seed, RNG_POLICY, hash_string(HASH_INIT, "srpt"), 0));
    double z = rng_normal_of_key(rng_key(own, RNG_POLICY, r, 1));
    double left = output * exp(z - 0.5);
    return 5 + 3 * (left > 1 ? round(left) - 1 : 0);
}

/* BE1 has 10 tokens and BE2 20, and the one that is believed shorter starts at 5. Two independent Z
 * differ by more than log 2 the wrong way with probability 0.31, so in 20 runs some request is
 * misjudged. */
static bool srpt_believes_a_prediction(const char *extra)
{
    bool all = true;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rules_machine(1);
        sc.setup.seed = seed;
        struct scenario_request q[] = {
            {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 10, 0, 0}, {BE, 0.001, 100, 20, 0, 0}};
        rules_run("srpt", ONE ",sigma=1", extra, q, 3);
        bool second = believed_ms(seed, 2, 20) < believed_ms(seed, 1, 10);
        all = all && rules_starts(second ? 2 : 1, 5);
        scenario_fini(&sc);
    }
    return all;
}

/* ---- sjf-input ---- */

/* At 5 BE2's prompt is shorter than BE1's. Its 49 decodes do not count: it ends at 13 + 147 =
 * 160. */
static bool sjf_takes_the_shortest_prompt(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 300, 1, 0, 0}, {BE, 0.002, 200, 50, 0, 0}};
    rules_run("sjf-input", ONE, extra, q, 3);
    return rules_starts(2, 5) && rules_finishes(2, 160) && rules_starts(1, 160);
}

/* ---- mlfq: quanta 6, 12, 24 ms ---- */

/* BE1's prefill of 11 ms joins level 1, and BE2's of 5 level 0. */
static bool mlfq_joins_by_prefill_time(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 300, 1, 0, 0}, {BE, 0.002, 100, 1, 0, 0}};
    rules_run("mlfq", ONE ",q0_ms=6", extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 10);
}

/* BE0 has used 5 ms, then 8 > 6. So it is at level 1 at 8, where BE1 (level 0, comes at 6) runs 8
 * to 13. BE0 then uses 3, 6, 9, 12 ms of level 1, at 16, 19, 22, 25, and 15 > 12 at 28, when it
 * goes to level 2. BE2 (level 1, comes at 24) starts at 28 and not before, and ends at 28 + 11 =
 * 39. BE0 has its last three tokens at 42, 45 and 48. */
static bool mlfq_demotes_after_the_quantum(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 10, 0, 0}, {BE, 0.006, 100, 1, 0, 0}, {BE, 0.024, 300, 1, 0, 0}};
    rules_run("mlfq", ONE ",q0_ms=6", extra, q, 3);
    return rules_starts(1, 8) && rules_starts(2, 28) && rules_finishes(0, 48);
}

/* BE0 (level 1) waits for eight of level 0, which take 5 ms each. At 20 it was unserved for 20 ms
 * and goes to the top. */
static bool mlfq_promotes_the_starved(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[9] = {{BE, 0, 300, 1, 0, 0}};
    for (int i = 1; i < 9; i++) {
        q[i] = (struct scenario_request){BE, 0, 100, 1, 0, 0};
    }
    rules_run("mlfq", ONE ",q0_ms=6,starve_s=0.02,promote_every=1", extra, q, 9);
    return rules_starts(0, 20) && rules_starts(5, 31);
}

/* BE0 (level 1) prefills to 11 and has used 14 > 12 ms at 14, so it goes to level 2. BE1 (level 1,
 * comes at 1) does the same 14 to 28 and returns to the front of level 2, before BE0. So it ends
 * with its fourth token at 34, and BE0 gets its third at 37. */
static bool mlfq_returns_to_the_front(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 300, 4, 0, 0}, {BE, 0.001, 300, 4, 0, 0}};
    rules_run("mlfq", ONE ",q0_ms=6", extra, q, 2);
    return rules_tokens_at(1, 4, (double[]){25, 28, 31, 34}) &&
           rules_tokens_at(0, 4, (double[]){11, 14, 37, 40});
}

/* ---- edf, llf ---- */

static void first_token_due(uint32_t request, double ms_after_arrival)
{
    rules_extra(request)->ttft_slo_ns = MS(ms_after_arrival);
}

/* RT1 (5 ms of work) is due at 1 + 99 = 100, so it must start by 95. RT2 (10 tokens: 2.3 ms) is due
 * at 2 + 97 = 99 and must start by 96.7. So edf takes RT2 at 5 and llf RT1. */
static void urgent_and_laxer(const char *policy, const char *extra)
{
    rules_machine(1);
    first_token_due(1, 99);
    first_token_due(2, 97);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {RT, 0.001, 100, 1, 0, 0}, {RT, 0.002, 10, 1, 0, 0}};
    rules_run(policy, ONE, extra, q, 3);
}

static bool edf_takes_the_earliest_deadline(const char *extra)
{
    urgent_and_laxer("edf", extra);
    return rules_starts(2, 5) && rules_starts(1, 7.3);
}

static bool llf_takes_the_least_laxity(const char *extra)
{
    urgent_and_laxer("llf", extra);
    return rules_starts(1, 5) && rules_starts(2, 10);
}

/* RT0's second token is due at 5 + 200 = 205, and RT1's first at 1 + 2000. So RT0 has all ten at 5
 * + 27 = 32 before RT1 starts. */
static bool token_deadlines(const char *policy, const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{RT, 0, 100, 10, 0, 0}, {RT, 0.001, 100, 1, 0, 0}};
    rules_run(policy, ONE ",tbt_slo_s=0.2", extra, q, 2);
    return rules_finishes(0, 32) && rules_starts(1, 32);
}

static bool edf_has_a_deadline_for_every_token(const char *extra)
{
    return token_deadlines("edf", extra);
}

static bool llf_has_a_deadline_for_every_token(const char *extra)
{
    return token_deadlines("llf", extra);
}

/* With blind classes BE1 (due 1 s after it came at 1) goes before RT2 (due 2 s after it came at
 * 2). */
static bool proactive_deadline(const char *policy, const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {RT, 0.002, 100, 1, 0, 0}};
    rules_run(policy, ONE ",class=blind,proactive_s=1", extra, q, 3);
    return rules_starts(1, 5) && rules_starts(2, 10);
}

static bool edf_ages_proactive_requests(const char *extra)
{
    return proactive_deadline("edf", extra);
}

static bool llf_ages_proactive_requests(const char *extra)
{
    return proactive_deadline("llf", extra);
}

/* BE2's trace says 100 ms after its arrival. BE1 has the 600 s that proactive requests get. */
static bool edf_obeys_the_deadlines_of_the_trace(const char *extra)
{
    rules_machine(1);
    rules_extra(2)->deadline_ns = MS(100);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {BE, 0.002, 200, 1, 0, 0}};
    rules_run("edf", ONE, extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 13);
}

/* ---- prema ---- */

/* Both have 1 token and a bit. BE2's prompt is shorter. */
static bool prema_takes_the_shortest_candidate(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 300, 1, 0, 0}, {BE, 0.002, 200, 1, 0, 0}};
    rules_run("prema", ONE, extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 13);
}

/* Classes are blind. RT2 starts with 9 tokens, so it is the only candidate although BE1 is
 * shorter. */
static bool prema_runs_candidates_only(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {RT, 0.002, 300, 1, 0, 0}};
    rules_run("prema", ONE ",class=blind", extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 16);
}

/* BE1 alone takes 11 + 3 = 14 ms by the estimate (one output token assumed), so it has 1 + t / 14
 * tokens: 2.79 at 25, 3.14 at 30. A shorter one, which has just come (4, 9, 14, ...), goes first at
 * 0, 5, ... 25. At 30 the threshold is 3 and BE1 the only candidate. */
static bool prema_earns_tokens_by_waiting(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[9] = {{BE, 0, 100, 1, 0, 0}, {BE, 0, 300, 1, 0, 0}};
    for (int i = 2; i < 9; i++) {
        q[i] = (struct scenario_request){BE, 0.005 * (i - 1) - 0.001, 100, 1, 0, 0};
    }
    rules_run("prema", ONE ",expected_output=1", extra, q, 9);
    return rules_starts(6, 25) && rules_starts(1, 30) && rules_starts(7, 41);
}

/* ---- vtc ---- */

static void clients(uint32_t n, const uint32_t *client)
{
    for (uint32_t i = 0; i < n; i++) {
        rules_extra(i)->client_id = client[i];
    }
}

/* Client 1 is charged 100 + 2 for BE0, so BE2 of client 2 goes before BE1 of client 1. */
static bool vtc_takes_the_client_with_least_service(const char *extra)
{
    rules_machine(1);
    clients(3, (uint32_t[]){1, 1, 2});
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.001, 100, 1, 0, 0}, {BE, 0.002, 100, 1, 0, 0}};
    rules_run("vtc", ONE, extra, q, 3);
    return rules_starts(2, 5) && rules_starts(1, 10);
}

/* BE0 of client 1 runs 0-59.3 and is charged 10 + 20 * 2 = 50. BE1 of client 2 is charged 32 and
 * runs to 62.2. Then BE3 of client 2 goes before BE2 of client 1, which came first. */
static bool vtc_charges_what_clients_get(const char *extra)
{
    rules_machine(1);
    clients(4, (uint32_t[]){1, 2, 1, 2});
    struct scenario_request q[] = {
        {BE, 0, 10, 20, 0, 0}, {BE, 0, 30, 1, 0, 0}, {BE, 0, 10, 1, 0, 0}, {BE, 0, 10, 1, 0, 0}};
    rules_run("vtc", ONE, extra, q, 4);
    return rules_starts(1, 59.3) && rules_starts(3, 62.2) && rules_starts(2, 64.5);
}

/* There are two places. BE0's admission charges client 1 with 200 before anything of it has run. So
 * client 2's BE2 joins it, not BE1. Together they have 300 rows, which take 11 ms. */
static bool vtc_charges_prompts_at_admission(const char *extra)
{
    rules_machine(1);
    clients(3, (uint32_t[]){1, 1, 2});
    struct scenario_request q[] = {
        {BE, 0, 200, 1, 0, 0}, {BE, 0, 100, 1, 0, 0}, {BE, 0, 100, 1, 0, 0}};
    rules_run("vtc", "max_batch=2", extra, q, 3);
    return rules_starts(2, 0) && rules_starts(1, 11);
}

/* At 5 client 1 has 102 and client 2 nothing, but BE0 is running and has all its tokens at 5 + 9 *
 * 3 = 32. RT1 waits as long, though reactive requests are admitted first. */
static bool vtc_takes_nobody_out(const char *extra)
{
    bool stays = true;
    for (int reactive = 0; reactive < 2; reactive++) {
        if (reactive > 0) {
            scenario_fini(&sc);
        }
        rules_machine(1);
        clients(2, (uint32_t[]){1, 2});
        struct scenario_request q[] = {{BE, 0, 100, 10, 0, 0},
                                       {reactive ? RT : BE, 0.001, 100, 1, 0, 0}};
        rules_run("vtc", ONE, extra, q, 2);
        stays = stays && rules_finishes(0, 32) && rules_starts(1, 32);
    }
    return stays;
}

/* BE0 of client 2 runs 0-5 and is charged 102. BE1 of client 1 runs 5-34.3. Client 3 comes at 10
 * and is lifted to the 102 of client 2, whose BE2 waits. Client 1 has less but nothing queued.
 * There is a tie at 34.3, and BE2 came first. */
static bool vtc_lifts_to_those_who_wait(const char *extra)
{
    rules_machine(1);
    clients(4, (uint32_t[]){2, 1, 2, 3});
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0},
                                   {BE, 0, 10, 10, 0, 0},
                                   {BE, 0, 100, 1, 0, 0},
                                   {BE, 0.01, 100, 1, 0, 0}};
    rules_run("vtc", ONE, extra, q, 4);
    return rules_starts(1, 5) && rules_starts(2, 34.3) && rules_starts(3, 39.3);
}

/* Client 1's four requests came at 0 and are charged 102 each, 100 of it at admission. So it has
 * 304 at 12, when client 2 comes with four and is lifted to 304. BE4 starts at 15 (304 against
 * 306), then BE3 at 20 (306 against 406), and BE5 at 25 (no other client has requests). */
static bool vtc_lifts_who_comes_back(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[8];
    for (uint32_t i = 0; i < 8; i++) {
        q[i] = (struct scenario_request){BE, i < 4 ? 0 : 0.012, 100, 1, 0, 0};
    }
    clients(8, (uint32_t[]){1, 1, 1, 1, 2, 2, 2, 2});
    rules_run("vtc", ONE, extra, q, 8);
    return rules_starts(4, 15) && rules_starts(3, 20) && rules_starts(5, 25);
}

/* A reactive request of 102 is charged 25.5. The order is RT0, then BE1 (102), then RT2, RT3, RT4
 * and, on a tie at 102, RT5 (smaller id). BE6 starts at 30. */
static bool vtc_weighs_reactive_service(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[7];
    for (uint32_t i = 0; i < 7; i++) {
        q[i] = (struct scenario_request){i == 1 || i == 6 ? BE : RT, 0, 100, 1, 0, 0};
    }
    clients(7, (uint32_t[]){1, 2, 1, 1, 1, 1, 2});
    rules_run("vtc", ONE ",class=blind,reactive_weight=4", extra, q, 7);
    return rules_starts(1, 5) && rules_starts(5, 25) && rules_starts(6, 30);
}

/* One client has 64 tokens of KV. BE0 and BE1, 16 rows each, have tokens at 2.96 and fill the KV
 * with 16 decodes of both, at 35.92. BE1, which came later, gives way, and queues before BE2 and
 * BE3, 48 rows each, which had no room. BE0 needs 23 more tokens, to 104.92. BE1 reads 33 rows
 * again in 2.99 and has 22 more, to 173.91. BE2 and BE3 do not fit together and take 3.44 each. */
static bool vtc_queues_who_lost_its_memory_by_arrival(const char *extra)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 64;
    clients(4, (uint32_t[]){1, 1, 1, 1});
    struct scenario_request q[4];
    for (uint32_t i = 0; i < 4; i++) {
        q[i] = (struct scenario_request){BE, 0, i < 2 ? 16 : 48, i < 2 ? 40 : 1, 0, 0};
    }
    rules_run("vtc", "max_batch=4", extra, q, 4);
    return rules_finishes(0, 104.92) && rules_finishes(1, 173.91) && rules_starts(2, 173.91) &&
           rules_starts(3, 177.35);
}

/* There are ten layers. BE0 takes 41 ms and BE1 10 * (0.03 * 165 + 1) + 1 = 60.5. Deadlines are 600
 * s after arrival. At 20.5 BE1's laxity is 600,000 - 60.5 = 599,939.5 ms. BE0's was 599,959 at 0.
 * It would be 599,938.5 by now if BE0 had waited, and is 599,959 because it ran. BE0 stops when its
 * QKV of layer 6 ends, at 21. */
static bool llf_counts_work_inside_a_pass(const char *extra)
{
    rules_machine(10);
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0}, {BE, 0.0205, 165, 1, 0, 0}};
    rules_run("llf", ONE ",preempt=kernel", extra, q, 2);
    return rules_starts(1, 21);
}

/* Until 21 all is as above. BE0 stops with 21 ms done, and its laxity is 599,959 + 21 = 599,980.
 * BE1 (laxity 600,020.5 - 60.5 = 599,960) runs from 21 on, a layer in 4.95 + 1 ms. BE2, 200 rows or
 * 71 ms, comes at 44 with 600,044 - 71 = 599,973, when BE1 is at 599,960 + 23 = 599,983. So BE1
 * stops when its FFN of layer 4 ends, at 21 + 4 * 5.95 = 44.8, at 599,983.8. BE2 ends at 115.8. BE0
 * is then the more urgent of the two that were stopped, although BE1 was stopped last. It ends at
 * 115.8 + 20 = 135.8, and BE1 with the 36.7 that it lacks at 172.5. */
static bool llf_compares_all_stopped_passes(const char *extra)
{
    rules_machine(10);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.0205, 165, 1, 0, 0}, {BE, 0.044, 200, 1, 0, 0}};
    rules_run("llf", ONE ",preempt=kernel", extra, q, 3);
    return rules_finishes(2, 115.8) && rules_finishes(0, 135.8) && rules_finishes(1, 172.5);
}

/* The last two of eight queues are bounded by 32 and 64 ms. Client 7 has had 5 + 20 * 3 = 65 ms,
 * and client 8 5 + 11 * 3 = 38. When request 2 ends at 115, 4 goes before 3, which came first. */
static bool autellix_has_eight_queues(const char *extra)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 21, 0, 0},
                                   {BE, 0, 100, 12, 0, 0},
                                   {BE, 0.110, 100, 1, 0, 0},
                                   {BE, 0.111, 100, 1, 0, 0},
                                   {BE, 0.112, 100, 1, 0, 0}};
    rules_extra(0)->client_id = rules_extra(3)->client_id = 7;
    rules_extra(1)->client_id = rules_extra(4)->client_id = 8;
    rules_run("autellix-like", ONE ",t0_s=0.0005", extra, q, 5);
    return rules_starts(4, 115) && rules_starts(3, 120);
}

static const struct rule_row all[] = {
    RULE(srpt_serves_reactive_first, "class=blind", "class=blind"),
    RULE(sjf_serves_reactive_first, "class=blind", "class=blind"),
    RULE(mlfq_serves_reactive_first, "class=blind", "class=blind"),
    RULE(edf_serves_reactive_first, "class=blind", "class=blind"),
    RULE(llf_serves_reactive_first, "class=blind", "class=blind"),
    RULE(prema_serves_reactive_first, "class=blind", "class=blind"),
    RULE(vtc_serves_reactive_first, "class=blind", "class=blind"),
    RULE(srpt_takes_the_shortest_remaining_time, "policy=sjf-input policy=vtc class=blind",
         "policy=sjf-input policy=vtc"),
    RULE(srpt_displaces_the_longer_one, "policy=edf limit=0 limit=0.5", "policy=edf limit=0"),
    RULE(srpt_keeps_who_is_nearly_done, "limit=1 limit=0.9 limit=0.4", "limit=1 limit=0.9"),
    RULE(srpt_counts_work_inside_a_pass, "policy=sjf-input preempt=layer", "policy=sjf-input"),
    RULE(srpt_counts_work_of_a_stopped_pass, "policy=sjf-input preempt=iteration level=1",
         "policy=sjf-input preempt=iteration"),
    RULE(srpt_believes_a_prediction, "sigma=0 limit=0.8", "sigma=0"),
    RULE(sjf_takes_the_shortest_prompt, "policy=srpt policy=vtc class=blind",
         "policy=srpt policy=vtc"),
    RULE(mlfq_joins_by_prefill_time, "skip_join=false q0_ms=100 to_front=false",
         "skip_join=false q0_ms=100"),
    RULE(mlfq_demotes_after_the_quantum, "q0_ms=100 starve_s=1000", "q0_ms=100"),
    RULE(mlfq_promotes_the_starved, "starve_s=1000 promote_every=1000 skip_join=false",
         "starve_s=1000 promote_every=1000 skip_join=false"),
    RULE(mlfq_returns_to_the_front, "to_front=false starve_s=1000", "to_front=false"),
    RULE(edf_takes_the_earliest_deadline, "policy=llf policy=vtc class=blind",
         "policy=llf policy=vtc"),
    RULE(llf_takes_the_least_laxity, "policy=edf policy=sjf-input class=blind",
         "policy=edf policy=sjf-input"),
    RULE(llf_counts_work_inside_a_pass, "preempt=iteration preempt=layer policy=edf",
         "preempt=iteration preempt=layer policy=edf"),
    RULE(llf_compares_all_stopped_passes, "preempt=iteration policy=edf level=1",
         "preempt=iteration policy=edf"),
    RULE(edf_has_a_deadline_for_every_token, "tbt_slo_s=10 ttft_slo_s=0.1",
         "tbt_slo_s=10 ttft_slo_s=0.1"),
    RULE(llf_has_a_deadline_for_every_token, "tbt_slo_s=10 ttft_slo_s=0.1",
         "tbt_slo_s=10 ttft_slo_s=0.1"),
    RULE(edf_ages_proactive_requests, "class=rt_first proactive_s=600",
         "class=rt_first proactive_s=600"),
    RULE(llf_ages_proactive_requests, "class=rt_first proactive_s=600",
         "class=rt_first proactive_s=600"),
    RULE(edf_obeys_the_deadlines_of_the_trace, "policy=vtc policy=sjf-input proactive_s=0.05",
         "policy=vtc policy=sjf-input proactive_s=0.05"),
    RULE(prema_takes_the_shortest_candidate, "policy=vtc class=blind", "policy=vtc"),
    RULE(prema_runs_candidates_only, "reactive_priority=1 policy=srpt",
         "reactive_priority=1 policy=srpt"),
    RULE(prema_earns_tokens_by_waiting, "proactive_priority=0.1 class=blind",
         "proactive_priority=0.1"),
    RULE(autellix_serves_reactive_first, "class=blind", "class=blind"),
    RULE(autellix_has_eight_queues, "t0_s=1 beta=4", "t0_s=1"),
    RULE(vtc_takes_the_client_with_least_service, "w_in=0,w_out=0 policy=sjf-input lift=false",
         "w_in=0,w_out=0 policy=sjf-input"),
    RULE(vtc_charges_what_clients_get, "w_out=0 lift=false", "w_out=0"),
    RULE(vtc_charges_prompts_at_admission, "w_in=0 w_out=0", "w_in=0"),
    RULE(vtc_takes_nobody_out, "policy=srpt class=blind", "policy=srpt"),
    RULE(vtc_lifts_to_those_who_wait, "lift=false class=blind", "lift=false"),
    RULE(vtc_lifts_who_comes_back, "lift=false reactive_weight=4", "lift=false"),
    RULE(vtc_weighs_reactive_service, "reactive_weight=1 class=rt_first",
         "reactive_weight=1 class=rt_first"),
    RULE(vtc_queues_who_lost_its_memory_by_arrival, "policy=srpt lift=false", "policy=srpt"),
};

RULES_MAIN("orders", all)
