/* One document, its four forms. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/shell/document.h"
#include "tests/helpers/suite.h"

static struct document *d;

/* Two policies, one of them without a value in its second metric; a share, a flag, quotes. */
static void setup(void)
{
    d = document_new();
    static const struct frame_column columns[] = {
        {.name = "policy", .kind = FRAME_TEXT},
        {.name = "metric", .kind = FRAME_TEXT},
        {.name = "mean_s", .title = "mean (s)", .format = "%.3f"},
        {.name = "sure", .kind = FRAME_FLAG, .only_data = true},
    };
    DOCUMENT_VALUES(d, "version", "1", "load", 0.5);
    document_note(d, "a note of %d words", 5);
    struct frame *f = DOCUMENT_FRAME(d, "policies", 2, columns);
    bool sure = true;
    FRAME_ROW(f, "a,\"b\"", "ttft_s", 0.1, sure);
    FRAME_ROW(f, "a,\"b\"", "e2e|s", (double)NAN, false);
}

static void teardown(void)
{
}

static const char *shown(const char *form)
{
    static char text[2048];
    FILE *f = tmpfile();
    document_put(d, form, f);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

START_TEST(text_aligns_what_is_for_people_and_marks_what_is_missing)
{
    ck_assert_str_eq(shown("text"), "a note of 5 words\n"
                                    "policy  metric  mean (s)\n"
                                    "a,\"b\"   ttft_s     0.100\n"
                                    "a,\"b\"   e2e|s          -\n");
}
END_TEST

/* Four characters have four columns, in five and in six bytes. */
START_TEST(columns_are_characters_not_bytes)
{
    static const struct frame_column columns[] = {{.name = "name", .kind = FRAME_TEXT},
                                                  {.name = "n"}};
    struct document *alone = document_new();
    struct frame *f = DOCUMENT_FRAME(alone, "", 0, columns);
    FRAME_ROW(f, "abcd", 1);
    FRAME_ROW(f, "abcé", 2);
    FRAME_ROW(f, "üöab", 3);
    d = alone;
    ck_assert_str_eq(shown("text"), "name  n\nabcd  1\nabcé  2\nüöab  3\n");
}
END_TEST

START_TEST(json_nests_by_keys_and_has_null_for_what_is_missing)
{
    ck_assert_str_eq(
        shown("json"),
        "{\n\t\"version\":\t\"1\",\n\t\"load\":\t0.5,\n\t\"policies\":\t{\n"
        "\t\t\"a,\\\"b\\\"\":\t{\n"
        "\t\t\t\"ttft_s\":\t{\n\t\t\t\t\"mean_s\":\t0.1,\n\t\t\t\t\"sure\":\ttrue\n\t\t\t},\n"
        "\t\t\t\"e2e|s\":\t{\n\t\t\t\t\"mean_s\":\tnull,\n\t\t\t\t\"sure\":\tfalse\n\t\t\t}\n"
        "\t\t}\n\t}\n}\n");
}
END_TEST

START_TEST(csv_quotes_where_needed_and_numbers_read_back_the_same)
{
    struct frame *f = document_frame(d, "more", 0);
    (void)f;
    ck_assert_str_eq(shown("csv"), "policy,metric,mean_s,sure\n"
                                   "\"a,\"\"b\"\"\",ttft_s,0.1,true\n"
                                   "\"a,\"\"b\"\"\",e2e|s,,false\n");
}
END_TEST

START_TEST(markdown_escapes_bars)
{
    ck_assert_str_eq(shown("markdown"), "a note of 5 words\n\n"
                                        "| policy | metric | mean (s) |\n|---|---|---:|\n"
                                        "| a,\"b\" | ttft_s | 0.100 |\n"
                                        "| a,\"b\" | e2e\\|s | - |\n");
}
END_TEST

START_TEST(a_nameless_frame_is_the_document_and_cells_can_be_read)
{
    struct document *alone = document_new();
    struct frame *f = document_data(alone, "", 0, "x");
    FRAME_ROW(f, 1.0 / 3.0);
    FRAME_ROW(f, FRAME_NONE);
    ck_assert_uint_eq(frame_rows(f), 2);
    ck_assert_double_eq(frame_get(f, 0, "x"), 1.0 / 3.0);
    ck_assert(isnan(frame_get(f, 1, "x")));
    ck_assert(isnan(frame_get(f, 0, "y")));
    d = alone;
    ck_assert_str_eq(shown("json"),
                     "[{\n\t\t\"x\":\t0.33333333333333331\n\t}, {\n\t\t\"x\":\tnull\n\t}]\n");
    ck_assert_str_eq(shown("csv"), "x\n0.33333333333333331\n\n");
}
END_TEST

START_TEST(rows_stand_under_headings_numbers_may_be_shown_as_texts_dots_make_objects)
{
    static const struct frame_column columns[] = {
        {.name = "policy", .title = "", .kind = FRAME_TEXT},
        {.name = "metric", .kind = FRAME_TEXT, .heading = true},
        {.name = "mean.value", .title = "mean"},
        {.name = "mean.n", .only_data = true},
        {.name = "", .title = "note", .kind = FRAME_TEXT, .only_text = true},
    };
    struct document *grouped = document_new();
    struct frame *f = DOCUMENT_FRAME(grouped, "of", 2, columns);
    FRAME_ROW(f, "fcfs", "ttft_s", frame_shown(2.5, "2.5 [2, 3]"), 4, "wide");
    FRAME_ROW(f, "edf", "ttft_s", 1.5, FRAME_ABSENT, FRAME_ABSENT);
    FRAME_ROW(f, "fcfs", "e2e_s", FRAME_NONE, 4);
    struct frame *t = document_table(grouped, 2, "lr", "", "right");
    FRAME_ROW(t, "x", 0.5);
    struct document *list = document_array(grouped, "list");
    DOCUMENT_VALUES(list, NULL, 1, NULL, "two");
    DOCUMENT_VALUES(document_within(list, NULL), "three", UINT64_C(3), "none", FRAME_ABSENT);
    d = grouped;
    ck_assert_str_eq(shown("text"), "\nttft_s\n"
                                    "            mean  note\n"
                                    "fcfs  2.5 [2, 3]  wide\n"
                                    "edf          1.5\n"
                                    "\ne2e_s\n"
                                    "      mean  note\n"
                                    "fcfs     -\n"
                                    "     right\n"
                                    "  x    0.5\n");
    ck_assert_str_eq(
        shown("json"),
        "{\n\t\"of\":\t{\n\t\t\"fcfs\":\t{\n"
        "\t\t\t\"ttft_s\":\t{\n\t\t\t\t\"mean\":\t{\n"
        "\t\t\t\t\t\"value\":\t2.5,\n\t\t\t\t\t\"n\":\t4\n\t\t\t\t}\n\t\t\t},\n"
        "\t\t\t\"e2e_s\":\t{\n\t\t\t\t\"mean\":\t{\n"
        "\t\t\t\t\t\"value\":\tnull,\n\t\t\t\t\t\"n\":\t4\n\t\t\t\t}\n\t\t\t}\n\t\t},\n"
        "\t\t\"edf\":\t{\n\t\t\t\"ttft_s\":\t{\n\t\t\t\t\"mean\":\t{\n"
        "\t\t\t\t\t\"value\":\t1.5\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t},\n"
        "\t\"list\":\t[1, \"two\", {\n\t\t\t\"three\":\t3\n\t\t}]\n}\n");
}
END_TEST

START_TEST(what_people_were_told_is_not_said_again)
{
    struct option_output text = {0};
    char *said = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&said, &bytes);
    struct document *within = document_within(d, "loads");
    document_print_so_far(d, &text, f);
    (void)fflush(f);
    size_t first = bytes;
    document_note(within, "later");
    document_print(d, &text, f);
    (void)fclose(f);
    ck_assert_str_eq(said + first, "later\n");
    free(said);
}
END_TEST

START_TEST(csv_of_no_table_names_every_value)
{
    struct document *own = d;
    d = document_new();
    DOCUMENT_VALUES(d, "n", 2, "text", "a,b");
    DOCUMENT_VALUES(document_within(d, "in"), "flag", (bool)true, "none", (double)NAN);
    ck_assert_str_eq(shown("csv"), "name,value\nn,2\ntext,\"a,b\"\nin.flag,true\nin.none,\n");
    d = own;
}
END_TEST

/* Two loads, each with a table in front: CSV has the main tables, with one header. The mean of a
 * load is no column next to the policies' means. */
START_TEST(csv_is_of_the_main_tables_of_an_array)
{
    static const struct frame_column counts[] = {{.name = "runs"}};
    static const struct frame_column columns[] = {{.name = "policy", .kind = FRAME_TEXT},
                                                  {.name = "mean_s"}};
    struct document *own = d;
    d = document_new();
    DOCUMENT_VALUES(d, "version", "1");
    struct document *loads = document_array(d, "loads");
    for (int i = 1; i <= 2; i++) {
        struct document *of = document_within(loads, NULL);
        document_note(of, "load %d", i);
        DOCUMENT_VALUES(of, "load", 0.5 * i, "mean_s", 9);
        FRAME_ROW(DOCUMENT_FRAME(of, "verdicts", 0, counts), 7);
        DOCUMENT_VALUES(of, "not_of_the_lead", 1);
        struct frame *f = DOCUMENT_FRAME(of, "policies", 1, columns);
        frame_main(f);
        FRAME_ROW(f, "a", 3 * i);
        FRAME_ROW(f, "b", 4 * i);
    }
    ck_assert_str_eq(shown("csv"), "load,policy,mean_s\n0.5,a,3\n0.5,b,4\n1,a,6\n1,b,8\n");
    d = own;
}
END_TEST

static char path[] = "/tmp/xpusim-check-frame-XXXXXX";

static struct frame *read_csv(const char *text, struct err *e)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(close(fd), 0);
    struct frame *f = frame_read_csv(path, e);
    (void)remove(path);
    return f;
}

/* Numbers where all of the cell is one, with their text; what is missing says column and line. */
START_TEST(csv_is_read_by_names)
{
    struct err e = ERR_INIT;
    struct frame *f = read_csv("# kind: x\nop,time_s,n\n\nmm,0.50,\n\"a,b\",1e3,7 up\n", &e);
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(frame_rows(f), 2);
    ck_assert_uint_eq(frame_width(f), 3);
    ck_assert_str_eq(frame_text(f, 1, "op"), "a,b");
    ck_assert_double_eq(frame_get(f, 1, "time_s"), 1000.0);
    ck_assert_str_eq(frame_text(f, 0, "time_s"), "0.50");
    ck_assert(frame_at(f, 0, 2).kind == FRAME_VALUE_ABSENT);
    ck_assert(isnan(frame_get(f, 1, "n")) && frame_is(f, 1, "n", "7 up"));
    ck_assert_double_eq(frame_require_number(f, 0, "time_s", &e), 0.5);
    ck_assert_int_eq(frame_require(f, "op n", &e), 0);
    ck_assert_uint_eq(e.n, 0);
    ck_assert(isnan(frame_require_number(f, 1, "n", &e)));
    ck_assert_int_ne(frame_require(f, "op watts", &e), 0);
    ck_assert_uint_eq(e.n, 2);
    ck_assert_ptr_nonnull(strstr(e.lines[0], ":5: column n: \"7 up\" is not"));
    ck_assert_ptr_nonnull(strstr(e.lines[1], "no column watts; there are: op, time_s, n"));
    frame_free(f);
    ck_assert_ptr_null(read_csv("a,b\n", &e));
    ck_assert_ptr_nonnull(strstr(e.lines[2], ": no rows"));
    err_fini(&e);
}
END_TEST

/* Nested keys of put_row_json become columns again. Arrays on the way are read through, a row has
 * the values around it, and a later row may bring a column. */
START_TEST(json_rows_are_read_by_the_way_to_them)
{
    cJSON *root = cJSON_Parse(
        "{\"seed\":3,\"loads\":[{\"load\":0.5,\"of\":{\"fcfs\":{\"ttft\":{\"mean\":1}}}},"
        "{\"load\":0.9,\"of\":{\"fcfs\":{\"ttft\":{\"mean\":2}},"
        "\"edf\":{\"ttft\":{\"mean\":null},\"note\":\"late\",\"list\":[1,2]}}}]}");
    struct frame *f = frame_of_json(root, "loads/of/{policy}", "x.json");
    ck_assert_uint_eq(frame_rows(f), 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_double_eq(frame_get(f, i, "seed"), 3.0);
        ck_assert_double_eq(frame_get(f, i, "load"), i == 0 ? 0.5 : 0.9);
        ck_assert_str_eq(frame_text(f, i, "policy"), i == 2 ? "edf" : "fcfs");
        ck_assert_str_eq(frame_text(f, i, "note"), i == 2 ? "late" : "");
    }
    ck_assert_double_eq(frame_get(f, 1, "ttft.mean"), 2.0);
    ck_assert(frame_at(f, 2, (size_t)frame_find(f, "ttft.mean")).kind == FRAME_VALUE_NULL);
    ck_assert_int_eq(frame_find(f, "list"), -1);
    frame_free(f);
    f = frame_of_json(root, "loads/of/edf/list", "x.json");
    ck_assert_uint_eq(frame_rows(f), 2);
    ck_assert_double_eq(frame_get(f, 1, "value"), 2.0);
    frame_free(f);
    f = frame_of_json(root, "nothing/{here}", "x.json");
    ck_assert_uint_eq(frame_rows(f), 0);
    frame_free(f);
    cJSON_Delete(root);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .setup = setup, .teardown = teardown),
    TEST(text_aligns_what_is_for_people_and_marks_what_is_missing),
    TEST(columns_are_characters_not_bytes),
    TEST(json_nests_by_keys_and_has_null_for_what_is_missing),
    TEST(csv_quotes_where_needed_and_numbers_read_back_the_same),
    TEST(markdown_escapes_bars),
    TEST(a_nameless_frame_is_the_document_and_cells_can_be_read),
    TEST(rows_stand_under_headings_numbers_may_be_shown_as_texts_dots_make_objects),
    TEST(what_people_were_told_is_not_said_again),
    TEST(csv_of_no_table_names_every_value),
    TEST(csv_is_of_the_main_tables_of_an_array),
    TEST(csv_is_read_by_names),
    TEST(json_rows_are_read_by_the_way_to_them),
};
SUITE_MAIN("frame", suite)
