/* One document, its four forms. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/frame.h"

static struct document *d;

/* Two policies, one of them without a value in its second metric; a share, a flag, quotes. */
static void setup(void)
{
    d = document_new();
    document_text(d, "version", NULL, "1");
    document_number(d, "load", "load", "%.2f", 0.5);
    document_note(d, "a note of %d words", 5);
    struct frame *f = document_frame(d, "policies", 2);
    frame_column(f, (struct frame_column){.name = "policy", .kind = FRAME_TEXT});
    frame_column(f, (struct frame_column){.name = "metric", .kind = FRAME_TEXT});
    frame_column(f, (struct frame_column){.name = "mean_s", .title = "mean (s)", .format = "%.3f"});
    frame_column(f, (struct frame_column){.name = "sure", .kind = FRAME_FLAG, .only_data = true});
    frame_text(f, "a,\"b\"");
    frame_text(f, "ttft_s");
    frame_number(f, 0.1);
    frame_flag(f, true);
    frame_text(f, "a,\"b\"");
    frame_text(f, "e2e|s");
    frame_number(f, (double)NAN);
    frame_flag(f, false);
}

static void teardown(void)
{
    document_free(d);
}

static const char *shown(enum document_form form)
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
    ck_assert_str_eq(shown(DOCUMENT_TEXT), "load: 0.50\n"
                                           "a note of 5 words\n"
                                           "policy  metric  mean (s)\n"
                                           "a,\"b\"   ttft_s     0.100\n"
                                           "a,\"b\"   e2e|s          -\n");
}
END_TEST

START_TEST(json_nests_by_keys_and_has_null_for_what_is_missing)
{
    ck_assert_str_eq(
        shown(DOCUMENT_JSON),
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
    ck_assert_str_eq(shown(DOCUMENT_CSV), "policy,metric,mean_s,sure\n"
                                          "\"a,\"\"b\"\"\",ttft_s,0.1,true\n"
                                          "\"a,\"\"b\"\"\",e2e|s,,false\n");
}
END_TEST

START_TEST(markdown_escapes_bars)
{
    ck_assert_str_eq(shown(DOCUMENT_MARKDOWN), "load: 0.50\n"
                                               "a note of 5 words\n"
                                               "| policy | metric | mean (s) |\n|---|---|---:|\n"
                                               "| a,\"b\" | ttft_s | 0.100 |\n"
                                               "| a,\"b\" | e2e\\|s | - |\n");
}
END_TEST

START_TEST(a_nameless_frame_is_the_document_and_cells_can_be_read)
{
    struct document *alone = document_new();
    struct frame *f = document_frame(alone, NULL, 0);
    frame_column(f, (struct frame_column){.name = "x"});
    frame_number(f, 1.0 / 3.0);
    frame_missing(f);
    ck_assert_uint_eq(frame_rows(f), 2);
    ck_assert_double_eq(frame_get(f, 0, "x"), 1.0 / 3.0);
    ck_assert(isnan(frame_get(f, 1, "x")));
    ck_assert(isnan(frame_get(f, 0, "y")));
    document_free(d);
    d = alone;
    ck_assert_str_eq(shown(DOCUMENT_JSON),
                     "[{\n\t\t\"x\":\t0.33333333333333331\n\t}, {\n\t\t\"x\":\tnull\n\t}]\n");
    ck_assert_str_eq(shown(DOCUMENT_CSV), "x\n0.33333333333333331\n\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("frame");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, text_aligns_what_is_for_people_and_marks_what_is_missing);
    tcase_add_test(t, json_nests_by_keys_and_has_null_for_what_is_missing);
    tcase_add_test(t, csv_quotes_where_needed_and_numbers_read_back_the_same);
    tcase_add_test(t, markdown_escapes_bars);
    tcase_add_test(t, a_nameless_frame_is_the_document_and_cells_can_be_read);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
