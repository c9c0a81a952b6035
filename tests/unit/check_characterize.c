/* The analyses as data: values against the kernel model asked directly, and what must hold by
 * construction. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "experiments/run/chunks.h"
#include "experiments/validation/characterize.h"
#include "tests/helpers/model.h"
#include "tests/helpers/suite.h"

static struct config_options options;
static struct config config;
static struct frame *rows;
static struct err err;

static void setup(void)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = "core-ultra-5-125h-siblings"; /* as tests/helpers/model.c */
    rows = frame_new();
    characterize_columns(rows);
    ck_assert_int_eq(config_load(&config, &options, &err), 0);
}

static void teardown(void)
{
    frame_free(rows);
    config_fini(&config);
    err_fini(&err);
}

static void run_study(const char *name)
{
    struct characterize k = {.study = name,
                             .config = &config,
                             .options = &options,
                             .replications = 2,
                             .how = {.parallel = 1, .cpu_limit_s = 600.0}};
    characterize_run(&k, rows, &err);
}

static void study(const char *name)
{
    run_study(name);
    ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
    ck_assert_uint_gt(frame_rows(rows), 0);
}

static double value(const char *device, const char *what, double x, const char *metric)
{
    for (uint32_t i = 0; i < frame_rows(rows); i++) {
        if (frame_is(rows, i, "device", device) && frame_is(rows, i, "what", what) &&
            frame_get(rows, i, "x") == x && frame_is(rows, i, "metric", metric)) {
            return frame_get(rows, i, "value");
        }
    }
    ck_abort_msg("no %s of %s, %s at %g", metric, device, what, x);
    return 0.0;
}

/* QKV of Llama 3.2 3B has 3072 x (3072 + 2 x 8 x 128) weights and 2 flop for each weight and row.
 * So 512 rows are 16.106 GFLOP, on the iGPU in one kernel of the model's time. */
START_TEST(rates_are_work_over_the_models_time)
{
    study("affinity");
    struct model m;
    model_init(&m, "llama-3.2-3b", "extended");
    struct work_shape w = model_prefill(512);
    double t = (double)model_cost(&m, MODEL_IGPU, OP_QKV, &w, 512, 512).t_ns / 1e9;
    double flop = 2.0 * 512 * 3072 * (3072 + 2 * 8 * 128);
    double tflops = value("igpu", "QKV", 512, "rate");
    model_near(tflops, flop / t / 1e12, 1e-9);
    model_near(value("igpu", "QKV", 512, "efficiency"), tflops / 31.0, 1e-9); /* 31 W prefill */
    /* Compiling 1.5 s + 0.5 ms a token for 28 layers costs the NPU's attention some of its rate. */
    double plain = value("npu", "MHA", 512, "rate");
    double with = value("npu", "MHA", 512, "rate_with_compile");
    ck_assert_double_lt(with, plain);
    double work = 28 * 4.0 * 3072 * (512.0 * 513.0 / 2); /* all layers: QK^T and PV, by pairs */
    model_near(with * 1e12, work / (work / (plain * 1e12) + 1.5 + 0.5e-3 * 512), 1e-6);
}
END_TEST

/* The NPU always computes 256 rows, so of 2 rows 254 are padding. Both together take the time of
 * 256, which has none, and the useful rate is 2 / 256 of that. The iGPU pads nothing. */
START_TEST(padding_is_no_work)
{
    study("affinity");
    double full = value("npu", "QKV", 256, "rate");
    model_near(value("npu", "QKV", 2, "rate"), full * 2 / 256, 1e-9);
    model_near(value("npu", "QKV", 2, "padding_rate"), full * 254 / 256, 1e-9);
    ck_assert_double_eq(value("npu", "QKV", 256, "padding_rate"), 0.0);
    ck_assert_double_eq(value("igpu", "QKV", 2, "padding_rate"), 0.0);
    ck_assert_double_lt(value("npu", "QKV", 2, "intensity"), 4.1); /* 4 flop a byte of weights */
}
END_TEST

/* Claim A7's pairs: the four slowdowns are at least 1, and the work of a pair is the sum of what
 * each does. */
START_TEST(pairs_add_up)
{
    study("corun");
    double a = value("npu", "GEMM beside GEMV", frame_get(rows, 3, "x"),
                     "slowdown"); /* the fourth row has an NPU GEMM and an iGPU GEMV */
    double b = value("igpu", "GEMV beside GEMM", frame_get(rows, 4, "x"), "slowdown");
    ck_assert_double_ge(a, 1.0);
    ck_assert_double_ge(b, 1.0);
    ck_assert_double_eq_tol(value("both", "GEMM and GEMV", 1, "work_over_alone"), 1 / a + 1 / b,
                            1e-12);
}
END_TEST

/* The knee is the smallest chunk that no larger one beats by more than a twentieth; finer
 * granularities never make a request wait longer. */
START_TEST(the_knee_is_the_smallest_chunk_near_the_best)
{
    study("chunk");
    double best = 0.0;
    for (double c = 32; c <= 1024; c *= 2) {
        best = fmax(best, value("npu", "prompt of 1024 tokens", c, "throughput"));
        double kernel = value("npu", "prompt of 1024 tokens", c, "bound_kernel");
        double layer = value("npu", "prompt of 1024 tokens", c, "bound_layer");
        double request = value("npu", "prompt of 1024 tokens", c, "bound_request");
        ck_assert(kernel <= layer && layer <= request);
        ck_assert_double_eq_tol(value("npu", "prompt of 1024 tokens", c, "throughput"),
                                1024 / (request / 1e3), 1e-6);
    }
    uint32_t knee = chunks_knee(&config.truth);
    for (double c = 32; c <= 1024; c *= 2) {
        bool near = value("npu", "prompt of 1024 tokens", c, "throughput") >= 0.95 * best;
        ck_assert(c < knee ? !near : c > knee || near);
    }
}
END_TEST

/* Brute force finds the same knee at any place of the device with chunks, and it is 0 without
 * one. */
START_TEST(the_knee_is_of_the_device_with_chunks)
{
    struct roofline r = config.truth;
    r.model.machine = &r.machine;
    for (uint32_t d = 0; d <= r.machine.n_devices; d++) {
        uint32_t want = 0;
        double best = 0.0;
        for (uint32_t i = 0; i < r.machine.n_devices; i++) {
            r.machine.devices[i].chunk_rows = i == d ? 256 : 0;
        }
        for (uint32_t c = 1024; d < r.machine.n_devices && c >= 32; c /= 2) {
            best = fmax(best, chunks_price(&r, (uint8_t)d, c).tokens_per_s);
        }
        for (uint32_t c = 1024; d < r.machine.n_devices && c >= 32; c /= 2) {
            want = chunks_price(&r, (uint8_t)d, c).tokens_per_s >= 0.95 * best ? c : want;
        }
        ck_assert_int_eq(chunks_device(&r), d < r.machine.n_devices ? (int)d : -1);
        ck_assert_uint_eq(chunks_knee(&r), want);
    }
}
END_TEST

/* Without a draft, verification is a decode step of one sequence. Rows of a static graph cost
 * nothing until it is full, and graphs of the NPU have 256 rows. So there 2 and 17 rows, 1 and 16
 * drafts, take as long as each other, except for the attention, which reads a few keys more. */
START_TEST(verifying_no_draft_is_decoding)
{
    study("verify");
    study("batch");
    static const char *const devices[] = {"npu", "igpu", "cpu"};
    for (int d = 0; d < 3; d++) {
        double none = value(devices[d], "verification", 0, "time");
        ck_assert_double_eq(none, value(devices[d], "decode step at 1024 tokens", 1, "time"));
        ck_assert_double_ge(value(devices[d], "verification", 32, "time"), none);
    }
    double two = value("npu", "verification", 1, "time");
    ck_assert_double_eq_tol(value("npu", "verification", 16, "time"), two, 0.02 * two);
}
END_TEST

/* A decode batch with a chunk in it takes at least as long as either alone. */
START_TEST(mixing_never_is_faster_than_a_part)
{
    study("mixed");
    for (uint32_t i = 0; i < frame_rows(rows); i++) {
        if (strstr(frame_text(rows, i, "metric"), "slowdown") != NULL) {
            ck_assert_double_ge(frame_get(rows, i, "value"), 1.0 - 1e-9);
        }
    }
}
END_TEST

START_TEST(a_study_that_is_not_there_is_refused)
{
    run_study("weather");
    ck_assert_uint_eq(err.n, 1);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "affinity"));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("characterize", .setup = setup, .teardown = teardown),
    TEST(verifying_no_draft_is_decoding),
    TEST(rates_are_work_over_the_models_time),
    TEST(padding_is_no_work),
    TEST(pairs_add_up),
    TEST(the_knee_is_of_the_device_with_chunks),
    TEST(the_knee_is_the_smallest_chunk_near_the_best),
    TEST(mixing_never_is_faster_than_a_part),
    TEST(a_study_that_is_not_there_is_refused),
};
SUITE_MAIN("characterize", suite)
