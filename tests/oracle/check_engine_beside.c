/* Launches on two devices at the same time. The engine can make every kernel an event, or pass over
 * the boundaries that nobody awaits. Both ways must report the same times of each DDR demand and
 * share. An observer of kernels would keep them events, so here there is none. */
#include <string.h>

#include "tests/helpers/byhand.h"

/* The reports that the DDR's observer received: for how long there was which demand and share. */
struct told {
    struct {
        double demand, share;
        int64_t ns;
    } of[256];
    uint32_t n;
    uint32_t calls;
};

static struct told told[2]; /* event by event, and without */
static bool collapse;
static const double compute_only[] = {0.0, 0.37}; /* of a kernel's time, after its bytes */

static void on_ddr(void *self, int64_t now_ns, uint64_t count, int64_t duration_ns, double demand,
                   double share)
{
    (void)self;
    (void)now_ns;
    struct told *t = &told[collapse];
    uint32_t i = 0;
    t->calls++;
    while (i < t->n && (t->of[i].demand != demand || t->of[i].share != share)) {
        i++;
    }
    ck_assert_uint_lt(i, sizeof t->of / sizeof t->of[0]);
    if (i == t->n) {
        t->of[t->n].demand = demand;
        t->of[t->n].share = share;
        t->of[t->n++].ns = 0;
    }
    t->of[i].ns += (int64_t)count * duration_ns;
}

static void expect_told_alike(void)
{
    ck_assert_uint_gt(told[0].n, 0);
    for (uint32_t i = 0; i < told[0].n; i++) {
        uint32_t k = 0;
        while (k < told[1].n && (told[1].of[k].demand != told[0].of[i].demand ||
                                 told[1].of[k].share != told[0].of[i].share)) {
            k++;
        }
        int64_t ns = k < told[1].n ? told[1].of[k].ns : 0;
        ck_assert_msg(ns == told[0].of[i].ns, "%.17g bytes/s: %lld ns, not %lld",
                      told[0].of[i].demand, (long long)ns, (long long)told[0].of[i].ns);
    }
    ck_assert_uint_eq(told[1].n, told[0].n);
}

static void setup(void)
{
    byhand_setup();
    sc.setup.collapse = collapse;
    sc.setup.contention = contention_find("max-min");
    sc.machine.ddr_cap_frac = 0.9;
    sc.machine.devices[NPU].static_attention = false;
    sc.observer.kernel = NULL;
    sc.observer.ddr = on_ddr;
    memset(&told[collapse], 0, sizeof told[collapse]);
}

static double stop_ms; /* 0: never */

/* Puts request 0 on the NPU and every other one on the iGPU. */
static void both(struct sched *s, struct script *y)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct request *r = y->request[i];
        if (r != NULL && r->pass == NULL) {
            y->pass[i] = script_form(s, r);
        }
        if (y->pass[i] != NULL && y->pass[i]->state == PASS_STATE_READY) {
            ck_assert_int_eq(
                script_launch(s, y->pass[i], i == 0 ? NPU : IGPU, YIELD_KERNEL, &y->launch[i]), 0);
        }
    }
    if (stop_ms > 0.0 && script_at(s, y, 0, stop_ms)) {
        ck_assert_int_eq(sched_preempt(s, y->launch[0], (struct preempt_spec){.now = true}), 0);
    }
}

/* The NPU's two layers draw 40 GB/s. They end while the iGPU, which draws 10, is in its first
 * attention. Its FFN draws 60 later. So two kernels together draw at most 50 of the 90 that
 * co-running devices have, and one alone at most 60 of 100. An audit that adds up kernels that
 * never met reports more than 0.6. */
START_TEST(the_audit_is_of_kernels_that_were_beside_each_other)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    stop_ms = 0.0;
    for (int k = 0; k < 2; k++) {
        collapse = k == 1;
        setup();
        sc.compute_only_frac = compute_only[_i];
        scenario_cost(&sc, NPU, OP_QKV, 0.7, 0, 40);
        scenario_cost(&sc, IGPU, OP_QKV, 1, 0, 10);
        scenario_cost(&sc, IGPU, OP_MHA, 10, 0, 10);
        scenario_cost(&sc, IGPU, OP_FFN, 2, 0, 60);
        sc.llm.n_layers = 2;
        byhand_run(both, q, 2);
        ck_assert_double_eq_tol(sc.result.audit.ddr_max_over_capacity, 0.6, 1e-6);
        byhand_teardown();
    }
    expect_told_alike();
}
END_TEST

/* The NPU's first kernel is suspended, and continues later. The two kernels after it are like it.
 * But the rest of its bytes over the rest of its time may differ from the demand of a whole kernel
 * in the last bit. An engine that takes the three for equal reports other times. */
START_TEST(a_kernel_that_goes_on_is_not_quite_like_those_after_it)
{
    static const struct scenario_request q[] = {{BE, 0, 768, 1, 0, 0}, {RT, 0, 16, 1, 0, 0}};
    for (uint32_t i = 1; i < 40; i++) {
        stop_ms = 0.0123457 * i;
        for (int k = 0; k < 2; k++) {
            collapse = k == 1;
            setup();
            sc.compute_only_frac = compute_only[_i];
            sc.machine.devices[NPU].can_suspend = true;
            scenario_cost(&sc, NPU, OP_QKV, 0.712345, 0, 37.123456789);
            scenario_cost(&sc, IGPU, OP_QKV, 0.1, 0, 11);
            scenario_cost(&sc, IGPU, OP_MHA, 0.1, 0, 13);
            scenario_cost(&sc, IGPU, OP_FFN, 0.1, 0, 17);
            sc.llm.n_layers = 20;
            byhand_run(both, q, 2);
            byhand_teardown();
        }
        expect_told_alike();
    }
}
END_TEST

/* A request of 60 layers, or two next to each other, with 181 kernels each. Event by event, the DDR
 * is reported at least at both ends of QKV and attention. Without, a request alone has no event
 * before its end. So each of its demands is reported at most twice, and two requests have less than
 * half as many reports. That saves time and changes no result, so the test counts reports. */
START_TEST(kernels_that_nobody_awaits_are_no_events)
{
    static const struct scenario_request q[] = {{RT, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    stop_ms = 0.0;
    for (int k = 0; k < 2; k++) {
        collapse = k == 1;
        setup();
        scenario_cost(&sc, -1, OP_QKV, 0.7, 0, 40);
        scenario_cost(&sc, -1, OP_MHA, 0.3, 0, 10);
        scenario_cost(&sc, IGPU, OP_FFN, 1.1, 0, 60);
        sc.llm.n_layers = 60;
        byhand_run(both, q, 1 + (uint32_t)_i);
        ck_assert_uint_eq(sc.result.kernels, 181 * (1 + (uint64_t)_i));
        byhand_teardown();
    }
    expect_told_alike();
    ck_assert_uint_ge(told[0].calls, 2 * 60);
    if (_i == 0) {
        ck_assert_uint_le(told[1].calls, 2 * told[1].n);
    } else {
        ck_assert_uint_lt(2 * told[1].calls, told[0].calls);
    }
}
END_TEST

/* ---- kernels that load, and then compute ---- */

static double share; /* share of the DDR's peak that several devices reach together */

/* Runs one layer. Each device has a QKV of that length and demand. Returns when both requests
 * finish, in ms. */
static void run_two(double npu_ms, double npu_gb, double igpu_ms, double igpu_gb, double finish[2])
{
    static const struct scenario_request q[] = {{RT, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    stop_ms = 0.0;
    setup();
    sc.machine.ddr_cap_frac = share;
    sc.llm.n_layers = 1;
    for (int d = NPU; d <= IGPU; d++) { /* these kernels take 1 ns each */
        scenario_cost(&sc, d, OP_MHA, 0, 0, 0);
        scenario_cost(&sc, d, OP_FFN, 0, 0, 0);
        scenario_cost(&sc, d, OP_HEAD, 0, 0, 0);
    }
    sc.compute_only_frac = 0.5;
    scenario_cost(&sc, NPU, OP_QKV, npu_ms, 0, npu_gb);
    scenario_cost(&sc, IGPU, OP_QKV, igpu_ms, 0, igpu_gb);
    byhand_run(both, q, 2);
    finish[0] = (double)sc.records[0].finish_ns / 1e6;
    finish[1] = (double)sc.records[1].finish_ns / 1e6;
}

/* A kernel of 10 ms loads for 5 ms and computes for 5. Next to one that draws nothing it takes 10
 * ms for any demand.
 *
 * Two of 10 ms draw 100 GB/s each, of 100: they get 50 each. So they load for 10 ms and compute for
 * 5, which is 15. Bytes that move all the time would take 20.
 *
 * One draws 60 and the other 80 GB/s, of 100: they get 50 each. The NPU loads for 5 x 60 / 50 = 6
 * ms and computes for 5: 11. Until 6 ms the iGPU has moved 6 x 50 / 80 = 3.75 of its 10. Then the
 * NPU computes and leaves it the DDR. It loads for 6.25 more and computes for 10: 22.25. */
START_TEST(a_kernel_that_computes_leaves_the_ddr_to_others)
{
    double end[2];
    collapse = _i == 1;
    share = 1.0;
    run_two(10, 100, 10, 0, end);
    ck_assert_double_eq_tol(end[0], 10.0, 1e-5);
    byhand_teardown();
    run_two(10, 100, 10, 100, end);
    ck_assert_double_eq_tol(end[0], 15.0, 1e-5);
    ck_assert_double_eq_tol(end[1], 15.0, 1e-5);
    byhand_teardown();
    run_two(10, 60, 20, 80, end);
    ck_assert_double_eq_tol(end[0], 11.0, 1e-5);
    ck_assert_double_eq_tol(end[1], 22.25, 1e-5);
    byhand_teardown();
}
END_TEST

static const struct suite_row suite[] = {
    CASE("beside"),
    LOOP(the_audit_is_of_kernels_that_were_beside_each_other, 2),
    LOOP(a_kernel_that_goes_on_is_not_quite_like_those_after_it, 2),
    LOOP(kernels_that_nobody_awaits_are_no_events, 2),
    LOOP(a_kernel_that_computes_leaves_the_ddr_to_others, 2),
};
SUITE_MAIN("engine-beside", suite)
