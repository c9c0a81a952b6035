/* Strict JSON reading: every way to be wrong has one line that names file, key path and the
 * accepted form, all lines of a file come at once, and overrides change what they name. */
#include "sim/base/json.h"
#include "tests/helpers/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool says(const struct err *e, const char *text)
{
    for (size_t i = 0; i < e->n && i < ERR_MAX_LINES; i++) {
        if (strstr(e->lines[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

/* Writes the bytes to a file of their own and reads that. */
static cJSON *read_bytes(const char *bytes, size_t n, struct err *e)
{
    char path[] = "/tmp/check-json-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, bytes, n), (int)n);
    ck_assert_int_eq(close(fd), 0);
    cJSON *root = json_read_file(path, e);
    (void)unlink(path);
    return root;
}

static cJSON *read_text(const char *text, struct err *e)
{
    return read_bytes(text, strlen(text), e);
}

/* The text must be refused with exactly one line that contains `what`. */
static void refused(const char *text, const char *what)
{
    struct err e = ERR_INIT;
    ck_assert_ptr_null(read_text(text, &e));
    ck_assert_msg(e.n == 1 && says(&e, what), "%s: %zu lines, first: %s", text, e.n,
                  e.n > 0 ? e.lines[0] : "none");
    err_fini(&e);
}

START_TEST(a_missing_file_is_named)
{
    struct err e = ERR_INIT;
    ck_assert_ptr_null(json_read_file("/nonexistent.json", &e));
    ck_assert_uint_eq(e.n, 1);
    ck_assert(says(&e, "/nonexistent.json: "));
    err_fini(&e);
    ck_assert_ptr_null(json_read_file("/", &e)); /* a folder is no file */
    ck_assert_uint_eq(e.n, 1);
    err_fini(&e);
}
END_TEST

START_TEST(malformed_text_names_its_line)
{
    refused("{\n \"a\": 1,\n \"b\": }\n", ":3: malformed JSON"); /* the value missing on line 3 */
    refused("{\n\n\"a\" 1}", ":3: malformed JSON");
    refused("{} \n {}", ":2: malformed JSON"); /* text after the document */
    refused("", ":1: malformed JSON");
    refused("{\"a\": 01e}", ":1: malformed JSON");
    refused("{\"a\":\n[1, {\"b\": 2}", ":2: malformed JSON: it ends too soon");
    refused("{\"a\": \"}", ":1: malformed JSON: it ends too soon");
    refused("{\"a\": \"\\\"}", ":1: malformed JSON: it ends too soon"); /* the quote is text */
}
END_TEST

START_TEST(bytes_that_are_not_text_are_refused)
{
    struct err e = ERR_INIT;
    ck_assert_ptr_null(read_bytes("{\"a\":\0 1}", 9, &e));
    ck_assert_uint_eq(e.n, 1);
    ck_assert(says(&e, "not text"));
    err_fini(&e);
}
END_TEST

START_TEST(a_key_may_stand_once_in_an_object)
{
    refused("{\"a\": 1, \"b\": 2, \"a\": 3}", ": a: is given twice");
    refused("{\"o\": {\"l\": [{}, {\"x\": 1, \"x\": 1}]}}", ": o.l[1].x: is given twice");
    struct err e = ERR_INIT; /* the same key in two objects is fine */
    cJSON *root = read_text("{\"o\": {\"a\": 1}, \"a\": [1, 1]}", &e);
    ck_assert_ptr_nonnull(root);
    ck_assert_uint_eq(e.n, 0);
    cJSON_Delete(root);
}
END_TEST

START_TEST(numbers_are_finite)
{
    refused("{\"o\": {\"a\": 1e999}}", ": o.a: not a finite number"); /* 1e999 > DBL_MAX */
    refused("{\"a\": [0, -1e999]}", ": a[1]: not a finite number");
}
END_TEST

static struct json_obj object(cJSON **root, const char *text, struct err *e)
{
    *root = cJSON_Parse(text);
    ck_assert_ptr_nonnull(*root);
    return json_root(*root, "f.json", e);
}

START_TEST(the_root_is_an_object)
{
    struct err e = ERR_INIT;
    cJSON *root;
    struct json_obj o = object(&root, "[1]", &e);
    ck_assert(says(&e, "f.json: must be an object"));
    /* after a type error nothing more is said about what is inside */
    (void)json_get_number(&o, "a", 0.0, 1.0);
    (void)json_get_quantity(&o, "q", "W", 0.0, 1.0);
    json_done(&o);
    ck_assert_uint_eq(e.n, 1);
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(right_values_come_through)
{
    struct err e = ERR_INIT;
    cJSON *root;
    struct json_obj o = object(&root,
                               "{\"n\": 0.25, \"lo\": -1, \"hi\": 1, \"u\": 4294967295, \"t\": "
                               "true, \"f\": false, \"s\": \"x\", \"c\": \"two\"}",
                               &e);
    const char *const choices[] = {"one", "two", NULL};
    ck_assert_double_eq(json_get_number(&o, "n", 0.0, 1.0), 0.25);
    ck_assert_double_eq(json_get_number(&o, "lo", -1.0, 1.0), -1.0); /* both ends are allowed */
    ck_assert_double_eq(json_get_number(&o, "hi", -1.0, 1.0), 1.0);
    ck_assert_uint_eq(json_get_u32(&o, "u", 0, UINT32_MAX), UINT32_MAX);
    ck_assert(json_get_bool(&o, "t"));
    ck_assert(!json_get_bool(&o, "f"));
    ck_assert_str_eq(json_get_string(&o, "s"), "x");
    ck_assert_int_eq(json_get_choice(&o, "c", choices), 1);
    json_done(&o);
    ck_assert_uint_eq(e.n, 0);
    cJSON_Delete(root);
}
END_TEST

START_TEST(all_errors_of_an_object_come_at_once)
{
    struct err e = ERR_INIT;
    cJSON *root;
    struct json_obj o = object(&root,
                               "{\"small\": -0.5, \"big\": 1.5, \"text\": \"1\", \"half\": 1.5, "
                               "\"minus\": -1, \"huge\": 4294967296, \"b\": 1, \"s\": null, "
                               "\"c\": \"three\", \"extra\": 0}",
                               &e);
    const char *const choices[] = {"one", "two", NULL};
    ck_assert_double_eq(json_get_number(&o, "small", 0.0, 1.0), 0.0); /* neutral: min */
    ck_assert_double_eq(json_get_number(&o, "big", 0.0, 1.0), 0.0);
    ck_assert_double_eq(json_get_number(&o, "text", 0.0, 1.0), 0.0);
    ck_assert_uint_eq(json_get_u32(&o, "half", 1, 9), 1);
    ck_assert_uint_eq(json_get_u32(&o, "minus", 0, 9), 0);
    ck_assert_uint_eq(json_get_u32(&o, "huge", 2, UINT32_MAX), 2);
    ck_assert(!json_get_bool(&o, "b"));
    ck_assert_str_eq(json_get_string(&o, "s"), "");
    ck_assert_int_eq(json_get_choice(&o, "c", choices), 0);
    ck_assert_double_eq(json_get_number(&o, "gone", 3.0, 4.0), 3.0);
    json_done(&o);
    static const char *const lines[] = {
        "f.json: small: must be a number from 0 to 1",
        "f.json: big: must be a number from 0 to 1",
        "f.json: text: must be a number",
        "f.json: half: must be a whole number from 1 to 9",
        "f.json: minus: must be a whole number from 0 to 9",
        "f.json: huge: must be a whole number",
        "f.json: b: must be true or false",
        "f.json: s: must be text",
        "f.json: c: must be one of one, two",
        "f.json: gone: missing (a number from 3 to 4)",
        "f.json: extra: unknown key",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(says(&e, lines[i]), "no line \"%s\"", lines[i]);
    }
    ck_assert_uint_eq(e.n, sizeof lines / sizeof lines[0]);
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(places_inside_are_named_by_their_path)
{
    struct err e = ERR_INIT;
    cJSON *root;
    struct json_obj o = object(&root,
                               "{\"d\": [{\"x\": {\"y\": true, \"Y\": 1, \"z\": 1}}, 7], "
                               "\"short\": [], \"no\": {}, \"Gone\": 1}",
                               &e);
    ck_assert_int_eq(json_get_array_size(&o, "d", 1, 2), 2);
    struct json_obj d0 = json_array_object(&o, "d", 0);
    struct json_obj x = json_get_object(&d0, "x");
    (void)json_get_number(&x, "y", 0.0, 1.0);
    json_done(&x);
    (void)json_get_object(&d0, "w");
    (void)json_array_object(&o, "d", 1);
    ck_assert_int_eq(json_get_array_size(&o, "short", 1, 2), 0);
    ck_assert_int_eq(json_get_array_size(&o, "no", 0, 2), 0);
    ck_assert_int_eq(json_get_array_size(&o, "gone", 0, 2), 0);
    json_done(&o);
    ck_assert(says(&e, "f.json: d[0].x.y: must be a number"));
    ck_assert(says(&e, "f.json: d[0].x.z: unknown key"));
    ck_assert(says(&e, "f.json: Gone: unknown key; did you mean gone?")); /* keys have their case */
    ck_assert(says(&e, "f.json: d[0].w: missing (an object"));
    ck_assert(says(&e, "f.json: d[1]: must be an object"));
    ck_assert(says(&e, "f.json: short: must be an array of length from 1 to 2"));
    ck_assert(says(&e, "f.json: no: must be an array"));
    ck_assert(says(&e, "f.json: gone: missing (an array"));
    ck_assert_uint_eq(e.n, 9);
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

START_TEST(an_object_of_more_than_64_keys_is_refused_not_misread)
{
    struct err e = ERR_INIT;
    cJSON *root = cJSON_CreateObject();
    for (int i = 0; i < 65; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", i);
        cJSON_AddNumberToObject(root, key, i);
    }
    struct json_obj o = json_root(root, "f.json", &e);
    for (uint32_t i = 0; i < 65; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        ck_assert_uint_eq(json_get_u32(&o, key, 0, 64), i);
    }
    json_done(&o);
    ck_assert_uint_eq(e.n, 1);
    ck_assert(says(&e, "more than 64 keys"));
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

#define QUANTITY(value, unit, low, high, source, kind)                                             \
    "{\"q\": {\"value\": " value ", \"unit\": " unit ", \"low\": " low ", \"high\": " high         \
    ", \"source\": " source ", \"kind\": " kind "}}"

/* Without a range a quantity is sure: both ends are its value. Another unit is refused, whether its
 * name sorts before the right one or after it. */
START_TEST(a_quantity_without_a_range_is_its_value)
{
    struct err e = ERR_INIT;
    cJSON *root;
    const char *text = "{\"q\": {\"value\": 2, \"unit\": \"W\", \"source\": \"s\", "
                       "\"kind\": \"fitted\"}}";
    struct json_obj o = object(&root, text, &e);
    struct quantity q = json_get_quantity(&o, "q", "W", 0.0, 10.0);
    ck_assert(q.present);
    ck_assert_double_eq(q.low, 2.0);
    ck_assert_double_eq(q.high, 2.0);
    cJSON_Delete(root);
    static const char *const others[] = {"A", "Z", "w", ""};
    for (int i = 0; i < 4; i++) {
        o = object(&root, text, &e);
        q = json_get_quantity(&o, "q", others[i], 0.0, 10.0);
        ck_assert_msg(!q.present && e.n == 1, "W was taken for '%s'", others[i]);
        err_fini(&e);
        e = (struct err)ERR_INIT;
        cJSON_Delete(root);
    }
}
END_TEST

START_TEST(a_quantity_is_read_whole)
{
    struct err e = ERR_INIT;
    cJSON *root;
    struct json_obj o =
        object(&root, QUANTITY("2", "\"GB/s\"", "1", "4", "\"table 3\"", "\"fitted\""), &e);
    struct quantity q = json_get_quantity(&o, "q", "GB/s", 0.0, 10.0);
    ck_assert(q.present);
    ck_assert_double_eq(q.value, 2.0);
    ck_assert_double_eq(q.low, 1.0);
    ck_assert_double_eq(q.high, 4.0);
    ck_assert_int_eq(q.kind, QUANTITY_FITTED);
    ck_assert_uint_eq(e.n, 0);
    cJSON_Delete(root);
}
END_TEST

START_TEST(every_fault_of_a_quantity_is_one_line)
{
    static const struct {
        const char *text, *line;
    } faults[] = {
        {"{}", "q: missing (an object"},
        {"{\"q\": 2}",
         "q: must be an object {\"value\": .., \"unit\": \""}, /* a bare number has no unit and no
                                                                  source */
        {QUANTITY("\"2\"", "\"W\"", "1", "4", "\"s\"", "\"fitted\""), "q.value: must be a number"},
        {QUANTITY("11", "\"W\"", "1", "4", "\"s\"", "\"fitted\""),
         "q.value: must be a number from 0 to 10"},
        {QUANTITY("2", "\"GB/s\"", "1", "4", "\"s\"", "\"fitted\""),
         "q.unit: must be \"W\", not \"GB/s\""},
        {QUANTITY("2", "\"\"", "1", "4", "\"s\"", "\"fitted\""), "q.unit: must be \"W\""},
        {QUANTITY("2", "1", "1", "4", "\"s\"", "\"fitted\""), "q.unit: must be text"},
        {QUANTITY("2", "\"W\"", "3", "4", "\"s\"", "\"fitted\""), "q: must be a range"},
        {QUANTITY("2", "\"W\"", "1", "1.5", "\"s\"", "\"fitted\""), "q: must be a range"},
        {QUANTITY("2", "\"W\"", "1", "40", "\"s\"", "\"fitted\""), "q.high: must be a number"},
        {QUANTITY("2", "\"W\"", "1", "4", "\"\"", "\"fitted\""), "q.source: must be text that"},
        {QUANTITY("2", "\"W\"", "1", "4", "0", "\"fitted\""), "q.source: must be text"},
        {QUANTITY("2", "\"W\"", "1", "4", "\"s\"", "\"guessed\""),
         "q.kind: must be one of measured, fitted, assumed, datasheet"},
        {"{\"q\": {\"value\": 2, \"source\": \"s\", \"kind\": \"fitted\"}}", "q.unit: missing"},
        {"{\"q\": {\"value\": 2, \"unit\": \"W\", \"kind\": \"fitted\"}}", "q.source: missing"},
        {"{\"q\": {\"value\": 2, \"unit\": \"W\", \"source\": \"s\"}}", "q.kind: missing"},
        {"{\"q\": {\"unit\": \"W\", \"source\": \"s\", \"kind\": \"fitted\"}}", "q.value: missing"},
        {"{\"q\": {\"value\": 2, \"unit\": \"W\", \"source\": \"s\", \"kind\": \"fitted\", "
         "\"lwo\": 1}}",
         "q.lwo: unknown key"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct err e = ERR_INIT;
        cJSON *root;
        struct json_obj o = object(&root, faults[i].text, &e);
        struct quantity q = json_get_quantity(&o, "q", "W", 0.0, 10.0);
        ck_assert_msg(!q.present, "%s was taken", faults[i].text);
        ck_assert_msg(e.n == 1 && says(&e, faults[i].line), "%s: %zu lines, first: %s",
                      faults[i].text, e.n, e.n > 0 ? e.lines[0] : "none");
        err_fini(&e);
        cJSON_Delete(root);
    }
}
END_TEST

static const char machine[] =
    "{\"soc\": {\"devices\": [{\"name\": \"npu\", \"rows\": 256, \"fast\": true},"
    "{\"name\": \"igpu\", \"rows\": 0, \"rate\": {\"value\": 4, \"unit\": \"T\", \"low\": 3,"
    "\"high\": 5, \"source\": \"s\", \"kind\": \"measured\"}}], \"form\": \"max-min\"}}";

static const cJSON *at(const cJSON *root, int device, const char *key)
{
    const cJSON *soc = cJSON_GetObjectItem(root, "soc");
    const cJSON *d = cJSON_GetArrayItem(cJSON_GetObjectItem(soc, "devices"), device);
    return cJSON_GetObjectItem(d, key);
}

START_TEST(an_override_changes_what_its_path_names)
{
    struct err e = ERR_INIT;
    cJSON *root = cJSON_Parse(machine);
    ck_assert_int_eq(json_set_path(root, "soc.devices.igpu.rows", "64", &e), 0); /* by name */
    ck_assert_int_eq(json_set_path(root, "soc.devices.0.rows", "128", &e), 0);   /* by index */
    ck_assert_int_eq(json_set_path(root, "soc.devices.npu.fast", "false", &e), 0);
    ck_assert_int_eq(json_set_path(root, "soc.form", "none", &e), 0);
    ck_assert_uint_eq(e.n, 0);
    ck_assert_double_eq(at(root, 1, "rows")->valuedouble, 64.0);
    ck_assert_double_eq(at(root, 0, "rows")->valuedouble, 128.0);
    ck_assert(cJSON_IsFalse(at(root, 0, "fast")));
    ck_assert_str_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "soc"), "form")->valuestring,
                     "none");
    cJSON_Delete(root);
}
END_TEST

START_TEST(an_overridden_quantity_is_an_assumption_whose_range_holds_it)
{
    static const struct {
        const char *text;
        double value, low, high;
    } cases[] = {{"4.5", 4.5, 3, 5}, {"8", 8, 3, 8}, {"1e0", 1, 1, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = ERR_INIT;
        cJSON *root = cJSON_Parse(machine);
        ck_assert_int_eq(json_set_path(root, "soc.devices.igpu.rate", cases[i].text, &e), 0);
        struct json_obj o = json_root(
            cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "soc"), "devices"), 1),
            "f", &e);
        struct quantity q = json_get_quantity(&o, "rate", "T", 0.0, 10.0);
        ck_assert_uint_eq(e.n, 0);
        ck_assert_double_eq(q.value, cases[i].value);
        ck_assert_double_eq(q.low, cases[i].low);
        ck_assert_double_eq(q.high, cases[i].high);
        ck_assert_int_eq(q.kind, QUANTITY_ASSUMED);
        cJSON_Delete(root);
    }
}
END_TEST

START_TEST(an_override_that_fits_nothing_changes_nothing)
{
    static const struct {
        const char *path, *text, *line;
    } faults[] = {
        {"soc.devices.gpu.rows", "1",
         "no \"gpu\" at that place; there are npu, igpu; did you mean npu?"},
        {"soc.devices.2.rows", "1", "no \"2\""},
        {"soc.devices.-1.rows", "1", "no \"-1\""},
        {"soc.rows", "1", "no \"rows\""},
        {"soc..form", "none", "no \"\""},
        {"soc.form.x", "none", "no \"x\""},
        {"soc.form.", "none", "ends in a dot"},
        {"ddr.peak", "1", "no \"ddr\" at that place; paths begin with soc"},
        {"", "1", "cannot take"},
        {"soc", "1", "cannot take \"1\": it takes no value, but its parts do"},
        {"soc.devices", "1", "cannot take"},
        {"soc.devices.npu.rows", "many",
         "cannot take \"many\": it takes a number, without its unit"},
        {"soc.devices.npu.rows", "nan", "cannot take"},
        {"soc.devices.npu.rows", "", "cannot take"},
        {"soc.devices.npu.rows", "5x", "cannot take"},
        {"soc.devices.npu.fast", "1", "cannot take \"1\": it takes true or false"},
        {"soc.devices.igpu.rate", "quick", "it takes a number, without its unit"},
    };
    cJSON *root = cJSON_Parse(machine);
    cJSON *before = cJSON_Duplicate(root, 1);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct err e = ERR_INIT;
        ck_assert_int_eq(json_set_path(root, faults[i].path, faults[i].text, &e), -EINVAL);
        ck_assert_msg(e.n == 1 && says(&e, "--set ") && says(&e, faults[i].line),
                      "%s=%s: %zu lines, first: %s", faults[i].path, faults[i].text, e.n,
                      e.n > 0 ? e.lines[0] : "none");
        err_fini(&e);
    }
    ck_assert(cJSON_Compare(root, before, 1));
    cJSON_Delete(before);
    cJSON_Delete(root);
}
END_TEST

/* Keys of 300 letters, one in the other, are whole in the text about the innermost. */
START_TEST(a_place_is_named_whole_however_deep_and_long)
{
    char key[301];
    char text[1000];
    char want[1000];
    struct err e = ERR_INIT;
    cJSON *root = NULL;
    (void)snprintf(key, sizeof key, "%0300d", 0);
    (void)snprintf(text, sizeof text, "{\"%s\": {\"%s\": [{\"x\": \"one\"}]}}", key, key);
    (void)snprintf(want, sizeof want, "f.json: %s.%s[0].x: must be a number from 0 to 1", key, key);
    struct json_obj o = object(&root, text, &e);
    struct json_obj below = json_get_object(&o, key);
    struct json_obj element = json_array_object(&below, key, 0);
    (void)json_get_number(&element, "x", 0.0, 1.0);
    ck_assert_uint_eq(e.n, 1);
    ck_assert_str_eq(e.lines[0], want);
    err_fini(&e);
    cJSON_Delete(root);
}
END_TEST

/* cJSON prints 15 digits, which turn every tenth seed of 16 digits into another one. */
START_TEST(whole_numbers_have_all_digits)
{
    static const uint64_t seeds[] = {0, 7, 999999999999999, 5537146003901661, (1ull << 53) - 1};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        char digits[32];
        (void)snprintf(digits, sizeof digits, "%" PRIu64, seeds[i]);
        cJSON *n = cJSON_CreateNumber((double)seeds[i]);
        char *text = json_text(n, false);
        ck_assert_str_eq(text, digits);
        cJSON_free(text);
        cJSON_Delete(n);
    }
}
END_TEST

/* A seed needs 16 digits. cJSON prints the next seed. */
START_TEST(seeds_are_printed_to_be_read_back)
{
    cJSON *tree = cJSON_Parse("{\"a\":[0.5,{\"b\":-9007199254740991}],\"c\":5537146003901659}");
    OWNED char *text = json_text(tree, false);
    ck_assert_str_eq(text, "{\"a\":[0.5,{\"b\":-9007199254740991}],\"c\":5537146003901659}");
    ck_assert(cJSON_IsNumber(cJSON_GetObjectItem(tree, "c"))); /* the tree is as it was */
    cJSON_Delete(tree);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(seeds_are_printed_to_be_read_back),
    TEST(whole_numbers_have_all_digits),
    TEST(a_missing_file_is_named),
    TEST(malformed_text_names_its_line),
    TEST(bytes_that_are_not_text_are_refused),
    TEST(a_key_may_stand_once_in_an_object),
    TEST(numbers_are_finite),
    TEST(the_root_is_an_object),
    TEST(right_values_come_through),
    TEST(all_errors_of_an_object_come_at_once),
    TEST(places_inside_are_named_by_their_path),
    TEST(an_object_of_more_than_64_keys_is_refused_not_misread),
    TEST(a_quantity_is_read_whole),
    TEST(a_quantity_without_a_range_is_its_value),
    TEST(every_fault_of_a_quantity_is_one_line),
    TEST(an_override_changes_what_its_path_names),
    TEST(an_overridden_quantity_is_an_assumption_whose_range_holds_it),
    TEST(a_place_is_named_whole_however_deep_and_long),
    TEST(an_override_that_fits_nothing_changes_nothing),
};
SUITE_MAIN("json", suite)
