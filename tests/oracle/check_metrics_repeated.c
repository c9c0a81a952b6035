/* Metrics of passes that the engine repeats by itself (the hook `repeated`), against those of the
 * same passes one by one. Every metric must be equal to the last bit. The loads are quick ones of
 * long answers, with and without work of the host between passes. */
#include <math.h>
#include <string.h>

#include "experiments/conformance/scenario.h"
#include "policies/registry.h"
#include "sim/base/rng.h"
#include "sim/metrics/metrics.h"
#include "tests/helpers/suite.h"

enum { LOADS = 8, REQUESTS = 10 };

static const char *const policies[] = {"vllm-v1", "openvino-cb", "agent-xpu-v2", "edf"};

static struct scenario sc;
static uint64_t n_repeated;

static void on_repeated(void *self, int64_t now_ns, const struct repeat_record *r)
{
    (void)self;
    (void)now_ns;
    n_repeated += r->n;
}

static void prepare(const char *policy, uint64_t seed)
{
    scenario_init(&sc);
    struct machine *m = &sc.machine;
    sc.llm.n_layers = 1 + (uint32_t)(seed % 3);
    scenario_cost(&sc, -1, OP_QKV, 0.3, 0.01, 20);
    scenario_cost(&sc, -1, OP_MHA, 0.2, 0.001, 60);
    scenario_cost(&sc, -1, OP_FFN, 0.4, 0.02, 30 + 10 * (double)(seed % 5));
    scenario_cost(&sc, -1, OP_HEAD, 0.1, 0, 80);
    scenario_cost(&sc, -1, OP_LAYER, 1.0, 0, 20 + 15 * (double)(seed % 4));
    sc.attention_ms_per_pair[IGPU] = 2e-4;
    for (int d = 0; d < 3; d++) {
        m->devices[d].decode_watts = 11.5 + d;
        m->devices[d].prefill_watts = 17.25 + d;
        m->devices[d].idle_watts = 0.7;
        m->devices[d].submit_ns = seed % 2 > 0 ? units_ns_from_us(10) : 0;
        m->devices[d].completion_ns = seed % 4 == 3 ? units_ns_from_us(5) : 0;
    }
    m->schedule_ns = seed % 2 > 0 ? units_ns_from_us(3) : 0;
    m->sample_ns_per_token = seed % 4 >= 2 ? units_ns_from_us(40) : 0;
    m->poll_watts = seed % 4 == 3 ? 2.5 : 0.0;
    m->compile_watts = seed % 4 == 3 ? 12.0 : 0.0; /* without, no device reports that it rests */
    scenario_policy(&sc, policy_find(policy), "");
}

static struct metric_list run(const char *policy, uint64_t seed, bool repeats)
{
    struct scenario_request q[REQUESTS];
    struct rng r;
    double at_s = 0.0;
    rng_init(&r, rng_key(seed, RNG_TEST, 7, 0));
    for (uint32_t i = 0; i < REQUESTS; i++) {
        at_s += rng_exponential(&r, 0.15);
        q[i] =
            (struct scenario_request){rng_below(&r, 2) == 0 ? RT : BE, at_s, 1 + rng_below(&r, 90),
                                      1 + rng_below(&r, 300),          0,    0};
    }
    prepare(policy, seed);
    struct metrics_options o = metrics_options_default();
    o.asked = (struct metrics_asked){.percent = {97.5},
                                     .limit = {0.004, 0.01},
                                     .n_percents = 1,
                                     .n_limits = 2,
                                     .reader = {0.002, 250.0}};
    o.warmup_ns = seed % 3 == 0 ? MS(200) : 0;
    o.range[0][IGPU] =
        (struct metrics_range){.rows_max = 3}; /* the model has the limit of contexts */
    o.meter = (struct metrics_meter){.factor = 1.1, .idle_watts = 4.5};
    for (int d = 0; d < MACHINE_MAX_DEVICES; d++) {
        o.meter.device_watts[0][d] = 9.0 + d;
    }
    struct metrics *m = metrics_new(&o, &sc.machine);
    struct observer counting = {.repeated = on_repeated};
    scenario_trace(&sc, q, REQUESTS);
    sc.setup.observers[0] = metrics_observer(m);
    sc.setup.observers[1] = &counting;
    sc.setup.n_observers = 2; /* no other observer, which would watch each pass */
    sc.setup.collapse = repeats;
    ck_assert_msg(sim_run(&sc.setup, &sc.result) == 0, "%s", sc.result.message);
    struct metric_list list = {0};
    metrics_collect(m, &list);
    metrics_free(m);
    return list;
}

START_TEST(repeated_passes_are_measured_as_single_ones)
{
    n_repeated = 0;
    for (uint64_t seed = 0; seed < LOADS; seed++) {
        struct metric_list one = run(policies[_i], seed, false);
        scenario_fini(&sc);
        struct metric_list many = run(policies[_i], seed, true);
        ck_assert_uint_eq(one.n, many.n);
        for (size_t i = 0; i < one.n; i++) {
            const double *x = &one.v[i].value;
            const double *y = &many.v[i].value;
            ck_assert_str_eq(one.v[i].name, many.v[i].name);
            ck_assert_msg((isnan(*x) && isnan(*y)) || memcmp(x, y, sizeof *x) == 0,
                          "%s, load %u: %s is %.17g of single passes, %.17g of repeated ones",
                          policies[_i], (unsigned)seed, one.v[i].name, *x, *y);
        }
        metric_list_fini(&one);
        metric_list_fini(&many);
        scenario_fini(&sc);
    }
    ck_assert_msg(n_repeated > LOADS * 100, "%u passes were repeated", (unsigned)n_repeated);
}
END_TEST

static const struct suite_row suite[] = {
    LOOP(repeated_passes_are_measured_as_single_ones, sizeof policies / sizeof policies[0]),
};
SUITE_MAIN("metrics_repeated", suite)
