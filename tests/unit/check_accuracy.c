/* Statistics of a class of predictions are computed by hand. So are the publication in a point's
 * source, and the entry that a prediction takes for a runtime that the file lacks. */
#include <math.h>
#include <string.h>

#include "experiments/validation/accuracy.h"
#include "experiments/validation/predict.h"
#include "tests/helpers/suite.h"

/* Predicted over measured is 1.1, 0.8, 1.3, 2.0, so errors are 10, 20, 30 and 100 %. By nearest
 * ranks the median is number 2 and P90 number 4. Two of four logarithms lie within 0.25, 0.0953 and
 * -0.2231, and two do not, 0.2624 and 0.6931. To hold 95 % (number 4 of 4), intervals must be
 * 0.6931 / 0.25 times as wide. So they have 0.36 of the width that they need. */
START_TEST(a_class_by_hand)
{
    static const double ratio[] = {1.3, 1.1, 2.0, 0.8};
    struct accuracy_row v[4];
    for (int i = 0; i < 4; i++) {
        v[i] = (struct accuracy_row){.ln_error = log(ratio[i]), .half = 0.25};
    }
    struct accuracy_class x = accuracy_class_of(v, 4);
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
    struct accuracy_class x = accuracy_class_of(&v, 1);
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
        struct point p = {.source = "", .line = 1};
        p.source = xkeep(xstrdup(want[i].source));
        ck_assert_uint_eq(point_source_length(p.source), want[i].n);
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
    struct point p = {.source = "",
                      .soc = "core-ultra-7-258v",
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
    ck_assert(own.match == SOC_MATCH_EXACT && other.match == SOC_MATCH_VERSION);
    const struct soc_runtime *r = own.soc->devices[own.device].runtimes;
    ck_assert_str_eq(r[own.runtime].runtime, "openvino-2025");
    ck_assert_str_eq(r[other.runtime].runtime, "openvino-2024");
    ck_assert_uint_eq(r[other.runtime].weight_bits, 8);
    p.soc = "rk3588";
    p.device = "npu";
    p.runtime = "rkllm";
    predict_bind_other(&c, &p, &other);
    ck_assert_str_eq(other.reason, "the device has no other runtime");
    err_fini(&err);
}
END_TEST

/* 64 rows of a 2048 x 8192 product at 8 bits run on the 8 Gen 3's NPU under qnn. By the form
 * `extended` they take launch + max((2 x 64 x 2048 x 8192 / P) (1 + m0 / 64) (1 + n0 / 2048), bytes
 * / B), with the entry's numbers. One row has no fill. Other texts describe no product. */
START_TEST(a_product_is_priced_by_its_shape)
{
    struct err err = ERR_INIT;
    struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
    struct point p = {.source = "",
                      .soc = "snapdragon-8gen3",
                      .device = "npu",
                      .runtime = "qnn",
                      .model = "matmul 64x2048x8192",
                      .weight_bits = 8,
                      .act_bits = 16,
                      .metric = POINT_KERNEL_MS,
                      .value = 1.5};
    const struct soc_device *d = &catalog_soc(&c, p.soc)->devices[0];
    enum soc_match match;
    const struct soc_runtime *r = &d->runtimes[soc_runtime_find(d, "qnn", 8, &match)];
    ck_assert_int_eq(match, SOC_MATCH_EXACT);
    double compute = 2.0 * 64.0 * 2048.0 * 8192.0 / r->many.flop_per_s *
                     (1.0 + r->fill_rows / 64.0) * (1.0 + r->width_fill / 2048.0);
    double memory = (2048.0 * 8192.0 + 2.0 * 64.0 * (2048.0 + 8192.0)) / r->many.bytes_per_s;
    struct prediction q = predict_other(&c, &p);
    ck_assert_ptr_null(q.reason);
    ck_assert_double_eq_tol(q.value, 1e3 * (r->many.launch_s + fmax(compute, memory)),
                            1e-3 * q.value);
    ck_assert(q.low < q.value && q.value < q.high);
    p.model = "gemv 8192x2048";
    memory = (2048.0 * 8192.0 + 2.0 * (2048.0 + 8192.0)) / r->one.bytes_per_s;
    compute = 2.0 * 2048.0 * 8192.0 / r->one.flop_per_s;
    q = predict_other(&c, &p);
    ck_assert_double_eq_tol(q.value, 1e3 * (r->one.launch_s + fmax(compute, memory)),
                            1e-3 * q.value);
    p.model = "matmul 64x2048";
    ck_assert_ptr_nonnull(predict_other(&c, &p).reason);
    /* that NPU has entries of 4 and 8 bits: FP16 is no width of theirs */
    p.model = "matmul 64x2048x8192";
    p.weight_bits = 16;
    ck_assert_str_eq(predict_other(&c, &p).reason,
                     "a product of a width that no entry of the device has");
    p.weight_bits = 8;
    ck_assert_ptr_null(predict_other(&c, &p).reason);
    p.model = "llama-2-7b";
    p.weight_bits = 4;
    struct point latency = p;
    latency.metric = POINT_TPOT_MS;
    struct predict_case k;
    predict_bind(&c, &latency, &k);
    const struct machine *m = &k.soc->machine;
    /* A token's energy at a battery meter is the idle machine's and the device's watts times its
     * time. */
    p.model = "llama-2-7b decode per token";
    p.metric = POINT_ENERGY_J;
    p.input_tokens = latency.input_tokens = 1024;
    p.batch = latency.batch = 1;
    q = predict_other(&c, &p);
    ck_assert_int_eq(k.soc->devices[0].meter, SOC_METER_BATTERY);
    struct prediction tpot = predict_row(&c, &latency);
    ck_assert_str_eq(tpot.entry->runtime, "qnn"); /* of 4 bits: a prediction names its entry */
    ck_assert_uint_eq(tpot.entry->weight_bits, 4);
    double watts = m->idle_watts + m->devices[0].decode_watts;
    ck_assert_double_eq_tol(q.value, watts * tpot.value / 1e3, 1e-6 * q.value);
    ck_assert_double_eq_tol(q.low / q.value, tpot.low / tpot.value, 1e-9);
    err_fini(&err);
}
END_TEST

static struct prediction load(const struct catalog *c, const char *device, const char *runtime,
                              const char *model, const char *source)
{
    struct point p = {
        .source = "", .soc = "nobody's", .batch = 1, .metric = POINT_LOAD_MS, .value = 1.0};
    p.device = xkeep(xstrdup(device));
    p.runtime = xkeep(xstrdup(runtime));
    p.model = xkeep(xstrdup(model));
    p.source = xkeep(xstrdup(source));
    return predict_other(c, &p);
}

#define OAKLIGHT "Oaklight/openvino-meteor-lake-ai-inference README"

/* On iGPUs the table has 18.6 s for 36 layers (by Oaklight, who also has a CPU's) and 10.8 s for
 * 28. Without Oaklight, three pairs of loads of one group each are left. OpenVINO GenAI on CPUs
 * took 0.62 s for 22 layers and 1.26 for 32. IPEX-LLM on NPUs took 88.19 and 53.917 for 28.
 * Compiled models took 7.2 s for 5.8 GB and 1.208 for 1.083. Their variance has three degrees of
 * freedom: t is 3.1824. */
START_TEST(a_load_is_predicted_by_those_of_other_sources)
{
    struct err err = ERR_INIT;
    struct catalog c;
    ck_assert_int_eq(catalog_open(&c, &err), 0);
    struct prediction q = load(&c, "igpu", "openvino-2025.1", "qwen3-8b", OAKLIGHT " @1");
    ck_assert_double_eq_tol(q.value, 10800.0 * 36.0 / 28.0, 1e-6 * q.value);
    double cpu = log(1.26 / 32.0 * 22.0 / 0.62);
    double npu = log(88.19 / 53.917);
    double read = log(7.2 / 5.8 * 1.083 / 1.208);
    double variance = (cpu * cpu + npu * npu + read * read) / 2.0 / 3.0;
    ck_assert_double_eq_tol(log(q.high / q.value), 3.182446 * sqrt(2.0 * variance), 1e-5);
    ck_assert_double_eq_tol(q.low * q.high, q.value * q.value, 1e-6 * q.value * q.value);
    q = load(&c, "igpu", "openvino-2025.1", "qwen3-8b compile", ""); /* by both */
    ck_assert_double_eq_tol(q.value, sqrt(10800.0 / 28.0 * 18600.0 / 36.0) * 36.0, 1e-6 * q.value);
    q = load(&c, "npu", "anything", "a blob of 2.5 GB", "");
    ck_assert_double_eq_tol(q.value, 2.5 * sqrt(7200.0 / 5.8 * 1208.0 / 1.083), 1e-6 * q.value);
    ck_assert_str_eq(load(&c, "npu", "fastflowlm-0.9", "qwen3-8b", "").reason,
                     "no other load under this toolchain on this kind of device");
    ck_assert_str_eq(load(&c, "igpu", "openvino-2025.1", "qwen3-8b graph build", "").reason,
                     "a phase of loading that only its name describes");
    err_fini(&err);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("accuracy"),
    TEST(a_load_is_predicted_by_those_of_other_sources),
    TEST(a_product_is_priced_by_its_shape),
    TEST(a_class_by_hand),
    TEST(without_intervals_there_is_no_coverage),
    TEST(a_source_is_named_before_its_revision_and_remark),
    TEST(another_runtime_stands_in),
};
SUITE_MAIN("accuracy", suite)
