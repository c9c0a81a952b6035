/* CSV reading: what is accepted, and that everything else is an error naming its place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/csvfile.h"
#include "tests/helpers/suite.h"

static char path[64];
static struct err err;

static void setup(void)
{
    (void)snprintf(path, sizeof path, "/tmp/check-csvfile-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    (void)remove(path);
    err_fini(&err);
}

static struct csvfile *open_bytes(const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    return csvfile_open(path, &err);
}

static struct csvfile *open_text(const char *text)
{
    return open_bytes(text, strlen(text));
}

/* The only error says "FILE" followed by `place`, and mentions `what`. */
static void expect_error(const char *place, const char *what)
{
    ck_assert_uint_eq(err.n, 1);
    size_t n = strlen(path);
    ck_assert_msg(strncmp(err.lines[0], path, n) == 0 &&
                      strncmp(err.lines[0] + n, place, strlen(place)) == 0 &&
                      strstr(err.lines[0], what) != NULL,
                  "%s", err.lines[0]);
    err_fini(&err);
    err = (struct err)ERR_INIT;
}

START_TEST(rows_come_with_their_lines_past_comments_and_blank_lines)
{
    struct csvfile *f = open_text("# first, kept\n\n# second\na,b\n1,x\n# between\n\n2,\n");
    ck_assert_ptr_nonnull(f);
    ck_assert_str_eq(csvfile_comment(f), "# first, kept");
    ck_assert_int_eq(csvfile_n_columns(f), 2);
    ck_assert_str_eq(csvfile_column_name(f, 1), "b");
    ck_assert_int_eq(csvfile_column(f, "b"), 1);
    ck_assert_int_eq(csvfile_column(f, "c"), -1);
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_uint_eq(csvfile_line(f), 5); /* lines: # blank # header 1,x */
    ck_assert_uint_eq(csvfile_u64(f, 0, 0, 9, &err), 1);
    ck_assert_str_eq(csvfile_text(f, 1), "x");
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_uint_eq(csvfile_line(f), 8);
    ck_assert(csvfile_empty(f, 1));
    ck_assert(csvfile_empty(f, -1)); /* an optional column that is absent */
    ck_assert_str_eq(csvfile_text(f, -1), "");
    ck_assert_int_eq(csvfile_next(f, &err), 0);
    ck_assert_int_eq(csvfile_next(f, &err), 0);
    ck_assert_uint_eq(err.n, 0);
    csvfile_close(f);
}
END_TEST

START_TEST(quotes_crlf_and_a_missing_last_newline_are_fine)
{
    struct csvfile *f = open_text("a,b\r\n\"1,5\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",2");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_str_eq(csvfile_text(f, 0), "1,5");
    ck_assert_str_eq(csvfile_text(f, 1), "say \"hi\"");
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_str_eq(csvfile_text(f, 0), "two\nlines");
    ck_assert_str_eq(csvfile_text(f, 1), "2");
    ck_assert_uint_eq(csvfile_line(f), 3); /* where the row starts */
    ck_assert_int_eq(csvfile_next(f, &err), 0);
    csvfile_close(f);
}
END_TEST

START_TEST(a_missing_or_empty_file_is_refused)
{
    ck_assert_ptr_null(open_text(""));
    expect_error(": ", "empty");
    ck_assert_ptr_null(open_text("# only a comment\n"));
    expect_error(": ", "empty");
    (void)remove(path);
    ck_assert_ptr_null(csvfile_open(path, &err));
    expect_error(": ", strerror(ENOENT));
}
END_TEST

START_TEST(a_column_that_stands_twice_is_refused)
{
    ck_assert_ptr_null(open_text("# c\na,b,a\n1,2,3\n"));
    expect_error(":2: ", "\"a\" is given twice");
    ck_assert_ptr_null(open_text("a,b,b\n1,2,3\n")); /* next to each other, and the last */
    expect_error(":1: ", "\"b\" is given twice");
}
END_TEST

START_TEST(a_required_column_that_is_missing_names_those_there_are)
{
    struct csvfile *f = open_text("a,b\n");
    ck_assert_int_eq(csvfile_require(f, "b", &err), 1);
    ck_assert_int_eq(csvfile_require(f, "c", &err), -1);
    expect_error(": ", "no column \"c\" (there are: a,b)");
    csvfile_close(f);
}
END_TEST

START_TEST(a_row_with_another_number_of_fields_is_refused)
{
    struct csvfile *f = open_text("a,b\n1,2\n1\n");
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":3: ", "1 field, the header has 2");
    csvfile_close(f);
    f = open_text("a,b\n1,2\n1"); /* cut in the middle of a line */
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":3: ", "1 field, the header has 2; it ends too soon");
    csvfile_close(f);
    f = open_text("a,b\n1,2,3\n");
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":2: ", "3 fields");
    csvfile_close(f);
}
END_TEST

START_TEST(a_quote_in_the_wrong_place_or_never_closed_is_refused)
{
    struct csvfile *f = open_text("a,b\n1,x\"y\n");
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":2: ", "");
    csvfile_close(f);
    f = open_text("a,b\n1,2\n1,\"2\n3,4\n");
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":3: ", "quoted field without an end");
    csvfile_close(f);
}
END_TEST

/* 65535 bytes fit, 65536 do not; 4096 columns fit, 4097 do not. */
START_TEST(fields_and_rows_have_a_limit)
{
    enum { BYTES = 65535, COLUMNS = 4096 };
    static char text[BYTES + 16];
    memset(text, 'x', sizeof text);
    memcpy(text, "a\n", 2);
    struct csvfile *f = open_bytes(text, 2 + BYTES);
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_uint_eq(strlen(csvfile_text(f, 0)), BYTES);
    csvfile_close(f);
    f = open_bytes(text, 2 + BYTES + 1);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":2: ", "over 65535 bytes");
    csvfile_close(f);
    memset(text + 2, ',', COLUMNS - 1); /* empty fields */
    f = open_bytes(text, 2 + COLUMNS - 1);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":2: ", "4096 fields, the header has 1");
    csvfile_close(f);
    text[2 + COLUMNS - 1] = ',';
    f = open_bytes(text, 2 + COLUMNS);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":2: ", "more than 4096 columns");
    csvfile_close(f);
}
END_TEST

START_TEST(a_nul_byte_is_refused_and_never_cuts_a_number_short)
{
    struct csvfile *f = open_bytes("a\n12\0"
                                   "3\n",
                                   7);
    ck_assert_int_eq(csvfile_next(f, &err), -EINVAL);
    expect_error(":2: ", "NUL");
    csvfile_close(f);
}
END_TEST

/* One row per text; a refused one gives the minimum and names line, column and range. */
START_TEST(numbers_are_decimal_finite_and_in_range)
{
    static const char *const bad[] = {"",    "x",    "1x",    "nan", "inf", "-inf", "0x10",
                                      "1e9", "-1.5", "1 000", "1;5", "--1", "1e400"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1", 1}, {"-1", -1}, {"+2.5", 2.5}, {".5", 0.5}, {"1e2", 100}, {" 7 ", 7}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "id,rate\n1,%s\n", good[i].text);
        struct csvfile *f = open_text(text);
        ck_assert_int_eq(csvfile_next(f, &err), 1);
        ck_assert_double_eq(csvfile_number(f, 1, -1, 100, &err), good[i].value);
        ck_assert_uint_eq(err.n, 0);
        csvfile_close(f);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "id,rate\n1,%s\n", bad[i]);
        struct csvfile *f = open_text(text);
        ck_assert_int_eq(csvfile_next(f, &err), 1);
        ck_assert_double_eq(csvfile_number(f, 1, -1, 100, &err), -1);
        expect_error(":2: column rate: ", "from -1 to 100");
        csvfile_close(f);
    }
}
END_TEST

START_TEST(whole_numbers_are_digits_only_and_in_range)
{
    static const char *const bad[] = {"",   "-1",  "+1",  "1.0", "1e1",
                                      "4",  "51",  "0x5", "5 5", "99999999999999999999999",
                                      "5u", "nan", "five"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "id,n\n1,%s\n", bad[i]);
        struct csvfile *f = open_text(text);
        ck_assert_int_eq(csvfile_next(f, &err), 1);
        ck_assert_uint_eq(csvfile_u64(f, 1, 5, 50, &err), 5);
        expect_error(":2: column n: ", "from 5 to 50");
        csvfile_close(f);
    }
    struct csvfile *f = open_text("n\n18446744073709551615\n007\n");
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_uint_eq(csvfile_u64(f, 0, 0, UINT64_MAX, &err), UINT64_MAX);
    ck_assert_int_eq(csvfile_next(f, &err), 1);
    ck_assert_uint_eq(csvfile_u64(f, 0, 0, 9, &err), 7);
    ck_assert_uint_eq(err.n, 0);
    csvfile_close(f);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("csvfile", .setup = setup, .teardown = teardown),
    TEST(rows_come_with_their_lines_past_comments_and_blank_lines),
    TEST(quotes_crlf_and_a_missing_last_newline_are_fine),
    TEST(a_missing_or_empty_file_is_refused),
    TEST(a_column_that_stands_twice_is_refused),
    TEST(a_required_column_that_is_missing_names_those_there_are),
    TEST(a_row_with_another_number_of_fields_is_refused),
    TEST(a_quote_in_the_wrong_place_or_never_closed_is_refused),
    TEST(fields_and_rows_have_a_limit),
    TEST(a_nul_byte_is_refused_and_never_cuts_a_number_short),
    TEST(numbers_are_decimal_finite_and_in_range),
    TEST(whole_numbers_are_digits_only_and_in_range),
};
SUITE_MAIN("csvfile", suite)
