/* Statistics of a class of predictions by hand, the publication in a point's source, and the entry
 * that stands in for a runtime that the file lacks. */
#include <math.h>
#include <string.h>

#include "experiments/validation/accuracy.h"
#include "experiments/validation/predict.h"
#include "tests/helpers/suite.h"

/* Predicted over measured 1.1, 0.8, 1.3, 2.0: errors of 10, 20, 30 and 100 %. Nearest ranks: the
 * median is number 2, P90 number 4. ln 1.1 = 0.0953 and ln 0.8 = -0.2231 lie within 0.25, ln 1.3 =
 * 0.2624 and ln 2 = 0.6931 do not. To hold 95 % (number 4 of 4), intervals must be 0.6931 / 0.25
 * times as wide: they are 0.36 of what is needed. */
START_TEST(a_class_by_hand)
{
    static const double ratio[] = {1.3, 1.1, 2.0, 0.8};
    struct accuracy_row v[4];
    const struct accuracy_row *row[4];
    for (int i = 0; i < 4; i++) {
        v[i] = (struct accuracy_row){.ln_error = log(ratio[i]), .half = 0.25};
        row[i] = &v[i];
    }
    struct accuracy_class x = accuracy_class_of(row, 4);
    ck_assert_uint_eq(x.n, 4);
    ck_assert_double_eq_tol(x.median_frac, 0.2, 1e-12);
    ck_assert_double_eq_tol(x.p90_frac, 1.0, 1e-12);
    ck_assert_double_eq(x.inside_frac, 0.5);
    ck_assert_double_eq_tol(x.half, exp(0.25), 1e-12);
    ck_assert_double_eq_tol(x.width_ratio, 0.25 / log(2.0), 1e-12);
}
END_TEST

/* Rows that the fit has seen have no interval. */
START_TEST(without_intervals_there_is_no_coverage)
{
    struct accuracy_row v = {.ln_error = log(1.5), .half = (double)NAN};
    const struct accuracy_row *row = &v;
    struct accuracy_class x = accuracy_class_of(&row, 1);
    ck_assert_double_eq_tol(x.median_frac, 0.5, 1e-12);
    ck_assert_double_nan(x.inside_frac);
    ck_assert_double_nan(x.half);
    ck_assert_double_nan(x.width_ratio);
}
END_TEST

START_TEST(a_source_is_named_before_its_revision_and_remark)
{
    static const struct {
        const char *source;
        size_t n;
    } want[] = {{"a/b table.csv @123 (x)", 13}, {"a/b (x @1)", 3}, {"a/b", 3}, {"", 0}};
    for (int i = 0; i < 4; i++) {
        struct point p = {.line = 1};
        (void)snprintf(p.source, sizeof p.source, "%s", want[i].source);
        ck_assert_uint_eq(point_source_length(&p), want[i].n);
    }
}
END_TEST

/* The 258V's iGPU has entries of OpenVINO 2025 and 2024 at 8 bits. Without its own, a row of 2025.4
 * is predicted by 2024's; the RK3588's NPU has one runtime, and no other. */
START_TEST(another_runtime_stands_in)
{
    struct err err = ERR_INIT;
    struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
    struct point p = {.soc = "core-ultra-7-258v",
                      .device = "igpu",
                      .runtime = "openvino-2025.4",
                      .model = "llama-2-7b",
                      .weight_bits = 8,
                      .act_bits = 16,
                      .input_tokens = 1024,
                      .batch = 1,
                      .metric = POINT_TTFT_MS,
                      .value = 1.0};
    struct predict_case own;
    struct predict_case other;
    predict_bind(&c, &p, &own);
    predict_bind_other(&c, &p, &other);
    ck_assert_ptr_null(own.reason);
    ck_assert_ptr_null(other.reason);
    ck_assert(own.runtime_exact && !other.runtime_exact);
    const struct soc_runtime *r = own.soc->devices[own.device].runtimes;
    ck_assert_str_eq(r[own.runtime].runtime, "openvino-2025");
    ck_assert_str_eq(r[other.runtime].runtime, "openvino-2024");
    ck_assert_uint_eq(r[other.runtime].weight_bits, 8);
    (void)snprintf(p.soc, sizeof p.soc, "rk3588");
    (void)snprintf(p.device, sizeof p.device, "npu");
    (void)snprintf(p.runtime, sizeof p.runtime, "rkllm");
    predict_bind_other(&c, &p, &other);
    ck_assert_str_eq(other.reason, "the device has no other runtime");
    catalog_fini(&c);
    err_fini(&err);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("accuracy"),
    TEST(a_class_by_hand),
    TEST(without_intervals_there_is_no_coverage),
    TEST(a_source_is_named_before_its_revision_and_remark),
    TEST(another_runtime_stands_in),
};
SUITE_MAIN("accuracy", suite)
