/* Which engine's device and which core each device of a machine gets: lists of names and cores in
 * every order, what is refused, and what a comparison says of it. And how a transferable form is
 * written and printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/drive/real.h"
#include "experiments/drive/transfer.h"
#include "sim/base/base.h"
#include "sim/base/memory.h"
#include "tests/helpers/madeengines.h"
#include "tests/helpers/said.h"
#include "tests/helpers/suite.h"

static char folder[] = "/tmp/xpusim-check-real-XXXXXX";
static struct machine machine;
static struct real_options options;
static struct err err;

static void setup(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)setenv("XPUSIM_ENGINES", folder, 1);
    err = (struct err)ERR_INIT;
    machine = (struct machine){.name = "m", .n_devices = 3};
    static const char *const names[] = {"npu", "igpu", "cpu"};
    static const enum device_kind kinds[] = {DEVICE_KIND_NPU, DEVICE_KIND_IGPU, DEVICE_KIND_CPU};
    for (int i = 0; i < 3; i++) {
        machine.devices[i].kind = kinds[i];
        (void)snprintf(machine.devices[i].name, sizeof machine.devices[i].name, "%s", names[i]);
    }
    options = (struct real_options){.engine = "ggml", .clock = "wall"};
}

static void teardown(void)
{
    OWNED char *command = xformat("rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    err_fini(&err);
}

/* The devices as "NAME@CORE NAME@CORE ..", or the first error. */
static char *given(const char *engine, const char *devices, const char *cores)
{
    static struct drive_options out;
    struct err e = ERR_INIT;
    options.engine = engine;
    options.devices = devices;
    options.cores = cores;
    struct text t = {0};
    if (real_devices(&options, &machine, &out, &e) != 0) {
        text_string(&t, e.lines[0]);
    } else {
        for (uint32_t i = 0; i < machine.n_devices; i++) {
            const struct drive_device *d = &out.devices[i];
            text_format(&t, "%s%s:%s@%d", i > 0 ? " " : "", d->engine->name, d->name, d->core);
        }
    }
    err_fini(&e);
    return text_end(&t);
}

static void is(const char *engine, const char *devices, const char *cores, const char *want)
{
    OWNED char *text = given(engine, devices, cores);
    ck_assert_msg(strcmp(text, want) == 0, "%s, %s, %s: %s, not %s", engine,
                  devices != NULL ? devices : "-", cores != NULL ? cores : "-", text, want);
}

START_TEST(every_device_gets_a_name_and_a_core)
{
    if (!madeengines_make(folder, true, true)) {
        return;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    int one = n > 1 ? 1 : 0;
    OWNED char *usual = xformat("ggml:CPU@0 ggml:CPU@%d ggml:CPU@%ld", one, 2 % n);
    is("ggml", NULL, NULL, usual);
    is("ggml", NULL, "0", "ggml:CPU@0 ggml:CPU@0 ggml:CPU@0");
    if (n > 1) {
        is("ggml", NULL, "1,0", "ggml:CPU@1 ggml:CPU@0 ggml:CPU@0");
        is("ggml", NULL, "0,1,0", "ggml:CPU@0 ggml:CPU@1 ggml:CPU@0");
        is("ggml", NULL, "1", "ggml:CPU@1 ggml:CPU@1 ggml:CPU@1");
    }
    is("mixed", NULL, "0", "openvino:CPU@0 ggml:CPU@0 ggml:CPU@0");
    /* NPU and GPU by kind, wherever they are in the list; the others in order, the last for all */
    is("openvino", "NPU,GPU", "0", "openvino:NPU@0 openvino:GPU@0 openvino:CPU@0");
    is("openvino", "GPU.1,NPU", "0", "openvino:NPU@0 openvino:GPU.1@0 openvino:CPU@0");
    is("openvino", "CPU,GPU", "0", "openvino:CPU@0 openvino:GPU@0 openvino:CPU@0");
    is("openvino", "A,B,C", "0", "openvino:A@0 openvino:B@0 openvino:C@0");
    is("openvino", "A,B", "0", "openvino:A@0 openvino:B@0 openvino:B@0");
    is("openvino", "A", "0", "openvino:A@0 openvino:A@0 openvino:A@0");
    is("openvino", "A,NPU,B", "0", "openvino:NPU@0 openvino:A@0 openvino:B@0");
    is("ggml", "GPU,A,NPU,B", "0", "ggml:NPU@0 ggml:GPU@0 ggml:A@0");
    is("ggml", "GPU", "0", "ggml:CPU@0 ggml:GPU@0 ggml:CPU@0");
    machine.devices[1].kind = DEVICE_KIND_GPU;
    is("openvino", "NPU,GPU", "0", "openvino:NPU@0 openvino:GPU@0 openvino:CPU@0");
    machine.devices[0].kind = DEVICE_KIND_IGPU; /* two of a kind: the first first */
    is("openvino", "GPU.1,GPU.0", "0", "openvino:GPU.1@0 openvino:GPU.0@0 openvino:CPU@0");
}
END_TEST

START_TEST(names_and_cores_that_cannot_be_are_refused)
{
    if (!madeengines_make(folder, true, true)) {
        return;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    OWNED char *beyond = xformat("%ld", n);
    OWNED char *last = xformat("%ld", n - 1);
    const char *const bad[] = {"-1", "x", "0x", beyond, "0,-1"};
    for (int i = 0; i < 5; i++) {
        OWNED char *want = xformat("--cores %s: there are processors 0 to %ld", bad[i], n - 1);
        is("ggml", NULL, bad[i], want);
    }
    OWNED char *fine = xformat("ggml:CPU@%s ggml:CPU@%s ggml:CPU@%s", last, last, last);
    is("ggml", NULL, last, fine);
    is("openvino", "NPU,NPU,GPU", "0",
       "--devices NPU,NPU,GPU: NPU is for no device of m, which has npu, igpu, cpu");
    is("openvino", "GPU,GPU.1,NPU", "0",
       "--devices GPU,GPU.1,NPU: GPU.1 is for no device of m, which has npu, igpu, cpu");
    is("openvino", "NPU", "0",
       "--devices NPU: names nothing for igpu of m; CPU is every device that is not named");
    is("openvino", "GPU", "0",
       "--devices GPU: names nothing for npu of m; CPU is every device that is not named");
    is("openvino", "0123456789abcdef", "0",
       "--devices 0123456789abcdef: no engine has a device of that name");
    is("openvino", "0123456789abcde", "0",
       "openvino:0123456789abcde@0 openvino:0123456789abcde@0 openvino:0123456789abcde@0");
    (void)unlink(xkept(xformat("%s/ggml.so", folder)));
    OWNED char *none = given("nobody", NULL, NULL);
    ck_assert_ptr_nonnull(strstr(none, "nobody"));
}
END_TEST

START_TEST(options_are_passed_on_and_told)
{
    if (!madeengines_make(folder, true, true)) {
        return;
    }
    static struct drive_options out;
    options = (struct real_options){.engine = "mixed",
                                    .clock = "cpu",
                                    .devices = "NPU,GPU",
                                    .cores = "0",
                                    .realtime = true,
                                    .limit_s = 3,
                                    .hang_s = 5,
                                    .compile_s = 7};
    ck_assert_int_eq(real_devices(&options, &machine, &out, &err), 0);
    ck_assert(out.clock == DRIVE_CLOCK_CPU && out.realtime && out.limit_s == 3 && out.hang_s == 5 &&
              out.compile_s == 7);
    OWNED char *text = real_describe(&out, &machine);
    ck_assert_str_eq(text, "npu = openvino 1.openvino, NPU, core 0; igpu = ggml 1.ggml, GPU, core "
                           "0; cpu = ggml 1.ggml, CPU, core 0");
    options.clock = "wall";
    options.realtime = false;
    ck_assert_int_eq(real_devices(&options, &machine, &out, &err), 0);
    ck_assert(out.clock == DRIVE_CLOCK_WALL && !out.realtime);
}
END_TEST

/* ---- the transferable form ---- */

static struct transfer transfer_of(void)
{
    static struct transfer t;
    t = (struct transfer){.n_devices = 3};
    for (int i = 0; i < 2; i++) {
        struct transfer_device *d = &t.devices[2 * i];
        d->kinds = 20 + (uint32_t)i;
        d->kernels = 300 + (uint32_t)i;
        d->few_rows = 8 + (uint32_t)i;
        d->median_frac = 0.0625 + i;
        d->p90_frac = 0.25 + i;
        for (int k = 0; k < TRANSFER_NUMBERS; k++) {
            double v = 1 + k + 100 * i;
            d->number[k] = (struct fit_number){v, v / 2, 2 * v};
        }
    }
    return t;
}

static const char *const keys[] = {"rate",      "bandwidth",        "launch", "row_fill",
                                   "attention", "decode_attention", "knee",   "one_row.launch"};
static const char *const units[] = {"TFLOP/s", "GB/s", "us", "rows", "1", "1", "1", "us"};

START_TEST(a_form_is_printed_device_by_device)
{
    struct transfer t = transfer_of();
    char *text = NULL;
    size_t n = 0;
    FILE *f = memory_stream(&text, &n);
    transfer_print(&t, &machine, f);
    memory_stream_close(f, &text);
    SCOPED(text_fini) struct text want = {0};
    text_string(&want, "transferable form (p-norm), for models that have no table:\n");
    for (int i = 0; i < 2; i++) {
        text_format(&want, "  %-5s", i == 0 ? "npu" : "cpu");
        for (int k = 0; k < 8; k++) {
            double v = 1 + k + 100 * i;
            text_format(&want, " %s %.3g [%.3g, %.3g] %s%s", keys[k], v, v / 2, 2 * v,
                        strcmp(units[k], "1") == 0 ? "" : units[k], k < 7 ? "," : "");
        }
        text_format(&want,
                    "\n        |error| of %d kinds (%d kernels), by time: %.1f %% median, %.1f %% "
                    "P90\n",
                    20 + i, 300 + i, 6.25 + 100 * i, 25.0 + 100 * i);
    }
    ck_assert_str_eq(text, text_end(&want));
    free(text);
}
END_TEST

START_TEST(a_form_is_written_into_an_entry)
{
    struct transfer t = transfer_of();
    cJSON *entry =
        cJSON_Parse("{\"width_fill\":1,\"fit\":2,\"few_rows\":3,\"one_row\":{\"rate\":1},"
                    "\"other\":5}");
    transfer_write(&t.devices[1], entry, "src"); /* nothing was fitted */
    ck_assert_int_eq(cJSON_GetArraySize(entry), 5);
    transfer_write(&t.devices[2], entry, "src");
    const cJSON *one = cJSON_GetObjectItem(entry, "one_row");
    for (int k = 0; k < 10; k++) {
        bool inner = k >= 7;
        static const int of[] = {0, 1, 2, 3, 4, 5, 6, 0, 1, 7};
        static const char *const inside[] = {"rate", "bandwidth", "launch"};
        const cJSON *q = cJSON_GetObjectItem(inner ? one : entry, inner ? inside[k - 7] : keys[k]);
        double v = 101 + of[k];
        ck_assert_msg(q != NULL, "%d", k);
        ck_assert_double_eq(cJSON_GetObjectItem(q, "value")->valuedouble, v);
        ck_assert_double_eq(cJSON_GetObjectItem(q, "low")->valuedouble, v / 2);
        ck_assert_double_eq(cJSON_GetObjectItem(q, "high")->valuedouble, 2 * v);
        ck_assert_str_eq(cJSON_GetObjectItem(q, "unit")->valuestring, units[of[k]]);
        ck_assert_str_eq(cJSON_GetObjectItem(q, "source")->valuestring, "src");
        ck_assert_str_eq(cJSON_GetObjectItem(q, "kind")->valuestring, "fitted");
    }
    ck_assert_int_eq(cJSON_GetArraySize(one), 3);
    ck_assert_double_eq(cJSON_GetObjectItem(entry, "few_rows")->valuedouble, 9);
    ck_assert_double_eq(cJSON_GetObjectItem(entry, "other")->valuedouble, 5);
    ck_assert_int_eq(cJSON_GetArraySize(entry), 10);
    cJSON_Delete(entry);
}
END_TEST

/* A user who waits for a compiler reads its progress every few seconds. */
START_TEST(compiled_kernels_are_told_now_and_then)
{
    if (!madeengines_make(folder, true, true)) {
        return;
    }
    static struct drive_options out;
    ck_assert_int_eq(real_devices(&options, &machine, &out, &err), 0);
    said_catch();
    out.compiled("npu", 3, 8);
    out.compiled("npu", 4, 8);  /* too soon */
    out.compiled("igpu", 0, 9); /* nothing yet */
    OWNED char *said = NULL;
    said_caught(NULL, &said);
    ck_assert_str_eq(said, "xpusim: npu: 3 of 8 kernels compiled\n");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("real devices", .setup = setup, .teardown = teardown, .timeout_s = 60),
    TEST(every_device_gets_a_name_and_a_core),
    TEST(names_and_cores_that_cannot_be_are_refused),
    TEST(options_are_passed_on_and_told),
    TEST(compiled_kernels_are_told_now_and_then),
    TEST(a_form_is_printed_device_by_device),
    TEST(a_form_is_written_into_an_entry),
};
SUITE_MAIN("real devices", suite)
