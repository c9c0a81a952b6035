/* Parts of the metrics: the verdict on stability, and the map of live requests. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/metrics/backlog.h"
#include "sim/metrics/idmap.h"

START_TEST(verdict_is_overloaded_when_half_of_the_work_is_left_behind)
{
    /* One arrival a second, one departure every two: n(t) = t/2, slope 0.5 per second at rate 1. */
    struct metrics_verdict_rule rule = metrics_options_default().verdict;
    static struct backlog b;
    backlog_init(&b);
    for (int t = 0; t <= 2000; t++) {
        backlog_arrive(&b, t * NS_PER_S);
        if (t % 2 == 1) {
            backlog_leave(&b, t * NS_PER_S);
        }
    }
    struct backlog_summary s = backlog_summarise(&b, &rule);
    ck_assert_double_eq_tol(s.growth_frac, 0.5, 0.005);
    /* 2001 arrivals, 1000 departures. */
    ck_assert_double_eq_tol(s.unfinished_frac, 1001.0 / 2001.0, 1e-12);
    ck_assert_int_eq(s.verdict, METRICS_OVERLOADED);
    ck_assert_uint_eq(b.max, 1001);
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
    struct backlog_summary s = backlog_summarise(&b, &rule);
    ck_assert_int_eq(s.verdict, METRICS_STABLE);
    ck_assert_double_eq_tol(s.growth_frac, 0.0, 0.005);
    /* Half a request on average (99 of them over 99 s); then 20 at once: 20 >= 3 * 0.5. */
    ck_assert_double_eq_tol(s.mean_in_window, 0.5, 1e-12);
    for (int i = 0; i < 20; i++) {
        backlog_arrive(&b, 100 * NS_PER_S);
    }
    ck_assert_int_eq(backlog_summarise(&b, &rule).verdict, METRICS_BACKLOGGED);
    /* All at once and nothing else: no window, no growth, but a backlog. */
    backlog_init(&b);
    for (int i = 0; i < 5; i++) {
        backlog_arrive(&b, 0);
    }
    ck_assert_int_eq(backlog_summarise(&b, &rule).verdict, METRICS_BACKLOGGED);
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

int main(void)
{
    Suite *s = suite_create("backlog");
    TCase *c = tcase_create("backlog");
    tcase_add_test(c, verdict_is_overloaded_when_half_of_the_work_is_left_behind);
    tcase_add_test(c, verdict_is_stable_when_everyone_leaves_and_backlogged_after_a_surge);
    tcase_add_test(c, idmap_agrees_with_a_plain_array);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
