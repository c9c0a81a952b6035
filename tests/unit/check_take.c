/* An archive of another machine is taken: its facts, its errors, its notes and its machine file, by
 * hand; and each thing that an archive may lack is said. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/machine/send.h"
#include "hwmodels/kernel_rows.h"
#include "hwmodels/soc.h"
#include "sim/base/arena.h"
#include "sim/base/input.h"
#include "sim/base/json.h"
#include "sim/base/tar.h"
#include "tests/helpers/suite.h"
#include "tests/helpers/tempfile.h"

static struct err err;
static struct tar tar;
static struct document *d;
static char archive[128], machine[128];

static void setup(void)
{
    err = (struct err)ERR_INIT;
    tar = (struct tar){0};
    d = document_new();
    (void)snprintf(archive, sizeof archive, "%s", tempfile_make(".tar.gz"));
    (void)snprintf(machine, sizeof machine, "%.*s.json", (int)strlen(archive) - 7, archive);
}

static void teardown(void)
{
    err_fini(&err);
    tar_fini(&tar);
    tempfile_remove();
    (void)remove(machine);
}

static void add(const char *name, const char *text)
{
    tar_add(&tar, name, xstrdup(text), strlen(text));
}

static int take(void)
{
    ck_assert_int_eq(tar_write(&tar, archive, &err), 0);
    return take_machine(archive, "my-machine", machine, d, &err);
}

/* There must be one error, without the archive's path. */
static void is_refused(const char *want)
{
    ck_assert_int_eq(take(), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    const char *at = strstr(err.lines[0], archive);
    ck_assert_str_eq(at == err.lines[0] ? at + strlen(archive) : err.lines[0], want);
    ck_assert_int_ne(access(machine, F_OK), 0);
}

static char *text_of(void)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    document_put(d, "text", f);
    (void)fclose(f);
    return text;
}

static void has(const char *part)
{
    OWNED char *text = text_of();
    ck_assert_msg(strstr(text, part) != NULL, "no\n%s\nin\n%s", part, text);
}

static char *json_of(const char *name)
{
    cJSON *tree = document_json(d);
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, name));
    cJSON_Delete(tree);
    ck_assert_ptr_nonnull(text);
    return text;
}

#define ABOUT "{\"format\":1,\"made_by\":\"xpusim 9\",\"facts\":{%s}}"

static void add_about(const char *facts)
{
    OWNED char *text = xformat(ABOUT, facts);
    add("about.json", text);
}

static void add_soc(void)
{
    OWNED char *text = input_text(soc_path("core-ultra-5-125h"), 1 << 24, &err);
    ck_assert_ptr_nonnull(text);
    add("soc.json", text);
}

/* Facts as they are, numbers with all their digits, no control characters; errors of every
 * comparison in the order of the archive, and of nothing else. */
START_TEST(an_archive_says_what_it_is_of)
{
    add_about("\"processor\":\"U\\u0007ltra\",\"memory_bytes\":34359738368,\"ratio\":0.1");
    add_soc();
    add("compare-b.json",
        "{\"trace\":\"b.csv\",\"errors\":[{\"policy\":\"fcfs\",\"soc\":\"m\","
        "\"mape\":{\"ttft_s\":0.1,\"tpot_s\":0.2,\"e2e_s\":0.3},"
        "\"real_mape\":{\"ttft_s\":9,\"e2e_s\":0.05}},{\"policy\":\"edf\",\"soc\":\"n\"}]}");
    add("compare-a.json",
        "{\"trace\":\"a.csv\",\"errors\":[{\"policy\":\"edf\",\"soc\":\"m\","
        "\"mape\":{\"ttft_s\":1,\"tpot_s\":2,\"e2e_s\":3},\"real_mape\":{\"e2e_s\":4}}]}");
    add("compared.json", "{\"trace\":\"c.csv\",\"errors\":[{\"policy\":\"no\"}]}");
    ck_assert_msg(take() == 0, "%s", err.n > 0 ? err.lines[0] : "");
    OWNED char *facts = json_of("facts");
    ck_assert_str_eq(facts, "[{\"fact\":\"processor\",\"value\":\"U?ltra\"},"
                            "{\"fact\":\"memory_bytes\",\"value\":\"34359738368\"},"
                            "{\"fact\":\"ratio\",\"value\":\"0.1\"}]");
    OWNED char *made = json_of("made_by");
    ck_assert_str_eq(made, "\"xpusim 9\"");
    OWNED char *errors = json_of("errors");
    ck_assert_str_eq(errors, "[{\"trace\":\"b.csv\",\"policy\":\"fcfs\",\"soc\":\"m\",\"ttft_s\":0."
                             "1,\"tpot_s\":0.2,\"e2e_s\":0.3,\"real_e2e_s\":0.05},"
                             "{\"trace\":\"b.csv\",\"policy\":\"edf\",\"soc\":\"n\",\"ttft_s\":"
                             "null,\"tpot_s\":null,\"e2e_s\":null,\"real_e2e_s\":null},"
                             "{\"trace\":\"a.csv\",\"policy\":\"edf\",\"soc\":\"m\",\"ttft_s\":1,"
                             "\"tpot_s\":2,\"e2e_s\":3,\"real_e2e_s\":4}]");
    has("\nMean |error| per request, real runs of the machine against simulated ones:\n");
    OWNED char *last = xformat("\n%s\n", machine);
    has(last);
    OWNED char *text = text_of();
    ck_assert_ptr_nonnull(strstr(text, " 10.0 "));
    ck_assert_ptr_nonnull(strstr(text, " 5.0\n"));
    ck_assert_ptr_null(strstr(text, "single kernels"));
    ck_assert_ptr_null(strstr(text, "pairs:"));
}
END_TEST

/* The machine has the name that is asked for, the peak of the memory modules where they say it, and
 * is else the one of the archive. */
START_TEST(the_machine_has_its_name_and_peak)
{
    add_about(_i == 0   ? "\"memory_peak_bytes_per_s\":120e9"
              : _i == 1 ? ""
                        : "\"memory_peak_bytes_per_s\":-1");
    add_soc();
    ck_assert_msg(take() == 0, "%s", err.n > 0 ? err.lines[0] : "");
    SCOPED(json_drop) cJSON *is = json_read_file(machine, &err);
    SCOPED(json_drop) cJSON *was = json_read_file(soc_path("core-ultra-5-125h"), &err);
    ck_assert_str_eq(json_string(is, "name"), "my-machine");
    cJSON *peak = cJSON_GetObjectItem(cJSON_GetObjectItem(is, "ddr"), "peak");
    if (_i == 0) {
        ck_assert_double_eq(json_number(peak, "value"), 120);
        OWNED char *text = cJSON_PrintUnformatted(peak);
        ck_assert_msg(strstr(text, "width and speed of the memory modules, by their firmware") !=
                          NULL,
                      "%s", text);
        ck_assert_msg(strstr(text, "\"GB/s\"") != NULL && strstr(text, "datasheet") != NULL, "%s",
                      text);
        cJSON_ReplaceItemInObject(
            cJSON_GetObjectItem(is, "ddr"), "peak",
            cJSON_Duplicate(cJSON_GetObjectItem(cJSON_GetObjectItem(was, "ddr"), "peak"), true));
    }
    cJSON_ReplaceItemInObject(is, "name", cJSON_Duplicate(cJSON_GetObjectItem(was, "name"), true));
    ck_assert(cJSON_Compare(is, was, true));
}
END_TEST

static const struct {
    const char *about, *soc, *other_name, *other, *error;
} refusals[] = {
    {NULL, NULL, "x", "y", ": has no about.json: it is no archive of `xpusim send-in`"},
    {"{\"format\":2,\"facts\":{}}", NULL, NULL, NULL, ":about.json: format: must be 1"},
    {"{\"format\":1,\"facts\":[]}", NULL, NULL, NULL,
     ":about.json: facts: must be an object {...}"},
    {"{\"format\":1}", NULL, NULL, NULL, ":about.json: facts: must be an object {...}"},
    {"{", NULL, NULL, NULL, ":about.json:1: malformed JSON: it ends too soon"},
    {"{\"format\":1,\"facts\":{}}", NULL, NULL, NULL,
     ": has neither soc.json nor rows.csv: nothing was measured"},
    {"{\"format\":1,\"facts\":{}}", "{", NULL, NULL,
     ":soc.json:1: malformed JSON: it ends too soon"},
    {"{\"format\":1,\"facts\":{}}", NULL, "compare-a.json", "[",
     ":compare-a.json:1: malformed JSON: it ends too soon"},
};

START_TEST(what_an_archive_lacks_is_said)
{
    if (refusals[_i].about != NULL) {
        add("about.json", refusals[_i].about);
    }
    if (refusals[_i].soc != NULL) {
        add("soc.json", refusals[_i].soc);
    }
    if (refusals[_i].other != NULL) {
        add(refusals[_i].other_name, refusals[_i].other);
    }
    is_refused(refusals[_i].error);
}
END_TEST

START_TEST(a_byte_that_is_none_is_named)
{
    static const char about[] = "{\"format\":1,\0\"facts\":{}}";
    char *copy = xcalloc(1, sizeof about);
    memcpy(copy, about, sizeof about);
    tar_add(&tar, "about.json", copy, sizeof about - 1);
    is_refused(":about.json: byte 12: a NUL byte");
}
END_TEST

/* A path that is there, or is no JSON, is refused before the archive is read. */
START_TEST(a_machine_is_never_overwritten)
{
    static const char *const wrong[] = {"x.jso", ".json", "", "json"};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(take_machine("/nonesuch.tar.gz", "m", wrong[i], d, &err), -EINVAL);
        OWNED char *want = xformat("-o '%s': must be a path ending in .json", wrong[i]);
        ck_assert_str_eq(err.lines[i], want);
    }
    add_about("");
    add_soc();
    ck_assert_int_eq(tar_write(&tar, archive, &err), 0);
    FILE *f = fopen(machine, "wb");
    ck_assert_ptr_nonnull(f);
    (void)fclose(f);
    ck_assert_int_eq(take_machine(archive, "m", machine, d, &err), -EINVAL);
    OWNED char *there = xformat("%s: is there already; remove it, or give another -o", machine);
    ck_assert_str_eq(err.lines[4], there);
    ck_assert_uint_eq(err.n, 5);
    /* Without a path it is the name. */
    err_fini(&err);
    ck_assert_int_eq(chdir("/tmp"), 0);
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strlen(archive) - 7 - 5, archive + 5);
    (void)remove(machine);
    ck_assert_int_eq(take_machine(archive, name, NULL, d, &err), 0);
    ck_assert_int_eq(access(machine, F_OK), 0);
}
END_TEST

/* ---- rows ---- */

/* Writes a pair: bytes in ms, times as long as alone. */
static void side(FILE *f, const char *device, const char *model, double bytes, double ms,
                 double slowdown, uint32_t samples)
{
    struct kernel_row r = {.flag = "",
                           .soc = "s",
                           .runtime = "ov",
                           .source = "x",
                           .p10 = 1,
                           .p90 = 1,
                           .weight_bits = 4,
                           .act_bits = 16,
                           .rows = 1,
                           .batch = 1,
                           .bytes = bytes,
                           .samples = samples};
    r.kind = strcmp(device, "npu") == 0 ? DEVICE_KIND_NPU : DEVICE_KIND_IGPU;
    r.device = xkeep(xstrdup(device));
    r.model = xkeep(xstrdup(model));
    r.partner = xkeep(xformat("%s", strcmp(device, "npu") == 0 ? "igpu:read 2" : "npu:read 1"));
    for (int k = 0; k < 2; k++) {
        r.metric = k == 0 ? KERNEL_METRIC_CO_MS : KERNEL_METRIC_SLOWDOWN;
        r.value = k == 0 ? ms : slowdown;
        kernel_row_write(f, &r);
    }
}

static void add_pairs(double npu, double by_igpu, double igpu, double by_npu, uint32_t samples)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    kernel_rows_write_head(f, 0, NULL, 0);
    side(f, "npu", "read 1", npu / by_igpu * 1e6, 1, by_igpu, samples);
    side(f, "igpu", "read 2", igpu / by_npu * 1e6, 1, by_npu, samples);
    (void)fclose(f);
    tar_add(&tar, "pairs.csv", text, size);
}

/* Alone 20 and 30 GB/s; next to each other 16 and 20: 36 together where 50 are asked for. The worst
 * is the one that waits longest. */
START_TEST(the_worst_pair_is_named)
{
    add_about("");
    add_soc();
    add_pairs(20, 1.25, 30, 1.5, 20);
    ck_assert_msg(take() == 0, "%s", err.n > 0 ? err.lines[0] : "");
    has("pairs: 2; at worst read 2 on igpu takes 1.50 times as long next to read 1 on npu; two "
        "kernels reach "
        "36.0 GB/s together\n");
}
END_TEST

/* 3 and 4 GB/s are below any cap. */
START_TEST(a_cap_that_does_not_show_is_at_least_that)
{
    add_about("");
    add_soc();
    add_pairs(3, 1.25, 4, 1, 20);
    ck_assert_msg(take() == 0, "%s", err.n > 0 ? err.lines[0] : "");
    has("pairs: 2; at worst read 1 on npu takes 1.25 times as long next to read 2 on igpu; two "
        "kernels reach at "
        "least 6.4 GB/s together\n");
}
END_TEST

/* Rows that are of no use are a note; rows that are malformed are an error, and no machine. */
START_TEST(rows_of_no_use_are_noted)
{
    add_about("");
    add_soc();
    add_pairs(20, 1.25, 30, 1.5, 4); /* too few samples */
    char *rows = NULL;
    size_t size;
    FILE *f = open_memstream(&rows, &size);
    kernel_rows_write_head(f, 0, NULL, 0);
    side(f, "npu", "read 1", 1e6, 1, 1, 20);
    (void)fclose(f);
    tar_add(&tar, "rows.csv", rows, size);
    ck_assert_msg(take() == 0, "%s", err.n > 0 ? err.lines[0] : "");
    has("pairs: not used (no pair of kernels has 5 samples or more, and weights outside a cache "
        "(1 pair in all))\n");
    has("\nsingle kernels: not fitted (read 1 with igpu:read 2: no row says what the partner "
        "is)\n");
    ck_assert_int_eq(access(machine, F_OK), 0);
}
END_TEST

START_TEST(rows_that_are_malformed_are_refused)
{
    add_about("");
    add_soc();
    add(_i == 0 ? "rows.csv" : "pairs.csv", "# xpusim-kernels v1\nsoc,device\n");
    ck_assert_int_eq(take(), -EINVAL);
    ck_assert_uint_ge(err.n, 1);
    OWNED char *where = xformat("%s:%s", archive, _i == 0 ? "rows.csv" : "pairs.csv");
    ck_assert_msg(strncmp(err.lines[0], where, strlen(where)) == 0, "%s", err.lines[0]);
    ck_assert_int_ne(access(machine, F_OK), 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("taking a machine", .setup = setup, .teardown = teardown),
    TEST(an_archive_says_what_it_is_of),
    LOOP(the_machine_has_its_name_and_peak, 3),
    LOOP(what_an_archive_lacks_is_said, sizeof refusals / sizeof refusals[0]),
    TEST(a_byte_that_is_none_is_named),
    TEST(a_machine_is_never_overwritten),
    TEST(the_worst_pair_is_named),
    TEST(a_cap_that_does_not_show_is_at_least_that),
    TEST(rows_of_no_use_are_noted),
    LOOP(rows_that_are_malformed_are_refused, 2),
};
SUITE_MAIN("taking a machine", suite)
