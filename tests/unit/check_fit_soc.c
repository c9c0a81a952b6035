/* A fit is written as a SoC file. Every number of the file is computed again from drawn estimates
 * and rows, by the text of hwmodels/kernel_fit.h and the units of the file. check_kernel_fit reads
 * such a file as a machine. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/kernel_fit.h"
#include "sim/api/device.h"
#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

enum { DEVICES = 3, WIDTHS = 2 };

/* In this order the rows have them; the file wants NPU, iGPU, CPU. */
static const char *const names[DEVICES] = {"cpu0", "npu0", "gpu0"};
static const enum device_kind kinds[DEVICES] = {DEVICE_KIND_CPU, DEVICE_KIND_NPU, DEVICE_KIND_IGPU};
static uint32_t widths[WIDTHS]; /* 8 and 16 in either order */

static struct kernel_fit fit;
static struct kernel_rows rows;
static struct kernel_cell cells[400];
static struct rng rng;

static double draw(double low, double high)
{
    return low + (high - low) * rng_uniform(&rng);
}

/* An interval that is not in the middle, narrow enough to be resolved. */
static void estimate(enum kernel_param p, const char *device, uint32_t bits, double value)
{
    struct kernel_estimate *q = &fit.params[fit.n_params++];
    *q =
        (struct kernel_estimate){.param = p, .weight_bits = bits, .value = value, .resolved = true};
    q->low = value * draw(0.8, 0.97);
    q->high = value * draw(1.02, 1.1);
    q->device = xkeep(xstrdup(device));
    q->runtime = xkeep(xstrdup(device[0] != '\0' ? "some-runtime" : ""));
}

static void row(int device, enum kernel_op op, uint32_t bits, uint32_t n_rows, uint32_t tokens,
                enum kernel_metric metric, double value, bool held_out)
{
    struct kernel_row *r = kernel_rows_add(&rows);
    r->op = op;
    r->kind = kinds[device];
    r->weight_bits = bits;
    r->rows = n_rows;
    r->tokens = tokens;
    r->metric = metric;
    r->value = value;
    r->held_out = held_out;
    r->device = xkeep(xstrdup(names[device]));
    r->source = "drawn";
}

/* One device has no launch, no one-row bandwidth and no attention of its own; the CPU has power
 * rows of both kinds, the GPU of one. */
static void draw_fit(uint64_t seed)
{
    static const enum kernel_op all[] = {KERNEL_GEMM, KERNEL_GEMV, KERNEL_PREFILL, KERNEL_DECODE,
                                         KERNEL_READ};
    rng_init(&rng, rng_key(seed, RNG_TEST, 310, 0));
    memset(&fit, 0, sizeof fit);
    widths[seed % 2] = 16;
    widths[1 - seed % 2] = 8;
    rows = (struct kernel_rows){.n = 0};
    rows.memory_bytes = seed % 3 == 0 ? 0.0 : 24e9;
    for (int d = 0; d < DEVICES; d++) {
        for (int w = 0; w < WIDTHS; w++) {
            estimate(KERNEL_PARAM_RATE, names[d], widths[w], draw(1e12, 9e12));
            estimate(KERNEL_PARAM_BANDWIDTH, names[d], widths[w], draw(20e9, 60e9));
            estimate(KERNEL_PARAM_KNEE, names[d], widths[w], draw(0.8, 5.0));
            if (d != 1) {
                estimate(KERNEL_PARAM_LAUNCH, names[d], widths[w], draw(1e-6, 300e-6));
                estimate(KERNEL_PARAM_BANDWIDTH_ONE, names[d], widths[w], draw(20e9, 60e9));
            }
        }
        if (d != 1) {
            estimate(KERNEL_PARAM_ATTENTION, names[d], 0, draw(0.2e12, 2e12));
        }
        estimate(KERNEL_PARAM_READ, names[d], 0, draw(20e9, 70e9));
        estimate(KERNEL_PARAM_COPY, names[d], 0,
                 draw(200e9, 700e9)); /* no bandwidth of the memory */
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            for (uint32_t k = 0; k < 4; k++) {
                row(d, all[i], widths[rng_below(&rng, WIDTHS)], 1 + rng_below(&rng, 500),
                    rng_below(&rng, 4000), KERNEL_METRIC_MS, 1.0, rng_below(&rng, 4) == 0);
            }
            bool heavy = all[i] == KERNEL_GEMM || all[i] == KERNEL_PREFILL;
            if (d == 0 || (d == 2 && heavy)) {
                row(d, all[i], 8, 1, 1, KERNEL_METRIC_POWER_W, draw(1.0, 30.0), false);
            }
        }
    }
    estimate(KERNEL_PARAM_CAP, "", 0, draw(50e9, 80e9));
    fit.params[fit.n_params - 1].resolved = seed % 2 == 0;
    estimate(KERNEL_PARAM_SHARPNESS, "", 0, draw(2.0, 9.0));
    fit.alone.wrong = seed % 4 == 1;
    fit.together.wrong = seed % 4 == 3;
    for (size_t i = 0; i < rows.n; i++) { /* some that nothing is known of */
        cells[i] = (struct kernel_cell){.row = &rows.v[i],
                                        .held_out = rows.v[i].held_out,
                                        .n = rows.v[i].metric == KERNEL_METRIC_MS && i % 5 != 0,
                                        .partner = -1};
    }
    fit.cells = cells;
    fit.n_cells = (uint32_t)rows.n;
}

static const struct kernel_estimate *find(enum kernel_param p, const char *device, uint32_t bits)
{
    const struct kernel_estimate *found = NULL;
    for (uint32_t i = 0; i < fit.n_params; i++) {
        const struct kernel_estimate *q = &fit.params[i];
        found =
            q->param == p && strcmp(q->device, device) == 0 && q->weight_bits == bits ? q : found;
    }
    return found;
}

static const cJSON *at(const cJSON *o, const char *key)
{
    const cJSON *c = cJSON_GetObjectItemCaseSensitive(o, key);
    ck_assert_msg(c != NULL, "no %s", key);
    return c;
}

static void expect_text(const cJSON *o, const char *key, const char *want)
{
    ck_assert_msg(cJSON_IsString(at(o, key)), "%s", key);
    ck_assert_msg(strcmp(at(o, key)->valuestring, want) == 0, "%s: %s, not %s", key,
                  at(o, key)->valuestring, want);
}

static void expect_number(const cJSON *o, const char *key, double want)
{
    double is = at(o, key)->valuedouble;
    ck_assert_msg(fabs(is - want) <= 1e-9 * fmax(1.0, fabs(want)), "%s: %g, not %g", key, is, want);
}

static void expect_quantity(const cJSON *o, const char *key, const char *unit, const char *kind,
                            double value, double low, double high)
{
    const cJSON *q = at(o, key);
    expect_number(q, "value", value);
    expect_number(q, "low", low);
    expect_number(q, "high", high);
    expect_text(q, "unit", unit);
    expect_text(q, "kind", kind);
    bool fitted = strcmp(kind, "fitted") == 0 && low < high;
    if (fitted) {
        expect_text(q, "source", "drawn; low and high: simultaneous 95 % interval");
    }
}

static double within(double x, double min, double max)
{
    return fmin(fmax(x, min), max);
}

static void expect_fitted(const cJSON *o, const char *key, const char *unit,
                          const struct kernel_estimate *q, double scale, double min, double max)
{
    expect_quantity(o, key, unit, "fitted", within(q->value * scale, min, max),
                    within(q->low * scale, min, max), within(q->high * scale, min, max));
}

static void expect_assumed(const cJSON *o, const char *key, const char *unit, double value)
{
    expect_quantity(o, key, unit, "assumed", value, value, value);
}

static void expect_launch(const cJSON *o, int d, uint32_t bits)
{
    const struct kernel_estimate *q = find(KERNEL_PARAM_LAUNCH, names[d], bits);
    if (q != NULL) {
        expect_fitted(o, "launch", "us", q, 1e6, 0.0, 1e6);
    } else {
        expect_assumed(o, "launch", "us", 0.0);
    }
}

static void expect_runtime(const cJSON *o, int d, uint32_t bits, double peak)
{
    const struct kernel_estimate *rate = find(KERNEL_PARAM_RATE, names[d], bits);
    const struct kernel_estimate *one = find(KERNEL_PARAM_BANDWIDTH_ONE, names[d], bits);
    const struct kernel_estimate *attention = find(KERNEL_PARAM_ATTENTION, names[d], 0);
    expect_text(o, "runtime", "some-runtime");
    expect_number(o, "weight_bits", bits);
    ck_assert_int_eq(cJSON_IsTrue(cJSON_GetObjectItem(o, "default")), bits == 8);
    expect_fitted(o, "rate", "TFLOP/s", rate, 1e-12, 1e-4, 1e5);
    expect_fitted(o, "bandwidth", "GB/s", find(KERNEL_PARAM_BANDWIDTH, names[d], bits), 1e-9, 1e-3,
                  peak);
    expect_launch(o, d, bits);
    ck_assert_int_eq(cJSON_HasObjectItem(o, "one_row"), one != NULL);
    if (one != NULL) {
        expect_fitted(at(o, "one_row"), "rate", "TFLOP/s", rate, 1e-12, 1e-4, 1e5);
        expect_fitted(at(o, "one_row"), "bandwidth", "GB/s", one, 1e-9, 1e-3, peak);
        expect_launch(at(o, "one_row"), d, bits);
    }
    expect_assumed(o, "row_fill", "rows", 0.0);
    if (attention != NULL) {
        expect_quantity(o, "attention", "1", "fitted", attention->value / rate->value,
                        attention->low / rate->high, attention->high / rate->low);
    } else {
        expect_assumed(o, "attention", "1", 1.0);
    }
    expect_fitted(o, "knee", "1", find(KERNEL_PARAM_KNEE, names[d], bits), 1.0, 0.5, 100.0);
    double most_rows = 1.0;
    double most_keys = 0.0;
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        bool counts = cells[i].n > 0 && !r->held_out && strcmp(r->device, names[d]) == 0;
        if (counts && r->op == KERNEL_GEMM && r->weight_bits == bits) {
            most_rows = fmax(most_rows, r->rows);
        }
        if (counts && (r->op == KERNEL_PREFILL || r->op == KERNEL_DECODE)) {
            most_keys = fmax(most_keys, r->tokens);
        }
    }
    expect_number(at(o, "valid"), "rows_max", most_rows);
    expect_number(at(o, "valid"), "context_max", most_keys);
}

static void expect_power(const cJSON *o, const char *key, int d, bool compute)
{
    double sum = 0.0;
    double n = 0.0;
    for (size_t i = 0; i < rows.n; i++) {
        const struct kernel_row *r = &rows.v[i];
        bool heavy = r->op == KERNEL_GEMM || r->op == KERNEL_PREFILL;
        if (r->metric == KERNEL_METRIC_POWER_W && strcmp(r->device, names[d]) == 0 &&
            heavy == compute) {
            sum += r->value;
            n += 1.0;
        }
    }
    expect_quantity(o, key, "W", n > 0.0 ? "measured" : "assumed", n > 0.0 ? sum / n : 0.0,
                    n > 0.0 ? sum / n : 0.0, n > 0.0 ? sum / n : 0.0);
}

static void expect_device(const cJSON *o, int d, double peak)
{
    static const char *const zeros[] = {"submit", "completion", "reset"};
    double top = 0.0;
    expect_text(o, "name", names[d]);
    expect_text(o, "kind", device_kind_names()[kinds[d]]);
    expect_text(o, "sharing", "serial");
    expect_number(o, "inflight_depth", 1);
    expect_number(o, "max_shared", 1);
    expect_number(o, "chunk_rows", 0);
    expect_assumed(o, "shared_efficiency", "1", 1.0);
    for (int i = 0; i < 3; i++) {
        expect_assumed(o, zeros[i], "us", 0.0);
    }
    expect_assumed(o, "idle_power", "W", 0.0);
    expect_power(o, "decode_power", d, false);
    expect_power(o, "prefill_power", d, true);
    ck_assert_int_eq(cJSON_HasObjectItem(o, "meter"), d != 1);
    ck_assert_int_eq(cJSON_GetArraySize(at(o, "runtimes")), WIDTHS);
    for (int w = 0; w < WIDTHS; w++) {
        top = fmax(top, find(KERNEL_PARAM_RATE, names[d], widths[w])->value);
        expect_runtime(cJSON_GetArrayItem(at(o, "runtimes"), w), d, widths[w], peak);
    }
    expect_assumed(o, "peak", "TFLOP/s", top / 1e12);
}

static void expect_machine(const cJSON *root, const struct kernel_soc_options *o, double peak)
{
    const struct kernel_estimate *cap = find(KERNEL_PARAM_CAP, "", 0);
    char note[300];
    expect_number(root, "format", 1);
    expect_text(root, "name", "drawn-soc");
    expect_text(root, "hwmodel", "p-norm");
    (void)snprintf(note, sizeof note,
                   "Kernels measured by xpusim measure; times follow form p-norm. Contention: cap "
                   "%.3g GB/s%s, sharpness %.3g. %s%s",
                   cap->value / 1e9, cap->resolved ? "" : " (not resolved)",
                   find(KERNEL_PARAM_SHARPNESS, "", 0)->value,
                   fit.alone.wrong ? "Lack of fit alone. " : "",
                   fit.together.wrong ? "Lack of fit together." : "");
    expect_text(root, "note", note);
    const cJSON *ddr = at(root, "ddr");
    expect_quantity(ddr, "peak", "GB/s", o->ddr_peak_bytes_per_s > 0.0 ? "assumed" : "fitted", peak,
                    peak, peak);
    if (cap->resolved) {
        expect_fitted(ddr, "together", "1", cap, 1e-9 / peak, 0.1, 1.0);
    } else {
        expect_assumed(ddr, "together", "1", 1.0);
    }
    double bytes = o->memory_bytes > 0.0 ? o->memory_bytes : rows.memory_bytes;
    expect_quantity(at(root, "memory"), "capacity", "GB", bytes > 0.0 ? "measured" : "assumed",
                    bytes > 0.0 ? bytes / 1e9 : 16.0, bytes > 0.0 ? bytes / 1e9 : 16.0,
                    bytes > 0.0 ? bytes / 1e9 : 16.0);
    expect_assumed(at(root, "memory"), "usable", "1", 0.5);
    static const struct {
        const char *part, *key, *unit;
        double value;
    } assumed[] = {
        {"host", "sync", "us", 0.0},
        {"host", "schedule", "us", 0.0},
        {"host", "sample", "us/token", 0.0},
        {"host", "poll", "W", 0.0},
        {"compiler", "fixed", "s", 0.0},
        {"compiler", "per_token", "ms/token", 0.0},
        {"compiler", "power", "W", 0.0},
        {"loader", "bandwidth", "GB/s", 1.0},
        {"loader", "swap_bandwidth", "GB/s", 1.0},
        {"loader", "fixed", "s", 0.0},
    };
    for (size_t i = 0; i < sizeof assumed / sizeof assumed[0]; i++) {
        expect_assumed(at(root, assumed[i].part), assumed[i].key, assumed[i].unit,
                       assumed[i].value);
    }
    expect_assumed(root, "idle_power", "W", 0.0);
}

START_TEST(every_number_of_the_file_is_that_of_the_fit)
{
    static const int order[DEVICES] = {1, 2, 0}; /* NPU, iGPU, CPU */
    struct err e = ERR_INIT;
    draw_fit((uint64_t)_i);
    const char *path = tempfile_make(".json");
    struct kernel_soc_options o = {.name = "drawn-soc",
                                   .ddr_peak_bytes_per_s = _i % 2 == 0 ? 120e9 : 0.0,
                                   .memory_bytes = _i % 5 == 4 ? 48e9 : 0.0};
    ck_assert_msg(kernel_fit_write_soc(&fit, &rows, &o, path, &e) == 0, "%s",
                  e.n > 0 ? e.lines[0] : "");
    /* The largest bandwidth that the memory gave: streams and products, and a cap that is resolved.
     */
    double peak = o.ddr_peak_bytes_per_s / 1e9;
    for (uint32_t i = 0; i < fit.n_params && o.ddr_peak_bytes_per_s == 0.0; i++) {
        const struct kernel_estimate *q = &fit.params[i];
        if (q->param == KERNEL_PARAM_BANDWIDTH || q->param == KERNEL_PARAM_BANDWIDTH_ONE ||
            q->param == KERNEL_PARAM_READ || (q->param == KERNEL_PARAM_CAP && q->resolved)) {
            peak = fmax(peak, q->value / 1e9);
        }
    }
    SCOPED(json_drop) cJSON *root = json_read_file(path, &e);
    ck_assert_ptr_nonnull(root);
    expect_machine(root, &o, peak);
    ck_assert_int_eq(cJSON_GetArraySize(at(root, "devices")), DEVICES);
    for (int i = 0; i < DEVICES; i++) {
        expect_device(cJSON_GetArrayItem(at(root, "devices"), i), order[i], peak);
    }
    tempfile_remove();
}
END_TEST

START_TEST(each_estimate_is_found_by_what_it_is_of)
{
    draw_fit(1);
    for (uint32_t i = 0; i < fit.n_params; i++) {
        const struct kernel_estimate *q = &fit.params[i];
        ck_assert_ptr_eq(kernel_fit_find(&fit, q->param, q->device, q->weight_bits), q);
        ck_assert_ptr_null(kernel_fit_find(&fit, q->param, q->device, 4));
        ck_assert_ptr_null(kernel_fit_find(&fit, q->param, "tpu0", q->weight_bits));
    }
    ck_assert_ptr_null(kernel_fit_find(&fit, KERNEL_PARAM_LAMBDA, "cpu0", 8));
}
END_TEST

/* Rates and bandwidths must be known, and the error names the missing measurements. Other numbers
 * may stay unknown. */
START_TEST(what_is_not_resolved_is_not_written)
{
    static const struct {
        enum kernel_param p;
        const char *needs;
    } want[] = {
        {KERNEL_PARAM_RATE, "its rate; measure more products of many rows"},
        {KERNEL_PARAM_BANDWIDTH, "its bandwidth; measure more products of a few rows"},
        {KERNEL_PARAM_BANDWIDTH_ONE, "measure more products of one row"},
        {KERNEL_PARAM_ATTENTION, "measure more attention of long prompts"},
        {KERNEL_PARAM_KNEE, NULL},
        {KERNEL_PARAM_LAUNCH, NULL},
        {KERNEL_PARAM_READ, NULL},
        {KERNEL_PARAM_COPY, NULL},
        {KERNEL_PARAM_CAP, NULL},
        {KERNEL_PARAM_SHARPNESS, NULL},
    };
    struct kernel_soc_options o = {.name = "drawn-soc", .ddr_peak_bytes_per_s = 120e9};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct err e = ERR_INIT;
        draw_fit(2);
        const char *path = tempfile_make(".json");
        uint32_t n = 0;
        for (uint32_t k = 0; k < fit.n_params; k++) {
            bool is = fit.params[k].param == want[i].p;
            n += is;
            fit.params[k].resolved = !is && fit.params[k].resolved;
        }
        int rc = kernel_fit_write_soc(&fit, &rows, &o, path, &e);
        if (want[i].needs == NULL) {
            ck_assert_int_eq(rc, 0);
            tempfile_remove();
        } else {
            char begins[64];
            ck_assert_int_eq(rc, -EINVAL);
            ck_assert_uint_eq(e.n, n + 1); /* one for each, and that nothing is written */
            (void)snprintf(begins, sizeof begins,
                           want[i].p == KERNEL_PARAM_ATTENTION ? "cpu0: the rows"
                                                               : "cpu0, 16 bits: the rows");
            ck_assert_msg(strncmp(e.lines[0], begins, strlen(begins)) == 0, "%s", e.lines[0]);
            ck_assert_msg(strstr(e.lines[0], want[i].needs) != NULL, "%s", e.lines[0]);
            ck_assert_ptr_nonnull(strstr(e.lines[n], "is not written: try --size full"));
            ck_assert_ptr_null(fopen(path, "r"));
        }
        err_fini(&e);
    }
}
END_TEST

static const struct suite_row suite[] = {
    CASE("soc"),
    LOOP(every_number_of_the_file_is_that_of_the_fit, 10),
    TEST(each_estimate_is_found_by_what_it_is_of),
    TEST(what_is_not_resolved_is_not_written),
};
SUITE_MAIN("a fit as a SoC file", suite)
