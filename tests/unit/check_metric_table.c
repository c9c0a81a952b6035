/* The glossary's words for metrics, and that no metric lacks them. */
#include <math.h>
#include <string.h>

#include "sim/metrics/metric_table.h"
#include "tests/helpers/suite.h"

START_TEST(a_name_is_found_by_its_part_whoever_and_whatever_statistic)
{
    ck_assert_str_eq(metric_describe("reactive.e2e_s.p90")->part, "e2e_s");
    ck_assert_str_eq(metric_describe("truncated.all.ttft_s.mean")->part, "ttft_s");
    ck_assert_str_eq(metric_describe("energy_j_per_token")->part, "energy_j_per_token");
    ck_assert_str_eq(metric_describe("npu.energy_j")->part, "energy_j");
    ck_assert_str_eq(metric_describe("backlog.verdict")->part, "backlog.verdict");
    ck_assert_str_eq(metric_describe("verify.drafted_tokens.mean")->part, "verify.drafted_tokens");
    ck_assert_str_eq(metric_describe("verify.n")->part, "verify");
    ck_assert_ptr_null(metric_describe("policy.evictions_of_mine"));
    ck_assert_ptr_null(metric_describe("e2e"));
}
END_TEST

START_TEST(more_is_better_of_throughput_and_attainment_alone)
{
    ck_assert(metric_is_gain("all.throughput_req_per_min"));
    ck_assert(metric_is_gain("reactive.slo_attainment_frac"));
    ck_assert(!metric_is_gain("reactive.e2e_s.mean"));
    ck_assert(!metric_is_gain("igpu.busy_frac")); /* neither good nor bad in itself */
    ck_assert(!metric_is_gain("nonesuch"));
    ck_assert(metric_is_gain("reactive.e2e_s.below:2")); /* a share of what is small enough */
    ck_assert_int_eq(metric_better("reactive.qoe.below:0.5"), METRIC_BETTER_LOWER);
    ck_assert_int_eq(metric_better("nonesuch.below:2"), METRIC_BETTER_NEITHER);
    ck_assert_int_eq(metric_better("reactive.ttft_s.n"), METRIC_BETTER_NEITHER);
    ck_assert_int_eq(metric_better("reactive.qoe.n"), METRIC_BETTER_NEITHER);
    ck_assert_str_eq(metric_describe("truncated.all.ttft_s.below:2.5")->part, "ttft_s");
}
END_TEST

START_TEST(a_title_says_statistic_who_what_and_unit)
{
    ck_assert_str_eq(metric_title("reactive.e2e_s.p90"), "P90 reactive latency (s)");
    ck_assert_str_eq(metric_title("reactive.e2e_s.p50"), "median reactive latency (s)");
    ck_assert_str_eq(metric_title("reactive.e2e_s.p97.5"), "P97.5 reactive latency (s)");
    ck_assert_double_eq(metric_quantile("reactive.e2e_s.p97.5"), 97.5);
    ck_assert_double_eq(metric_quantile("reactive.*.p95"), 95.0);
    ck_assert_double_eq(metric_quantile("reactive.e2e_s.p100"), 0.0);
    ck_assert_double_eq(metric_quantile("reactive.e2e_s.p0"), 0.0);
    ck_assert_double_eq(metric_quantile("reactive.e2e_s.p9x"), 0.0);
    ck_assert_double_eq(metric_quantile("reactive.e2e_s.mean"), 0.0);
    ck_assert_double_eq(metric_quantile("counters.passes"), 0.0);
    ck_assert_str_eq(metric_title("reactive.ttft_s.below:0.5"),
                     "reactive time to first token, share up to 0.5 s");
    ck_assert_double_eq(metric_limit("reactive.ttft_s.below:0.5"), 0.5);
    ck_assert_double_eq(metric_limit("reactive.*.below:1e-3"), 1e-3);
    ck_assert_double_eq(metric_quantile("reactive.ttft_s.below:0.5"), 0.0);
    ck_assert_double_nan(metric_limit("reactive.ttft_s.below:"));
    ck_assert_double_nan(metric_limit("reactive.ttft_s.below:-1"));
    ck_assert_double_nan(metric_limit("reactive.ttft_s.below:0x1"));
    ck_assert_double_nan(metric_limit("reactive.ttft_s.below:2s"));
    ck_assert_double_nan(metric_limit("reactive.ttft_s.below:1e999"));
    ck_assert_double_nan(metric_limit("reactive.ttft_s.p90"));
    ck_assert_str_eq(metric_title("all.ttft_s.mean"), "mean time to first token (s)");
    ck_assert_str_eq(metric_title("igpu.weighted_util_frac"), "iGPU utilisation");
    ck_assert_str_eq(metric_title("memory_peak_bytes"), "peak memory (GB)");
    ck_assert_double_eq(metric_scale("memory_peak_bytes"), 1e-9);
    /* Tables, files and lists have the value as it is counted. */
    ck_assert_str_eq(metric_describe("memory_peak_bytes")->unit, "B");
    ck_assert_str_eq(metric_describe("kernels.peak_bytes")->unit, "B");
    ck_assert_str_eq(metric_title("reactive.ttft_s.n"),
                     "reactive time to first token, number of values"); /* no seconds */
    ck_assert_str_eq(metric_title("verify.n"), "verifications (events)");
    ck_assert_str_eq(metric_title("nonesuch"), "nonesuch");
}
END_TEST

START_TEST(every_row_has_words_and_stands_once)
{
    size_t n = 0;
    const struct metric_descriptor *v = metric_table(&n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(v[i].title[0] != 0 && v[i].unit[0] != 0 && v[i].scale > 0.0, "%s", v[i].part);
        ck_assert_msg(v[i].definition[strlen(v[i].definition) - 1] == '.', "%s", v[i].part);
        for (size_t k = 0; k < i; k++) {
            ck_assert_str_ne(v[i].part, v[k].part);
        }
    }
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_name_is_found_by_its_part_whoever_and_whatever_statistic),
    TEST(more_is_better_of_throughput_and_attainment_alone),
    TEST(a_title_says_statistic_who_what_and_unit),
    TEST(every_row_has_words_and_stands_once),
};
SUITE_MAIN("metric_table", suite)
