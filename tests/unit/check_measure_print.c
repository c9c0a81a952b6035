/* A measurement as people and programs see it: made-up fits, pairs and rows, every cell by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/commands/measure_print.h"
#include "experiments/shell/cli.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

/* As people see it, with blanks once and none at the end of a line. */
static char *text_of(const struct document *d)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ' ' && (to == text || to[-1] == ' ' || to[-1] == '\n')) {
            continue;
        }
        to -= *p == '\n' && to > text && to[-1] == ' ';
        *to++ = *p;
    }
    *to = '\0';
    return text;
}

static void is_json(const struct document *d, const char *name, const char *want)
{
    cJSON *tree = document_json(d);
    OWNED char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, name));
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, want);
    cJSON_Delete(tree);
}

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "%s\nis in\n%s", part, text);
}

/* ---- a fit ---- */

static struct kernel_row rows[4] = {
    {.device = "igpu", .model = "gemm 1x2"},
    {.device = "igpu", .model = "gemm 1x2", .partner = "npu:read 5"},
    {.device = "npu", .model = "read 5"},
    {.device = "npu", .model = "read 5", .partner = "igpu:gemm 1x2"},
};

/* Cells of 2 ms alone, slowdowns of 1.5 and 2; the last has no trusted row. */
static struct kernel_cell cells[5];
static struct kernel_fit fit;

static void make_fit(void)
{
    cells[0] = (struct kernel_cell){.row = &rows[0],
                                    .partner = -1,
                                    .n = 3,
                                    .log_mean = log(0.002),
                                    .low = 0.001,
                                    .high = 0.004,
                                    .predicted = 0.0025};
    cells[1] = (struct kernel_cell){.row = &rows[1],
                                    .partner = 2,
                                    .n = 2,
                                    .log_mean = log(1.5),
                                    .low = 1.25,
                                    .high = 1.75,
                                    .predicted = 1.625};
    cells[2] = (struct kernel_cell){.row = &rows[2],
                                    .partner = -1,
                                    .n = 1,
                                    .log_mean = log(0.5),
                                    .low = 0.25,
                                    .high = 1,
                                    .predicted = 0.75,
                                    .held_out = true};
    cells[3] = (struct kernel_cell){.row = &rows[3],
                                    .partner = 0,
                                    .n = 4,
                                    .log_mean = log(2),
                                    .low = 1.5,
                                    .high = 2.5,
                                    .predicted = 3,
                                    .held_out = true};
    cells[4] = (struct kernel_cell){.row = &rows[3], .partner = 0};
    fit = (struct kernel_fit){.cells = cells,
                              .n_cells = 5,
                              .n_points = 17,
                              .n_flagged = 3,
                              .n_repetitions = 6,
                              .drift_frac = 0.0125};
}

/* Rates in 1e9 a second, launches in us, the rest as it is; the op of a sensitivity alone. */
START_TEST(a_parameter_has_its_unit)
{
    static const struct {
        enum kernel_param param;
        double value;
        const char *unit, *shown;
    } all[] = {
        {KERNEL_PARAM_RATE, 2e12, "GFLOP/s", "2000"},
        {KERNEL_PARAM_BANDWIDTH, 5e10, "GB/s", "50"},
        {KERNEL_PARAM_BANDWIDTH_ONE, 6e10, "GB/s", "60"},
        {KERNEL_PARAM_KNEE, 4, "1", "4"},
        {KERNEL_PARAM_LAUNCH, 2.5e-5, "us", "25"},
        {KERNEL_PARAM_ATTENTION, 1e11, "GFLOP/s", "100"},
        {KERNEL_PARAM_READ, 7e10, "GB/s", "70"},
        {KERNEL_PARAM_COPY, 8e10, "GB/s", "80"},
        {KERNEL_PARAM_KNOB_RATE, 3e11, "GFLOP/s", "300"},
        {KERNEL_PARAM_KNOB_KNEE, 2, "1", "2"},
        {KERNEL_PARAM_CAP, 9e10, "GB/s", "90"},
        {KERNEL_PARAM_SHARPNESS, 3, "1", "3"},
        {KERNEL_PARAM_LAMBDA, 0.5, "1", "0.5"},
    };
    make_fit();
    ck_assert_uint_eq(KERNEL_PARAM_COUNT, sizeof all / sizeof all[0]);
    for (uint32_t i = 0; i < KERNEL_PARAM_COUNT; i++) {
        fit.params[fit.n_params++] =
            (struct kernel_estimate){.param = all[i].param,
                                     .device = "npu",
                                     .runtime = "ov",
                                     .weight_bits = 4 + i,
                                     .op = KERNEL_COPY,
                                     .value = all[i].value,
                                     .low = all[i].value / 2,
                                     .high = i == 3 ? (double)INFINITY : 2 * all[i].value,
                                     .resolved = i % 2 == 0};
    }
    struct document *d = document_new();
    measure_document(&fit, d);
    cJSON *tree = document_json(d);
    const cJSON *row;
    uint32_t n = 0;
    cJSON_ArrayForEach (row, cJSON_GetObjectItem(tree, "parameters")) {
        OWNED char *is = cJSON_PrintUnformatted(row);
        char high[32];
        (void)snprintf(high, sizeof high, "%.10g", 2 * atof(all[n].shown));
        OWNED char *want = xformat(
            "{\"parameter\":\"%s\",\"device\":\"npu\",\"runtime\":\"ov\",\"weight_bits\":%u,%s"
            "\"unit\":\"%s\",\"value\":%s,\"low\":%.10g,\"high\":%s,\"resolved\":%s}",
            kernel_param_name(all[n].param), 4 + n,
            all[n].param == KERNEL_PARAM_LAMBDA ? "\"op\":\"copy\"," : "", all[n].unit,
            all[n].shown, atof(all[n].shown) / 2, n == 3 ? "null" : high,
            n % 2 == 0 ? "true" : "false");
        ck_assert_str_eq(is, want);
        n++;
    }
    ck_assert_uint_eq(n, KERNEL_PARAM_COUNT);
    cJSON_Delete(tree);
    OWNED char *text = text_of(d);
    has_not(text, "are not resolved"); /* 6 of 13 */
    fit.params[0].resolved = false;
    struct document *more = document_new();
    measure_document(&fit, more);
    OWNED char *said = text_of(more);
    has(said, "\n7 of 13 parameters are not resolved: with so much noise every form holds\n");
}
END_TEST

START_TEST(a_form_holds_or_does_not)
{
    make_fit();
    fit.alone = (struct kernel_lack_of_fit){
        .tested = true, .f = 1.25, .p = 0.375, .misfit_frac = 0.0125, .noise_frac = 0.03};
    fit.together = (struct kernel_lack_of_fit){.tested = true,
                                               .f = 12.5,
                                               .p = 0.0005,
                                               .misfit_frac = 0.25,
                                               .noise_frac = 0.04,
                                               .wrong = true};
    struct document *d = document_new();
    measure_document(&fit, d);
    OWNED char *text = text_of(d);
    has(text, "17 rows fitted, 3 flagged and left out, 6 repetitions, drift between them 1.25 %\n");
    has(text, "\nalone noise 3.00 %, misfit 1.25 %, F = 1.25, p = 0.38: the form holds\n"
              "together noise 4.00 %, misfit 25.00 %, F = 12.5, p = 0.0005: WRONG FORM, do not "
              "trust the intervals\n");
    is_json(d, "alone",
            "{\"tested\":true,\"noise_frac\":0.03,\"misfit_frac\":0.0125,\"f\":1.25,"
            "\"p\":0.375,\"wrong_form\":false}");
    is_json(d, "together",
            "{\"tested\":true,\"noise_frac\":0.04,\"misfit_frac\":0.25,\"f\":12.5,"
            "\"p\":0.0005,\"wrong_form\":true}");
    is_json(d, "rows", "17");
    is_json(d, "flagged", "3");
    is_json(d, "repetitions", "6");
    is_json(d, "drift_frac", "0.0125");
    fit.together.tested = false;
    struct document *less = document_new();
    measure_document(&fit, less);
    OWNED char *said = text_of(less);
    has(said, "\nalone noise 3.00 %, misfit 1.25 %, F = 1.25, p = 0.38: the form holds\n"
              "together form not tested: needs repetitions and more shapes\n");
}
END_TEST

/* Ops that were held out, and all; a column per form. Data have every form of an op that was. */
START_TEST(forms_are_next_to_each_other)
{
    make_fit();
    for (int form = 0; form < KERNEL_FORM_COUNT; form++) {
        fit.errors[form][KERNEL_COPY] =
            (struct kernel_form_error){5, 0.01 * (form + 1), 0.1 * (form + 1)};
        fit.errors[form][KERNEL_GEMV] =
            (struct kernel_form_error){2, 0.02 * (form + 1), 0.2 * (form + 1)};
        fit.all[form] = (struct kernel_form_error){7, 0.015 * (form + 1), 0.2 * (form + 1)};
    }
    struct document *d = document_new();
    measure_document(&fit, d);
    OWNED char *text = text_of(d);
    has(text, "\nheld-out shapes, error of time: median (worst), by form\n"
              "n two-anchor p-norm table\n"
              "copy 5 1.0 % (10.0 %) 2.0 % (20.0 %) 3.0 % (30.0 %)\n"
              "gemv 2 2.0 % (20.0 %) 4.0 % (40.0 %) 6.0 % (60.0 %)\n"
              "all 7 1.5 % (20.0 %) 3.0 % (40.0 %) 4.5 % (60.0 %)\n");
    cJSON *tree = document_json(d);
    for (int form = 0; form < KERNEL_FORM_COUNT; form++) {
        const cJSON *of = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "held_out"),
                                              kernel_form_name((enum kernel_form)form));
        ck_assert_int_eq(cJSON_GetArraySize(of), 3);
        static const char *const ops[] = {"all", "copy", "gemv"};
        static const double n[] = {7, 5, 2};
        static const double median[] = {0.015, 0.01, 0.02};
        static const double worst[] = {0.2, 0.1, 0.2};
        for (int i = 0; i < 3; i++) {
            const cJSON *o = cJSON_GetArrayItem(of, i);
            ck_assert_str_eq(o->string, ops[i]);
            ck_assert_double_eq(cJSON_GetObjectItem(o, "n")->valuedouble, n[i]);
            ck_assert_double_eq_tol(cJSON_GetObjectItem(o, "median_frac")->valuedouble,
                                    median[i] * (form + 1), 1e-12);
            ck_assert_double_eq_tol(cJSON_GetObjectItem(o, "worst_frac")->valuedouble,
                                    worst[i] * (form + 1), 1e-12);
        }
    }
    cJSON_Delete(tree);
}
END_TEST

/* Kernels alone in ms, the others as slowdowns; people see those that ran next to another. */
START_TEST(kernels_are_measured_and_predicted)
{
    make_fit();
    struct document *d = document_new();
    measure_document(&fit, d);
    cJSON *tree = document_json(d);
    static const struct {
        const char *device, *model, *partner, *metric;
        bool held_out;
        double n, measured, low, high, predicted;
    } all[] = {{"igpu", "gemm 1x2", "", "kernel_ms", false, 3, 2, 1, 4, 2.5},
               {"igpu", "gemm 1x2", "npu:read 5", "co_slowdown", false, 2, 1.5, 1.25, 1.75, 1.625},
               {"npu", "read 5", "", "kernel_ms", true, 1, 500, 250, 1000, 750},
               {"npu", "read 5", "igpu:gemm 1x2", "co_slowdown", true, 4, 2, 1.5, 2.5, 3}};
    const cJSON *row;
    size_t n = 0;
    cJSON_ArrayForEach (row, cJSON_GetObjectItem(tree, "kernels")) {
        ck_assert_uint_lt(n, 4);
        static const char *const texts[] = {"device", "model", "partner", "metric"};
        const char *const want[] = {all[n].device, all[n].model, all[n].partner, all[n].metric};
        for (int k = 0; k < 4; k++) {
            ck_assert_str_eq(cJSON_GetObjectItem(row, texts[k])->valuestring, want[k]);
        }
        static const char *const numbers[] = {"repetitions", "measured", "low", "high",
                                              "predicted"};
        const double is[] = {all[n].n, all[n].measured, all[n].low, all[n].high, all[n].predicted};
        for (int k = 0; k < 5; k++) {
            ck_assert_double_eq_tol(cJSON_GetObjectItem(row, numbers[k])->valuedouble, is[k], 1e-9);
        }
        ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(row, "held_out")) == all[n].held_out);
        n++;
    }
    ck_assert_uint_eq(n, 4);
    cJSON_Delete(tree);
    OWNED char *text = text_of(d);
    has(text, "\nslowdown beside another kernel\n"
              "device kernel beside predicted measured low high\n"
              "igpu gemm 1x2 npu:read 5 1.625 1.5 1.25 1.75\n"
              "npu read 5 igpu:gemm 1x2 3 2 1.5 2.5 held out\n");
    cells[1].n = cells[3].n = 0;
    struct document *alone = document_new();
    measure_document(&fit, alone);
    OWNED char *said = text_of(alone);
    has_not(said, "slowdown");
}
END_TEST

/* ---- pairs ---- */

/* Above the cap a pair is shown, and below it one that is slower by more than 1 % for sure: not one
 * of 1 %. */
START_TEST(pairs_in_which_somebody_waits_are_shown)
{
    struct pairs_cell pair[4] = {
        {.victim = {"npu", "read 5", 20e9, 15e9},
         .culprit = {"igpu", "copy 3", 40e9, 30e9},
         .slowdown = {1.25, 1.125, 1.375, 3},
         .above = true},
        {.victim = {"igpu", "gemm", 1e9, 1e9},
         .culprit = {"npu", "gemv", 2e9, 2e9},
         .slowdown = {1.5, 1.0101, 2, 2}},
        {.victim = {"igpu", "copy", 1e9, 1e9},
         .culprit = {"npu", "gemv", 2e9, 2e9},
         .slowdown = {1.5, 1.01, 2, 2}},
        {.victim = {"igpu", "knob", 3e9, 2e9},
         .culprit = {"npu", "read", 4e9, 4e9},
         .slowdown = {1, (double)NAN, (double)NAN, 1},
         .above = true},
    };
    struct pairs_loss loss[2] = {{"npu", "read 5", {0.125, 0.0625, 0.25, 4}},
                                 {"igpu", "gemm", {0.5, (double)NAN, (double)NAN, 1}}};
    struct pairs p = {.cells = pair,
                      .n = 4,
                      .losses = loss,
                      .n_losses = 2,
                      .most_bytes_per_s = 45e9,
                      .asked_bytes_per_s = 60e9,
                      .saturated = true,
                      .devices = {"igpu", "npu"},
                      .share = {0.625, 0.5, 0.75, 2},
                      .rows = 20,
                      .left_out = 3};
    struct document *d = document_new();
    measure_pairs_document(&p, d);
    OWNED char *text = text_of(d);
    ck_assert_str_eq(
        text, "victim next to takes times as long both ask, GB/s both get above the cap\n"
              "npu read 5 igpu copy 3 1.250 [1.125, 1.375] 60.0 45.0 yes\n"
              "igpu gemm npu gemv 1.500 [1.010, 2.000] 3.0 3.0 no\n"
              "igpu knob npu read 1.000 7.0 6.0 yes\n"
              "1 other pair: below the cap, and not slowed by more than 1 % for sure\n\n"
              "victim below the cap loss pairs measured\n"
              "npu read 5 0.125 [0.062, 0.250] 4\n"
              "igpu gemm 0.500 1\n\n"
              "ddr.peak: 45.0 GB/s reach these two devices together; the pair that asks for most "
              "would take 60.0.\n"
              "Above the cap igpu gets 0.62 [0.50, 0.75] of it, in 2 pairs with both slowed.\n"
              "3 of 20 observations had fewer than 5 samples in which both kernels ran.\n");
    is_json(d, "losses",
            "[{\"device\":\"npu\",\"kernel\":\"read "
            "5\",\"loss\":0.125,\"low\":0.0625,\"high\":0.25,\"n\":4},"
            "{\"device\":\"igpu\",\"kernel\":\"gemm\",\"loss\":0.5,\"low\":null,\"high\":null,"
            "\"n\":1}]");
    cJSON *tree = document_json(d);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "pairs")), 4);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "slowed")), 3);
    const cJSON *second = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "pairs"), 2);
    OWNED char *row = cJSON_PrintUnformatted(second);
    ck_assert_str_eq(
        row,
        "{\"device\":\"igpu\",\"kernel\":\"copy\",\"culprit_device\":\"npu\",\"culprit\":\"gemv\","
        "\"slowdown\":1.5,\"low\":1.01,\"high\":2,\"n\":2,\"asked_gbs\":3,\"both_gbs\":3,"
        "\"above\":false}");
    cJSON_Delete(tree);
    is_json(d, "most_gbs", "45");
    is_json(d, "asked_gbs", "60");
    is_json(d, "saturated", "true");
    is_json(d, "share", "0.625");
    is_json(d, "left_out", "3");
    is_json(d, "observations", "20");
    p.share.n = 0;
    struct document *none = document_new();
    measure_pairs_document(&p, none);
    OWNED char *said = text_of(none);
    has(said, "\nNo pair above the cap slows both devices: their weights do not show.\n3 of 20");
    p.saturated = false;
    struct document *below = document_new();
    measure_pairs_document(&p, below);
    OWNED char *last = text_of(below);
    has(last, "\nddr.peak: at least 45.0 GB/s. No pair asks for more than 60.0, so this machine's "
              "pair does not show the cap, nor how the devices would share it.\n3 of 20");
}
END_TEST

/* ---- how far times can be trusted ---- */

static char path[] = "/tmp/xpusim-check-measure-XXXXXX";

/* Times of the kernels: flag NULL ends them. Powers and slowdowns are no times. */
static void write_rows(const char *const *flags)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "wb");
    kernel_rows_write_head(f, 0, NULL, 0);
    struct kernel_row r = {.soc = "s",
                           .device = "npu",
                           .runtime = "ov",
                           .kind = DEVICE_KIND_NPU,
                           .model = "read 5",
                           .source = "x",
                           .value = 1,
                           .p10 = 1,
                           .p90 = 1,
                           .weight_bits = 4,
                           .act_bits = 16,
                           .rows = 1,
                           .batch = 1,
                           .samples = 9,
                           .bytes = 1e6};
    for (size_t i = 0; flags[i] != NULL; i++) {
        r.metric = i % 2 == 0 ? KERNEL_METRIC_MS : KERNEL_METRIC_CO_MS;
        r.partner = xkeep(xstrdup(i % 2 == 0 ? "" : "igpu:copy 3"));
        r.flag = xkeep(xstrdup(flags[i]));
        kernel_row_write(f, &r);
    }
    r.metric = KERNEL_METRIC_POWER_W;
    r.partner = "";
    r.flag = "failed";
    kernel_row_write(f, &r);
    r.metric = KERNEL_METRIC_COMPILE_MS;
    r.flag = "";
    kernel_row_write(f, &r);
    ck_assert_int_eq(fclose(f), 0);
}

static int summary(char **text)
{
    size_t size;
    SCOPED(err_fini) struct err e = ERR_INIT;
    FILE *f = open_memstream(text, &size);
    int rc = measure_summary(path, f, &e);
    (void)fclose(f);
    (void)remove(path);
    ck_assert_msg(e.n == 0, "%s", e.n > 0 ? e.lines[0] : "");
    return rc;
}

/* Half of the times are enough; each reason is counted, and in the order of the list. */
START_TEST(times_are_trusted_or_not)
{
    static const char *const half[] = {"", "steal", "", "foreign_cpu", "", "steal", NULL};
    OWNED char *text = NULL;
    write_rows(half);
    ck_assert_int_eq(summary(&text), EXIT_OK);
    OWNED char *want = xformat("%s: 3 of 6 times can be trusted\n"
                               "      1 foreign_cpu  others used the processor\n"
                               "      2 steal        the hypervisor took the processor away\n",
                               path);
    ck_assert_str_eq(text, want);
    static const char *const all[] = {"lost_core", "spikes",   "few_samples",  "unscreened",
                                      "in_cache",  "deadline", "not_prepared", "failed",
                                      "",          NULL};
    OWNED char *few = NULL;
    write_rows(all);
    ck_assert_int_eq(summary(&few), EXIT_CHECK_FAILED);
    OWNED char *said =
        xformat("%s: 1 of 9 times can be trusted\n"
                "      1 lost_core    the kernel's thread did not have its core\n"
                "      1 spikes       two speeds in one window\n"
                "      1 few_samples  too slow for the window: a larger --window-s\n"
                "      1 unscreened   nothing says who else used the processor, or the window is "
                "too short\n"
                "      1 in_cache     weights stay in the processor's cache: a larger --size\n"
                "      1 deadline     not finished by the deadline\n"
                "      1 not_prepared the device refused the kernel\n"
                "      1 failed       the kernel failed\n"
                "too few for a fit to rely on: measure again on an idle machine\n",
                path);
    ck_assert_str_eq(few, said);
    OWNED char *none = NULL; /* a file that is not there, or no file */
    ck_assert_int_eq(summary(&none), EXIT_OK);
    ck_assert_str_eq(none, "");
}
END_TEST

static const struct suite_row suite[] = {
    CASE("measurements in print"),
    TEST(a_parameter_has_its_unit),
    TEST(a_form_holds_or_does_not),
    TEST(forms_are_next_to_each_other),
    TEST(kernels_are_measured_and_predicted),
    TEST(pairs_in_which_somebody_waits_are_shown),
    TEST(times_are_trusted_or_not),
};
SUITE_MAIN("measurements in print", suite)
