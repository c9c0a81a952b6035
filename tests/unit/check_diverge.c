/* Small made-up cases show where two decision logs part, and test delta debugging. */
#include <string.h>

#include "experiments/diff/diverge.h"
#include "experiments/diff/shrink.h"
#include "sim/base/rng.h"
#include "tests/helpers/suite.h"

static struct divergence between(const char *a, const char *b)
{
    FILE *f = tmpfile();
    FILE *g = tmpfile();
    ck_assert(f != NULL && g != NULL);
    (void)fputs(a, f);
    (void)fputs(b, g);
    struct divergence d;
    diverge_find(f, g, &d);
    (void)fclose(f);
    (void)fclose(g);
    return d;
}

START_TEST(equal_logs_do_not_differ_whatever_their_heading)
{
    struct divergence d = between("policy x flags=2\n1 70 form = 0\n2 90 launch = 0\n",
                                  "policy replay flags=0\n1 70 form = 0\n2 90 launch = 0\n");
    ck_assert(!d.differs);
    ck_assert_uint_eq(d.line, 2);
}
END_TEST

START_TEST(the_first_differing_line_is_found_with_what_came_before)
{
    struct divergence d = between("policy x flags=2\n1 70 form = 0\n2 90 launch = 0\n2 95 b\n",
                                  "policy y flags=2\n1 70 form = 0\n2 91 launch = 0\n2 95 c\n");
    ck_assert(d.differs);
    ck_assert_uint_eq(d.line, 2);
    ck_assert_int_eq((int)d.offset[0], 14); /* "1 70 form = 0" and its newline */
    ck_assert_int_eq((int)d.offset[1], 14);
    ck_assert_int_eq((int)d.since_ns, 70);
    ck_assert_str_eq(d.a, "2 90 launch = 0");
    ck_assert_str_eq(d.b, "2 91 launch = 0");
    ck_assert_uint_eq(d.n_context, 1);
    ck_assert_str_eq(d.context[0], "1 70 form = 0");
}
END_TEST

/* B was called once more before its second decision, for an event that led to none. */
START_TEST(epochs_are_no_decisions)
{
    struct divergence d = between("policy x\n1 70 form = 0\n9 90 launch = 0\n10 95 b\n",
                                  "policy x\n1 70 form = 0\n10 90 launch = 0\n11 95 c\n");
    ck_assert(d.differs);
    ck_assert_uint_eq(d.line, 3);
    ck_assert_int_eq((int)d.offset[0], 14 + 16); /* and "9 90 launch = 0" */
    ck_assert_int_eq((int)d.offset[1], 14 + 17);
    ck_assert_str_eq(d.b, "11 95 c");
}
END_TEST

START_TEST(a_log_that_ends_early_differs_there)
{
    struct divergence d = between("policy x\n1 1 a\n", "policy x\n1 1 a\n2 2 b\n");
    ck_assert(d.differs);
    ck_assert_uint_eq(d.line, 2);
    ck_assert_str_eq(d.a, "");
    ck_assert_str_eq(d.b, "2 2 b");
    d = between("policy x\n", "");
    ck_assert(!d.differs);
    ck_assert_uint_eq(d.line, 0);
}
END_TEST

/* The notes of a policy whose run failed are no decisions. */
START_TEST(a_log_ends_before_the_notes)
{
    struct divergence d = between("policy x\n1 1 a\ndump:\n3 requests\n", "policy x\n1 1 a\n");
    ck_assert(!d.differs);
    ck_assert_uint_eq(d.line, 1);
    d = between("policy x\n1 1 a\n2 2 b\n", "policy x\n1 1 a\ndump:\n2 2 b\n");
    ck_assert(d.differs);
    ck_assert_uint_eq(d.line, 2);
    ck_assert_str_eq(d.a, "2 2 b");
    ck_assert_str_eq(d.b, "");
    d = between("policy x\n1 1 a\ndump:\n3 requests\n", "policy x\n1 1 a\ndump:\n4 requests\n");
    ck_assert(!d.differs);
    ck_assert_uint_eq(d.line, 1);
}
END_TEST

START_TEST(the_last_lines_before_are_kept_and_long_ones_compared_whole)
{
    char a[4096] = "policy x\n1 1 a\n2 2 b\n3 3 c\n4 4 d\n5 5 e\n";
    char b[4096];
    size_t n = strlen(a);
    memset(a + n, 'z', 1000);
    a[n + 1000] = '\0';
    memcpy(b, a, sizeof b);
    b[n + 999] = 'y'; /* beyond what is shown */
    struct divergence d = between(a, b);
    ck_assert(d.differs);
    ck_assert_uint_eq(d.line, 6);
    ck_assert_uint_eq(d.n_context, DIVERGE_CONTEXT);
    ck_assert_str_eq(d.context[0], "2 2 b");
    ck_assert_str_eq(d.context[3], "5 5 e");
    ck_assert_int_eq((int)d.since_ns, 5);
    ck_assert_uint_eq(strlen(d.a), DIVERGE_LINE_BYTES - 1);
}
END_TEST

/* ---- shrinking ---- */

#define MAX_ELEMENTS 64

/* Shows it when all of `needed` are kept, or all of `other` (bit sets; 0: no other way). */
struct riddle {
    uint64_t needed, other;
    size_t tests;
};

static uint64_t bits(const bool *keep, size_t n)
{
    uint64_t b = 0;
    for (size_t i = 0; i < n; i++) {
        b |= keep[i] ? 1ULL << i : 0;
    }
    return b;
}

static bool shows(void *ctx, const bool *keep, size_t n)
{
    struct riddle *r = ctx;
    r->tests++;
    uint64_t b = bits(keep, n);
    return (b & r->needed) == r->needed || (r->other != 0 && (b & r->other) == r->other);
}

static uint64_t shrunk(struct riddle *r, size_t n, size_t max_tests)
{
    bool keep[MAX_ELEMENTS];
    memset(keep, true, sizeof keep);
    struct shrink s = {r, shows, max_tests};
    size_t tests = shrink_run(&s, keep, n);
    ck_assert_uint_ge(tests, r->tests); /* an empty subset is counted, not asked for */
    return bits(keep, n);
}

START_TEST(exactly_what_is_needed_is_left)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t x = rng_key(seed, RNG_TEST, 0, 0);
        size_t n = 1 + x % MAX_ELEMENTS;
        uint64_t all = n == 64 ? UINT64_MAX : (1ULL << n) - 1;
        struct riddle r = {.needed = rng_mix64(x) & rng_mix64(x + 1) & rng_mix64(x + 2) & all};
        if (r.needed == 0) {
            r.needed = 1;
        }
        ck_assert_uint_eq(shrunk(&r, n, 100000), r.needed);
    }
}
END_TEST

START_TEST(one_of_two_ways_is_left_and_nothing_more)
{
    struct riddle r = {.needed = 0x8001, .other = 0x0ff0};
    uint64_t left = shrunk(&r, 32, 100000);
    ck_assert(left == r.needed || left == r.other);
}
END_TEST

START_TEST(one_culprit_among_many_takes_few_tests)
{
    /* Halving 64 to 1: a part of half, then quarter, ...: at most two tests a step, six steps, and
     * one round of singles. */
    struct riddle r = {.needed = 1ULL << 37};
    ck_assert_uint_eq(shrunk(&r, 64, 100000), r.needed);
    ck_assert_uint_le(r.tests, 16);
}
END_TEST

START_TEST(stopping_early_still_leaves_a_set_that_shows_it)
{
    struct riddle r = {.needed = 0x00f0f0f0f0f0f0f0ULL};
    uint64_t left = shrunk(&r, 64, 10);
    ck_assert_uint_le(r.tests, 10);
    ck_assert_uint_eq(left & r.needed, r.needed);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(equal_logs_do_not_differ_whatever_their_heading),
    TEST(the_first_differing_line_is_found_with_what_came_before),
    TEST(epochs_are_no_decisions),
    TEST(a_log_that_ends_early_differs_there),
    TEST(a_log_ends_before_the_notes),
    TEST(the_last_lines_before_are_kept_and_long_ones_compared_whole),
    TEST(exactly_what_is_needed_is_left),
    TEST(one_of_two_ways_is_left_and_nothing_more),
    TEST(one_culprit_among_many_takes_few_tests),
    TEST(stopping_early_still_leaves_a_set_that_shows_it),
};
SUITE_MAIN("diverge", suite)
