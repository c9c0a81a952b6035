/* A real run's speed and what it ran outside, all numbers that a speed scales, and a probe of a
 * device that is made up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/drive/bench.h"
#include "experiments/drive/probe.h"
#include "experiments/drive/speed.h"
#include "sim/base/arena.h"
#include "sim/drive/drive_impl.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"

/* ---- speed ---- */

static struct config *config_of(void)
{
    struct config *c = xcalloc(1, sizeof *c);
    c->soc.machine.n_devices = 2;
    for (int d = 0; d < 2; d++) {
        c->soc.devices[d].n_runtimes = 3;
        for (int r = 0; r < 3; r++) {
            double x = 1.0 + 10 * d + 100 * r;
            c->soc.devices[d].runtimes[r].ops =
                (struct soc_ops){.given = true,
                                 .qkv = {.n = 3, .rows = {1, 4, 64}, .s = {x, 2 * x, 3 * x}},
                                 .ffn = {.n = 2, .rows = {1, 64}, .s = {4 * x, 5 * x}},
                                 .head = {.n = 1, .rows = {1}, .s = {6 * x}},
                                 .prefill = {.s = 7 * x,
                                             .many = {.pair_s = 8 * x, .row_s = 9 * x},
                                             .few = {.pair_s = 10 * x, .row_s = 11 * x}},
                                 .decode_s = 12 * x,
                                 .decode_key_s = 13 * x,
                                 .decode_row_s = 14 * x,
                                 .layer_s = 15 * x,
                                 .layer_key_s = 16 * x};
        }
        c->truth.runtime[d] = &c->soc.devices[d].runtimes[1];
    }
    return c;
}

/* Every time of the measured entries is divided by its device's speed, and no other entry's. */
START_TEST(a_speed_scales_every_time_of_its_entry)
{
    struct config *c = config_of();
    struct speed s = {.device = {2.0, 0.5}};
    speed_apply(c, &s);
    for (int d = 0; d < 2; d++) {
        for (int r = 0; r < 3; r++) {
            double by = r != 1 ? 1.0 : d == 0 ? 0.5 : 2.0;
            double x = by * (1.0 + 10 * d + 100 * r);
            const struct soc_ops *o = &c->soc.devices[d].runtimes[r].ops;
            const double is[] = {o->qkv.s[0],
                                 o->qkv.s[1],
                                 o->qkv.s[2],
                                 o->ffn.s[0],
                                 o->ffn.s[1],
                                 o->head.s[0],
                                 o->prefill.s,
                                 o->prefill.many.pair_s,
                                 o->prefill.many.row_s,
                                 o->prefill.few.pair_s,
                                 o->prefill.few.row_s,
                                 o->decode_s,
                                 o->decode_key_s,
                                 o->decode_row_s,
                                 o->layer_s,
                                 o->layer_key_s};
            static const double times[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
            for (int i = 0; i < 16; i++) {
                ck_assert_double_eq_tol(is[i], times[i] * x, 1e-9 * x);
            }
            ck_assert(o->qkv.rows[2] == 64 && o->qkv.n == 3);
        }
    }
    free(c);
}
END_TEST

/* Rows beyond 32 and contexts beyond 100 are outside, at their limits they are not; 0 is no limit.
 * A device that ran nothing has the speed 1. */
START_TEST(what_ran_outside_is_a_share_of_the_time)
{
    static const struct {
        uint32_t rows, keys;
        bool outside[4]; /* with both limits, rows alone, contexts alone, none */
    } all[] = {{32, 100, {false, false, false, false}},
               {33, 1, {true, true, false, false}},
               {1, 101, {true, false, true, false}},
               {64, 200, {true, true, true, false}}};
    for (int limits = 0; limits < 4; limits++) {
        struct config *c = config_of();
        c->soc.devices[0].runtimes[1].valid_rows_max = limits < 2 ? 32 : 0;
        c->soc.devices[0].runtimes[1].valid_context_max = limits % 2 == 0 ? 100 : 0;
        struct drive_report report = {.kernels = xcalloc(5, sizeof *report.kernels),
                                      .segments = xcalloc(8, sizeof *report.segments),
                                      .n_kernels = 5,
                                      .n_segments = 8};
        double outside = 0;
        double sum = 0;
        for (uint32_t i = 0; i < 4; i++) {
            report.segments[2 * i] = (struct drive_segment){1, 1, true};
            report.segments[2 * i + 1] = (struct drive_segment){1, all[i].keys, false};
            report.kernels[i] = (struct drive_kernel){.op = OP_QKV,
                                                      .rows = all[i].rows,
                                                      .padded_rows = all[i].rows,
                                                      .shape_rows = all[i].rows,
                                                      .segment0 = 2 * i,
                                                      .n_segments = 2,
                                                      .begin_ns = 100 * (int64_t)i,
                                                      .ns = 1000000 << i};
            outside += all[i].outside[limits] ? 1e6 * (1 << i) : 0.0;
            sum += 1e6 * (1 << i);
        }
        report.kernels[4] = report.kernels[3]; /* lost work counts neither way */
        report.kernels[4].stopped = true;
        struct speed s = speed_of_run(&report, DRIVE_CLOCK_CPU, c);
        ck_assert_double_eq_tol(s.outside_frac, outside / sum, 1e-12);
        ck_assert_double_eq(s.device[1], 1.0);
        drive_report_fini(&report);
        free(c);
    }
}
END_TEST

/* The first token of 8 prompts, and one of each request in the batches: 79. */
START_TEST(a_bench_makes_so_many_tokens)
{
    ck_assert_double_eq(bench_tokens(), 8 + 79);
    struct machine m = {.n_devices = 2};
    m.devices[1].static_attention = true;
    ck_assert(bench_suits(&m, 0) && !bench_suits(&m, 1));
}
END_TEST

/* ---- probes ---- */

static char bench;
static uint32_t n_devices, n_facts;
static int failing; /* the step that fails; -1: none */

static uint32_t devices(void *b, struct engine_bench_device *out, uint32_t cap)
{
    ck_assert(b == &bench && cap > 4);
    static const char *const names[] = {"CPU", "GPU.0", "GPU.1", "NPU"};
    for (uint32_t i = 0; i < n_devices; i++) {
        memset(&out[i], 0, sizeof out[i]);
        (void)snprintf(out[i].name, sizeof out[i].name, "%s", names[i]);
    }
    return n_devices;
}

static uint32_t facts(void *b, const char *device, struct engine_fact *out, uint32_t cap)
{
    ck_assert(b == &bench && cap > 2);
    for (uint32_t i = 0; i < n_facts; i++) {
        (void)snprintf(out[i].name, sizeof out[i].name, "F%u", i);
        (void)snprintf(out[i].value, sizeof out[i].value, "%s %u", device, i);
    }
    return n_facts;
}

static void probe(void *b, const char *device, const struct llm *llm, uint32_t rows, uint32_t step,
                  struct engine_probe *out)
{
    ck_assert(b == &bench && strcmp(llm->name, "m") == 0 && rows == 48);
    memset(out, 0, sizeof *out);
    (void)snprintf(out->what, sizeof out->what, "%s %u", device, step);
    out->ok = (int)step != failing;
    out->cached = step == 1;
    (void)snprintf(out->by, sizeof out->by, "%s", step == 0 ? "driver" : "");
    out->compile_s = out->ok ? 1.5 + step : (double)NAN;
    out->first_s = out->ok ? 0.25 + step : (double)NAN;
    out->again_s = out->ok ? 0.125 + step : (double)NAN;
    out->off_frac = out->ok ? 0.0625 * (step + 1) : (double)NAN;
    (void)snprintf(out->why, sizeof out->why, "no luck");
}

static const struct engine_bench_ops ops = {
    .version = "9.9", .devices = devices, .facts = facts, .probe = probe};

START_TEST(a_probe_tells_facts_and_kernels)
{
    static const struct llm llm = {.name = "m"};
    static const char *const steps[] = {"NPU 0 ok driver no 1.500 250.000 125.000 6.25\n",
                                        "NPU 1 ok - yes 2.500 1250.000 1125.000 12.50\n",
                                        "NPU 2 ok - no 3.500 2250.000 2125.000 18.75\n"};
    static const char *const data[] = {
        "{\"kernel\":\"NPU 0\",\"result\":\"ok\",\"compiler\":\"driver\",\"cached\":false,"
        "\"compile_s\":1.5,\"first_s\":0.25,\"again_s\":0.125,\"off_frac\":0.0625,\"why\":null}",
        "{\"kernel\":\"NPU 1\",\"result\":\"ok\",\"compiler\":null,\"cached\":true,"
        "\"compile_s\":2.5,\"first_s\":1.25,\"again_s\":1.125,\"off_frac\":0.125,\"why\":null}",
        "{\"kernel\":\"NPU 2\",\"result\":\"ok\",\"compiler\":null,\"cached\":false,"
        "\"compile_s\":3.5,\"first_s\":2.25,\"again_s\":2.125,\"off_frac\":0.1875,\"why\":null}"};
    n_devices = 4;
    n_facts = 2;
    struct probe p = {&ops, &bench};
    struct err e = ERR_INIT;
    for (failing = -1; failing < 3; failing++) {
        struct document *d = document_new();
        char *said;
        said_catch();
        int failed = probe_device(&p, "npu", &llm, 48, d, &e);
        said_caught(NULL, &said);
        ck_assert_int_eq(failed, failing >= 0);
        ck_assert_str_eq(said, "xpusim: NPU: kernel 1 of 3\nxpusim: NPU: kernel 2 of 3\n"
                               "xpusim: NPU: kernel 3 of 3\n");
        free(said);
        SCOPED(text_fini) struct text want = {0};
        SCOPED(text_fini) struct text json = {0};
        text_string(&want, "fact value\nF0 NPU 0\nF1 NPU 1\nkernel result compiler cached compile "
                           "s first ms again ms off CPU % why\n");
        text_string(&json,
                    "{\"device\":\"NPU\",\"openvino\":\"9.9\",\"facts\":[{\"fact\":\"F0\","
                    "\"value\":\"NPU 0\"},{\"fact\":\"F1\",\"value\":\"NPU 1\"}],\"kernels\":[");
        for (int i = 0; i < 3; i++) {
            OWNED char *bad = xformat("NPU %d failed %s %s - - - - no luck\n", i,
                                      i == 0 ? "driver" : "-", i == 1 ? "yes" : "no");
            OWNED char *bad_data = xformat(
                "{\"kernel\":\"NPU %d\",\"result\":\"failed\",\"compiler\":%s,\"cached\":%s,"
                "\"compile_s\":null,\"first_s\":null,\"again_s\":null,\"off_frac\":null,"
                "\"why\":\"no luck\"}",
                i, i == 0 ? "\"driver\"" : "null", i == 1 ? "true" : "false");
            text_string(&want, i == failing ? bad : steps[i]);
            text_format(&json, "%s%s", i > 0 ? "," : "", i == failing ? bad_data : data[i]);
        }
        text_string(&json, "]}");
        shown_is(d, text_end(&want), text_end(&json));
    }
    ck_assert_uint_eq(e.n, 0);
}
END_TEST

START_TEST(a_probe_of_nothing_says_what_there_is)
{
    static const struct llm llm = {.name = "m"};
    static const char *const has[] = {"none", "CPU", "CPU, GPU.0", "CPU, GPU.0, GPU.1",
                                      "CPU, GPU.0, GPU.1, NPU"};
    struct probe p = {&ops, &bench};
    for (n_devices = 0; n_devices < 5; n_devices++) {
        struct err e = ERR_INIT;
        ck_assert_int_eq(probe_device(&p, "GPU", &llm, 48, document_new(), &e), -EINVAL);
        OWNED char *want =
            xformat("--probe GPU: OpenVINO finds no such device here; it has %s. For an NPU or GPU "
                    "its driver must be installed",
                    has[n_devices]);
        ck_assert_str_eq(e.lines[0], want);
        err_fini(&e);
    }
    n_devices = 4;
    n_facts = 0;
    failing = -1;
    static const char *const asked[] = {"cpu", "gpu.0", "GPU.1", "Npu"};
    static const char *const is[] = {"CPU", "GPU.0", "GPU.1", "NPU"};
    for (int i = 0; i < 4; i++) {
        struct err e = ERR_INIT;
        struct document *d = document_new();
        said_catch();
        ck_assert_int_eq(probe_device(&p, asked[i], &llm, 48, d, &e), 0);
        said_caught(NULL, NULL);
        OWNED char *json = said_json(d);
        OWNED char *head = xformat("{\"device\":\"%s\",", is[i]);
        ck_assert(strncmp(json, head, strlen(head)) == 0);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("more of drive"),
    TEST(a_speed_scales_every_time_of_its_entry),
    TEST(what_ran_outside_is_a_share_of_the_time),
    TEST(a_bench_makes_so_many_tokens),
    TEST(a_probe_tells_facts_and_kernels),
    TEST(a_probe_of_nothing_says_what_there_is),
};
SUITE_MAIN("more of drive", suite)
