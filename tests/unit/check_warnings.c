/* Warnings of a result: which devices, shares, reasons and meters they name, by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/run/warnings.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static struct config c;
static struct document *d;
static struct document *list;

static void setup(void)
{
    memset(&c, 0, sizeof c);
    c.workload = "";
    d = document_new();
    list = warnings_of(d);
}

/* The warnings as data, and that people see each as a line of its own. */
static void are(const char *json)
{
    cJSON *tree = document_json(d);
    const cJSON *all = cJSON_GetObjectItem(tree, "warnings");
    OWNED char *is = cJSON_PrintUnformatted(all);
    ck_assert_str_eq(is, json);
    SCOPED(text_fini) struct text want = {0};
    const cJSON *one;
    cJSON_ArrayForEach (one, all) {
        text_format(&want, "\nwarning: %s\n", one->valuestring);
    }
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    ck_assert_str_eq(text, text_end(&want));
    free(text);
    cJSON_Delete(tree);
}

static void device(uint32_t i, const char *name, double decode, double prefill, int meter)
{
    struct device *o = &c.soc.machine.devices[i];
    (void)snprintf(o->name, sizeof o->name, "%s", name);
    o->decode_watts = decode;
    o->prefill_watts = prefill;
    c.soc.devices[i].meter = meter;
    c.soc.machine.n_devices = i + 1;
}

/* ---- outside the calibrated range ---- */

static const struct {
    struct {
        const char *metric;
        double value;
    } of[8];
    const char *text; /* NULL: nothing is outside */
} ranges[] = {
    {{{"npu.extrapolated_frac", 0.25}}, "npu 25 % of its kernel time"},
    {{{"npu.extrapolated_frac", 0.25}, {"npu.extrapolated_rows_frac", 0.1}},
     "npu 25 % of its kernel time (more rows)"},
    {{{"npu.extrapolated_context_frac", 0.2}, {"npu.extrapolated_frac", 0.12345}},
     "npu 12.3 % of its kernel time (longer contexts)"},
    {{{"igpu.extrapolated_frac", 1},
      {"igpu.extrapolated_rows_frac", 0.5},
      {"igpu.extrapolated_context_frac", 0.75}},
     "igpu 100 % of its kernel time (longer contexts, more rows)"},
    /* each device with its own; one below 0.05 % is inside, and so is such a part */
    {{{"npu.extrapolated_frac", 0.0004},
      {"npu.extrapolated_rows_frac", 0.0004},
      {"igpu.extrapolated_frac", 0.0005},
      {"igpu.extrapolated_rows_frac", 0.0004},
      {"igpu.extrapolated_context_frac", 0.0005},
      {"cpu.extrapolated_frac", 0.5},
      {"cpu.extrapolated_rows_frac", 0.5}},
     "igpu 0.05 % of its kernel time (longer contexts), cpu 50 % of its kernel time (more rows)"},
    {{{"npu.extrapolated_frac", 0}, {"npu.extrapolated_rows_frac", 0}}, NULL},
    /* what is none of these */
    {{{"npu.extrapolated_fraction", 1},
      {"npu.busy_frac", 1},
      {"extrapolated_frac", 1},
      {"a-device-with-17.extrapolated_frac", 1}},
     NULL},
    {{{"npu.extrapolated_frac", 0.25}, {"npu.extrapolated_frac", NAN}},
     "npu 25 % of its kernel time"},
    {{{"np.extrapolated_frac", 0.25}, {"npu.extrapolated_frac", 0.5}},
     "np 25 % of its kernel time, npu 50 % of its kernel time"},
    {{{"npu.extrapolated_frac", 0.25}, {"np.extrapolated_frac", 0.5}},
     "npu 25 % of its kernel time, np 50 % of its kernel time"},
    {{{NULL, 0}}, NULL},
};

START_TEST(shares_outside_the_range_are_named)
{
    struct extrapolated x = {.n = 0};
    for (int i = 0; i < 8 && ranges[_i].of[i].metric != NULL; i++) {
        extrapolated_add(&x, ranges[_i].of[i].metric, ranges[_i].of[i].value);
    }
    OWNED char *text = extrapolated_text(&x);
    ck_assert((text == NULL) == (ranges[_i].text == NULL));
    if (text != NULL) {
        ck_assert_str_eq(text, ranges[_i].text);
    }
}
END_TEST

/* One warning for all: those that are outside, by their labels. */
START_TEST(a_range_is_one_warning)
{
    struct extrapolated x[3] = {{.n = 0}};
    extrapolated_add(&x[0], "npu.extrapolated_frac", 0.5);
    extrapolated_add(&x[1], "npu.extrapolated_frac", 0);
    extrapolated_add(&x[2], "igpu.extrapolated_frac", 0.25);
    warnings_range(&x[1], NULL, 1, list);
    are("[]");
    warnings_range(x, (const char *const[]){"fcfs", "edf", "sjf"}, 3, list);
    warnings_range(&x[2], NULL, 1, list);
    are("[\"outside the calibrated range, where times are extrapolated: fcfs: npu 50 % of its "
        "kernel time; "
        "sjf: igpu 25 % of its kernel time\","
        "\"outside the calibrated range, where times are extrapolated: igpu 25 % of its kernel "
        "time\"]");
}
END_TEST

/* More devices than a machine has are not kept. */
START_TEST(devices_beyond_a_machine_are_dropped)
{
    struct extrapolated x = {.n = 0};
    for (int i = 0; i < MACHINE_MAX_DEVICES + 2; i++) {
        OWNED char *metric = xformat("d%d.extrapolated_frac", i);
        extrapolated_add(&x, metric, 0.5);
    }
    ck_assert_uint_eq(x.n, MACHINE_MAX_DEVICES);
    extrapolated_add(&x, "d0.extrapolated_frac", 0.25);
    ck_assert_double_eq(x.of[0].frac, 0.25);
    ck_assert_double_eq(x.of[MACHINE_MAX_DEVICES - 1].frac, 0.5);
}
END_TEST

/* ---- meters ---- */

static void meter_is(const char *want)
{
    OWNED char *is = warnings_meter(&c);
    ck_assert_str_eq(is, want);
}

/* Devices without powers have no meter. */
START_TEST(meters_are_those_of_devices_with_powers)
{
    meter_is(soc_meter_names()[0]);
    device(0, "igpu", 0, 0, SOC_METER_PACKAGE);
    device(1, "npu", 0, 5, SOC_METER_RAIL);
    device(2, "cpu", 0, 0, SOC_METER_WALL);
    meter_is("rail");
    warnings_energy(&c, list);
    are("[\"energy counts the devices' own rails only: what the memory and the rest of the chip "
        "draw for them is missing\"]");
    device(0, "igpu", 3, 0, SOC_METER_RAIL);
    c.soc.machine.n_devices = 3;
    meter_is("rail");
    device(2, "cpu", 1, 1, SOC_METER_WALL);
    meter_is("different (igpu rail, npu rail, cpu wall)");
    setup();
    device(0, "igpu", 3, 0, SOC_METER_PACKAGE);
    device(1, "npu", 2, 0, SOC_METER_PACKAGE);
    meter_is("package");
    warnings_energy(&c, list);
    are("[]");
    device(1, "npu", 2, 0, SOC_METER_RAIL);
    meter_is("different (igpu package, npu rail)");
    warnings_energy(&c, list);
    are("[\"energy compares devices whose powers come from different meters (igpu package, npu "
        "rail): which device takes "
        "less energy is not known\"]");
}
END_TEST

/* ---- machines ---- */

/* The run has four models: of 4 bits, of 16 bits twice, and of 4 bits again. Each width is said
 * once.
 */
START_TEST(numbers_of_other_parts_are_said)
{
    static struct config_model more[3];
    device(0, "igpu", 0, 0, 0);
    device(1, "npu", 0, 0, 0);
    (void)snprintf(c.soc.machine.name, sizeof c.soc.machine.name, "m");
    c.llm.weight_bits = 4;
    warnings_sketch(false, list);
    warnings_sketch(true, list);
    c.truth.fallback[1] = true;
    c.soc.extrapolated_npu = true;
    for (int i = 0; i < 3; i++) {
        more[i] = (struct config_model){.llm.weight_bits = i < 2 ? 16 : 4};
        more[i].truth.fallback[0] = true;
    }
    c.more = more;
    c.n_more = 3;
    warnings_machine(&c, list);
    c.more = NULL;
    c.n_more = 0;
    cJSON *tree = document_json(d);
    const cJSON *all = cJSON_GetObjectItem(tree, "warnings");
    static const char *const want[] = {
        "quantiles are from a sketch, within 0.5 % (--exact keeps every sample)",
        "npu has no parameters for 4-bit weights: those of its default runtime are used",
        "igpu has no parameters for 16-bit weights: those of its default runtime are used",
        "the NPU numbers of m are extrapolated from other parts (hwmodels/README.md)"};
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(cJSON_GetArrayItem(all, i)->valuestring, want[i]);
    }
    cJSON_Delete(tree);
}
END_TEST

/* Each of three devices was measured, or has numbers of its own as a start, or neither: the last
 * are the ones that the machine has from another. The first and the last device are no
 * exceptions. */
START_TEST(each_device_that_is_made_from_another_machine_is_said)
{
    static const char *const names[] = {"igpu", "npu", "cpu"};
    for (uint32_t i = 0; i < 3; i++) {
        device(i, names[i], 0, 0, 0);
        struct soc_runtime *r = &c.soc.devices[i].runtimes[c.soc.devices[i].fallback];
        uint32_t is = (uint32_t)_i / (i == 0 ? 1 : i == 1 ? 3 : 9) % 3;
        r->measured_rows = is == 1 ? 4 : 0;
        r->start.given = is == 2;
    }
    (void)snprintf(c.soc.like, sizeof c.soc.like, "%s", _i < 27 ? "core-ultra-7-155h" : "");
    warnings_machine(&c, list);
    cJSON *tree = document_json(d);
    const cJSON *one = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "warnings"), 0);
    for (uint32_t i = 0; i < 3 && _i < 27; i++) {
        if ((uint32_t)_i / (i == 0 ? 1 : i == 1 ? 3 : 9) % 3 == 0) {
            OWNED char *begin =
                xformat("%s: made from core-ultra-7-155h by data sheet; ", names[i]);
            ck_assert_ptr_nonnull(one);
            ck_assert_msg(strncmp(one->valuestring, begin, strlen(begin)) == 0, "%s",
                          one->valuestring);
            one = one->next;
        }
    }
    ck_assert_ptr_null(one);
    cJSON_Delete(tree);
}
END_TEST

/* The 4-bit files of mixtures seldom have 4 bits outside their experts. gpt-oss's file says how
 * many it has, a dense model has no experts, and 16 bits are the widest. */
START_TEST(a_mixture_of_one_width_is_said)
{
    static const char *const llms[] = {"llama-3.2-3b,q=qwen3.6-35b-a3b:bits=4",
                                       "qwen3.6-35b-a3b:bits=4", "gpt-oss-20b:bits=4",
                                       "qwen3.6-35b-a3b:bits=16", "qwen3-8b:bits=4"};
    const int wanted[] = {1, 1, 0, 0, 0};
    struct config k;
    struct config_options o = config_options_default();
    SCOPED(err_fini) struct err e = ERR_INIT;
    o.soc = "ryzen-ai-max-395";
    o.llm = llms[_i];
    ck_assert_msg(config_load(&k, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    warnings_machine(&k, list);
    cJSON *tree = document_json(d);
    int said = 0;
    const cJSON *one;
    cJSON_ArrayForEach (one, cJSON_GetObjectItem(tree, "warnings")) {
        bool mixture = strncmp(one->valuestring, "all weights of ", 15) == 0;
        said += mixture;
        ck_assert(!mixture ||
                  strstr(one->valuestring,
                         "qwen3.6-35b-a3b:bits=4 have 4 bits here. Files of mixtures in dynamic "
                         "formats (UD-Q4_K_XL) have nearly 16 outside experts") != NULL);
    }
    ck_assert_int_eq(said, wanted[_i]);
    cJSON_Delete(tree);
    config_fini(&k);
}
END_TEST

/* Qwen3.6 35B has states of 548,864 elements in 30 layers, 65.9 MB with 4 bytes each. */
START_TEST(states_of_cached_beginnings_are_said)
{
    struct config k;
    struct config_options o = config_options_default();
    SCOPED(err_fini) struct err e = ERR_INIT;
    o.soc = "core-ultra-9-288v";
    o.llm = "llama-3.2-3b,q=qwen3.6-35b-a3b";
    ck_assert_msg(config_load(&k, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    warnings_machine(&k, list);
    cJSON *tree = document_json(d);
    int said = 0;
    const cJSON *one;
    cJSON_ArrayForEach (one, cJSON_GetObjectItem(tree, "warnings")) {
        said += strcmp(one->valuestring,
                       "a sequence of qwen3.6-35b-a3b has states of 65.9 MB. A cached beginning is "
                       "taken at any of its blocks; engines keep states at a few places only, and "
                       "compute more again") == 0;
        ck_assert_ptr_null(strstr(one->valuestring, "a sequence of llama"));
    }
    ck_assert_int_eq(said, 1);
    cJSON_Delete(tree);
    config_fini(&k);
}
END_TEST

/* The devices of ryzen-ai-max-395 have FastFlowLM, llama.cpp and LM Studio, and those of
 * core-ultra-7-258v OpenVINO. It takes two devices with work; the second policy has one. With two
 * models each device may have its own. */
START_TEST(runtimes_of_two_makers_are_said)
{
    static const char *const socs[] = {"ryzen-ai-max-395", "core-ultra-7-258v", "ryzen-ai-max-395"};
    static const char *const llms[] = {"qwen3-8b:bits=4", "qwen3-8b:bits=4",
                                       "qwen3-8b:bits=4,q=qwen3-0.6b:bits=4"};
    const double busy[2 * MACHINE_MAX_DEVICES] = {0.5, 0.01, 0.0, [MACHINE_MAX_DEVICES + 2] = 0.5};
    struct config k;
    struct config_options o = config_options_default();
    SCOPED(err_fini) struct err e = ERR_INIT;
    o.soc = socs[_i];
    o.llm = llms[_i];
    ck_assert_msg(config_load(&k, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
    warnings_formats(&k, busy, NULL, 1, list);
    warnings_formats(&k, busy, (const char *const[]){"p", "q"}, 2, list);
    warnings_formats(&k, busy + MACHINE_MAX_DEVICES, NULL, 1, list);
#define SAID                                                                                       \
    "npu (fastflowlm-0.9), igpu (llama.cpp-vulkan-9187) read one copy of the weights and one KV "  \
    "here. These runtimes may store both in formats of their own (ARCHITECTURE.md, \\\"What is "   \
    "not "                                                                                         \
    "modelled\\\")"
    are(_i == 0 ? "[\"" SAID "\",\"p: " SAID "\"]" : "[]");
    config_fini(&k);
}
END_TEST

/* Two sequences on an XDNA2 laptop whose iGPU computes at 1 TFLOP/s and fills with 50 rows: compute
 * alone decides, and a step of two takes 52 rows' time. One row is bound by its bytes. So the
 * layers take 104 flop a weight at 1 TFLOP/s for 2 rows, and B/w bytes a weight at 50 GB/s for one.
 */
START_TEST(a_dear_batch_that_nobody_measured_is_said)
{
    static const char *const own = "soc.devices.igpu.runtimes.lm-studio/4.";
    static const struct {
        double fill; /* rows */
        const char *more;
        bool said;
    } cases[] = {{50.0, NULL, true},
                 {50.0, "batch_fill=1", false}, /* stated, with any value */
                 {0.0, NULL, false},
                 {50.0, "rate=1000", false}}; /* as fast as one */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config k;
        struct config_options o;
        SCOPED(err_fini) struct err e = ERR_INIT;
        o = config_options_default();
        o.soc = "ryzen-ai-xdna2";
        o.llm = "qwen3-4b:bits=4";
        o.sets[o.n_sets++] = xkeep(xformat("%srate=1", own));
        o.sets[o.n_sets++] = xkeep(xformat("%sdecode_attention=1", own));
        o.sets[o.n_sets++] = xkeep(xformat("%sbandwidth=50", own));
        o.sets[o.n_sets++] = xkeep(xformat("%slaunch=0", own));
        o.sets[o.n_sets++] = xkeep(xformat("%swidth_fill=0", own));
        o.sets[o.n_sets++] = xkeep(xformat("%srow_fill=%g", own, cases[i].fill));
        if (cases[i].more != NULL) {
            o.sets[o.n_sets++] = xkeep(xformat("%s%s", own, cases[i].more));
        }
        ck_assert_msg(config_load(&k, &o, &e) == 0, "%s", e.n > 0 ? e.lines[0] : "");
        struct document *all = document_new();
        warnings_machine(&k, warnings_of(all));
        cJSON *tree = document_json(all);
        const char *text = NULL;
        const cJSON *one;
        cJSON_ArrayForEach (one, cJSON_GetObjectItem(tree, "warnings")) {
            if (strstr(one->valuestring, "two sequences") != NULL) {
                text = one->valuestring;
            }
        }
        ck_assert_int_eq(text != NULL, cases[i].said);
        if (text != NULL) {
            double times;
            ck_assert_int_eq(sscanf(text, "igpu: two sequences decode in %lf times", &times), 1);
            const struct soc_format *f = &k.truth.runtime[1]->format;
            double layer_s = 104.0 / 1e12;
            double bytes_s = f->body_bytes / 50e9;
            /* heads, attention and sampling are a few per cent of either */
            ck_assert_double_eq_tol(times / (layer_s / bytes_s), 1.0, 0.12);
            ck_assert_ptr_nonnull(strstr(text, "no batch of lm-studio is measured"));
        }
        cJSON_Delete(tree);
        config_fini(&k);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("warnings", .setup = setup),
    LOOP(shares_outside_the_range_are_named, sizeof ranges / sizeof ranges[0]),
    TEST(a_range_is_one_warning),
    TEST(devices_beyond_a_machine_are_dropped),
    TEST(meters_are_those_of_devices_with_powers),
    TEST(numbers_of_other_parts_are_said),
    LOOP(each_device_that_is_made_from_another_machine_is_said,
         28), /* 3^3, and a machine of its own */
    TEST(states_of_cached_beginnings_are_said),
    LOOP(a_mixture_of_one_width_is_said, 5),
    LOOP(runtimes_of_two_makers_are_said, 3),
    TEST(a_dear_batch_that_nobody_measured_is_said),
};
SUITE_MAIN("warnings", suite)
