/* A prefix that a waiting request has found is cache, and counts as free until the request begins.
 * So a prompt takes more of the free room than it has left to compute. Times are computed by hand
 * from those of tests/helpers/rules.h, with blocks of 16 tokens. */
#include "tests/helpers/rules.h"
#include "tests/helpers/script.h"
#include "tests/helpers/suite.h"

static uint32_t lost[4];

static void on_lost(void *self UNUSED, int64_t now_ns UNUSED, const struct request *r,
                    uint64_t tokens UNUSED)
{
    lost[r->id]++;
}

/* There are 32 blocks. Request 0 leaves ten of group 7 in the cache. Request 1 (256, 40 tokens)
 * holds 17 when request 2 comes at 30 ms, and 19 at its end. Request 2 begins with those ten
 * blocks. They count as free, and so do five others. */
static void serve(const char *policy, const char *params, uint32_t prompt)
{
    char text[512];
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    (void)snprintf(text, sizeof text,
                   "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                   "prefix_tokens,prefix_group\n"
                   "0,0,0,proactive,0,,160,1,160,7\n"
                   "1,1,0,proactive,0.010,,256,40,0,\n"
                   "2,2,0,proactive,0.030,,%u,1,160,7",
                   prompt);
    rules_graph(text);
    sc.observer.kv_lost = on_lost;
    rules_run(policy, params, "", NULL, 0);
}

/* Pieces of 64 rows take 2.92 ms. Request 0 has two, and 32 rows with a head, 2.96: 8.8. Request 1
 * has four, the last with a head: 10 + 12.68. Then 39 decodes of 3 ms make 139.68. Request 2 has
 * 160 rows to compute, as request 0 had. If it were admitted at 30, it would find KV for one piece,
 * and lose all. */
START_TEST(a_whole_prompt_has_room_when_it_is_admitted)
{
    static const char *const policies[] = {"sglang-lpm", "sarathi", "edf"};
    serve(policies[_i], _i == 2 ? "token_budget=64" : "max_num_batched_tokens=64", 320);
    ck_assert(rules_tokens_at(1, 1, (double[]){22.68}) && rules_finishes(1, 139.68));
    ck_assert(rules_starts(2, 139.68) && rules_finishes(2, 148.48));
    ck_assert_uint_eq(lost[2], 0);
}
END_TEST

/* Request 2 has too little room, or would leave too little, next to request 1. */
START_TEST(who_begins_has_room_for_its_prefix_too)
{
    static const struct {
        const char *policy, *params;
        uint32_t prompt;
    } all[] = {
        /* 20 blocks of 15 find no room. */
        {"orca", "reserve=false", 320},
        {"conserve-like", "max_num_batched_tokens=64", 320},
        /* 12 blocks of 15 leave three: not an eighth of 32, and not 64 tokens for each of two. */
        {"vllm-v0", "watermark_frac=0.125", 192},
        {"hetero-split", "", 192},
        {"recompute-preempt", "max_batch=2", 192},
        {"llm-npu", "", 192},
        {"agent-xpu-v1", "", 192},
    };
    serve(all[_i].policy, all[_i].params, all[_i].prompt);
    ck_assert_msg(sc.records[2].start_ns >= sc.records[1].finish_ns && lost[2] == 0, "%s",
                  all[_i].policy);
}
END_TEST

/* Request 1 works with the prefix that 2 has found. So the prefix is not free, and request 2 needs
 * the ten blocks of its other 160 rows, where 15 are free. Request 1 takes 4.88 ms from 10 on, and
 * then 3 ms a token: 32.88 is its seventh. Request 2 joins the next, 0.03 x 161 + 2 ms. Prompts
 * alone take 0.03 ms less. */
START_TEST(a_prefix_that_is_in_use_takes_no_room)
{
    static const char *const policies[] = {"vllm-v1", "sarathi", "openvino-cb", "sglang-lpm",
                                           "vllm-v0"};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "max_output_tokens,prefix_tokens,prefix_group\n"
                "0,0,0,proactive,0,,160,1,1,160,7\n"
                "1,1,0,proactive,0.010,,256,40,40,160,7\n"
                "2,2,0,proactive,0.030,,320,1,1,160,7");
    rules_run(policies[_i], "", "", NULL, 0);
    ck_assert(rules_starts(2, 32.88) && rules_finishes(2, _i < 3 ? 39.71 : 39.68));
}
END_TEST

/* There are ten layers. Request 0 leaves ten blocks, and 1 holds 20 from 60 to 167 ms. The prompt
 * of 2 has those ten and needs four more, where two are left, so nothing stops for it. */
START_TEST(nothing_stops_for_who_has_no_room_beside_its_prefix)
{
    rules_machine(10);
    sc.setup.kv_capacity_tokens = 512;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,0,0,reactive,0,,160,1,160,7\n"
                "1,1,0,proactive,0.060,,320,1,0,\n"
                "2,2,0,reactive,0.100,,224,1,160,7");
    rules_run("edf", "preempt=kernel", "", NULL, 0);
    ck_assert(rules_finishes(1, 167) && rules_starts(2, 167));
    ck_assert_uint_eq(sc.result.counters[COUNTER_PREEMPT_ASKED], 0);
}
END_TEST

/* Request 1 decodes 250 tokens and fills all 32 blocks. It takes them from 2, which had found ten
 * and begun with a piece of 80 rows for the five that were free at 31.68 ms. When 2 has lost those
 * five, it has as much left as it found. But that is no cache, so it gives way, too. Request 1
 * takes 9.68 ms from 10 on, 248 decodes of 3 ms and one step of 4.43 with that piece. Request 2
 * computes 256 rows and 64 with a head: 8.68 and 3.92 ms. */
START_TEST(a_victim_that_keeps_just_its_prefix_gives_way_all_the_same)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,0,0,proactive,0,,160,1,160,7\n"
                "1,1,0,proactive,0.010,,256,250,0,\n"
                "2,2,0,proactive,0.030,,320,1,160,7");
    sc.observer.kv_lost = on_lost;
    rules_run("openvino-cb", "", "", NULL, 0);
    ck_assert(rules_finishes(1, 768.11));
    ck_assert(rules_finishes(2, 780.71));
    ck_assert_uint_eq(lost[2], 15);
}
END_TEST

/* Request 0 computes 320 tokens until 11.6 ms. Then 2, which shares them, has 32 rows left, 2.96
 * ms, and goes before 1 with 200. Until then it had 352 and was behind. */
START_TEST(who_waits_is_shorter_once_its_prefix_is_computed)
{
    static const char *const policies[] = {"srpt", "prema", "critical-path"};
    rules_machine(1);
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,0,0,proactive,0,,320,1,320,7\n"
                "1,1,0,proactive,0.001,,200,1,0,\n"
                "2,2,0,proactive,0.002,,352,1,320,7");
    rules_run(policies[_i], "max_batch=1", "", NULL, 0);
    ck_assert(rules_starts(2, 11.6) && rules_starts(1, 14.56));
}
END_TEST

/* At 31.68 ms request 1 holds 17 of 32 blocks, and 2, which is due first, wants 16. So request 1
 * continues by itself. To take from 3 the ten that it has found would not help, and they are there
 * when 2 has ended: 3 computes 32 rows. Request 1 takes 9.68 ms from 10 on and 39 decodes of 3,
 * request 2 takes 9.68 and request 3 2.96. */
START_TEST(who_has_only_found_its_kv_is_no_victim)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,deadline_s,prefix_group\n"
                "0,0,0,proactive,0,,160,1,160,,7\n"
                "1,1,0,proactive,0.010,,256,40,0,,\n"
                "2,2,0,proactive,0.030,,256,1,0,1,\n"
                "3,3,0,proactive,0.031,,192,1,160,,7");
    rules_run("edf", "max_batch=1", "", NULL, 0);
    ck_assert(rules_finishes(1, 136.68) && rules_finishes(2, 146.36) && rules_finishes(3, 149.32));
}
END_TEST

/* Request 1 holds 17 of 32 blocks on the NPU. Request 2 wants 16 of the other
 * 15 on the iGPU. It waits, and takes nothing from 3, which has found ten of the 15. When 1 has
 * ended, 2 and 3 compute 256 and 32 rows together: 0.03 x 288 + 2 ms. */
START_TEST(who_has_only_found_its_kv_loses_nothing_to_the_mixed_instance)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,0,0,proactive,0,,160,1,160,7\n"
                "1,1,0,proactive,0.010,,272,1,0,\n"
                "2,2,0,proactive,0.011,,256,1,0,\n"
                "3,3,0,proactive,0.012,,192,1,160,7");
    sc.observer.kv_lost = on_lost;
    rules_run("pd-mixed", "limit_tokens=0", "", NULL, 0);
    ck_assert_uint_eq(lost[3], 0);
    ck_assert_int_eq(sc.records[3].finish_ns - sc.records[1].finish_ns, MS(10.64));
}
END_TEST

/* Request 0 leaves ten blocks in the cache, 1 decodes, and the rows of 2 and 3 follow. */
/* The iGPU takes ten times as long a row as the NPU in chunks of 256. Request 0 (160 rows, none on
 * the NPU) ends at 25 + 10 + 50 + 1 = 86. Request 2 then finds its 160 tokens, and has a chunk and
 * 96 rows left: an ETC of 12 + 45 + 11 = 68 ms. Request 1 has a chunk and 64 rows: 12 + 30 + 11 =
 * 53. But at 86 request 3 takes the memory of what 2 had found, 527 rows, until it ends at 86 + 8 +
 * 10 + 16 + 1 = 121. Request 2 now has two chunks, 24 + 11 = 35 ms, and goes before 1. */
START_TEST(who_lost_its_prefix_may_be_the_shorter_one)
{
    rules_machine(1);
    scenario_agent_xpu(&sc, 20);
    scenario_cost(&sc, IGPU, OP_QKV, 0, 40.0 / 256, 5);
    scenario_cost(&sc, IGPU, OP_FFN, 0, 80.0 / 256, 5);
    sc.setup.kv_capacity_tokens = 528;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,0,0,proactive,0,,160,1,160,7\n"
                "1,1,0,proactive,0.001,,320,1,0,\n"
                "2,2,0,proactive,0.002,,512,1,160,7\n"
                "3,3,0,reactive,0.086,,527,1,0,");
    rules_run("agent-xpu-v1", "", "", NULL, 0);
    ck_assert(rules_finishes(0, 86) && rules_finishes(3, 121));
    ck_assert(rules_starts(2, 121) && !rules_starts(1, 121));
}
END_TEST

static void run_priority(uint32_t which, const char *two_and_three)
{
    static const char *const policies[] = {"hpf", "hhpf"};
    OWNED char *rows = xformat("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,"
                               "output_tokens,prefix_tokens,prefix_group\n"
                               "0,0,0,proactive,0,,160,1,160,7\n"
                               "1,1,0,proactive,0.010,,256,40,0,\n%s",
                               two_and_three);
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    rules_graph(rows);
    sc.observer.kv_lost = on_lost;
    rules_run(policies[which], "", "", NULL, 0);
}

/* Request 2 wants 16 blocks of 15, and the ten that 3 has found are among these. */
START_TEST(who_has_only_found_its_kv_loses_nothing_to_a_prompt)
{
    run_priority((uint32_t)_i, "2,2,0,proactive,0.030,,256,1,0,\n"
                               "3,3,0,proactive,0.031,,192,1,160,7");
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS], 0);
}
END_TEST

/* Request 3 begins with the ten blocks that it has found, and 2 displaces it. When stopped, 3 gives
 * up the two that it had taken. Its ten count as free again. With five others they are 15 of 16
 * that 2 needs, so 1 loses its 17, and 3 nothing. */
START_TEST(who_was_displaced_keeps_the_prefix_that_it_had_found)
{
    run_priority((uint32_t)_i, "2,2,0,reactive,0.031,,256,1,0,\n"
                               "3,3,0,proactive,0.030,,192,1,160,7");
    ck_assert(lost[1] == 1 && lost[3] == 0);
}
END_TEST

/* Request 1 is the second turn of a session whose KV was on flash. It comes at 1012.68 ms and has
 * its 16 blocks back after 10 and a ns. They are no cache, though they are all that it found and
 * nothing else. Request 2 wants 25 of 32 and takes them. */
START_TEST(kv_that_is_back_from_flash_gives_way)
{
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    sc.machine.swap_fixed_ns = MS(10);
    sc.machine.swap_bytes_per_s = 1e18;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,gap_kind\n"
                "0,0,0,proactive,0,,256,2,0,\n"
                "1,0,1,proactive,,1,320,2,256,tool\n"
                "2,1,0,reactive,1.015,,400,2,0,");
    sc.observer.kv_lost = on_lost;
    rules_run("edf", "gap_kv=swap", "", NULL, 0);
    ck_assert(rules_starts(2, 1022.680001) && lost[1] == 1);
}
END_TEST

/* 241 and 257 tokens are 498 of 512, and 16 and 17 blocks of 32. So the second waits for the end of
 * the first, three pieces of 2.92 ms, one of 3.47 and 19 decodes of 3. */
START_TEST(prompts_have_room_in_whole_blocks)
{
    struct scenario_request q[] = {{BE, 0, 241, 20, 0, 0}, {BE, 0.001, 257, 1, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 512;
    rules_run("edf", "token_budget=64", "", q, 2);
    ck_assert(rules_starts(1, 69.23) && sc.result.counters[COUNTER_KV_RECOMPUTE_EVICTIONS] == 0);
}
END_TEST

/* ---- what a session left ---- */

static uint32_t on_flash;

/* Pins the session's KV and releases it. Then a prompt of 6 blocks comes. Afterwards it is moved to
 * flash, and its next turn has what is there. */
static void move_what_is_left(struct sched *s, struct script *y)
{
    const struct request *r = y->request[1];
    static const enum kv_place to[] = {KV_MEMORY, KV_CACHE, KV_FLASH};
    static const double ms[] = {100, 120, 400};
    for (uint32_t i = 0; i < 3; i++) {
        if (script_at(s, y, i, ms[i])) {
            ck_assert_int_eq(sched_kv_move(s, kv_of_session(7), to[i]), 0);
        }
    }
    if (r != NULL && r->kv_swapped && y->stage == 3) {
        y->stage = 4;
        on_flash = r->kv_tokens;
        ck_assert_int_eq(sched_kv_move(s, kv_of(r), KV_MEMORY), 0);
    }
    y->device = IGPU;
    script_serve(s, y);
}

/* There are 8 blocks. The first turn leaves 64 tokens, 4 blocks. While they are cached the prompt
 * takes 2 of them, so that 32 tokens go to flash and come back. */
START_TEST(kv_that_gave_way_in_part_goes_to_flash_in_part)
{
    static struct script x = {.step = move_what_is_left};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = 128;
    rules_graph("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                "prefix_tokens,prefix_group\n"
                "0,7,0,proactive,0,,64,1,16,5\n"
                "1,7,1,proactive,,1,96,1,64,\n"
                "2,2,0,proactive,0.2,,90,1,0,");
    sc.setup.policy = &script_ops;
    sc.setup.policy_context = &x;
    ck_assert_msg(scenario_again(&sc) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(x.stage, 4);
    ck_assert_uint_eq(on_flash, 32);
}
END_TEST

static uint32_t reused;

static void drop_session(struct sched *s, struct script *y)
{
    if (script_at(s, y, 0, 400)) {
        ck_assert_int_eq(sched_kv_move(s, kv_of_session(7), KV_NOWHERE), 0);
    }
    if (y->request[3] != NULL && y->pass[3] == NULL) {
        reused = y->request[3]->reused_tokens;
    }
    y->device = IGPU;
    script_serve(s, y);
}

/* Session 7 begins with the 64 tokens of request 0, or with those of a group. Its KV is dropped
 * after the first turn. Request 3 finds the same 64 tokens all the same. */
START_TEST(a_dropped_session_leaves_what_others_begin_with)
{
    static struct script x = {.step = drop_session};
    rules_machine(1);
    rules_graph(_i == 0
                    ? "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                      "prefix_tokens,prefix_of\n"
                      "0,5,0,proactive,0,,64,1,0,\n"
                      "1,7,0,proactive,0.1,,96,1,64,0\n"
                      "2,7,1,proactive,,9,120,1,97,\n"
                      "3,3,0,proactive,0.5,,100,1,64,0"
                    : "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,"
                      "prefix_tokens,prefix_group\n"
                      "0,5,0,proactive,0,,64,1,0,\n"
                      "1,7,0,proactive,0.1,,96,1,64,5\n"
                      "2,7,1,proactive,,9,120,1,97,\n"
                      "3,3,0,proactive,0.5,,100,1,64,5");
    sc.setup.policy = &script_ops;
    sc.setup.policy_context = &x;
    ck_assert_msg(scenario_again(&sc) == 0, "%s", sc.result.message);
    ck_assert_uint_eq(x.stage, 1);
    ck_assert_uint_eq(reused, 64);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("prefix room"),
    TEST(who_lost_its_prefix_may_be_the_shorter_one),
    TEST(who_has_only_found_its_kv_is_no_victim),
    TEST(who_has_only_found_its_kv_loses_nothing_to_the_mixed_instance),
    LOOP(who_has_only_found_its_kv_loses_nothing_to_a_prompt, 2),
    LOOP(who_was_displaced_keeps_the_prefix_that_it_had_found, 2),
    TEST(kv_that_is_back_from_flash_gives_way),
    TEST(prompts_have_room_in_whole_blocks),
    LOOP(who_waits_is_shorter_once_its_prefix_is_computed, 3),
    TEST(a_victim_that_keeps_just_its_prefix_gives_way_all_the_same),
    LOOP(a_whole_prompt_has_room_when_it_is_admitted, 3),
    LOOP(who_begins_has_room_for_its_prefix_too, 7),
    LOOP(a_prefix_that_is_in_use_takes_no_room, 5),
    TEST(nothing_stops_for_who_has_no_room_beside_its_prefix),
    TEST(kv_that_gave_way_in_part_goes_to_flash_in_part),
    LOOP(a_dropped_session_leaves_what_others_begin_with, 2),
};
SUITE_MAIN("prefix room", suite)
