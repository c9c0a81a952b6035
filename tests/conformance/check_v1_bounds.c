/* These tests of agent-xpu-v1 show which kernels never start, for which requests others wait, and
 * how long a reactive request waits for a kernel (clauses.md A.6, A.8). The toy machine and times
 * are those of check_agent_xpu_v1.c. */
#include "tests/conformance/agent_xpu_v1_machine.h"
#include "tests/helpers/suite.h"

/* By A.6 a lone decode kernel above tau_high can never start without the guard. */
START_TEST(without_the_idle_guard_decode_never_starts)
{
    for (int guard = 0; guard < 2; guard++) {
        machine(1, 12);
        scenario_cost(&sc, IGPU, OP_LAYER, 12, 0, 75);
        struct scenario_request q[] = {{RT, 0, 256, 2, 0, 0}};
        int rc = run_policy("agent-xpu-v1", guard ? "" : "idle_guard=false", "", q, 1);
        ck_assert_int_eq(rc, guard ? 0 : -ETIMEDOUT);
        scenario_fini(&sc);
    }
}
END_TEST

/* RT0 waits to decode and may not: 75 of 100 GB/s are above tau_high. Stopping BE1's chunk on the
 * NPU for it would be for nothing, at the same instant again and again, because the NPU takes
 * launches back that have not begun. The iGPU is RT0's, but lets BE1 through attention (one kernel
 * between two iterations) and FFN. Then the run ends in a stall that says why. */
START_TEST(nothing_stops_for_a_kernel_that_can_never_start)
{
    machine(1, 12);
    sc.machine.devices[NPU].can_withdraw = true;
    sc.machine.devices[NPU].submit_ns = 1000;
    scenario_cost(&sc, IGPU, OP_LAYER, 12, 0, 75);
    struct scenario_request q[] = {{RT, 0, 256, 2, 0, 0}, {BE, 0.040, 512, 1, 0, 0}};
    int rc = run_policy("agent-xpu-v1", "idle_guard=false", "", q, 2);
    ck_assert_int_eq(rc, -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "stalled: "));
    ck_assert_ptr_nonnull(strstr(sc.result.message, "idle_guard=false: a kernel that alone"));
    ck_assert_ptr_nonnull(scenario_kernel_find(&sc, 0, 1, NPU, OP_FFN));
    scenario_fini(&sc);
}
END_TEST

/* BE0 has begun and needs 59 ms more (16 + 10 + 32 + 1), and BE1 needs 23. With 70 ms accepted BE1
 * is shed, and with 90 it stays. */
START_TEST(prompts_that_have_begun_are_waited_for)
{
    for (int accepted = 70; accepted <= 90; accepted += 20) {
        machine(1, 1);
        char own[96];
        (void)snprintf(own, sizeof own, "shed=true,shed_wait_s=0.0%d", accepted);
        struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {BE, 0.001, 256, 1, 0, 0}};
        run(own, "", q, 2);
        ck_assert_int_eq(sc.records[1].state,
                         accepted == 70 ? REQUEST_STATE_SHED : REQUEST_STATE_FINISHED);
        scenario_fini(&sc);
    }
}
END_TEST

/* ---- the bound of kernel-boundary preemption ---- */

/* Returns the time until the kernel that runs on the NPU at t ends, or 0 when none does. */
static int64_t npu_residual_ns(int64_t t)
{
    for (uint32_t i = 0; i < sc.n_kernels; i++) {
        const struct scenario_kernel *k = &sc.kernels[i];
        if (k->device == NPU && k->begin_ns < t && t < k->end_ns) {
            return k->end_ns - t;
        }
    }
    return 0;
}

/* BE0 (1024, two layers) prefills alone: QKV chunks 0-16, attention 16-26, FFN chunks 26-58, and
 * again until 116. A reactive request that arrives anywhere in it, while there is no other reactive
 * one, waits exactly for the rest of the kernel on the NPU. That is at most 8 ms, an FFN chunk. */
START_TEST(a_reactive_request_waits_for_the_running_kernel_only)
{
    static const char *const policies[] = {"agent-xpu-v1", "agent-xpu-v2"};
    int64_t longest = 0;
    for (int t = 0; t < 230; t++) {
        double arrival_s = 0.0005 * t;
        struct scenario_request q[] = {{BE, 0, 1024, 1, 0, 0}, {RT, arrival_s, 256, 1, 0, 0}};
        machine(2, 1);
        ck_assert_int_eq(run_policy(policies[_i], "", "", q, 1), 0);
        int64_t residual = npu_residual_ns(units_ns_from_s(arrival_s));
        scenario_fini(&sc);
        machine(2, 1);
        ck_assert_int_eq(run_policy(policies[_i], "", "", q, 2), 0);
        int64_t wait = sc.records[1].start_ns - sc.records[1].arrival_ns;
        ck_assert_msg(wait == residual, "%s: arrival %.1f ms waits %.3f ms, not %.3f", policies[_i],
                      arrival_s * 1e3, units_ms_from_ns(wait), units_ms_from_ns(residual));
        longest = wait > longest ? wait : longest;
        scenario_fini(&sc);
    }
    ck_assert_int_eq(longest, MS(7.5)); /* arrivals at steps of 0.5 ms */
}
END_TEST

static const struct suite_row rows[] = {
    TEST(without_the_idle_guard_decode_never_starts),
    TEST(nothing_stops_for_a_kernel_that_can_never_start),
    TEST(prompts_that_have_begun_are_waited_for),
    LOOP(a_reactive_request_waits_for_the_running_kernel_only, 2),
};
SUITE_MAIN("agent-xpu-v1: bounds", rows)
