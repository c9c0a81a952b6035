/* oracle-lb: cases where it can be computed by hand and attained, and the property that makes it a
 * bound: nothing that any policy does on any machine comes out below it. */
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

/* The toy machine with its iGPU only; QKV 1 ms + 0.01 ms a row, attention 2 ms + 0.1 us a pair, FFN
 * 3 ms + 0.02 ms a row, head 4 ms, a fused layer 5 ms + 0.1 us a pair + 0.03 ms. */
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

/* Prefill of 100 rows, 100 * 101 / 2 = 5050 pairs: 2 layers * (1 + 1 + 2 + 0.505 + 3 + 2) ms + head
 * 4 = 23.01 ms. Then two tokens at 101 and 102 keys: apart a layer takes 1.01 + 2.0101 + 3.02 ms,
 * fused 5.03 + 0.0101 (0.0102): 2 * (5.0401 + 5.0402) + 2 * 4 = 28.1606 ms. */
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

/* fcfs runs a whole prompt as one pass and decodes without batching: alone on one device it does
 * nothing that could be left out, so it attains the bound (to the rounding the bound allows for).
 */
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

/* Two devices that compute only: 1 ms + 10 us a row and 1 ms + 30 us a row. In T they get through
 * (T - 1 ms) (1/10 us + 1/30 us); 400 rows need T = 1 + 400 * 7.5 us = 4 ms, one layer of QKV
 * alone.
 */
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

/* A kernel of many rows takes 100 ms, one of a single row 1 ms: ten rows, one after the other, 10
 * ms. */
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

/* A model whose FFN moves 1 GB of weights, on two devices with 40 GB/s each and no compute: one
 * kernel takes 25 ms, shared or not. With 50 kB a row, 20000 rows move another 1 GB: 50 ms on one
 * device; 25 + 12.5 = 37.5 ms on two that share nothing; over a DDR of 44 GB/s, 2 / 44 = 45.5 ms.
 */
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

/* 300 reused of 400 leave 100 rows; pairs 400 * 401 / 2 - 300 * 301 / 2 = 35050; the last prompt
 * token is computed in any case. */
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

/* Up to 3 tokens a pass: 7 tokens after the first need 3 passes, behind 101, 102 and 103 keys. */
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

/* A session of two turns, 5 s apart, arriving at 1 s: 23.01 ms + 5 s + the second turn's
 * TTFT, 23.01 ms again (nothing reusable). */
START_TEST(a_session_takes_its_turns_and_gaps)
{
    one_device();
    static const struct scenario_request two[] = {{REQUEST_CLASS_REACTIVE, 1, 100, 1, 7, 0},
                                                  {REQUEST_CLASS_REACTIVE, 5, 100, 1, 7, 0}};
    struct bound b;
    near(makespan_of(&b, two, 2, BOUND_BY_PATH), 5.04602);
}
END_TEST

/* Ten prompts of 1000 rows at 0 and ten at 1 s, compute 2 layers * (0.03 ms a row + 0.1 us a pair,
 * 500500 pairs) = 160.1 ms each; launches and the head's 4 ms of other requests can overlap or be
 * shared by a batch, so only compute counts: max(20 * 160.1, 1000 + 10 * 160.1) = 3202 ms. */
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

/* The bound of requests that all arrive at 0, or half of them at 1 s. */
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

/* A head of 4 ms and 0.5 ms a row: ten requests of 1000 rows and 3 tokens, which pass the head
 * three times each. 2 layers * (0.03 ms * 1002 rows + 0.1 us * (500500 + 1001 + 1002 pairs)) =
 * 160.6206 ms, and 3 * 0.5: 162.1206 ms each. */
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

/* Up to 3 tokens a pass: the 6 tokens after the first are 6 rows in 2 passes, behind 1001 and 1002
 * keys. 2 layers * (0.03 ms * 1006 rows + 0.1 us * (500500 + 2003 pairs)) = 160.8606 ms, and 3
 * passes of the head: 162.3606 ms each. */
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

/* A drafter that drafts nothing leaves a token a pass; of two lengths the longer counts. */
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

/* Kernels that move bytes only, at 40 GB/s, one-row kernels at 30 GB/s. */
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

/* Ten requests of 1000 rows and 3 tokens: 2 * (1e5 + 2e5 + 3e5) bytes for each of 1002 rows, 2 *
 * 1e4 for each of 1000 + 1001 + 1002 keys: 12.6246 GB. Three passes for all of them read 2 * 3 GB
 * (fused, 3.5 GB apart) and 0.25 GB each: 18.75 GB. Together 31.3746 GB. A device alone draws its
 * 40 GB/s, though the DDR is said to have 35; two draw 80 where the DDR has 50. With half of them
 * at 1 s: 1 s and 18.75 + 6.3123 GB. */
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

/* As above, with 7 tokens of which 3 are drafted a pass: 6e5 bytes in 2 layers for each of 1006
 * rows, 2 * 1e4 for each of 1000 + 1001 + 1002 keys, and the same 3 passes: 18.75 + 12.072 + 0.6006
 * GB. */
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

/* ---- nothing is below it ---- */

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

/* Shipped machines, every form of kernel time and of contention, batching and drafts. */
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
    TEST(drafted_tokens_move_bytes_by_rows),
    TEST(random_kernel_times_have_no_bound),
    CASE("all policies", .timeout_s = 120),
    LOOP_OVER(no_policy_beats_it_on_random_toy_machines, suite_policies),
    LOOP_OVER(no_policy_beats_it_on_shipped_machines, suite_policies),
};
SUITE_MAIN("bounds", suite)
