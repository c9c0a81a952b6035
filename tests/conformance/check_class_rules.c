/* Classes are tested under the orders of policies/common/iter.h. An order or a stop meets a rule
 * that says which requests may run at all (`class=rt_alone`, `class=window`). Times are computed by
 * hand from those of tests/helpers/rules.h. With ten layers a prompt of n takes 10 (0.03 n + 1) + 1
 * ms: 100 rows 41 ms (QKV 1, attention 1, FFN 2), 50 rows 26, and 20 rows 17. */
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

static void window(double at_ms, bool open)
{
    sc.events[sc.n_events++] = (struct machine_event){.at_ns = MS(at_ms),
                                                      .until_ns = TRACE_LAST_NS,
                                                      .sets = MACHINE_SETS_WINDOW,
                                                      .background_window = open};
}

/* BE0 has tokens at 5 and 8. RT1, which comes at 6, takes 5 ms from 8 on, and then two tokens of 3
 * ms each. BE0 decodes in none of its iterations, so its third token is at 22. */
START_TEST(vtc_suspends_who_runs_where_reactive_requests_run_alone)
{
    rules_machine(1);
    struct scenario_request q[] = {{BE, 0, 100, 10, 0, 0}, {RT, 0.006, 100, 3, 0, 0}};
    rules_run("vtc", "class=rt_alone", "", q, 2);
    ck_assert(rules_tokens_at(1, 3, (double[]){13, 16, 19}));
    ck_assert(rules_tokens_at(0, 3, (double[]){5, 8, 22}));
}
END_TEST

/* The window closes at 6, while BE0 runs to 8. RT1 and RT2 come at 7, and are one iteration: 0.03 x
 * 200 + 2 = 8 ms, and then 2.06 for two decodes. BE0 decodes again at 100. */
START_TEST(vtc_lets_nobody_wait_behind_who_waits_for_a_window)
{
    rules_machine(1);
    struct scenario_request q[] = {
        {BE, 0, 100, 3, 0, 0}, {RT, 0.007, 100, 2, 0, 0}, {RT, 0.007, 100, 2, 0, 0}};
    window(6, false);
    window(100, true);
    rules_run("vtc", "class=window", "", q, 3);
    ck_assert(rules_tokens_at(1, 2, (double[]){16, 18.06}));
    ck_assert(rules_tokens_at(2, 2, (double[]){16, 18.06}));
    ck_assert(rules_tokens_at(0, 3, (double[]){5, 8, 103}));
}
END_TEST

/* BE1 comes at 13.5. It is shorter than the rest of BE0 (26 to 27.5 ms), but its window is closed,
 * so BE0 continues. RT2 comes at 20.5, and starts when the QKV of the sixth layer ends, at 21. BE0
 * has 20 left when RT2 ends, at 47. */
START_TEST(nothing_stops_for_who_waits_for_a_window)
{
    static const char *const kv[] = {"kv=checkpoint", "kv=recompute"};
    rules_machine(10);
    struct scenario_request q[] = {
        {BE, 0, 100, 1, 0, 0}, {BE, 0.0135, 50, 1, 0, 0}, {RT, 0.0205, 50, 1, 0, 0}};
    window(1, false);
    window(100, true);
    rules_run("srpt", "max_batch=1,class=window,preempt=kernel", kv[_i], q, 3);
    ck_assert(rules_starts(2, 21) && rules_finishes(2, 47));
    /* With kv=recompute RT2 costs BE0 its work. BE0 does it again, behind BE1. */
    ck_assert(_i == 0 ? rules_finishes(0, 67) && rules_starts(1, 100)
                      : rules_starts(1, 100) && rules_finishes(0, 167));
}
END_TEST

/* RT1 stops BE0 at 14 and runs to 40. Then BE2 is shorter (17 ms) than the rest of BE0 (27), and
 * waits for its window. BE0 continues, and still stops for a reactive request: RT3 comes at 50.5,
 * and the QKV of the seventh layer ends at 51. BE0 has 16 left when RT3 ends at 77. */
START_TEST(who_goes_on_in_the_place_of_who_waits_for_a_window_can_be_stopped)
{
    rules_machine(10);
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0},
                                   {RT, 0.0135, 50, 1, 0, 0},
                                   {BE, 0.016, 20, 1, 0, 0},
                                   {RT, 0.0505, 50, 1, 0, 0}};
    window(15, false);
    window(200, true);
    rules_run("srpt", "max_batch=1,class=window,preempt=kernel", "", q, 4);
    ck_assert(rules_finishes(1, 40));
    ck_assert(rules_starts(3, 51) && rules_finishes(3, 77));
    ck_assert(rules_finishes(0, 93) && rules_starts(2, 200));
}
END_TEST

/* With little memory a reactive request ends sooner, because nobody shares its iterations. RT0
 * and BE1 need five and eleven blocks. With 16 they prefill together, 0.03 * 224 + 2 = 8.72 ms, and
 * decode three times in 2.06. With 13 RT0 is by itself: 3.92 and three times 3, and then BE1
 * is: 6.8 and 9. So RT0 gains 1.98 ms, and BE1 loses 13.82. */
START_TEST(a_reactive_request_ends_sooner_where_memory_keeps_a_proactive_one_out)
{
    struct scenario_request q[] = {{RT, 0, 64, 4, 0, 0}, {BE, 0, 160, 4, 0, 0}};
    rules_machine(1);
    sc.setup.kv_capacity_tokens = _i == 0 ? 16 * 16 : 13 * 16;
    rules_run("edf", "", "", q, 2);
    ck_assert(_i == 0 ? rules_finishes(0, 14.9) && rules_finishes(1, 14.9)
                      : rules_finishes(0, 12.92) && rules_finishes(1, 28.72));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("class rules"),
    LOOP(a_reactive_request_ends_sooner_where_memory_keeps_a_proactive_one_out, 2),
    TEST(vtc_suspends_who_runs_where_reactive_requests_run_alone),
    TEST(vtc_lets_nobody_wait_behind_who_waits_for_a_window),
    LOOP(nothing_stops_for_who_waits_for_a_window, 2),
    TEST(who_goes_on_in_the_place_of_who_waits_for_a_window_can_be_stopped),
};
SUITE_MAIN("class rules", suite)
