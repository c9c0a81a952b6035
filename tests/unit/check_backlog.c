/* Parts of the metrics: the verdict on stability, and the map of live requests. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/metrics/backlog.h"
#include "sim/metrics/idmap.h"
#include "tests/helpers/suite.h"

/* A machine that serves one request at a time in `service_s`, in order of arrival or the last
 * first: n requests `gap_s` apart. */
static struct backlog_summary serve(uint32_t n, double gap_s, double service_s, bool last_first)
{
    static struct backlog b;
    static bool gone[4096];
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    backlog_init(&b);
    memset(gone, 0, sizeof gone);
    uint32_t arrived = 0;
    for (double free_s = 0.0; arrived < n || b.n_system > 0;) {
        while (arrived < n && (arrived * gap_s <= free_s || b.n_system == 0)) {
            double at_s = arrived++ * gap_s;
            backlog_arrive(&b, units_ns_from_s(at_s));
            free_s = at_s > free_s ? at_s : free_s;
        }
        uint32_t next = last_first ? arrived - 1 : 0;
        while (gone[next]) {
            next += last_first ? -1u : 1u;
        }
        gone[next] = true;
        free_s += service_s;
        while (arrived < n && arrived * gap_s <= free_s) {
            backlog_arrive(&b, units_ns_from_s(arrived++ * gap_s));
        }
        backlog_leave(&b, units_ns_from_s(free_s));
    }
    b.longest_ns = service_s * 1e9;
    return backlog_summarise(&b, &rule);
}

START_TEST(verdict_is_overloaded_when_the_machine_needs_longer_than_the_window)
{
    /* 101 requests in 100 s, 2 s each: done at 202, 102 s after the last. Whatever the order. */
    for (int last_first = 0; last_first < 2; last_first++) {
        struct backlog_summary s = serve(101, 1.0, 2.0, last_first);
        ck_assert_double_eq_tol(s.drain_ns, 102e9, 1e3);
        ck_assert_int_eq(s.verdict, METRICS_OVERLOADED);
    }
    /* 1.08 s each: done at 109.08, 9.08 s after the last: 9 % of the window, more than 1.5 * 1.08.
     */
    ck_assert_int_eq(serve(101, 1.0, 1.08, false).verdict, METRICS_BACKLOGGED);
    /* 1.03 s each: 104.03, 4 %. */
    ck_assert_int_eq(serve(101, 1.0, 1.03, false).verdict, METRICS_STABLE);
}
END_TEST

START_TEST(verdict_judges_work_not_how_many_are_left)
{
    /* 300 in the system at the end, or 3 that are as much work: 400 s of it after 1000 s. */
    for (uint32_t left = 3; left <= 300; left += 297) {
        struct metrics_verdict_rule rule = metrics_options_default().verdict;
        static struct backlog b;
        backlog_init(&b);
        for (uint32_t t = 0; t <= 1000; t++) {
            backlog_arrive(&b, t * NS_PER_S);
            if (t > left) {
                backlog_leave(&b, t * NS_PER_S);
            }
        }
        while (b.n_system > 0) {
            backlog_leave(&b, 1400 * NS_PER_S);
        }
        b.longest_ns = 100e9;
        ck_assert_int_eq(backlog_summarise(&b, &rule).verdict, METRICS_OVERLOADED);
        /* But not when a single request takes 270 s by itself: 400 < 1.5 * 270. */
        b.longest_ns = 270e9;
        ck_assert_int_eq(backlog_summarise(&b, &rule).verdict, METRICS_STABLE);
    }
}
END_TEST

START_TEST(verdict_is_stable_when_everyone_leaves_and_backlogged_after_a_surge)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    static struct backlog b;
    backlog_init(&b);
    for (int t = 0; t < 100; t++) {
        backlog_arrive(&b, t * NS_PER_S);
        backlog_leave(&b, t * NS_PER_S + NS_PER_S / 2);
    }
    b.longest_ns = 0.5e9;
    struct backlog_summary s = backlog_summarise(&b, &rule);
    ck_assert_int_eq(s.verdict, METRICS_STABLE);
    ck_assert_double_eq_tol(s.growth_frac, 0.0, 0.005);
    /* Half a request on average (99 of them over 99 s). */
    ck_assert_double_eq_tol(s.mean_in_window, 0.5, 1e-12);
    /* Then 40 at once, 20 s of work: a fifth of the window, but it was empty until then. */
    for (int i = 0; i < 40; i++) {
        backlog_arrive(&b, 100 * NS_PER_S);
    }
    for (int i = 1; i <= 40; i++) {
        backlog_leave(&b, 100 * NS_PER_S + i * NS_PER_S / 2);
    }
    ck_assert_int_eq(backlog_summarise(&b, &rule).verdict, METRICS_BACKLOGGED);
    /* Five at once and nothing else: no window, but a backlog. One: none. */
    for (int n = 1; n <= 5; n += 4) {
        backlog_init(&b);
        for (int i = 0; i < n; i++) {
            backlog_arrive(&b, 0);
        }
        for (int i = 1; i <= n; i++) {
            backlog_leave(&b, i * NS_PER_S);
        }
        b.longest_ns = 1e9;
        ck_assert_int_eq(backlog_summarise(&b, &rule).verdict,
                         n == 1 ? METRICS_STABLE : METRICS_BACKLOGGED);
    }
}
END_TEST

/* Growth is that of the second half of the arrivals: 200 s in which nobody stays, then one more of
 * two arrivals a second that stays, or the other way round. */
START_TEST(growth_is_that_of_the_second_half)
{
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    static struct backlog b;
    for (int last = 0; last < 2; last++) {
        backlog_init(&b);
        for (int t = 0; t <= 400; t++) {
            backlog_arrive(&b, t * NS_PER_S);
            if ((t >= 200) != (last == 1) || t % 2 == 0) {
                backlog_leave(&b, t * NS_PER_S + NS_PER_S / 2);
            }
        }
        ck_assert_double_eq_tol(backlog_summarise(&b, &rule).growth_frac, last == 1 ? 0.5 : 0.0,
                                0.01);
    }
}
END_TEST

START_TEST(idmap_agrees_with_a_plain_array)
{
    enum { IDS = 500 };
    static uint32_t present[IDS];
    memset(present, 0, sizeof present);
    struct idmap m;
    idmap_init(&m, sizeof(uint32_t));
    uint32_t x = 12345;
    for (int step = 0; step < 20000; step++) {
        x = x * 1664525u + 1013904223u;
        uint32_t i = (x >> 8) % IDS;
        uint32_t id = i * 0x10001u; /* sparse */
        if ((x >> 30) == 0) {
            idmap_remove(&m, id);
            present[i] = 0;
        } else {
            uint32_t *v = idmap_add(&m, id);
            ck_assert_uint_eq(*v, present[i]); /* zeroed when new */
            *v = present[i] = (uint32_t)step + 1;
        }
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < IDS; i++) {
        const uint32_t *v = idmap_find(&m, i * 0x10001u);
        ck_assert_uint_eq(v == NULL ? 0 : *v, present[i]);
        n += present[i] != 0 ? 1 : 0;
    }
    ck_assert_uint_eq(m.n, n);
    idmap_fini(&m);
}
END_TEST

static const struct suite_row suite[] = {
    TEST(verdict_is_overloaded_when_the_machine_needs_longer_than_the_window),
    TEST(verdict_judges_work_not_how_many_are_left),
    TEST(verdict_is_stable_when_everyone_leaves_and_backlogged_after_a_surge),
    TEST(growth_is_that_of_the_second_half),
    TEST(idmap_agrees_with_a_plain_array),
};
SUITE_MAIN("backlog", suite)
