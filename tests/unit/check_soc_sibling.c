/* A machine from its sibling's file: every number of whole shipped files worked out again, with its
 * source. By hand: check_soc_sibling_hand. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hwmodels/soc.h"
#include "hwmodels/soc_sibling.h"
#include "sim/api/device.h"
#include "sim/base/datadir.h"
#include "sim/base/json.h"
#include "sim/base/portable.h"
#include "sim/base/text.h"
#include "sim/base/words.h"
#include "tests/helpers/suite.h"

static struct conformal table;
static const struct soc_sibling *how;
static const char *sibling_name, *family;
static double memory_ratio, peak_gbs;
static uint32_t n_numbers, n_held;

static const cJSON *member(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

static double number(const cJSON *o, const char *key)
{
    return cJSON_IsNumber(member(o, key)) ? member(o, key)->valuedouble : 0.0;
}

static const char *text(const cJSON *o, const char *key)
{
    return cJSON_IsString(member(o, key)) ? member(o, key)->valuestring : "";
}

static void expect(const cJSON *q, double value, double low, double high, const char *source)
{
    n_numbers++;
    ck_assert_msg(number(q, "value") == value && number(q, "low") == low &&
                      number(q, "high") == high,
                  "%s: %.9g [%.9g, %.9g], not %.9g [%.9g, %.9g]", q->string, number(q, "value"),
                  number(q, "low"), number(q, "high"), value, low, high);
    ck_assert_msg(strcmp(text(q, "source"), source) == 0, "%s: %s, not %s", q->string,
                  text(q, "source"), source);
    ck_assert_str_eq(text(q, "kind"), "assumed");
}

/* Returns the error of transfers of a phase, for 3e9 weights and 1024 tokens, or 32 of a short
 * prompt. */
static struct conformal_interval transfer(enum device_kind kind, enum conformal_phase phase)
{
    struct conformal_query q = {.soc = "",
                                .family = family,
                                .kind = kind,
                                .phase = phase,
                                .weights = 3e9,
                                .left = CONFORMAL_SOC};
    q.tokens = phase == CONFORMAL_SHORT_PREFILL ? 32.0 : 1024.0;
    return conformal_of(&table, &q, CONFORMAL_LEVEL);
}

/* A number of a runtime entry that takes the error of transfers over; false: it takes none. A
 * number that a fit of the entry held has no other range. */
static bool expect_carried(const cJSON *is, const cJSON *was, bool held, enum device_kind kind,
                           double ratio, double cores_ratio, double rate_ratio)
{
    static const struct {
        const char *key, *as;
        enum conformal_phase phase;
    } keys[] = {{"rate", "peak", CONFORMAL_PREFILL},
                {"attention", "peak over its rate", CONFORMAL_PREFILL},
                {"special_attention", "peak over its rate", CONFORMAL_PREFILL},
                {"recurrence", "peak over its rate", CONFORMAL_PREFILL},
                {"width_fill", "peak", CONFORMAL_PREFILL},
                {"bandwidth", "memory", CONFORMAL_DECODE},
                {"decode_attention", "peak over its rate", CONFORMAL_DECODE},
                {"row_fill", "peak per core", CONFORMAL_SHORT_PREFILL},
                {"launch", "", CONFORMAL_SHORT_PREFILL},
                {"enqueue", "", CONFORMAL_SHORT_PREFILL},
                {"prompt_enqueue", "", CONFORMAL_SHORT_PREFILL}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(was->string, keys[i].key) != 0) {
            continue;
        }
        bool memory = strcmp(keys[i].as, "memory") == 0;
        double x = memory && kind == DEVICE_KIND_NPU               ? 1.0
                   : memory                                        ? memory_ratio
                   : strcmp(keys[i].key, "rate") == 0              ? rate_ratio
                   : strcmp(keys[i].as, "peak") == 0               ? ratio
                   : strcmp(keys[i].as, "peak per core") == 0      ? ratio / cores_ratio
                   : strcmp(keys[i].as, "peak over its rate") == 0 ? ratio / rate_ratio
                                                                   : 1.0;
        struct conformal_interval t = transfer(kind, keys[i].phase);
        double factor = t.n > 0 ? t.high_factor : 2.0;
        double value = portable_digits(number(was, "value") * x, 4);
        double low = held ? value / factor : fmin(number(was, "low") * x, value / factor);
        double high = held ? value * factor : fmax(number(was, "high") * x, value * factor);
        n_held += held;
        value = memory ? fmin(value, peak_gbs) : value;
        high = memory ? fmin(high, peak_gbs) : high;
        char *scaled = x != 1.0 ? xformat(", x %.4g as its %s", x, keys[i].as) : xformat("%s", "");
        char *source = xformat("taken from %s%s; range: x / %.3g, by %zu published %s rows of "
                               "left-out SoCs (%s); there: %s",
                               sibling_name, scaled, factor, t.n,
                               conformal_phase_names[keys[i].phase], t.pool, text(was, "source"));
        expect(is, value, fmin(portable_digits(low, 4), value),
               fmax(portable_digits(high, 4), value), source);
        free(source);
        free(scaled);
        return true;
    }
    return false;
}

/* A fit of the entry held the number at what is assumed of it. */
static bool is_held(const cJSON *entry, const cJSON *q)
{
    bool is_free = false;
    const cJSON *name;
    cJSON_ArrayForEach (name, member(member(entry, "fit"), "parameters")) {
        is_free = is_free || strcmp(name->valuestring, q->string) == 0;
    }
    return member(entry, "fit") != NULL && strcmp(text(q, "kind"), "assumed") == 0 && !is_free;
}

/* Everything below `was` is below `is`; `device`: that of an entry, or NULL. */
static void expect_like(const cJSON *is, const cJSON *was, const cJSON *device, double ratio,
                        double cores_ratio, double rate_ratio)
{
    const cJSON *c;
    int index = 0;
    cJSON_ArrayForEach (c, was) {
        bool runtimes = c->string != NULL && strcmp(c->string, "runtimes") == 0;
        bool fits = c->string != NULL && device != NULL &&
                    (strcmp(c->string, "fit") == 0 || strcmp(c->string, "ops") == 0);
        const cJSON *to = c->string != NULL ? member(is, c->string) : cJSON_GetArrayItem(is, index);
        index++;
        bool other_memory =
            c->string != NULL && strcmp(c->string, "likely") == 0 && how->ddr_peak_gbs > 0.0;
        if (fits || other_memory || (c->string != NULL && strcmp(c->string, "metered") == 0)) {
            ck_assert_msg(to == NULL, "%s stays", c->string);
            continue;
        }
        ck_assert_msg(to != NULL, "no %s", c->string != NULL ? c->string : "item");
        if (cJSON_IsNumber(member(c, "value")) && member(c, "unit") != NULL) {
            bool given = strstr(text(to, "source"), "given to xpusim new-soc") != NULL;
            if (given) {
                ck_assert_msg(strcmp(c->string, "peak") == 0 || strcmp(c->string, "capacity") == 0,
                              "%s is given", c->string);
                n_numbers++;
            } else if (device == NULL ||
                       !expect_carried(
                           to, c, is_held(was, c),
                           (enum device_kind)words_find(device_kind_names(), text(device, "kind")),
                           ratio, cores_ratio, rate_ratio)) {
                char *source = xformat("taken from %s; there: %s", sibling_name, text(c, "source"));
                expect(to, number(c, "value"), number(c, "low"), number(c, "high"), source);
                free(source);
            }
        } else if (cJSON_IsObject(c) || cJSON_IsArray(c)) {
            bool entry = device != NULL && c->string == NULL;
            /* what 1024 rows of a model 4096 wide take follows the peak */
            double rows = number(member(c, "row_fill"), "value") / 1024.0;
            double columns = number(member(c, "width_fill"), "value") / 4096.0;
            double scaled = entry ? ratio * (1.0 + rows * ratio / cores_ratio) *
                                        (1.0 + columns * ratio) / ((1.0 + rows) * (1.0 + columns))
                                  : rate_ratio;
            expect_like(to, c, runtimes ? was : device, ratio, cores_ratio, scaled);
        }
    }
}

static double ratio_of(const char *device, double was)
{
    for (uint32_t i = 0; i < how->n_peaks; i++) {
        if (strcmp(how->peaks[i].device, device) == 0) {
            return how->peaks[i].tflop_per_s / was;
        }
    }
    return 1.0;
}

/* 0: none are given. */
static double cores_of(const char *device)
{
    for (uint32_t i = 0; i < how->n_peaks; i++) {
        if (strcmp(how->peaks[i].device, device) == 0) {
            return how->peaks[i].cores;
        }
    }
    return 0.0;
}

static void expect_given(const cJSON *q, double value)
{
    ck_assert(number(q, "value") == value && number(q, "low") == value &&
              number(q, "high") == value);
    ck_assert_str_eq(text(q, "source"), "given to xpusim new-soc");
}

START_TEST(every_number_is_its_siblings_or_scaled)
{
    static const char *const files[] = {"core-ultra-7-155h", "core-ultra-7-258v", "rk3588",
                                        "npu-and-gpu"};
    struct err e = ERR_INIT;
    char name[80];
    (void)snprintf(name, sizeof name, "hwmodels/soc/%s.json", files[_i / 2]);
    cJSON *from = json_read_file(datadir_path(name), &e);
    ck_assert_msg(from != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_int_eq(conformal_read(datadir_path("hwmodels/residuals.csv"), &table, &e), 0);
    const cJSON *devices = member(from, "devices");
    int n = cJSON_GetArraySize(devices);
    ck_assert_int_ge(n, 2);
    struct soc_sibling_peak peaks[2];
    for (int i = 0; i < 2; i++) {
        const cJSON *d = cJSON_GetArrayItem(devices, n - 1 - i);
        peaks[i] = (struct soc_sibling_peak){
            text(d, "name"), (i == 0 ? 1.7 : 0.6) * number(member(d, "peak"), "value"),
            i == 0 ? 0 : 10};
    }
    struct soc_sibling o = {.name = "new-one", .like = files[_i / 2]};
    if (_i % 2 == 1) {
        o.ddr_peak_gbs = 1.3 * number(member(member(from, "ddr"), "peak"), "value");
        o.memory_gb = 40.0;
        o.peaks = peaks;
        o.n_peaks = 2;
    }
    how = &o;
    n_held = 0;
    sibling_name = text(from, "name");
    family = text(from, "family");
    double ddr_gbs = number(member(member(from, "ddr"), "peak"), "value");
    peak_gbs = _i % 2 == 1 ? o.ddr_peak_gbs : ddr_gbs;
    const cJSON *ddr = member(from, "ddr");
    double likely = member(ddr, "likely") != NULL ? number(ddr, "likely") : ddr_gbs;
    memory_ratio = _i % 2 == 1 ? o.ddr_peak_gbs / likely : 1.0;
    cJSON *to = soc_sibling_tree(from, &o, &table, &e);
    ck_assert_msg(to != NULL, "%s", e.n > 0 ? e.lines[0] : "");
    ck_assert_str_eq(text(to, "name"), "new-one");
    ck_assert_str_eq(text(to, "like"),
                     text(from, "like")[0] != '\0' ? text(from, "like") : sibling_name);
    char *note = xformat("Nothing measured here: every number is taken from %s (xpusim new-soc). "
                         "`xpusim measure` measures it.",
                         sibling_name);
    ck_assert_str_eq(text(to, "note"), note);
    free(note);
    const cJSON *c;
    cJSON_ArrayForEach (c, from) { /* outside of devices nothing is scaled */
        if (cJSON_IsObject(c) && strcmp(c->string, "metered") != 0 && member(c, "unit") == NULL) {
            expect_like(member(to, c->string), c, NULL, 1.0, 1.0, 1.0);
        }
    }
    for (int i = 0; i < n; i++) {
        const cJSON *was = cJSON_GetArrayItem(devices, i);
        const cJSON *is = cJSON_GetArrayItem(member(to, "devices"), i);
        double ratio = ratio_of(text(was, "name"), number(member(was, "peak"), "value"));
        double given = cores_of(text(was, "name"));
        double cores = number(was, "cores");
        expect_like(is, was, NULL, ratio, given > 0.0 && cores > 0.0 ? given / cores : 1.0, 1.0);
        ck_assert_double_eq(number(is, "cores"), given > 0.0 ? given : cores);
        if (ratio != 1.0) {
            expect_given(member(is, "peak"), ratio * number(member(was, "peak"), "value"));
        }
    }
    if (_i % 2 == 1) {
        expect_given(member(member(to, "ddr"), "peak"), o.ddr_peak_gbs);
        expect_given(member(member(to, "memory"), "capacity"), 40.0);
    }
    ck_assert_uint_gt(n_numbers, 40);
    if (_i / 2 == 1) { /* counted in the file: NPU 2, iGPU 2 + 1 + 5 + 1 + 1 + 3 + 1 of seven */
        ck_assert_uint_eq(n_held, 16);
    }
    ck_assert_ptr_null(member(to, "metered"));
    cJSON_Delete(to);
    cJSON_Delete(from);
}
END_TEST

/* The RK3588's NPU reads 31.24 of 44 GB/s. A memory of 20 GB/s has 0.81 x 20 = 16.2 for an engine,
 * one of 40 more than it takes: 32.4. */
START_TEST(an_npu_gets_what_a_slow_memory_has_for_an_engine)
{
    static const struct {
        double ddr_gbs, bandwidth_gbs;
    } memory[] = {{20.0, 16.2}, {40.0, 31.24}, {100.0, 31.24}};
    struct err e = ERR_INIT;
    cJSON *from = json_read_file(datadir_path("hwmodels/soc/rk3588.json"), &e);
    ck_assert_int_eq(conformal_read(datadir_path("hwmodels/residuals.csv"), &table, &e), 0);
    struct soc_sibling o = {
        .name = "new-one", .like = "rk3588", .ddr_peak_gbs = memory[_i].ddr_gbs};
    cJSON *to = soc_sibling_tree(from, &o, &table, &e);
    const cJSON *npu = cJSON_GetArrayItem(member(to, "devices"), 0);
    ck_assert_str_eq(text(npu, "kind"), "npu");
    const cJSON *bandwidth = member(cJSON_GetArrayItem(member(npu, "runtimes"), 0), "bandwidth");
    ck_assert_double_eq(number(bandwidth, "value"), memory[_i].bandwidth_gbs);
    cJSON_Delete(to);
    cJSON_Delete(from);
}
END_TEST

/* Kernels of the runtime are those of chips of the family: the sibling's if none is given. */
START_TEST(a_machine_of_another_family_has_no_kernels_of_it)
{
    static const char *const families[] = {NULL, "another", ""};
    static const char *const keys[] = {"kv_columns", "decode_window", "further_launches"};
    struct err e = ERR_INIT;
    cJSON *from = json_read_file(datadir_path("hwmodels/soc/ryzen-ai-xdna2.json"), &e);
    ck_assert_int_eq(conformal_read(datadir_path("hwmodels/residuals.csv"), &table, &e), 0);
    struct soc_sibling o = {.name = "new-one", .like = "ryzen-ai-xdna2", .family = families[_i]};
    cJSON *to = soc_sibling_tree(from, &o, &table, &e);
    const cJSON *entries = member(cJSON_GetArrayItem(member(to, "devices"), 0), "runtimes");
    const cJSON *entry = cJSON_GetArrayItem(entries, 1);
    ck_assert_str_eq(text(entry, "runtime"), "fastflowlm-0.9");
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(member(entry, keys[k]) != NULL, _i == 0);
    }
    ck_assert_ptr_nonnull(member(entry, "recurrence"));
    cJSON_Delete(to);
    cJSON_Delete(from);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("sibling", .timeout_s = 60),
    LOOP(every_number_is_its_siblings_or_scaled, 8),
    LOOP(an_npu_gets_what_a_slow_memory_has_for_an_engine, 3),
    LOOP(a_machine_of_another_family_has_no_kernels_of_it, 3),
};
SUITE_MAIN("machines from siblings", suite)
