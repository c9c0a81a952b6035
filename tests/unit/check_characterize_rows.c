/* Every row of every analysis but the simulated one, in its order: names, units, places and values
 * worked out a second time, and nothing left out at either end. */
#include <math.h>
#include <string.h>

#include "experiments/run/chunks.h"
#include "experiments/run/interval.h"
#include "experiments/run/price.h"
#include "experiments/run/runner.h"
#include "experiments/validation/characterize.h"
#include "sim/api/contention.h"
#include "tests/helpers/suite.h"

static struct config_options options;
static struct config config;
static struct frame *rows;
static struct err err;
static uint32_t at; /* the next row */

static void load(const char *soc)
{
    err = (struct err)ERR_INIT;
    options = config_options_default();
    options.soc = soc;
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

static void run(const char *name)
{
    struct characterize k = {.study = name, .config = &config, .options = &options};
    characterize_run(&k, rows, &err);
    ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
    at = 0;
}

static void is(const char *study, const char *device, const char *what, const char *x_name,
               double x, const char *metric, const char *unit, double value)
{
    ck_assert_uint_lt(at, frame_rows(rows));
    static const char *const columns[] = {"study", "device", "what", "x_name", "metric", "unit"};
    const char *const texts[] = {study, device, what, x_name, metric, unit};
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(frame_is(rows, at, columns[i], texts[i]), "row %u: %s is %s, not %s", at,
                      columns[i], frame_text(rows, at, columns[i]), texts[i]);
    }
    double v = frame_get(rows, at, "value");
    ck_assert_msg(frame_get(rows, at, "x") == x, "row %u: x is %g", at, frame_get(rows, at, "x"));
    ck_assert_msg(fabs(v - value) <= 1e-9 * fabs(value) || (isinf(v) && v == value),
                  "row %u: %s %s %s at %g: %.12g, worked out %.12g", at, device, what, metric, x, v,
                  value);
    at++;
}

static void end(void)
{
    ck_assert_uint_eq(at, frame_rows(rows));
}

static double pass_s(uint8_t d, struct work_shape w)
{
    return price_pass(&config.truth, d, &w).seconds;
}

/* Devices of a machine, and one whose attention is compiled. */
static const char *const machines[] = {"core-ultra-5-125h-siblings", "core-ultra-7-258v",
                                       "snapdragon-8elite"};

START_TEST(affinity)
{
    load(machines[_i]);
    run("affinity");
    const struct machine *m = &config.soc.machine;
    static const char *const ops[] = {"QKV", "MHA", "FFN"};
    for (uint8_t d = 0; d < m->n_devices; d++) {
        for (uint32_t n = 1; n <= 4096; n *= 2) {
            struct work_shape w = n == 1 ? price_decode_shape(&config.llm, 1023, 1)
                                         : price_prefill_shape(&config.llm, n, 1);
            for (int op = 0; op < 3; op++) {
                struct price_op k = price_op(&config.truth, d,
                                             op == 0   ? OP_QKV
                                             : op == 1 ? OP_MHA
                                                       : OP_FFN,
                                             &w);
                const char *name = m->devices[d].name;
                double watts = n == 1 ? m->devices[d].decode_watts : m->devices[d].prefill_watts;
                double rate = k.flop / k.seconds * 1e-12;
                is("affinity", name, ops[op], "rows", n, "intensity", "flop/B", k.flop / k.bytes);
                is("affinity", name, ops[op], "rows", n, "rate", "TFLOP/s", rate);
                is("affinity", name, ops[op], "rows", n, "padding_rate", "TFLOP/s",
                   k.padding_flop / k.seconds * 1e-12);
                is("affinity", name, ops[op], "rows", n, "efficiency", "TFLOP/s/W", rate / watts);
                if (op == 1 && m->devices[d].static_attention) {
                    double compile_s = 1e-9 * (double)m->compile_fixed_ns +
                                       1e-9 * (double)m->compile_ns_per_token * n;
                    is("affinity", name, "MHA", "rows", n, "rate_with_compile", "TFLOP/s",
                       1e-12 * k.flop / (k.seconds + compile_s / config.llm.n_layers));
                }
            }
        }
    }
    end();
}
END_TEST

START_TEST(corun)
{
    load(machines[_i]);
    run("corun");
    const struct machine *m = &config.soc.machine;
    int npu = machine_find(m, DEVICE_KIND_NPU);
    int gpu = machine_find(m, DEVICE_KIND_IGPU);
    const int d[2] = {npu, gpu >= 0 ? gpu : machine_find(m, DEVICE_KIND_GPU)};
    static const char *const names[] = {"GEMM", "GEMV"};
    static const char *const pairs[2][2] = {{"GEMM and GEMM", "GEMM and GEMV"},
                                            {"GEMV and GEMM", "GEMV and GEMV"}};
    static const char *const beside[2][2] = {{"GEMM beside GEMM", "GEMM beside GEMV"},
                                             {"GEMV beside GEMM", "GEMV beside GEMV"}};
    struct work_shape shapes[2] = {price_prefill_shape(&config.llm, 4096, 1),
                                   price_decode_shape(&config.llm, 0, 1)};
    (void)names;
    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 2; b++) {
            const int kinds[2] = {a, b};
            struct flow f[2];
            for (int i = 0; i < 2; i++) {
                struct price_op k =
                    price_op(&config.truth, (uint8_t)d[i], OP_QKV, &shapes[kinds[i]]);
                f[i] = (struct flow){k.bytes / k.seconds, 1.0, (uint8_t)d[i], 0.0};
            }
            double cap = m->ddr_peak_bytes_per_s * m->ddr_cap_frac;
            cap = fmax(cap, fmax(f[0].demand_bytes_per_s, f[1].demand_bytes_per_s));
            config.contention->share(f, 2, cap, &config.contention_params);
            double work = 0.0;
            for (int i = 0; i < 2; i++) {
                work += f[i].share_bytes_per_s / f[i].demand_bytes_per_s;
                is("corun", m->devices[d[i]].name, beside[kinds[i]][kinds[1 - i]], "demand_GBs",
                   f[i].demand_bytes_per_s / 1e9, "slowdown", "x",
                   f[i].demand_bytes_per_s / f[i].share_bytes_per_s);
            }
            is("corun", "both", pairs[a][b], "pairs", 1, "work_over_alone", "x", work);
        }
    }
    end();
}
END_TEST

START_TEST(passes)
{
    load(machines[_i]);
    const struct machine *m = &config.soc.machine;
    run("batch");
    for (uint8_t d = 0; d < m->n_devices; d++) {
        for (uint32_t n = 1; n < 64; n *= 2) {
            const char *name = m->devices[d].name;
            if (n < 16) {
                is("batch", name, "prefill of 512 tokens", "sequences", n, "time", "ms",
                   1e3 * pass_s(d, price_prefill_shape(&config.llm, 512, n)));
            }
            is("batch", name, "decode step at 1024 tokens", "sequences", n, "time", "ms",
               1e3 * pass_s(d, price_decode_shape(&config.llm, 1024, n)));
        }
    }
    end();
    frame_free(rows);
    rows = frame_new();
    characterize_columns(rows);
    run("prompt");
    for (uint8_t d = 0; d < m->n_devices; d++) {
        for (uint32_t n = 32; n < 16384; n *= 2) {
            double s = pass_s(d, price_prefill_shape(&config.llm, n, 1));
            is("prompt", m->devices[d].name, "prefill", "tokens", n, "time", "ms", 1e3 * s);
            is("prompt", m->devices[d].name, "prefill", "tokens", n, "throughput", "tok/s", n / s);
        }
    }
    end();
    frame_free(rows);
    rows = frame_new();
    characterize_columns(rows);
    run("verify");
    static const uint32_t drafts[] = {0, 1, 2, 4, 8, 16, 32};
    for (uint8_t d = 0; d < m->n_devices; d++) {
        for (int i = 0; i < 7; i++) {
            double ms = 1e3 * pass_s(d, price_verify_shape(&config.llm, 1024, drafts[i] + 1));
            is("verify", m->devices[d].name, "verification", "draft_tokens", drafts[i], "time",
               "ms", ms);
            is("verify", m->devices[d].name, "verification", "draft_tokens", drafts[i],
               "time_per_token", "ms", ms / (drafts[i] + 1));
        }
    }
    end();
}
END_TEST

/* A pass of both: rows, logits, sequences, pairs and reads of the two, and prefill rows of one. */
START_TEST(mixed)
{
    load(machines[_i]);
    run("mixed");
    static const uint32_t batches[] = {1, 4, 16};
    for (uint8_t d = 0; d < config.soc.machine.n_devices; d++) {
        for (int i = 0; i < 3; i++) {
            struct work_shape one = price_decode_shape(&config.llm, 1024, batches[i]);
            for (uint32_t chunk = 128; chunk < 2048; chunk *= 2) {
                struct work_shape two = price_prefill_shape(&config.llm, chunk, 1);
                struct work_shape w = one;
                w.rows = one.rows + two.rows;
                w.logit_rows = one.logit_rows + two.logit_rows;
                w.sequences = one.sequences + two.sequences;
                w.prefill_rows = two.prefill_rows;
                w.attn_pairs = one.attn_pairs + two.attn_pairs;
                w.kv_read_tokens = one.kv_read_tokens + two.kv_read_tokens;
                double s = pass_s(d, w);
                char what[48];
                (void)snprintf(what, sizeof what, "%u decoding sequences", batches[i]);
                const char *name = config.soc.machine.devices[d].name;
                is("mixed", name, what, "prefill_tokens", chunk, "time", "ms", 1e3 * s);
                is("mixed", name, what, "prefill_tokens", chunk, "decode_slowdown", "x",
                   s / pass_s(d, one));
                is("mixed", name, what, "prefill_tokens", chunk, "prefill_slowdown", "x",
                   s / pass_s(d, two));
            }
        }
    }
    end();
}
END_TEST

START_TEST(chunk)
{
    load(machines[_i]);
    run("chunk");
    const struct machine *m = &config.soc.machine;
    int d = 0;
    while (m->devices[d].chunk_rows == 0) {
        d++;
    }
    const char *name = m->devices[d].name;
    uint32_t knee = 0;
    double best = 0.0;
    double rate[6];
    for (int i = 0; i < 6; i++) {
        uint32_t n = 32u << i;
        struct chunk k = chunks_price(&config.truth, (uint8_t)d, n);
        rate[i] = k.tokens_per_s;
        best = fmax(best, rate[i]);
        is("chunk", name, "prompt of 1024 tokens", "chunk_rows", n, "throughput", "tok/s",
           1024 / k.request_s);
        is("chunk", name, "prompt of 1024 tokens", "chunk_rows", n, "bound_kernel", "ms",
           1e3 * k.kernel_s);
        is("chunk", name, "prompt of 1024 tokens", "chunk_rows", n, "bound_layer", "ms",
           1e3 * k.layer_s);
        is("chunk", name, "prompt of 1024 tokens", "chunk_rows", n, "bound_request", "ms",
           1e3 * k.request_s);
        const struct llm *l = &config.llm;
        is("chunk", name, "prompt of 1024 tokens", "chunk_rows", n, "activations", "MB",
           1e-6 * n * ((l->gated_ffn ? 2.0 : 1.0) * l->ffn_hidden + l->hidden) * l->act_bits / 8);
        is("chunk", name, "prompt of 1024 tokens", "chunk_rows", n, "kernels", "1",
           (double)(1024 / n) * 2 * config.llm.n_layers);
    }
    for (int i = 5; i >= 0; i--) {
        knee = rate[i] >= 0.95 * best ? 32u << i : knee;
    }
    static const char *const fused[] = {"nonlinear ops fused", "nonlinear ops apart",
                                        "nonlinear ops on another engine"};
    for (int i = 0; i < 3; i++) {
        struct roofline r;
        roofline_init(&r, config.truth.model.ops, &config.soc, &config.llm);
        if (i == 1) {
            roofline_unfuse(&r, 0.0);
        } else if (i == 2) {
            roofline_unfuse(&r, 1e-9 * (double)m->sync_ns);
        }
        struct work_shape w = price_prefill_shape(&config.llm, 1024, 1);
        is("chunk", name, fused[i], "chunk_rows", m->devices[d].chunk_rows, "throughput", "tok/s",
           1024 / price_pass(&r, (uint8_t)d, &w).seconds);
    }
    is("chunk", name, "knee", "share_of_best", 0.95, "chunk_rows", "rows", knee);
    end();
}
END_TEST

START_TEST(interval)
{
    load(machines[_i]);
    run("interval");
    const struct conformal *t = interval_table(&err);
    ck_assert_ptr_nonnull(t);
    for (uint8_t d = 0; d < config.soc.machine.n_devices; d++) {
        for (uint32_t n = 32; n <= 8192; n *= 4) {
            for (int decode = 0; decode < 2; decode++) {
                struct conformal_interval x = interval_of(
                    t, &config.soc, d, config.truth.runtime[d], &config.llm, decode == 0, n);
                const char *name = config.soc.machine.devices[d].name;
                const char *phase = decode == 0 ? "prefill" : "decode";
                is("interval", name, phase, "tokens", n, "low", "x", x.low_factor);
                is("interval", name, phase, "tokens", n, "high", "x", x.high_factor);
                is("interval", name, phase, "tokens", n, "distance", "ln", x.distance);
            }
        }
    }
    end();
}
END_TEST

/* The three metrics of one run of its own, of a minute. */
static void one_run(const char *policy, const char *workload, uint32_t replication, double out[3])
{
    static const char *const metrics[] = {"reactive.e2e_s.mean", "proactive.e2e_s.mean",
                                          "truncated.all.throughput_req_per_min"};
    struct config_options of = options;
    struct config_policy p = {0};
    struct trace t;
    struct runner_options o = {.samples = RUNNER_SAMPLES_AUTO};
    static struct runner_result r;
    uint64_t seed = config_seed(options.seed, replication);
    of.workload = workload;
    ck_assert_int_eq(config_policy_parse(&p, policy, &err), 0);
    ck_assert_int_eq(config_trace(&of, seed, CONFIG_AS_WRITTEN, &t, &err), 0);
    ck_assert_int_eq(runner_run(&config, &p, &t, seed, &o, &r, &err), 0);
    for (int k = 0; k < 3; k++) {
        out[k] = metric_list_find(&r.metrics, metrics[k])->value;
    }
    runner_result_fini(&r);
    trace_fini(&t);
}

/* At 6, 12, 18 and 24 requests per minute, of which a third are reactive. Student's quantile of two
 * replications is 12.7062, and half of their distance is both s / sqrt(2) and what it multiplies.
 */
START_TEST(schemes)
{
    static const char *const names[][2] = {{"a: preemption, recompute", "recompute-preempt"},
                                           {"b: time sharing", "time-share"},
                                           {"c: continuous batching", "orca"},
                                           {"d: Agent.xpu v1", "agent-xpu-v1"},
                                           {"d: Agent.xpu v2", "agent-xpu-v2"}};
    static const char *const metrics[][3] = {
        {"reactive.e2e_s.mean", "reactive.e2e_s.mean.half_width", "s"},
        {"proactive.e2e_s.mean", "proactive.e2e_s.mean.half_width", "s"},
        {"truncated.all.throughput_req_per_min", "truncated.all.throughput_req_per_min.half_width",
         "1/min"}};
    load("core-ultra-5-125h");
    config.sim.horizon_s = 60.0;
    struct characterize k = {.study = "schemes",
                             .config = &config,
                             .options = &options,
                             .replications = 2,
                             .how = {.parallel = 1, .cpu_limit_s = 60.0}};
    characterize_run(&k, rows, &err);
    ck_assert_msg(err.n == 0, "%s", err.n > 0 ? err.lines[0] : "");
    at = 0;
    for (int rate = 1; rate <= 4; rate++) {
        OWNED char *workload = xformat(
            "mixed:reactive_per_min=%d,proactive_per_min=%d,duration_s=900", 2 * rate, 4 * rate);
        for (int i = 0; i < 5; i++) {
            double a[3];
            double b[3];
            one_run(names[i][1], workload, 0, a);
            one_run(names[i][1], workload, 1, b);
            for (int m = 0; m < 3; m++) {
                const char *const *of = metrics[m];
                is("schemes", names[i][1], names[i][0], "requests_per_min", 6 * rate, of[0], of[2],
                   (a[m] + b[m]) / 2.0);
                is("schemes", names[i][1], names[i][0], "requests_per_min", 6 * rate, of[1], of[2],
                   12.706204736174694 * fabs(a[m] - b[m]) / 2.0);
            }
        }
    }
    end();
}
END_TEST

/* A study that the machine cannot do is refused by name, and adds no row. */
START_TEST(refusals)
{
    load("rk3588");
    struct machine *m = &config.soc.machine;
    struct characterize k = {.study = "chunk", .config = &config, .options = &options};
    for (uint32_t d = 0; d < m->n_devices; d++) {
        m->devices[d].chunk_rows = 0;
    }
    characterize_run(&k, rows, &err);
    ck_assert_str_eq(err.lines[0], "characterize chunk: no device of rk3588 has static shapes");
    m->n_devices = 1;
    k.study = "corun";
    characterize_run(&k, rows, &err);
    ck_assert_str_eq(err.lines[1], "characterize corun: rk3588 has no two engines");
    k.study = "weather";
    characterize_run(&k, rows, &err);
    ck_assert_str_eq(err.lines[2], "characterize weather: must be one of affinity, corun, batch, "
                                   "prompt, mixed, chunk, verify, schemes, interval");
    ck_assert_uint_eq(err.n, 3);
    ck_assert_uint_eq(frame_rows(rows), 0);
    static const char *const names[] = {"affinity", "corun",  "batch",   "prompt",  "mixed",
                                        "chunk",    "verify", "schemes", "interval"};
    for (size_t i = 0; i < 9; i++) {
        ck_assert_str_eq(characterize_study(i), names[i]);
    }
    ck_assert_ptr_null(characterize_study(9));
}
END_TEST

static const struct suite_row suite[] = {
    CASE("rows of characterize", .teardown = teardown),
    LOOP(affinity, 3),
    LOOP(corun, 3),
    LOOP(passes, 3),
    LOOP(mixed, 3),
    LOOP(chunk, 3),
    LOOP(interval, 3),
    TEST(schemes),
    TEST(refusals),
};
SUITE_MAIN("rows of characterize", suite)
