/* The clairvoyant reference against a brute force. The brute force tries every order of the
 * jobs. It schedules each order with a loop that shares nothing with the engine, and adds pass
 * times up from the kernel-time model. A search that misses an order, or a policy that does not
 * follow its plan, gives another best. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/compare/clairvoyant.h"
#include "experiments/conformance/randomload.h"
#include "experiments/run/runner.h"
#include "sim/core/core.h"
#include "sim/core/kernels.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/two_models.h"

enum { JOBS = 5, LOADS = 12, MAX_REQUESTS = 20 };

static struct config_options options;
static struct config config;
static struct err err;
static struct trace trace;

static void setup(void)
{
    options = config_options_default();
    options.sets[options.n_sets++] = strdup("sim.contention=none");
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
}

static void teardown(void)
{
    trace_fini(&trace);
    config_fini(&config);
    err_fini(&err);
}

/* Makes jobs whose order matters: long and short ones arrive close together. */
static void make_trace(uint32_t n)
{
    static const struct {
        double arrival_s;
        uint32_t input, output;
    } of[] = {{0, 900, 12}, {0, 40, 3},   {0.1, 300, 30}, {0.4, 80, 8},
              {2, 500, 2},  {2.1, 60, 5}, {2.2, 70, 5}};
    trace_fini(&trace);
    trace = (struct trace){.rows = calloc(n, sizeof *trace.rows), .n = n, .n_first = n};
    for (uint32_t i = 0; i < n; i++) {
        trace.rows[i] = (struct trace_row){.arrival_ns = units_ns_from_s(of[i].arrival_s),
                                           .request_id = 10 * i,
                                           .session_id = i,
                                           .input_tokens = of[i].input,
                                           .output_tokens = of[i].output,
                                           .max_output_tokens = of[i].output,
                                           .next = TRACE_NO_ROW,
                                           .cls = REQUEST_CLASS_PROACTIVE};
    }
}

/* ---- the brute force ---- */

/* Returns the time of one request's pass on one device: host work, layers, head and sampling. */
static int64_t pass_ns(uint8_t device, bool prefill, uint32_t rows, uint64_t context)
{
    const struct machine *m = &config.soc.machine;
    const struct device *d = &m->devices[device];
    struct work_shape w = {.rows = rows,
                           .logit_rows = 1,
                           .sequences = 1,
                           .prefill_rows = prefill ? rows : 0,
                           .attn_pairs = prefill ? (uint64_t)rows * (rows + 1) / 2 : context,
                           .kv_read_tokens = context,
                           .max_context_tokens = (uint32_t)context};
    static const enum op_kind apart[] = {OP_QKV, OP_MHA, OP_FFN};
    static const enum op_kind fused[] = {OP_LAYER};
    int64_t layer = 0;
    struct kernel_run k;
    for (int i = 0; i < (prefill ? 3 : 1); i++) {
        kernel_run_fill(&config.truth.model, &w, prefill ? apart[i] : fused[i], device, 0, rows,
                        d->chunk_rows, 0, &k);
        layer += kernel_run_total_ns(&k);
    }
    kernel_run_fill(&config.truth.model, &w, OP_HEAD, device, 0, 1, d->chunk_rows, 0, &k);
    return m->schedule_ns + d->submit_ns + d->completion_ns + config.llm.n_layers * layer +
           k.last.t_ns + m->sample_ns_per_token;
}

struct job {
    int64_t ready_ns;
    uint32_t produced;
    bool running;
};

/* Returns the sum of completion minus arrival under one order. It goes from instant to instant.
 * At each one, every idle instance takes the first ready job of the order that it can serve. */
static int64_t list_schedule(const uint32_t *order, uint8_t prefill, uint8_t decode)
{
    struct job jobs[JOBS];
    int64_t busy_ns[2] = {0, 0}; /* until when the prefill and the decode instance are busy */
    int64_t total = 0;
    uint32_t left = (uint32_t)trace.n;
    for (uint32_t i = 0; i < trace.n; i++) {
        jobs[i] = (struct job){.ready_ns = trace.rows[i].arrival_ns};
    }
    for (int64_t now = 0; left > 0;) {
        for (uint32_t k = 0; k < trace.n; k++) {
            struct job *j = &jobs[order[k]];
            const struct trace_row *row = &trace.rows[order[k]];
            bool first = j->produced == 0;
            int instance = first || prefill == decode ? 0 : 1;
            if (j->produced == row->output_tokens || j->ready_ns > now || busy_ns[instance] > now) {
                continue;
            }
            int64_t took = first ? pass_ns(prefill, true, row->input_tokens, row->input_tokens)
                                 : pass_ns(decode, false, 1, row->input_tokens + j->produced);
            busy_ns[instance] = j->ready_ns = now + took;
            if (++j->produced == row->output_tokens) {
                total += j->ready_ns - row->arrival_ns;
                left--;
            }
        }
        int64_t next = INT64_MAX;
        for (uint32_t i = 0; i < trace.n; i++) {
            next = jobs[i].ready_ns > now && jobs[i].ready_ns < next ? jobs[i].ready_ns : next;
        }
        now = next;
    }
    return total;
}

static int64_t best_of(uint32_t *order, uint32_t fixed, uint8_t prefill, uint8_t decode)
{
    if (fixed == trace.n) {
        return list_schedule(order, prefill, decode);
    }
    int64_t best = INT64_MAX;
    for (uint32_t i = fixed; i < trace.n; i++) {
        uint32_t x = order[fixed];
        order[fixed] = order[i];
        order[i] = x;
        int64_t got = best_of(order, fixed + 1, prefill, decode);
        best = got < best ? got : best;
        order[i] = order[fixed];
        order[fixed] = x;
    }
    return best;
}

static uint32_t metric_index(const char *name)
{
    uint32_t i = 0;
    while (strcmp(clairvoyant_metrics[i], name) != 0) {
        i++;
    }
    return i;
}

/* Runs every member of a plan, and returns the best value of each metric. */
static struct clairvoyant_best search(const struct clairvoyant_plan *plan)
{
    struct clairvoyant_best best = clairvoyant_nothing();
    uint32_t members = clairvoyant_members(&trace, &best.exhaustive);
    for (uint32_t i = 0; i < members; i++) {
        uint32_t order[CLAIRVOYANT_MAX_JOBS];
        struct clairvoyant_plan member = *plan;
        clairvoyant_member(&trace, i, order, &member);
        struct config_policy p = {.ops = &policy_clairvoyant_ops, .label = "clairvoyant"};
        struct runner_options opt = {.policy_context = &member};
        struct runner_result r;
        struct err e = ERR_INIT;
        double values[CLAIRVOYANT_METRICS];
        ck_assert_int_eq(runner_run(&config, &p, &trace, 1, &opt, &r, &e), 0);
        for (uint32_t m = 0; m < CLAIRVOYANT_METRICS; m++) {
            values[m] = metric_list_find(&r.metrics, clairvoyant_metrics[m])->value;
        }
        clairvoyant_take(&best, values);
        runner_result_fini(&r);
    }
    return best;
}

static void compare_with_brute_force(uint8_t prefill, uint8_t decode)
{
    for (uint32_t n = 1; n <= JOBS; n++) {
        make_trace(n);
        struct clairvoyant_plan plan = {
            .prefill_device = prefill, .decode_device = decode, .max_batch = 1};
        struct clairvoyant_best got = search(&plan);
        uint32_t order[JOBS] = {0, 1, 2, 3, 4};
        uint32_t orders = 1;
        for (uint32_t i = 2; i <= n; i++) {
            orders *= i;
        }
        ck_assert(got.exhaustive);
        ck_assert_uint_eq(got.schedules, orders);
        double want_s = (double)best_of(order, 0, prefill, decode) / 1e9 / n;
        double got_s = got.value[metric_index("all.e2e_s.mean")];
        ck_assert_msg(fabs(got_s - want_s) < 1e-8 * want_s, "%u jobs: %.9f, brute force %.9f", n,
                      got_s, want_s);
    }
}

START_TEST(best_order_on_one_device_is_the_brute_forces)
{
    int igpu = machine_find(&config.soc.machine, DEVICE_KIND_IGPU);
    compare_with_brute_force((uint8_t)igpu, (uint8_t)igpu);
}
END_TEST

START_TEST(best_order_on_two_devices_is_the_brute_forces)
{
    int igpu = machine_find(&config.soc.machine, DEVICE_KIND_IGPU);
    int cpu = machine_find(&config.soc.machine, DEVICE_KIND_CPU);
    compare_with_brute_force((uint8_t)igpu, (uint8_t)cpu);
}
END_TEST

START_TEST(more_than_six_requests_get_the_labelled_heuristic)
{
    make_trace(7);
    struct clairvoyant_plan plans[CLAIRVOYANT_MAX_PLANS];
    ck_assert_uint_gt(clairvoyant_plans(&config.soc.machine, plans), 0);
    struct clairvoyant_best got = search(&plans[0]);
    ck_assert(!got.exhaustive);
    ck_assert_uint_eq(got.schedules, 2);
}
END_TEST

/* The machine has an NPU with static attention, an iGPU and a CPU. Each of the three may
 * prefill, and the last two may decode, each with batches and without. */
START_TEST(every_pair_of_devices_is_a_placement)
{
    struct clairvoyant_plan plans[CLAIRVOYANT_MAX_PLANS];
    ck_assert_uint_eq(clairvoyant_plans(&config.soc.machine, plans), 3 * 2 * 2);
}
END_TEST

/* ---- single schedules, on the toy machine ---- */

static struct scenario sc;
static struct scenario_request q[MAX_REQUESTS];

static void run_plan(const struct clairvoyant_plan *plan, uint32_t n)
{
    sc.setup.policy = &policy_clairvoyant_ops;
    sc.setup.policy_context = plan;
    ck_assert_msg(scenario_run(&sc, q, n, false) == 0, "%s", sc.result.message);
    ck_assert(sc.result.audit.clean);
    ck_assert_uint_eq(sc.result.audit.finished, n);
}

/* A prefill takes 10 ms on the NPU and 5 ms of attention on the iGPU. A decode takes 7 ms on the
 * iGPU, regardless of the batch. Request 0 has 3 tokens and comes first; request 1 has 2.
 *
 *   prefill 0   NPU 0..10, iGPU 10..15
 *   decodes 0   iGPU 15..22 and 22..29
 *   prefill 1   NPU 15..25; nothing is stopped, so its attention waits for the iteration: 29..34
 *   decode 1    iGPU 34..41 */
START_TEST(npu_prefill_shares_the_igpu_with_decode_in_the_order_of_the_plan)
{
    scenario_init(&sc);
    scenario_cost(&sc, NPU, OP_QKV, 10, 0, 0);
    scenario_cost(&sc, IGPU, OP_MHA, 5, 0, 0);
    scenario_cost(&sc, IGPU, OP_LAYER, 7, 0, 0);
    static const uint32_t order[] = {0, 1};
    struct clairvoyant_plan plan = {
        .order = order, .n_order = 2, .prefill_device = NPU, .decode_device = IGPU, .max_batch = 1};
    q[0] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0, 100, 3, 0, 0};
    q[1] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0, 100, 2, 0, 0};
    run_plan(&plan, 2);
    static const double want_ms[2][2] = {{15, 29}, {34, 41}};
    for (int i = 0; i < 2; i++) { /* an op without a cost takes 1 ns */
        ck_assert_double_eq_tol(units_ms_from_ns(sc.records[i].first_token_ns), want_ms[i][0],
                                1e-4);
        ck_assert_double_eq_tol(units_ms_from_ns(sc.records[i].finish_ns), want_ms[i][1], 1e-4);
    }
    scenario_fini(&sc);
}
END_TEST

/* On one device, QKV takes 0.04 ms a row and FFN 2 ms for any number of rows. A prompt of 50
 * rows takes 4 ms. Request 0 comes alone, and takes 0..4 ms. Request 1 is before 0 in the order,
 * and takes 4..8. Then 1 decodes before 2's prompt, and 0 decodes with it. Two rows take 2.08
 * ms, and three tokens 6.24: both end at 14.24 ms. */
START_TEST(a_batch_takes_all_that_decode)
{
    scenario_init(&sc);
    scenario_cost(&sc, IGPU, OP_QKV, 0, 0.04, 0);
    scenario_cost(&sc, IGPU, OP_FFN, 2, 0, 0);
    static const uint32_t order[] = {1, 2, 0};
    struct clairvoyant_plan plan = {.order = order,
                                    .n_order = 3,
                                    .prefill_device = IGPU,
                                    .decode_device = IGPU,
                                    .max_batch = UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        q[i] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, i == 0 ? 0 : 0.001, 50, 4, 0, 0};
    }
    run_plan(&plan, 3);
    double ms = units_ms_from_ns(sc.records[1].finish_ns);
    ck_assert_double_eq_tol(ms, 14.24, 1e-4);
    ck_assert_int_eq(sc.records[0].finish_ns, sc.records[1].finish_ns);
    scenario_fini(&sc);
}
END_TEST

/* Request 1 is of the second model, whose prompt takes 6 ms + 7 ns and whose decodes 6 ms + 1 ns.
 * Request 0 is of the first: 4 ms + 3 ns and 4 ms + 1 ns. 1 comes first, and its prompt ends at
 * 6 ms + 7 ns. 0 is before it in the order, so its prompt and two decodes follow, up to 18 ms +
 * 12 ns. The batch of 0 takes no request of another model: 1 waits, and has its two decodes then.
 */
START_TEST(a_batch_is_of_one_model_and_the_others_wait)
{
    struct two_models two;
    two_models_by_hand(&sc, &two);
    static const uint32_t order[] = {0, 1};
    struct clairvoyant_plan plan = {.order = order,
                                    .n_order = 2,
                                    .prefill_device = IGPU,
                                    .decode_device = IGPU,
                                    .max_batch = UINT32_MAX};
    q[0] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0.001, 50, 3, 0, 0};
    q[1] = (struct scenario_request){REQUEST_CLASS_PROACTIVE, 0, 50, 3, 1, 0};
    sc.setup.policy = &policy_clairvoyant_ops;
    sc.setup.policy_context = &plan;
    ck_assert_msg(two_models_run(&sc, q, (const uint8_t[]){0, 1}, NULL, 2, false) == 0, "%s",
                  sc.result.message);
    ck_assert_int_eq(sc.records[0].finish_ns, 18000012);
    ck_assert_int_eq(sc.records[1].finish_ns, 30000014);
    two_models_fini(&sc);
}
END_TEST

START_TEST(every_plan_serves_every_request_on_random_machines)
{
    for (uint64_t seed = 1; seed <= LOADS; seed++) {
        uint32_t n = randomload_make(&sc, q, MAX_REQUESTS, seed);
        struct clairvoyant_plan plans[CLAIRVOYANT_MAX_PLANS];
        uint32_t n_plans = clairvoyant_plans(&sc.machine, plans);
        for (uint32_t i = 0; i < n_plans; i++) {
            plans[i].reactive_first = (seed + i) % 2 == 0;
            run_plan(&plans[i], n);
        }
        scenario_fini(&sc);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("search", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(best_order_on_one_device_is_the_brute_forces),
    TEST(best_order_on_two_devices_is_the_brute_forces),
    TEST(more_than_six_requests_get_the_labelled_heuristic),
    TEST(every_pair_of_devices_is_a_placement),
    CASE("schedules", .timeout_s = 60),
    TEST(npu_prefill_shares_the_igpu_with_decode_in_the_order_of_the_plan),
    TEST(a_batch_takes_all_that_decode),
    TEST(a_batch_is_of_one_model_and_the_others_wait),
    TEST(every_plan_serves_every_request_on_random_machines),
};
SUITE_MAIN("clairvoyant", suite)
