/* `oracle-lb`, the lower bound of the machine. First come cases in which a hand can compute the
 * bound, and one in which a policy attains it. Last comes the property that makes it a bound: no
 * policy on any machine has a latency or a makespan below it. */
#include <math.h>
#include <string.h>

#include "experiments/compare/bound.h"
#include "experiments/conformance/randomload.h"
#include "experiments/run/runner.h"
#include "hwmodels/speculation.h"
#include "policies/registry.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"

enum { LOADS = 25, MAX_REQUESTS = 20 };

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

static struct trace_row row_of(uint32_t input, uint32_t output, uint32_t prefix)
{
    return (struct trace_row){.input_tokens = input,
                              .output_tokens = output,
                              .prefix_tokens = prefix,
                              .next = TRACE_NO_ROW};
}

static void near(double got, double want)
{
    ck_assert_msg(fabs(got - want) <= 1e-6 * want, "%.9g, expected %.9g", got, want);
}

/* The toy machine with its iGPU only. Its kernels take these ms:
 *
 *   QKV           1 + 0.01 a row
 *   attention     2 + 0.0001 a pair
 *   FFN           3 + 0.02 a row
 *   head          4
 *   fused layer   5 + 0.03 a row + 0.0001 a pair */
static void one_device(void)
{
    scenario_init(&sc);
    sc.machine.devices[0] = sc.machine.devices[IGPU];
    sc.machine.devices[0].index = 0;
    sc.machine.n_devices = 1;
    scenario_cost(&sc, 0, OP_QKV, 1, 0.01, 1);
    scenario_cost(&sc, 0, OP_MHA, 2, 0, 1);
    scenario_cost(&sc, 0, OP_FFN, 3, 0.02, 1);
    scenario_cost(&sc, 0, OP_HEAD, 4, 0, 1);
    scenario_cost(&sc, 0, OP_LAYER, 5, 0.03, 1);
    sc.attention_ms_per_pair[0] = 1e-4;
    sc.llm.n_layers = 2;
}

/* The prefill has 100 rows and 100 * 101 / 2 = 5050 pairs. It takes 2 layers * (1 + 1 + 2 +
 * 0.505 + 3 + 2) ms and the head's 4, so 23.01 ms.
 *
 * Two tokens come after it, at 101 and 102 keys. A layer of three kernels takes 1.01 + 2.0101 +
 * 3.02 ms. Fused it takes less, 5.03 + 0.0101 or 0.0102. So both take 2 * (5.0401 + 5.0402) + 2
 * * 4 = 28.1606 ms. A bound that takes the dearer of the two fails. */
START_TEST(one_request_on_one_device_is_bounded_by_its_kernels)
{
    one_device();
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    struct trace_row row = row_of(100, 3, 0);
    struct bound_latency l = bound_request(&b, &row);
    near(l.ttft_s, 23.01e-3);
    near(l.e2e_s, 51.1706e-3);
}
END_TEST

/* fcfs runs a whole prompt as one pass, and decodes without batching. Alone on one device it
 * does nothing that could be left out. So it attains the bound, up to the rounding that the
 * bound allows for. A bound that forgets the host's work or the sampling fails here. */
START_TEST(a_lone_request_under_fcfs_attains_the_bound)
{
    one_device();
    sc.machine.schedule_ns = 3000;
    sc.machine.devices[0].submit_ns = 7000;
    sc.machine.sample_ns_per_token = 90000;
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    scenario_policy(&sc, policy_find("fcfs"), "");
    struct scenario_request one = {REQUEST_CLASS_REACTIVE, 0.5, 100, 3, 0, 0};
    ck_assert_int_eq(scenario_run(&sc, &one, 1, false), 0);
    const struct scenario_record *r = &sc.records[0];
    struct bound_latency l = bound_request(&b, &sc.trace.rows[0]);
    near(units_s_from_ns(r->first_token_ns - r->arrival_ns), l.ttft_s);
    near(units_s_from_ns(r->finish_ns - r->arrival_ns), l.e2e_s);
    scenario_fini(&sc);
}
END_TEST

/* Two devices compute only: one takes 1 ms + 10 us a row, the other 1 ms + 30 us a row. In a
 * time T both compute (T - 1 ms) (1/10 us + 1/30 us) rows. So 400 rows of one layer's QKV need T
 * = 1 ms + 400 * 7.5 us = 4 ms. */
START_TEST(rows_are_split_over_all_devices_in_proportion_to_their_rates)
{
    scenario_init(&sc);
    sc.machine.n_devices = 2;
    scenario_cost(&sc, 0, OP_QKV, 1, 0.01, 1);
    scenario_cost(&sc, 1, OP_QKV, 1, 0.03, 1);
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    struct trace_row row = row_of(400, 1, 0);
    double rest_s = 3e-9; /* the other ops take nothing, rounded up to 1 ns */
    ck_assert_double_eq_tol(bound_request(&b, &row).ttft_s, 4e-3, rest_s);
}
END_TEST

/* A kernel of many rows takes 100 ms, and one of a single row 1 ms. Ten rows one after the other
 * take 10 ms. */
static void single_rows_floor(const struct hwmodel *m, uint8_t device, enum op_kind op,
                              bool one_row, struct kernel_floor *out)
{
    (void)m;
    (void)device;
    *out = (struct kernel_floor){.rows_min = 1.0, .bytes_per_s = HUGE_VAL};
    if (op == OP_FFN) {
        out->fixed_s = one_row ? 1e-3 : 0.1;
        out->row_s = 1e-9;
    }
}

START_TEST(single_rows_come_one_after_the_other)
{
    one_device();
    struct hwmodel_ops ops = *sc.model.ops;
    ops.floor = single_rows_floor;
    sc.model.ops = &ops;
    sc.llm.n_layers = 1;
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    struct trace_row row = row_of(10, 1, 0);
    ck_assert_double_eq_tol(bound_request(&b, &row).ttft_s, 10e-3, 1e-6);
}
END_TEST

/* The FFN moves 1 GB of weights, on two devices with 40 GB/s each and no compute. One kernel
 * takes 25 ms, shared or not.
 *
 * With 50 kB a row, 20000 rows move another 1 GB. One device takes 50 ms for both. Two devices
 * that share nothing take 25 + 12.5 = 37.5 ms. Over a DDR of 44 GB/s they take 2 / 44 = 45.5 ms. */
static void memory_floor(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                         struct kernel_floor *out)
{
    (void)m;
    (void)device;
    (void)one_row;
    *out = (struct kernel_floor){.rows_min = 1.0, .bytes_per_s = 1e9};
    if (op == OP_FFN) {
        *out = (struct kernel_floor){
            .rows_min = 1.0, .bytes = 1e9, .row_bytes = 5e4, .bytes_per_s = 40e9};
    }
}

START_TEST(shared_bandwidth_bounds_what_two_devices_read_together)
{
    static const struct {
        const char *contention;
        double peak, want_s;
    } cases[] = {{"none", 44e9, 37.5e-3}, {"max-min", 44e9, 2.0 / 44}, {"max-min", 90e9, 37.5e-3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scenario_init(&sc);
        struct hwmodel_ops ops = *sc.model.ops;
        ops.floor = memory_floor;
        sc.model.ops = &ops;
        sc.machine.n_devices = 2;
        sc.machine.ddr_peak_bytes_per_s = cases[i].peak;
        sc.setup.contention = contention_find(cases[i].contention);
        struct bound b;
        ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
        struct trace_row row = row_of(20000, 1, 0);
        near(bound_request(&b, &row).ttft_s, cases[i].want_s);
    }
}
END_TEST

/* A prefix of 300 of 400 tokens leaves 100 rows, and 400 * 401 / 2 - 300 * 301 / 2 = 35050
 * pairs. The last token of a prompt is computed in any case: a prefix of 400 leaves one row of
 * 400 pairs. Without reuse it leaves all 400 rows and 80200 pairs. */
START_TEST(a_cached_prefix_is_not_counted_but_the_last_token_always_is)
{
    one_device();
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    struct trace_row row = row_of(400, 1, 300);
    near(bound_request(&b, &row).ttft_s, (2 * (1 + 1 + 2 + 3.505 + 3 + 2) + 4) * 1e-3);
    row = row_of(400, 1, 400);
    near(bound_request(&b, &row).ttft_s, (2 * (1.01 + 2 + 0.04 + 3.02) + 4) * 1e-3);
    sc.setup.prefix_reuse = false;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    near(bound_request(&b, &row).ttft_s, (2 * (1 + 4 + 2 + 8.02 + 3 + 8) + 4) * 1e-3);
}
END_TEST

/* A pass gives up to 3 tokens here. So 7 tokens after the first need 3 passes, behind 101, 102
 * and 103 keys. */
START_TEST(a_drafter_shortens_the_bound_to_its_longest_draft)
{
    one_device();
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    b.tokens_per_pass = 3;
    struct trace_row row = row_of(100, 8, 0);
    struct bound_latency l = bound_request(&b, &row);
    near(l.e2e_s - l.ttft_s, 3 * 4e-3 + 2 * (3 * 5.03 + 0.0101 + 0.0102 + 0.0103) * 1e-3);
}
END_TEST

static double makespan_of(struct bound *b, const struct scenario_request *r, uint32_t n,
                          enum bound_by by)
{
    scenario_policy(&sc, policy_find("fcfs"), "");
    ck_assert_int_eq(scenario_run(&sc, r, n, false), 0);
    ck_assert_int_eq(bound_init(b, &sc.setup), 0);
    struct bound_workload w;
    bound_trace(b, &sc.trace, &w);
    ck_assert_str_eq(bound_by_names[w.by], bound_by_names[by]);
    near(w.throughput_req_per_min, n / w.makespan_s * 60);
    scenario_fini(&sc);
    return w.makespan_s;
}

/* A session of two turns, 5 s apart, arrives at 1 s. Its first turn takes 23.01 ms. Nothing of
 * it can be reused, so the second takes 23.01 ms again: 5.04602 s in all. */
START_TEST(a_session_takes_its_turns_and_gaps)
{
    one_device();
    static const struct scenario_request two[] = {{REQUEST_CLASS_REACTIVE, 1, 100, 1, 7, 0},
                                                  {REQUEST_CLASS_REACTIVE, 5, 100, 1, 7, 0}};
    struct bound b;
    near(makespan_of(&b, two, 2, BOUND_BY_PATH), 5.04602);
}
END_TEST

/* Ten prompts of 1000 rows arrive at 0 and ten at 1 s. Each computes 2 layers * (0.03 ms a row +
 * 0.1 us a pair, of 500500 pairs) = 160.1 ms. Launches and the head's 4 ms can overlap with
 * other requests or be shared in a batch, so only compute counts. The bound is max(20 * 160.1,
 * 1000 + 10 * 160.1) = 3202 ms. */
START_TEST(more_work_than_time_is_bounded_by_compute)
{
    one_device();
    struct scenario_request r[20];
    for (int i = 0; i < 20; i++) {
        r[i] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, i < 10 ? 0 : 1, 1000, 1, 0, 0};
    }
    struct bound b;
    near(makespan_of(&b, r, 20, BOUND_BY_COMPUTE), 3.202);
}
END_TEST

/* Returns the bound of `n` requests, of which the last `later` arrive at 1 s and the others at
 * 0. */
static struct bound_workload workload_of(const struct bound *b, uint32_t n, uint32_t input,
                                         uint32_t output, uint32_t later)
{
    static struct trace_row rows[MAX_REQUESTS];
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = row_of(input, output, 0);
        rows[i].request_id = i;
        rows[i].arrival_ns = i < n - later ? 0 : NS_PER_S;
    }
    struct trace t = {.rows = rows, .n = n, .n_first = n};
    struct bound_workload w;
    bound_trace(b, &t, &w);
    return w;
}

/* The head takes 4 ms and 0.5 ms a row. Ten requests of 1000 rows and 3 tokens pass it three
 * times each. Each computes 2 layers * (0.03 ms * 1002 rows + 0.1 us * (500500 + 1001 + 1002
 * pairs)) = 160.6206 ms. With 3 * 0.5 ms of head that is 162.1206 ms each. */
START_TEST(every_token_passes_the_head)
{
    one_device();
    scenario_cost(&sc, 0, OP_HEAD, 4, 0.5, 1);
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    struct bound_workload w = workload_of(&b, 10, 1000, 3, 0);
    ck_assert_str_eq(bound_by_names[w.by], "compute");
    near(w.makespan_s, 1.621206);
}
END_TEST

/* A pass gives up to 3 tokens here. The 6 tokens after the first are 6 rows in 2 passes, behind
 * 1001 and 1002 keys. Each request computes 2 layers * (0.03 ms * 1006 rows + 0.1 us * (500500 +
 * 2003 pairs)) = 160.8606 ms. With 3 passes of the head, of 0.5 ms each, that is 162.3606 ms. */
START_TEST(drafted_tokens_are_rows_of_fewer_passes)
{
    one_device();
    scenario_cost(&sc, 0, OP_HEAD, 4, 0.5, 1);
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    ck_assert_uint_eq(b.tokens_per_pass, 1);
    b.tokens_per_pass = 3;
    struct bound_workload w = workload_of(&b, 10, 1000, 7, 0);
    ck_assert_str_eq(bound_by_names[w.by], "compute");
    near(w.makespan_s, 1.623606);
}
END_TEST

/* A drafter that drafts nothing leaves one token a pass. Where two classes have drafts of
 * different lengths, the longer one counts. */
START_TEST(the_longest_draft_of_a_run_counts)
{
    struct speculation_model models[2] = {{.max_draft_tokens = 0}, {.max_draft_tokens = 4}};
    struct speculation_run run = {.by_class = {&models[0], NULL}};
    struct bound b;
    one_device();
    sc.setup.draft = speculation_run_draft;
    sc.setup.speculation_params = &run;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    ck_assert_uint_eq(b.tokens_per_pass, 1);
    run.by_class[1] = &models[1];
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    ck_assert_uint_eq(b.tokens_per_pass, 5);
    run.by_class[0] = &models[1];
    run.by_class[1] = &models[0];
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    ck_assert_uint_eq(b.tokens_per_pass, 5);
}
END_TEST

/* Kernels that move bytes only. They do so at 40 GB/s, those of one row at 30 GB/s. */
static void moving_floor(const struct hwmodel *m, uint8_t device, enum op_kind op, bool one_row,
                         struct kernel_floor *out)
{
    static const double bytes[OP_KIND_COUNT] = {
        [OP_QKV] = 1e9, [OP_MHA] = 0.5e9, [OP_FFN] = 2e9, [OP_HEAD] = 0.25e9, [OP_LAYER] = 3e9};
    static const double row[OP_KIND_COUNT] = {
        [OP_QKV] = 1e5, [OP_MHA] = 2e5, [OP_FFN] = 3e5, [OP_LAYER] = 7e5};
    static const double key[OP_KIND_COUNT] = {[OP_MHA] = 1e4, [OP_LAYER] = 2e4};
    (void)m;
    (void)device;
    *out = (struct kernel_floor){.rows_min = 1.0,
                                 .bytes = bytes[op],
                                 .row_bytes = row[op],
                                 .key_bytes = key[op],
                                 .bytes_per_s = one_row ? 30e9 : 40e9};
}

/* Ten requests have 1000 rows and 3 tokens each. Each of their 1002 rows moves 2 * (1e5 + 2e5 +
 * 3e5) bytes, and each of the 1000 + 1001 + 1002 keys 2 * 1e4: 12.6246 GB. Three passes read the
 * weights once for all ten. A pass reads 2 * 3 GB (fused; 3.5 GB apart) and 0.25 GB of head, so
 * three read 18.75 GB. Together that is 31.3746 GB.
 *
 * One device draws its 40 GB/s, though the DDR is said to have 35. Two draw 80, where the DDR
 * has 50. With half of the requests at 1 s, the bound is 1 s and the time for 18.75 + 6.3123 GB. */
START_TEST(more_traffic_than_bandwidth_is_bounded_by_memory)
{
    static const struct {
        uint32_t devices, later;
        double peak, want_s;
    } cases[] = {
        {1, 0, 35e9, 31.3746 / 40}, {2, 0, 50e9, 31.3746 / 50}, {1, 5, 35e9, 1 + 25.0623 / 40}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        one_device();
        struct hwmodel_ops ops = *sc.model.ops;
        ops.floor = moving_floor;
        sc.model.ops = &ops;
        sc.machine.n_devices = cases[i].devices;
        sc.machine.ddr_peak_bytes_per_s = cases[i].peak;
        sc.setup.contention = contention_find("max-min");
        struct bound b;
        ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
        struct bound_workload w = workload_of(&b, 10, 1000, 3, cases[i].later);
        ck_assert_str_eq(bound_by_names[w.by], "memory");
        near(w.makespan_s, cases[i].want_s);
    }
}
END_TEST

/* Whoever moves bytes by itself gets what it draws: kernels, loads, KV on its way to flash, and
 * frames of the display. So the memory carries at least the most of these, and no less than its own
 * share of the peak. */
START_TEST(the_memory_carries_what_anything_draws_alone)
{
    for (int most = 0; most < 5; most++) {
        one_device();
        struct hwmodel_ops ops = *sc.model.ops;
        ops.floor = moving_floor;
        sc.model.ops = &ops;
        sc.setup.contention = contention_find("max-min");
        sc.machine.ddr_cap_frac = 0.8;
        sc.machine.ddr_peak_bytes_per_s = most == 0 ? 100e9 : 10e9; /* 80 or 8 GB/s */
        sc.machine.loader_bytes_per_s = most == 1 ? 70e9 : 1e9;
        sc.machine.swap_bytes_per_s = most == 2 ? 60e9 : 2e9;
        sc.setup.frames.per_s = 60.0;
        sc.setup.frames.device_ns = MS(2);
        sc.setup.frames.bytes = most == 3 ? 100e6 : 1e6; /* 50 or 0.5 GB/s */
        struct bound b;
        ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
        static const double want[] = {80e9, 70e9, 60e9, 50e9, 40e9};
        near(b.ddr_bytes_per_s, want[most]);
    }
}
END_TEST

/* The requests of the test above have 7 tokens, and a pass gives up to 3. Each of 1006 rows
 * moves 6e5 bytes in each of 2 layers, and each of 1000 + 1001 + 1002 keys 2 * 1e4. The 3 passes
 * are those of the test above. So 18.75 + 12.072 + 0.6006 GB move. */
START_TEST(drafted_tokens_move_bytes_by_rows)
{
    one_device();
    struct hwmodel_ops ops = *sc.model.ops;
    ops.floor = moving_floor;
    sc.model.ops = &ops;
    sc.machine.ddr_peak_bytes_per_s = 35e9;
    sc.setup.contention = contention_find("max-min");
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    b.tokens_per_pass = 3;
    struct bound_workload w = workload_of(&b, 10, 1000, 7, 0);
    ck_assert_str_eq(bound_by_names[w.by], "memory");
    near(w.makespan_s, 31.4226 / 40);
}
END_TEST

START_TEST(random_kernel_times_have_no_bound)
{
    one_device();
    sc.setup.truth_sigma = 0.1;
    struct bound b;
    ck_assert_int_eq(bound_init(&b, &sc.setup), -EINVAL);
}
END_TEST

/* ---- no run is below the bound ---- */

static void check_records(const struct policy_ops *ops, uint64_t seed)
{
    struct bound b;
    struct bound_workload w;
    ck_assert_int_eq(bound_init(&b, &sc.setup), 0);
    bound_trace(&b, &sc.trace, &w);
    int64_t first_ns = INT64_MAX;
    int64_t last_ns = 0;
    for (size_t i = 0; i < sc.trace.n; i++) {
        const struct trace_row *row = &sc.trace.rows[i];
        const struct scenario_record *r = &sc.records[row->request_id];
        struct bound_latency l = bound_request(&b, row);
        double ttft_s = units_s_from_ns(r->first_token_ns - r->arrival_ns);
        double e2e_s = units_s_from_ns(r->finish_ns - r->arrival_ns);
        ck_assert_msg(ttft_s >= l.ttft_s && e2e_s >= l.e2e_s,
                      "%s, load %llu, request %u: TTFT %.9g, bound %.9g; E2E %.9g, bound %.9g",
                      ops->name, (unsigned long long)seed, row->request_id, ttft_s, l.ttft_s, e2e_s,
                      l.e2e_s);
        first_ns = r->arrival_ns < first_ns ? r->arrival_ns : first_ns;
        last_ns = r->finish_ns > last_ns ? r->finish_ns : last_ns;
    }
    double makespan_s = units_s_from_ns(last_ns - first_ns);
    ck_assert_msg(makespan_s >= w.makespan_s, "%s, load %llu: makespan %.9g, bound %.9g (%s)",
                  ops->name, (unsigned long long)seed, makespan_s, w.makespan_s,
                  bound_by_names[w.by]);
}

START_TEST(no_policy_beats_it_on_random_toy_machines)
{
    size_t n_policies;
    const struct policy_ops *ops = policy_list(&n_policies)[_i];
    uint32_t runs = 0;
    for (uint64_t seed = 1; seed <= LOADS; seed++) {
        uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
        sc.setup.truth_sigma = 0.0;
        if (strcmp(ops->name, "sd-npu") == 0) {
            sc.machine.devices[NPU].static_attention = false; /* its graphs hold the attention */
            sc.llm.n_layers = 6;
        }
        scenario_policy(&sc, ops, "");
        if (scenario_run(&sc, q, n, false) == 0) {
            check_records(ops, seed);
            runs++;
        }
        scenario_fini(&sc);
    }
    ck_assert_uint_eq(runs, LOADS);
}
END_TEST

/* Shipped machines, with four kernel-time models, four contention models, offloaded nonlinear
 * operators and drafts. */
static const struct {
    const char *soc, *llm, *sets[3];
} machines[] = {
    {"core-ultra-5-125h", "llama-3.2-3b", {"sim.hwmodel=extended", "sim.contention=max-min", NULL}},
    {"core-ultra-5-125h", "llama-3.2-3b", {"sim.hwmodel=p-norm", "sim.contention=latency", NULL}},
    {"core-ultra-7-258v", "llama-3.1-8b", {"sim.hwmodel=table", "sim.contention=none", NULL}},
    {"core-ultra-5-125h", "gpt-oss-20b", {"sim.hwmodel=extended", "sim.contention=pccs", NULL}},
    {"snapdragon-8elite",
     "qwen2.5-1.5b",
     {"sim.hwmodel=roofline", "sim.nonlinear=offload", "sim.speculation.method=sam"}},
};

static void run_machine(size_t k, const struct policy_ops *ops, uint32_t *runs)
{
    struct config_options o = config_options_default();
    o.soc = machines[k].soc;
    o.llm = machines[k].llm;
    o.workload = "mixed:reactive_per_min=20,proactive_per_min=30,duration_s=15,output_scale=0.3";
    for (int i = 0; i < 3 && machines[k].sets[i] != NULL; i++) {
        o.sets[o.n_sets++] = machines[k].sets[i];
    }
    struct err e = ERR_INIT;
    static struct config c;
    struct config_policy p;
    struct trace t = {0};
    struct bound b;
    ck_assert_msg(config_load(&c, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_int_eq(config_policy_parse(&p, ops->name, &e), 0);
    ck_assert_int_eq(config_trace(&o, 5, CONFIG_AS_WRITTEN, &t, &e), 0);
    ck_assert_int_eq(bound_of_config(&b, &c, &p), 0);
    struct bound_workload w;
    bound_trace(&b, &t, &w);
    struct runner_options opt = {0};
    struct runner_result r;
    if (runner_run(&c, &p, &t, 5, &opt, &r, &e) == 0 && r.sim.audit.finished == t.n) {
        (*runs)++;
        for (size_t i = 0; i < r.metrics.n; i++) {
            double bound = bound_metric(&w, r.metrics.v[i].name);
            bool most = strstr(r.metrics.v[i].name, "throughput") != NULL;
            double got = r.metrics.v[i].value;
            ck_assert_msg(isnan(bound) || isnan(got) || (most ? got <= bound : got >= bound),
                          "%s on %s: %s is %.9g, bound %.9g", ops->name, machines[k].soc,
                          r.metrics.v[i].name, got, bound);
        }
    }
    runner_result_fini(&r);
    trace_fini(&t);
    config_fini(&c);
    err_fini(&e);
}

START_TEST(no_policy_beats_it_on_shipped_machines)
{
    size_t n_policies;
    const struct policy_ops *ops = policy_list(&n_policies)[_i];
    uint32_t runs = 0;
    for (size_t k = 0; k < sizeof machines / sizeof machines[0]; k++) {
        run_machine(k, ops, &runs);
    }
    /* sd-npu needs static shapes that only the phone has */
    ck_assert_uint_eq(runs,
                      strcmp(ops->name, "sd-npu") == 0 ? 1 : sizeof machines / sizeof *machines);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("by hand"),
    TEST(one_request_on_one_device_is_bounded_by_its_kernels),
    TEST(a_lone_request_under_fcfs_attains_the_bound),
    TEST(rows_are_split_over_all_devices_in_proportion_to_their_rates),
    TEST(single_rows_come_one_after_the_other),
    TEST(shared_bandwidth_bounds_what_two_devices_read_together),
    TEST(a_cached_prefix_is_not_counted_but_the_last_token_always_is),
    TEST(a_drafter_shortens_the_bound_to_its_longest_draft),
    TEST(a_session_takes_its_turns_and_gaps),
    TEST(more_work_than_time_is_bounded_by_compute),
    TEST(every_token_passes_the_head),
    TEST(drafted_tokens_are_rows_of_fewer_passes),
    TEST(the_longest_draft_of_a_run_counts),
    TEST(more_traffic_than_bandwidth_is_bounded_by_memory),
    TEST(the_memory_carries_what_anything_draws_alone),
    TEST(drafted_tokens_move_bytes_by_rows),
    TEST(random_kernel_times_have_no_bound),
    CASE("all policies", .timeout_s = 120),
    LOOP_OVER(no_policy_beats_it_on_random_toy_machines, suite_policies),
    LOOP_OVER(no_policy_beats_it_on_shipped_machines, suite_policies),
};
SUITE_MAIN("bounds", suite)
