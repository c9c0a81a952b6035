/* Sums over a whole run: they have no end, and time goes to its tier. */

#include <math.h>
#include <stdlib.h>

#include "sim/base/units.h"
#include "sim/metrics/metrics.h"
#include "sim/metrics/usage.h"
#include "tests/helpers/suite.h"

static double get(const struct metric_list *l, const char *name)
{
    const struct metric *m = metric_list_find(l, name);
    ck_assert_msg(m != NULL, "no metric %s", name);
    return m->value;
}

/* 64 bits hold 9.2e9 s in ns, and 9.2e18 bytes: less than ten requests of 1e9 s each together, of
 * 11 tokens, or 1,000 intervals of 1e7 s of a full DDR, 1e18 bytes each. */
START_TEST(sums_over_many_requests_have_no_end)
{
    enum { N = 10 };
    const int64_t end_ns = 1000000000 * NS_PER_S;
    struct metrics_options opt = metrics_options_default();
    struct machine machine = {.name = "test", .n_devices = 1, .ddr_peak_bytes_per_s = 100e9};
    machine.devices[0] = (struct device){.name = "igpu", .kind = DEVICE_KIND_IGPU};
    struct metrics *m = metrics_new(&opt, &machine);
    struct observer *o = metrics_observer(m);
    struct request r[N];
    for (uint32_t i = 0; i < N; i++) {
        r[i] = (struct request){.id = i,
                                .slot = i,
                                .session_id = i,
                                .cls = REQUEST_CLASS_PROACTIVE,
                                .input_tokens = 10,
                                .ttft_slo_ns = TIME_NEVER_NS,
                                .tbt_slo_ns = TIME_NEVER_NS,
                                .deadline_ns = TIME_NEVER_NS};
        o->request_arrived(o->self, 0, &r[i]);
    }
    o->ddr(o->self, end_ns, 1000, end_ns / 100, 100e9, 100e9);
    for (uint32_t i = 0; i < N; i++) {
        r[i].generated_tokens = 1;
        r[i].first_token_ns = r[i].last_token_ns = end_ns;
        struct segment s = {
            .request = &r[i], .n_tokens = 10, .emitted_tokens = 1, .gap_ns = end_ns};
        struct pass p = {.segments = &s, .n_segments = 1, .shape = {.prefill_rows = 10}};
        o->tokens(o->self, end_ns, &p);
        r[i].state = REQUEST_STATE_FINISHED;
        o->request_finished(o->self, end_ns, &r[i]);
    }
    o->run_ended(o->self, end_ns);
    struct metric_list list = {0};
    metrics_collect(m, &list);
    ck_assert_double_eq_tol(get(&list, "proactive.norm_e2e_ratio_of_sums_s"), 1e9 / 11.0, 1e-4);
    ck_assert_double_eq_tol(get(&list, "ddr.util_frac"), 10.0, 1e-9);
    metric_list_fini(&list);
    metrics_free(m);
}
END_TEST

/* A tier's lowest demand is found once: it is the one at which the division says so. */
START_TEST(a_tier_begins_where_demand_over_peak_reaches_it)
{
    for (uint32_t k = 1; k <= 1000; k++) {
        struct machine machine = {.name = "test", .ddr_peak_bytes_per_s = 1e9 * k / 7.0};
        struct usage u;
        double medium = k % 10 / 10.0;
        double high = 0.9 + k / 3000.0;
        usage_init(&u, &machine, medium, high);
        for (int step = -3; step <= 3; step++) {
            for (int which = 0; which < 2; which++) {
                double demand = (which == 0 ? medium : high) * machine.ddr_peak_bytes_per_s;
                for (int i = 0; i < abs(step); i++) {
                    demand = nextafter(demand, step < 0 ? 0.0 : HUGE_VAL);
                }
                double pressure = demand / machine.ddr_peak_bytes_per_s;
                int tier = pressure >= high ? 2 : pressure >= medium ? 1 : 0;
                int64_t before_ns = (int64_t)u.tier_ns[tier];
                usage_ddr(&u, 1, 5, demand, demand);
                ck_assert_int_eq((int64_t)u.tier_ns[tier], before_ns + 5);
            }
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_tier_begins_where_demand_over_peak_reaches_it),
    TEST(sums_over_many_requests_have_no_end),
};
SUITE_MAIN("sums", suite)
