/* The engine against times computed by hand or by another simulator. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/scenario.h"
#include "tests/helpers/suite.h"

/* ---- The policy of these tests only places. Reactive requests run on the NPU and proactive ones
 * on the iGPU, whole prompts one at a time in arrival order. `sharer` gives all to the iGPU at
 * once. ---- */

struct lane {
    const struct request *waiting[32];
    uint32_t n, next;
    const struct request *current;
};
struct placer {
    struct lane lane[2];
};

static void placer_arrived(struct sched *s, const struct request *r)
{
    struct placer *p = s->state;
    struct lane *l = &p->lane[r->cls];
    l->waiting[l->n++] = r;
}

static void placer_pass_done(struct sched *s, const struct pass *pass)
{
    struct placer *p = s->state;
    for (int i = 0; i < 2; i++) {
        if (p->lane[i].current == pass->segments[0].request) {
            p->lane[i].current = NULL;
        }
    }
}

static bool start(struct sched *s, const struct request *r, uint8_t device)
{
    struct segment seg = {
        .request = r, .role = SEGMENT_PREFILL, .n_tokens = request_prefill_left(r)};
    struct pass_spec spec = {.segments = &seg, .n_segments = 1};
    struct pass *pass;
    if (sched_pass_form(s, &spec, &pass) != 0) {
        return false;
    }
    struct launch_spec l = sched_launch_rest(s, pass, device, YIELD_PASS);
    l.chunk_rows = 0;
    return sched_launch(s, &l, NULL) == 0;
}

static void placer_schedule(struct sched *s)
{
    struct placer *p = s->state;
    for (uint8_t i = 0; i < 2; i++) {
        struct lane *l = &p->lane[i];
        if (l->current == NULL && l->next < l->n) {
            l->current = l->waiting[l->next++];
            (void)start(s, l->current, i);
        }
    }
}

static const struct policy_ops placer_ops = {.name = "placer",
                                             .contract = POLICY_CONTRACT,
                                             .state_size_bytes = sizeof(struct placer),
                                             .request_arrived = placer_arrived,
                                             .pass_done = placer_pass_done,
                                             .schedule = placer_schedule};

static void sharer_schedule(struct sched *s)
{
    struct placer *p = s->state;
    struct lane *l = &p->lane[BE];
    while (l->next < l->n && sched_device_free_slots(s, IGPU) > 0) {
        (void)start(s, l->waiting[l->next++], IGPU);
    }
}

static const struct policy_ops sharer_ops = {.name = "sharer",
                                             .contract = POLICY_CONTRACT,
                                             .state_size_bytes = sizeof(struct placer),
                                             .request_arrived = placer_arrived,
                                             .schedule = sharer_schedule};

static struct scenario sc;

static void setup(void)
{
    scenario_init(&sc);
    sc.machine.devices[NPU].static_attention = false;
    sc.setup.contention = contention_find("max-min");
}

static void teardown(void)
{
    scenario_fini(&sc);
}

static void run(const struct policy_ops *ops, const struct scenario_request *q, uint32_t n)
{
    sc.setup.policy = ops;
    sc.setup.params = &sc.params;
    int rc = scenario_run(&sc, q, n, getenv("SHOW") != NULL);
    if (rc != 0 || getenv("SHOW") != NULL) {
        scenario_print(&sc, stdout);
    }
    ck_assert_int_eq(rc, 0);
    ck_assert(sc.result.audit.clean);
}

/* The DDR has 100 GB/s. NPU kernels move 600 MB at a port cap of 60 GB/s: 10 ms alone, and then 1
 * ms of computing. Kernels of the iGPU move 1600 MB at 80 GB/s: 20 ms alone, and then 2 ms. Five of
 * each run back to back.
 *
 * SimGrid 3.32 (CM02, max-min) gives 13.0, 26.0, 38.6, 51.6 and 64.6 ms for the NPU. For the iGPU
 * it gives 32.8, 65.6, 87.6, 109.6 and 131.6 ms.
 *
 * In the one layer of this test QKV is the transfer and FFN the computing. Attention and head take
 * 1 ns each, so FFN is set 2 ns shorter. */
START_TEST(max_min_sharing_gives_simgrids_completion_times)
{
    static const double npu[] = {13.0, 26.0, 38.6, 51.6, 64.6};
    static const double igpu[] = {32.8, 65.6, 87.6, 109.6, 131.6};
    scenario_cost(&sc, NPU, OP_QKV, 10, 0, 60);
    scenario_cost(&sc, NPU, OP_FFN, 1 - 2e-6, 0, 0);
    scenario_cost(&sc, IGPU, OP_QKV, 20, 0, 80);
    scenario_cost(&sc, IGPU, OP_FFN, 2 - 2e-6, 0, 0);
    struct scenario_request q[10];
    for (uint32_t i = 0; i < 10; i++) {
        q[i] = (struct scenario_request){i < 5 ? RT : BE, 0, 16, 1, 0, 0};
    }
    run(&placer_ops, q, 10);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_le(llabs(sc.records[i].finish_ns - MS(npu[i])), 1);
        ck_assert_int_le(llabs(sc.records[5 + i].finish_ns - MS(igpu[i])), 1);
    }
}
END_TEST

/* Three equal jobs of 30 ms share a device with efficiency 1. They arrive at 0, 10 and 20 ms.
 *
 *   0..10    job 0 alone: 20 left
 *   10..20   two jobs, 5 each: job 0 has 15 left, job 1 25
 *   20..65   three jobs: job 0 needs 3 x 15 = 45, then job 1 has 10 left, job 2 15
 *   65..85   two jobs: job 1 needs 2 x 10 = 20, then job 2 has 5 left
 *   85..90   job 2 alone */
START_TEST(time_shared_device_is_processor_sharing)
{
    sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    scenario_cost(&sc, IGPU, OP_QKV, 30 - 3e-6, 0, 0);
    struct scenario_request q[] = {
        {BE, 0, 16, 1, 0, 0}, {BE, 0.010, 16, 1, 0, 0}, {BE, 0.020, 16, 1, 0, 0}};
    run(&sharer_ops, q, 3);
    static const double finish[] = {65, 85, 90};
    for (uint32_t i = 0; i < 3; i++) { /* the three kernels of 1 ns are shared too */
        ck_assert_int_le(llabs(sc.records[i].finish_ns - MS(finish[i])), 20);
    }
}
END_TEST

/* At an efficiency of 0.5, two jobs of 10 ms progress at 0.25 each. Both take 40 ms. */
START_TEST(time_sharing_efficiency_slows_everybody)
{
    sc.machine.devices[IGPU].sharing = DEVICE_TIME_SHARED;
    sc.machine.devices[IGPU].shared_efficiency_frac = 0.5;
    scenario_cost(&sc, IGPU, OP_QKV, 10 - 3e-6, 0, 0);
    struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    run(&sharer_ops, q, 2);
    ck_assert_int_le(llabs(sc.records[0].finish_ns - MS(40)), 20);
    ck_assert_int_le(llabs(sc.records[1].finish_ns - MS(40)), 20);
}
END_TEST

/* The demands are 60 and 80 GB/s, where kappa leaves 0.9 of 100 = 90. Max-min gives 45 to each. So
 * the NPU (10 ms alone) runs at 0.75 and takes 13.333334 ms, up to the next ns. By then the iGPU
 * has done 13.333334 x 45 / 80 = 7.5 of 20 ms. Alone it has its full 80: 12.5 ms more, so
 * 25.833334. */
START_TEST(kappa_caps_two_engines_and_frees_the_last_one)
{
    sc.machine.ddr_cap_frac = 0.9;
    scenario_cost(&sc, NPU, OP_QKV, 10, 0, 60);
    scenario_cost(&sc, IGPU, OP_QKV, 20, 0, 80);
    struct scenario_request q[] = {{RT, 0, 16, 1, 0, 0}, {BE, 0, 16, 1, 0, 0}};
    run(&placer_ops, q, 2);
    ck_assert_int_le(llabs(sc.records[0].finish_ns - 13333337), 1); /* with three kernels of 1 ns */
    ck_assert_int_le(llabs(sc.records[1].finish_ns - 25833337), 2);
}
END_TEST

/* One kernel alone draws 120 of 100 GB/s, by a faulty model. The audit must report 1.2 of the
 * capacity, with events for every kernel and without. */
START_TEST(a_kernel_that_draws_more_than_the_ddr_has_fails_the_audit)
{
    for (int collapse = 0; collapse < 2; collapse++) {
        sc.setup.collapse = collapse == 1;
        scenario_cost(&sc, IGPU, OP_QKV, 10, 0, 120);
        struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
        scenario_policy(&sc, &placer_ops, "");
        ck_assert_int_eq(scenario_run(&sc, q, 1, false), -EPROTO);
        ck_assert(!sc.result.audit.clean);
        ck_assert_double_eq_tol(sc.result.audit.ddr_max_over_capacity, 1.2, 1e-6);
        scenario_fini(&sc);
        setup();
    }
}
END_TEST

/* With odd seeds the kernel of 10 ms only computes, and more than 5 of these 20 noises make it
 * shorter. With even seeds it draws all that the DDR has. Then its bytes alone need the 10 ms, so
 * no noise may make it shorter. */
START_TEST(noise_moves_no_bytes_faster_than_the_ddr)
{
    int shorter[2] = {0, 0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        setup();
        sc.setup.seed = seed;
        sc.setup.truth_sigma = 1.0;
        scenario_cost(&sc, IGPU, OP_QKV, 10, 0, seed % 2 == 0 ? 100 : 0);
        struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
        run(&placer_ops, q, 1);
        shorter[seed % 2] += sc.records[0].finish_ns < MS(10) ? 1 : 0;
        scenario_fini(&sc);
    }
    setup();
    ck_assert_int_gt(shorter[1], 5);
    ck_assert_int_eq(shorter[0], 0);
}
END_TEST

/* The host's costs come before the kernels of 10 ms: 1 ms to schedule, 2 to submit, 3 to complete.
 * That is 16 ms in all. The device draws 20 W for 10 ms of prefill, and the platform 5 W for 16 ms:
 * 0.2 + 0.08 = 0.28 J. */
START_TEST(host_costs_come_first_and_energy_is_their_integral)
{
    sc.machine.schedule_ns = MS(1);
    sc.machine.devices[IGPU].submit_ns = MS(2);
    sc.machine.devices[IGPU].completion_ns = MS(3);
    scenario_cost(&sc, IGPU, OP_QKV, 10 - 3e-6, 0, 0);
    struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0}};
    run(&placer_ops, q, 1);
    ck_assert_int_eq(sc.records[0].finish_ns, MS(16));
    ck_assert_double_eq_tol(sc.result.audit.energy_integral_j, 0.28, 1e-12);
}
END_TEST

/* A session has two turns. The first one has 40 tokens and one output, which computes no KV, so it
 * leaves 40 tokens. The second one has 60 tokens and begins with these 40. So it computes 20 rows
 * instead of 60, at 1 ms a row. */
START_TEST(a_session_reuses_the_prefix_it_left_in_the_cache)
{
    scenario_cost(&sc, IGPU, OP_QKV, 0, 1, 0);
    struct scenario_request q[] = {{BE, 0, 40, 1, 7, 0}, {BE, 1, 60, 1, 7, 40}};
    run(&placer_ops, q, 2);
    /* The first turn ends at 40 ms and 3 ns. The second arrives 1 s later, and takes 20 ms and 3
     * ns. */
    ck_assert_int_eq(sc.records[0].finish_ns, MS(40) + 3);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1040) + 3 + MS(20) + 3);
    sc.setup.prefix_reuse = false;
    run(&placer_ops, q, 2);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1040) + 3 + MS(60) + 3);
}
END_TEST

/* The memory has 4 blocks of 16 tokens. The session's first turn leaves a cached prefix of 40
 * tokens in 3 of them. Another request of 30 tokens needs 2. So the cached prefix is dropped, and
 * the second turn computes all 60 rows. */
START_TEST(cold_cache_gives_way_to_live_requests)
{
    sc.setup.kv_capacity_tokens = 64;
    scenario_cost(&sc, IGPU, OP_QKV, 0, 1, 0);
    struct scenario_request q[] = {
        {BE, 0, 40, 1, 7, 0}, {BE, 1, 60, 1, 7, 40}, {BE, 0.5, 30, 1, 0, 0}};
    run(&placer_ops, q, 3);
    ck_assert_uint_eq(sc.result.counters[COUNTER_KV_COLD_DROPS], 1);
    ck_assert_int_eq(sc.records[1].finish_ns, MS(1040) + 3 + MS(60) + 3);
    ck_assert_uint_eq(sc.result.kv_peak_tokens, 64);
}
END_TEST

/* The horizon is at 15 ms. Requests take 10 ms each. So the first is done, the second runs, the
 * third is queued and the fourth has not arrived. */
START_TEST(horizon_counts_what_is_left)
{
    sc.setup.horizon_ns = MS(15);
    scenario_cost(&sc, IGPU, OP_QKV, 10 - 3e-6, 0, 0);
    struct scenario_request q[] = {{BE, 0, 16, 1, 0, 0},
                                   {BE, 0.001, 16, 1, 0, 0},
                                   {BE, 0.002, 16, 1, 0, 0},
                                   {BE, 1, 16, 1, 0, 0}};
    run(&placer_ops, q, 4);
    ck_assert_uint_eq(sc.result.audit.finished, 1);
    ck_assert_uint_eq(sc.result.audit.running, 1);
    ck_assert_uint_eq(sc.result.audit.queued, 1);
    ck_assert_uint_eq(sc.result.audit.future, 1);
    ck_assert_int_eq(sc.result.end_ns, MS(15));
}
END_TEST

/* A request that needs more KV than the machine has ends the run with a message, not a hang. */
START_TEST(a_request_that_never_fits_is_an_error)
{
    sc.setup.kv_capacity_tokens = 64;
    sc.setup.policy = &placer_ops;
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0}};
    ck_assert_int_ne(scenario_run(&sc, q, 1, false), 0);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "KV tokens"));
}
END_TEST

/* 16 tokens are less than one block of 256: the message must name the capacity, and no weights.
 * Weights of 2 TB do not fit into 1 TB: this message must name the weights. */
START_TEST(too_little_memory_says_for_what)
{
    struct scenario_request q[] = {{BE, 0, 100, 1, 0, 0}};
    sc.setup.policy = &placer_ops;
    sc.setup.kv_capacity_tokens = 16;
    sc.setup.kv_block_tokens = 256;
    ck_assert_int_eq(scenario_run(&sc, q, 1, false), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "kv_capacity_tokens is 16"));
    ck_assert_ptr_null(strstr(sc.result.message, "weights"));
    scenario_fini(&sc);
    setup();
    sc.setup.policy = &placer_ops;
    sc.llm.weight_bytes = 2e12;
    ck_assert_int_eq(scenario_run(&sc, q, 1, false), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sc.result.message, "weights"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand", .setup = setup, .teardown = teardown),
    TEST(max_min_sharing_gives_simgrids_completion_times),
    TEST(time_shared_device_is_processor_sharing),
    TEST(time_sharing_efficiency_slows_everybody),
    TEST(kappa_caps_two_engines_and_frees_the_last_one),
    TEST(a_kernel_that_draws_more_than_the_ddr_has_fails_the_audit),
    TEST(noise_moves_no_bytes_faster_than_the_ddr),
    TEST(host_costs_come_first_and_energy_is_their_integral),
    TEST(a_session_reuses_the_prefix_it_left_in_the_cache),
    TEST(cold_cache_gives_way_to_live_requests),
    TEST(horizon_counts_what_is_left),
    TEST(a_request_that_never_fits_is_an_error),
    TEST(too_little_memory_says_for_what),
};
SUITE_MAIN("engine", suite)
