/* A command line read by tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/shell/options.h"
#include "tests/helpers/suite.h"

struct shared {
    uint64_t seed;
    bool seed_given;
};

struct values {
    struct shared own, other;
    struct option_texts files, names;
    struct option_numbers loads;
    const char *text, *none, *choice;
    uint32_t count;
    double number;
    bool flag;
};

static const char *const colours[] = {"red", "green", NULL};
static const struct option_row rows[] = {
    OPTION_TEXT(struct values, text, "text", "T", NULL, "a text"),
    OPTION_ROW(TEXT, struct values, none, const char *, "none", "T", "a text or none",
               .blank = true),
    OPTION_TEXTS(struct values, names, "name", "N", 2, "names"),
    OPTION_CHOICE(struct values, choice, "colour", "C", "green", colours, "a colour"),
    OPTION_COUNT(struct values, count, "count", "N", "7", 1, 9, "a count"),
    OPTION_NUMBER(struct values, number, "number", "X", NULL, -1.0, 1.0, "a number"),
    OPTION_NUMBERS(struct values, loads, "loads", "X,..", 0.0, 2.0, "numbers"),
    OPTION_FLAG(struct values, flag, "flag", "a flag"),
};
static const struct option_row shared_rows[] = {
    {.name = "seed",
     .value = "N",
     .preset = "1",
     .kind = OPTION_KIND_SEED,
     .letter = 's',
     .offset = offsetof(struct shared, seed),
     .given = 1 + offsetof(struct shared, seed_given),
     .help = "a seed"},
};
static const struct option_table own = OPTION_TABLE(NULL, rows);
static const struct option_table shared = OPTION_TABLE("Shared", shared_rows);
static const struct option_child children[] = {
    {.table = &own},
    {&shared, offsetof(struct values, own), NULL, false},
    {&shared, offsetof(struct values, other), "b-", false},
    {0},
};
static const struct command command = {.name = "try",
                                       .usage = "[options]",
                                       .children = children,
                                       .operands = {"FILE", 0, 2, offsetof(struct values, files)},
                                       .bytes = sizeof(struct values)};

static struct values v;
static struct err err;

static int read_line(const char *line)
{
    static char words[256];
    char *argv[16] = {words};
    int argc = 1;
    err_fini(&err);
    (void)snprintf(words, sizeof words, "try %s", line);
    for (char *w = strtok(words, " "); (w = strtok(NULL, " ")) != NULL;) {
        argv[argc++] = strcmp(w, "~") == 0 ? w + 1 : w; /* an empty one */
    }
    return options_parse(&command, argc, argv, &v, &err);
}

static void setup(void)
{
    memset(&v, 0, sizeof v);
    memset(&err, 0, sizeof err);
}

static void teardown(void)
{
    err_fini(&err);
}

START_TEST(what_is_not_given_has_its_default)
{
    ck_assert_int_eq(read_line(""), 0);
    ck_assert_uint_eq(v.count, 7);
    ck_assert_str_eq(v.choice, "green");
    ck_assert_uint_eq(v.own.seed, 1);
    ck_assert(!v.own.seed_given);
    ck_assert_ptr_null(v.text);
}
END_TEST

START_TEST(values_follow_or_hang_on_and_operands_stand_anywhere)
{
    ck_assert_int_eq(read_line("a --text=x=y --count 3 b --flag -s5 --loads 0.5,2 --number -1"), 0);
    ck_assert_str_eq(v.text, "x=y");
    ck_assert_uint_eq(v.count, 3);
    ck_assert_uint_eq(v.own.seed, 5);
    ck_assert(v.own.seed_given && v.flag);
    ck_assert_uint_eq(v.loads.n, 2);
    ck_assert_double_eq(v.loads.v[1], 2.0);
    ck_assert_double_eq(v.number, -1.0);
    ck_assert_uint_eq(v.files.n, 2);
    ck_assert_str_eq(v.files.v[1], "b");
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    ck_assert_int_eq(read_line("-- --flag"), 0);
    ck_assert(!v.flag);
    ck_assert_str_eq(v.files.v[0], "--flag");
}
END_TEST

START_TEST(the_unique_beginning_of_a_name_is_enough)
{
    ck_assert_int_eq(read_line("--te x"), 0);
    ck_assert_str_eq(v.text, "x");
    ck_assert_int_eq(read_line("--n 1"), -EINVAL); /* name, none or number */
    ck_assert_ptr_nonnull(strstr(err.lines[0], "several"));
}
END_TEST

START_TEST(a_prefixed_table_has_no_defaults_of_its_own)
{
    ck_assert_int_eq(read_line("--seed 3"), 0);
    ck_assert_uint_eq(v.other.seed, 0);
    ck_assert(!v.other.seed_given);
    ck_assert_int_eq(read_line("--b-seed 4"), 0);
    ck_assert_uint_eq(v.own.seed, 1);
    ck_assert_uint_eq(v.other.seed, 4);
    ck_assert(v.other.seed_given);
}
END_TEST

START_TEST(all_errors_are_reported_at_once_by_name)
{
    ck_assert_int_eq(read_line("--count 10 --colour blue --number nan --flag=1 --text"), -EINVAL);
    static const char *const say[] = {"--count 10", "red, green", "--number nan",
                                      "--flag: takes no", "--text: needs a value, T"};
    ck_assert_uint_eq(err.n, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_msg(strstr(err.lines[i], say[i]) != NULL, "%s", err.lines[i]);
    }
}
END_TEST

/* A shell's variable that is not set gives one. Rows that allow it take it as a value. */
START_TEST(an_empty_value_is_refused_by_name)
{
    ck_assert_int_eq(read_line("--text= --name ~ ~ --count ~ --none ~"), -EINVAL);
    static const char *const say[] = {
        "--text: its value is empty; it needs T", "--name: its value is empty; it needs N",
        "an argument is empty; `xpusim try --help` shows what it takes",
        "--count: its value is empty; it needs N"};
    ck_assert_uint_eq(err.n, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(err.lines[i], say[i]);
    }
    ck_assert_str_eq(v.none, "");
    ck_assert_uint_eq(v.files.n, 0);
}
END_TEST

START_TEST(an_unknown_option_is_told_with_the_nearest_and_its_value_is_no_operand)
{
    ck_assert_int_eq(read_line("--coutn 3"), -EINVAL);
    ck_assert_uint_eq(err.n, 1);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "did you mean --count?"));
    ck_assert_int_eq(read_line("-z"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "-z: no such option"));
}
END_TEST

START_TEST(lists_hold_each_text_once_and_so_many)
{
    ck_assert_int_eq(read_line("--name a --name a --name b --name c"), -EINVAL);
    ck_assert_uint_eq(v.names.n, 2);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "--name a: given twice"));
    ck_assert_ptr_nonnull(strstr(err.lines[1], "--name: more than 2"));
    ck_assert_int_eq(read_line("a b c"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.lines[0], "c: more than 2 FILE"));
}
END_TEST

START_TEST(help_names_every_option_with_default_and_choices)
{
    FILE *f = tmpfile();
    char text[4096];
    options_help(&command, f);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    static const char *const parts[] = {"usage: xpusim try [options]",
                                        "--count N",
                                        "(default 7)",
                                        "red, green (default green)",
                                        "Shared:",
                                        "-s, --seed N",
                                        "--b-seed"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(text, parts[i]) != NULL, "%s is not in:\n%s", parts[i], text);
    }
}
END_TEST

START_TEST(the_command_for_a_repetition_has_words_of_any_length)
{
    ck_assert_int_eq(read_line("--seed 2"), 0);
    OWNED char *text = xformat("%020000d", 0);
    char words[][8] = {"try", "--text", "--count", "3", "a b", "-s5"};
    char *argv[] = {words[0], words[1], text, words[2], words[3], words[4], words[5]};
    ck_assert_int_eq(options_parse(&command, 7, argv, &v, &err), 0);
    OWNED char *want = xformat("xpusim try --text %s --count 3 'a b' --seed 5", text);
    ck_assert(strcmp(options_command(), want) == 0);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("all", .setup = setup, .teardown = teardown),
    TEST(what_is_not_given_has_its_default),
    TEST(values_follow_or_hang_on_and_operands_stand_anywhere),
    TEST(two_dashes_end_the_options),
    TEST(the_unique_beginning_of_a_name_is_enough),
    TEST(a_prefixed_table_has_no_defaults_of_its_own),
    TEST(all_errors_are_reported_at_once_by_name),
    TEST(an_empty_value_is_refused_by_name),
    TEST(an_unknown_option_is_told_with_the_nearest_and_its_value_is_no_operand),
    TEST(lists_hold_each_text_once_and_so_many),
    TEST(help_names_every_option_with_default_and_choices),
    TEST(the_command_for_a_repetition_has_words_of_any_length),
};
SUITE_MAIN("options", suite)
