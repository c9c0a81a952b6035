#define _GNU_SOURCE /* RTLD_NEXT */
/* Clocks of this computer: they run forwards, and an instant from now on lies ahead. */
#include <dlfcn.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "sim/base/clock.h"
#include "sim/base/units.h"
#include "tests/helpers/suite.h"

/* However busy the computer is: between what the clock shows before and after. */
START_TEST(an_instant_from_now_lies_ahead_by_what_is_asked)
{
    for (int64_t ahead = 0; ahead <= 2 * NS_PER_S; ahead += NS_PER_S / 2) {
        int64_t before = clock_ns(CLOCK_MONOTONIC);
        struct timespec at = clock_after(ahead);
        int64_t after = clock_ns(CLOCK_MONOTONIC);
        int64_t ns = at.tv_sec * NS_PER_S + at.tv_nsec;
        ck_assert_int_ge(at.tv_nsec, 0);
        ck_assert_int_lt(at.tv_nsec, NS_PER_S);
        ck_assert_int_ge(ns, before + ahead);
        ck_assert_int_le(ns, after + ahead);
    }
}
END_TEST

/* The computer's clock in a test that sets it; 0: the real time. */
static int64_t shown_ns;

/* Replaces the C library's function for the whole program. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    static int (*real)(clockid_t clock, struct timespec * t);
    if (shown_ns != 0 && clock == CLOCK_MONOTONIC) {
        *t = (struct timespec){shown_ns / NS_PER_S, shown_ns % NS_PER_S};
        return 0;
    }
    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy(&real, &found, sizeof real);
    }
    return real(clock, t);
}

static int64_t now_at(int64_t ns)
{
    shown_ns = ns;
    int64_t now = clock_now_ns();
    shown_ns = 0;
    return now;
}

/* Processors whose clocks differ by less than a millisecond take no step: a reading is the clock's
 * again as soon as that is ahead. Beyond a millisecond the clock was set: time continues. */
START_TEST(a_clock_that_was_set_back_continues)
{
    int64_t base = (clock_now_ns() / NS_PER_S + 1000) * NS_PER_S;
    ck_assert_int_eq(now_at(base), base);
    ck_assert_int_eq(now_at(base - 500000), base);
    ck_assert_int_eq(now_at(base - 1000000), base);
    ck_assert_int_eq(now_at(base + 1000), base + 1000);
    ck_assert_int_eq(now_at(base + 1000 - 1000001), base + 1000);
    ck_assert_int_eq(now_at(base + 1000 - 1000001 + 7), base + 1000 + 7);
    ck_assert_int_eq(now_at(base - 60 * NS_PER_S), base + 1000 + 7);
    ck_assert_int_eq(now_at(base - 60 * NS_PER_S + 3), base + 1000 + 7 + 3);
}
END_TEST

START_TEST(now_never_goes_back_and_is_told_in_two_units)
{
    int64_t last = clock_now_ns();
    for (int i = 0; i < 1000; i++) {
        double s = clock_now_s();
        int64_t now = clock_now_ns();
        ck_assert_int_ge(now, last);
        ck_assert(s * 1e9 >= (double)last - 1e3 && s * 1e9 <= (double)now + 1e3);
        last = now;
    }
}
END_TEST

/* Between what the C library says before and after, which has hundredths of a second at worst. */
START_TEST(processor_time_is_that_of_the_c_library)
{
    volatile double x = 1.0;
    for (int i = 0; i < 3000000; i++) {
        x *= 1.0000001;
    }
    double before = (double)clock() / CLOCKS_PER_SEC;
    double s = clock_processor_s(RUSAGE_SELF);
    double after = (double)clock() / CLOCKS_PER_SEC;
    ck_assert_msg(s >= before - 0.01 && s <= after + 0.01, "%g, between %g and %g", s, before,
                  after);
    ck_assert(before > 0.0 && clock_processor_s(RUSAGE_CHILDREN) == 0.0);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(an_instant_from_now_lies_ahead_by_what_is_asked),
    TEST(now_never_goes_back_and_is_told_in_two_units),
    TEST(a_clock_that_was_set_back_continues),
    TEST(processor_time_is_that_of_the_c_library),
};
SUITE_MAIN("clock", suite)
