/* One document, its four forms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/frame.h"
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
    document_free(d);
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
    ck_assert_str_eq(shown("markdown"), "a note of 5 words\n"
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
    document_free(d);
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
    document_free(d);
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
    document_free(d);
    d = own;
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .setup = setup, .teardown = teardown),
    TEST(text_aligns_what_is_for_people_and_marks_what_is_missing),
    TEST(json_nests_by_keys_and_has_null_for_what_is_missing),
    TEST(csv_quotes_where_needed_and_numbers_read_back_the_same),
    TEST(markdown_escapes_bars),
    TEST(a_nameless_frame_is_the_document_and_cells_can_be_read),
    TEST(rows_stand_under_headings_numbers_may_be_shown_as_texts_dots_make_objects),
    TEST(what_people_were_told_is_not_said_again),
    TEST(csv_of_no_table_names_every_value),
};
SUITE_MAIN("frame", suite)
