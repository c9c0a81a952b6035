/* A machine from its sibling's file: some numbers, by hand. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "hwmodels/soc_sibling.h"
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

static bool says(const struct err *e, const char *text)
{
    for (size_t i = 0; i < e->n && i < ERR_MAX_LINES; i++) {
        if (strstr(e->lines[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

/* A table with three transfers per phase of each kind: errors of 0.1, 0.2 and 0.4 (ln). */
static void three_transfers(struct conformal *t, struct conformal_row rows[9])
{
    static const double errors[] = {0.1, -0.2, 0.4};
    for (size_t i = 0; i < 9; i++) {
        rows[i] = (struct conformal_row){.soc = "s",
                                         .family = "meteor-lake-h",
                                         .model = "m",
                                         .kind = DEVICE_KIND_IGPU,
                                         .phase = (enum conformal_phase)(i / 3),
                                         .weights = 3e9,
                                         .tokens = 1024.0,
                                         .left = CONFORMAL_SOC,
                                         .ln_error = errors[i % 3]};
    }
    *t = (struct conformal){.v = rows, .n = 9};
}

static double at(const cJSON *root, const char *path, const char *member)
{
    const char *bad;
    cJSON *q = json_find_path((cJSON *)(uintptr_t)root, path, &bad);
    ck_assert_msg(q != NULL, "%s", path);
    return cJSON_GetObjectItem(q, member)->valuedouble;
}

static void all_assumed_from(const cJSON *node, const char *name, uint32_t *n)
{
    if (cJSON_HasObjectItem(node, "unit") && cJSON_HasObjectItem(node, "value")) {
        const char *source = cJSON_GetObjectItem(node, "source")->valuestring;
        ck_assert_str_eq(cJSON_GetObjectItem(node, "kind")->valuestring, "assumed");
        ck_assert_msg(strstr(source, name) != NULL || strstr(source, "given to") != NULL, "%s",
                      source);
        (*n)++;
    }
    for (const cJSON *c = node->child; c != NULL; c = c->next) {
        all_assumed_from(c, name, n);
    }
}

START_TEST(a_sibling_lends_its_numbers_with_the_error_of_transfers)
{
    struct err e = ERR_INIT;
    struct conformal table;
    struct conformal_row errors[9];
    static struct soc soc;
    three_transfers(&table, errors);
    cJSON *from = json_read_file(soc_path("core-ultra-7-155h"), &e);
    struct soc_sibling_peak peak = {"igpu", 18.44, 0}; /* twice 9.22 */
    struct soc_sibling o = {"new", "core-ultra-7-155h", NULL, 112.0, 16.0, &peak, 1};
    cJSON *to = soc_sibling_tree(from, &o, &table, &e);
    ck_assert_msg(to != NULL && soc_parse(to, "new", &soc, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    uint32_t n = 0;
    all_assumed_from(to, "core-ultra-7-155h", &n);
    ck_assert_uint_gt(n, 80);
    /* 1024 rows of a model 4096 wide are twice as fast with twice the peak, and the engine that
     * they fill is twice as large; to four digits. The range of the rate is that of transfers. One
     * SoC's errors of 0.1, -0.2 and 0.4 have the mean 0.1, and the variances 0.01 and
     * (0 + 0.09 + 0.09) / 3. One group is taken as normal. */
    const double half = 1.959964 * sqrt(0.07);
    const char *rate = "devices.igpu.runtimes.openvino-2025/8.rate";
    const char *rows = "devices.igpu.runtimes.openvino-2025/8.row_fill";
    double filled = at(from, rows, "value");
    ck_assert_double_gt(filled, 0.0);
    ck_assert_double_eq_tol(at(to, rows, "value"), 2.0 * filled, 0.001 * filled);
    double was = at(from, rate, "value");
    double is = at(to, rate, "value");
    double speed_was = was * 1024.0 / (1024.0 + filled); /* no width_fill there */
    double speed_is = is * 1024.0 / (1024.0 + 2.0 * filled);
    ck_assert_double_eq_tol(speed_is, 2.0 * speed_was, 0.001 * speed_was);
    const char *share =
        "devices.igpu.runtimes.openvino-2025/8.attention"; /* twice its speed, too */
    double attention_was = at(from, share, "value") * was;
    ck_assert_double_eq_tol(at(to, share, "value") * is, 2.0 * attention_was,
                            0.001 * attention_was);
    ck_assert_double_eq_tol(at(to, rate, "low"), is / exp(half), 0.001 * was);
    ck_assert_double_eq_tol(at(to, rate, "high"), is * exp(half), 0.002 * was);
    /* bandwidth follows the memory, from the one that was likely measured, 112 / 103.5 = 1.0821, up
     * to what it gives */
    const char *bandwidth = "devices.igpu.runtimes.openvino-2025/8.bandwidth";
    ck_assert_double_eq_tol(at(to, bandwidth, "value"), 1.0821 * at(from, bandwidth, "value"),
                            0.05);
    ck_assert_double_eq_tol(at(to, bandwidth, "high"), 112.0, 1e-9);
    /* no number of four digits is above a memory of more */
    struct soc_sibling more = {"new", "core-ultra-7-155h", NULL, 0.0, 16.0, NULL, 0};
    cJSON *full = cJSON_Duplicate(from, true);
    const char *bad;
    (void)cJSON_SetNumberHelper(cJSON_GetObjectItem(json_find_path(full, bandwidth, &bad), "value"),
                                at(full, "ddr.peak", "value"));
    for (int i = 0; i < 20; i++) {
        more.ddr_peak_gbs = 100.0 + 0.537 * i;
        cJSON *risen = soc_sibling_tree(full, &more, &table, &e);
        ck_assert_double_le(at(risen, bandwidth, "value"), more.ddr_peak_gbs);
        cJSON_Delete(risen);
    }
    cJSON_Delete(full);
    /* watts and delays stay as they are; the sibling's fit is not this machine's */
    ck_assert_double_eq(at(to, "devices.igpu.decode_power", "value"), 25.0);
    ck_assert_double_eq(soc.machine.memory_bytes, 16e9);
    for (uint32_t d = 0; d < soc.machine.n_devices; d++) {
        for (uint32_t r = 0; r < soc.devices[d].n_runtimes; r++) {
            ck_assert(!soc.devices[d].runtimes[r].start.given);
        }
    }
    /* the sibling is as it was */
    ck_assert_double_eq(at(from, rate, "value"), was);
    cJSON_Delete(to);
    peak.device = "tpu";
    ck_assert_ptr_null(soc_sibling_tree(from, &o, &table, &e));
    ck_assert(says(&e, "--peak tpu: core-ultra-7-155h has no such device; it has npu, igpu, cpu"));
    err_fini(&e);
    cJSON_Delete(from);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_sibling_lends_its_numbers_with_the_error_of_transfers),
};
SUITE_MAIN("soc_sibling by hand", suite)
