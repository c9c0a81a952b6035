/* Objects of files are tables. A row reads its key into its member, in its unit and range, and
 * gives the default of a missing optional key. It lets an override add the key that the file leaves
 * out. */
#include "sim/base/json_fields.h"

#include "hwmodels/soc.h"
#include "tests/helpers/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct part {
    double rate;
    int64_t wait_ns;
    uint32_t rows, spare;
    double knee;
    char name[5];
    bool fast;
    enum { RED, GREEN } colour;
};

static const char *const *colours(void)
{
    static const char *const names[] = {"red", "green", NULL};
    return names;
}

static const struct json_field inner_rows[] = {
    {JSON_COUNT(struct part, rows, "rows", 1, 64, "Rows.")},
    {JSON_QUANTITY(struct part, knee, "knee", "1", 0.5, 100.0, 1.0, "Knee."), JSON_DEFAULT(1.25)},
};
static const struct json_fields inner = JSON_FIELDS(inner_rows, NULL);

static const struct json_field more_rows[] = {
    {JSON_COUNT(struct part, spare, "spare", 0, 9, "Spare."), JSON_DEFAULT(7.0)},
};
static const struct json_fields more = JSON_FIELDS(more_rows, NULL);

static const struct json_field rows[] = {
    {JSON_QUANTITY(struct part, rate, "rate", "GB/s", 0.0, 10.0, 1e9, "Rate.")},
    {JSON_SPAN(struct part, wait_ns, "wait", "us", 1e3, 1e-6, "Wait."), JSON_DEFAULT(0.0)},
    {JSON_TEXT(struct part, name, "name", "Name.")},
    {JSON_BOOL(struct part, fast, "fast", "Fast."), JSON_DEFAULT(0.0)},
    {JSON_CHOICE(struct part, colour, "colour", colours, "Colour.")},
    {JSON_OBJECT("inner", &inner, "Inner."), JSON_DEFAULT(0.0)},
    {JSON_ARRAY("parts", &inner, 1, 2, "Parts."), JSON_DEFAULT(0.0)},
};
static const struct json_fields table = JSON_FIELDS(rows, &more);

#define Q(value, unit)                                                                             \
    "{\"value\":" value ",\"unit\":\"" unit "\",\"kind\":\"measured\",\"source\":\"here\"}"

static struct part read_part(const cJSON *root, struct err *e, uint32_t *n_kinds)
{
    struct part p;
    memset(&p, 0, sizeof p);
    struct json_obj o = json_root(root, "f.json", e);
    json_fields_read(&o, &table, &p, n_kinds);
    json_fields_read(&o, &more, &p, NULL);
    (void)json_has(&o, "parts");
    return p;
}

START_TEST(every_kind_of_key_reaches_its_member_in_its_unit)
{
    struct err e = ERR_INIT;
    uint32_t n_kinds[QUANTITY_KINDS] = {0};
    cJSON *root = cJSON_Parse("{\"rate\":" Q("2.5", "GB/s") ",\"wait\":" Q(
        "3", "us") ",\"name\":\"four\",\"fast\":true,\"colour\":\"green\",\"inner\":{\"rows\":64,"
                   "\"knee\":" Q("2", "1") "},\"spare\":9}");
    struct part p = read_part(root, &e, n_kinds);
    ck_assert_uint_eq(e.n, 0);
    ck_assert_double_eq(p.rate, 2.5e9);
    ck_assert_int_eq(p.wait_ns, 3000);
    ck_assert_str_eq(p.name, "four");
    ck_assert(p.fast);
    ck_assert_int_eq(p.colour, GREEN);
    ck_assert_uint_eq(p.rows, 64);
    ck_assert_double_eq(p.knee, 2.0);
    ck_assert_uint_eq(p.spare, 9);
    ck_assert_uint_eq(n_kinds[QUANTITY_MEASURED], 3);
    cJSON_Delete(root);
}
END_TEST

/* rate, colour and name are required; the name has five bytes with its end, so "fives" is too long.
 */
START_TEST(what_is_missing_or_out_of_range_is_one_line_each)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{\"name\":\"n\",\"colour\":\"red\"}", "f.json: rate: missing"},
        {"{\"rate\":" Q("11", "GB/s") ",\"name\":\"n\",\"colour\":\"red\"}",
         "f.json: rate.value: must be a number from 0 to 10"},
        {"{\"rate\":" Q("1", "MB/s") ",\"name\":\"n\",\"colour\":\"red\"}",
         "f.json: rate.unit: must be \"GB/s\", not \"MB/s\""},
        {"{\"rate\":" Q("1", "GB/s") ",\"name\":\"fives\",\"colour\":\"red\"}",
         "f.json: name: longer than 4 bytes"},
        {"{\"rate\":" Q("1", "GB/s") ",\"name\":\"n\",\"colour\":\"blue\"}",
         "f.json: colour: must be one of red, green"},
        {"{\"rate\":" Q("1", "GB/s") ",\"name\":\"n\",\"colour\":\"red\",\"inner\":{\"rows\":65}}",
         "f.json: inner.rows: must be a whole number from 1 to 64"},
        {"{\"rate\":" Q("1", "GB/s") ",\"name\":\"n\",\"colour\":\"red\",\"inner\":{\"rows\":1,"
                                     "\"more\":1}}",
         "f.json: inner.more: unknown key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = ERR_INIT;
        cJSON *root = cJSON_Parse(cases[i].text);
        ck_assert_ptr_nonnull(root);
        (void)read_part(root, &e, NULL);
        ck_assert_uint_eq(e.n, 1);
        ck_assert_msg(strstr(e.lines[0], cases[i].want) == e.lines[0], "%s", e.lines[0]);
        err_fini(&e);
        cJSON_Delete(root);
    }
}
END_TEST

START_TEST(a_missing_optional_key_is_its_default)
{
    struct err e = ERR_INIT;
    cJSON *root = cJSON_Parse(
        "{\"rate\":" Q("1", "GB/s") ",\"name\":\"n\",\"colour\":\"red\",\"inner\":{\"rows\":2}}");
    struct part p = read_part(root, &e, NULL);
    ck_assert_uint_eq(e.n, 0);
    ck_assert_int_eq(p.wait_ns, 0);
    ck_assert(!p.fast);
    ck_assert_double_eq(p.knee, 1.25);
    ck_assert_uint_eq(p.spare, 7);
    cJSON_Delete(root);
}
END_TEST

/* An override adds what the table allows, wherever it lies, and nothing else. */
START_TEST(an_override_adds_the_key_that_a_file_leaves_out)
{
    static const struct {
        const char *path, *value;
        int rc;
    } cases[] = {
        {"wait", "250", 0},        {"inner.rows", "5", -EINVAL}, /* required: not added */
        {"inner.knee", "3", 0},    {"parts.0.knee", "4", 0},        {"spare", "3", 0},
        {"fast", "true", 0},       {"parts.1.knee", "4", -EINVAL},  {"parts.a.knee", "4", -EINVAL},
        {"unknown", "1", -EINVAL}, {"inner.unknown", "1", -EINVAL}, {"rate.more", "1", -EINVAL},
        {"wait", "fast", -EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = ERR_INIT;
        cJSON *root = cJSON_Parse("{\"rate\":" Q(
            "1", "GB/s") ",\"name\":\"n\",\"colour\":\"red\",\"parts\":[{\"rows\":2}]}");
        json_fields_complete(&table, root, cases[i].path);
        int rc = json_set_path(root, cases[i].path, cases[i].value, &e);
        ck_assert_msg(rc == cases[i].rc, "%s=%s", cases[i].path, cases[i].value);
        if (i == 0) {
            struct part p = read_part(root, &e, NULL);
            ck_assert_uint_eq(e.n, 0);
            ck_assert_int_eq(p.wait_ns, 250000); /* 250 us */
        }
        if (strcmp(cases[i].path, "inner.knee") == 0) { /* the object now lacks its required key */
            (void)read_part(root, &e, NULL);
            ck_assert_uint_eq(e.n, 1);
            ck_assert_str_eq(e.lines[0],
                             "f.json: inner.rows: missing (a whole number from 1 to 64)");
        }
        err_fini(&e);
        cJSON_Delete(root);
    }
}
END_TEST

static void note_path(void *to, const char *path, const struct json_field *f)
{
    char *all = to;
    size_t n = strlen(all);
    (void)snprintf(all + n, 200 - n, "%s%s ", path, f->optional ? "?" : "");
}

START_TEST(a_key_that_no_run_reads_goes_from_objects_arrays_and_further_tables)
{
    static const struct json_field unread_rows[] = {
        {JSON_COUNT(struct part, rows, "rows", 1, 64, "Rows.")},
        {JSON_COUNT(struct part, spare, "spare", 0, 9, "Spare."), .unread = true},
    };
    static const struct json_fields part = JSON_FIELDS(unread_rows, NULL);
    static const struct json_field whole_rows[] = {
        {JSON_OBJECT("inner", &part, "Inner.")},
        {JSON_ARRAY("parts", &part, 1, 2, "Parts.")},
    };
    static const struct json_fields whole = JSON_FIELDS(whole_rows, &part);
    static const char with[] = "{\"inner\":{\"rows\":1,\"spare\":2},\"rows\":3,"
                               "\"parts\":[{\"rows\":4},{\"spare\":5}],\"spare\":6}";
    cJSON *root = cJSON_Parse(with);
    json_fields_drop_unread(&whole, root);
    char *left = cJSON_PrintUnformatted(root);
    ck_assert_str_eq(left, "{\"inner\":{\"rows\":1},\"rows\":3,\"parts\":[{\"rows\":4},{}]}");
    free(left);
    cJSON_Delete(root);
}
END_TEST

START_TEST(every_row_is_visited_with_its_path)
{
    char all[200] = "";
    json_fields_each(&table, note_path, all);
    ck_assert_str_eq(all, "rate wait? name fast? colour inner? inner.rows inner.knee? parts? "
                          "parts[].rows parts[].knee? spare? ");
}
END_TEST

/* Members are in base units, so what a unit is worth is known without the table. */
static void is_worth(void *seen, const char *path, const struct json_field *f)
{
    static const struct {
        const char *unit;
        double worth;
    } units[] = {{"1", 1.0},         {"B", 1.0},      {"kB", 1e3},       {"MB", 1e6},
                 {"GB", 1e9},        {"GB/s", 1e9},   {"TFLOP/s", 1e12}, {"us", 1e-6},
                 {"ms", 1e-3},       {"s", 1.0},      {"rows", 1.0},     {"columns", 1.0},
                 {"W", 1.0},         {"pJ/B", 1e-12}, {"Wh", 3600.0},    {"experts", 1.0},
                 {"us/token", 1e-6}, /* a span: seconds, as JSON_SPAN takes it */
                 {"ms/token", 1e6}}; /* a number of nanoseconds */
    size_t i = 0;
    if (f->unit == NULL) {
        return;
    }
    while (i < sizeof units / sizeof units[0] && strcmp(units[i].unit, f->unit) != 0) {
        i++;
    }
    ck_assert_msg(i < sizeof units / sizeof units[0], "%s: what is a %s?", path, f->unit);
    ck_assert_msg(f->scale == units[i].worth, "%s: a %s is %g, not %g", path, f->unit,
                  units[i].worth, f->scale);
    (*(int *)seen)++;
}

START_TEST(a_unit_is_worth_what_it_says)
{
    const struct json_fields *const tables[] = {&soc_fields, &llm_fields};
    int seen = 0;
    for (int i = 0; i < 2; i++) {
        json_fields_each(tables[i], is_worth, &seen);
    }
    ck_assert_int_gt(seen, 60);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(a_unit_is_worth_what_it_says),
    TEST(every_kind_of_key_reaches_its_member_in_its_unit),
    TEST(what_is_missing_or_out_of_range_is_one_line_each),
    TEST(a_missing_optional_key_is_its_default),
    TEST(an_override_adds_the_key_that_a_file_leaves_out),
    TEST(every_row_is_visited_with_its_path),
    TEST(a_key_that_no_run_reads_goes_from_objects_arrays_and_further_tables),
};
SUITE_MAIN("json_fields", suite)
