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
 * 11 tokens, or 1,000 intervals of 1e7 s of a full DDR, 1e18 bytes each. All of them share the
 * device all the time. All arrive at once: there is no window in which work could grow. */
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
    struct launch l[N];
    struct pass prompt = {.shape = {.prefill_rows = 10}};
    for (uint32_t i = 0; i < N; i++) {
        l[i] = (struct launch){.id = i + 1, .pass = &prompt};
        o->launch_started(o->self, 0, &l[i], 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        o->launch_ended(o->self, end_ns, &l[i], end_ns, 0);
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
    ck_assert_int_eq(metrics_verdict(m), METRICS_UNDECIDED);
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
        usage_init(&u, &machine, medium, high,
                   (struct metrics_range[METRICS_MAX_MODELS * MACHINE_MAX_DEVICES]){{0}});
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

/* Requests that wait to be added to their distributions: `before` finish before the last arrival
 * and `after` behind it, the k-th with a latency of k + 1 s. */
static void expect_split(uint32_t before, uint32_t after)
{
    enum { N = 512 };
    struct metrics_options opt = metrics_options_default();
    struct machine machine = {.name = "test", .n_devices = 1, .ddr_peak_bytes_per_s = 100e9};
    struct metrics *m = metrics_new(&opt, &machine);
    struct observer *o = metrics_observer(m);
    static struct request r[N + 1];
    uint32_t n = before + after;
    ck_assert_uint_lt(n, N);
    for (uint32_t i = 0; i <= n; i++) {
        r[i] = (struct request){.id = i,
                                .slot = i,
                                .session_id = i,
                                .input_tokens = 10,
                                .generated_tokens = 1,
                                .ttft_slo_ns = TIME_NEVER_NS,
                                .tbt_slo_ns = TIME_NEVER_NS,
                                .deadline_ns = TIME_NEVER_NS};
    }
    for (uint32_t i = 0; i < n; i++) {
        o->request_arrived(o->self, 0, &r[i]);
    }
    for (uint32_t i = 0; i <= n; i++) {
        int64_t now_ns = (i + 1) * NS_PER_S;
        if (i == before) { /* the last arrival, who never finishes */
            r[n].arrival_ns = now_ns;
            o->request_arrived(o->self, now_ns, &r[n]);
        }
        r[i].first_token_ns = r[i].last_token_ns = now_ns;
        if (i < n) {
            o->request_finished(o->self, now_ns, &r[i]);
        }
    }
    o->run_ended(o->self, (n + 1) * NS_PER_S);
    for (int twice = 0; twice < 2; twice++) {
        struct metric_list list = {0};
        metrics_collect(m, &list);
        ck_assert_double_eq(get(&list, "all.e2e_s.n"), n);
        ck_assert_double_eq(get(&list, "truncated.all.e2e_s.n"), before);
        ck_assert_double_eq(get(&list, "truncated.reactive.ttft_s.n"), before);
        if (n > 0) {
            ck_assert_double_eq_tol(get(&list, "all.e2e_s.mean"), (n + 1) / 2.0, 1e-9);
            ck_assert_double_eq(get(&list, "all.e2e_s.max"), n);
        }
        if (before > 0) {
            ck_assert_double_eq_tol(get(&list, "truncated.all.e2e_s.mean"), (before + 1) / 2.0,
                                    1e-9);
            ck_assert_double_eq(get(&list, "truncated.all.e2e_s.max"), before);
        }
        metric_list_fini(&list);
    }
    metrics_free(m);
}

START_TEST(every_request_counts_on_its_side_of_the_last_arrival)
{
    static const uint32_t sizes[] = {0, 1, 31, 32, 33, 40, 63, 64, 65, 127, 128, 129, 200};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            expect_split(sizes[i], sizes[k]);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_tier_begins_where_demand_over_peak_reaches_it),
    TEST(sums_over_many_requests_have_no_end),
    TEST(every_request_counts_on_its_side_of_the_last_arrival),
};
SUITE_MAIN("sums", suite)
