/* A test program is one table: a row per test, and a row where a case with other fixtures or
 * another time limit begins. SUITE_MAIN lists it for main (tests/check.c), which runs the tables of
 * all files in one program, or of one file in a program of its own.
 *
 *   static const struct suite_row rows[] = {
 *       TEST(a_first_thing_holds),
 *       CASE("by hand", .setup = setup, .teardown = teardown, .timeout_s = 60),
 *       LOOP(every_form_agrees, 4),
 *   };
 *   SUITE_MAIN("things", rows)
 */
#pragma once

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* Check's own macro without the pointer that only tcase_add_test needs. A test that no table names
 * is then an unused variable, and does not compile. */
#undef START_TEST
#define START_TEST(name_)                                                                          \
    static void name_##_fn(int _i);                                                                \
    static const TTest name_##_ttest = {#name_, name_##_fn, __FILE__, __LINE__};                   \
    static void name_##_fn(int _i CK_ATTRIBUTE_UNUSED)

struct suite_row {
    const TTest *test;  /* NULL: a case begins */
    int n;              /* it runs for _i = 0 .. n - 1 */
    int (*count)(void); /* n, where the compiler cannot know it */
    const char *name;
    void (*setup)(void), (*teardown)(void); /* around each test, in its process */
    void (*once)(void);                     /* before all of them */
    double timeout_s;                       /* of one test; 0: Check's own */
};

#define TEST(name_)                                                                                \
    {                                                                                              \
        .test = &name_##_ttest, .n = 1                                                             \
    }
#define LOOP(name_, n_)                                                                            \
    {                                                                                              \
        .test = &name_##_ttest, .n = (int)(n_)                                                     \
    }
#define LOOP_OVER(name_, count_)                                                                   \
    {                                                                                              \
        .test = &name_##_ttest, .count = (count_)                                                  \
    }
#define CASE(...)                                                                                  \
    {                                                                                              \
        .name = __VA_ARGS__                                                                        \
    }
/* How many policies there are, for LOOP_OVER. */
int suite_policies(void);
/* WHOLE=yes, as CI says: what is random or long is done whole. `make check` does a part of it. */
bool suite_whole(void);
/* Does the environment say so (SANITIZED)? Runs then take ten times as long, and what repeats a
 * line with other numbers is for the usual build. */
bool suite_sanitized(void);
/* Random runs to try: XPUSIM_RUNS, else one of these. */
uint32_t suite_runs(uint32_t part, uint32_t whole);

/* Fails unless both are NaN, or differ by 1e-9 of what was worked out at most, which it returns. */
#define is_near(is, want) suite_near((is), (want), #is, __LINE__)
double suite_near(double is, double want, const char *what, int line);

/* Keeps what a static struct holds until the process ends, as commands do. The test can fill the
 * struct again. At most 256 calls in a test. */
void suite_keep(const void *p, size_t bytes);

/* Runs the rows and prints Check's summary; the exit status of main. */
int suite_run(const char *name, const struct suite_row *rows, size_t n_rows);

/* A file's suite, by the file's name. */
struct suite_file {
    const char *file; /* "tests/unit/check_rng.c" */
    int (*run)(void);
    struct suite_file *next;
};
void suite_add(struct suite_file *file);
/* Runs the suite of a file, or of all files in any order with NULL; the exit status of main. */
int suite_main(const char *file);

#define SUITE_CALL(call_)                                                                          \
    static int suite_call(void)                                                                    \
    {                                                                                              \
        return call_;                                                                              \
    }                                                                                              \
    __attribute__((constructor)) static void suite_here(void)                                      \
    {                                                                                              \
        static struct suite_file here = {.file = __FILE__, .run = suite_call};                     \
        suite_add(&here);                                                                          \
    }
#define SUITE_MAIN(name_, rows_) SUITE_CALL(suite_run(name_, rows_, sizeof rows_ / sizeof rows_[0]))
