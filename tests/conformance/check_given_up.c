/* A stopped pass is dropped when the users of all its requests have given up, as a server that
 * aborts a request drops its work. Toy times are those of tests/helpers/rules.h. */
#include "policies/registry.h"
#include "tests/helpers/rules.h"
#include "tests/helpers/suite.h"

static void teardown(void)
{
    scenario_fini(&sc);
}

/* Requests run one at a time, the shortest prompt first, in 12 layers. BE0 (300 tokens) takes 3, 1
 * and 6 ms a layer. BE1 (100 tokens: 12 x 4 + 1 ms) comes at 10.5, and stops BE0 at 13, when the
 * running kernel ends. BE1 runs until 62.
 *
 * BE0's user gives up at 30 ms (case 0), or at 11 while it runs (case 1). So BE2 (400 tokens: 12 x
 * 13 + 1 ms) begins at 62. Otherwise it would wait for BE0, until 62 + 121 - 13. */
START_TEST(nobody_finishes_a_prompt_that_nobody_waits_for)
{
    static const struct scenario_request q[] = {
        {BE, 0, 300, 1, 0, 0}, {BE, 0.0105, 100, 1, 0, 0}, {BE, 0.020, 400, 1, 0, 0}};
    rules_machine(12);
    rules_extra(0)->cancel_ns = MS(_i == 0 ? 30 : 11);
    rules_run("sjf-input", "max_batch=1,preempt=kernel", "", q, 3);
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
    ck_assert(rules_tokens_at(1, 1, (double[]){62}));
    ck_assert(rules_starts(2, 62));
    ck_assert(rules_tokens_at(2, 1, (double[]){62 + 157}));
}
END_TEST

/* BE0 and BE1 (150 tokens each) are one pass of 12 x 10 + 1 ms, and are stopped from 13 to 62 as in
 * the test above. Only BE0's user gives up. The pass continues for BE1 until 62 + 108, and BE0
 * leaves at its end. */
START_TEST(a_batch_goes_on_for_whoever_still_waits)
{
    static const struct scenario_request q[] = {
        {BE, 0, 150, 2, 0, 0}, {BE, 0, 150, 1, 0, 0}, {BE, 0.0105, 100, 1, 0, 0}};
    rules_machine(12);
    rules_extra(0)->cancel_ns = MS(30);
    rules_run("sjf-input", "max_batch=2,preempt=kernel", "", q, 3);
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
    ck_assert(rules_tokens_at(2, 1, (double[]){62}));
    ck_assert(rules_tokens_at(1, 1, (double[]){62 + 108}));
}
END_TEST

/* All these policies stop a proactive prompt for a reactive one, on any device and at any boundary.
 * BE0 (1000 tokens) is stopped for RT1, which ends after 40 ms. BE0's user gives up at 40, and no
 * kernel of it may begin later. */
START_TEST(nothing_begins_for_who_gave_up_while_stopped)
{
    static const struct {
        const char *policy, *own;
    } stop[] = {{"hpf", ""},
                {"hhpf", ""},
                {"agent-xpu-v1", ""},
                {"agent-xpu-v2", ""},
                {"srpt", "preempt=kernel"},
                {"time-share", ""}};
    static const struct scenario_request q[] = {{BE, 0, 1000, 4, 0, 0}, {RT, 0.005, 900, 4, 0, 0}};
    rules_machine(12);
    sc.machine.devices[NPU].static_attention = false;
    rules_extra(0)->cancel_ns = MS(40);
    rules_run(stop[_i].policy, stop[_i].own, "", q, 2);
    uint32_t before = 0;
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        before += k->request == 0;
        ck_assert_msg(k->request != 0 || k->begin_ns < MS(40), "%s: a kernel at %.3f ms",
                      stop[_i].policy, units_ms_from_ns(k->begin_ns));
    }
    ck_assert_uint_gt(before, 0);
    ck_assert_int_eq((int)sc.records[0].state, (int)REQUEST_STATE_SHED);
    ck_assert_int_eq((int)sc.records[1].state, (int)REQUEST_STATE_FINISHED);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("given up", .teardown = teardown),
    LOOP(nobody_finishes_a_prompt_that_nobody_waits_for, 2),
    TEST(a_batch_goes_on_for_whoever_still_waits),
    LOOP(nothing_begins_for_who_gave_up_while_stopped, 6),
};
SUITE_MAIN("given up", suite)
